"""What a learner and its walkers say to each other, and what carries it.

A walker is one copy of the system. The learner sends orders, one at a time to each walker; the executor brings back
what became of them. The learner decides everything by the sequence of events alone: whoever repeats the sequence gets
the same run. Nothing here knows of confidence sets, needs or plans.

    Joined(walker)          there is a walker, not reset yet; its number was never used before
    Order(number, walker)   to a walker without an open order; the first one of a walker is a reset
    Report(number, walker)  what the walker did; answers its open order
    Lost(walker)            the walker is gone: its open order will have no answer, and it takes no more orders

With a lease, an order says what to do next in states to which its step may lead. The walker reports each step and goes
on by itself (`next_of_lease`); no message reaches it until its lease ends. Whoever reads a report gives the step that
the walker goes on with a number of its own, and tells the executor (`Executor.goes_on`).

An executor may replace a walker that is gone; the new one joins under a new number. A report that comes after the
learner gave up waiting is late, but still a report: executors pass it on.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

RESET = -1  # the action of an order to reset the system
LONGEST_LEASE = 4  # steps
STEP = 1 << 56  # on the way from a walker, added to the number of its order for each further step of a lease


class Order(NamedTuple):
    """Take an action, or reset."""

    number: int  # 0, 1, 2, ... over all walkers, in the order of issue
    walker: int
    action: int  # its index; RESET
    then: tuple[tuple[int, int], ...] = ()  # a lease: (key, action) of the steps that may follow, each once


class Report(NamedTuple):
    """What an order led to; after a reset there is only a key and the actions offered."""

    number: int
    walker: int
    key: Any  # stands for the observation, as `System.step` returns it; `gosprl.CRASH`
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    actions: Sequence[int] | None = None  # offered now; None: all


def next_of_lease(order: Order, report: Report) -> Order | None:
    """Return the order that a walker goes on with by itself after a report, with the number that it knows; or None."""
    if not order.then or report.terminated or report.truncated or type(report.key) is not int:
        return None
    for i, (key, action) in enumerate(order.then):
        if key == report.key:
            return Order(order.number + STEP, order.walker, action, order.then[:i] + order.then[i + 1 :])
    return None


class Lost(NamedTuple):
    """A walker is gone: it died, was ended, or broke the rules."""

    walker: int
    why: str
    trace: str = ""  # the traceback, if the system raised an exception


class Joined(NamedTuple):
    """There is one more walker."""

    walker: int


class Late(NamedTuple):
    """The learner waits no longer for a walker's open order; no executor of real walkers says so."""

    walker: int


class Stopped(NamedTuple):
    """The learner issues no more orders: it was interrupted, or `killed` while some were open."""

    killed: bool = False


Event = Report | Lost | Joined
Taken = Event | Late | Stopped  # what a run is a function of


class Executor(ABC):
    """Carries orders to walkers and brings events back; used by one thread.

    Attributes
    ----------
    leases
        Whether its walkers go on by themselves where an order says how.
    workers
        Number of walkers that join at the beginning; 0: not known.
    """

    leases = False
    workers = 0

    def begin_with(self, begun: str) -> None:
        """Let the walkers' random numbers follow from what was collected before, too; before `open`.

        Called for an executor that the user made, which has a seed of its own: walkers must not draw again what is in
        the samples that a run begins or goes on with (`gosprl.collecting.streams`). By default there are no random
        numbers to change.

        Parameters
        ----------
        begun
            The digest of all counts so far; empty if there are none.
        """

    @abstractmethod
    def open(self) -> None:
        """Start the walkers; each of them joins later, by an event."""

    @abstractmethod
    def send(self, order: Order) -> None:
        """Hand an order to its walker, without waiting. A walker that cannot be reached is lost, by an event."""

    def goes_on(self, order: Order) -> None:
        """Take in which order a walker goes on with by itself, after its last report; only with leases."""
        raise NotImplementedError(f"{type(self).__name__} has no leases")

    @abstractmethod
    def receive(self, timeout: float | None = None) -> list[Event]:
        """Wait until something happened, for `timeout` seconds at most, and return it, in order; [] if nothing did.

        None: wait as long as it takes; an executor whose walkers are all gone, and who has no replacement, raises
        `GosprlError` instead of waiting for ever.
        """

    @abstractmethod
    def dismiss(self, walker: int) -> None:
        """End a walker that is not trusted any more; it is not heard of again, and may be replaced."""

    @abstractmethod
    def now(self) -> float:
        """Return the seconds on the clock that `receive` waits by; they never decrease."""

    @abstractmethod
    def close(self) -> None:
        """End all walkers. May be called twice."""
