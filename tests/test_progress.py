"""Progress: what it is told and how often; Ctrl-C where nothing can be lost."""

import re
import sys

import gymnasium
import numpy as np
import pytest
from walked import RIVER, ctrl_c, interrupt, possible, stop_after, table_collector

import gosprl
from gosprl import Collector, InputError
from gosprl.progress import LogLines
from gosprl.systems.stepper import Stepper
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
    collector = table_collector(6, 2, 5, seed=0)
    part = collector.run(RIVER, progress=stop_after(100, how))
    assert part.stop == "interrupted"
    result = collector.run(RIVER)
    assert (result.stop, result.met) == ("met", True)
    assert result.steps == result.counts.sum() > part.steps
    assert possible(result, RIVER)


# What is met


class Ring(gymnasium.Env):
    """Goes round; states come up one after the other."""

    def __init__(self, states):
        self.observation_space = gymnasium.spaces.Discrete(states)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.s = 0
        return 0, {}

    def step(self, action):
        self.s = (self.s + action) % self.observation_space.n
        return self.s, 0.0, False, False, {}


@pytest.fixture
def every_step(monkeypatch):
    """Reports come after every step."""
    monkeypatch.setattr(Stepper, "block", 1)
    monkeypatch.setattr("gosprl.progress.PERIOD", 0.0)


@pytest.mark.parametrize("env", [lambda: Ring(30), lambda: gymnasium.make("FrozenLake-v1")], ids=["ring", "lake"])
def test_states_that_are_not_discovered_are_not_met(every_step, env):
    """Of a ring of 30, after a few steps two or three are known: what is met is a proportion of these."""
    told, system = [], Stepper(env())
    model = system.model()
    model.allow_resets("terminal")
    need = system.requirement(3, model)
    collector = Collector(need=need, model=model, seed=0)

    def progress(status):
        short = {}  # by state that it was told of, the reset among them
        for s, visits, needed in zip(model.rows.state, collector.model.visits, need.pair, strict=True):
            if needed:
                short[s] = short.get(s, False) or visits < needed
        by_hand = 1 - np.mean(list(short.values()))
        assert status["met"] == pytest.approx(by_hand)
        assert (status["states"], status["of_discovered"]) == (len(short), True)
        told.append(status["met"])

    result = collector.run(system, max_steps=40, progress=progress)
    assert len(told) > 20
    assert told[0] == 0
    assert not result.met
    assert max(told) < 1


def test_what_is_met_is_1_only_if_all_is_met(every_step):
    told = []
    result = gosprl.collect(Ring(10), 3, seed=0, progress=told.append)
    assert result.met
    assert told[-1]["met"] == 1
    assert {status["steps"] for status in told if status["met"] == 1} == {result.steps}


# Where it is written


@pytest.mark.parametrize("terminal", [False, True])
def test_true_writes_to_stderr(capsys, monkeypatch, eager, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    result = gosprl.collect(RIVER, 30, seed=0, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    last = f"{1:7.1%} of the 6 states known met  {result.steps:>10,} steps"
    if terminal:  # one line, written over
        assert err.startswith("\r")
        assert err.endswith("\n")
        assert err.count("\n") == 1
        lines = err[1:-1].split("\r")
        assert len(lines) > 3
    else:
        assert "\r" not in err
        assert err.endswith("\n")
        lines = err[:-1].split("\n")
        assert len(lines) == 1  # the last one: no five seconds have passed
    assert lines[-1].startswith(last)
    assert lines[-1].endswith("steps/s")


def test_without_a_terminal_a_line_is_written_every_five_seconds(capsys, monkeypatch):
    monkeypatch.setattr(Tabular, "block", 1)
    clock = iter(np.arange(0, 1e6, 0.25))
    monkeypatch.setattr("gosprl.progress.time.monotonic", lambda: next(clock))
    result = gosprl.collect(RIVER, 3, seed=0, progress=True)
    lines = capsys.readouterr().err.splitlines()
    # the clock is looked at once a step, and a few times more where a line is written
    steps = [int(line.split("steps")[0].split()[-1].replace(",", "")) for line in lines]
    assert len(steps) > 4
    assert np.diff(steps[:-1]).tolist() == pytest.approx([20] * (len(steps) - 2), abs=4)
    assert steps[-1] == result.steps


@pytest.mark.parametrize("progress", [None, False])
def test_nothing_is_written_unless_it_is_asked_for(capsys, eager, progress):
    gosprl.collect(RIVER, 10, seed=0, progress=progress)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("progress", ["yes", "", 1, 0, 0.5, [], {}, [print]], ids=repr)
def test_what_progress_is_not(progress):
    class Untouched(Tabular):
        def follow(self, engine, steps):
            pytest.fail("a step was made")

    words = r"^progress: expected True, False, None or a callable, got "
    with pytest.raises(InputError, match=words):
        gosprl.collect(Untouched(RIVER), 3, progress=progress)
    collector = table_collector(6, 2, 3, seed=0)
    collector.run(RIVER, max_steps=5)
    with pytest.raises(InputError, match=words):
        collector.run(progress=progress)
    assert collector.result().steps == 5
    with pytest.raises(InputError, match=words):
        RIVER.with_rewards(np.zeros(6)).hitting_times(progress=progress)


def test_a_progress_function_that_raises_loses_nothing(eager):
    def progress(status):
        if status["steps"] >= 100:
            raise ValueError("the disk is full")

    with pytest.raises(gosprl.CollectionError, match=r"the run failed after \d+ steps: the disk is full") as caught:
        gosprl.collect(RIVER, 30, seed=0, progress=progress)
    assert caught.value.result.steps == caught.value.result.counts.sum() >= 100


# A log line from time to time


def test_what_is_missing_and_saved_is_told(eager, tmp_path):
    told = []
    result = gosprl.collect(RIVER, 30, seed=0, progress=told.append, max_steps=200, out=tmp_path / "run")
    assert told[-1]["missing"] == result.missing
    assert told[-1]["missing"] + told[-1]["collected"] == 12 * 30
    assert all(0 <= status["saved"] <= status["steps"] for status in told)
    gosprl.collect(RIVER, 3, seed=0, progress=told.append)
    assert told[-1]["saved"] is None


def status(steps, collected, missing=1000, saved=None):
    about = {"met": 0.612, "states": 43, "of_discovered": False}
    return {"steps": steps, "collected": collected, "missing": missing, "saved": saved, **about}


@pytest.fixture
def clock(monkeypatch):
    """The time, to be set by the test."""
    now = [1000.0]
    monkeypatch.setattr("gosprl.progress.time.monotonic", lambda: now[0])
    return now


def lines_of(clock, capsys, points):
    """Return the lines written for (seconds, status)."""
    lines = LogLines()
    for seconds, told in points:
        clock[0] = 1000.0 + seconds
        lines(told)
    return capsys.readouterr().err.splitlines()


def test_a_line_a_minute(clock, capsys):
    written = lines_of(clock, capsys, [(t, status(100 * t, t)) for t in range(301)])
    assert len(written) == 5
    assert [int(line.split(" steps")[0].split()[-1].replace(",", "")) for line in written] == [
        6000,
        12000,
        18000,
        24000,
        30000,
    ]
    time, rest = written[0].split(" ", 1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", time)
    assert (
        rest == "61.2 % of the 43 states known met, 6,000 steps, 100 steps/s, about 17 min left"
    )  # 1000 at 1 a second


def test_what_is_saved_stands_in_the_line(clock, capsys):
    (line,) = lines_of(clock, capsys, [(0, status(0, 0)), (60, status(1234567, 60, saved=1230000))])
    assert "1,234,567 steps, 1,230,000 saved, 20,576 steps/s" in line


@pytest.mark.parametrize(
    ("collected", "missing", "left"),
    [
        (60, 90, "about 90 s left"),
        (60, 180, "about 3 min left"),
        (60, 36_000, "about 10 h left"),
        (1, 10_000, "about 7 days left"),
        (0, 5, "time left unknown: no needed sample was collected lately"),
        (60, 0, "about 0 s left"),
    ],
)
def test_the_forecast_is_what_is_missing_at_the_rate_of_the_last_minutes(clock, capsys, collected, missing, left):
    (line,) = lines_of(clock, capsys, [(0, status(0, 0)), (60, status(10, collected, missing))])
    assert line.endswith(left)


def test_the_forecast_forgets_what_is_long_past(clock, capsys):
    """A thousand samples in the first minute, then one a minute: after five minutes only the latter counts."""
    points = [(0, status(0, 0)), *((60 * t, status(t, 1000 + t, missing=10)) for t in range(1, 9))]
    written = lines_of(clock, capsys, points)
    assert written[0].endswith("about 1 s left")
    assert written[-1].endswith("about 10 min left")


def test_the_rate_of_a_run_that_goes_on_is_that_of_this_call(eager, clock):
    told, collector = [], table_collector(6, 2, 50, seed=0)
    collector.run(RIVER, max_steps=400)
    clock[0] += 10

    def progress(status):
        clock[0] += 1
        told.append(status)

    collector.run(RIVER, max_steps=100, progress=progress)
    assert told[-1]["steps"] == 500
    assert told[-1]["rate"] <= 100
