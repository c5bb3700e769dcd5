"""Progress: what it is told and how often; Ctrl-C where nothing can be lost."""

import numpy as np
import pytest
from walked import RIVER, ctrl_c, interrupt, possible, stop_after

import gosprl
from gosprl import Collector
from gosprl.systems.tabular import Tabular


@pytest.fixture
def eager(monkeypatch):
    """Reports come after every block of 50 steps."""
    monkeypatch.setattr(Tabular, "block", 50)
    monkeypatch.setattr("gosprl.progress.PERIOD", 0.0)


def test_progress_is_told_how_far_it_is(eager):
    told = []
    result = gosprl.collect(RIVER, 3, seed=0, progress=told.append)
    assert told[-1]["steps"] == result.steps
    assert told[-1]["met"] == 1
    steps = [status["steps"] for status in told]
    assert steps == sorted(steps)
    assert len(told) > 5


def test_progress_is_told_at_most_ten_times_a_second(monkeypatch):
    monkeypatch.setattr(Tabular, "block", 1)
    clock, told = iter(np.arange(0, 1e6, 0.03)), []
    monkeypatch.setattr("gosprl.progress.time.monotonic", lambda: next(clock))
    gosprl.collect(RIVER, 3, seed=0, progress=lambda status: told.append(next(clock)))
    assert len(told) > 10
    assert (np.diff(told[:-1]) >= 0.1).all()  # the last is at the end


def test_progress_that_interrupts_again_and_again_loses_nothing(eager):
    try:
        result = gosprl.collect(RIVER, 3, seed=0, progress=lambda status: interrupt())
    except KeyboardInterrupt:
        pytest.fail("the result is lost")
    assert result.stop == "interrupted"
    assert result.steps == result.counts.sum() > 0


@pytest.mark.parametrize("how", [ctrl_c, interrupt])
def test_an_interrupted_run_goes_on(eager, how):
    collector = Collector(6, 2, 5, seed=0)
    part = collector.run(RIVER, progress=stop_after(100, how))
    assert part.stop == "interrupted"
    result = collector.run(RIVER)
    assert (result.stop, result.met) == ("met", True)
    assert result.steps == result.counts.sum() > part.steps
    assert possible(result, RIVER)
