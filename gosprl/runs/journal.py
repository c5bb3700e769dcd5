"""DiskJournal: writes the events of a run to its log, in a thread of its own while the walk goes on.

The walking thread only appends to a list. The writing thread takes the list when a sync is due, or after the stated
number of seconds: earlier steps are saved while a slow system makes its next one. Encoding, hashing and syncing release
Python's lock, so the walk continues meanwhile. What is left at the end is written by the walking thread itself: it has
nothing else to do, and handing over takes time.

A checkpoint is what a collector remembers where its planner was renewed (`Collector.recall`). The system's state is
saved with the number of events before it. Both are written when these events are acknowledged.
"""

import _thread
import base64
import fnmatch
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.journal import Journal, rewards_of
from gosprl.errors import GosprlError
from gosprl.model.content import Content
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.states import CRASH
from gosprl.progress import interrupts_deferred
from gosprl.runs.appending import Lost
from gosprl.runs.events import RESET
from gosprl.runs.files import write_json
from gosprl.runs.keys import plain_of, text_of
from gosprl.runs.locks import LOCK
from gosprl.runs.manifests import CHECKPOINTS
from gosprl.runs.names import ACTION, OFFER, STATE, Names
from gosprl.runs.notes import Notes
from gosprl.runs.places import Place, is_there
from gosprl.runs.writing import LogWriter
from gosprl.systems.base import System

KEPT = 2  # the newest checkpoints
BACKLOG = 10  # syncs that may wait to be written before the walk waits
SYSTEM_STATE = "system.json"
NO_STRETCH: Mapping[str, int] = MappingProxyType({})


class Walked(NamedTuple):
    """A part of a compiled walk."""

    rows: NDArray[np.int64]  # [n]
    s: int  # where it ended
    means: NDArray[np.float64]  # [R] of the rewards
    drawn: NDArray[np.float64] | None  # [n] as in `Journal.walk`


@dataclass
class Pending:
    """What the writing thread writes next, in this order, and then acknowledges."""

    events: list[Any] = field(default_factory=list)  # tuples (state, action, next state, reward, flags), and Walked
    names: list[tuple[int, str, int, str, str, list[int] | None]] = field(default_factory=list)
    checkpoint: tuple[int, dict[str, Any]] | None = None
    state: tuple[int, Any] | None = None  # of the system
    notes: list[tuple[int, Notes]] = field(default_factory=list)  # of a fleet: (rows before the end of a batch, notes)

    def __bool__(self) -> bool:
        return bool(self.events or self.names or self.checkpoint or self.state)


def _nothing() -> None:
    pass


class DiskJournal(Journal):
    """Writes to the log of a run.

    Parameters
    ----------
    directory, run
        Where the run is, and its id.
    model
        The model to which the states and rows of events belong.
    names
        What numbers stand for so far; new ones are added.
    events, steps
        How many there are already.
    at
        Number of the state in which the log ends; -1 if it is empty.
    sync_steps, sync_seconds
        When a sync is due.
    state_at_once
        Whether a sync is due at the beginning, too: it saves the first state of the system.
    stretch
        What checkpoints say of the run besides the number of events: how often it has begun and gone on.
    """

    def __init__(
        self,
        directory: Place,
        run: str,
        model: EmpiricalModel,
        names: Names,
        events: int = 0,
        steps: int = 0,
        at: int = -1,
        sync_steps: int = 100_000,
        sync_seconds: float = 1.0,
        state_at_once: bool = False,
        stretch: Mapping[str, int] = NO_STRETCH,
    ) -> None:
        self._directory, self._model, self._names = directory, model, names
        self._said = {"run": run, **stretch}  # in what is saved beside the log
        self._writer: LogWriter | None = None
        self.events, self.steps, self._at = events, steps, at
        self.saved = steps
        self._every, self._seconds = sync_steps, sync_seconds
        self._state_of, self._action_of = (
            part.astype(np.int32) for part in (model.known_rows.state, model.known_rows.action)
        )
        self._numbers: list[int] = []  # of the model's states, by index
        self._by_key = {key: number for number, key in enumerate(names.keys)}
        self._offers: dict[int, Sequence[int] | None] = dict(names.last_offers())
        self._freeze = Content().freeze
        self._lock = threading.Condition()  # of what is pending; the writing thread takes it all at once
        self._pending = Pending()
        self._asked_at, self._since = steps, time.monotonic()  # steps and time at the last sync
        self._asked = False  # whether a sync was requested
        self._never_asked = state_at_once
        self._ended = False  # whether no more events follow
        self._prepare: Callable[[], LogWriter] | None = None  # opens the log; None before `start`
        self._writing = threading.Lock()  # held by the thread that writes
        self._error: BaseException | None = None
        self._lost: str | None = None  # a file that was removed or replaced meanwhile
        for s in range(model.states.used if not model.states.fixed else 0):  # those of data: exports name them
            self._number(s)

    def start(self, prepare: Callable[[], LogWriter]) -> None:
        """Begin to write, to the log that `prepare` opens when there is something to write.

        Until then the thread sleeps: in a run of milliseconds it would only take Python's lock from the walk.
        """
        self._prepare = prepare
        _thread.start_new_thread(self._write_meanwhile, ())  # Thread.start would wait until it runs

    @property
    def digest(self) -> str:
        """The digest of the whole log."""
        assert self._writer is not None
        return self._writer.digest

    @property
    def due(self) -> bool:  # type: ignore[override]
        """Whether the stated steps or seconds have passed since the last sync, or writing has failed."""
        if self._error is not None or self._never_asked or self.steps - self._asked_at >= self._every:
            return True
        return self.steps > self._asked_at and time.monotonic() - self._since >= self._seconds

    def _number(self, s: int) -> int:
        """Return the number of a state of the model, a new one if its observation is new."""
        while len(self._numbers) <= s:
            self._numbers.append(self._number_of(len(self._numbers)))
        return self._numbers[s]

    def _number_of(self, s: int) -> int:
        states = self._model.states
        if s == states.reset:
            return -1
        key = states.key(s)
        if key is CRASH:
            return -1
        if states.fixed:
            return int(key)
        number = self._by_key.get(key)
        if number is None:
            number = len(self._by_key)
            text = text_of(key)
            self._by_key[key] = number
            self._pending.names.append((self.events, STATE, number, text, plain_of(states.shown(key)), None))
        return number

    def step(self, row: int, s_next: int, reward: float, flags: int) -> None:
        """Write a step."""
        rows = self._model.rows
        with self._lock:
            state, number = self._number(int(rows.state[row])), self._number(s_next)
            self._pending.events.append((state, int(rows.action[row]), number, reward, flags))
            self.events += 1
            self.steps += 1
            self._at = number

    def reset(self, s: int) -> None:
        """Write that a reset led to s."""
        with self._lock:
            number = self._number(s)
            self._pending.events.append((self._at, -1, number, 0.0, RESET))
            self.events += 1
            self._at = number

    def walk(
        self, rows: NDArray[np.int64], s: int, means: NDArray[np.float64], drawn: NDArray[np.float64] | None
    ) -> None:
        """Write a compiled walk."""
        if len(rows):
            with self._lock:
                self._pending.events.append(Walked(rows, s, means, drawn))
                self.events += len(rows)
                self.steps += len(rows)
                self._at = s

    def offer(self, s: int, actions: Sequence[int] | None) -> None:
        """Write which actions a state offers, if that is not what it offered last."""
        with self._lock:
            number, model = self._number(s), self._model
            if not model.all_actions:
                for index in range(len(self._names.actions), len(model.actions)):
                    key, shown = self._freeze(model.actions[index]), plain_of(model.actions[index])
                    self._pending.names.append((self.events, ACTION, index, text_of(key), shown, None))
                    self._names.actions.append(key)
            if self._offers.get(number) != actions:
                self._offers[number] = actions
                offered = None if actions is None else [int(a) for a in actions]
                self._pending.names.append((self.events, OFFER, number, "null", "", offered))

    def checkpoint(self, memory: dict[str, Any]) -> None:
        """Save what a collector remembers now, with the next sync."""
        with self._lock:
            self._pending.checkpoint = (self.events, memory)

    def sync(self, system: System) -> None:
        """Have everything so far written, without waiting for it; raise what has failed since the last call."""
        self.check()
        self._request(system.get_state())

    def _request(self, state: Any) -> None:
        """Have everything so far written, and the state of the system, if there is one."""
        self.check()
        with self._lock:
            if state is not None:
                self._pending.state = (self.events, state)
            self._asked, self._asked_at, self._since = True, self.steps, time.monotonic()
            self._never_asked = False
            self._lock.notify_all()
            while self.steps - self.saved > BACKLOG * self._every and self._error is None:
                self._lock.wait(0.1)

    def check(self) -> None:
        """Raise the error of the writing thread, if there is one."""
        if self._error is None:
            return
        if self._lost is not None:
            raise GosprlError(
                f"out: {self._directory} or {self._lost} in it was removed or replaced while the run wrote to "
                "it: steps that were saved there are lost, unless there is a copy; give another directory"
            ) from self._error
        raise GosprlError(
            f"out: {self._directory} could not be written: {self._error}; the first {self.saved:,} steps are saved "
            "there, and gosprl resume goes on from them"
        ) from self._error

    def close(self, last: Callable[[], None] = _nothing) -> None:
        """Write what is left, then call `last`; raise what has failed.

        Ctrl-C waits until that is done; a second one does not.
        """
        if self._prepare is None:
            return
        self._ended = True
        with interrupts_deferred(), self._writing:
            if self._error is None:
                try:
                    log = self._log()
                    self._write(log, self._taken(), log.close)
                    last()
                except Exception as error:
                    self._fail(error)
        with self._lock:
            self._lock.notify_all()  # the other thread ends
        self.check()

    def _log(self) -> LogWriter:
        """Return the log, opened by the thread that writes first."""
        if self._writer is None:
            assert self._prepare is not None
            self._writer = self._prepare()
        return self._writer

    def _taken(self) -> Pending:
        """Return what is to be written now."""
        with self._lock:
            pending, self._pending = self._pending, Pending()
            self._asked = False
        return pending

    # the writing thread

    def _write_meanwhile(self) -> None:
        try:
            while self._waited():
                with self._writing:
                    if not self._ended and (pending := self._taken()):
                        log = self._log()
                        self._write(log, pending, log.sync)
                with self._lock:
                    self._lock.notify_all()  # the walk may wait for this write
        except BaseException as error:  # the walking thread raises it
            self._fail(error)
            with self._lock:
                self._lock.notify_all()

    def _fail(self, error: BaseException) -> None:
        """Remember an error, and whether a file is not there any more: nothing is saved then."""
        lost = error.filename if isinstance(error, Lost) else None
        if lost is None and self._writer is not None:
            lost = self._writer.lost()
        if lost is None and not is_there(self._directory / LOCK):  # the directory was removed as a whole
            lost = LOCK
        self._lost, self._error = lost, error

    def _waited(self) -> bool:
        """Wait until something is to be written; False if no more events follow."""
        with self._lock:
            if not self._asked and not self._ended:
                self._lock.wait(self._seconds)  # then write without a request: a step may take hours
            return not self._ended

    def _write(self, writer: LogWriter, pending: Pending, acknowledge: Callable[[], Any]) -> None:
        if pending.names:
            writer.append_names(pending.names)
        steps = self._append(writer, pending)
        acknowledge()
        self.saved += steps
        if pending.checkpoint is not None:
            self._write_checkpoint(*pending.checkpoint)
        if pending.state is not None:
            events, state = pending.state
            value = {"bytes": base64.b64encode(state).decode()} if isinstance(state, bytes) else {"json": state}
            write_json(self._directory / CHECKPOINTS / SYSTEM_STATE, {**self._said, "events": events, **value})

    def _append(self, writer: LogWriter, pending: Pending) -> int:
        """Append what is pending to the log, and return how many steps there are."""
        columns = self._columns(pending.events)
        if len(columns["flags"]):
            writer.append(columns)
        return int(np.count_nonzero((columns["flags"] & RESET) == 0))

    def _write_checkpoint(self, events: int, memory: dict[str, Any]) -> None:
        folder = self._directory / CHECKPOINTS
        write_json(folder / f"{events:015d}.json", {**self._said, "events": events, "memory": memory})
        names = sorted(entry.name for entry in folder.iterdir())
        for old in (*fnmatch.filter(names, "0*.json")[:-KEPT], *fnmatch.filter(names, "0*.tmp")):
            (folder / old).unlink()

    def _columns(self, events: list[Any]) -> dict[str, NDArray[Any]]:
        """Return what was written as columns of the log."""
        parts = [
            self._of_walks(list(group)) if compiled else _of_tuples(list(group))
            for compiled, group in groupby(events, lambda event: type(event) is Walked)
        ]
        if len(parts) == 1:
            return parts[0]
        parts = parts or [_of_tuples([])]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _of_walks(self, walks: list[Walked]) -> dict[str, NDArray[Any]]:
        """Return compiled walks, each of which begins where the one before ended."""
        rows = np.concatenate([walk.rows for walk in walks])
        state = self._state_of.take(rows)
        following = np.empty_like(state)
        following[:-1], following[-1] = state[1:], walks[-1].s
        return {
            "state": state,
            "action": self._action_of.take(rows),
            "next_state": following,
            "reward": rewards_of(rows, walks[0].means, _joined([walk.drawn for walk in walks])),
            "flags": np.zeros(len(rows), dtype=np.uint8),
        }


def _joined(parts: list[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
    """Return arrays as one; None if there are none, as of rewards that are not drawn."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


def _of_tuples(events: list[tuple[int, int, int, float, int]]) -> dict[str, NDArray[Any]]:
    state, action, following, reward, flags = zip(*events, strict=True) if events else ((), (), (), (), ())
    return {
        "state": np.array(state, dtype=np.int32),
        "action": np.array(action, dtype=np.int32),
        "next_state": np.array(following, dtype=np.int32),
        "reward": np.array(reward, dtype=np.float64),
        "flags": np.array(flags, dtype=np.uint8),
    }
