"""Simulated MDPs as systems: in plain Python, as a user would write one, and compiled, but silent about the graph."""

from copy import copy

import numpy as np

from gosprl import EmpiricalModel
from gosprl.systems import Outcome, System
from gosprl.systems.tabular import Tabular


class Stepped(System):
    """Steps through `mdp`; subclasses define `take(s, action) -> (next state, reward)`."""

    block = 50
    ends = False

    def __init__(self, mdp):
        self.table, self.log = mdp, []

    def model(self):
        return EmpiricalModel.over(self.table.rows)

    def seed(self, rng):
        self.rng = rng

    def reset(self):
        self.state = self.table.start
        return self.state

    def step(self, action):
        s = self.state
        self.state, reward = self.take(s, action)
        self.log.append((s, action, self.state))
        return Outcome(self.state, reward)


class Untold(Tabular):
    """A simulated MDP, walked compiled, that tells nothing of its graph: what cannot be reached has to be found out."""

    def __init__(self, mdp):
        untold = copy(mdp)
        untold.components = lambda: np.zeros(mdp.num_states, dtype=np.int64)
        super().__init__(untold)
