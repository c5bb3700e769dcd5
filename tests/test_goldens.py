"""Runs are what they were, bit for bit: see goldens.py."""

import json
from pathlib import Path

import goldens
import pytest

GOLDEN = json.loads((Path(__file__).parent / "data" / "goldens.json").read_text())
GROUPS = list(dict.fromkeys(name.partition(":")[0] for name in goldens.CASES))  # seconds each: "strategies", ...


@pytest.mark.parametrize("group", GROUPS)
def test_runs_are_what_they_were(group):
    names = [name for name in goldens.CASES if name.startswith(f"{group}:")]
    differ = [f"{name}: {text}" for name in names if (text := _difference(name))]
    assert not differ, f"{len(differ)} of {len(names)} runs differ:\n" + "\n".join(differ)


def _difference(name):
    try:
        now = goldens.digest(goldens.CASES[name]())
    except Exception as error:  # the others of the group are run all the same
        return f"raised {type(error).__name__}: {error}"
    return goldens.difference(GOLDEN.get(name), now)


def test_no_run_was_forgotten():
    assert list(GOLDEN) == list(goldens.CASES)


def test_exceptions_are_cases():
    assert set(goldens.EXCEPTIONS) <= set(goldens.CASES)
