"""Counts of observed transitions: sparse rows that grow, and a list of the rows in the order of their last change."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import inlined, jit
from gosprl._kernels.constants import COUNTED, FIRST_CAPACITY, FOREIGN, NO_ROOM

UPDATES, USED, NEWEST, CLOSED = range(4)  # in `Counts.scalars`


class Counts(NamedTuple):
    """The counts of all rows.

    All rows share a pool of slots. The successors of a row are consecutive there, in order of first appearance. The
    pool of a closed model holds every candidate from the start, increasing within a row, and does not grow.
    """

    visits: NDArray[np.int64]  # [R] N(s, a)
    start: NDArray[np.int64]  # [R] first slot of the row in the pool
    length: NDArray[np.int64]  # [R] slots in use
    capacity: NDArray[np.int64]  # [R] slots reserved
    succ: NDArray[np.int32]  # [pool] successor
    number: NDArray[np.int64]  # [pool] N(s, a, s')
    first: NDArray[np.int64]  # [pool] number of the visit that first led there; -m: m at most; 0: unknown, or none did
    reward_sum: NDArray[np.float64]  # [R]
    reward_sq: NDArray[np.float64]  # [R] sum of squares
    time: NDArray[np.int64]  # [R] number of the update that last changed the row; 0: none
    newer: NDArray[np.int64]  # [R] the row whose last change followed that of this row; -1: none
    older: NDArray[np.int64]  # [R] the row whose last change preceded that of this row; -1: none
    scalars: NDArray[np.int64]  # [4] UPDATES so far, USED slots, the row changed last (NEWEST; -1: none), CLOSED (0, 1)

    @property
    def updates(self) -> int:
        """The number of updates so far."""
        return int(self.scalars[UPDATES])


@inlined
def touch(counts, row):
    """Move `row` to the end of the list of changes, with the next update number."""
    scalars = counts.scalars
    scalars[UPDATES] += 1
    newest = scalars[NEWEST]
    if newest != row:
        if counts.time[row] > 0:
            newer, older = counts.newer[row], counts.older[row]
            counts.older[newer] = older
            if older >= 0:
                counts.newer[older] = newer
        counts.older[row] = newest
        counts.newer[row] = -1
        if newest >= 0:
            counts.newer[newest] = row
        scalars[NEWEST] = row
    counts.time[row] = scalars[UPDATES]


@inlined
def slot_of(counts, row, s_next):
    """Return the slot of a successor, new if it has none. NO_ROOM: the pool is full; FOREIGN: it is no candidate.

    A row without a free slot moves to the end of the pool, with twice as many slots.
    """
    lo, n = counts.start[row], counts.length[row]
    for j in range(lo, lo + n):
        if counts.succ[j] == s_next:
            return j
    if counts.scalars[CLOSED]:
        return FOREIGN
    if n == counts.capacity[row]:
        capacity = max(FIRST_CAPACITY, 2 * n)
        used = counts.scalars[USED]
        if used + capacity > len(counts.succ):
            return NO_ROOM
        for i in range(n):
            counts.succ[used + i] = counts.succ[lo + i]
            counts.number[used + i] = counts.number[lo + i]
            counts.first[used + i] = counts.first[lo + i]
        counts.start[row] = lo = used
        counts.capacity[row] = capacity
        counts.scalars[USED] = used + capacity
    j = lo + n
    counts.succ[j] = s_next
    counts.number[j] = 0
    counts.length[row] = n + 1
    return j


@inlined
def record(counts, row, s_next, reward):
    """Count one transition. Returns COUNTED; or NO_ROOM or FOREIGN, without any change."""
    j = slot_of(counts, row, s_next)
    if j < 0:
        return j
    if counts.number[j] == 0:
        counts.first[j] = counts.visits[row] + 1
    counts.number[j] += 1
    counts.visits[row] += 1
    counts.reward_sum[row] += reward
    counts.reward_sq[row] += reward * reward
    touch(counts, row)
    return COUNTED


@jit
def record_many(counts, begin, rows, s_next, rewards):
    """Count transitions begin, begin + 1, ... Returns the index of the first that was not counted, or len(rows)."""
    for i in range(begin, len(rows)):
        if record(counts, rows[i], s_next[i], rewards[i]) != COUNTED:
            return i
    return len(rows)


@jit
def add_many(counts, begin, rows, s_next, number, first):
    """Add number[i] > 0 visits, for i = begin, begin + 1, ... Returns the index of the first not added, or len(rows).

    first[i] is that of `Counts`; it is read for successors that were not seen yet.
    """
    for i in range(begin, len(rows)):
        row = rows[i]
        j = slot_of(counts, row, s_next[i])
        if j < 0:
            return i
        if counts.number[j] == 0:
            counts.first[j] = first[i]
        counts.number[j] += number[i]
        counts.visits[row] += number[i]
        touch(counts, row)
    return len(rows)


@jit
def first_foreign(counts, rows, s_next):
    """Return the index of the first transition whose successor has no slot, or len(rows)."""
    for i in range(len(rows)):
        lo = counts.start[rows[i]]
        hi = lo + counts.length[rows[i]]
        while lo < hi and counts.succ[lo] != s_next[i]:
            lo += 1
        if lo == hi:
            return i
    return len(rows)


@jit
def touch_many(counts, rows):
    """Move `rows`, in this order, to the end of the list of changes."""
    for row in rows:
        touch(counts, row)


@jit
def changed_since(counts, mark, out):
    """Write the rows changed after update `mark` to `out`, the last change first. Returns their number."""
    n = 0
    row = counts.scalars[NEWEST]
    while row >= 0 and counts.time[row] > mark:
        out[n] = row
        n += 1
        row = counts.older[row]
    return n
