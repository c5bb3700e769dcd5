"""CommittedModel: the samples of a fleet that count, in the order in which they were issued.

Several copies of a system bring outcomes back in any order. What came back early is not distributed as what will come
back late, so confidence sets count the samples of a row in the order of issue (docs/theory/fleet.md). A place in that
order whose outcome is not known (its walker is lost, or late) is *unknown*: sets allow for every outcome there.

The model shares states and rows with the model of everything that was returned, and has counts of its own.
"""

from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import GosprlError
from gosprl.model import pool
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.space import PLACES


def _of_returned(name: str) -> Any:
    """Return a property for what is read before every attempt; `__getattr__` takes ten times as long."""
    return property(attrgetter(f"_returned.{name}"))


class CommittedModel(EmpiricalModel):
    """Counts of the committed samples, over the states and rows of another model.

    Parameters
    ----------
    returned
        The model that grows as states are discovered. What it has counted so far is committed.

    Attributes
    ----------
    unknown
        [R] places of each row whose outcome is not known; N(s, a) does not count them.
    unknown_until
        [R] the last place that ever was unknown, from 1; 0: none was.
    pending
        [R] samples of each row that were issued and are no places yet: one of them, or one before, is in flight.
    """

    rows, states, resets, ended = map(_of_returned, ("rows", "states", "resets", "ended"))
    enabled, aliased, discovered = map(_of_returned, ("enabled", "aliased", "discovered"))

    def __init__(self, returned: EmpiricalModel) -> None:
        self._returned = returned
        self._counts = pool.copied(returned.counts)
        nothing = np.zeros(len(returned.rows), dtype=np.int64)
        self.unknown, self.unknown_until = (
            getattr(returned, name).copy() if returned.unknown.size else nothing.copy() for name in PLACES[:2]
        )
        self.pending = nothing
        returned.follow(self)

    def __getattr__(self, name: str) -> Any:
        """Return what is not a count: it is that of the other model, which may grow."""
        if name.startswith("__") or name == "_returned":  # asked for while a copy is made
            raise AttributeError(name)
        return getattr(self._returned, name)

    @property
    def returned(self) -> EmpiricalModel:
        """The model of everything that returned."""
        return self._returned

    def copy(self) -> EmpiricalModel:
        """Return a copy that later transitions do not change, with states of its own."""
        return self._alone().copy()

    def arranged(self, kept: Any) -> EmpiricalModel:
        """Return a model with the states and rows that are kept; always one with states of its own."""
        return self._alone().arranged(kept)

    def _alone(self) -> EmpiricalModel:
        other = EmpiricalModel.__new__(EmpiricalModel)
        other.__dict__.update(self._returned.__dict__)
        other.__dict__.update(followers=[], _counts=self._counts)
        other.__dict__.update({name: getattr(self, name) for name in PLACES})
        return other

    def take_rows(self, row: NDArray[np.int64], size: int) -> None:
        """Have `size` rows, where the rows so far have the numbers `row` [R]."""
        self._counts = pool.with_more_rows(self._counts, row, size)
        self._take_places(row, size)

    def places_of(self, row: int) -> int:
        """Return the places of a row so far: samples, and what is unknown."""
        return int(self._counts.visits[row] + self.unknown[row])

    def add_unknown(self, row: int) -> int:
        """Let the next place of a row be unknown, and return its number."""
        self.unknown[row] += 1
        place = self.places_of(row)
        self.unknown_until[row] = place
        self._touch(row)
        return place

    def mark_first(self, row: int, s_next: int) -> None:
        """Correct when the successor just counted appeared first: places that are unknown count as well."""
        if self.unknown[row]:
            j = self._slot(row, s_next)
            if self._counts.number[j] == 1:
                self._counts.first[j] = -self.places_of(row)

    def fill(self, row: int, place: int, s_next: int) -> None:
        """Take in that an unknown place turned out to be the transition just counted.

        A successor that appeared first after this place may have been here before: of those, only the latest possible
        place is known from now on.
        """
        if self.unknown[row] < 1:
            raise GosprlError(f"fill: no place of row {row} is unknown")
        self.unknown[row] -= 1
        counts = self._counts
        begin, end = int(counts.start[row]), int(counts.start[row] + counts.length[row])
        first = counts.first[begin:end]
        first[first >= place] *= -1
        j = self._slot(row, s_next)
        if counts.number[j] == 1:
            counts.first[j] = -self.places_of(row)
        self._touch(row)

    def _slot(self, row: int, s_next: int) -> int:
        begin = int(self._counts.start[row])
        return begin + int(np.argmax(self._counts.succ[begin : begin + int(self._counts.length[row])] == s_next))

    def _touch(self, row: int) -> None:
        from gosprl import _kernels

        _kernels.touch_many(self._counts, np.array([row]))
