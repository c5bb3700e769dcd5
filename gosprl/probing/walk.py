"""The walk of a probe: `collect` itself, under a budget of steps and of seconds.

For the first third of the budget the walk is, step by step, that of `collect` with the same seed. A small system is
collected whole by then, and what `collect` takes is known. If not, the walk goes for one sample of every pair first, so
that all of the system is seen, and then on towards the need. Where the need is met early, the walk goes on for more
samples of every pair, up to LEAST steps: tests need data.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.collector import Collector
from gosprl.collecting.requirements import Requirement, checked
from gosprl.errors import CollectionError, GosprlError, PrecisionError
from gosprl.model.empirical import EmpiricalModel
from gosprl.probing.log import Watched
from gosprl.progress import Progress

DIRECT = 1 / 3  # the part of the budget in which the walk is that of `collect`
SHORT, LONG = 0.05, 0.25  # seconds that a block of steps should take
LEAST, LEAST_SECONDS = 5000, 5.0  # the walk goes on after the need is met, until one of these is reached
TIMES = (10, 100, 1000)  # the need, when it goes on


class Sample(NamedTuple):
    """How far the walk was at some time."""

    steps: int
    seconds: float  # since it began
    states: int
    missing: int  # samples needed and not collected, of the states discovered
    memory: float  # of the process, in bytes; nan if that cannot be read


@dataclass(frozen=True)
class Walk:
    """What a walk left behind."""

    collector: Collector
    watched: Watched
    samples: list[Sample]  # from the beginning to the end
    met: Sample | None  # when the need was met
    direct: bool  # whether it was met by the walk of `collect`
    failure: str  # what the system did wrong, "" if nothing


class Adjusted(Requirement):
    """What another requirement asks for; for the time being a multiple of it, or no more than `cap` of anything.

    Parameters
    ----------
    asked
        The other requirement.
    model
        The counts.
    """

    def __init__(self, asked: Requirement, model: EmpiricalModel) -> None:
        self.asked, self.of_discovered = asked, asked.of_discovered
        self.pair, self.state = checked(asked, asked.pair, asked.state, model)
        self._cap: int | None = None
        self._times = 1
        self._changed = False

    def adjust(self, cap: int | None = None, times: int = 1) -> None:
        """Ask for so many times as much from now on, but no more than `cap`."""
        self._cap, self._times, self._changed = cap, times, True

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Let the other requirement look at the counts, and adjust what it asks for."""
        known = len(self.asked.pair) == len(model.rows)
        changed = self.asked.update(model, rows if known else rows[rows < len(model.known_rows)])
        pair, state = checked(self.asked, self.asked.pair, self.asked.state, model)
        self.pair, self.state = self._adjusted(pair), self._adjusted(state)
        every, self._changed = changed is None or self._changed, False
        return None if every else changed

    def _adjusted(self, asked: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._times * asked if self._cap is None else np.minimum(asked, self._cap)

    def resize(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> None:
        """Take over the model's number of states and rows."""
        self.asked.resize(model, rows)
        super().resize(model, rows)

    def as_of_now(self, model: EmpiricalModel) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """Return what is asked for in the end, not adjusted."""
        pair, state, num_states = self.asked.as_of_now(model)
        return *checked(self.asked, pair, state, model), num_states

    def num_states(self, model: EmpiricalModel) -> int:
        """Return that of the other requirement."""
        return self.asked.num_states(model)


class _Budget:
    """Steps and seconds; what is used up first ends the walk."""

    def __init__(self, collector: Collector, steps: int, seconds: float) -> None:
        self._collector, self._steps, self._seconds = collector, steps, seconds
        self._begin = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the walk began."""
        return time.monotonic() - self._begin

    @property
    def made(self) -> int:
        """Steps so far, and resets by choice, which use up the budget too."""
        return self._collector.record.steps + self._collector.record.quits

    def within(self, part: float) -> "_Budget":
        """Return a part of the budget, begun at the same time."""
        return self._with(int(part * self._steps), part * self._seconds)

    def extended(self, steps: int, seconds: float) -> "_Budget":
        """Return the budget until there are so many steps, or so many more seconds from now, if that is within it."""
        return self._with(min(self._steps, steps), min(self._seconds, self.seconds + seconds))

    def _with(self, steps: int, seconds: float) -> "_Budget":
        other = _Budget(self._collector, steps, seconds)
        other._begin = self._begin
        return other

    @property
    def left(self) -> int:
        """Steps left; 0 if the seconds are over."""
        return 0 if self.seconds >= self._seconds else max(0, self._steps - self.made)


class _Walker:
    """Walks in phases, each with its own need and budget."""

    def __init__(
        self, watched: Watched, collector: Collector, need: Adjusted, budget: _Budget, report: Progress
    ) -> None:
        self.watched, self.collector, self.need = watched, collector, need
        self.budget, self.report = budget, report
        self.samples = [self.sample()]
        self.met: Sample | None = None
        self.direct = False

    def walk(self) -> None:
        """Make all phases."""
        if self._go(self.budget.within(DIRECT)):
            self.met, self.direct = self.samples[-1], True
        elif self._stopped_by_budget() and self._go(self.budget, cap=1) and self._go(self.budget, cap=None):
            self.met = self.samples[-1]
        if self.met is not None:
            more = self.budget.extended(LEAST, LEAST_SECONDS)
            for times in TIMES:
                if not self._go(more, times=times):
                    break

    def sample(self) -> Sample:
        """Return how far the walk is."""
        model = self.collector.model
        pair, state, _ = self.need.as_of_now(model)
        of_states = self.collector.record.need.state_visits
        missing = int(np.maximum(pair - model.visits, 0).sum() + np.maximum(state - of_states, 0).sum())
        steps, seconds = self.collector.record.steps, self.budget.seconds
        return Sample(steps, seconds, len(model.discovered), missing, resident_bytes())

    def _stopped_by_budget(self) -> bool:
        return self.collector.stop_reason() in ("max_steps", "running")

    def _go(self, budget: _Budget, **adjusted: Any) -> bool:
        """Walk block by block until what is needed now is met; False if something stopped the walk before."""
        if adjusted:
            self.need.adjust(**adjusted)
            self.collector.engine.break_off()  # the attempt was made for what was needed before
            self.collector.record.update_need()
        block = 1
        while (left := budget.left) > 0:
            begin = time.monotonic()
            self.collector.walk(self.watched, min(block, left))
            self.samples.append(self.sample())
            self.report()
            if not self._stopped_by_budget():
                return self.collector.stop_reason() == "met"
            took = time.monotonic() - begin
            block = 2 * block if took < SHORT else max(1, block // 2) if took > LONG else block
        return False


def walk(
    watched: Watched, collector: Collector, need: Adjusted, steps: int, seconds: float, progress: Any = None
) -> Walk:
    """Walk until enough is known or the budget is used up.

    Parameters
    ----------
    watched
        The system.
    collector
        Asks for `need`, and has made no step yet.
    need
        What is needed.
    steps, seconds
        The budget.
    progress
        As in `gosprl.collect`.
    """
    failure = ""
    with Progress(progress, collector) as report:
        walker = _Walker(watched, collector, need, _Budget(collector, steps, seconds), report)
        try:
            walker.walk()
        except CollectionError as error:
            if not _is_of_system(error, watched):
                raise
            failure = str(error)
            walker.samples.append(walker.sample())
    return Walk(collector, watched, walker.samples, walker.met, walker.direct, failure)


def _is_of_system(error: CollectionError, watched: Watched) -> bool:
    """Whether the system is to blame: it raised, or returned what nobody can take; otherwise it is a bug of ours."""
    cause = error.__cause__
    return watched.raised is not None or (isinstance(cause, GosprlError) and not isinstance(cause, PrecisionError))


def resident_bytes() -> float:
    """Return the memory that this process has now; nan where the machine does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return float(pages * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, IndexError, AttributeError):
        return float("nan")
