"""Replayed: an executor that repeats what happened to a fleet, from a log in the place of walkers.

A run of a fleet is a function of the sequence of its events and of its seed. The collector that is given the same
sequence must issue the same orders. An order is compared when the event that it led to is due.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gosprl.errors import GosprlError
from gosprl.fleet.orders import Executor, Lost, Order, Report, Taken


class Happened(NamedTuple):
    """An event of a log."""

    place: int  # its number in the log
    event: Taken
    order: Order | None  # that it is about, as it was issued; None: about none


class Replayed(Executor):
    """Repeats the events of a log, one at a time.

    Parameters
    ----------
    events
        What happened.
    differs
        Makes the error for a difference, from the number of the event and a text.
    """

    leases = True

    def __init__(self, events: Iterator[Happened], differs: Callable[[int, str], GosprlError]) -> None:
        self._events, self._differs = events, differs
        self._open: dict[int, Order] = {}  # by walker

    def open(self) -> None:
        """Nothing is started."""

    def send(self, order: Order) -> None:
        """Note an order."""
        self._open[order.walker] = order

    def goes_on(self, order: Order) -> None:
        """Note an order that the walker gave itself."""
        self.send(order)

    def receive(self, timeout: float | None = None) -> list[Taken]:  # type: ignore[override]
        """Return the next event, after comparing the order that it is about; [] at the end."""
        happened = next(self._events, None)
        if happened is None:
            return []
        place, event, logged = happened
        if logged is not None:
            self.compare(place, logged)
        if isinstance(event, Report | Lost):  # one that is given up may still be answered
            self._open.pop(event.walker, None)
        return [event]

    def compare(self, place: int, logged: Order) -> None:
        """Compare an order of the log with the one that the walker has; the error names the event `place`."""
        issued = self._open.get(logged.walker)
        if issued is None or issued[:3] != logged[:3]:  # a log does not have what may follow
            what = "none" if issued is None else f"order {issued.number}, action {issued.action}"
            raise self._differs(
                place,
                f"the log has order {logged.number}, action {logged.action}, of walker {logged.walker}; the planner "
                f"gives that walker {what}",
            )

    def dismiss(self, walker: int) -> None:
        """Nothing: what is in a log was taken."""

    def now(self) -> float:
        """Return 0: a log has no clock."""
        return 0.0

    def close(self) -> None:
        """Nothing is to be closed."""
