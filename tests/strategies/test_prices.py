"""Prices of goals: from when on there are any, what they are, and programs that fail."""

import warnings

import numpy as np
import pytest

import gosprl
from gosprl import EmpiricalModel
from gosprl.errors import GosprlError
from gosprl.planning import approximate
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


def test_the_visits_left_are_those_of_the_program_less_those_made_since():
    """Tours have no program, so no visits; the others are those of the test above."""
    collector = gosprl.Collector(model=EmpiricalModel.over(CLIFF.rows), need=10, seed=0)
    priced = Prices(collector.model, collector.record.need, None, CLIFF)
    assert priced.visits_left() is None
    priced.at(5, 1, lambda: np.zeros(len(CLIFF.rows)))
    before = priced.visits_left()
    assert (before >= 10 - 1e-9).all()
    row = int(CLIFF.rows.index(5, 2))
    collector.observe(5, 2, 4)
    collector.record.update_need()
    priced.at(4, 2, lambda: np.zeros(len(CLIFF.rows)))
    np.testing.assert_allclose(before - priced.visits_left(), np.arange(len(CLIFF.rows)) == row)
    need = np.zeros((48, 4), dtype=int)
    need[:3, 0] = 1
    few = gosprl.Collector(model=EmpiricalModel.over(CLIFF.rows), need=need, seed=0)
    tours = Prices(few.model, few.record.need, None, CLIFF)
    assert tours.at(5, 1, lambda: np.zeros(len(CLIFF.rows))) is not None
    assert tours.visits_left() is None


@pytest.mark.parametrize("states", [1, 4, 6])
def test_prices_begin_by_what_is_needed_not_by_the_size_of_the_system(states):
    """After one needed sample a pair, whatever the number of states that nothing is asked of."""
    model = EmpiricalModel.over(RIVER.rows)
    need = np.where(np.arange(6) < states, 20, 0)[:, None].repeat(2, axis=1)
    collector = gosprl.Collector(model=model, need=need, seed=0)
    used = Prices(model, collector.record.need, None, None)
    for number in range(2 * states):
        assert not used.used
        collector.observe(*divmod(number, 2), 0)
        collector.record.update_need()
    assert used.used


def ring(states, choices):
    """Every state leads to the next one; as many have another action, which stays."""
    s = np.arange(states)
    other = s[:choices]
    to, action = np.r_[(s + 1) % states, other], np.r_[0 * s, 0 * other + 1]
    return gosprl.TabularMDP((np.r_[s, other], action, to, np.ones(len(to))), states=states, actions=2)


@pytest.mark.parametrize(
    ("states", "choices", "exact"),
    [(500, 500, True), (501, 9, True), (1600, 1500, True), (1600, 1501, False), (2001, 9, False)],
)
def test_programs_with_few_choices_are_solved_exactly(states, choices, exact):
    mdp = ring(states, choices)
    need = np.where(np.arange(states) == 7, 30, 0)
    assert (gosprl.collect(mdp, need, seed=0, strategy="practical").work["programs"] > 0) == exact


def test_above_some_hundred_states_programs_are_solved_approximately(monkeypatch):
    """With unknown dynamics only if asked for; the work is in proportion to the steps walked."""
    works, solve = [], approximate.solve
    monkeypatch.setattr(prices, "FLUID_STATES", 40)
    monkeypatch.setattr(prices, "CHOICES", 0)
    monkeypatch.setattr(
        approximate, "solve", lambda *all, work, **more: (works.append(work), solve(*all, work=work, **more))[1]
    )
    assert gosprl.collect(CLIFF, 1, seed=0, strategy="practical").work["programs"] == 0
    assert not works
    assert gosprl.collect(CLIFF, 1, seed=0, strategy="practical", dynamics=CLIFF).work["programs"] == len(works) > 0
    result = gosprl.collect(CLIFF, 3, seed=0, strategy="practical", fluid=True)
    assert result.work["programs"] > 0
    works.clear()
    result = gosprl.collect(CLIFF, 3, seed=0, strategy="practical", dynamics=CLIFF)
    assert sum(works) <= prices.WORK * (result.steps + prices.AGAIN * 3 * len(CLIFF.rows))
    assert gosprl.collect(CLIFF, 3, seed=0, strategy="practical", fluid=False).work["programs"] == 0


@pytest.mark.parametrize("known", [True, False])
def test_approximate_prices_save_steps(monkeypatch, known):
    """A garnet with 60 states as if it were large: approximate programs, focused plans; on average over 8 seeds."""
    monkeypatch.setattr(prices, "FLUID_STATES", 40)
    monkeypatch.setattr(prices, "CHOICES", 0)
    monkeypatch.setattr(gosprl.strategies.gosprl, "FULL_STATES", 40)
    garnet = gosprl.envs.make("garnet", states=60, actions=3, branching=3, seed=0)
    options = {"dynamics": garnet} if known else {}
    plain, priced = (
        np.mean(
            [gosprl.collect(garnet, 10, seed=s, strategy="practical", fluid=fluid, **options).steps for s in range(8)]
        )
        for fluid in (False, True)
    )
    assert priced < 0.98 * plain


def test_a_solution_with_a_large_gap_gives_no_prices(monkeypatch):
    """Without work for more than one iteration, the walk is that without prices."""
    monkeypatch.setattr(prices, "FLUID_STATES", 40)
    monkeypatch.setattr(prices, "CHOICES", 0)
    monkeypatch.setattr(gosprl.strategies.gosprl, "FULL_STATES", 40)
    monkeypatch.setattr(prices, "WORK", 0)
    plain, priced = (
        gosprl.collect(CLIFF, 3, seed=0, strategy="practical", fluid=fluid, dynamics=CLIFF) for fluid in (False, True)
    )
    assert priced.work["programs"] > 0
    assert priced.steps == plain.steps
    assert np.array_equal(priced.counts, plain.counts)


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
