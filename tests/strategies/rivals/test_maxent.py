"""MaxEnt: the gradient by finite differences, and how far it moves in an episode."""

import numpy as np
import pytest
from situations import situation

from gosprl.strategies import MaxEnt


def entropy(frequency, mu):
    return -np.sum((frequency + mu) * np.log(frequency + mu))


def gradient(N, mu):
    """[R] after visits N, by the formula."""
    return -1 - np.log(N / N.sum() + mu / len(N))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mu", [0.01, 0.5])
def test_rewards_are_the_gradient_of_the_smoothed_entropy(seed, mu):
    model, need, t = situation(seed)
    reward, R = MaxEnt(mu=mu).reward(model, need, t), len(model.rows)
    frequency, h = model.visits / (t - 1), 1e-7
    assert frequency.sum() == pytest.approx(1)
    for r in range(R):
        step = h * np.eye(R)[r]
        slope = (entropy(frequency + step, mu / R) - entropy(frequency - step, mu / R)) / (2 * h)
        assert reward[r] == pytest.approx(slope, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("drift", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(5))
def test_at_the_limit_the_gradient_has_not_moved_too_far_and_one_visit_later_it_has(seed, drift):
    """In the worst case: the pair is visited at every step."""
    model, need, t = situation(seed, steps=400, spread=0.9)
    strategy = MaxEnt(drift=drift)
    N, before, binding = model.visits.copy(), gradient(model.visits, strategy.mu), 0
    limit = strategy.limit(model, need, t)
    assert np.all(limit <= N + np.maximum(N, 1) - 1)
    for r in range(len(N)):
        n = limit[r] - N[r]

        def moved(visits, r=r):
            return np.abs(gradient(N + visits * np.eye(len(N))[r], strategy.mu) - before)

        assert moved(n)[r] <= drift + 1e-12
        if n <= strategy.horizon(t):
            assert moved(n).max() <= drift + 1e-12  # the others fall meanwhile
        if limit[r] < N[r] + max(N[r], 1) - 1:
            binding += 1
            assert moved(n + 1)[r] > drift
    assert binding > 0


@pytest.mark.parametrize("drift", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("t", [30, 31, 500, 10**6])
def test_at_the_horizon_the_gradient_of_a_pair_without_visits_has_not_moved_too_far_and_one_step_later_it_has(drift, t):
    """Where mu hides nothing: a frequency of N / (t - 1) that falls to N / (t - 1 + h)."""
    h = MaxEnt(drift=drift).horizon(t)
    assert np.log((t - 1 + h) / (t - 1)) <= drift
    assert np.log((t - 1 + h + 1) / (t - 1)) > drift


def test_a_drift_without_end_leaves_only_doubling():
    model, need, t = situation(0)
    N = model.visits
    for drift in (50.0, 1e4):
        strategy = MaxEnt(drift=drift)
        assert np.array_equal(strategy.limit(model, need, t), N + np.maximum(N, 1) - 1)
        assert strategy.horizon(t) > 10**12


def test_it_does_not_look_at_the_need():
    one, other = situation(3, "pairs"), situation(3, "states")
    assert np.array_equal(one[0].rows.ptr, other[0].rows.ptr)
    model, t = one[0], one[2]
    strategy = MaxEnt()
    assert np.array_equal(strategy.reward(model, one[1], t), strategy.reward(model, other[1], t))
    assert np.array_equal(strategy.limit(model, one[1], t), strategy.limit(model, other[1], t))
