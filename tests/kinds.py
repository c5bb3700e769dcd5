"""Registries that drive the conformance tests: every kind of system, every kind of need.

Add a name here, or a strategy to `gosprl.strategies.STRATEGIES`, and tests/test_conformance.py covers it.
"""

import gymnasium
import numpy as np
from stepped import Stepped

import gosprl
from gosprl.envs import make
from gosprl.systems import System, Tabular
from gosprl.systems.stepper import Stepper


def river():
    """RiverSwim with noisy rewards: a stochastic chain where the far end is hard to reach."""
    return make("riverswim6").with_rewards(np.linspace(0, 1, 6), noise="bernoulli")


class SteppedTabular(Tabular):
    """A simulated MDP without compiled code: the same uniform numbers, one step at a time."""

    block = 50
    follow = System.follow


class Own(Stepped):
    """A system of a user's own."""

    def take(self, s, action):
        succ, prob = self.table.p(s, action)
        return int(succ[np.searchsorted(np.cumsum(prob), self.rng.random())]), float(self.rng.random() < 0.5)


class Growing(gosprl.Requirement):
    """Twice as much of the last state's pairs when everything is met, up to twelve."""

    def __init__(self, model):
        self.pair = np.full(len(model.rows), 2)
        self.state = np.zeros(model.num_states, dtype=np.int64)
        self.state[0] = 3

    def update(self, model, rows):
        last = np.arange(model.rows.ptr[-2], model.rows.ptr[-1])
        if np.any(model.visits < self.pair) or self.pair[-1] >= 12:
            return np.empty(0, dtype=np.int64)
        self.pair[last] *= 2
        return last


def waves(model):
    """More and more of changing states, then less."""
    t = int(model.visits.sum())
    return np.where(np.arange(model.num_states) % 2 == t // 40 % 2, 4, 2) if t < 200 else np.ones(model.num_states)


def by_pair(model):
    """An array [S, A] with zeros, for the pairs that exist."""
    need = np.arange(model.num_states * model.num_actions).reshape(model.num_states, model.num_actions) % 4
    return model.rows.to_dense(need[model.rows.state, model.rows.action])


SYSTEMS = {
    "compiled": lambda: Tabular(river()),
    "stepped": lambda: SteppedTabular(river()),
    "own": lambda: Own(river()),
    "gymnasium": lambda: Stepper(gymnasium.make("FrozenLake-v1", max_episode_steps=9)),
}
NEEDS = {  # model -> what `collect` takes
    "int": lambda model: 4,
    "states": lambda model: np.arange(model.num_states) % 5,
    "pairs": by_pair,
    "callable": lambda model: waves,
    "requirement": Growing,
}
