"""A TabularMDP as a system: simulated, an attempt in one compiled call, in slices that hear Ctrl-C."""

from typing import Any

import numpy as np

from gosprl.mdp import TabularMDP
from gosprl.model import EmpiricalModel
from gosprl.record import Ended, Record
from gosprl.requirements import Requirement, as_requirement
from gosprl.strategies.base import Attempt


class Tabular:
    """Simulates a known MDP; one uniform a step, and one more for a Bernoulli reward."""

    slice = 200_000

    def __init__(self, mdp: TabularMDP) -> None:
        self.mdp = mdp
        self._rng = np.random.default_rng()
        self._rewards = np.zeros(len(mdp.rows)) if mdp.rewards is None else mdp.rewards

    def model(self) -> EmpiricalModel:
        return EmpiricalModel.over(self.mdp.rows)

    def requirement(self, need: Any, model: EmpiricalModel) -> Requirement:
        return as_requirement(need, model.rows)

    def seed(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def reset(self, record: Record) -> int:
        return self.mdp.start

    def run(self, attempt: Attempt, s: int, record: Record, made: int, steps: int) -> tuple[int, int, Ended]:
        from gosprl import _kernels

        mdp, model = self.mdp, record.model
        random = attempt.policy.dtype != np.int64
        rows = attempt.policy if not random else np.empty(0, dtype=np.int64)
        probabilities = attempt.policy if random else np.empty(0)
        events = np.empty((min(steps, model.num_states + 1), 2), dtype=np.int64)
        while True:
            steps_now = min(steps, attempt.horizon - made)
            s, walked, noted, ended = _kernels.walk(
                *(mdp.rows.ptr, mdp.ptr, mdp.succ, mdp.prob, self._rewards, mdp.noise == "bernoulli"),
                *(model._counts, record.ledger, rows, probabilities, attempt.goals, attempt.limit),
                *(record.rng, self._rng, s, steps_now, events),
            )
            S = model.num_states
            record.events.extend((record.steps + int(i), (S - int(unmet)) / S) for i, unmet in events[:noted])
            record.steps += walked
            made += walked
            steps -= walked
            if ended == _kernels.NO_ROOM:
                model._grow(int(model._counts.length.max()))
            elif ended != Ended.STEPS:
                return int(s), made, Ended(ended)
            elif made >= attempt.horizon:
                return int(s), made, Ended.HORIZON
            elif steps <= 0:
                return int(s), made, Ended.STEPS
