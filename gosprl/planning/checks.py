"""Validation of confidence sets before compiled code reads them: a family may be defined by the user."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import InputError
from gosprl.mdp.rows import Rows
from gosprl.sets.intervals import Confidence, Intervals


def checked(
    intervals: Any, rows: Rows, some: NDArray[np.int64] | None = None, family: Confidence | None = None
) -> tuple[Intervals, NDArray[np.float64], bool]:
    """Check the intervals of a family; return (intervals, slack [n], whether any row has slack).

    Parameters
    ----------
    intervals
        The value that `Confidence.intervals` returned.
    rows
        All pairs.
    some
        [n] int64, the rows that the intervals belong to; None: all rows.
    family
        The family that made the intervals, for error messages; None: this library.

    Raises
    ------
    InputError
        A field has the wrong type, length or entries, or a row's set holds no distribution.
    """
    from gosprl import _kernels

    name, S = "Confidence" if family is None else type(family).__name__, rows.num_states
    n = len(rows) if some is None else len(some)
    if not isinstance(intervals, Intervals):
        raise InputError(f"confidence: expected {name}.intervals to return Intervals, got {intervals!r:.80}")
    parts = _arrays(intervals, name, n)
    ptr, succ, lower, upper, each, total = parts
    slack = np.empty(n)
    wrong, empty, any_slack, off = _kernels.check_rows(ptr, succ, lower, upper, each, total, S, slack)
    r = max(wrong, empty)
    if r >= 0:
        piece = np.s_[ptr[r] : ptr[r + 1]]
        pair = rows.pair(r if some is None else int(some[r]))
        if wrong >= 0:
            raise InputError(
                f"confidence: expected {name}.intervals to have successors in 0..{S - 1}, each once, at (s, a) = "
                f"{pair}, got {succ[piece]} at slots {ptr[r]}..{ptr[r + 1] - 1} of {len(succ)}"
            )
        raise InputError(
            f"confidence: the intervals of {name} at (s, a) = {pair} hold no distribution: lower {lower[piece]}, "
            f"upper {upper[piece]}, each {each[r]}, total {total[r]}"
        )
    if off:
        sets = _normalised(Intervals(*parts), S)
        any_slack = _kernels.check_rows(ptr, succ, sets.lower, sets.upper, sets.each, sets.total, S, slack)[2]
        return sets, slack, bool(any_slack)
    return Intervals(*parts), slack, bool(any_slack)


def is_ours(family: Confidence) -> bool:
    """Whether a family is defined in this library; its sets are checked by the tests, so not in every refresh."""
    return type(family).__module__.startswith("gosprl.")


def _arrays(intervals: Intervals, name: str, n: int) -> tuple[NDArray[Any], ...]:
    """Return the fields as arrays of the kernels' types and of the right lengths."""
    ptr = _array(name, "ptr", intervals.ptr, np.int64, n + 1)
    succ = _array(name, "succ", intervals.succ, np.int32, None)
    if not (ptr[0] == 0 and ptr[-1] == len(succ)):
        raise InputError(
            f"confidence: expected {name}.intervals.ptr from 0 to the number of successors, {len(succ)}, got {ptr}"
        )
    lower, upper = (
        _array(name, field, given, np.float64, len(succ))
        for field, given in (("lower", intervals.lower), ("upper", intervals.upper))
    )
    each, total = (
        _array(name, field, given, np.float64, n)
        for field, given in (("each", intervals.each), ("total", intervals.total))
    )
    return ptr, succ, lower, upper, each, total


def _normalised(sets: Intervals, S: int) -> Intervals:
    """Return the same sets, each holding a distribution: ends are divided by their sum where it is beyond one."""
    number = np.diff(sets.ptr)
    row = np.repeat(np.arange(len(number)), number)
    least = np.bincount(row, weights=sets.lower, minlength=len(number))
    most = np.bincount(row, weights=sets.upper, minlength=len(number))
    least, most = np.maximum(least, 1.0), np.minimum(most + np.minimum(sets.total, (S - number) * sets.each), 1.0)
    lower, upper = sets.lower / least[row], sets.upper / most[row]
    return Intervals(sets.ptr, sets.succ, lower, upper, sets.each / most, sets.total / most)


def _array(name: str, field: str, given: Any, dtype: type, size: int | None) -> NDArray[Any]:
    if (
        type(given) is np.ndarray
        and given.dtype == dtype
        and given.flags.carray
        and given.shape == (size or len(given),)
    ):
        return given
    kinds = "iu" if dtype is not np.float64 else "iuf"
    if not isinstance(given, np.ndarray) or given.dtype.kind not in kinds or given.ndim != 1:
        got = f"{given.dtype} {given.shape}" if isinstance(given, np.ndarray) else f"{given!r:.60}"
        raise InputError(f"confidence: expected {name}.intervals.{field} to be a {np.dtype(dtype)} array, got {got}")
    if size is not None and len(given) != size:
        raise InputError(f"confidence: expected {size} entries in {name}.intervals.{field}, got {len(given)}")
    return np.array(given, dtype=dtype)
