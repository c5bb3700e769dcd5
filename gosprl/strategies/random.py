"""The random walk, a baseline: every existing action has the same probability."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gosprl.collecting.need import Need
from gosprl.guarantee import Guarantee
from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.base import UNLIMITED, Attempt, Planner, Strategy

HORIZON = 10_000  # steps between two evaluations of an adaptive requirement


@dataclass(frozen=True)
class Random(Strategy):
    """Take every existing action with the same probability."""

    def begin(self, model: EmpiricalModel, need: Need, rng: np.random.Generator) -> "RandomPlanner":
        """Make the planner of a run."""
        return RandomPlanner(model)


class RandomPlanner(Planner):
    """The random walk in one run."""

    may_give_up = False

    def __init__(self, model: EmpiricalModel) -> None:
        self.model = model

    @property
    def guarantee(self) -> Guarantee:
        """There is none."""
        return Guarantee.none("a random walk")

    def remember(self) -> dict[str, Any]:
        """Return nothing: every attempt is a function of the counts."""
        return {}

    def attempt(self, s: int, t: int) -> Attempt:
        """Return the uniform policy over the actions that are enabled so far."""
        enabled, rows = self.model.enabled, self.model.rows
        number = np.add.reduceat(enabled.astype(float), rows.ptr[:-1])
        policy = np.where(enabled, 1 / number[rows.state], 0.0)
        no_goals = np.zeros(rows.num_states, dtype=bool)
        return Attempt(policy, no_goals, np.full(len(rows), UNLIMITED), HORIZON)
