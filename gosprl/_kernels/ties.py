"""The greedy policy, and how ties are broken: by the counts, then at random; or near ties by a flow."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit


@jit
def hashed_uniform(key, s):
    """Return a pseudo-random number in [0, 1), a hash of two integers below 2^32: no product exceeds an int64."""
    x = (key ^ (s * 2654435761)) & 0xFFFFFFFF
    for _ in range(2):
        x = ((x ^ (x >> 16)) * 73244475) & 0xFFFFFFFF
    return (x ^ (x >> 16)) / 4294967296.0


class Seen(NamedTuple):
    """The part of the counts that breaks ties (see `counts.Counts`)."""

    visits: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    succ: NDArray[np.int32]
    number: NDArray[np.int64]
    mean: NDArray[np.float64]  # [A] overwritten


@jit
def pick(q, first, last, least, tie, key, s, seen, v):
    """Return one of the rows first .. last - 1 with q within `tie` of `least`; -1 if there is none.

    With wide sets, many rows have nearly the same q. Of these, the rows within `tie` of the least mean of v under the
    observed frequencies are kept (the mean is 0 for a row never visited). Of these the first is returned if key is -1,
    else one at random.
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
    skip = int(hashed_uniform(key, s) * ties) if key >= 0 else 0
    for i in range(last - first):
        if mean[i] <= best + tie:
            if skip == 0:
                return first + i
            skip -= 1
    return only


@jit
def greedy(row_ptr, q, alive, tie, key, seen, v, least, policy):
    """Fill least [S], the least q of each state's rows, and policy [S], a row within `tie` of it; inf, -1 if none."""
    for s in range(len(alive)):
        policy[s] = -1
        least[s] = math.inf
        if alive[s]:
            for r in range(row_ptr[s], row_ptr[s + 1]):
                least[s] = min(least[s], q[r])
            if least[s] < math.inf:
                policy[s] = pick(q, row_ptr[s], row_ptr[s + 1], least[s], tie, key, s, seen, v)


@jit
def follow_flow(row_ptr, q, close, left, visits, share, policy, limit):
    """Change a greedy policy [S] to the rows with the most visits `left` [R], among those within `close` of its q.

    Lower limit [R], the visits of a row after which another one may have more left, to a share of those left.
    """
    for s in range(len(policy)):
        if policy[s] < 0:
            continue
        best, most = policy[s], q[policy[s]] + close
        for r in range(row_ptr[s], row_ptr[s + 1]):
            if q[r] <= most and left[r] > left[best]:
                best = r
        policy[s] = best
        if left[best] > 0:
            limit[best] = min(limit[best], visits[best] + max(1, int(share * left[best])))
