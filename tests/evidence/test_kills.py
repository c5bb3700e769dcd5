"""Killed runs, at small size: real kills of real processes, and the disk that fails; see evidence/kills.py."""

import re
import sys
from pathlib import Path

import pytest
import warmed

from evidence.disks import FAULTS
from evidence.killed import KINDS

KILLS = 6  # of each kind: 48 in all


def evidence(tmp_path, *options):
    """What the evidence prints, from a process of its own: it forks, which the one of the tests must not."""
    command = [sys.executable, "-m", "evidence.kills", "--state", str(tmp_path / "state"), *options]
    done = warmed.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", KINDS)
def test_nothing_acknowledged_is_lost(name, tmp_path):
    said = evidence(tmp_path, "--only", name, "--kills", str(KILLS))
    assert int(re.search(r"0 problems after (\d+) kills", said)[1]) >= KILLS


@pytest.mark.parametrize("name", FAULTS)
def test_whatever_else_happens(name, tmp_path):
    times = {"a call of the disk fails": 10, "no run, a newer one, or another one": 1}.get(name, 3)
    assert f"| {name} | " in evidence(tmp_path, "--only", name, "--times", str(times))
