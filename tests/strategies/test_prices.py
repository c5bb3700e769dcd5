"""Prices of goals: from when on there are any, what they are, and programs that fail."""

import warnings

import numpy as np
import pytest

import gosprl
from gosprl import EmpiricalModel
from gosprl.errors import GosprlError
from gosprl.planning.fluid import solve
from gosprl.strategies import prices
from gosprl.strategies.prices import Prices

RIVER, CLIFF = gosprl.envs.make("riverswim6"), gosprl.envs.make("cliff48")


@pytest.mark.parametrize(("told", "least"), [(None, 1), ("successors", 6), ("dynamics", 0)])
def test_prices_wait_until_something_is_known(told, least):
    """A sample a pair, six if successors are known, and none at all with known dynamics; RIVER has 12 pairs."""
    for need, expected in ((least, False), (least + 2, True)):
        if need > 0:
            known = {} if told is None else {told: RIVER}
            result = gosprl.collect(RIVER, need, seed=0, strategy="practical", **known)
            assert (result.work["programs"] > 0) == (expected or told == "dynamics")


@pytest.mark.parametrize("missing", [1, 2, 3, 10])
def test_the_price_is_the_potential_of_the_program_and_smaller_while_few_samples_are_missing(missing):
    collector = gosprl.Collector(model=EmpiricalModel.over(CLIFF.rows), need=missing, seed=0)
    priced = Prices(collector.model, collector.record.need, None, CLIFF).at(5, 1, lambda: np.zeros(len(CLIFF.rows)))
    pair, law = np.full(len(CLIFF.rows), missing), (np.arange(48) == 5).astype(float)
    cost, state = np.ones(len(CLIFF.rows)), np.zeros(48, dtype=np.int64)
    flow = solve(CLIFF.rows, CLIFF.ptr, CLIFF.succ, CLIFF.prob, cost, pair, state, law)
    np.testing.assert_allclose(priced, (0.9 if missing < 3 else 1.0) * flow.potential)


def test_above_some_hundred_states_no_program_unless_asked_for(monkeypatch):
    monkeypatch.setattr(prices, "FLUID_STATES", 40)
    assert gosprl.collect(CLIFF, 3, seed=0, strategy="practical").work["programs"] == 0
    assert gosprl.collect(CLIFF, 3, seed=0, strategy="practical", fluid=True).work["programs"] > 0
    assert gosprl.collect(RIVER, 3, seed=0, strategy="practical").work["programs"] > 0


@pytest.mark.parametrize("failing", [0, 3])
def test_a_program_that_fails_is_one_warning_and_shortest_paths(monkeypatch, failing):
    calls, solve = [0], prices.solve_model

    def broken(*args, **options):
        calls[0] += 1
        if calls[0] > failing:
            raise GosprlError("the fluid program was not solved: no time")
        return solve(*args, **options)

    monkeypatch.setattr(prices, "solve_model", broken)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = gosprl.collect(CLIFF, 5, seed=0, strategy="practical")
    assert result.met
    assert calls[0] > failing + 1  # it was tried again
    assert [str(w.message) for w in caught] == [
        "goals are taken nearest first for now: the fluid program was not solved: no time"
    ]
