"""0-UCRL: its rewards from counts and needs."""

import numpy as np
import pytest
from situations import situation

from gosprl.strategies import ZeroUCRL


def uncertainty(model, need):
    """[R] by a plain double loop: max(1, N - b)^(-1/2), of the pair, the state, or what is needed longer."""
    out, r = [], 0
    for s in range(model.num_states):
        rows = range(model.rows.ptr[s], model.rows.ptr[s + 1])
        N = [int(model.visits[row]) for row in rows]
        for n in N:
            of_pair, of_state = n - int(need.pair[r]), sum(N) - int(need.state[s])
            if need.state[s] == 0:
                over = of_pair
            elif need.pair[r] == 0:
                over = of_state
            else:
                over = min(of_pair, of_state)
            out.append(max(1, over) ** -0.5)
            r += 1
    return out


@pytest.mark.parametrize("kind", ["pairs", "states", "both"])
@pytest.mark.parametrize("seed", range(5))
def test_rewards_are_as_large_as_uncertain(kind, seed):
    model, need, t = situation(seed, kind, steps=200)
    reward = ZeroUCRL().reward(model, need, t)
    assert reward == pytest.approx(uncertainty(model, need), rel=1e-12)
    assert reward.min() < 0.5
    assert reward.max() == 1


def test_an_action_never_tried_in_a_state_that_has_all_it_needs_is_nothing_special():
    """A need of states is of any action."""
    model, need, t = situation(0, "states", steps=300)
    for s in range(1, model.num_states):
        rows = np.arange(model.rows.ptr[s], model.rows.ptr[s + 1])
        if need.state[s]:
            assert np.ptp(ZeroUCRL().reward(model, need, t)[rows]) == 0
