"""Confidence sets in the planner's layout, and properties of single rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit
from gosprl._kernels.constants import FEASIBLE, FIRST_CAPACITY, TINY


class Sets(NamedTuple):
    """The sets of plausible distributions, one per row (see `gosprl.sets.Intervals`), with each row's slack."""

    row_ptr: NDArray[np.int64]  # [S + 1]
    begin: NDArray[np.int64]  # [R] first slot of the row
    end: NDArray[np.int64]  # [R] the slot after its last
    succ: NDArray[np.int32]  # [nnz] the planner reorders slots within rows
    lower: NDArray[np.float64]  # [nnz]
    upper: NDArray[np.float64]  # [nnz]
    each: NDArray[np.float64]  # [R]
    total: NDArray[np.float64]  # [R]
    slack: NDArray[np.float64]  # [R] 1 - sum of the lower ends: the mass that nature distributes


@jit(allocates=True)
def check_rows(ptr, succ, lower, upper, each, total, S, slack):
    """Fill `slack` and check all rows.

    Returns the first malformed row (slots out of range, successors that are no states or repeated), the first row whose
    set contains no distribution (-1 each: none), whether any row has slack, and whether some set contains one up to
    FEASIBLE only, not up to rounding. The check stops at the first row that is wrong.
    """
    open_rows, off = False, False
    last = np.zeros(S, dtype=np.int64)  # one more than the row in which each state was last a successor
    for r in range(len(each)):
        if not 0 <= ptr[r] <= ptr[r + 1] <= len(succ):
            return r, -1, open_rows, off
        floor = 0.0
        room = min(total[r], (S - (ptr[r + 1] - ptr[r])) * each[r])
        for j in range(ptr[r], ptr[r + 1]):
            if not 0 <= succ[j] < S or last[succ[j]] == r + 1:
                return r, -1, open_rows, off
            last[succ[j]] = r + 1
            if not (0 <= lower[j] <= upper[j] <= 1):
                return -1, r, open_rows, off
            floor += lower[j]
            room += upper[j]
        if not (floor <= 1 + FEASIBLE and room >= 1 - FEASIBLE and each[r] >= 0 and total[r] >= 0):
            return -1, r, open_rows, off
        slack[r] = 1.0 - floor
        rounding = 2 * (ptr[r + 1] - ptr[r] + 2) * 2.0**-53
        off = off or floor > 1 + rounding or room < 1 - rounding
        open_rows = open_rows or slack[r] > TINY
    return -1, -1, open_rows, off


@jit
def replace_rows(sets, room, used, rows, ptr, succ, lower, upper, each, total, done):
    """Overwrite the sets of rows[done:]. Returns the index of the first that the arrays have no room for, or len(rows).

    room
        [R] the slot after the last one reserved for the row.
    used
        [1] the first free slot of the arrays.
    """
    for i in range(done, len(rows)):
        r = rows[i]
        n = ptr[i + 1] - ptr[i]
        if sets.begin[r] + n > room[r]:
            capacity = max(FIRST_CAPACITY, 2 * n)
            if used[0] + capacity > len(sets.succ):
                return i
            sets.begin[r] = used[0]
            used[0] += capacity
            room[r] = used[0]
        begin = sets.begin[r]
        sets.end[r] = begin + n
        floor = 0.0
        for k in range(n):
            j = ptr[i] + k
            sets.succ[begin + k] = succ[j]
            sets.lower[begin + k] = lower[j]
            sets.upper[begin + k] = upper[j]
            floor += lower[j]
        sets.each[r] = each[i]
        sets.total[r] = total[i]
        sets.slack[r] = 1.0 - floor
    return len(rows)


@jit
def stays_alive(sets, r, alive, n_alive):
    """Whether the set of row r contains a distribution on the states that are alive."""
    room, seen = 0.0, 0
    for j in range(sets.begin[r], sets.end[r]):
        if alive[sets.succ[j]]:
            room += sets.upper[j]
            seen += 1
        elif sets.lower[j] > 0:
            return False
    return room + min(sets.total[r], sets.each[r] * (n_alive - seen)) >= 1 - (seen + 1) * TINY


@jit
def has_slack(sets, r):
    """Whether the lower ends of row r sum to less than 1, by more than the rounding error of the sum."""
    return sets.slack[r] > (sets.end[r] - sets.begin[r]) * 2.0**-53


@jit
def is_open(sets, r):
    """Whether row r can give mass to unseen successors."""
    return has_slack(sets, r) and sets.each[r] > 0 and sets.total[r] > 0
