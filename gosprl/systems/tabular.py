"""A TabularMDP as a system: simulated, an attempt in one compiled call, in blocks between which Ctrl-C is heard."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.engine import Engine
from gosprl.collecting.rules import FOUND, GOES_ON, HANDED_BACK
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.systems.base import Outcome, System

if TYPE_CHECKING:
    from gosprl._kernels import Dynamics

BLOCK = 4096  # steps a compiled call
_NO_ROWS, _NO_NUMBERS = np.empty(0, dtype=np.int64), np.empty(0)


class Tabular(System):
    """Simulates a known MDP; one uniform number a step, and one more for a Bernoulli reward."""

    ends = False
    block = 200_000

    def __init__(self, mdp: TabularMDP) -> None:
        self.mdp: TabularMDP = mdp
        self._state = mdp.start
        self._rng = np.random.default_rng()
        self._ahead = np.empty(0)  # uniform numbers drawn and not yet used
        self._rewards = np.zeros(len(mdp.rows)) if mdp.rewards is None else mdp.rewards
        self._dynamics: Dynamics | None = None  # as the compiled walk reads them
        self._each = 2 if mdp.noise == "bernoulli" else 1  # uniform numbers a step

    @property
    def name(self) -> str:
        """The name of the MDP."""
        return self.mdp.name

    def model(self) -> EmpiricalModel:
        """Return an empty model over the MDP's pairs."""
        return EmpiricalModel.over(self.mdp.rows)

    def seed(self, rng: np.random.Generator) -> None:
        """Take the stream of random numbers of the run."""
        self._rng = rng
        self._ahead = np.empty(0)

    def reset(self) -> int:
        """Return the starting state."""
        self._state = self.mdp.start
        return self._state

    def step(self, action: int) -> Outcome:
        """One step in plain Python, from the same uniform numbers as a compiled walk."""
        mdp, row = self.mdp, int(self.mdp.rows.index(self._state, action))
        u = self._look_ahead(self._each)[: self._each].tolist()
        self._ahead = self._ahead[self._each :]
        cumulative, last = 0.0, int(mdp.ptr[row + 1]) - 1
        for j in range(int(mdp.ptr[row]), last + 1):
            cumulative += float(mdp.prob[j])
            if u[0] < cumulative:
                last = j
                break
        reward = float(self._rewards[row])
        if self._each == 2:
            reward = float(u[1] < reward)
        self._state = int(mdp.succ[last])
        return Outcome(self._state, reward)

    def follow(self, engine: Engine, steps: int) -> None:
        """Follow the engine's attempt in compiled code: the same steps as `Engine.follow` makes one by one."""
        from gosprl import _kernels

        attempt, record = engine.attempt, engine.record
        assert attempt is not None
        model, random = record.model, attempt.policy.dtype != np.int64
        course = _kernels.Course(*_course(attempt.policy), attempt.goals, attempt.limit)
        if self._dynamics is None:
            self._dynamics = self._make_dynamics()
        dynamics = self._dynamics
        record.flush()
        while True:
            now = min(steps, attempt.horizon - engine.made, BLOCK)
            uniforms = self._look_ahead(self._each * now)
            events, trace = np.empty((now + 1, 2), dtype=np.int64), np.empty(now, dtype=np.int64)
            before = engine.rng.bit_generator.state if random else None
            choices = engine.rng.random(now) if random else _NO_NUMBERS
            s, walked, noted, code = _kernels.walk(
                *(dynamics, self._each == 2, model.counts, record.need.ledger, course, attempt.sample),
                *(choices, uniforms, engine.state, now, events, trace, record.threshold),
            )
            self._ahead = self._ahead[self._each * walked :]
            self._state = int(s)
            if before is not None and walked < now:  # give back the choices not made
                engine.rng.bit_generator.state = before
                engine.rng.random(walked)
            if record.journal is not None:
                drawn = None if self._each == 1 else uniforms[1 : 2 * walked : 2]
                record.journal.walk(trace[:walked], int(s), self._rewards, drawn)
            engine.walked(int(s), walked, events[:noted])
            if record.journal is not None and record.journal.due:
                record.journal.sync(self)
            steps -= walked
            if code == _kernels.NO_ROOM:
                model.grow(int(model.counts.length.max()))
            elif code == _kernels.FOREIGN:
                raise model.foreign(*events[noted].tolist())
            elif code == _kernels.INVALID:
                raise engine.invalid_row()
            elif code == HANDED_BACK:
                return engine.hand_back()
            elif code == FOUND:
                row, s_next = events[noted].tolist()
                reward = float(self._rewards[row])
                if self._each == 2:  # what the last uniform number of the last step made of it
                    reward = float(uniforms[2 * walked - 1] < reward)
                record.find(row, s_next, reward)
                return engine.end()
            elif code != GOES_ON or engine.made >= attempt.horizon:
                return engine.end()
            elif steps <= 0:
                return None

    def go_to(self, state: int, steps: int) -> None:
        """Be where a walk of so many steps has ended in this state; call it right after `seed`."""
        self._state = state
        self._rng.bit_generator.advance(self._each * steps)  # type: ignore[attr-defined]

    def _make_dynamics(self) -> "Dynamics":
        from gosprl._kernels import Dynamics

        mdp = self.mdp
        return Dynamics(mdp.rows.ptr, mdp.ptr, mdp.succ, mdp.prob, self._rewards, mdp.components())

    def _look_ahead(self, count: int) -> NDArray[np.float64]:
        """Return the next numbers of the stream, at least `count`; drawn in blocks, since single draws are slow."""
        if len(self._ahead) < count:
            self._ahead = np.append(self._ahead, self._rng.random(max(count, BLOCK)))
        return self._ahead


def _course(policy: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(rows, probabilities): one of the two is empty."""
    return (policy, _NO_NUMBERS) if policy.dtype == np.int64 else (_NO_ROWS, policy)
