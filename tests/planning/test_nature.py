"""Nature's answers against dense greedy minima, linear programs' vertices, and rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import rational
from extremes import random_extremes
from oracles import least_values, random_problem

from gosprl import EmpiricalModel, Intervals
from gosprl.planning.nature import respond, spread
from gosprl.planning.workspace import as_sets


def answer_to(v, rows, intervals, cost):
    """Nature's answer where all states are alive and all rows usable."""
    every = np.ones(len(v), dtype=bool), np.ones(len(rows), dtype=bool)
    return respond(as_sets(rows, intervals), cost, v, *every)


def test_the_excess_is_that_of_the_least_mean():
    rng = np.random.default_rng(0)
    for _ in range(200):
        problem = random_problem(rng, S=int(rng.integers(1, 9)), A=int(rng.integers(1, 4)), goals=[0])
        rows, intervals = problem.model().rows, problem.intervals()
        v = rng.choice([np.round(rng.uniform(0, 3, rows.num_states)), rng.uniform(0, 9, rows.num_states)])
        answer = answer_to(v, rows, intervals, problem.row_cost)
        expected = least_values(intervals, problem.row_cost, v) - v[rows.state]
        np.testing.assert_allclose(answer.excess, expected, rtol=0, atol=1e-12)
        assert answer.error.max() < 1e-13


def test_the_transitions_are_a_distribution_of_the_set_that_attains_it():
    """Dense, with what is missing to one put back where it stays: inside all ends and caps, and as good as `excess`."""
    rng = np.random.default_rng(1)
    shared = 0
    for _ in range(200):
        problem = random_problem(rng, S=int(rng.integers(1, 9)), A=int(rng.integers(1, 4)), goals=[0])
        rows, intervals = problem.model().rows, problem.intervals()
        v, R = rng.uniform(0, 9, rows.num_states), len(rows)
        answer = answer_to(v, rows, intervals, problem.row_cost)
        chosen = rng.permutation(R)
        source, target, weight = answer.transitions(chosen)
        p = np.zeros((R, rows.num_states))
        np.add.at(p, (chosen[source], target), weight)
        np.testing.assert_allclose(p.sum(axis=1), answer.leaving, atol=1e-14)
        p[np.arange(R), rows.state] += 1 - p.sum(axis=1)
        assert np.all(p >= problem.lower - 1e-14)
        assert np.all(p <= problem.upper + 1e-14)
        assert np.all(np.where(problem.seen, 0, p).sum(axis=1) <= problem.total + 1e-14)
        np.testing.assert_allclose(problem.row_cost + p @ v - v[rows.state], answer.excess, rtol=0, atol=1e-12)
        shared += (answer.full > 1).sum()
    assert shared > 100


def test_states_out_of_reach_get_nothing():
    rng = np.random.default_rng(2)
    checked = 0
    for _ in range(100):
        problem = random_problem(rng, S=5, A=2, goals=[0])
        rows, intervals, alive = problem.model().rows, problem.intervals(), rng.random(5) < 0.7
        room = np.where(problem.seen & alive, problem.upper, 0).sum(axis=1)
        room += np.minimum(problem.total, problem.each * (alive & ~problem.seen).sum(axis=1))
        usable = ~np.any(problem.lower[:, ~alive] > 0, axis=1) & (room >= 1)
        v = np.where(alive, rng.uniform(0, 9, 5), 1e300)
        answer = respond(as_sets(rows, intervals), problem.row_cost, v, alive, usable)
        good = usable & alive[rows.state]
        assert np.array_equal(np.isfinite(answer.excess), good)
        _, target, weight = answer.transitions(np.flatnonzero(good))
        assert np.all(alive[target[weight > 0]])
        high = np.where(alive, v, 1e9)  # nature avoids what is as bad as that
        expected = least_values(intervals, problem.row_cost, high) - high[rows.state]
        np.testing.assert_allclose(answer.excess[good], expected[good], rtol=0, atol=1e-6)
        checked += good.sum()
    assert checked > 100


@pytest.mark.parametrize("seed", range(100))
def test_the_error_is_bounded_by_what_is_said(seed):
    """Probabilities to stay of up to 1 - 1e-15 and values of up to 1e15, against fractions."""
    rng = np.random.default_rng(seed)
    rows, intervals = random_extremes(rng)
    v = 10 ** rng.uniform(0, 15, rows.num_states) * (np.arange(rows.num_states) > 0)
    answer = answer_to(v, rows, intervals, np.ones(len(rows)))
    exact = [Fraction(float(x)) for x in v]
    for r in range(len(rows)):
        p = rational.least_mean(rational.row_of(intervals, r), exact)
        excess = 1 + rational.drift(p, exact, int(rows.state[r]))
        assert abs(Fraction(float(answer.excess[r])) - excess) <= Fraction(float(answer.error[r]))


def test_a_cap_that_is_1e20_of_its_parts():
    """No state gets more than `each`; the rest stays."""
    one = np.ones(2)
    intervals = Intervals(np.array([0, 1, 2]), np.array([0, 1], dtype=np.int32), 0 * one, one, 1e-20 * one, one)
    answer = answer_to(np.array([0.0, 5.0]), EmpiricalModel(2, 1).rows, intervals, np.ones(2))
    assert answer.excess.tolist() == [1, 1]
    assert answer.leaving.tolist() == [0, 1e-20]


def test_spread():
    index, slot = spread(np.array([5, 7, 7, 0]), np.array([2, 0, 1, 3]))
    assert index.tolist() == [0, 0, 2, 3, 3, 3]
    assert slot.tolist() == [5, 6, 7, 0, 1, 2]
