"""Damaged runs, at small size: flipped bits, files cut off, and files made by a stranger; see evidence/flips.py."""

import sys
from pathlib import Path

import pytest
import warmed

from evidence.flips import RUNS

CASES = {"flips": 60, "mutations": 120}  # of each run


def evidence(name, **cases):
    """What the evidence prints, from a process of its own, which it limits and watches."""
    options = [part for kind in CASES for part in (f"--{kind}", str(cases.get(kind, 0)))]
    command = [sys.executable, "-m", "evidence.flips", "--only", name, *options]
    done = warmed.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", RUNS)
def test_damage_is_reported_or_has_no_effect(name):
    assert f"| {name} | {CASES['flips']} |" in evidence(name, flips=CASES["flips"])


@pytest.mark.parametrize("name", RUNS)
def test_a_stranger_gets_an_error_of_gosprl(name):
    assert "0 problems" in evidence(name, mutations=CASES["mutations"])
