"""The forecast of the steps left."""

import numpy as np
import pytest

import gosprl
from evidence.forecast import CALIBRATION, CHECKED, left_of, looks, one_cell
from gosprl.collecting.collector import Collector
from gosprl.systems import as_system
from gosprl.watching.forecast import FACTORS, FLUID, LEVEL, VISITS, Left, by_count, by_limit, forecast, visits_class


def test_by_hand():
    """40 steps brought 20 needed samples, so 10 more take 20 steps by this measure."""
    then, now = (Left(step, np.array([n, 0]), np.zeros(1, int), 0, 30 - n) for step, n in ((20, 30), (60, 10)))
    assert by_count(now, then) == pytest.approx(10 * 40 / 20)
    assert np.isnan(by_count(now, now))


def test_the_limit_of_what_is_left():
    """With known frequencies and the steps that the limit foresees, F is the limit itself."""
    mdp = gosprl.envs.make("riverswim6")
    collector = Collector(need=200, seed=0, model=as_system(mdp).model(), resets="never")
    collector.run(mdp, 2000)
    then = left_of(collector)
    collector.run(None, 1000)
    now, model = left_of(collector), collector.model
    measure = gosprl.theory.limits.limit_of_model
    left, before = (measure(model, one.pair, one.state, one.at) for one in (now, then))
    assert by_limit(model, now, then) == pytest.approx(left * max(1.0, 1000 / (before - left)))
    assert visits_class(model) == len(VISITS)
    given = forecast(model, now, then, "guarded")
    assert given.steps == pytest.approx(by_limit(model, now, then) * FLUID[1])
    assert forecast(model, now, then, "random").steps == pytest.approx(by_count(now, then) * FACTORS["far"][-1][1])


def test_nothing_missing_and_nothing_known():
    model = as_system(gosprl.envs.make("riverswim6")).model()
    none = Left(10, np.zeros(12, int), np.zeros(6, int), 0, 5)
    assert forecast(model, none, none, "guarded").high == 0
    some = Left(10, np.ones(12, int), np.zeros(6, int), 0, 5)
    assert forecast(model, some, some, "guarded") is None


def test_calibration_and_check_have_no_system_in_common():
    assert not set(CALIBRATION) & set(CHECKED)


def test_the_interval_contains_the_truth_at_its_rate(monkeypatch):
    """40 runs on a system of the check: fewer than 25 inside have a chance below 0.5 % at a rate of 80 %.

    With intervals that are too narrow, the same test fails.
    """
    counted, _ = one_cell(CHECKED["open grid 8 x 8"], "guarded", {}, 10, 40)
    assert counted.sum() == 40
    assert counted[0] >= 25
    for name in FACTORS:
        monkeypatch.setitem(FACTORS, name, tuple((0.98, 1.0, 1.02) for _ in FACTORS[name]))
    monkeypatch.setattr("gosprl.watching.forecast.FLUID", (0.99, 1.0, 1.01))
    assert one_cell(CHECKED["open grid 8 x 8"], "guarded", {}, 10, 40)[0][0] < 25
    assert LEVEL == 0.8


def test_looks_are_at_the_times_asked_for():
    mdp = gosprl.envs.make("riverswim6")
    steps = gosprl.collect(mdp, 10, seed=3).steps
    for _, now, then, left in looks(mdp, 10, "guarded", {}, 3, [0.5]):
        assert now.step == int(0.5 * steps)
        assert left == steps - now.step
        assert then.step == now.step // 2
