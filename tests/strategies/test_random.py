"""The random walk: uniform over existing actions."""

import numpy as np
from scipy import stats

import gosprl
from gosprl import EmpiricalModel, TabularMDP
from gosprl.envs import make
from gosprl.strategies import Random

LEVEL = 1e-4  # false-alarm rate of each test of a law


def test_every_existing_action_has_the_same_probability():
    model = EmpiricalModel(3, np.array([[1, 1, 1], [0, 1, 0], [1, 0, 1]], dtype=bool))
    attempt = Random().begin(model, None, np.random.default_rng(0)).attempt(0, 1)
    assert np.allclose(attempt.policy, [1 / 3, 1 / 3, 1 / 3, 1, 1 / 2, 1 / 2])
    assert not attempt.goals.any()


def test_rows_that_cannot_be_taken_have_none():
    model = EmpiricalModel(2, 3)
    model.locate(1, (0, 2))
    attempt = Random().begin(model, None, np.random.default_rng(0)).attempt(0, 1)
    assert np.allclose(attempt.policy, [1 / 3, 1 / 3, 1 / 3, 1 / 2, 0, 1 / 2])


def test_actions_are_uniform_on_a_walk():
    mdp = TabularMDP(([0, 0, 0, 1, 1], [0, 1, 2, 0, 2], [0, 1, 1, 0, 1], np.ones(5)))
    counts = gosprl.collect(mdp, 10**6, strategy="random", seed=0, max_steps=30_000).counts
    assert stats.chisquare(counts[0]).pvalue > LEVEL
    assert counts[1, 1] == 0
    assert stats.binomtest(int(counts[1, 0]), int(counts[1].sum())).pvalue > LEVEL


def test_steps_until_met_have_the_mean_of_coupons():
    """One state, n actions, one sample each: n (1 + 1/2 + ... + 1/n) steps, variance n^2 sum 1/k^2 - mean."""
    n, runs = 5, 400
    mdp = TabularMDP(np.ones((1, n, 1)))
    steps = [gosprl.collect(mdp, 1, strategy="random", seed=seed).steps for seed in range(runs)]
    k = np.arange(1, n + 1)
    mean, variance = n * (1 / k).sum(), n**2 * (1 / k**2).sum() - n * (1 / k).sum()
    assert abs(np.mean(steps) - mean) < stats.norm.isf(LEVEL / 2) * np.sqrt(variance / runs)


def test_it_looks_at_an_adaptive_need_and_is_met():
    result = gosprl.collect(make("riverswim", states=3), lambda model: 2, strategy="random", seed=0)
    assert result.met
    assert result.counts.min() >= 2
    assert str(result.guarantee) == "none: a random walk"
    assert not result.guarantee.holds


def test_gosprl_beats_it():
    river = make("riverswim6")
    walks = [gosprl.collect(river, 5, strategy="random", seed=seed).steps for seed in range(8)]
    plans = [gosprl.collect(river, 5, seed=seed).steps for seed in range(8)]
    assert stats.mannwhitneyu(plans, walks, alternative="less").pvalue < 1e-3  # by chance, once in a thousand
