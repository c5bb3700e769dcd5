"""What executors of real walkers have in common: who has joined, who has an open order, who is replaced.

A walker that cannot begin is an error if it is one of the first: the user's function is wrong. Later it counts as one
that is gone, since a run must not end because of a single machine.
"""

import time
from abc import abstractmethod
from collections import deque
from typing import Any, Generic, TypeVar

from gosprl import _checks
from gosprl.collecting.streams import Entropy, entropy_of
from gosprl.errors import GosprlError, InputError
from gosprl.fleet.orders import Event, Executor, Joined, Lost, Order
from gosprl.fleet.slots import Slots
from gosprl.fleet.walking import Facts, check_same
from gosprl.progress import is_interrupted

STARTING = 120.0  # seconds to make a system in
NONE = Order(-1, -1, 0)  # no open order


class Member:
    """A walker and what is known of it."""

    __slots__ = ("initial", "joined", "number", "order", "reported", "since", "slot")

    def __init__(self, number: int, slot: int, initial: bool) -> None:
        self.number, self.slot, self.initial = number, slot, initial
        self.order = NONE  # the open one
        self.joined = self.reported = False
        self.since = time.monotonic()


M = TypeVar("M", bound=Member)


class Crew(Executor, Generic[M]):
    """An executor whose walkers join, are lost and are replaced.

    Parameters
    ----------
    workers
        Number of walkers.
    entropy
        The seed of the run.
    describe
        What `walking.describe` says of the learner's own copy; walkers that differ are refused. None: all must be like
        the first one.
    start_timeout
        Seconds in which a walker has to make its system.
    """

    def __init__(self, workers: int, entropy: Entropy, describe: Facts | None, start_timeout: float) -> None:
        self.workers = _checks.whole("workers", workers, 1)
        self._seed, self._entropy, self._facts = entropy, entropy, describe
        self._start_timeout = _checks.positive("start_timeout", start_timeout)
        self._slots = Slots(self.workers)
        self._members: dict[int, M] = {}
        self._starting: dict[int, M] = {}  # those that have not joined
        self._events: deque[Event] = deque()
        self._is_open = self._ever_joined = False

    @abstractmethod
    def _start(self, slot: int, initial: bool = False) -> None:
        """Start a walker and enter it with `_enter`."""

    @abstractmethod
    def _hand(self, member: M, order: Order) -> None:
        """Send an order to a walker."""

    @abstractmethod
    def _wait(self, seconds: float | None) -> None:
        """Wait until a walker says something, for so many seconds at most, and note what it says."""

    @abstractmethod
    def _end(self, member: M) -> None:
        """End a walker that is entered no more."""

    def begin_with(self, begun: str) -> None:
        """Let the walkers' random numbers follow from what was collected before, too."""
        self._entropy = entropy_of(self._seed, begun)

    def open(self) -> None:
        """Start the walkers."""
        if not self._is_open:
            self._is_open = True
            for slot in range(self.workers):
                self._start(slot, initial=True)
                if is_interrupted():
                    self.workers = slot + 1  # enough to end the run in order
                    return

    def send(self, order: Order) -> None:
        """Hand an order to its walker."""
        member = self._members.get(order.walker)
        if member is None or not member.joined:
            return  # gone; the learner is told, or was
        if member.order is not NONE:
            raise GosprlError(f"walker {order.walker} has an open order, {member.order.number}")
        member.order = order
        self._hand(member, order)

    def receive(self, timeout: float | None = None) -> list[Event]:
        """Wait for what walkers say."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._events:
            self._slots.check()
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            self._wait(self._tended(left) if self._starting else left)
            if deadline is not None and time.monotonic() >= deadline:
                break
        events = list(self._events)
        self._events.clear()
        return events

    def dismiss(self, walker: int) -> None:
        """End a walker, and start another one in its place."""
        member = self._members.get(walker)
        if member is not None:
            self._replace(member, "it was dismissed")

    def now(self) -> float:
        """Return the seconds on the monotonic clock."""
        return time.monotonic()

    def close(self) -> None:
        """End all walkers."""
        for member in list(self._members.values()):
            self._remove(member)
        self._events.clear()
        self._slots.close()

    def _enter(self, member: M) -> None:
        self._members[member.number] = self._starting[member.number] = member

    def _join(self, member: M, facts: Facts) -> None:
        """Let a walker join that has described its system; refuse it if that is not the learner's."""
        try:
            check_same(self._facts, facts)
        except InputError as error:
            self._refuse(member, error)
            return
        if self._facts is None:
            self._facts = facts
        member.joined = self._ever_joined = True
        del self._starting[member.number]
        self._events.append(Joined(member.number))

    def _refuse(self, member: M, error: GosprlError) -> None:
        """Refuse a walker that cannot begin."""
        if member.initial:
            raise error
        self._replace(member, str(error))

    def _lose(self, member: M, why: str, way_out: str = "", trace: str = "") -> None:
        """End a walker, tell the learner, and start another one in its place."""
        if not member.joined and not self._ever_joined:
            raise could_not_begin(why + way_out)
        if member.joined:
            self._events.append(Lost(member.number, why, trace))
        self._replace(member, f"{why}\n{trace}".rstrip())

    def _replace(self, member: M, why: str) -> None:
        self._remove(member)
        if self._slots.may_replace(member.slot, why, member.reported):
            try:
                self._start(member.slot)
            except GosprlError as error:
                self._slots.give_up(str(error))

    def _remove(self, member: M) -> None:
        del self._members[member.number]
        self._starting.pop(member.number, None)
        self._end(member)

    def _tended(self, left: float | None) -> float | None:
        """Refuse walkers that take too long to begin; the seconds until the next one does, `left` at most."""
        now = time.monotonic()
        for member in list(self._starting.values()):
            if now - member.since > self._start_timeout:
                self._refuse(member, could_not_begin(f"no system within {self._start_timeout:g} s of its start"))
        ends = [member.since + self._start_timeout - now for member in self._starting.values()]
        nearest = max(0.0, min(ends, default=0.0)) + 1e-3
        return nearest if left is None else min(left, nearest)


def could_not_begin(why: str, kind: Any = GosprlError) -> GosprlError:
    """Return the error for a walker that could not make its system."""
    error: GosprlError = kind(f"system: a walker could not make it: {why}")
    return error
