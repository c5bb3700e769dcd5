"""Finite horizons: closed forms, and the recursion written out."""

import numpy as np
import pytest
from random_mdps import random_mdp

from gosprl import InputError, TabularMDP, theory
from gosprl.envs.lower_bounds import (
    epsilon_wheel,
    two_state_chain,
)


@pytest.mark.parametrize("H", [1, 2, 3, 10])
def test_what_nobody_reaches_within_the_horizon_is_on_half_of_the_ways(H):
    mdp = theory.finite_horizon_example(H)
    x, y, z = 0, 1, 2
    assert (mdp.num_states, mdp.num_actions, mdp.start) == (2 * H + 2, 1, x)
    assert mdp.is_communicating()
    at = [[theory.reach_within(mdp, s, steps)[x] for steps in range(H + 3)] for s in (y, z)]
    assert at[0] == [0] * (H + 1) + [0.5, 0.5]
    assert at[1] == [0] * H + [0.5, 0.5, 1]
    times = mdp.hitting_times()
    assert times[x, z] == pytest.approx(H / 2 + (H + 2) / 2)
    assert times[y, z] == pytest.approx(1)
    without = mdp.dense()
    without[y, 0] = np.eye(2 * H + 2)[y]  # were y a dead end, half of all ways would end there
    assert theory.reach_within(TabularMDP(without), z, 100 * H)[x] == 0.5


@pytest.mark.parametrize("h", [0, 1, 2, 7])
def test_reaching_the_rim_of_a_wheel(h):
    epsilons = np.array([0.5, 0.1])
    v = theory.reach_within(epsilon_wheel(epsilons), 2, h)
    center = 1 - 0.9**h
    np.testing.assert_allclose(v, [center, 1 - 0.9 ** max(h - 1, 0), 1], atol=1e-12)
    first_of_both = theory.reach_within(epsilon_wheel(epsilons), [1, 2], h)
    np.testing.assert_allclose(first_of_both, [1 - 0.5**h, 1, 1])


def test_the_best_way_depends_on_the_steps_left():
    """One action succeeds at once with 0.6 and else never, the other succeeds in two steps."""
    s, a, s_next, p = [0, 0, 0, 1, 2, 3], [0, 0, 1, 0, 0, 0], [2, 3, 1, 2, 2, 3], [0.6, 0.4, 1, 1, 1, 1]
    mdp = TabularMDP((s, a, s_next, p))
    assert [theory.reach_within(mdp, 2, h)[0] for h in range(4)] == [0, 0.6, 1, 1]


def test_reach_within_is_its_recursion():
    rng = np.random.default_rng(2)
    for _ in range(20):
        mdp = random_mdp(rng, rng.integers(2, 6), rng.integers(1, 4))
        P, goals = mdp.dense(), [int(rng.integers(mdp.num_states))]

        def best(s, h, P=P, goals=goals):
            if s in goals or h == 0:
                return float(s in goals)
            return max(sum(p * best(t, h - 1) for t, p in enumerate(row) if p) for row in P[s] if row.any())

        expected = [best(s, 4) for s in range(mdp.num_states)]
        np.testing.assert_allclose(theory.reach_within(mdp, goals, 4), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.finite_horizon_example(0), r"^horizon: expected a whole number >= 1, got 0"),
        (lambda: theory.finite_horizon_example(10**15), r"^horizon: .* needs about"),
        (lambda: theory.reach_within(two_state_chain(0.5), 2, 3), r"^goals: expected states in 0..1, got 2"),
        (lambda: theory.reach_within(two_state_chain(0.5), 1, -1), r"^horizon: expected a whole number >= 0, got -1"),
        (lambda: theory.reach_within("toy3", 1, 1), r"^mdp: expected a TabularMDP, got str"),
    ],
)
def test_horizons_and_goals_are_checked(call, message):
    with pytest.raises(InputError, match=message):
        call()
