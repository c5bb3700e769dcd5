"""The random walk: every existing action with the same probability. What any strategy must beat."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.base import Attempt

HORIZON = 10_000  # steps between two looks at an adaptive need


@dataclass
class Random:
    """Takes every existing action with the same probability."""

    @property
    def guarantee(self) -> str:
        return "none: a random walk"

    def restart(self) -> None:
        """One state is as good as another."""

    def attempt(self, model: EmpiricalModel, need: Any, s: int, t: int, rng: np.random.Generator) -> Attempt:
        enabled = model.enabled
        number = np.add.reduceat(enabled.astype(float), model.rows.ptr[:-1])
        policy = np.where(enabled, 1 / number[model.rows.state], 0.0)
        unlimited = np.full(len(model.rows), np.iinfo(np.int64).max)
        return Attempt(policy, np.zeros(model.num_states, dtype=bool), unlimited, HORIZON)
