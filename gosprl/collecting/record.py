"""Record: the one writer of what happens in a run.

Every event of a run passes here, in this order: the journal if there is one, the counts of the model, the need, the
curve. Systems that are stepped
through hand over one event at a time; these are buffered, since a call into compiled code costs as much as several
steps. A compiled walk counts its steps itself, with the same kernel, and hands over the rest in one call.
"""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.journal import CRASHED, TERMINATED, TRUNCATED, Journal
from gosprl.collecting.need import Need
from gosprl.collecting.requirements import Requirement
from gosprl.errors import GosprlError, InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.states import CRASH

BUFFER = 4096  # events noted before they are counted
ANY_REWARD = (-sys.float_info.max, sys.float_info.max)


def flags_of(key: Any, terminated: bool, truncated: bool = False) -> int:
    """Return the flags of a step to an observation, as a journal has them."""
    if terminated:
        return TERMINATED | (CRASHED if key is CRASH else 0)
    return TRUNCATED if truncated else 0


class Found(NamedTuple):
    """The first reward above the threshold: where it was, and when."""

    state: int
    action: int
    next_state: int
    reward: float
    step: int


class Record:
    """Counts, need and curve of one run.

    Parameters
    ----------
    model
        The counts to write to.
    requirement
        What is needed.
    threshold
        A reward above it is `found`.
    rewards
        The least and the largest reward allowed.

    Attributes
    ----------
    journal
        Takes every event before it is counted; None: the run is not kept.
    """

    def __init__(
        self,
        model: EmpiricalModel,
        requirement: Requirement,
        threshold: float = math.inf,
        rewards: tuple[float, float] = ANY_REWARD,
    ) -> None:
        self.model = model
        self.need = self._new_need(model, requirement)
        self.threshold, self.rewards = threshold, rewards
        self.journal: Journal | None = None
        self.found: Found | None = None
        self.steps, self.resets = 0, 0  # resets after the first, which begins the run
        self.quits = 0  # resets that were chosen
        self.curve: list[tuple[int, float]] = []  # (step, proportion of states met) at each change
        self._noted = 0  # transitions that are not counted yet: row, next state, reward and step of each
        self._noted_rows, self._noted_steps = np.zeros((2, BUFFER), dtype=np.int64)
        self._noted_next, self._noted_rewards = np.zeros(BUFFER, dtype=np.int32), np.zeros(BUFFER)
        self._fresh: dict[int, int] = {}  # how many of them by row
        self._used = model.states.used
        self.looked_for = False  # whether something was discovered since the last update, and that is needed

    def _new_need(self, model: EmpiricalModel, requirement: Requirement) -> Need:
        return Need(model, requirement)

    @property
    def counted(self) -> "Record":
        """The record of what counts for the result: this one, where there is one walker."""
        return self

    @property
    def is_met(self) -> bool:
        """Whether nothing that counts for the result is missing, except what was waived."""
        return self.need.met

    @property
    def begun(self) -> int:
        """Steps so far, those that are not finished included."""
        return self.steps

    @property
    def accounted(self) -> int:
        """Steps so far, as planners count them."""
        return self.begun

    @property
    def all_in_flight(self) -> bool:
        """Whether all that is missing is in flight: never, where there is one walker."""
        return False

    def update_need(self) -> None:
        """Let the requirement look at what was recorded."""
        self.flush()
        self.looked_for = False
        if self.need.update():
            self.curve.append((self.steps, self.need.proportion_met))

    def remember(self) -> dict[str, Any]:
        """Return what a new record has to `recall`, besides the counts: JSON values."""
        return {
            "steps": self.steps,
            "resets": self.resets,
            "quits": self.quits,
            "curve": [list(point) for point in self.curve],
            "found": None if self.found is None else list(self.found),
            "collected": self.need.collected,
            "waived": [[s, why] for s, why in self.need.waived.items()],
        }

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Be as the record that remembered this; everything is counted already."""
        self.need.recall({int(s): str(why) for s, why in memory["waived"]}, int(memory["collected"]))
        self._used, self.looked_for = self.model.states.used, False
        self.steps, self.resets, self.quits = (int(memory[name]) for name in ("steps", "resets", "quits"))
        self.curve = [(int(step), float(proportion)) for step, proportion in memory["curve"]]
        if memory["found"] is not None:
            state, action, next_state, reward, step = memory["found"]
            self.found = Found(int(state), int(action), int(next_state), float(reward), int(step))

    def waive(self, states: dict[int, str]) -> None:
        """Ask nothing of these states any more, for the reasons given."""
        self.need.waive(states)

    def step(
        self,
        row: int,
        key: Any,
        reward: float,
        terminated: bool,
        actions: Sequence[int] | None = None,
        truncated: bool = False,
    ) -> int:
        """Write one step, and return the state it led to: for an ending, the reset.

        Parameters
        ----------
        row
            The row that was taken.
        key
            Stands for the observation that it led to (`EmpiricalModel.locate`).
        reward, terminated, truncated
            What came with it; being cut off is no part of the transition, but of the journal.
        actions
            The actions offered there; None: all.
        """
        model = self.model
        if terminated or truncated:
            model.ended = True
        if terminated:
            return self._end(row, key, reward)
        if not model.all_actions:
            row = self._make_room(actions, row)
        s_next: int = model.states.live(key)
        if model.closed:
            model.check(row, s_next)
        if s_next < 0 or not model.is_discovered[s_next]:
            s_next = self.arrive_at(key, actions)
        elif actions is not None or model.masked or not model.has_offered(s_next):  # those of data have not
            self.offer(s_next, actions)
        self._note_step(row, s_next, reward, TRUNCATED if truncated else 0)
        return s_next

    def _end(self, row: int, key: Any, reward: float) -> int:
        model = self.model
        if model.resets == "never":
            what = (
                "the system crashed at" if key is CRASH else f"an episode ended with {model.states.shown(key)!r:.80} at"
            )
            raise GosprlError(
                f"resets: expected no ending with resets='never', but {what} step {self.steps + 1}; leave out resets=, "
                "or give 'terminal'"
            )
        final = self.end_at(key)
        model.check(row, final)
        self._note_step(row, final, reward, flags_of(key, terminated=True))
        self.pass_by(int(model.rows.ptr[final]), model.states.reset)
        return model.states.reset

    def end_at(self, key: Any) -> int:
        """Return the final state of an observation, added if it is new."""
        final = self.model.final(key)
        self.take_size()
        return final

    def arrive_at(self, key: Any, actions: Sequence[int] | None = None) -> int:
        """Return the live state of an observation, discovered if it is new."""
        self._make_room(actions)
        s = self.model.locate(key, actions)
        self.take_size()
        if self.journal is not None:
            self.journal.offer(s, actions)
        self.need.take_offered(s)
        return s

    def offer(self, s: int, actions: Sequence[int] | None) -> None:
        """Write which actions a discovered state offers now."""
        self._make_room(actions)
        if self.model.offer(s, actions):
            self.need.take_offered(s)
        if self.journal is not None:
            self.journal.offer(s, actions)

    def reset(self, s: int) -> None:
        """Write that a reset led to s: a sample of the law of the start, but no step."""
        if self.journal is not None:
            self.journal.reset(s)
        reset = self.model.states.reset
        if reset >= 0:
            self.pass_by(int(self.model.rows.ptr[reset]), s)

    def pass_by(self, row: int, s_next: int, reward: float = 0.0) -> None:
        """Write a transition that is no step: to the reset, or from there; or one whose step is written already."""
        self.model.check(row, s_next)
        self.note(row, s_next, reward)

    def _make_room(self, actions: Sequence[int] | None, row: int = 0) -> int:
        """Have rows for these actions, where their number is not known; return the number that `row` has then."""
        model, before = self.model, self.model.rows
        if model.all_actions or not actions or max(actions) < model.num_actions:
            return row
        self.flush()  # rows get other numbers
        model.widen(1 + max(actions))
        self.take_size()
        s = int(before.state[row])
        return int(model.rows.ptr[s]) + row - int(before.ptr[s])

    def take_size(self) -> None:
        """Let the need have as many states and rows as the model."""
        before, self._used = self._used, self.model.states.used
        if self._used != before:  # the state that stood for what is not discovered is another now
            self.looked_for = self.looked_for or bool(self.need.state[before] > 0)
        if len(self.need.pair) != len(self.model.rows):
            self.flush()
            self.need.resize()
        self.need.move_waiver(before, self._used)

    def observe(self, row: int, s_next: int, reward: float) -> None:
        """Write a transition that was made elsewhere."""
        self.model.check(row, s_next)
        self._note_step(row, s_next, reward)
        self.flush()

    def walk(self, walked: int, events: NDArray[np.int64]) -> None:
        """Write what is not yet written of a compiled walk: its steps, and (step, states unmet) [n, 2] at changes."""
        if len(events):
            self._add_to_curve([(self.steps + step, unmet) for step, unmet in events.tolist()])
        self.steps += walked

    def find(self, row: int, s_next: int, reward: float) -> None:
        """Note that the last step brought a reward above the threshold."""
        self.found = Found(*self.model.rows.pair(row), s_next, reward, self.steps)

    def visits(self, row: int) -> int:
        """N of a row, with what is noted and not yet counted."""
        return int(self.model.counts.visits[row]) + self._fresh.get(row, 0)

    def visits_of(self, begin: int, end: int) -> list[int]:
        """Return the same for the rows begin .. end - 1."""
        fresh, visits = self._fresh, self.model.counts.visits[begin:end].tolist()
        return [n + fresh.get(row, 0) for row, n in enumerate(visits, begin)] if fresh else visits

    def visits_and_needs(self, begin: int, end: int) -> tuple[list[int], list[int]]:
        """Return (visits, samples needed) of the rows begin .. end - 1."""
        return self.visits_of(begin, end), self.need.pair[begin:end].tolist()

    def _note_step(self, row: int, s_next: int, reward: float, flags: int = 0) -> None:
        low, high = self.rewards
        if not low <= reward <= high:
            raise self._bad_reward(row, reward)
        if self.journal is not None:
            self.journal.step(row, s_next, reward, flags)
        self.steps += 1
        self.note(row, s_next, reward)
        if reward > self.threshold and self.found is None:
            self.find(row, s_next, reward)

    def note(self, row: int, s_next: int, reward: float) -> None:
        """Take in a transition that was checked, to be counted later."""
        i, fresh = self._noted, self._fresh
        self._noted_rows[i], self._noted_next[i] = row, s_next
        self._noted_rewards[i], self._noted_steps[i] = reward, self.steps
        self._noted = i + 1
        fresh[row] = fresh.get(row, 0) + 1
        if i + 1 == BUFFER:
            self.flush()

    def know_what_is_met(self) -> None:
        """Let the need be up to date with what was noted."""
        self.flush()

    def flush(self) -> None:
        """Count what was noted."""
        n = self._noted
        if n:
            self._noted = 0
            self._fresh.clear()
            self._count(self._noted_rows[:n], self._noted_next[:n], self._noted_rewards[:n], self._noted_steps[:n])

    def recount(
        self,
        rows: NDArray[np.int64],
        s_next: NDArray[np.int64],
        rewards: NDArray[np.float64],
        are_steps: NDArray[np.bool_],
    ) -> None:
        """Count transitions [n] that a journal already has; those that are no steps lead to the reset or from there."""
        steps = self.steps + np.cumsum(are_steps)
        if len(rows):
            self.steps = int(steps[-1])
            self._count(rows, s_next.astype(np.int32), rewards, steps)

    def _count(
        self,
        rows: NDArray[np.int64],
        s_next: NDArray[np.int32],
        rewards: NDArray[np.float64],
        steps: NDArray[np.int64],
    ) -> None:
        from gosprl import _kernels

        events = np.empty((len(rows), 2), dtype=np.int64)
        done = noted = 0
        while done < len(rows):
            done, noted = _kernels.note_many(
                *(self.model.counts, self.need.ledger, rows, s_next, rewards, steps),
                *(events, done, noted),
            )
            if done < len(rows):
                if self.model.closed:  # only if that happened after it was noted
                    raise self.model.foreign(int(rows[done]), int(s_next[done]))
                self.model.grow(int(self.model.counts.length[rows[done]]))
        if noted:
            self._add_to_curve(events[:noted].tolist())

    def _add_to_curve(self, events: Iterable[Sequence[int]]) -> None:
        known, waived = self.need.num_states, self.need.unmet_waived
        self.curve.extend((step, (known - waived - unmet) / known) for step, unmet in events)

    def _bad_reward(self, row: int, reward: float) -> InputError:
        (low, high), (s, a) = self.rewards, self.model.rows.pair(row)
        pair = f"({self.model.states.name(s)}, {a})"
        if not math.isfinite(reward):
            return InputError(f"rewards: expected finite numbers, got {reward} at (s, a) = {pair}")
        return InputError(
            f"rewards: expected rewards in [{low:g}, {high:g}], got {reward} at (s, a) = {pair}; if they are "
            "in [low, high], let the system return (reward - low) / (high - low), of an environment with "
            "gymnasium.wrappers.TransformReward"
        )
