"""Counts and needs in the middle of a run, for asking a strategy what it makes of them."""

import numpy as np
from walked import table_collector

from gosprl import Requirement


class Both(Requirement):
    """A need of pairs [R] and of states [S] at once."""

    def __init__(self, pair, state):
        self.pair, self.state = np.asarray(pair), np.asarray(state)

    def update(self, model, rows):
        return np.empty(0, dtype=np.int64)


def exists_at_random(rng, states, actions):
    exists = rng.random((states, actions)) < 0.8
    exists[np.arange(states), rng.integers(actions, size=states)] = True
    return exists


def need_at_random(rng, exists, kind):
    """`kind`: "pairs" [S, A], "states" [S], or "both"; some zeros, at least one need that is large."""
    S, R = len(exists), int(exists.sum())
    pair, state = rng.integers(0, 9, R), rng.integers(0, 9, S)
    pair[0], state[0] = 10**6, 10**6
    if kind == "both":
        return Both(pair, state)
    dense = np.zeros(exists.shape, dtype=int)
    dense[exists] = pair
    return dense if kind == "pairs" else state


def situation(seed, kind="pairs", states=5, actions=3, steps=60, spread=0.5):
    """(model, need, t) after a random walk that mostly goes on, and jumps with probability `spread`."""
    rng = np.random.default_rng(seed)
    exists = exists_at_random(rng, states, actions)
    collector = table_collector(states, exists, need_at_random(rng, exists, kind))
    s = 0
    for _ in range(steps):
        a = int(rng.choice(np.flatnonzero(exists[s])))
        s_next = int(rng.integers(states)) if rng.random() < spread else (s + a) % states
        collector.observe(s, a, s_next)
        s = s_next
    return collector.model, collector.record.need, steps + 1
