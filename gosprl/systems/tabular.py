"""A TabularMDP as a system: simulated, an attempt in one compiled call, in slices that hear Ctrl-C."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.record import Ended, Record
from gosprl.collecting.requirements import Requirement, as_requirement
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.base import Attempt

BLOCK = 4096  # steps a compiled call
_NO_ROWS, _NO_NUMBERS = np.empty(0, dtype=np.int64), np.empty(0)


class Tabular:
    """Simulates a known MDP; one uniform a step, and one more for a Bernoulli reward."""

    slice = 200_000
    all_states = True

    def __init__(self, mdp: TabularMDP) -> None:
        self.mdp = mdp
        self.state = mdp.start
        self._rng = np.random.default_rng()
        self._ahead = np.empty(0)  # uniforms drawn and not yet used
        self._rewards = np.zeros(len(mdp.rows)) if mdp.rewards is None else mdp.rewards

    def model(self) -> EmpiricalModel:
        return EmpiricalModel.over(self.mdp.rows)

    def requirement(self, need: Any, model: EmpiricalModel) -> Requirement:
        return as_requirement(need, model.rows)

    def seed(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._ahead = np.empty(0)

    def reset(self, record: Record) -> int:
        return self.mdp.start

    def run(self, attempt: Attempt, s: int, record: Record, made: int, steps: int) -> tuple[int, int, Ended]:
        from gosprl import _kernels

        mdp, model, S = self.mdp, record.model, record.model.num_states
        random = attempt.policy.dtype != np.int64
        rows, probabilities = (_NO_ROWS, attempt.policy) if random else (attempt.policy, _NO_NUMBERS)
        each = 2 if mdp.noise == "bernoulli" else 1  # uniforms a step
        while True:
            now = min(steps, attempt.horizon - made, BLOCK)
            uniforms = self._look_ahead(each * now)
            events = np.empty((now + 1, 2), dtype=np.int64)
            before = record.rng.bit_generator.state if random else None
            choices = record.rng.random(now) if random else _NO_NUMBERS
            s, walked, noted, ended = _kernels.walk(
                *(mdp.rows.ptr, mdp.ptr, mdp.succ, mdp.prob, self._rewards, each == 2, model._counts, record.ledger),
                *(rows, probabilities, attempt.goals, attempt.limit, attempt.sample, choices, uniforms, s, now, events),
                record.threshold,
            )
            self.state = s = int(s)
            self._ahead = self._ahead[each * walked :]
            if before is not None and walked < now:  # give back the choices not made
                record.rng.bit_generator.state = before
                record.rng.random(walked)
            record.events.extend((record.steps + int(i), (S - int(unmet)) / S) for i, unmet in events[:noted])
            record.steps += walked
            made += walked
            steps -= walked
            if ended == _kernels.NO_ROOM:
                model._grow(int(model._counts.length.max()))
            elif ended == _kernels.FOREIGN:
                raise model.foreign(*events[noted].tolist())
            elif ended == Ended.FOUND:
                row, s_next = events[noted].tolist()
                reward = float(self._rewards[row])
                if each == 2:  # what the last uniform of the last step made of it
                    reward = float(uniforms[2 * walked - 1] < reward)
                record.find(row, s_next, reward)
                return s, made, Ended.FOUND
            elif ended != Ended.STEPS:
                return s, made, Ended(ended)
            elif made >= attempt.horizon:
                return s, made, Ended.HORIZON
            elif steps <= 0:
                return s, made, Ended.STEPS

    def _look_ahead(self, count: int) -> NDArray[np.float64]:
        """The next uniforms of the stream, at least `count`; drawn in blocks, as handing over a generator is slow."""
        if len(self._ahead) < count:
            self._ahead = np.append(self._ahead, self._rng.random(max(count, BLOCK)))
        return self._ahead
