"""The samples of a fleet: issued, in flight, returned or unknown, committed.

Each row has a queue of its samples in the order of issue. A sample leaves the queue, and is committed, when it and all
that were issued before it have returned, or are known to be unknown. So whatever decides when outcomes come back, the
committed samples of a row are the first ones that were issued.
"""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Result(NamedTuple):
    """The outcome of a sample, in states of the model."""

    s_next: int
    reward: float


@dataclass(slots=True, eq=False)
class Sample:
    """One order to take a row."""

    number: int  # of the order
    row: int
    is_step: bool  # False: a reset
    outcome: Result | None = None
    is_unknown: bool = False
    place: int = 0  # among the samples of the row, once it was committed as unknown; 0 before


class Queues:
    """The samples of each row that are not committed yet, in the order of issue; and those that are unknown."""

    def __init__(self) -> None:
        self._queues: dict[int, deque[Sample]] = {}
        self.unknown: list[Sample] = []  # committed without an outcome, which may still come

    def issue(self, number: int, row: int, is_step: bool) -> Sample:
        """Let there be one more sample of a row."""
        sample = Sample(number, row, is_step)
        self._queues.setdefault(row, deque()).append(sample)
        return sample

    def drop(self, sample: Sample) -> None:
        """Let a sample never have been there."""
        self._queues[sample.row].remove(sample)

    def settled(self, row: int) -> list[Sample]:
        """Take out the samples of a row that can be committed, in order."""
        queue, out = self._queues.get(row), []
        while queue and (queue[0].outcome is not None or queue[0].is_unknown):
            out.append(queue.popleft())
        if queue is not None and not queue:
            del self._queues[row]
        return out

    @property
    def waiting(self) -> int:
        """Samples that have returned and are not committed: an earlier one of their row is in flight."""
        return sum(sample.outcome is not None for queue in self._queues.values() for sample in queue)

    def renumber(self, row: NDArray[np.int64]) -> None:
        """Let the rows have the numbers that `row` [R] has for them."""
        self._queues = {int(row[r]): queue for r, queue in self._queues.items()}
        for samples in (*self._queues.values(), self.unknown):
            for sample in samples:
                sample.row = int(row[sample.row])
