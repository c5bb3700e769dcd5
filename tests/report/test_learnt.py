"""What was learnt of pairs and states."""

import numpy as np
import pytest

import gosprl
from gosprl.report.findings import of_result
from gosprl.report.learnt import hitting_times, rewards, transitions


def ring(n):
    """A ring: the one action leads to the next state, with reward 1 in the last state."""
    P = np.zeros((n, 1, n))
    P[np.arange(n), 0, (np.arange(n) + 1) % n] = 1
    R = np.zeros((n, 1))
    R[-1] = 1
    return gosprl.TabularMDP(P, rewards=R)


def test_frequencies_are_within_their_intervals_and_those_within_the_sets():
    result = gosprl.collect("riverswim6", 30, seed=0)
    seen, total = transitions(of_result(result), 1000)
    assert total == len(seen) == len(result.model.transitions()[0])
    for t in seen:
        row = result.model.rows.index(t.state, t.action)
        assert t.frequency == t.seen / result.model.visits[row]
        assert 0 <= t.lower <= t.frequency <= t.upper <= 1
        sets = gosprl.KL(0.1).intervals(result.model, np.array([row]))
        k = sets.succ.tolist().index(t.next_state)
        assert (t.lower, t.upper) == (sets.lower[k], sets.upper[k])
    few, total = transitions(of_result(result), 3)
    assert [t.seen for t in few] == sorted((t.seen for t in seen), reverse=True)[:3]


def test_hitting_times_of_a_ring():
    result = gosprl.collect(ring(5), 3, seed=0)
    start = result.start
    expected = [(s - start) % 5 for s in range(5)]
    assert hitting_times(of_result(result)) == pytest.approx(expected, rel=1e-6)


def test_hitting_times_are_infinite_where_no_way_was_seen():
    P = np.zeros((2, 1, 2))
    P[0, 0, 0] = P[1, 0, 0] = 1
    times = hitting_times(of_result(gosprl.collect(gosprl.TabularMDP(P), 2, seed=0)))
    assert times.tolist() == [0, np.inf]


def test_hitting_times_count_the_way_through_an_ending():
    result = gosprl.collect("FrozenLake-v1", 10, seed=0)
    times = hitting_times(of_result(result))
    visited = result.counts.sum(axis=1) > 0
    assert np.isfinite(times[visited]).all()
    assert not np.isfinite(times[~visited]).any()


def test_mean_rewards_of_pairs():
    known = rewards(of_result(gosprl.collect(ring(3), 4, seed=0)))
    assert dict(zip(known.state.tolist(), known.mean.tolist(), strict=True)) == {0: 0, 1: 0, 2: 1}
    assert known.deviation.tolist() == [0, 0, 0]
    assert rewards(of_result(gosprl.collect(ring(3), 0, seed=0))) is None
