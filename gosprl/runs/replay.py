"""Replay: makes a leg of a run again from its log, in the place of an `Out`, which would write."""

from collections.abc import Callable
from dataclasses import dataclass

from gosprl.collecting.beginning import Beginning
from gosprl.collecting.collector import Collector
from gosprl.collecting.result import Result
from gosprl.runs.opened import OpenRun
from gosprl.systems.base import System


@dataclass(frozen=True)
class Replay:
    """Makes a leg of a run again, from its log, and writes nothing.

    Parameters
    ----------
    run
        The run.
    leg
        The number of the leg.
    """

    run: OpenRun
    leg: int

    def replayed(self, begin: Callable[[int, Beginning | None], Collector], system: System) -> tuple[Collector, Result]:
        """Return the collector and the result at the end of the leg; `Differs` if the log says otherwise."""
        collector = begin(self.run.seed_of_leg(self.leg), self.run.data)
        self.restored(collector, system)
        collector.seed = self.run.seed
        collector.conclude()
        return collector, collector.last_result()

    def restored(self, collector: Collector, system: System) -> None:
        """Put a collector where the leg ends, by making all of the leg again."""
        self.run.restore(collector, system, self.leg, checkpoints=False)


@dataclass(frozen=True)
class FromCheckpoint(Replay):
    """Makes the end of a leg again, from the newest checkpoint."""

    def restored(self, collector: Collector, system: System) -> None:
        """Put a collector where the leg ends, from the newest checkpoint."""
        self.run.restore(collector, system, self.leg)
