"""Comparisons: the same runs as `collect`, stored and continued, and wrong arguments."""

import functools

import numpy as np
import pytest

import gosprl
from gosprl.comparing import trials
from gosprl.errors import GosprlError, InputError
from gosprl.strategies.guarded import Guarded

RIVER = gosprl.envs.make("riverswim6")


def test_runs_are_those_of_collect():
    both = gosprl.compare(RIVER, ["guarded", "random"], need=2, runs=3, max_steps=200, workers=1)
    for row in both.rows:
        result = gosprl.collect(RIVER, 2, strategy=row["strategy"], seed=row["seed"], max_steps=200)
        assert (row["steps"], row["met"], row["stop"]) == (result.steps, result.met, result.stop)
        assert row["states"] == 6
        assert row["ratio"] == pytest.approx(row["steps"] / gosprl.fluid_limit(RIVER, 2))
    assert [(row["strategy"], row["seed"]) for row in both.rows] == [
        (name, seed) for name in ("guarded", "random") for seed in range(3)
    ]


def test_results_do_not_depend_on_the_number_of_processes():
    one, two = (gosprl.compare("riverswim6", "guarded, random", need=1, runs=2, workers=n) for n in (1, 2))
    assert one.rows == two.rows


def test_others_are_stopped_at_ten_times_the_first_five_runs_of_the_first():
    both = gosprl.compare("riverswim20", ["guarded", "random"], need=1, runs=2, workers=1)
    first = [gosprl.collect("riverswim20", 1, seed=seed).steps for seed in range(5)]
    stopped = [row for row in both.rows if row["strategy"] == "random"]
    assert {row["max_steps"] for row in stopped} == {int(np.ceil(10 * np.mean(first)))}
    assert [row["stopped"] for row in stopped] == [True, True]  # a random walk takes exponentially long
    assert "at least" in repr(both).splitlines()[-1]
    assert "0 of 2" in repr(both)


def test_a_stored_comparison_goes_on(tmp_path, monkeypatch):
    settings = {"strategies": ["guarded", "practical"], "need": 1, "workers": 1, "out": tmp_path / "kept"}
    few = gosprl.compare("riverswim6", runs=2, **settings)
    made = []
    perform = trials.perform
    monkeypatch.setattr("gosprl.comparing.running.perform", lambda trial: made.append(trial.seed) or perform(trial))
    again = gosprl.compare("riverswim6", runs=2, **settings)
    assert again.rows == few.rows
    assert made == []
    gosprl.compare("riverswim6", runs=3, **settings)
    assert made == [2]  # of practical: five runs of the first strategy are always made


def test_a_store_of_other_runs_is_refused(tmp_path):
    gosprl.compare("riverswim6", ["guarded"], need=1, runs=1, workers=1, out=tmp_path)
    with pytest.raises(InputError, match=r"out: .*need"):
        gosprl.compare("riverswim6", ["guarded"], need=2, runs=1, workers=1, out=tmp_path)
    with pytest.raises(InputError, match=r"out: .*riverswim6"):
        gosprl.compare("riverswim7", ["guarded"], need=1, runs=1, workers=1, out=tmp_path)


def test_labels_options_and_strategy_objects(tmp_path):
    given = {
        "wide / bernstein": {"strategy": "gosprl", "confidence": "bernstein", "scale": 0.1},
        "known": {"dynamics": RIVER},
        "object": Guarded(delta=0.2),
    }
    three = gosprl.compare(RIVER, given, need=1, runs=1, workers=1, out=tmp_path)
    expected = gosprl.collect(RIVER, 1, strategy="gosprl", confidence="bernstein", scale=0.1, seed=0).steps
    assert three.rows[0]["steps"] == expected
    assert three.rows[1]["steps"] == gosprl.collect(RIVER, 1, dynamics=RIVER, seed=0).steps
    folders = {path.name for path in (tmp_path / "comparison" / "runs").iterdir()}
    assert {"known", "object"} < folders
    assert len(folders) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategies": ["nonsense"]}, r"strategies: 'nonsense' is not known"),
        ({"strategies": []}, r"strategies: expected at least one"),
        ({"strategies": [3]}, r"strategies: 3: expected a name or a strategy object, got 3"),
        ({"runs": 0}, r"runs: "),
        ({"workers": 0}, r"workers: "),
        ({"max_steps": 0}, r"max_steps: "),
        ({"seed": 3}, r"seed is not an option"),
        ({"system": "NoSuchEnv-v0"}, r"env: 'NoSuchEnv-v0'"),
        ({"system": object()}, r"system: expected a system that can be copied"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        gosprl.compare(**{"system": "riverswim6", "strategies": ["guarded"], "need": 1, "runs": 1, **arguments})


def test_a_run_that_fails_is_named():
    with pytest.raises(GosprlError, match=r"strategies: random, seed 0: InputError.*scale"):
        gosprl.compare("riverswim6", ["random"], need=1, runs=1, workers=1, scale=0.1)


def test_a_discovered_system_shows_its_states_and_no_limit():
    lake = functools.partial(__import__("gymnasium").make, "FrozenLake-v1")
    found = gosprl.compare(lake, ["guarded"], need=2, runs=2, workers=1)
    assert np.isnan(found.limit)
    assert all(np.isnan(row["ratio"]) for row in found.rows)
    assert all(1 <= row["states"] <= 16 for row in found.rows)


def test_an_interval_contains_the_mean_and_escapes_labels(tmp_path):
    comparison = gosprl.compare("riverswim6", {"<b>": "guarded"}, need=2, runs=4, workers=1)
    [line] = comparison.summary
    steps = [row["steps"] for row in comparison.rows]
    assert line.steps.value == pytest.approx(np.mean(steps))
    assert min(steps) <= line.steps.low <= line.steps.value <= line.steps.high <= max(steps)
    assert "<b>" not in comparison._repr_html_()
    assert "&lt;b&gt;" in comparison._repr_html_()
    for name in ("a.csv", "a.png", "a.svg"):
        comparison.write(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    with pytest.raises(InputError, match=r"file: expected a name that ends with"):
        comparison.write(tmp_path / "a.txt")


def test_a_need_that_takes_no_step_cannot_be_compared():
    for more in ({}, {"max_steps": 5}):
        with pytest.raises(InputError, match="need: expected one that takes steps"):
            gosprl.compare("riverswim6", ["guarded", "random"], need=0, runs=1, workers=1, **more)


def test_one_run_has_no_interval():
    one = gosprl.compare("riverswim6", ["guarded", "random"], need=1, runs=1, workers=1, max_steps=50)
    first, second = (line.cells() for line in one.summary)
    assert (first[4], second[4]) == ("-", "-")
    assert "(" not in second[6]
    assert " to " in gosprl.compare("riverswim6", ["guarded"], need=1, runs=2, workers=1).summary[0].cells()[4]
