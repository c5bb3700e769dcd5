"""FleetDiskJournal: writes the events of a fleet to the log of a run.

Walkers have numbers in the log that are used again when they have left, since a column of 16 bits holds them. What is
in flight is noted where the writing thread takes what is pending, so it belongs exactly to the rows before it.
"""

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.journal import LATE, UNKNOWN
from gosprl.errors import GosprlError
from gosprl.fleet.journal import FleetJournal
from gosprl.fleet.orders import RESET as RESET_ORDER
from gosprl.fleet.orders import Order
from gosprl.runs.events import RESET
from gosprl.runs.journal import DiskJournal, Pending
from gosprl.runs.notes import JOINED, LEFT, MOST_WALKERS, STOPPED, Aside, Notes, Open
from gosprl.runs.writing import LogWriter
from gosprl.systems.base import System

MOST_ROWS = 2**19  # of a batch: what is pending beyond that is a batch of its own


class FleetDiskJournal(DiskJournal, FleetJournal):
    """Writes to the log of a run of a fleet; `parameters` are those of `DiskJournal`."""

    def __init__(self, *parameters: Any, **others: Any) -> None:
        super().__init__(*parameters, **others)
        self._slots: dict[int, int] = {}  # walker -> its number in the log
        self._free: list[int] = []  # numbers that can be used again
        self._places: dict[int, int] = {}  # number in the log -> state where the walker is
        self._open: dict[int, Open] = {}  # in the order of issue
        self._asides: list[Aside] = []
        self._leaving: int | None = None  # a walker that is gone; its open order may still be given up
        self._is_left_written = False
        self._notes: list[tuple[int, Notes]] = []  # (number of pending rows, notes) of batches that are complete
        self._about: tuple[Order, int] | None = None  # the order that the next event is about, and its flags
        self._states: dict[int, int] = {}  # order given up -> the state in which its action was taken

    def joined(self, walker: int) -> None:
        """Write that there is one more walker."""
        with self._lock:
            self._write_departure()
            slot = heapq.heappop(self._free) if self._free else len(self._slots)
            if slot >= MOST_WALKERS:
                raise GosprlError(f"out: a log holds at most {MOST_WALKERS} walkers at a time")
            self._slots[walker], self._places[slot] = slot, -1
            self._asides.append(Aside(self.events, JOINED, slot))

    def left(self, walker: int) -> None:
        """Write that a walker is gone; with the next event, which may be that its order is given up."""
        with self._lock:
            self._write_departure()
            self._leaving = walker

    def _write_departure(self) -> None:
        """Write that a walker left, now that nothing more is said of it."""
        if self._leaving is not None:
            slot = self._slots.pop(self._leaving)
            if not self._is_left_written:
                self._asides.append(Aside(self.events, LEFT, slot))
            heapq.heappush(self._free, slot)
            self._leaving, self._is_left_written = None, False

    def stopped(self) -> None:
        """Write that no more orders are issued from here on."""
        with self._lock:
            self._write_departure()
            self._asides.append(Aside(self.events, STOPPED, 0))

    def issue(self, order: Order) -> None:
        """Write that an order is open."""
        with self._lock:
            self._write_departure()
            slot = self._slots[order.walker]
            self._open[order.number] = Open(order.number, slot, self._places[slot], order.action)

    def answer(self, order: Order, flags: int = 0) -> None:
        """Let the next step or reset that is written be the outcome of an order, with further flags."""
        self._about = (order, flags)

    def give_up(self, order: Order) -> None:
        """Write that nobody waits for the outcome of an order any more, and that it has none."""
        with self._lock:
            flags = UNKNOWN | RESET if order.action == RESET_ORDER else UNKNOWN
            state = self._open[order.number].state
            self._add(order, (state, order.action, -1, 0.0), flags)

    def step(self, row: int, s_next: int, reward: float, flags: int) -> None:
        """Write a step."""
        (order, more), self._about = self._about_now(), None
        with self._lock:
            state = self._number(int(self._model.rows.state[row]))
            self._add(order, (state, order.action, self._number(s_next), reward), flags | more)

    def reset(self, s: int) -> None:
        """Write that a reset led to s."""
        (order, more), self._about = self._about_now(), None
        with self._lock:
            state = self._states.pop(order.number, -1) if more & LATE else self._open[order.number].state
            self._add(order, (state, RESET_ORDER, self._number(s), 0.0), RESET | more)

    def _about_now(self) -> tuple[Order, int]:
        if self._about is None:
            raise GosprlError("an event of a fleet is about no order")
        return self._about

    def _add(self, order: Order, event: tuple[int, int, int, float], flags: int) -> None:
        if self._leaving != order.walker:
            self._write_departure()
        slot, following = self._slots[order.walker], event[2]
        if self._leaving == order.walker and not self._is_left_written:
            self._asides.append(Aside(self.events, LEFT, slot))
            self._is_left_written = True
        self._pending.events.append((*event, flags, slot, order.number - self.events))
        self.events += 1
        self.steps += not flags & (RESET | LATE)
        self._at = self._places[slot] = following
        self._open.pop(order.number, None)
        if flags & UNKNOWN and flags & RESET:
            self._states[order.number] = event[0]
        if len(self._pending.events) - (self._notes[-1][0] if self._notes else 0) >= MOST_ROWS:
            self._notes.append((len(self._pending.events), self._noted()))

    def _noted(self) -> Notes:
        asides, self._asides = tuple(self._asides), []
        return Notes(tuple(self._open.values()), asides)

    def sync(self, system: System) -> None:
        """Have everything so far written, without waiting for it; raise what has failed since the last call."""
        self._request(None)

    def checkpoint(self, memory: dict[str, Any]) -> None:
        """Nothing: a fleet that is resumed plans anew."""

    def _taken(self) -> Pending:
        """Take what is pending, with what is in flight after it."""
        with self._lock:
            pending = super()._taken()
            if self._ended:
                self._write_departure()
            pending.notes, self._notes = self._notes, []
            rows, noted = len(pending.events), pending.notes[-1][0] if pending.notes else 0
            if rows > noted or (self._ended and self.events > 0 and (self._open or self._asides)):
                pending.notes.append((rows, self._noted()))
        return pending

    def _append(self, writer: LogWriter, pending: Pending) -> int:
        begin = steps = 0
        for end, notes in pending.notes:
            columns = _columns(pending.events[begin:end])
            writer.append(columns, notes)
            steps += int(np.count_nonzero((columns["flags"] & (RESET | LATE)) == 0))
            begin = end
        return steps


def _columns(events: list[tuple[int, int, int, float, int, int, int]]) -> dict[str, NDArray[Any]]:
    names = ("state", "action", "next_state", "reward", "flags", "walker", "order")
    types = (np.int32, np.int32, np.int32, np.float64, np.uint8, np.uint16, np.int32)
    parts = zip(*events, strict=True) if events else ((),) * len(names)
    return {name: np.array(part, dtype) for name, part, dtype in zip(names, parts, types, strict=True)}
