"""Every benchmark still runs, on tiny sizes; their own assertions say that all sides solve the same problem."""

import sys
from pathlib import Path

import pytest
import warmed

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    "name",
    [
        "planning",
        "average",
        "prices",
        "storm",
        "counting",
        "observing",
        "discovering",
        "fleet_transport",
        "collecting",
        "keeping",
        "watching",
        "reporting",
        "exchange",
        "growth",
        "prior",
        "distances",
        "applications",
    ],
)
def test_quick_run(name):
    command = [sys.executable, str(SCRIPTS / f"{name}.py"), "--quick"]
    done = warmed.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stdout, done.stderr
