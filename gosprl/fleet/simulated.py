"""Walkers on a simulated clock, in this process: for tests, evidence and plans of fleets that do not exist yet.

An order is carried out when it is sent; its report waits in a queue until the simulated clock has reached the end of
its duration. Durations and faults may depend on the outcome, as they do in reality: that is what makes samples in the
order of their return biased. `receive` never sleeps. The same seeds and the same orders give the same events.
"""

import heapq
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import numpy as np

from gosprl import _checks
from gosprl.collecting.streams import Entropy, entropy_of
from gosprl.errors import GosprlError, InputError
from gosprl.fleet.orders import RESET, Event, Executor, Joined, Lost, Order, Report
from gosprl.fleet.slots import IN_A_ROW
from gosprl.fleet.tables import Table, TableWalker
from gosprl.fleet.walking import Walker, make, reason, stream, trace_of
from gosprl.mdp.tabular import TabularMDP

DIE, HANG, TWICE = "die", "hang", "twice"
FAULTS = (DIE, HANG, TWICE)
Duration = Callable[[np.random.Generator, Report], float]
Fault = str | Report | None


def one_second(rng: np.random.Generator, report: Report) -> float:
    """Return 1.0, the duration of every step."""
    return 1.0


class Simulated(Executor):
    """A fleet on a simulated clock.

    Parameters
    ----------
    system
        A `TabularMDP`, which all walkers share, or a function that makes a system.
    workers
        Number of walkers.
    duration
        A function (rng, report) -> seconds that a step takes.
    lost
        A function (rng, report) -> bool: whether the walker dies instead of reporting. None: never.
    fault
        A function (rng, report) -> None, "die", "hang" (the report never comes), "twice" (it comes again, after as
        long a time), or another `Report` that takes its place. Called after `lost`, for steps only. Unlike executors
        of real walkers, this one does not check what walkers say: learners must survive it.
    reset_duration
        Seconds that a reset takes.
    restart
        Seconds until a walker that is gone is replaced by a new one; None: never. Where many in a row are gone before
        they have reported anything, none is replaced.
    joins
        Times at which further walkers join.
    key, actions
        What tells states apart, and which actions there are, as in `gosprl.collect`.
    entropy
        The seed of the run. Durations and faults have a stream of their own.
    """

    leases = True

    def __init__(
        self,
        system: TabularMDP | Callable[[], Any],
        workers: int,
        *,
        duration: Duration = one_second,
        lost: Callable[[np.random.Generator, Report], bool] | None = None,
        fault: Callable[[np.random.Generator, Report], Fault] | None = None,
        reset_duration: float = 0.0,
        restart: float | None = 0.0,
        joins: Iterable[float] = (),
        key: Any = None,
        actions: Any = None,
        entropy: Entropy = None,
    ) -> None:
        if not isinstance(system, TabularMDP) and not callable(system):
            raise InputError(f"system: expected a TabularMDP or a function that makes a system, got {system!r:.80}")
        self._factory, self._key, self._actions = system, key, actions
        self.workers = _checks.whole("workers", workers, 1)
        self._duration, self._lost, self._fault = duration, lost, fault
        self._reset_duration, self._restart, self._joins = reset_duration, restart, tuple(joins)
        self._seed: Entropy = np.random.SeedSequence(entropy).entropy if entropy is None else entropy
        self.begin_with("")
        self._table = Table(system) if isinstance(system, TabularMDP) else None
        self._queue: list[tuple[float, int, Event | None]] = []  # (time, tie-breaker, event); None: a walker joins
        self._ties, self._numbers = count(), count()
        self._walkers: dict[int, Walker | TableWalker] = {}
        self._open: dict[int, int] = {}  # walker -> number of its open order
        self._clock = 0.0
        self._reported: set[int] = set()  # walkers that have reported something
        self._failures = 0  # walkers gone in a row without a report
        self._last_reason = "no walker was started"

    def begin_with(self, begun: str) -> None:
        """Let random numbers, those of faults and durations among them, follow from what was collected before, too."""
        self._entropy = entropy_of(self._seed, begun)
        self._rng = np.random.default_rng(np.random.SeedSequence(self._entropy, spawn_key=(2,)))

    def open(self) -> None:
        """Let the first walkers join, at time 0."""
        for _ in range(self.workers):
            self._put(0.0, None)
        for time in self._joins:
            self._put(time, None)

    def send(self, order: Order) -> None:
        """Carry the order out, and queue what it led to."""
        if order.walker not in self._walkers:
            return  # gone; the learner is told, or was
        if order.walker in self._open:
            raise GosprlError(f"walker {order.walker} has an open order, {self._open[order.walker]}")
        self._open[order.walker] = order.number
        try:
            report = self._walkers[order.walker].answer(order)
        except Exception as error:  # of the system
            self._put(self._clock, Lost(order.walker, reason(error), trace_of(error)))
            return
        if order.action == RESET:
            self._put(self._clock + self._reset_duration, report)
            return
        seconds = float(self._duration(self._rng, report))
        self._put_step(report, seconds)

    def goes_on(self, order: Order) -> None:
        """Carry out what the walker goes on with, at once: reports are read when they are made."""
        self.send(order)

    def _put_step(self, report: Report, seconds: float) -> None:
        end = self._clock + seconds
        fault: Fault = None
        if self._lost is not None and self._lost(self._rng, report):
            fault = DIE
        elif self._fault is not None:
            fault = self._fault(self._rng, report)
        if isinstance(fault, Report):
            self._put(end, fault)
        elif fault is None or fault == TWICE:
            self._put(end, report)
            if fault == TWICE:
                self._put(end + seconds, report)
        elif fault == DIE:
            self._put(end, Lost(report.walker, "it died"))
        elif fault != HANG:
            raise InputError(f"fault: expected None, a Report or one of {', '.join(FAULTS)}, got {fault!r:.80}")

    def receive(self, timeout: float | None = None) -> list[Event]:
        """Advance the clock to the next event, by `timeout` at most; all events of that moment."""
        until = np.inf if timeout is None else self._clock + timeout
        events: list[Event] = []
        queue = self._queue
        while queue and queue[0][0] <= until:
            time, _, queued = heapq.heappop(queue)
            event = self._happened(max(self._clock, time), queued)
            if event is not None:
                until = self._clock
                events.append(event)
        if not events:
            if timeout is None:
                raise GosprlError(f"every walker is gone or hangs; the last reason: {self._last_reason}")
            self._clock = max(self._clock, float(until))
        return events

    def _happened(self, time: float, event: Event | None) -> Event | None:
        """Note an event that is due; None if nobody hears of it, as the walker was dismissed."""
        if event is not None and event.walker not in self._walkers:
            return None
        self._clock = time
        if event is None:
            return self._join()
        if isinstance(event, Lost):
            self._last_reason = f"{event.why}\n{event.trace}".rstrip()
            self._remove(event.walker)
        elif isinstance(event, Report):
            self._reported.add(event.walker)
            self._failures = 0
        if isinstance(event, Report) and self._open.get(event.walker) == event.number:
            del self._open[event.walker]
        return event

    def _join(self) -> Joined:
        number = next(self._numbers)
        if self._table is not None:
            self._walkers[number] = TableWalker(self._table, stream(self._entropy, number))
        else:
            assert callable(self._factory)
            self._walkers[number] = Walker(make(self._factory, self._key, self._actions), number, self._entropy)
        return Joined(number)

    def dismiss(self, walker: int) -> None:
        """End a walker; what it would have said is dropped."""
        if walker in self._walkers:
            self._remove(walker)

    def _remove(self, walker: int) -> None:
        gone = self._walkers.pop(walker)
        self._open.pop(walker, None)
        gone.close()
        self._failures = 0 if walker in self._reported else self._failures + 1
        self._reported.discard(walker)
        if self._restart is not None and self._failures <= IN_A_ROW * self.workers:
            self._put(self._clock + self._restart, None)

    def now(self) -> float:
        """Return the simulated time."""
        return self._clock

    def close(self) -> None:
        """End all walkers."""
        for walker in self._walkers.values():
            walker.close()
        self._walkers.clear()
        self._queue.clear()

    def _put(self, time: float, event: Event | None) -> None:
        heapq.heappush(self._queue, (time, next(self._ties), event))
