"""Replay: makes a leg of a run again from its log, in the place of an `Out`, which would write."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gosprl.collecting.beginning import Beginning
from gosprl.collecting.collector import Collector
from gosprl.collecting.result import Result
from gosprl.runs.comparing import compared
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
    certificate
        What the leg ended with, if it is known. A run may stop when it has planned its next step, and not made it,
        which is not in the log: of what it did then, as much is done as the certificate says.
    """

    run: OpenRun
    leg: int
    certificate: Mapping[str, Any] | None = None

    def replayed(self, begin: Callable[[int, Beginning | None], Collector], system: System) -> tuple[Collector, Result]:
        """Return the collector and the result at the end of the leg; `Differs` if the log says otherwise."""
        collector = begin(self.run.seed_of_leg(self.leg), self.run.data)
        self.restored(collector, system)
        collector.seed = self.run.seed
        collector.conclude()
        result = collector.last_result()
        while self.certificate is not None and compared(self.certificate, result, self.run)[0] and collector.prepare():
            collector.conclude()
            result = collector.last_result()
        return collector, result

    def restored(self, collector: Collector, system: System) -> None:
        """Put a collector where the leg ends, by making all of the leg again."""
        self.run.restore(collector, system, self.leg, checkpoints=False)


@dataclass(frozen=True)
class FromCheckpoint(Replay):
    """Makes the end of a leg again, from the newest checkpoint."""

    def restored(self, collector: Collector, system: System) -> None:
        """Put a collector where the leg ends, from the newest checkpoint."""
        self.run.restore(collector, system, self.leg)
