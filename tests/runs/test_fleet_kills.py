"""A learner with walkers in processes of their own, killed while it collects."""

import os
import signal
import subprocess
import sys
import time

from fleet_logs import UNKNOWN, recounted, rows_of

import gosprl
from gosprl.runs import verify
from gosprl.runs.opened import OpenRun

LEARNER = """
import sys
import gosprl
from fleet_systems import river
if __name__ == "__main__":
    gosprl.collect(river, 400, seed=0, workers=2, out=gosprl.runs.Out(sys.argv[1], sync_steps=50, sync_seconds=0.05))
"""


def rows_after(directory, rows, seconds=600):
    """Wait until a log has so many rows."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if OpenRun.read(directory).contents.rows >= rows:
                return
        except gosprl.GosprlError:
            pass
        time.sleep(0.02)
    raise AssertionError("nothing was written")


def test_a_killed_learner_loses_nothing_that_was_synced(tmp_path):
    from fleet_systems import river

    directory = tmp_path / "run"
    file = tmp_path / "learner.py"
    file.write_text(LEARNER)
    learner = subprocess.Popen(
        [sys.executable, str(file), str(directory)], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    try:
        rows_after(directory, 200)
    finally:
        learner.send_signal(signal.SIGKILL)
        learner.wait()
    before, in_flight = rows_of(directory), OpenRun.read(directory).in_flight
    assert 0 < len(in_flight) <= 2
    result = gosprl.resume(directory, system=river, need=100, workers=2)
    assert result.stop == "met"
    rows = rows_of(directory)
    assert rows[: len(before)] == before
    assert [row["number"] for row in rows[len(before) :][: len(in_flight)]] == [order.number for order in in_flight]
    assert all(row["flags"] & UNKNOWN for row in rows[len(before) :][: len(in_flight)])
    visits, _ = recounted(rows)
    assert visits == {(s, a): n for (s, a), n in visits.items() if result.counts[s, a] == n}
    checked = verify(directory)
    assert checked.ok, checked
