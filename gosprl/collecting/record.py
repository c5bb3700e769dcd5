"""Record: the counts of a run, and what is still needed of them, kept together step by step."""

import math
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.requirements import Found, Requirement, checked
from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel

if TYPE_CHECKING:
    from gosprl.strategies.base import Attempt

BUFFER = 4096  # transitions noted before they are counted
UNLIMITED = np.iinfo(np.int64).max


class Ended(IntEnum):
    """Why a system stopped following an attempt; the numbers are the kernels'."""

    STEPS = 0  # only the steps it was given are used up: the attempt goes on
    GOAL = 1
    LIMIT = 2
    HORIZON = 3
    HANDED_BACK = 4
    MET = 5  # everything needed is there
    TELEPORT = 6  # the system went somewhere else by itself
    SETTLED = 7  # an attempt that samples on the way gave a state all it needs
    FOUND = 8  # a reward above the threshold


class Find(NamedTuple):
    """The first reward above the threshold: where it was, and when."""

    state: int
    action: int
    next_state: int
    reward: float
    step: int


class Record:
    """Model, requirement and the curve of states met; systems write every transition here."""

    def __init__(
        self, model: EmpiricalModel, need: Requirement, rng: np.random.Generator, threshold: float = np.inf
    ) -> None:
        from gosprl._kernels import Ledger

        S, R = model.num_states, len(model.rows)
        self.model, self.need, self.rng = model, need, rng
        self.threshold = threshold  # a reward above it ends the run
        self.found: Find | None = None
        self.rewards = (-sys.float_info.max, sys.float_info.max)  # where they must be: anywhere, but finite
        self.steps = 0
        self.resets = 0
        self.interrupted = False
        self.events: list[tuple[int, float]] = []  # (step, proportion of states met) at each change
        self.ledger = Ledger(
            row_state=model.rows.state,
            pair=np.zeros(R, dtype=np.int64),
            state=np.zeros(S, dtype=np.int64),
            visits=np.zeros(S, dtype=np.int64),
            unmet=np.zeros(S, dtype=np.int64),
            missing=np.zeros(S, dtype=np.int64),
            scalars=np.zeros(4, dtype=np.int64),
            worth=np.zeros(S),
            credit=np.zeros(1),
        )
        self._mark = -1
        self._state_needs = False
        self._pending: list[tuple[int, int, float, int]] = []  # (row, s_next, reward, step) not yet counted
        self._fresh: dict[int, int] = {}  # how many of them by row

    @property
    def met(self) -> bool:
        return int(self.ledger.scalars[0]) == 0

    @property
    def gained(self) -> int:
        """Needed samples collected so far."""
        return int(self.ledger.scalars[2])

    @property
    def proportion_met(self) -> float:
        """Of all states; of those with a requirement, where the states are not known in advance."""
        return (self._known - int(self.ledger.scalars[0])) / self._known

    @property
    def _known(self) -> int:
        return max(1, self.need.known) if isinstance(self.need, Found) else self.model.num_states

    def update_need(self) -> None:
        """Let the requirement look at what changed, and count anew what is unmet if it may have changed its mind."""
        self.flush()
        first = self._mark < 0
        rows = self.model.changed(max(0, self._mark))
        self._mark = self.model.mark()
        changed = self.need.update(self.model, rows)
        ledger, before = self.ledger, int(self.ledger.scalars[0])
        if first or changed is None:
            ledger.pair[:], ledger.state[:] = checked(self.need, self.model.rows)
            states = np.arange(self.model.num_states)
            self._state_needs = bool(ledger.state.any())
        elif changed.size:
            states = np.unique(ledger.row_state[changed])
            ledger.pair[changed], ledger.state[states] = self.need.pair[changed], self.need.state[states]
            self._state_needs = self._state_needs or bool(ledger.state[states].any())
        else:
            return
        from gosprl import _kernels

        _kernels.settle(ledger, self.model.rows.ptr, self.model._counts.visits, states)
        if first or before != ledger.scalars[0]:
            self.events.append((self.steps, self.proportion_met))

    def add(self, row: int, s_next: int, reward: float, *, step: bool = True) -> None:
        """Note one transition; a reset costs no step."""
        self.model.check(row, s_next)
        self._note(row, s_next, reward, step)

    def find(self, row: int, s_next: int, reward: float) -> None:
        """The last step brought a reward above the threshold."""
        self.found = Find(*self.model.rows.pair(row), s_next, reward, self.steps)

    def _note(self, row: int, s_next: int, reward: float, step: bool) -> None:
        low, high = self.rewards
        if step and not low <= reward <= high:
            pair = self.model.rows.pair(row)
            if not math.isfinite(reward):
                raise InputError(f"rewards: expected finite numbers, got {reward} at (s, a) = {pair}")
            raise InputError(
                f"rewards: expected rewards in [{low:g}, {high:g}], got {reward} at (s, a) = {pair}; if they are "
                "in [low, high], let the system return (reward - low) / (high - low), of an environment with "
                "gymnasium.wrappers.TransformReward"
            )
        self.steps += step
        self.resets += not step
        self._pending.append((row, s_next, reward, self.steps))
        self._fresh[row] = self._fresh.get(row, 0) + 1
        if step and reward > self.threshold and self.found is None:
            self.find(row, s_next, reward)
        if len(self._pending) >= BUFFER:
            self.flush()

    def flush(self) -> None:
        """Count what was noted. A call into compiled code costs as much as several steps, so they go in together."""
        if not self._pending:
            return
        from gosprl import _kernels

        rows, s_next, rewards, steps = (np.array(part) for part in zip(*self._pending, strict=True))
        self._pending.clear()
        self._fresh.clear()
        events = np.empty((len(rows), 2), dtype=np.int64)
        done = noted = 0
        while done < len(rows):
            done, noted = _kernels.note_many(
                *(self.model._counts, self.ledger, rows, s_next.astype(np.int32), rewards.astype(float), steps),
                *(events, done, noted),
            )
            if done < len(rows):
                if self.model.closed:  # only if that happened after it was noted
                    raise self.model.foreign(int(rows[done]), int(s_next[done]))
                self.model._grow(int(self.model._counts.length[rows[done]]))
        known = self._known
        self.events.extend((int(step), (known - int(unmet)) / known) for step, unmet in events[:noted])

    def arrive(self, row: int, s_next: int, reward: float, terminated: bool) -> None:
        """Count one step, and what it tells about the state it led to."""
        model = self.model
        model.check(row, s_next)
        if terminated != model.terminal[s_next]:
            if model.terminal[s_next]:
                raise model.ends_sometimes(s_next)
            self.flush()
            model.end_in(s_next)
        model.find(s_next)
        self._note(row, s_next, reward, True)

    def choose(self, attempt: "Attempt", s: int) -> int:
        """The row that an attempt takes in state s, -1 to hand back."""
        policy = attempt.policy
        if attempt.sample and self.ledger.unmet[s] and (row := self._fewest_visits(s)) >= 0:
            return row
        if policy.dtype == np.int64:
            return int(policy[s])
        rows = self.model.rows
        u, row = self.rng.random(), int(rows.ptr[s])
        for row in range(int(rows.ptr[s]), int(rows.ptr[s + 1])):
            u -= float(policy[row])
            if u < 0:
                break
        return row

    def _fewest_visits(self, s: int) -> int:
        """Of the under-sampled pairs of s, the first with the fewest visits; -1 if there is none."""
        ptr, visits, fresh, best = self.model.rows.ptr, self.model._counts.visits, self._fresh, -1
        least = UNLIMITED
        for row in range(int(ptr[s]), int(ptr[s + 1])):
            n = int(visits[row]) + fresh.get(row, 0)
            if n < self.ledger.pair[row] and n < least:
                best, least = row, n
        return best

    def ended(self, attempt: "Attempt", row: int, s_next: int, made: int) -> Ended | None:
        """Whether an attempt is over after `made` of its steps, the last by `row` to s_next."""
        if self.found is not None:
            return Ended.FOUND
        visits = int(self.model._counts.visits[row]) + self._fresh.get(row, 0)
        settled = False
        if self._state_needs or visits == self.ledger.pair[row]:
            s, ledger = int(self.ledger.row_state[row]), self.ledger
            self.flush()
            if self.met:
                return Ended.MET
            settled = ledger.unmet[s] == 0 and (visits == ledger.pair[row] or ledger.visits[s] == ledger.state[s])
        if attempt.goals[s_next]:
            return Ended.GOAL
        if attempt.sample and settled:
            return Ended.SETTLED
        if visits > attempt.limit[row]:
            return Ended.LIMIT
        if made >= attempt.horizon:
            return Ended.HORIZON
        return None

    def needed(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What is needed as far as is known now, per row [R] and per state [S]."""
        self.flush()
        if isinstance(self.need, Found):
            self.update_need()
        return self.ledger.pair, self.ledger.state

    def unmet(self) -> NDArray[np.void]:
        """What is missing: (state, action or -1 for any, needed, have)."""
        pair, state = self.needed()
        visits, rows = self.model.visits, self.model.rows
        short_rows = np.flatnonzero(visits < pair)
        short_states = np.flatnonzero(self.ledger.visits < state)
        kind = [("state", np.int64), ("action", np.int64), ("needed", np.int64), ("have", np.int64)]
        out = np.empty(len(short_rows) + len(short_states), dtype=kind)
        out["state"] = np.append(rows.state[short_rows], short_states)
        out["action"] = np.append(rows.action[short_rows], np.full(len(short_states), -1))
        out["needed"] = np.append(pair[short_rows], state[short_states])
        out["have"] = np.append(visits[short_rows], self.ledger.visits[short_states])
        return out
