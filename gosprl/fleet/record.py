"""FleetRecord: the one writer of what happens in the run of a fleet.

It counts twice. Everything that returned is counted at once, for the practical plan and for what is in flight. What is
committed is counted in the order of issue, in a record of its own (`committed`): confidence sets, adaptive requirements
and "met" read that one. When nothing is in flight, both have the same counts.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.record import ANY_REWARD, Record, flags_of
from gosprl.collecting.requirements import Requirement
from gosprl.collecting.sharing import assume
from gosprl.fleet.need import FleetNeed, Heard, Mirrored
from gosprl.fleet.samples import Queues, Result, Sample
from gosprl.model.committed import CommittedModel
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.states import CRASH


class FleetRecord(Record):
    """Counts and need of the run of a fleet.

    Parameters
    ----------
    model, requirement, threshold, rewards
        As of `Record`; the model has everything that returned.

    Attributes
    ----------
    committed
        Record of the committed samples.
    returning
        The sample whose outcome the next event is; None: none was issued for it.
    in_flight
        Steps whose outcome is waited for.
    leased
        Steps that walkers may make by themselves, and have not begun as far as is known.
    forfeited
        Steps that walkers might have made by themselves, which planners have counted for good.
    lost
        Samples that were given up: late, or their walker is gone.
    """

    need: FleetNeed

    def __init__(
        self,
        model: EmpiricalModel,
        requirement: Requirement,
        threshold: float = math.inf,
        rewards: tuple[float, float] = ANY_REWARD,
    ) -> None:
        self._heard = Heard(requirement)
        self.counts = CommittedModel(model)
        self.committed = Record(self.counts, self._heard, rewards=rewards)
        super().__init__(model, Mirrored(self.committed, self._heard), threshold, rewards)
        self._queues = Queues()
        self._known = model.rows  # those that the samples' rows are numbers of
        self.returning: Sample | None = None
        self.in_flight = 0
        self.lost = 0
        self.leased = self.forfeited = 0

    def _new_need(self, model: EmpiricalModel, requirement: Requirement) -> FleetNeed:
        return FleetNeed(model, requirement, self.committed.need, self.flush)

    @property
    def counted(self) -> Record:
        """The record of what counts for the result: the committed samples."""
        counted = self.committed
        counted.steps, counted.resets, counted.quits, counted.found = self.steps, self.resets, self.quits, self.found
        counted.flush()
        return counted

    @property
    def is_met(self) -> bool:
        """Whether the committed samples are all that is needed; not before those returned and in flight are."""
        return self.need.met and self.counted.need.met

    @property
    def begun(self) -> int:
        """Steps so far, with those in flight and those that walkers may make by themselves."""
        return self.steps + self.in_flight + self.leased

    @property
    def accounted(self) -> int:
        """The same with the steps that stay in the account of a planner, though no walker made them."""
        return self.begun + self.forfeited

    @property
    def all_in_flight(self) -> bool:
        """Whether samples are in flight, and nothing else is missing."""
        return self.need.met and bool(self.need.in_flight)

    @property
    def waiting(self) -> int:
        """Samples that have returned, and wait for earlier ones of their row."""
        return self._queues.waiting

    def issue(self, number: int, row: int) -> tuple[Sample, bool]:
        """Write that a sample of a row is ordered; the sample, and whether its state has all it needs by that."""
        is_step = not self.model.terminal[self.model.rows.state[row]]
        sample = self._queues.issue(number, row, is_step)
        self.counts.pending[row] += 1
        self.in_flight += is_step
        return sample, self.need.reserve(row, self.visits(row))

    def give_up(self, sample: Sample, how: str) -> None:
        """Write that the outcome of a sample will not come in time.

        Parameters
        ----------
        how
            "unknown": its place stays, without an outcome. "state": it led to a crash. "independent": losing it had
            nothing to do with the outcome, so it never was there.
        """
        self.lost += 1
        if how == "state" and sample.is_step:
            self._assume_crash(sample)
            return
        self.in_flight -= sample.is_step
        self.need.release(sample.row, self.visits(sample.row))
        self.steps += sample.is_step
        sample.is_unknown = True
        if how == "independent":
            assume(self.model, how)
            self._queues.drop(sample)
            self.counts.pending[sample.row] -= 1
        self._commit(sample.row)

    @property
    def crash_reward(self) -> float:
        """The reward of a step that never reported one: 0, or the nearest one allowed."""
        return min(max(0.0, self.rewards[0]), self.rewards[1])

    def fill(
        self, sample: Sample, key: Any, reward: float, terminated: bool, actions: Any = None, truncated: bool = False
    ) -> int:
        """Write the outcome of a sample that was given up as unknown, and return the state it led to."""
        self.returning = sample
        self.steps -= 1  # it was counted when it was given up
        return self.step(sample.row, key, reward, terminated, actions, truncated)

    def fill_with_crash(self, sample: Sample) -> None:
        """Let a sample that was given up as unknown have led to a crash."""
        self.steps -= 1
        self._assume_crash(sample)

    def _assume_crash(self, sample: Sample) -> None:
        assume(self.model, "state")
        # No episode was seen to end by it: another such reset cannot be asked for.
        self.returning = sample
        self._end(sample.row, CRASH, self.crash_reward)

    def pass_over(
        self, row: int, key: Any, reward: float, terminated: bool, actions: Any, truncated: bool = False
    ) -> None:
        """Write the outcome of a sample that counts no more, for the journal alone; row -1: a reset."""
        s_next = self.end_at(key) if terminated else self.arrive_at(key, actions)
        if self.journal is not None and row < 0:
            self.journal.reset(s_next)
        elif self.journal is not None:
            self.journal.step(row, s_next, reward, flags_of(key, terminated, truncated))

    def recount(
        self,
        rows: NDArray[np.int64],
        s_next: NDArray[np.int64],
        rewards: NDArray[np.float64],
        are_steps: NDArray[np.bool_],
    ) -> None:
        """Count transitions of one walker [n] that a journal already has: they are committed as well."""
        super().recount(rows, s_next, rewards, are_steps)
        self.committed.recount(rows, s_next, rewards, are_steps)

    def recommit(self, row: int, outcome: Result | None, place: int = 0) -> int:
        """Commit a sample that a journal already has; where it has no outcome, return its unknown place.

        Parameters
        ----------
        place
            The unknown place that the outcome fills; 0: it has the next place.
        """
        if outcome is None:
            self.committed.flush()
            return self.counts.add_unknown(row)
        self._count_committed(row, *outcome)
        if place:
            self.committed.flush()
            self.counts.fill(row, place, outcome.s_next)
        return 0

    def note(self, row: int, s_next: int, reward: float) -> None:
        """Take in the outcome of the sample that is returning, or a transition that was never issued."""
        sample, self.returning = self.returning, None
        if sample is None or self.model.certain[row]:
            self.need.land(row, self.visits(row), s_next, was_in_flight=False)
            super().note(row, s_next, reward)
            self._count_committed(row, s_next, reward)
            self.returning = sample
            return
        landed = not sample.is_unknown
        self.in_flight -= sample.is_step and landed
        self.need.land(row, self.visits(row), s_next, landed)
        super().note(row, s_next, reward)
        sample.outcome, sample.is_unknown = Result(s_next, reward), False
        if sample.place:
            self._count_committed(row, s_next, reward)
            self.committed.flush()
            self.counts.fill(row, sample.place, s_next)
            self._queues.unknown.remove(sample)
        else:
            self._commit(row)

    def know_what_is_met(self) -> None:
        """Nothing to do: the need of a fleet is always ahead of the counts."""

    def flush(self) -> None:
        """Count what was noted, in both views."""
        super().flush()
        self.committed.flush()

    def _count(
        self,
        rows: NDArray[np.int64],
        s_next: NDArray[np.int32],
        rewards: NDArray[np.float64],
        steps: NDArray[np.int64],
    ) -> None:
        self.model.count(rows, s_next, rewards)  # the need knows it already

    def _commit(self, row: int) -> None:
        """Commit the samples of a row that nothing stands before any more."""
        for sample in self._queues.settled(row):
            self.counts.pending[row] -= 1
            if sample.outcome is None:
                self.committed.flush()
                sample.place = self.counts.add_unknown(row)
                self._queues.unknown.append(sample)
            else:
                self._count_committed(row, *sample.outcome)

    def _count_committed(self, row: int, s_next: int, reward: float) -> None:
        self.committed.steps = self.steps
        self.committed.note(row, s_next, reward)
        if self.counts.unknown[row]:
            self.committed.flush()
            self.counts.mark_first(row, s_next)

    def visits_and_needs(self, begin: int, end: int) -> tuple[list[int], list[int]]:
        """Return (visits, samples needed) of the rows begin .. end - 1, where what is in flight counts as a visit."""
        visits, needed = super().visits_and_needs(begin, end)
        in_flight = self.need.in_flight
        for row in range(begin, end):
            if number := in_flight.get(row, 0):
                visits[row - begin] += number
                needed[row - begin] += number
        return visits, needed

    def take_size(self) -> None:
        """Let both needs have as many states and rows as the model."""
        if self.model.rows is not self._known:
            row = self.model.rows.places(self._known)
            self._known = self.model.rows
            self._renumber(row)
        self.committed.take_size()
        super().take_size()

    def _renumber(self, row: NDArray[np.int64]) -> None:
        if not np.array_equal(row, np.arange(len(row))):
            self.flush()
            self._queues.renumber(row)
            self.need.renumber(row)
