"""Audit of a fleet: whether the events of its log can follow each other, walker by walker.

    a walker joins before its first row, which is a reset, and has no row after it left
    a row begins in the state in which the row before of the same walker ended; after an ending, it is a reset
    every order has one row, of the walker that had it: what it led to, or that nobody waits any more ("unknown")
    an order that was given up may have a second row ("late"), before any other of its walker
    at the end of each batch, the orders with a row and those in flight are all that were issued

As for one walker, this uses no model and no planner.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.journal import CRASHED, LATE, TERMINATED, TRUNCATED, UNKNOWN
from gosprl.runs.events import RESET, Columns
from gosprl.runs.fleet_events import numbers
from gosprl.runs.notes import JOINED, KILLED, LEFT, MOST_WALKERS, Notes, Open

CRASH = TERMINATED | CRASHED
OUTCOMES = (RESET, 0, TERMINATED, TRUNCATED, CRASH)
GIVEN_UP = (UNKNOWN, UNKNOWN | RESET)
KINDS = (*OUTCOMES, *GIVEN_UP, *(LATE | kind for kind in OUTCOMES))
LOST = (UNKNOWN | CRASH, LATE | UNKNOWN | CRASH)  # with lost="state"
GONE, NEW, ALIVE, ENDED, WAITING = range(5)  # what a walker is, by its last row
Mask = NDArray[np.bool_]


class Impossible(Exception):
    """An event cannot be at its place in the log.

    Attributes
    ----------
    event
        Its number.
    what
        Why not.
    """

    def __init__(self, event: int, what: str) -> None:
        super().__init__(f"event {event}: {what}")
        self.event, self.what = event, what


class Before(NamedTuple):
    """The last row of each walker, before rows [n] of the log."""

    status: NDArray[np.int64]
    at: NDArray[np.int64]  # number of the state where it is; where it waits, of that in which it took its action
    number: NDArray[np.int64]  # of its order
    event: NDArray[np.int64]


class FleetAudit:
    """Reads the rows of a leg of a fleet.

    Parameters
    ----------
    leg
        Its entry in the manifest.

    Attributes
    ----------
    unknown
        Samples whose outcomes are unknown by (number of the state, action); resets have (-1, -1).
    in_flight
        The orders that were open at the end of the last batch.
    joined, lost
        Numbers of walkers, and of orders that were given up.
    """

    def __init__(self, leg: Mapping[str, Any]) -> None:
        self._first: int = leg["first"]
        self._anytime = leg["around"]["resets"] == "anytime"
        self._sampled_resets = leg["around"]["resets"] != "never"  # where there are none, a reset is no sample
        self._how = leg["fleet"]["lost"]
        self._kinds = (*KINDS, *LOST) if self._how == "state" else KINDS
        self._walkers = Before(*(np.zeros(MOST_WALKERS, dtype=np.int64) for _ in Before._fields))
        self._next, self._later = self._first, np.zeros(0, dtype=np.int64)  # all orders before have rows; and these
        self._given_up: dict[int, tuple[int, int, int]] = {}  # order -> (state, action, flags)
        self._killed = False
        self.unknown: Counter[tuple[int, int]] = Counter()
        self.in_flight: tuple[Open, ...] = ()
        self.joined = self.lost = 0

    def read(self, event: int, columns: Columns, notes: Notes | None) -> tuple[Mask, NDArray[np.int64]]:
        """Check the rows of a batch; (mask [n] of those that count as samples, number [n] of the walker's row before).

        Parameters
        ----------
        event
            The number of the first row.
        columns, notes
            The batch.
        """
        if notes is None:
            raise Impossible(event, "the batch of a fleet has to say what was in flight at its end")
        rows = len(columns["flags"])
        if any(not event <= aside.row <= event + rows for aside in notes.events):
            raise Impossible(event, "the batch speaks of events outside of it")
        number = numbers(event, columns)
        self._check_kinds(event, columns)
        self._check_open(event, columns, number)
        previous = self._follow(event, columns, number, notes)
        counts = self._count(event, columns, number)
        self._take_numbers(event, columns, number)
        self._check_in_flight(event + max(0, rows - 1), notes)
        return counts, previous

    def end(self, event: int) -> None:
        """Check that nothing was left in flight, where another leg follows."""
        if self.in_flight:
            raise Impossible(event, f"order {self.in_flight[0].number} was in flight, and nobody gave it up")

    def _refuse(self, event: int, wrong: Mask, what: str) -> None:
        if wrong.any():
            raise Impossible(event + int(np.argmax(wrong)), what)

    def _check_kinds(self, event: int, columns: Columns) -> None:
        flags = columns["flags"]
        is_reset, without = (flags & RESET) > 0, np.isin(flags, GIVEN_UP)
        self._refuse(event, ~np.isin(flags, self._kinds), "its flags say what no event of a fleet is")
        self._refuse(event, is_reset != (columns["action"] == -1), "a reset has action -1, and nothing else has")
        self._refuse(
            event, (is_reset | without) & (columns["reward"] != 0), "a reset or an unknown outcome has no reward"
        )
        self._refuse(
            event,
            ((columns["next_state"] == -1) != (without | ((flags & CRASHED) > 0))),
            "a crash and an unknown outcome lead to state -1, and nothing else does",
        )

    def _check_open(self, event: int, columns: Columns, number: NDArray[np.int64]) -> None:
        """Compare rows with the orders that were in flight at the end of the batch before."""
        for order in self.in_flight:
            for i in np.flatnonzero(number == order.number).tolist():
                said = tuple(int(columns[name][i]) for name in ("walker", "state", "action"))
                if said != order[1:]:
                    raise Impossible(event + i, "its order was in flight before, of another walker, state or action")

    def _follow(self, event: int, columns: Columns, number: NDArray[np.int64], notes: Notes) -> NDArray[np.int64]:
        """Follow the walkers; the number [n] of the row before, of the same walker."""
        rows, begin = len(columns["flags"]), 0
        previous = np.full(rows, -1, dtype=np.int64)

        def follow(end: int) -> None:
            nonlocal begin
            if end > begin:
                part = {name: column[begin:end] for name, column in columns.items()}
                previous[begin:end] = self._follow_part(event + begin, part, number[begin:end])
            begin = end

        for aside in notes.events:
            follow(aside.row - event)
            status = self._walkers.status
            if aside.what == JOINED:
                self._check_aside(aside.row, status[aside.walker] == GONE, "a walker joins that is there already")
                status[aside.walker], self._walkers.at[aside.walker] = NEW, -1
                self._walkers.number[aside.walker] = -1
                self.joined += 1
            elif aside.what == LEFT:
                self._check_aside(aside.row, status[aside.walker] != GONE, "a walker leaves that is not there")
                if self._is_loss(columns, begin, aside.walker):
                    follow(begin + 1)
                status[aside.walker] = GONE
            elif aside.what == KILLED:
                self._killed = True
        follow(rows)
        return previous

    def _check_aside(self, row: int, sound: Any, what: str) -> None:
        if not sound:
            raise Impossible(row, what)

    def _is_loss(self, columns: Columns, i: int, walker: int) -> bool:
        """Whether a row gives up the order of a walker that has just left."""
        return i < len(columns["flags"]) and columns["walker"][i] == walker and bool(columns["flags"][i] & UNKNOWN)

    def _follow_part(self, event: int, part: Columns, number: NDArray[np.int64]) -> NDArray[np.int64]:
        """Follow the walkers through rows [n] between which none joins or leaves."""
        flags, walker = part["flags"], part["walker"].astype(np.int64)
        late, given_up = (flags & LATE) > 0, np.isin(flags, (*GIVEN_UP, UNKNOWN | CRASH))
        ended = (flags & (TERMINATED | TRUNCATED)) > 0
        after = Before(
            np.where(given_up, WAITING, np.where(ended, ENDED, ALIVE)),
            np.where(given_up, part["state"], part["next_state"]).astype(np.int64),
            number,
            np.arange(event, event + len(flags)),
        )
        before = self._before(walker, after)
        self._check_walkers(event, part, number, before, late)
        for kept, now in zip(self._walkers, after, strict=True):
            kept[walker] = now  # the last one of each is kept
        return before.event

    def _before(self, walker: NDArray[np.int64], after: Before) -> Before:
        """Return the row before of the same walker, for each row [n]."""
        order = np.argsort(walker, kind="stable")
        is_first = np.append(True, walker[order][1:] != walker[order][:-1])
        out = []
        for kept, now in zip(self._walkers, after, strict=True):
            values = np.append(0, now[order][:-1])
            values[is_first] = kept[walker[order][is_first]]
            column = np.empty_like(values)
            column[order] = values
            out.append(column)
        return Before(*out)

    def _check_walkers(self, event: int, part: Columns, number: NDArray[np.int64], before: Before, late: Mask) -> None:
        flags, status = part["flags"], before.status
        is_reset = (flags & RESET) > 0
        self._refuse(event, status == GONE, "its walker is not there")
        self._refuse(event, (status == NEW) & ~is_reset, "the first event of a walker is a reset")
        self._refuse(event, (status == ENDED) & ~is_reset, "the episode of its walker had ended, and no reset follows")
        if not self._anytime:
            self._refuse(event, (status == ALIVE) & is_reset, "a reset that nothing allows")
        self._refuse(event, late != (status == WAITING), "a late outcome follows an order given up, and nothing else")
        self._refuse(event, part["state"] != before.at, "it does not begin where its walker was")
        self._refuse(event, late & (number != before.number), "it is about another order than its walker has")
        self._refuse(event, ~late & (number <= before.number), "its walker had a later order before")
        if self._killed:
            self._refuse(event, ~np.isin(flags, GIVEN_UP), "the learner was ended before, and this was not given up")

    def _count(self, event: int, columns: Columns, number: NDArray[np.int64]) -> Mask:
        """Take in what was given up and came late; mask [n] of the rows that count as samples."""
        flags = columns["flags"]
        counts = ~np.isin(flags, GIVEN_UP)
        for i in np.flatnonzero(flags & (UNKNOWN | LATE)).tolist():
            order, kind = int(number[i]), int(flags[i])
            said = int(columns["state"][i]), int(columns["action"][i])
            pair = (-1, -1) if said[1] < 0 else said
            if not kind & LATE:
                self.lost += 1
                self._given_up[order] = (*said, kind)
                self.unknown[pair] += kind in GIVEN_UP and self._is_sample(said[1])
                continue
            if order not in self._given_up:
                raise Impossible(event + i, "a late outcome of an order that was not given up")
            *before, how = self._given_up.pop(order)
            if tuple(before) != said:
                raise Impossible(event + i, "a late outcome of another state or action than was ordered")
            counts[i] = how in GIVEN_UP and self._how != "independent"
            self.unknown[pair] -= how in GIVEN_UP and self._is_sample(said[1])
        return counts

    def _is_sample(self, action: int) -> bool:
        """Whether an order that is given up leaves an unknown place."""
        return self._how != "independent" and (action >= 0 or self._sampled_resets)

    def _take_numbers(self, event: int, columns: Columns, number: NDArray[np.int64]) -> None:
        """Check that each order has one row."""
        first = (columns["flags"] & LATE) == 0
        self._refuse(event, first & (number < self._next), "its order has a row already")
        later = np.sort(np.concatenate([self._later, number[first]]))
        if (later[1:] == later[:-1]).any():
            twice = int(later[1:][later[1:] == later[:-1]][0])
            raise Impossible(event + int(np.flatnonzero(first & (number == twice))[-1]), "its order has a row already")
        ready = int((later == self._next + np.arange(len(later))).cumprod().sum())
        self._next, self._later = self._next + ready, later[ready:]

    def _check_in_flight(self, event: int, notes: Notes) -> None:
        """Check that the orders with rows and those in flight are all that were issued."""
        self.in_flight = notes.in_flight
        open_now = np.array([order.number for order in notes.in_flight], dtype=np.int64)
        issued = np.sort(np.concatenate([self._later, open_now]))
        if not np.array_equal(issued, self._next + np.arange(len(issued))):
            raise Impossible(event, f"order {self._next} or a later one is neither in the log nor in flight")
        walkers = [order.walker for order in notes.in_flight]
        if len(set(walkers)) < len(walkers):
            raise Impossible(event, "a walker has two orders in flight")
        for order in notes.in_flight:
            status = self._walkers.status[order.walker]
            if status in (GONE, WAITING) or self._walkers.at[order.walker] != order.state:
                raise Impossible(event, f"order {order.number} is in flight, but its walker cannot have it")
