"""`watch`: what a look says, and when it ends."""

import os
import threading

import numpy as np
import pytest

import gosprl
from gosprl.errors import InputError
from gosprl.runs.settings import Out
from gosprl.watching import watch
from gosprl.watching.looking import duration


def test_a_finished_run_is_looked_at_once(tmp_path):
    result = gosprl.collect("riverswim6", 5, seed=0, out=tmp_path)
    [look] = watch(tmp_path)
    assert look.facts["stop"] == "met"
    assert (look.facts["steps"], look.facts["met"], look.facts["missing"]) == (result.steps, 1.0, 0)
    assert look.facts["forecast"] is None
    assert dict(look.lines())["run"] == "finished: met"


def test_a_run_that_was_killed_has_stopped(tmp_path):
    gosprl.collect("room20", 20, seed=0, max_steps=300, out=Out(tmp_path, sync_steps=50))
    (tmp_path / "certificate.json").unlink()
    looks = list(watch(tmp_path, every=0.01))
    assert looks[-1].finished
    assert looks[-1].facts["stop"] is None
    assert "gosprl resume" in dict(looks[-1].lines())["run"]
    first = looks[0].facts
    assert 0 < first["met"] < 1 or first["missing"] > 0
    assert (
        first["forecast"]["steps"]["low"] <= first["forecast"]["steps"]["middle"] <= first["forecast"]["steps"]["high"]
    )
    pair = first["missing_pairs"][0]
    assert pair["have"] < pair["needed"] == 20


def test_a_run_is_watched_while_it_is_made(tmp_path):
    """Steps never go back, and the last look has all of them."""
    directory, done = tmp_path / "run", []
    started = threading.Event()

    def slow(status):
        started.set()

    def collect():
        done.append(gosprl.collect("four_room43", 3000, seed=0, out=Out(directory, sync_seconds=0.05), progress=slow))

    thread = threading.Thread(target=collect)
    thread.start()
    while not (directory / "manifest.json").exists() and thread.is_alive():
        started.wait(0.01)
    steps = [look.facts["steps"] for look in watch(directory, every=0.02)]
    thread.join()
    assert np.all(np.diff(steps) >= 0)
    assert steps[-1] == done[0].steps


def test_a_need_that_is_computed_during_the_run_has_no_proportion(tmp_path):
    gosprl.collect("riverswim6", lambda model: np.full((6, 2), 3), seed=0, out=tmp_path)
    [look] = watch(tmp_path)
    assert look.facts["met"] is None
    assert "computed during the run" in dict(look.lines())["met"]


def test_wrong_arguments(tmp_path):
    with pytest.raises(InputError, match="run: expected the directory of a run"):
        next(watch(tmp_path))
    with pytest.raises(InputError, match="every"):
        next(watch(tmp_path, every=0))


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "less than 1 s"), (90, "90 s"), (150, "2 min"), (7300, "2 h"), (200_000, "2 days")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_nothing_is_written(tmp_path):
    gosprl.collect("riverswim6", 2, seed=0, out=tmp_path)
    before = {path: os.stat(path).st_mtime_ns for path in tmp_path.rglob("*")}
    list(watch(tmp_path))
    assert {path: os.stat(path).st_mtime_ns for path in tmp_path.rglob("*")} == before
