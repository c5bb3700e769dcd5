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


CALLS = """
import pathlib, sys, tempfile, time
from evidence import flips
from evidence.lives import End, live
from gosprl.runs.files import disk

def run(kind, path, seconds):
    def late(fd, sync=disk.fsync):
        time.sleep(seconds)
        sync(fd)
    disk.fsync = late
    return flips._written_at_once(kind, path)

kind, call = flips.RUNS[sys.argv[1]]
folder = pathlib.Path(tempfile.mkdtemp())
flips.go(kind, folder / "first")
for seconds in (0, 0.03):
    life = live(lambda: run(kind, folder / str(seconds), seconds), End("none"))
    print(life.ended, life.calls, life.calls > call)
"""


@pytest.mark.parametrize("name", ["table, killed", "growing, killed"])
def test_the_number_of_calls_before_the_end_does_not_depend_on_the_disk(name):
    """Else a run that is to be killed at a call may be over before: with a slow disk, more is written at once."""
    command = [sys.executable, "-c", CALLS, name]
    done = warmed.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    fast, slow = done.stdout.splitlines()[-2:]
    assert fast == slow
    assert fast.startswith("finished ")
    assert fast.endswith("True")
