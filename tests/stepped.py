"""A simulated MDP as a system in plain Python, as a user would write one."""

from gosprl import EmpiricalModel
from gosprl.systems import Outcome, System


class Stepped(System):
    """Steps through `mdp`; subclasses define `take(s, action) -> (next state, reward)`."""

    block = 50

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
