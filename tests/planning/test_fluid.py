"""The fluid program: against the same program written down plainly and solved by SciPy, and its duality."""

import numpy as np
import pytest
from scipy.optimize import linprog

from gosprl import EmpiricalModel, GosprlError, TabularMDP
from gosprl.planning import fluid
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


def lonely_pair(visits, pseudo=0.1):
    """A state never left in so many visits, a second one that may follow and leads back; the chance of that."""
    model = EmpiricalModel.from_counts([0], [0], [0], [visits], states=2, actions=1, successors=lambda s, a: {0, 1 - s})
    return model, pseudo / (visits + 2 * pseudo)


@pytest.mark.parametrize("visits", [10, 10**6, 10**9, 10**12, 4 * 10**14, 10**17])
@pytest.mark.parametrize("need", [1, 10**6, 10**12, 2**61])
def test_rows_that_hardly_ever_leave_and_large_needs_are_solved(visits, need):
    """Each visit of the second state takes 1 / p visits of the first.

    HiGHS refuses coefficients of 1e15 and more, and tolerances that are absolute mean nothing for large needs: its
    status was "Not Set", or "Unknown", and the solver's word was not heard.
    """
    model, p = lonely_pair(visits)
    state = np.array([need, need])
    flow = fluid.solve_model(model, np.zeros(2, dtype=np.int64), state, 0, None, 0.1)
    assert flow.value == pytest.approx(need / p + need, rel=1e-5)


@pytest.mark.parametrize("need", [1, 10**9, 2**61])
def test_large_needs_of_a_cycle(need):
    model = EmpiricalModel.from_counts([0, 1], [0, 0], [1, 0], [5, 5], states=2, actions=1)
    pair = np.array([need, need])
    assert fluid.solve_model(model, pair, np.zeros(2, dtype=np.int64), 0, None).value == pytest.approx(2 * need)


def test_what_the_solver_says_is_part_of_the_error(monkeypatch):
    monkeypatch.setattr("highspy.Highs.passModel", lambda self, lp: __import__("highspy").HighsStatus.kError)
    model, _ = lonely_pair(10)
    with pytest.raises(GosprlError, match=r"the solver refused the program; coefficients from .* needs up to"):
        fluid.solve_model(model, np.ones(2, dtype=np.int64), np.zeros(2, dtype=np.int64), 0, None, 0.1)
