"""When a sample is late: after a multiple of the mean duration of a step, or after a fixed time.

At the end of a run, when all that is missing is in flight, idle walkers can take such samples again. To give one up
costs little then, and to wait for it costs the time of all walkers: 0.3 of the multiple is enough. A fixed time
is what the user says that it is, since an outcome may depend on it (`lost="state"`).
"""

import math
import re

from gosprl import _checks
from gosprl.errors import InputError

FEW = 8  # durations below which there is no mean to go by
FIRST = 600.0  # seconds: the limit as long as there is none
LEAST = 0.05  # seconds: below that, a pause of the operating system would make samples late
AT_END = 0.3  # the part of the multiple after which the last samples are late, if other walkers are idle
_SECONDS = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min|h)")
UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


class Lateness:
    """Decides when nobody counts on an answer any more.

    Parameters
    ----------
    late
        A multiple of the mean duration so far, of steps or of resets; a time such as "5s", "300ms" or "2min"; None:
        never.

    Attributes
    ----------
    is_fixed
        Whether it is a fixed time.
    """

    def __init__(self, late: float | str | None) -> None:
        self._fixed = self._times = math.inf
        self._sum, self._number = [0.0, 0.0], [0, 0]  # of steps, of resets
        self.is_fixed = isinstance(late, str)
        if isinstance(late, str):
            self._fixed = _seconds(late)
        elif late is not None:
            self._times = _checks.positive("late", late)

    @property
    def mean(self) -> float:
        """The mean duration of a step so far, in seconds; 0 if none was made."""
        return self._sum[0] / max(1, self._number[0])

    def limit(self, *, of_reset: bool = False, at_end: bool = False) -> float:
        """Return the seconds after which the answer to an order is late; inf: never.

        `at_end`: nothing else is missing, and other walkers are idle.
        """
        number = self._number[of_reset]
        if self._times == math.inf:
            return self._fixed
        if number < FEW:
            return FIRST
        times = AT_END * self._times if at_end else self._times
        return max(LEAST, times * self._sum[of_reset] / number)

    def note(self, seconds: float, *, of_reset: bool = False) -> None:
        """Take in how long an order took: a step, or a reset."""
        self._sum[of_reset] += seconds
        self._number[of_reset] += 1


def _seconds(text: str) -> float:
    found = _SECONDS.fullmatch(text.strip())
    if found is None or float(found[1]) == 0:
        raise InputError(
            f"late: expected a multiple of the mean step, a time such as '5s', '300ms' or '2min', or None, got {text!r}"
        )
    return float(found[1]) * UNITS[found[2]]
