"""Zero-RMax: its plans are those of discounted value iteration in the empirical model, dense and plain."""

import numpy as np
import pytest
from walked import table_collector

import gosprl
from gosprl.envs import make
from gosprl.strategies import ZeroRMax

RIVER = make("riverswim6")


def discounted(model, unknown, gamma):
    """q [S, A] of reaching an unknown state, worth 1; -inf where there is no action, gamma for what was never tried."""
    S, A = model.num_states, model.num_actions
    exists, N = model.rows.to_dense(model.enabled.copy()), model.rows.to_dense(model.visits)
    P, V = model.dense(), unknown.astype(float)
    while True:
        q = np.where(N > 0, gamma * (P.reshape(S * A, S) @ V).reshape(S, A), gamma)
        q = np.where(exists, q, -np.inf)
        better = np.where(unknown, 1.0, q.max(axis=1))
        if np.abs(better - V).max() < 1e-13:
            return q
        V = better


def unknown_states(model, need, s, gamma):
    """What is under-sampled; with ever more states tried too little, if none of these is within reach of s."""
    N = np.where(model.rows.to_dense(model.enabled.copy()), model.rows.to_dense(model.visits), 10**9)
    under = np.array([need.unmet_items[state] > 0 for state in range(model.num_states)])
    for m in (0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023):
        unknown = under | (N.min(axis=1) < m)
        if unknown[s] or discounted(model, unknown, gamma)[s].max() >= 1e-5:
            return unknown, N.min(axis=1) < m, N.argmin(axis=1)
    raise AssertionError("nothing within reach")


def sampled_river(seed, out_of_reach):
    """(model, need) over 8 states: every pair tried 1 to 4 times, led to one of two states near by; 2 states needed.

    `out_of_reach`: no sample led to these two.
    """
    rng = np.random.default_rng(seed)
    needed = rng.choice(np.arange(1, 8), size=2, replace=False)
    need = np.zeros((8, 2), dtype=int)
    need[needed] = 100
    collector = table_collector(8, 2, need)
    for s, a in np.ndindex(8, 2):
        near = [(s + 1) % 8, (s + rng.integers(2, 7)) % 8] if a else [max(s - 1, 0), s]
        near = [x for x in near if not (out_of_reach and x in needed)] or [0]
        for _ in range(rng.integers(1, 5)):
            collector.observe(s, a, int(rng.choice(near)))
    return collector.model, collector.record.need


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("out_of_reach", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_plans_are_those_of_discounted_value_iteration(seed, out_of_reach, gamma):
    """From every state; where nothing unknown is within reach, something becomes so, and is tried."""
    model, need = sampled_river(seed, out_of_reach)
    planner = ZeroRMax(gamma=gamma).begin(model, need, np.random.default_rng(seed))
    N, choices, widened = model.rows.to_dense(model.visits), 0, 0
    for s in range(8):
        attempt = planner.attempt(s, 1)
        unknown, tried_less, fewest = unknown_states(model, need, s, gamma)
        q, actions = discounted(model, unknown, gamma), model.rows.action[attempt.policy]
        for x in np.flatnonzero(~unknown):
            assert q[x, actions[x]] >= q[x].max() - 1e-6
            choices += np.ptp(q[x]) > 1e-5
        for x in np.flatnonzero(tried_less):
            assert N[x, actions[x]] == N[x, fewest[x]]
            row = attempt.policy[x]
            assert attempt.limit[row] == model.visits[row]  # one visit, then think again
        widened += bool(tried_less.any())
        assert attempt.sample
        assert not attempt.goals.any()
    assert widened >= 6 if out_of_reach else choices > 5


def test_a_nearer_unknown_state_first():
    """0 leads to 1 by action 0 and to 2 by action 1; from 2 it is one step to 3, which is needed, from 1 two."""
    moves = {(0, 0): 1, (0, 1): 2, (1, 0): 4, (1, 1): 4, (2, 0): 3, (2, 1): 3, (4, 0): 3, (4, 1): 3}
    collector = table_collector(5, 2, [0, 0, 0, 10, 0])
    for (s, a), s_next in moves.items():
        collector.observe(s, a, s_next)
    attempt = ZeroRMax().begin(collector.model, collector.record.need, np.random.default_rng(0)).attempt(0, 9)
    assert collector.model.rows.action[attempt.policy[0]] == 1


def test_in_an_unknown_state_the_needed_action_with_the_fewest_visits_is_taken():
    collector = table_collector(2, 3, [[5, 0, 5], [0, 0, 0]], strategy="zero_rmax", seed=0)
    taken = []
    for _ in range(6):
        taken.append(collector.ask(0))
        collector.tell(0, taken[-1], 0)
    assert taken == [0, 2, 0, 2, 0, 2]


@pytest.mark.parametrize("need", [1, 2])
def test_it_is_not_stuck_where_the_empirical_model_is_wrong(need):
    """With one sample a pair, swimming against the stream seems impossible: as it were, forever.

    Random choice, kept until a count has doubled, takes more than 100,000 steps in some of these runs. The random walk
    takes 40 times the limit; 20 times are few enough to tell it from both.
    """
    limit = gosprl.theory.limits.fluid_limit(RIVER, need)
    steps = [gosprl.collect(RIVER, need, strategy="zero_rmax", seed=seed, max_steps=20_000).steps for seed in range(20)]
    assert max(steps) < 40 * limit
    assert np.mean(steps) < 20 * limit


def test_work_is_told():
    result = gosprl.collect(RIVER, 3, strategy="zero_rmax", seed=0)
    assert result.work["plans"] >= result.attempts > 5
