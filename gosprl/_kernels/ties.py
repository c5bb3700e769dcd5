"""The greedy policy, and how ties are broken."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit


@jit
def mixed(key, s):
    """A number in [0, 1) that looks random, from two whole numbers below 2^32 (so that no product overflows)."""
    x = (key ^ (s * 2654435761)) & 0xFFFFFFFF
    for _ in range(2):
        x = ((x ^ (x >> 16)) * 73244475) & 0xFFFFFFFF
    return (x ^ (x >> 16)) / 4294967296.0


class Seen(NamedTuple):
    """Of the counts, what breaks ties."""

    visits: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    succ: NDArray[np.int32]
    number: NDArray[np.int64]
    mean: NDArray[np.float64]  # [A] to work with


@jit
def pick(q, first, last, least, tie, key, s, seen, v):
    """Of the rows first .. last - 1, one with q within `tie` of `least`, and then with the least mean of v as seen.

    Wide sets make many rows look equally good; what was seen can tell them apart (0 if nothing was). What is still
    equal is decided at random by `key`, or for the first if that is -1.
    """
    ties, only = 0, -1
    for r in range(first, last):
        if q[r] <= least + tie:
            ties += 1
            only = r
    if ties <= 1:
        return only
    visits, start, length, succ, number, mean = seen
    best = math.inf
    for r in range(first, last):
        i = r - first
        mean[i] = math.inf
        if q[r] <= least + tie:
            mean[i] = 0.0
            if visits[r] > 0:
                for j in range(start[r], start[r] + length[r]):
                    if number[j] > 0:
                        mean[i] += number[j] / visits[r] * v[succ[j]]
            best = min(best, mean[i])
    ties = 0
    for i in range(last - first):
        ties += mean[i] <= best + tie
    skip = int(mixed(key, s) * ties) if key >= 0 else 0
    for i in range(last - first):
        if mean[i] <= best + tie:
            if skip == 0:
                return first + i
            skip -= 1
    return only


@jit
def greedy(row_ptr, q, alive, tie, key, seen, v, leave, policy):
    """For each state the least q of its rows, and a row that is nearly as good; inf and -1 where none is usable."""
    for s in range(len(alive)):
        policy[s] = -1
        leave[s] = math.inf
        if alive[s]:
            for r in range(row_ptr[s], row_ptr[s + 1]):
                leave[s] = min(leave[s], q[r])
            if leave[s] < math.inf:
                policy[s] = pick(q, row_ptr[s], row_ptr[s + 1], leave[s], tie, key, s, seen, v)
