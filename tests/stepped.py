"""A simulated MDP as a system in plain Python, as a user would write one."""

from gosprl import EmpiricalModel
from gosprl.collecting.record import Ended
from gosprl.collecting.requirements import as_requirement


class Stepped:
    """Follows attempts step by step; `step(row)` makes one, sets `state` and returns the reward."""

    slice = 50

    def __init__(self, mdp):
        self.mdp, self.log = mdp, []

    def model(self):
        return EmpiricalModel.over(self.mdp.rows)

    def requirement(self, need, model):
        return as_requirement(need, model.rows)

    def seed(self, rng):
        self.rng = rng

    def reset(self, record):
        self.state = self.mdp.start
        return self.state

    def run(self, attempt, s, record, made, steps):
        assert s == self.state
        for _ in range(steps):
            row = record.choose(attempt, s)
            if row < 0:
                return s, made, Ended.HANDED_BACK
            reward = self.step(row)
            record.arrive(row, self.state, reward, False)
            self.log.append((s, int(self.mdp.rows.action[row]), self.state))
            s, made = self.state, made + 1
            ended = record.ended(attempt, row, s, made)
            if ended is not None:
                return s, made, ended
        return s, made, Ended.STEPS
