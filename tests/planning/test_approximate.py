"""The approximate fluid program: against the simplex method on the same programs, and its certificate by hand."""

import numpy as np
import pytest

from gosprl import EmpiricalModel, TabularMDP, _kernels
from gosprl.envs import make
from gosprl.planning import approximate, fluid
from gosprl.planning.approximate import solve
from gosprl.planning.fluid import Infeasible

GAP = 0.01  # of the cost beyond the needed samples, with enough work
ENOUGH = 3e7


def instance(seed, states=None, communicating=True):
    """Rows with loops, some mass that escapes, zero costs, and needs of both kinds."""
    rng = np.random.default_rng(seed)
    S = int(rng.integers(2, 12)) if states is None else states
    P = rng.dirichlet(np.full(S, 0.3), size=(S, 3))
    P[P < 1e-2] = 0
    if communicating:
        P[np.arange(S), 0, (np.arange(S) + 1) % S] += 0.5
    mdp = TabularMDP(P / P.sum(axis=2, keepdims=True))
    R = len(mdp.rows)
    cost = np.where((rng.random(R) < 0.1) & (mdp.rows.action > 0), 0.0, 1 + rng.random(R))
    pair = rng.integers(0, 5, R) * (rng.random(R) < 0.7)
    state = rng.integers(0, 12, S) * (rng.random(S) < 0.5)
    escape = np.where(rng.random(R) < 0.5, 0.2 * rng.random(R), 0.0)
    return mdp, mdp.prob, cost, pair, state, rng.dirichlet(np.ones(S)), escape


def arguments(mdp, prob, cost, pair, state, law, escape, *, escapes):
    if not escapes:
        return mdp.rows, mdp.ptr, mdp.succ, prob, cost, pair, state, law
    kept = prob * (1 - np.repeat(escape, np.diff(mdp.ptr)))
    return mdp.rows, mdp.ptr, mdp.succ, kept, cost, pair, state, law, escape


def beyond(given, value):
    """The cost beyond that of the needed samples of pairs."""
    return value - given[4] @ given[5]


@pytest.mark.parametrize("escapes", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_with_enough_work_the_value_is_that_of_the_simplex_method(seed, escapes):
    given = arguments(*instance(seed), escapes=escapes)
    exact, flow = fluid.solve(*given), solve(*given, work=ENOUGH)
    assert flow.value <= exact.value + 1e-6 * max(exact.value, 1)
    assert flow.value >= exact.value - GAP * max(beyond(given, exact.value), 1)
    assert flow.gap < 2 * GAP or beyond(given, exact.value) < 1


@pytest.mark.parametrize("escapes", [False, True])
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("work", [1, 1e4, 1e6])
def test_the_potential_is_feasible_and_proves_the_value_after_any_work(seed, escapes, work):
    mdp, prob, cost, pair, state, law, escape = instance(seed)
    given = arguments(mdp, prob, cost, pair, state, law, escape, escapes=escapes)
    flow = solve(*given, work=work)
    v, kept = flow.potential, given[3]
    assert v.max() == pytest.approx(0, abs=1e-12)
    worth = cost + np.add.reduceat(kept * v[mdp.succ], mdp.ptr[:-1]) - v[mdp.rows.state]
    worth += escape * v.min() if escapes else 0
    assert worth.min() >= -1e-9 * (1 - v.min())
    extra = np.maximum(state - np.bincount(mdp.rows.state, pair, len(v)), 0) * (state > 0)
    price = np.maximum(np.minimum.reduceat(worth, mdp.rows.ptr[:-1]), 0)
    assert flow.value == pytest.approx(law @ v + pair @ worth + extra @ price, rel=1e-6, abs=1e-6)
    assert flow.value <= fluid.solve(*given).value * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_a_warm_start_takes_less_work(seed):
    """After a tenth of the samples: a third of the work, and no larger error than from nothing."""
    given = list(arguments(*instance(seed, states=100), escapes=False))
    before = solve(*given, work=ENOUGH)
    rng = np.random.default_rng(seed)
    given[5] = np.maximum(given[5] - (rng.random(len(given[5])) < 0.1), 0)
    exact = fluid.solve(*given).value
    cold, warm = solve(*given, work=3e5), solve(*given, basis=before.basis, work=1e5)
    assert exact - warm.value <= exact - cold.value
    assert exact - warm.value <= 2 * GAP * beyond(given, exact)


def test_the_work_is_bounded(monkeypatch):
    made, steps = [], _kernels.flow_steps
    monkeypatch.setattr(_kernels, "flow_steps", lambda *all: (made.append(all[-1]), steps(*all))[1])
    given = arguments(*instance(0, states=30), escapes=False)
    size = int(np.sum(given[2] != np.repeat(given[0].state, np.diff(given[1])))) + len(given[0]) + 30
    for work in (0, 1, 1e3, 1e5):
        solve(*given, work=work)
    assert made == [1, 1, max(1, int(1e3 // size)), int(1e5 // size)]


@pytest.mark.parametrize("escapes", [False, True])
def test_the_same_input_gives_the_same_bits(escapes):
    given = arguments(*instance(3, states=40), escapes=escapes)
    first = solve(*given, work=1e6)
    again = [solve(*given, basis=first.basis, work=1e5) for _ in range(2)]
    assert np.array_equal(again[0].potential, again[1].potential)
    assert again[0].value == again[1].value
    assert np.array_equal(solve(*given, work=1e6).potential, first.potential)


def test_prices_of_a_garnet_are_those_of_the_simplex_method():
    """Differences of potentials, up to a tenth of a step where the flow determines them: in the mean."""
    mdp = make("garnet", states=200, actions=4, branching=4, seed=0)
    need = np.random.default_rng(0).integers(0, 11, len(mdp.rows))
    law = (np.arange(200) == 0).astype(float)
    given = (mdp.rows, mdp.ptr, mdp.succ, mdp.prob, np.ones(len(mdp.rows)), need, np.zeros(200, dtype=int), law)
    exact, flow = fluid.solve(*given), solve(*given, work=2e7)
    error = flow.potential - exact.potential
    assert np.abs(error - np.median(error)).mean() < 0.1


def test_nothing_needed_costs_nothing():
    mdp = make("garnet", states=10, actions=2, branching=3, seed=0)
    none, law = np.zeros(20, dtype=int), np.full(10, 0.1)
    flow = solve(mdp.rows, mdp.ptr, mdp.succ, mdp.prob, np.ones(20), none, none[:10], law, work=1e4)
    assert flow.value == 0
    assert not flow.potential.any()


@pytest.mark.parametrize(("pair", "state"), [(5, 0), (0, 5), (2, 5)])
def test_one_state(pair, state):
    mdp = TabularMDP(np.ones((1, 1, 1)))
    given = (mdp.rows, mdp.ptr, mdp.succ, mdp.prob, np.ones(1), np.array([pair]), np.array([state]), np.ones(1))
    assert solve(*given, work=1e4).value == pytest.approx(5) == fluid.solve(*given).value


def test_more_is_needed_than_can_be_had():
    """From 0 surely to 1, which stays: 0 is seen once."""
    mdp = TabularMDP([[[0, 1]], [[0, 1]]])
    ones, law, none = np.ones(2), np.array([1.0, 0.0]), np.zeros(2, dtype=int)
    assert solve(mdp.rows, mdp.ptr, mdp.succ, mdp.prob, ones, np.array([1, 3]), none, law).value == pytest.approx(4)
    with pytest.raises(Infeasible, match="left for good"):
        solve(mdp.rows, mdp.ptr, mdp.succ, mdp.prob, ones, np.array([2, 0]), none, law)


@pytest.mark.parametrize("closed", [False, True])
def test_the_program_of_counts_is_that_of_the_simplex_method(closed):
    mdp, rng = make("garnet", states=12, actions=2, branching=3, seed=2), np.random.default_rng(0)
    model = EmpiricalModel(12, 2, successors=mdp if closed else None)
    row = np.repeat(np.arange(24), np.diff(mdp.ptr))
    entry = rng.choice(len(mdp.prob), 600, p=mdp.prob / mdp.prob.sum())
    model.update(mdp.rows.state[row[entry]], mdp.rows.action[row[entry]], mdp.succ[entry])
    pair, state = rng.integers(0, 9, 24), rng.integers(0, 20, 12)
    escape = None if closed else np.full(24, 0.02)
    pseudo = 0.1 if closed else 0.0
    exact = fluid.solve_model(model, pair, state, 3, escape, pseudo).value
    flow = approximate.solve_model(model, pair, state, 3, escape, pseudo, work=ENOUGH)
    assert exact * (1 - GAP) <= flow.value <= exact * (1 + 1e-6)


def test_a_start_that_does_not_fit_is_not_used():
    small, large = (arguments(*instance(1, states=n), escapes=False) for n in (5, 9))
    basis = solve(*small, work=1e5).basis
    assert solve(*large, basis=basis, work=1e5).value == solve(*large, work=1e5).value
    assert solve(*large, basis=fluid.solve(*large).basis, work=1e5).value == solve(*large, work=1e5).value
