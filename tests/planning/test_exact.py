"""Policy iteration by linear solves: against dense solves and all policies."""

import numpy as np
import pytest
from adversary import all_policies, as_rows, cost_of, least_cost
from oracles import random_dynamics

from gosprl import Known, PrecisionError, TabularMDP
from gosprl.planning.exact import first_least, policy_iteration, policy_value
from gosprl.planning.ssp import surely_reaching
from gosprl.planning.workspace import as_sets


def random_mdp(rng):
    return TabularMDP(random_dynamics(rng, int(rng.integers(1, 6)), int(rng.integers(1, 4))))


def sets_of(mdp):
    return as_sets(mdp.rows, Known(mdp).intervals())


def test_policy_value_is_the_solution_of_its_equations():
    """Of policies that reach the goal or other states whose values are given."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        mdp = random_mdp(rng)
        S, cost, v = mdp.num_states, rng.random(len(mdp.rows)), rng.random(mdp.num_states)
        P = as_rows(mdp.dense(), mdp.rows)
        rows = np.array([rng.integers(mdp.rows.ptr[s], mdp.rows.ptr[s + 1]) for s in range(S)])
        inner = np.flatnonzero(rng.random(S) < 0.6)
        M = np.eye(len(inner)) - P[rows[inner]][:, inner]
        if not len(inner) or np.linalg.matrix_rank(M) < len(inner):
            continue
        outer = np.setdiff1d(np.arange(S), inner)
        expected = np.linalg.solve(M, cost[rows[inner]] + P[rows[inner]][:, outer] @ v[outer])
        before = v.copy()
        np.testing.assert_allclose(policy_value(sets_of(mdp), cost, inner, rows[inner], v), expected, rtol=1e-9)
        np.testing.assert_array_equal(v, before)


def test_a_policy_that_never_arrives_is_refused():
    mdp = TabularMDP(np.eye(2)[[0, 0]][:, None])
    with pytest.raises(PrecisionError, match="too rarely for doubles"):
        policy_value(sets_of(mdp), np.ones(2), np.array([0]), np.array([0]), np.zeros(2))


def test_policy_iteration_returns_the_optimum_and_rows_that_have_it():
    rng = np.random.default_rng(1)
    for _ in range(60):
        mdp = random_mdp(rng)
        S, cost, goal = mdp.num_states, rng.uniform(0.01, 1, len(mdp.rows)), int(rng.integers(mdp.num_states))
        P, mask = as_rows(mdp.dense(), mdp.rows), np.arange(S) == goal
        alive = surely_reaching(mdp, [goal])
        usable = np.array([np.all(alive[row > 0]) for row in P])
        v = np.where(alive, 0.0, 7.0)
        rows = policy_iteration(sets_of(mdp), cost, mask, alive, usable, v).rows
        best = least_cost(mdp.rows.state, P, cost, goal)
        np.testing.assert_allclose(v[alive], best[alive], rtol=1e-9)
        assert np.all(v[~alive] == 7)
        np.testing.assert_allclose(cost_of(P, cost, np.where(alive, rows, mdp.rows.ptr[:-1]), goal)[alive], best[alive])
        tried = np.array([cost_of(P, cost, policy, goal) for policy in all_policies(mdp.rows)[:200]])
        assert np.all(tried[:, alive] >= v[alive] * (1 - 1e-9))


def test_the_first_policy_does_not_wait_for_what_is_rare():
    """States in pairs: action 0 leads to the goal with 1e-17, else to the other; action 1 to the pair before.

    With action 0 alone the equations are singular in doubles.
    """
    pairs = 6
    S = 2 * pairs + 1
    P = np.zeros((S, 2, S))
    P[0, :, 0] = 1
    for s in range(1, S):
        other = s + 1 if s % 2 else s - 1
        P[s, 0, [0, other]] = 1e-17, 1
        P[s, 1, max(0, s - 2)] = 1
    mdp = TabularMDP(P)
    v = np.zeros(S)
    every = np.ones(S, dtype=bool), np.ones(len(mdp.rows), dtype=bool)
    rows = policy_iteration(sets_of(mdp), np.ones(len(mdp.rows)), np.arange(S) == 0, *every, v).rows
    np.testing.assert_allclose(v, [0, *np.repeat(np.arange(1, pairs + 1), 2)])
    assert np.all(mdp.rows.action[rows[3:]] == 1)


def test_first_least():
    ptr = np.array([0, 2, 3, 6])
    np.testing.assert_array_equal(first_least(np.array([2.0, 1, 5, 4, 3, 3]), ptr), [1, 2, 4])
    np.testing.assert_array_equal(first_least(np.array([1.0, 1, np.inf, np.inf, -np.inf, -np.inf]), ptr), [0, 2, 4])
    rng = np.random.default_rng(0)
    for _ in range(50):
        length = rng.integers(1, 5, size=6)
        ptr, values = np.append(0, np.cumsum(length)), rng.integers(0, 3, size=length.sum()).astype(float)
        expected = [ptr[s] + int(np.argmin(values[ptr[s] : ptr[s + 1]])) for s in range(6)]
        np.testing.assert_array_equal(first_least(values, ptr), expected)
