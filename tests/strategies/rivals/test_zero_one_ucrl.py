"""0/1-UCRL: its rewards from counts and needs, and episodes that end at the need."""

import numpy as np
import pytest
from situations import situation

import gosprl
from gosprl import InputError, TabularMDP
from gosprl.strategies import ZeroOneUCRL


def under_sampled(model, need):
    """[R] by a plain double loop: the pair needs more, or its state does."""
    out, r = [], 0
    for s in range(model.num_states):
        rows = range(model.rows.ptr[s], model.rows.ptr[s + 1])
        N = [int(model.visits[row]) for row in rows]
        for n in N:
            out.append(float(n < need.pair[r] or sum(N) < need.state[s]))
            r += 1
    return out


@pytest.mark.parametrize("kind", ["pairs", "states", "both"])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_under_sampled_earns_one(kind, seed):
    model, need, t = situation(seed, kind)
    reward = ZeroOneUCRL().reward(model, need, t)
    assert reward.tolist() == under_sampled(model, need)
    assert 0 < reward.sum() < len(reward)


@pytest.mark.parametrize("kind", ["pairs", "states", "both"])
@pytest.mark.parametrize("seed", range(5))
def test_renewed_episodes_end_at_the_need(kind, seed):
    """One visit less than the limit leaves the reward as it is, and at the end of the episode it is 0 (or doubled)."""
    model, need, t = situation(seed, kind)
    plain, renewed = ZeroOneUCRL().limit(model, need, t), ZeroOneUCRL(renew=True).limit(model, need, t)
    N, earns = model.visits, np.array(under_sampled(model, need))
    assert np.array_equal(plain, N + np.maximum(N, 1) - 1)
    assert np.array_equal(renewed[earns == 0], plain[earns == 0])
    for r in np.flatnonzero(earns):
        s = model.rows.state[r]
        missing = max(need.pair[r] - N[r], need.state[s] - need.state_visits[s])
        assert renewed[r] == min(plain[r], N[r] + missing - 1)


def test_on_a_bandit_nothing_is_wasted_if_episodes_are_renewed():
    """One state, five actions: a doubled count is wasted on 10 of 16, a renewed reward never."""
    bandit = TabularMDP(np.ones((1, 5, 1)))
    for seed in range(3):
        assert gosprl.collect(bandit, 10, strategy="zero_one_ucrl", renew=True, seed=seed).steps == 50
        assert gosprl.collect(bandit, 10, strategy="zero_one_ucrl", seed=seed).counts.max() == 16


@pytest.mark.parametrize("renew", ["x", None, 2])
def test_renew_is_true_or_false(renew):
    with pytest.raises(InputError, match="renew"):
        ZeroOneUCRL(renew=renew)
