"""Damaged runs, at small size: flipped bits, files cut off, and files made by a stranger; see evidence/flips.py."""

import subprocess
import sys
from pathlib import Path

import pytest

from evidence.flips import RUNS

FLIPS, MUTATIONS = 60, 120  # of each run


@pytest.mark.parametrize("name", RUNS)
def test_damage_is_reported_or_has_no_effect(name):
    command = [sys.executable, "-m", "evidence.flips", "--only", name]
    command += ["--flips", str(FLIPS), "--mutations", str(MUTATIONS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"| {name} | {FLIPS} |" in done.stdout
