"""Counts: growing sparse rows, and the rows in the order of their last change."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit
from gosprl._kernels.constants import COUNTED, FIRST_CAPACITY, FOREIGN, NO_ROOM

UPDATES, USED, NEWEST, CLOSED = range(4)  # in `Counts.scalars`


class Counts(NamedTuple):
    """What was observed. A row's successors stand in order of first appearance in a pool that rows share.

    Of a closed model the pool holds all candidates, increasing within a row, whether seen or not; it never grows.
    """

    visits: NDArray[np.int64]  # [R] N(s, a)
    start: NDArray[np.int64]  # [R] where the row's successors begin in the pool
    length: NDArray[np.int64]  # [R] how many it has
    capacity: NDArray[np.int64]  # [R] how many it has room for
    succ: NDArray[np.int32]  # [pool] successor
    number: NDArray[np.int64]  # [pool] N(s, a, s')
    first: NDArray[np.int64]  # [pool] the visit at which it first appeared, 0 where unknown, or where it never did
    reward_sum: NDArray[np.float64]  # [R]
    reward_sq: NDArray[np.float64]  # [R] sum of squares
    time: NDArray[np.int64]  # [R] number of the update that last changed the row, 0 = never
    newer: NDArray[np.int64]  # [R] the row changed next after this one, -1 = none
    older: NDArray[np.int64]  # [R] the row changed last before this one, -1 = none
    scalars: NDArray[np.int64]  # [4] updates so far, pool slots used, the row changed last (-1 = none), closed (0 or 1)


@jit
def touch(counts, row):
    """Make `row` the last changed one, at the next update number."""
    scalars = counts.scalars
    scalars[0] += 1
    newest = scalars[2]
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
        scalars[2] = row
    counts.time[row] = scalars[0]


@jit
def slot_of(counts, row, s_next):
    """Pool position of a successor, made if need be; NO_ROOM when the pool is full, FOREIGN if it is no candidate."""
    lo, n = counts.start[row], counts.length[row]
    for j in range(lo, lo + n):
        if counts.succ[j] == s_next:
            return j
    if counts.scalars[3]:
        return FOREIGN
    if n == counts.capacity[row]:
        capacity = max(FIRST_CAPACITY, 2 * n)
        used = counts.scalars[1]
        if used + capacity > len(counts.succ):
            return NO_ROOM
        for i in range(n):
            counts.succ[used + i] = counts.succ[lo + i]
            counts.number[used + i] = counts.number[lo + i]
            counts.first[used + i] = counts.first[lo + i]
        counts.start[row] = lo = used
        counts.capacity[row] = capacity
        counts.scalars[1] = used + capacity
    j = lo + n
    counts.succ[j] = s_next
    counts.number[j] = 0
    counts.length[row] = n + 1
    return j


@jit
def record(counts, row, s_next, reward):
    """Count one transition; COUNTED, or why it was not, and then nothing changed."""
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
    """Count transitions `begin`, `begin + 1`, ...; the number of the first one that could not be counted."""
    for i in range(begin, len(rows)):
        if record(counts, rows[i], s_next[i], rewards[i]) != COUNTED:
            return i
    return len(rows)


@jit
def first_foreign(counts, rows, s_next):
    """The number of the first transition whose successor is not stored, of those there are if none is."""
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
    """Make `rows` the last changed ones, in order."""
    for row in rows:
        touch(counts, row)


@jit
def changed_since(counts, mark, out):
    """Write the rows changed after update `mark`, last first; how many."""
    n = 0
    row = counts.scalars[2]
    while row >= 0 and counts.time[row] > mark:
        out[n] = row
        n += 1
        row = counts.older[row]
    return n
