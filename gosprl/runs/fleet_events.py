"""The events of a fleet's log, as its learner took them: rows, and what happened between them (`gosprl.runs.notes`)."""

from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.journal import CRASHED, TERMINATED, TRUNCATED, UNKNOWN
from gosprl.fleet.orders import Joined, Late, Lost, Order, Report, Stopped
from gosprl.fleet.replayed import Happened
from gosprl.model.states import CRASH
from gosprl.runs.events import Columns
from gosprl.runs.files import Damaged
from gosprl.runs.names import Names
from gosprl.runs.notes import JOINED, KILLED, LEFT, Aside, Notes, Open
from gosprl.runs.playback import Differs
from gosprl.runs.reading import Contents


class Row(NamedTuple):
    """A row of the log."""

    walker: int
    number: int  # of its order
    state: int
    action: int
    next_state: int
    reward: float
    flags: int


class FleetEvents:
    """Reads the events of a leg of a fleet, one by one.

    Parameters
    ----------
    contents, names
        The log, and what its numbers stand for.
    begin, end
        The leg: its rows are begin .. end - 1.

    Attributes
    ----------
    in_flight
        What was in flight at the end of the last batch that was read.
    """

    def __init__(self, contents: Contents, names: Names, begin: int, end: int) -> None:
        self._contents, self._names, self._begin, self._end = contents, names, begin, end
        self._walkers: dict[int, int] = {}  # number in the log -> number of the walker, never used before
        self.in_flight: tuple[Open, ...] = ()

    def __iter__(self) -> Iterator[Happened]:
        """Yield everything that happened, in order."""
        fresh = count()
        for place, aside, row in self._all():
            if aside is None:
                assert row is not None
                yield self._of_row(place, row)
            elif aside.what == JOINED:
                self._walkers[aside.walker] = next(fresh)
                yield Happened(place, Joined(self._walkers[aside.walker]), None)
            elif aside.what == LEFT:
                lost = Lost(self.walker(place, aside.walker), "it left")
                yield Happened(place, lost, None if row is None else self._order(place, row))
            else:
                yield Happened(place, Stopped(aside.what == KILLED), None)

    def _all(self) -> Iterator[tuple[int, Aside | None, Row | None]]:
        """Yield rows and asides; that a walker left, and the row that gives up its order, together."""
        for first, columns, notes in batches_of_leg(self._contents, self._begin, self._end):
            asides = deque(() if notes is None else notes.events)
            for place, row in enumerate(_rows(first, columns), first):
                aside = None
                while asides and asides[0].row <= place:
                    aside = asides.popleft()
                    if aside.what == LEFT and aside.walker == row.walker and row.flags & UNKNOWN:
                        break
                    yield place, aside, None
                    aside = None
                yield place, aside, row
            for aside in asides:
                yield aside.row, aside, None
            self.in_flight = self.in_flight if notes is None else notes.in_flight

    def walker(self, place: int, slot: int) -> int:
        """Return the walker that has a number in the log now."""
        if slot not in self._walkers:
            raise Differs(place, f"walker {slot} has not joined")
        return self._walkers[slot]

    def _order(self, place: int, row: Row) -> Order:
        return Order(row.number, self.walker(place, row.walker), row.action)

    def _of_row(self, place: int, row: Row) -> Happened:
        order = self._order(place, row)
        if row.flags & UNKNOWN:
            return Happened(place, Late(order.walker), order)
        terminated, truncated = bool(row.flags & TERMINATED), bool(row.flags & TRUNCATED)
        try:
            key = CRASH if row.flags & CRASHED else self._names.key(row.next_state)
            offered = None if terminated else self._names.offered(row.next_state, place)
        except ValueError as error:
            raise Differs(place, str(error)) from None
        report = Report(row.number, order.walker, key, row.reward, terminated, truncated, offered)
        return Happened(place, report, order)


def batches_of_leg(
    contents: Contents, begin: int, end: int
) -> Iterator[tuple[int, dict[str, NDArray[Any]], Notes | None]]:
    """Yield (number of its first row, columns, notes) of the batches of a leg: every leg begins with a new batch."""
    for first, columns, notes in contents.noted(begin):
        rows = len(columns["flags"])
        if any(first < border < first + rows for border in (begin, end)):
            raise Damaged("log", None, f"a leg begins inside of the batch with the rows {first} to {first + rows - 1}")
        if (begin <= first < end) if rows else (begin < first <= end):
            yield first, columns, notes


def numbers(first: int, columns: Columns) -> NDArray[np.int64]:
    """Return the numbers of the orders [n] that rows are about; `first` is the number of the first row."""
    order: NDArray[np.int64] = columns["order"].astype(np.int64)
    return order + np.arange(first, first + len(order))


def _rows(first: int, columns: Columns) -> Iterator[Row]:
    parts = (columns[name].tolist() for name in ("state", "action", "next_state", "reward", "flags"))
    for row in zip(columns["walker"].tolist(), numbers(first, columns).tolist(), *parts, strict=True):
        yield Row(*row)
