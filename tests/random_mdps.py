"""Random MDPs for tests."""

import numpy as np

from gosprl import TabularMDP


def random_mdp(rng, states, actions):
    """Return a communicating MDP: rows of a few successors, and first actions that form a ring."""
    w = rng.random((states, actions, states)) ** 4 * (rng.random((states, actions, states)) < 0.6)
    w[..., 0] += 0.01
    w[np.arange(states), 0, np.roll(np.arange(states), -1)] += 0.05
    return TabularMDP(w / w.sum(axis=2, keepdims=True))
