"""WeightedMaxEnt: V+ by a plain loop, rewards by finite differences."""

import math

import numpy as np
import pytest
from situations import situation

from gosprl import EmpiricalModel
from gosprl.strategies import MaxEnt, WeightedMaxEnt


def plain_weights(model, delta, scale, candidates=None):
    """[R] sum over all next states, or over the candidates, of min(1/2, sqrt(p (1 - p)) + c)."""
    S, A, out = model.num_states, model.num_actions, []
    for r in range(len(model.rows)):
        s, a = model.rows.pair(r)
        N, p = max(1, int(model.visits[r])), np.zeros(S)
        succ, frequency = model.p_hat(s, a)
        p[succ] = frequency
        c = scale * math.sqrt(2 * math.log(2 * S * A * N / delta) / N)
        possible = range(S) if candidates is None else candidates(s, a)
        out.append(sum(min(0.5, math.sqrt(p[n] * (1 - p[n])) + c) for n in possible))
    return out


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("seed", range(4))
def test_weights(seed, scale):
    model, _, _ = situation(seed, steps=300)
    assert WeightedMaxEnt(scale=scale, delta=0.2).weights(model) == pytest.approx(
        plain_weights(model, 0.2, scale), rel=1e-12
    )


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_weights_over_candidates(scale):
    rng = np.random.default_rng(0)
    model = EmpiricalModel(6, 2, successors=next_door)
    s, a = rng.integers(6, size=200), rng.integers(2, size=200)
    model.update(s, a, (s + rng.integers(2, size=200)) % 6)
    assert WeightedMaxEnt(scale=scale).weights(model) == pytest.approx(
        plain_weights(model, 0.1, scale, next_door), rel=1e-12
    )


def next_door(s, a):
    return sorted({s, (s + 1) % 6, (s + 2) % 6})


@pytest.mark.parametrize("seed", range(3))
def test_rewards_are_the_gradient_of_the_weighted_entropy(seed):
    model, need, t = situation(seed, steps=300)
    strategy = WeightedMaxEnt(scale=0.05, mu=0.2)
    R, frequency, h = len(model.rows), model.visits / (t - 1), 1e-7
    V = np.array(plain_weights(model, 0.1, 0.05))

    def objective(x):
        return -np.sum(V * (x + 0.2 / R) * np.log(x + 0.2 / R))

    slopes = [(objective(frequency + h * e) - objective(frequency - h * e)) / (2 * h) for e in np.eye(R)]
    assert strategy.reward(model, need, t) == pytest.approx(slopes, rel=1e-4, abs=1e-4)
    assert np.array_equal(strategy.limit(model, need, t), MaxEnt(mu=0.2).limit(model, need, t))


def test_noisy_pairs_weigh_more():
    model = EmpiricalModel(4, 2)
    model.update([0] * 100, [0] * 100, [1] * 100)
    model.update([0] * 100, [1] * 100, [1, 2] * 50)
    weights = WeightedMaxEnt(scale=0.01).weights(model)
    assert weights[1] > 2 * weights[0]
