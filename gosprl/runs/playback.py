"""Playback: a run made again from its log, with the same collector, planner and rules.

A simulated table makes its steps again, compiled, and each is compared with the log (`Comparison`). Any other system is
replaced by its log (`Recorded`): the planner's choices are compared, outcomes are those that were observed. If all
agree, the collector ends with the same counts, confidence sets, accounts and plans.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.journal import CRASHED, TERMINATED, TRUNCATED, Journal, rewards_of
from gosprl.collecting.outcome import Outcome, Paused, Start
from gosprl.collecting.requirements import Requirement
from gosprl.errors import GosprlError
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.states import CRASH
from gosprl.runs.events import RESET
from gosprl.runs.names import Names
from gosprl.systems.base import System


class Differs(GosprlError):
    """A run made again does not do what its log says.

    Attributes
    ----------
    event
        The number of the first event that differs.
    """

    def __init__(self, event: int, what: str) -> None:
        super().__init__(f"event {event} of the log: {what}")
        self.event = event


class Cursor:
    """Reads the events of a log one by one, or many at a time, in bounded memory."""

    def __init__(self, batches: Iterator[dict[str, NDArray[Any]]], begin: int) -> None:
        self._batches, self.event = batches, begin
        self._end: int | None = None
        self._batch: dict[str, NDArray[Any]] = {}
        self._lists: tuple[list[Any], ...] = ()
        self._place = self._length = 0

    def _fill(self) -> bool:
        """Whether there is another event."""
        while self._place >= self._length:
            batch = next(self._batches, None)
            if batch is None:
                return False
            self._batch, self._lists = batch, ()
            self._place, self._length = 0, len(batch["flags"])
        return True

    def stop_at(self, event: int) -> None:
        """Treat this event as the end of the log, until another end is set."""
        self._end = event

    def left(self, end: int) -> int:
        """Return how many events come before `end`."""
        return end - self.event

    def peek(self) -> tuple[int, int, int, float, int] | None:
        """Return the next event (state, action, next state, reward, flags), None at the end."""
        if self.event == self._end or not self._fill():
            return None
        if not self._lists:
            names = ("state", "action", "next_state", "reward", "flags")
            self._lists = tuple(self._batch[name].tolist() for name in names)
        state, action, following, reward, flags = self._lists
        i = self._place
        return state[i], action[i], following[i], reward[i], flags[i]

    def advance(self) -> None:
        """Go to the next event."""
        self._place += 1
        self.event += 1

    def take(self, count: int) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the next `count` events as columns, in parts; fewer at the end of the log."""
        while count > 0 and self._fill():
            end = min(self._length, self._place + count)
            part = {name: column[self._place : end] for name, column in self._batch.items()}
            taken = end - self._place
            self._place, self.event, count = end, self.event + taken, count - taken
            yield part


class Recorded(System):
    """A system that repeats the outcomes of a log, and accepts only the actions in it.

    Parameters
    ----------
    cursor
        The log, at the first event to be played.
    names
        What its numbers stand for.
    like
        The system that was walked, or one that stands for it: its model and requirement are used, nothing else.
    """

    def __init__(self, cursor: Cursor, names: Names, like: System) -> None:
        self._cursor, self._names, self._like = cursor, names, like
        self.all_states, self.ends, self.block, self.mdp = like.all_states, like.ends, like.block, like.mdp

    def model(self) -> EmpiricalModel:
        """Return an empty model, as the system's own."""
        return self._like.model()

    def requirement(self, need: Any, model: EmpiricalModel) -> Requirement:
        """Return what the system means by `need`."""
        return self._like.requirement(need, model)

    def reset(self) -> Start:
        """Return where the next reset of the log led."""
        event = self._cursor.peek()
        if event is None:
            raise Paused
        _, _, following, _, flags = event
        if not flags & RESET:
            raise Differs(self._cursor.event, "expected a reset, got a step")
        start = Start(self._key(following), self._offered(following))
        self._cursor.advance()
        return start

    def step(self, action: int) -> Outcome:
        """Return what the next step of the log led to."""
        event = self._cursor.peek()
        if event is None:
            raise Differs(self._cursor.event, "the log ends here, and the run does not")
        _, logged, following, reward, flags = event
        if flags & RESET or logged != action:
            what = "a reset" if flags & RESET else f"action {logged}"
            raise Differs(self._cursor.event, f"the planner chooses action {action}, the log has {what}")
        terminated, truncated = bool(flags & TERMINATED), bool(flags & TRUNCATED)
        key = CRASH if flags & CRASHED else self._key(following)
        offered = None if terminated else self._offered(following)
        self._cursor.advance()
        return Outcome(key, reward, terminated, truncated, offered)

    def _key(self, number: int) -> Any:
        try:
            return self._names.key(number)
        except ValueError as error:
            raise Differs(self._cursor.event, str(error)) from None

    def _offered(self, number: int) -> tuple[int, ...] | None:
        try:
            return self._names.offered(number, self._cursor.event)
        except ValueError as error:
            raise Differs(self._cursor.event, str(error)) from None


class Comparison(Journal):
    """Compares the events of a simulated table with its log."""

    def __init__(self, cursor: Cursor, model: EmpiricalModel) -> None:
        self._cursor, self._rows = cursor, model.known_rows

    def step(self, row: int, s_next: int, reward: float, flags: int) -> None:
        """Compare a step."""
        self._compare(np.array([row]), s_next, np.array([reward]))

    def reset(self, s: int) -> None:
        """Compare where the run began."""
        event = self._cursor.peek()
        if event is None or not event[4] & RESET or event[2] != s:
            raise Differs(self._cursor.event, f"the run begins in state {s}, the log says otherwise")
        self._cursor.advance()

    def walk(
        self, rows: NDArray[np.int64], s: int, means: NDArray[np.float64], drawn: NDArray[np.float64] | None
    ) -> None:
        """Compare a compiled walk."""
        self._compare(rows, s, rewards_of(rows, means, drawn))

    def _compare(self, rows: NDArray[np.int64], s: int, rewards: NDArray[np.float64]) -> None:
        state, begin = self._rows.state[rows], self._cursor.event
        made = {
            "state": state,
            "action": self._rows.action[rows],
            "next_state": np.append(state[1:], s),
            "reward": rewards,
            "flags": np.zeros(len(rows)),
        }
        done = 0
        for part in self._cursor.take(len(rows)):
            end = done + len(part["flags"])
            for name, column in made.items():
                differ = np.flatnonzero(part[name] != column[done:end])
                if differ.size:
                    i = int(differ[0])
                    raise Differs(
                        begin + done + i, f"the simulation has {name} {column[done + i]}, the log {part[name][i]}"
                    )
            done = end
        if done < len(rows):
            raise Differs(begin + done, "the log ends here, and the simulation does not")

    def offer(self, s: int, actions: Sequence[int] | None) -> None:
        """Nothing: all actions of a table are known."""

    def sync(self, system: System) -> None:
        """Nothing is written."""

    def checkpoint(self, memory: dict[str, Any]) -> None:
        """Nothing is written."""
