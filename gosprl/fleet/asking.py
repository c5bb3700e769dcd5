"""Several walkers in a loop that the user owns: `ask` issues a sample, `tell` returns it.

A reset is issued when it becomes necessary (a step ended the episode, or the answer was to reset), and returns with the
next `ask`, which says where it led. So all samples have a place in the order of issue, whatever decides when walkers
come back. Where a walker is when it asks for the first time is no sample: walkers that begin at the same time come in
an order that may depend on where they begin.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gosprl.collecting.record import Record
from gosprl.collecting.sharing import Sharing, of_several
from gosprl.fleet.record import FleetRecord
from gosprl.guarantee import Guarantee
from gosprl.model.space import UNSAID

if TYPE_CHECKING:
    from gosprl.collecting.asktell import Walk


def shared_record(record: Record) -> FleetRecord:
    """Return a record for several walkers that goes on where one of a single walker is."""
    record.update_need()
    shared = FleetRecord(record.model, record.need.requirement, record.threshold, record.rewards)
    memory = record.remember()
    shared.committed.recall(memory)
    shared.recall(memory)
    return shared


class Crew:
    """Issues and returns the samples of walkers that ask and tell.

    Parameters
    ----------
    record
        Where they are written.
    sharing
        When attempts of other walkers end.
    lost
        What becomes of samples that are given up: as in `FleetRecord.give_up`.
    """

    def __init__(self, record: FleetRecord, sharing: Sharing, lost: str) -> None:
        self._record, self._sharing, self._lost = record, sharing, lost
        self._issued = 0

    def qualified(self, guarantee: Guarantee) -> Guarantee:
        """Return what holds of a planner's guarantee."""
        return of_several(guarantee)

    def status(self) -> dict[str, int]:
        """Return the numbers of steps in flight, and of samples that were given up."""
        return {"in_flight": self._record.in_flight, "lost": self._record.lost}

    def issue(self, walk: "Walk", row: int) -> None:
        """Write that a walker was told to take a row."""
        walk.sample, settled = self._record.issue(self._issued, row)
        self._issued += 1
        self._sharing.issued(walk.engine, is_step=walk.sample.is_step, settled=settled)

    def issue_reset(self, walk: "Walk") -> None:
        """Write that the system of a walker has to be reset."""
        model = self._record.model
        if model.states.reset >= 0:
            self.issue(walk, int(model.rows.ptr[model.states.reset]))

    @contextmanager
    def returning(self, walk: "Walk") -> Iterator[None]:
        """Let what is written here be the outcome of the walker's sample; it stays in flight if that is refused."""
        self._record.returning = walk.sample
        try:
            yield
            walk.sample = None
        finally:
            self._record.returning = None

    def give_up(self, walk: "Walk", how: str | None = None) -> None:
        """Count no more on the sample that a walker works on.

        Parameters
        ----------
        how
            What becomes of it, instead of what is usual here. If it was given up as unknown before, it may still become
            a crash.
        """
        record, sample, how = self._record, walk.sample, how or self._lost
        self._sharing.end_attempts()
        if sample is None:
            return
        if not walk.is_lost:
            record.give_up(sample, how)
        elif how == "state" and sample.is_step:
            record.fill_with_crash(sample)
        record.returning = None
        if how == "independent" or not sample.is_unknown:
            walk.sample = None  # nothing can fill its place any more

    def end_attempts(self) -> None:
        """Let all walkers ask for a new attempt before their next step."""
        self._sharing.end_attempts()

    def fill(self, walk: "Walk", key: Any, reward: float, terminated: bool, truncated: bool) -> None:
        """Write the outcome of a step that was given up: it fills its place, if that was kept for it."""
        record, sample, steps = self._record, walk.sample, self._record.steps
        if sample is None:
            return
        try:
            record.fill(sample, key, reward, terminated, UNSAID, truncated)
        except BaseException:
            record.steps = steps
            raise
        finally:
            record.returning = None
        self._sharing.end_attempts()
