"""FleetCollector: one need, one plan, many walkers.

Events of the executor are taken one after the other. After each, the walker it came from gets its next order, by the
attempt that it follows; a walker for which nothing is left to do waits. So a run is a function of the sequence of
events, and of the seed: whoever repeats the sequence repeats the run. With one walker it is the run that
`Collector.run` makes, bit for bit.

All walkers share the planner (`gosprl.collecting.sharing`), and what it plans for is what is missing and not in flight.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.collecting.asktell import locked
from gosprl.collecting.collector import Collector
from gosprl.collecting.engine import Engine, as_number
from gosprl.collecting.journal import LATE, UNKNOWN
from gosprl.collecting.planners import Report as PlannerReport
from gosprl.collecting.requirements import Requirement
from gosprl.collecting.sharing import Sharing, assume, of_several
from gosprl.collecting.streams import begun_digest
from gosprl.errors import CollectionError, GosprlError, InputError
from gosprl.fleet.failures import Failures
from gosprl.fleet.journal import FleetJournal
from gosprl.fleet.lateness import Lateness
from gosprl.fleet.orders import (
    LONGEST_LEASE,
    RESET,
    Executor,
    Joined,
    Late,
    Lost,
    Order,
    Report,
    Stopped,
    Taken,
    next_of_lease,
)
from gosprl.fleet.record import FleetRecord
from gosprl.fleet.samples import Sample
from gosprl.model.empirical import EmpiricalModel
from gosprl.progress import Progress, interrupts_heard
from gosprl.strategies.base import UNLIMITED
from gosprl.systems import System

HANGS = 10  # times the limit of what is late: then the walker is replaced
PRACTICAL = 0  # the phase of planners in which walkers have leases
ENOUGH = 2  # walkers on their way for each missing sample: the nearest one may be slow, or stray


@dataclass(slots=True)
class Walk:
    """One walker, as the learner sees it."""

    walker: int
    engine: Engine
    order: Order | None = None  # that it works on
    sample: Sample | None = None  # of that order; None for a reset that is no sample
    since: float = 0.0  # time at which it was sent
    is_late: bool = False  # whether nobody counts on the answer any more
    cut: bool = True  # whether the next reset begins a trajectory, without a transition
    cut_off: bool = False  # whether its episode was cut off by its last step: it is reset in any case
    on_trip: bool = False  # whether its last step brought no needed sample
    leased: int = 0  # steps that it may make by itself after its order


class FleetCollector(Collector):
    """Collects what is needed with many walkers.

    Parameters
    ----------
    lost
        What becomes of a sample whose walker is lost or late. "unknown": its outcome may have been any, and confidence
        sets allow for that. "state": it led to a crash, as a system's own crashes do. "independent": it is left out,
        which is right only if being lost has nothing to do with the outcome.
    late
        When a sample is late: a multiple of the mean duration of a step, or seconds as text, such as "5s"; None: never.
    thrift
        No walker begins a trip with more expected steps than this while another one moves; None: all of them move.
    deterministic
        None: events are taken as they come. d: the report of order i is taken when order i + d was issued, so that the
        run does not depend on time; at most d + 1 orders are in flight.
    lease
        Steps that a walker may make before it waits for the learner, 1 to 4. It is told beforehand what to do in the
        states to which its step leads most often, and goes on by itself from there.
    executor
        A function that makes what carries orders and reports, for the entropy of the run's seed.
    workers
        What the user gave to say so, for runs on disk.
    **others
        As of `Collector`.
    """

    record: FleetRecord

    def __init__(
        self,
        *args: Any,
        lost: str = "unknown",
        late: float | str | None = 20,
        thrift: float | None = None,
        deterministic: int | None = None,
        lease: int = 1,
        executor: Callable[[Any], Executor] | None = None,
        workers: Any = None,
        **others: Any,
    ) -> None:
        self._executor = executor
        self.options = {"late": late, "lost": lost, "thrift": thrift, "deterministic": deterministic, "lease": lease}
        self.workers = workers
        self._lateness = Lateness(late)
        self._thrift = None if thrift is None else _checks.positive("thrift", thrift)
        self._depth = None if deterministic is None else _checks.whole("deterministic", deterministic, 0)
        self._lease = _checked_lease(lease, deterministic)
        self.walks: dict[int, Walk] = {}
        super().__init__(*args, lost=lost, **others)
        if self._lease > 1:
            assume(self._model, "lease")
        self._sharing = self._attempts = Sharing(self.walks)
        self._shared = self.engine  # its random numbers are those of all walkers
        self._issued = 0  # orders
        self._stopped = False  # whether no more orders are issued
        self._killed = False  # whether that is so because the learner was ended
        self.joined = 0  # walkers so far
        self._waited: tuple[dict[int, Walk], dict[int, Walk]] = ({}, {})  # by order, in order: steps, resets under way
        self._idle: dict[int, Walk] = {}  # walkers without an order
        self._late: dict[int, Walk] = {}  # walkers whose answer is late, in the order in which it became so
        self._taken = 0  # events
        self._spare_at = (-1, -1)  # when `_is_spare` looked last
        self._distances: NDArray[np.float64] | None = None  # of that time, from each state to what is missing
        self._near = math.inf  # the distance of the last walker that is not spare
        self._early: dict[int, Report] = {}  # reports that are not read yet, by order
        self._read = 0  # the first order whose report is waited for, in the order of issue
        self._gathered: dict[int, Joined] = {}  # walkers that wait for the others before the first order
        self.failures = Failures(self.record)
        self._given_up: set[int] = set()  # later orders whose reports nobody waits for

    def _new_record(
        self, model: EmpiricalModel, asked: Requirement, threshold: float, rewards: tuple[float, float]
    ) -> FleetRecord:
        return FleetRecord(model, asked, threshold, rewards)

    def fleet_status(self) -> dict[str, int]:
        """Return the numbers of walkers, of steps in flight, and of samples that were given up."""
        return {"walkers": len(self.walks), "in_flight": self.record.in_flight, "lost": self.record.lost}

    def fleet_facts(self) -> dict[str, int]:
        """Return how many walkers there were, and how many samples were given up in time, even if they came later."""
        return {"walkers": self.joined, "lost": self.record.lost}

    def last_trouble(self) -> str:
        """Return why the last walker with an order was lost, and the traceback below it; "" if none was."""
        return self.failures.last

    @locked
    def walk(self, system: Any = None, max_steps: int | None = None, progress: Any = None) -> None:
        """Do what `walk_fleet` does, with the executor that was given."""
        if self._executor is None:
            raise InputError("executor: expected a function that makes one, got None")
        executor = self._executor(self.entropy)
        if executor is self.workers:  # the user made it, with a seed of its own
            executor.begin_with(begun_digest(self.model))
        else:
            self.note_walk()
        self.walk_fleet(executor, self._chosen(system), max_steps, progress)

    def walk_fleet(
        self,
        executor: Executor,
        system: System,
        max_steps: int | None = None,
        progress: Any = None,
    ) -> None:
        """Let walkers collect until everything is met, and nothing is in flight.

        Parameters
        ----------
        executor
            Carries orders and reports.
        system
            One copy of what is walked, which is not stepped: it says what is known of the dynamics.
        max_steps, progress
            As in `Collector.run`.
        """
        budget = UNLIMITED if max_steps is None else _checks.whole("max_steps", max_steps, 1)
        if self._lease > 1 and not executor.leases:
            raise InputError(
                f"lease: expected 1, as the walkers of {type(executor).__name__} wait after each step, got "
                f"{self._lease}; use processes, workers=8"
            )
        record, journal = self.record, self._journal
        self.failures = Failures(record)
        self._look_at(system)
        last = record.steps + record.quits + min(budget, UNLIMITED - record.steps - record.quits)
        with Progress(progress, self) as report, interrupts_heard(self._shared):
            try:
                self._stop = ""
                executor.open()
                while not self._is_over(last):
                    self._take_turn(executor, last)
                    if journal is not None and journal.due:
                        journal.sync(system)
                    report()
                report(last=True)
                self._stop = self._why(self._shared.interrupted)
                self.report()
            except KeyboardInterrupt:
                self._stop, self.is_torn = "interrupted", True
            except Exception as error:
                if isinstance(error, InputError) and record.steps == 0:
                    raise
                self._stop = "failed"
                why = str(error) or type(error).__name__
                raise CollectionError(f"the run failed after {record.steps} steps: {why}", self.result()) from error
            finally:
                executor.close()

    def replay(self, executor: Executor, system: System, last: int) -> None:
        """Repeat a run from its events, which `executor` returns one by one, and none at the end.

        Parameters
        ----------
        executor
            Says what happened, and compares the orders with those that were issued then.
        system
            As in `walk_fleet`.
        last
            The number of steps and chosen resets after which no more orders were issued.
        """
        self._look_at(system)
        while events := executor.receive():
            for event in self._in_order(events, executor):
                self._take(event, executor, last)
            self._send_orders(executor, last)

    def prepare(self) -> bool:
        """Return False: all that a fleet does follows from its events."""
        return False

    def take_counts(self, state: int | None, start: int | None, age: int = 0) -> None:
        """Begin where counts were made before, which the record has already; the walkers have to be reset."""
        self.record.committed.curve.clear()
        self.record.committed.need.recall({}, 0)
        super().take_counts(state, start, age)

    def number_from(self, number: int) -> None:
        """Let the next order have this number: those before belong to an earlier part of the run."""
        self._issued = self._read = number

    def _look_at(self, system: System) -> None:
        self._shared.components = self._paths.look_at(system)
        self._given = self._system = system

    @property
    def _journal(self) -> FleetJournal | None:
        journal = self.record.journal
        assert journal is None or isinstance(journal, FleetJournal)
        return journal

    def report(self) -> PlannerReport:
        """Return what the planner says of the run, as far as it holds for several walkers (docs/theory/fleet.md)."""
        said = super().report()
        if self.joined <= 1 and not self.record.lost and self._lease == 1:
            return said
        return said._replace(guarantee=of_several(said.guarantee))

    def _is_over(self, last: int) -> bool:
        """Whether nothing is in flight, and nothing more will be issued."""
        return bool(self._issued) and not self._in_flight() and self._stops(last)

    def _stops(self, last: int) -> bool:
        record = self.record
        return self._stopped or self._finished or record.begun + record.quits >= last

    def _take_turn(self, executor: Executor, last: int) -> None:
        """Take what happened; what has not by the time at which it is late, or a walker hangs, is given up."""
        now, until = executor.now(), self._overdue_at()
        events = executor.receive(None if until == math.inf else max(0.0, until - now))
        for event in self._in_order(events, executor):
            self._take(event, executor, last)
            self.failures.check()
        if until <= now:  # all that walkers said until then has been read
            self._take_overdue(executor, now, last)
        if self._shared.interrupted and not self._stopped:
            self._take(Stopped(), executor, last)
        if self._depth is not None:  # events may have been put off
            self._send_orders(executor, last)

    def _overdue_at(self) -> float:
        """Return the time at which the next sample is late, or the next walker hangs; inf: never."""
        at_end, overdue_at = self._others_idle(), math.inf
        for of_reset, waited in enumerate(self._waited):
            if waited:
                overdue_at = min(overdue_at, self._late_at(bool(of_reset), at_end))
        return min(overdue_at, self._hanging_at()) if self._late else overdue_at

    def _take_overdue(self, executor: Executor, now: float, last: int) -> None:
        """Wait no longer for what is late, and replace walkers that hang."""
        while (walk := self._next_late(now)) is not None:
            self._take(Late(walk.walker), executor, last)
        while (walk := self._next_hanging(now)) is not None:
            executor.dismiss(walk.walker)
            self._take(Lost(walk.walker, "it hangs"), executor, last)

    def _late_at(self, of_reset: bool, at_end: bool) -> float:
        """Return the time at which the oldest order that is waited for will be late; inf: never, or there is none."""
        for oldest in self._waited[of_reset].values():
            return oldest.since + self._lateness.limit(of_reset=of_reset, at_end=at_end)
        return math.inf

    def _others_idle(self) -> bool:
        """Whether walkers have nothing to do, as all that is missing is in flight; not where time must not matter."""
        return len(self._idle) > 0 and self._depth is None and self.record.all_in_flight

    def _in_order(self, events: Sequence[Taken], executor: Executor) -> Sequence[Taken]:
        """Return the events that are to be taken now, in this order."""
        if self._depth is None:
            return events
        if not self.joined and executor.workers:
            events = self._gather(events, executor.workers)
        out: list[Taken] = []
        for event in events:
            walk = None if isinstance(event, Stopped) else self.walks.get(event.walker)
            order = None if walk is None or walk.is_late else walk.order
            if walk is None or order is None or not isinstance(event, Report) or event.number != order.number:
                out.append(event)
            elif event.number not in self._early:  # or it came twice
                self._lateness.note(executor.now() - walk.since, of_reset=order.action == RESET)
                self._early[event.number] = event
                del self._waited[order.action == RESET][order.number]
        return out

    def _gather(self, events: Sequence[Taken], workers: int) -> Sequence[Taken]:
        """Return nothing until all walkers have joined, and then that, in the order of their numbers."""
        for event in events:
            if isinstance(event, Joined):
                self._gathered[event.walker] = event
            elif isinstance(event, Lost):
                self._gathered.pop(event.walker, None)
        return [self._gathered[walker] for walker in sorted(self._gathered)] if len(self._gathered) >= workers else []

    def _take(self, event: Taken, executor: Executor, last: int) -> None:
        self._taken += 1
        if isinstance(event, Report):
            self._take_report(event, executor)
        else:
            self._take_other(event)
        self._send_orders(executor, last)

    def _take_other(self, event: Joined | Lost | Late | Stopped) -> None:
        journal = self._journal
        if isinstance(event, Joined):
            self.joined += 1
            if journal is not None:
                journal.joined(event.walker)
            engine = Engine(self.record, self._shared.rng, self._shared.horizon)
            engine.components = self._shared.components
            self.walks[event.walker] = self._idle[event.walker] = Walk(event.walker, engine)
        elif isinstance(event, Lost):
            self._note_failure(event)
            self._lose(event.walker)
        elif isinstance(event, Late):
            self._give_up_late(self.walks[event.walker])
        else:
            self._stopped = True
            self._killed = event.killed
            if journal is not None:
                journal.stopped()

    def _note_failure(self, event: Lost) -> None:
        walk = self.walks.get(event.walker)
        if walk is not None and walk.order is not None:
            self.failures.note(event, -1 if walk.sample is None else walk.sample.row)

    def _lose(self, walker: int) -> None:
        """Go on without a walker; the sample that it worked on is given up."""
        walk = self.walks.pop(walker, None)
        self._idle.pop(walker, None)
        self._late.pop(walker, None)
        if walk is None:
            return
        self._reserve(walk, 0)
        journal, order, sample = self._journal, walk.order, walk.sample
        if journal is not None:
            journal.left(walker)
        if order is None:
            return
        self._wait_no_more(order)
        if not walk.is_late:
            self._give_up(walk, self._lost)
            self._attempts.end_attempts()
        elif self._lost == "state" and sample is not None and sample.is_unknown and sample.is_step:
            if journal is not None:
                journal.answer(order, LATE | UNKNOWN)
            self.record.fill_with_crash(sample)
        self._update_if_met()  # samples that waited for this one are committed now

    def _wait_no_more(self, order: Order) -> None:
        self._waited[order.action == RESET].pop(order.number, None)
        if self._depth is not None and order.number >= self._read:
            self._early.pop(order.number, None)
            self._given_up.add(order.number)

    def _take_report(self, report: Report, executor: Executor) -> None:
        self._taken += 1
        if not self._report(report, executor):
            executor.dismiss(report.walker)
            self._lose(report.walker)

    def _give_up(self, walk: Walk, how: str) -> None:
        """Count no more on the answer to the open order of a walker; `how` as in `FleetRecord.give_up`."""
        journal, sample = self._journal, walk.sample
        assert walk.order is not None
        if journal is not None:
            if how == "state" and sample is not None and sample.is_step:
                journal.answer(walk.order, UNKNOWN)  # the record writes the crash
            else:
                journal.give_up(walk.order)
        if sample is not None:
            self.record.give_up(sample, how)

    def _report(self, report: Report, executor: Executor) -> bool:
        """Write what a walker reports; False if it is not an answer to what it was asked."""
        walk = self.walks.get(report.walker)
        if walk is None:
            return True  # it was dismissed, and nobody listens
        order = walk.order
        if order is None or order.number != report.number:
            return False
        if self._depth is None or walk.is_late:
            self._lateness.note(executor.now() - walk.since, of_reset=order.action == RESET)
        try:
            key = self._shared_key(report)
        except GosprlError:
            return False
        following = next_of_lease(order, report)
        walk.order, self.engine = None, walk.engine
        self._waited[order.action == RESET].pop(order.number, None)
        if (journal := self._journal) is not None:
            journal.answer(order, LATE if walk.is_late else 0)
        if walk.is_late:
            self._report_late(walk, report, key)
        elif order.action == RESET:
            self._report_reset(walk, report, key)
        else:
            self._report_step(walk, report, key)
        walk.sample = None
        if following is None:
            if walk.leased:
                self._reserve(walk, 0)
            self._idle[walk.walker] = walk
        else:
            self._issue_next(walk, following, executor)
        self._update_if_met()
        return True

    def _shared_key(self, report: Report) -> Any:
        return report.key if report.terminated else self._shared.key_of(report.key, "the state that a walker reported")

    def _report_reset(self, walk: Walk, report: Report, key: Any) -> None:
        engine, record = walk.engine, self.record
        record.returning = walk.sample
        if walk.cut:
            engine.start(key, report.actions, by_reset=True)
            record.resets += self._start is not None
            self._begin_at(engine.state)
        else:
            engine.reset(key, report.actions)
        record.returning, walk.cut, walk.cut_off = None, False, False

    def _begin_at(self, s: int | None) -> None:
        """Let the run begin in s, unless it has begun."""
        if self._start is None:
            self._start = s
            self.record.update_need()

    def _report_step(self, walk: Walk, report: Report, key: Any) -> None:
        engine, sample = walk.engine, walk.sample
        assert sample is not None
        self.record.returning = sample
        cut_off = not report.terminated and (report.truncated or engine.age + 1 >= engine.horizon)
        engine.arrive(sample.row, key, as_number(report.reward), report.terminated, report.actions, cut_off)
        self.record.returning = None
        if cut_off:
            engine.break_off()
            engine.state, walk.cut, walk.cut_off = None, True, True

    def _report_late(self, walk: Walk, report: Report, key: Any) -> None:
        """Write what came late, and let the walker go on from there."""
        del self._late[walk.walker]
        walk.is_late, engine, sample, record = False, walk.engine, walk.sample, self.record
        outcome = (key, as_number(report.reward), report.terminated, report.actions, report.truncated)
        if sample is None or not sample.is_unknown or self._lost == "independent":
            record.pass_over(-1 if sample is None or not sample.is_step else sample.row, *outcome)
        elif sample.is_step:
            record.fill(sample, *outcome)
        else:
            record.returning = sample
            record.reset(record.arrive_at(key, report.actions))
        record.returning = None
        if report.terminated or report.truncated:
            engine.state, walk.cut = None, True
        else:
            engine.start(key, report.actions)
            walk.cut = False
            self._begin_at(engine.state)
        self._attempts.end_attempts()

    def _next_late(self, now: float) -> Walk | None:
        """Return a walker whose answer takes too long; None if there is none."""
        for of_reset in (False, True):
            if self._late_at(of_reset, self._others_idle()) <= now:
                return next(iter(self._waited[of_reset].values()))
        return None

    def _hanging_at(self) -> float:
        """Return the time at which the walker that is late for the longest time is taken to hang; inf: never."""
        for walk in self._late.values():
            assert walk.order is not None
            return walk.since + HANGS * self._lateness.limit(of_reset=walk.order.action == RESET)
        return math.inf

    def _next_hanging(self, now: float) -> Walk | None:
        """Return a walker that hangs."""
        return next(iter(self._late.values())) if self._hanging_at() <= now else None

    def _give_up_late(self, walk: Walk) -> None:
        """Wait no longer for the answer of a walker, which may still report."""
        assert walk.order is not None
        walk.is_late = True
        self._late[walk.walker] = walk
        walk.engine.break_off()
        walk.engine.state = None
        self._wait_no_more(walk.order)
        self._give_up(walk, self._lost_if_late)
        self._attempts.end_attempts()
        self._update_if_met()  # samples that waited for this one are committed now

    @property
    def _lost_if_late(self) -> str:
        """What becomes of a late sample; no crash, if how long is late changes: then it is no outcome of its pair."""
        if self._killed and self._lost == "state":
            return "unknown"  # the end of a learner is no crash of its systems
        return "unknown" if self._lost == "state" and not self._lateness.is_fixed else self._lost

    def _send_orders(self, executor: Executor, last: int) -> None:
        """Give an order to every walker that has none, as long as there is something to do."""
        while True:
            for walk in self._without_order():
                self._order(walk, executor, last)
            if self._depth is None or (report := self._next_early()) is None:
                return
            self._take_report(report, executor)

    def _without_order(self) -> list[Walk]:
        """Return the walkers without an order, in the order in which they joined."""
        if len(self._idle) <= 1:
            return list(self._idle.values())
        return [walk for walk in self.walks.values() if walk.order is None]

    def _next_early(self) -> Report | None:
        """Return the next report in the order of issue, if it is here; all orders that can be are issued before."""
        while self._read in self._given_up:
            self._given_up.remove(self._read)
            self._read += 1
        report = self._early.pop(self._read, None)
        self._read += report is not None
        return report

    def _order(self, walk: Walk, executor: Executor, last: int) -> None:
        assert self.planner is not None
        if self._depth is not None and self._issued - self._read > self._depth:
            return
        action, row = self._next_action(walk, last)
        if action is None:
            return
        del self._idle[walk.walker]
        order = Order(self._issued, walk.walker, action)
        self._issue(walk, order, row, executor)
        if self._lease > 1 and action != RESET and self.planner.phase == PRACTICAL:
            order = walk.order = order._replace(then=self._foreseen(walk, row, last))
            self._reserve(walk, len(order.then))
            self._attempts.reserve(len(order.then))
        executor.send(order)

    def _issue_next(self, walk: Walk, following: Order, executor: Executor) -> None:
        """Issue the step that a walker makes by itself."""
        s, rows = walk.engine.state, self._model.rows
        assert s is not None
        # `Rows.index` checks arrays of pairs, which takes longer than all the rest of this method
        row = bisect_left(rows.action, following.action, int(rows.ptr[s]), int(rows.ptr[s + 1]))
        order = following._replace(number=self._issued)
        self.record.leased -= 1
        walk.leased -= 1
        self._issue(walk, order, row, executor, reserved=True)
        executor.goes_on(order)

    def _reserve(self, walk: Walk, steps: int) -> None:
        """Let a walker have so many steps that it may make by itself.

        Those that it did not use were allowed by the practical plan. In another phase they stay in its account, since
        the other account would become smaller instead.
        """
        assert self.planner is not None
        self.record.leased += steps - walk.leased
        if steps == 0 and self.planner.phase != PRACTICAL:
            self.record.forfeited += walk.leased
        walk.leased = steps

    def _foreseen(self, walk: Walk, row: int, last: int) -> tuple[tuple[int, int], ...]:
        """Return (key, action) for the states to which a step leads most often, one after the other."""
        engine, model, states = walk.engine, self._model, self._model.states
        most = min(self._lease - 1, self._attempts.left, last - self.record.begun - self.record.quits)
        most = min(most, engine.horizon - engine.age - 1)
        then: dict[int, int] = {}
        while len(then) < most:
            s = model.usual_successor(row)
            row = -1 if s < 0 else engine.foreseen(s)
            key = states.key(s) if row >= 0 else None
            if type(key) is not int or key in then:
                break
            then[key] = int(model.rows.action[row])
        return tuple(then.items())

    def _issue(self, walk: Walk, order: Order, row: int, executor: Executor, reserved: bool = False) -> None:
        """Write that an order is given; `reserved`: the planner knows of this step."""
        walk.order, action = order, order.action
        self._issued += 1
        walk.sample, settled = None, False
        if row >= 0:
            if self._thrift is not None:
                walk.on_trip = not self.record.need.unmet_items[self._model.rows.state[row]]
            walk.sample, settled = self.record.issue(order.number, row)
        self._attempts.issued(walk.engine, is_step=action != RESET and not reserved, settled=settled)
        walk.since = executor.now()
        if (journal := self._journal) is not None:
            journal.issue(order)
        self._waited[action == RESET][order.number] = walk

    def _next_action(self, walk: Walk, last: int) -> tuple[int | None, int]:
        """Return (the action that a walker takes next, the row that it samples); None: nothing, for now."""
        engine, record, model = walk.engine, self.record, self._model
        if engine.state is None:
            goes_on = walk.cut_off or self._start is None or not self._stops(last)
            return (RESET, self._reset_row()) if goes_on else (None, -1)
        self.engine = engine
        while not self._stops(last) and not (record.need.met and self._in_flight()) and not self._waits(walk):
            self._attempts.end_if_used_up(engine)
            if engine.attempt is None and not self._new_attempt():
                continue
            if engine.at_reset:
                return RESET, self._reset_row()
            row = engine.choose()
            if row < 0:
                continue
            if model.certain[row]:
                engine.quit_episode(row)
                continue
            return int(model.rows.action[row]), row
        if engine.attempt is not None and engine.at_reset:  # a reset is no step: it still belongs to the attempt
            return RESET, self._reset_row()
        return None, -1

    def _reset_row(self) -> int:
        """Return the row that a reset samples; -1 if it is no sample."""
        reset = self._model.states.reset
        return int(self._model.rows.ptr[reset]) if reset >= 0 else -1

    def _waits(self, walk: Walk) -> bool:
        """Whether a walker stays where it is: another one gets to what is missing, and this one does not, or later."""
        s = walk.engine.state
        assert s is not None
        if len(self.walks) == 1:
            return False
        if self._paths.lead_nowhere(s) and not all(map(self._paths.lead_nowhere, self._positions(s))):
            return True
        if self._is_spare(s):
            return True
        if self._thrift is None or walk.on_trip:
            return False
        steps = self._expected_steps()
        if steps is None or steps[s] <= self._thrift:
            return False
        return self._in_flight() or bool(np.min(steps[self._positions(s)]) < steps[s])

    def _is_spare(self, s: int) -> bool:
        """Whether enough walkers for all that is missing are nearer to it than one in s."""
        enough = ENOUGH * self.record.need.missing
        if not 0 < enough < len(self.walks):
            return False
        now = (self._issued, self._taken)
        if now != self._spare_at:
            self._spare_at, self._distances, self._near = now, self._expected_steps(), math.inf
            where = self._positions(s)
            if self._distances is not None and enough <= len(where):
                self._near = float(np.partition(self._distances[where], enough - 1)[enough - 1])
        return self._distances is not None and bool(self._distances[s] > self._near)

    def _expected_steps(self) -> NDArray[np.float64] | None:
        """Return the expected steps from each state to what is missing [S], if the planner knows them."""
        assert self.planner is not None
        self.record.flush()
        self._resize_planner()
        return self.planner.expected_steps()

    def _in_flight(self) -> bool:
        steps, resets = self._waited
        return bool(steps or resets or self._early)


def _checked_lease(lease: int, deterministic: int | None) -> int:
    if _checks.whole("lease", lease, 1) > LONGEST_LEASE:
        raise InputError(f"lease: expected 1 to {LONGEST_LEASE} steps, got {lease}")
    if lease > 1 and deterministic is not None:
        raise InputError(f"lease: expected 1 with deterministic={deterministic}, got {lease}: both decide who waits")
    return lease
