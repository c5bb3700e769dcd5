"""FleetCollector: one need, one plan, many walkers.

Events of the executor are taken one after the other. After each, the walker it came from gets its next order, by the
attempt that it follows; a walker for which nothing is left to do waits. So a run is a function of the sequence of
events, and of the seed: whoever repeats the sequence repeats the run. With one walker it is the run that
`Collector.run` makes, bit for bit.

All walkers share the planner (`gosprl.collecting.sharing`), and what it plans for is what is missing and not in flight.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gosprl import _checks
from gosprl.collecting.collector import Collector
from gosprl.collecting.engine import Engine, as_number
from gosprl.collecting.planners import Report as PlannerReport
from gosprl.collecting.requirements import Requirement
from gosprl.collecting.sharing import Sharing, of_several
from gosprl.errors import CollectionError, GosprlError, InputError
from gosprl.fleet.lateness import Lateness
from gosprl.fleet.orders import RESET, Event, Executor, Joined, Lost, Order, Report
from gosprl.fleet.record import FleetRecord
from gosprl.fleet.samples import Sample
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.states import CRASH
from gosprl.progress import Progress, interrupts_heard
from gosprl.strategies.base import UNLIMITED
from gosprl.systems import System


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
    on_trip: bool = False  # whether its last step brought no needed sample
    is_new: bool = True  # whether the next reset is its first: no sign that episodes end


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
    executor
        A function that makes what carries orders and reports, for the entropy of the run's seed.
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
        executor: Callable[[Any], Executor] | None = None,
        **others: Any,
    ) -> None:
        self._executor = executor
        self._lateness = Lateness(late)
        self._thrift = None if thrift is None else _checks.positive("thrift", thrift)
        self._depth = None if deterministic is None else _checks.whole("deterministic", deterministic, 0)
        self.walks: dict[int, Walk] = {}
        super().__init__(*args, lost=lost, **others)
        self._sharing = self._attempts = Sharing(self.walks)
        self._shared = self.engine  # its random numbers are those of all walkers
        self._joined = 0  # walkers so far
        self._issued = 0  # orders
        self._waited: tuple[dict[int, Walk], dict[int, Walk]] = ({}, {})  # by order, in order: steps, resets under way
        self._early: dict[int, Report] = {}  # reports that are not read yet, by order
        self._read = 0  # the first order whose report is waited for, in the order of issue
        self._given_up: set[int] = set()  # later orders whose reports nobody waits for

    def _new_record(
        self, model: EmpiricalModel, asked: Requirement, threshold: float, rewards: tuple[float, float]
    ) -> FleetRecord:
        return FleetRecord(model, asked, threshold, rewards)

    def fleet_status(self) -> dict[str, int]:
        """Return the numbers of walkers, of steps in flight, and of samples that were given up."""
        return {"walkers": len(self.walks), "in_flight": self.record.in_flight, "lost": self.record.lost}

    def walk(self, system: Any = None, max_steps: int | None = None, progress: Any = None) -> None:
        """Do what `walk_fleet` does, with the executor that was given."""
        if self._executor is None:
            raise InputError("executor: expected a function that makes one, got None")
        self.walk_fleet(self._executor(self.entropy), self._chosen(system), max_steps, progress)

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
        record = self.record
        self._shared.components = self._paths.look_at(system)
        self._given = self._system = system
        last = record.steps + record.quits + min(budget, UNLIMITED - record.steps - record.quits)
        with Progress(progress, self) as report, interrupts_heard(self._shared):
            try:
                self._stop = ""
                executor.open()
                while not self._is_over(last):
                    for event in self._in_order(executor.receive(self._patience_left(executor)), executor):
                        self._take(event, executor, last)
                    self._give_up_late(executor)
                    self._send_orders(executor, last)
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

    def report(self) -> PlannerReport:
        """Return what the planner says of the run, as far as it holds for several walkers (docs/theory/fleet.md)."""
        said, lost = super().report(), self.record.lost
        if self._joined <= 1 and not lost:
            return said
        return said._replace(guarantee=of_several(said.guarantee, [self._lost] if lost else []))

    def _is_over(self, last: int) -> bool:
        """Whether nothing is in flight, and nothing more will be issued."""
        return bool(self._issued) and not self._in_flight() and self._stops(last)

    def _stops(self, last: int) -> bool:
        record = self.record
        return self._shared.interrupted or self._finished or record.begun + record.quits >= last

    def _patience_left(self, executor: Executor) -> float | None:
        """Return the seconds until the next sample is late; None: wait as long as it takes."""
        until = min(self._late_at(of_reset) for of_reset in (False, True))
        return None if until == math.inf else max(0.0, until - executor.now())

    def _late_at(self, of_reset: bool) -> float:
        """Return the time at which the oldest order that is waited for will be late; inf: never, or there is none."""
        oldest = next(iter(self._waited[of_reset].values()), None)
        return math.inf if oldest is None else oldest.since + self._lateness.limit(of_reset=of_reset)

    def _in_order(self, events: list[Event], executor: Executor) -> list[Event]:
        """Return the events that are to be taken now, in this order."""
        if self._depth is None:
            return events
        out: list[Event] = []
        for event in events:
            walk = self.walks.get(event.walker)
            order = None if walk is None or walk.is_late else walk.order
            if walk is None or order is None or not isinstance(event, Report) or event.number != order.number:
                out.append(event)
            else:
                self._lateness.note(executor.now() - walk.since, of_reset=order.action == RESET)
                self._early[event.number] = event
                del self._waited[order.action == RESET][order.number]
        return out

    def _take(self, event: Event, executor: Executor, last: int) -> None:
        if isinstance(event, Joined):
            engine = Engine(self.record, self._shared.rng, self._shared.horizon)
            engine.components = self._shared.components
            self.walks[event.walker] = Walk(event.walker, engine)
            self._joined += 1
        elif isinstance(event, Lost):
            self._lose(event.walker)
        else:
            self._take_report(event, executor)
        self._send_orders(executor, last)

    def _lose(self, walker: int) -> None:
        """Go on without a walker; the sample that it worked on is given up."""
        walk = self.walks.pop(walker, None)
        if walk is None or walk.order is None:
            return
        self._wait_no_more(walk.order)
        sample = walk.sample
        if sample is None:
            return
        if not walk.is_late:
            self.record.give_up(sample, self._lost)
            self._attempts.end_attempts()
        elif self._lost == "state" and sample.is_unknown and sample.is_step:
            self.record.fill(sample, CRASH, self.record.crash_reward, terminated=True)

    def _wait_no_more(self, order: Order) -> None:
        self._waited[order.action == RESET].pop(order.number, None)
        if self._depth is not None and order.number >= self._read:
            self._early.pop(order.number, None)
            self._given_up.add(order.number)

    def _take_report(self, report: Report, executor: Executor) -> None:
        if not self._report(report, executor):
            executor.dismiss(report.walker)
            self._lose(report.walker)

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
        walk.order, self.engine = None, walk.engine
        self._waited[order.action == RESET].pop(order.number, None)
        if walk.is_late:
            self._report_late(walk, report, key)
        elif order.action == RESET:
            self._report_reset(walk, report, key)
        else:
            self._report_step(walk, report, key)
        walk.sample = None
        self.record.flush()
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
            self._model.restarts += self._start is not None and walk.is_new
            self._begin_at(engine.state)
        else:
            engine.reset(key, report.actions)
        record.returning, walk.cut, walk.is_new = None, False, False

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
            engine.state, walk.cut = None, True

    def _report_late(self, walk: Walk, report: Report, key: Any) -> None:
        """Write what came late, and let the walker go on from there."""
        walk.is_late, engine, sample = False, walk.engine, walk.sample
        if sample is not None and sample.is_unknown and self._lost != "independent":
            if sample.is_step:
                self.record.fill(sample, key, as_number(report.reward), report.terminated, report.actions)
            else:
                self.record.returning = sample
                self.record.reset(self.record.arrive_at(key, report.actions))
            self.record.returning = None
        if report.terminated or report.truncated:
            engine.state, walk.cut = None, True
        else:
            engine.start(key, report.actions)
            walk.cut = False
            self._begin_at(engine.state)
        self._attempts.end_attempts()

    def _give_up_late(self, executor: Executor) -> None:
        """Count no more on samples that take too long; their walkers may still report."""
        given_up = False
        for of_reset in (False, True):
            while self._late_at(of_reset) <= executor.now():
                walk = next(iter(self._waited[of_reset].values()))
                walk.is_late = given_up = True
                walk.engine.break_off()
                walk.engine.state = None
                assert walk.order is not None
                self._wait_no_more(walk.order)
                if walk.sample is not None:
                    self.record.give_up(walk.sample, self._lost_if_late)
        if given_up:
            self._attempts.end_attempts()

    @property
    def _lost_if_late(self) -> str:
        """What becomes of a late sample; no crash, if how long is late changes: then it is no outcome of its pair."""
        return "unknown" if self._lost == "state" and not self._lateness.is_fixed else self._lost

    def _send_orders(self, executor: Executor, last: int) -> None:
        """Give an order to every walker that has none, as long as there is something to do."""
        while True:
            for walk in self.walks.values():
                if walk.order is None:
                    self._order(walk, executor, last)
            report = self._next_early()
            if report is None:
                return
            self._take_report(report, executor)

    def _next_early(self) -> Report | None:
        """Return the next report in the order of issue, if it is here; all orders that can be are issued before."""
        while self._read in self._given_up:
            self._given_up.remove(self._read)
            self._read += 1
        report = self._early.pop(self._read, None)
        self._read += report is not None
        return report

    def _order(self, walk: Walk, executor: Executor, last: int) -> None:
        if self._depth is not None and self._issued - self._read > self._depth:
            return
        action, row = self._next_action(walk, last)
        if action is None:
            return
        walk.order = Order(self._issued, walk.walker, action)
        self._issued += 1
        walk.sample, settled = None, False
        if row >= 0:
            walk.on_trip = not self.record.need.unmet_items[self._model.rows.state[row]]
            walk.sample, settled = self.record.issue(walk.order.number, row)
        self._attempts.issued(walk.engine, is_step=action != RESET, settled=settled)
        walk.since = executor.now()
        self._waited[action == RESET][walk.order.number] = walk
        executor.send(walk.order)

    def _next_action(self, walk: Walk, last: int) -> tuple[int | None, int]:
        """Return (the action that a walker takes next, the row that it samples); None: nothing, for now."""
        engine, record, model = walk.engine, self.record, self._model
        reset_row = int(model.rows.ptr[model.states.reset]) if model.states.reset >= 0 else -1
        if engine.state is None:
            return (None, -1) if self._start is not None and self._stops(last) else (RESET, reset_row)
        self.engine = engine
        while not self._stops(last) and not (record.need.met and self._in_flight()) and not self._waits(walk):
            self._attempts.end_if_used_up(engine)
            if engine.attempt is None and not self._new_attempt():
                continue
            if engine.at_reset:
                return RESET, reset_row
            row = engine.choose()
            if row < 0:
                continue
            if model.certain[row]:
                engine.quit_episode(row)
                continue
            return int(model.rows.action[row]), row
        return None, -1

    def _waits(self, walk: Walk) -> bool:
        """Whether a walker stays where it is: its trip is longer than `thrift`, and another one moves or is nearer."""
        if self._thrift is None or walk.on_trip or len(self.walks) == 1:
            return False
        assert self.planner is not None
        steps = self.planner.expected_steps()
        if steps is None or steps[walk.engine.state] <= self._thrift:
            return False
        others = [other.engine.state for other in self.walks.values() if other.engine.state is not None]
        return self._in_flight() or bool(np.min(steps[others]) < steps[walk.engine.state])

    def _in_flight(self) -> bool:
        steps, resets = self._waited
        return bool(steps or resets or self._early)
