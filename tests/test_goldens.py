"""Runs are what they were, bit for bit: see goldens.py."""

import json
from pathlib import Path

import goldens
import pytest

GOLDEN = json.loads((Path(__file__).parent / "data" / "goldens.json").read_text())


@pytest.mark.parametrize("name", goldens.CASES)
def test_a_run_is_what_it_was(name):
    differs = goldens.difference(GOLDEN.get(name), goldens.digest(goldens.CASES[name]()))
    assert not differs, f"{name}: {differs}"


def test_no_run_was_forgotten():
    assert list(GOLDEN) == list(goldens.CASES)
