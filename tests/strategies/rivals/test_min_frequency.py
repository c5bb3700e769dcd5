"""MinFrequency: theta by plain loops, and as exponential weights played step by step; how far it moves."""

import math

import numpy as np
import pytest
from situations import Both
from walked import table_collector

from gosprl.strategies import MinFrequency


def walked(kind, seed, steps=80):
    """(model, need, t, log of (row, state)) of a random walk over 4 states and 2 actions, and what it needs."""
    rng = np.random.default_rng(seed)
    pair, state = rng.integers(0, 9, 8), rng.integers(0, 9, 4)
    pair[0], state[0] = 5000, 5000
    need = {"pairs": pair.reshape(4, 2), "states": state, "both": Both(pair, state)}[kind]
    collector, log, s = table_collector(4, 2, need), [], 0
    for _ in range(steps):
        a, s_next = int(rng.integers(2)), int(rng.integers(4))
        collector.observe(s, a, s_next)
        log.append((2 * s + a, s))
        s = s_next
    pair, state = pair * (kind != "states"), state * (kind != "pairs")
    return collector.model, collector.record.need, steps + 1, log, pair, state


def exponential_weights(log, pair, state, eta):
    """[8] theta of what each row serves, one multiplication for every step of the log."""
    items = [("pair", r) for r in range(8) if pair[r]] + [("state", s) for s in range(4) if state[s]]
    needed = {item: int((pair if item[0] == "pair" else state)[item[1]]) for item in items}
    mean = sum(needed.values()) / len(items)
    theta = dict.fromkeys(items, 1.0)
    for row, s in log:
        for item in (("pair", row), ("state", s)):
            if item in theta:
                theta[item] *= math.exp(-eta * mean / needed[item])  # its loss is a visit, in units of its need
    total = sum(theta.values())
    return np.array([(theta.get(("pair", r), 0.0) + theta.get(("state", r // 2), 0.0)) / total for r in range(8)])


@pytest.mark.parametrize("kind", ["pairs", "states", "both"])
@pytest.mark.parametrize("rate", [1.0, 0.01])
@pytest.mark.parametrize("seed", range(4))
def test_theta_is_exponential_weights_played_step_by_step(kind, rate, seed):
    model, need, t, log, pair, state = walked(kind, seed)
    K = np.count_nonzero(pair) + np.count_nonzero(state)
    theta = exponential_weights(log, pair, state, rate * math.sqrt(K * math.log(1 + K) / t))
    reward = MinFrequency(rate=rate).reward(model, need, t)
    assert reward.max() >= 1 - 1e-12  # relative to the largest
    assert reward / reward.sum() == pytest.approx(theta / theta.sum(), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("kind", ["pairs", "states", "both"])
@pytest.mark.parametrize("drift", [0.5, 0.05])
def test_at_the_limit_log_theta_has_not_moved_too_far_and_one_visit_later_it_has(kind, drift):
    model, need, t, _, pair, state = walked(kind, 1, steps=2000)
    K = np.count_nonzero(pair) + np.count_nonzero(state)
    mean = (pair.sum() + state.sum()) / K
    eta = math.sqrt(K * math.log(1 + K) / t)
    N, limit, binding = model.visits, MinFrequency(drift=drift).limit(model, need, t), 0
    for r in range(8):
        needs = [b for b in (pair[r], state[r // 2]) if b]
        n, doubling = limit[r] - N[r], max(N[r], 1) - 1
        if needs:
            assert eta * n * mean / min(needs) <= drift + 1e-12
        if n < doubling:
            binding += 1
            assert eta * (n + 1) * mean / min(needs) > drift
        else:
            assert n == doubling
    assert binding > 0


def test_what_needs_nothing_earns_nothing():
    model, need, t, *_, pair, _ = walked("pairs", 2)
    assert np.all(MinFrequency().reward(model, need, t)[pair == 0] == 0)


def test_what_needs_twice_as_much_is_visited_twice_as_often():
    """Equal theta at visits in proportion to the needs."""
    collector = table_collector(1, 2, [[1000, 2000]])
    for a in (0, 1, 1, 0, 1, 1):
        collector.observe(0, a, 0)
    assert MinFrequency().reward(collector.model, collector.record.need, 7).tolist() == [1, 1]
