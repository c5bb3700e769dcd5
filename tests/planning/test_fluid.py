"""The fluid program: against the same program written down plainly and solved by SciPy, and its duality."""

import numpy as np
import pytest
from scipy.optimize import linprog

from gosprl import TabularMDP
from gosprl.planning.fluid import Infeasible, solve

TOLERANCE = 1e-6  # relative


def instance(seed):
    """Rows with state-dependent actions, loops, some mass that escapes, zero costs, and needs of both kinds."""
    rng = np.random.default_rng(seed)
    S = int(rng.integers(2, 7))
    P = rng.dirichlet(np.full(S, 0.3), size=(S, 3))
    P[rng.random((S, 3)) < 0.3] = 0
    P[P < 1e-3] = 0
    P[P.sum(axis=(1, 2)) == 0, 0, 0] = 1
    mdp = TabularMDP(P / np.maximum(P.sum(axis=2, keepdims=True), 1e-300))
    R = len(mdp.rows)
    escape = np.where(rng.random(R) < 0.2, 1.0, 0.1 * rng.random(R))
    prob = mdp.prob * (1 - np.repeat(escape, np.diff(mdp.ptr)))
    cost = np.where(rng.random(R) < 0.1, 0.0, 1.0)
    pair = rng.integers(0, 5, R) * (rng.random(R) < 0.7)
    state = rng.integers(0, 8, S) * (rng.random(S) < 0.5)
    law = rng.dirichlet(np.ones(S))
    return mdp, prob, cost, pair, state, law, escape


def plain(mdp, prob, cost, pair, state, law, escape):
    """The least cost over visits lambda [R], last states e [S] and arrivals z [S] of what escaped, dense."""
    S, R = mdp.num_states, len(mdp.rows)
    leave, arrive = np.zeros((S, R)), np.zeros((S, R))
    leave[mdp.rows.state, np.arange(R)] = 1
    np.add.at(arrive, (mdp.succ, np.repeat(np.arange(R), np.diff(mdp.ptr))), prob)
    flow = np.hstack([leave - arrive, np.eye(S), -np.eye(S)])
    escaped = np.concatenate([escape, np.zeros(S), -np.ones(S)])
    visits = np.hstack([-leave, np.zeros((S, 2 * S))])
    bounds = [(b, None) for b in pair] + [(0, None)] * (2 * S)
    right = np.append(law, 0)
    return linprog(
        np.append(cost, np.zeros(2 * S)),
        A_eq=np.vstack([flow, escaped]),
        b_eq=right,
        A_ub=visits,
        b_ub=-state,
        bounds=bounds,
        method="highs-ipm",
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_value_is_that_of_the_plain_program(seed):
    mdp, prob, *rest = instance(seed)
    flow = solve(mdp.rows, mdp.ptr, mdp.succ, prob, *rest)
    assert flow.value == pytest.approx(plain(mdp, prob, *rest).fun, rel=TOLERANCE, abs=TOLERANCE)


@pytest.mark.parametrize("seed", range(40))
def test_the_potentials_prove_the_value(seed):
    """v <= 0 and v(s) <= c + p v + escape * min v for all rows; what pairs are worth then adds up to the value."""
    mdp, prob, cost, pair, _, law, escape = instance(seed)
    none = np.zeros(mdp.num_states, dtype=np.int64)
    flow = solve(mdp.rows, mdp.ptr, mdp.succ, prob, cost, pair, none, law, escape)
    v = flow.potential
    assert v.max() <= TOLERANCE
    q = cost + np.add.reduceat(prob * v[mdp.succ], mdp.ptr[:-1]) + escape * v.min()
    worth = q - v[mdp.rows.state]
    assert worth.min() >= -TOLERANCE
    assert law @ v + pair @ worth == pytest.approx(flow.value, rel=TOLERANCE, abs=TOLERANCE)


@pytest.mark.parametrize("seed", range(20))
def test_beginning_with_another_solution_changes_nothing(seed):
    mdp, prob, cost, pair, state, law, escape = instance(seed)
    before = solve(mdp.rows, mdp.ptr, mdp.succ, prob, cost, pair, state, law, escape)
    less = np.maximum(pair - 1, 0)
    cold = solve(mdp.rows, mdp.ptr, mdp.succ, prob, cost, less, state, law, escape)
    warm = solve(mdp.rows, mdp.ptr, mdp.succ, prob, cost, less, state, law, escape, before.basis)
    assert warm.value == pytest.approx(cold.value, rel=TOLERANCE, abs=TOLERANCE)


def test_more_is_needed_than_can_be_had():
    """From 0 surely to 1, which stays: 0 is seen once."""
    mdp = TabularMDP([[[0, 1]], [[0, 1]]])
    ones, law = np.ones(2), np.array([1.0, 0.0])
    none = np.zeros(2, dtype=np.int64)
    assert solve(mdp.rows, mdp.ptr, mdp.succ, mdp.prob, ones, np.array([1, 3]), none, law).value == pytest.approx(4)
    with pytest.raises(Infeasible):
        solve(mdp.rows, mdp.ptr, mdp.succ, mdp.prob, ones, np.array([2, 0]), none, law)
