"""The places of a fleet: how many walkers there are to be, and when a place is given up.

A walker that is gone is replaced by a new one with a new number. If several in a row are gone before they have reported
anything, their place stays empty: whatever ends them would end the next one as well.
"""

from itertools import count

from gosprl.errors import GosprlError

IN_A_ROW = 3  # replacements without a single report


class Slots:
    """Places and numbers of walkers.

    Parameters
    ----------
    workers
        Number of places.

    Attributes
    ----------
    left
        Places that are not given up.
    last_reason
        Why the last walker that is gone is gone.
    """

    def __init__(self, workers: int) -> None:
        self.left = workers
        self.last_reason = "no walker was started"
        self._failures = [0] * workers
        self._numbers = count()

    def number(self) -> int:
        """Return a number for a new walker, never used before."""
        return next(self._numbers)

    def may_replace(self, slot: int, why: str, reported: bool) -> bool:
        """Note that the walker in this place is gone; whether it is to be replaced."""
        self.last_reason = why
        self._failures[slot] = 1 if reported else self._failures[slot] + 1
        if self._failures[slot] > IN_A_ROW:
            self.left -= 1
            return False
        return True

    def give_up(self, why: str) -> None:
        """Give up a place whose walker cannot be replaced."""
        self.left -= 1
        self.last_reason = why

    def close(self) -> None:
        """Give up all places."""
        self.left, self.last_reason = 0, "the fleet was closed"

    def check(self) -> None:
        """Raise `GosprlError` if all places are given up."""
        if self.left == 0:
            raise GosprlError(f"no walker is left; the last one is gone because: {self.last_reason}")
