"""Kinds of events in a log: steps, resets that follow an ending, resets that were chosen.

The flags of a step are those of `gosprl.collecting.journal`; a reset has the flag `RESET`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.journal import TERMINATED, TRUNCATED

RESET = 1

Columns = Mapping[str, NDArray[Any]]
Mask = NDArray[np.bool_]


class Kinds(NamedTuple):
    """Masks [n] of consecutive events."""

    reset: Mask
    after_ending: Mask  # the event before ended an episode, or there is none
    elsewhere: Mask  # a new trajectory began here, as the manifest says

    @property
    def chosen(self) -> Mask:
        """The resets that the planner chose."""
        return self.reset & ~self.after_ending & ~self.elsewhere


def kinds_of(flags: NDArray[np.uint8], first: int, ended: bool, breaks: Iterable[int]) -> Kinds:
    """Return the kinds of consecutive events.

    Parameters
    ----------
    flags
        [n] their flags; n > 0.
    first
        The number of the first of them.
    ended
        Whether the event before them ended an episode, or there is none.
    breaks
        Numbers of the events at which a new trajectory began.
    """
    after_ending = np.append(ended, (flags[:-1] & (TERMINATED | TRUNCATED)) > 0)
    elsewhere = np.zeros(len(flags), dtype=bool)
    elsewhere[[event - first for event in breaks if first <= event < first + len(flags)]] = True
    return Kinds((flags & RESET) > 0, after_ending, elsewhere)


def is_ended(flags: NDArray[np.uint8]) -> bool:
    """Whether the last of these events [n] ended an episode."""
    return bool(flags[-1] & (TERMINATED | TRUNCATED))
