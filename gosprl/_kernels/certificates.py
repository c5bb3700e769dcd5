"""Bounds on the difference of p and p_hat, and of averages under them (see `gosprl.sets.certificates`).

A set of a row has p_hat - down <= p <= p_hat + up on the stored successors, and mass at most `extra` on all others.
"""

import math

import numpy as np

from gosprl._kernels._jit import jit
from gosprl._kernels.arrays import sort_by


@jit
def largest_move(up, down, extra):
    """Return the largest mass that p can move from some entries of p_hat to others: half of the largest l1 distance.

    Exact: tries all choices of the entries that gain; the others lose.
    """
    n, largest = len(up), 0.0
    for gaining in range(1 << n):
        more, less = extra, 0.0
        for j in range(n):
            if gaining >> j & 1:
                more += up[j]
            else:
                less += down[j]
        largest = max(largest, min(more, less))
    return largest


@jit(allocates=True)
def largest_split_move(up, down, extra):
    """Bound `largest_move` from above in the time of a sort: an entry may gain with one part and lose with the rest.

    Entries switch from losing to gaining in decreasing order of up / (up + down), until gains and losses are equal.
    """
    n = len(up)
    share, more, less = np.zeros(n), extra, 0.0
    for j in range(n):
        if up[j] > 0:
            share[j] = up[j] / (up[j] + down[j])
        less += down[j]
    order = np.arange(n)
    sort_by(-share, order)
    for j in order:
        if more >= less or up[j] <= 0:
            break
        part = min(1.0, (less - more) / (up[j] + down[j]))
        more += part * up[j]
        less -= part * down[j]
    return min(more, less)


@jit
def largest_moves(ptr, up, down, extra, few, out):
    """Fill the mass that can move in each row: exact for rows of up to `few` entries, an upper bound for others."""
    for r in range(len(extra)):
        row = slice(ptr[r], ptr[r + 1])
        if ptr[r + 1] - ptr[r] <= few:
            out[r] = largest_move(up[row], down[row], extra[r])
        else:
            out[r] = largest_split_move(up[row], down[row], extra[r])


@jit(allocates=True)
def largest_sum(weight, room, mass):
    """Return the largest sum_j weight_j x_j over 0 <= x_j <= room_j with sum_j x_j <= mass."""
    total = 0.0
    order = np.arange(len(weight))
    sort_by(-weight, order)
    for j in order:
        if weight[j] <= 0 or mass <= 0:
            break
        take = min(room[j], mass)
        total += take * weight[j]
        mass -= take
    return total


@jit(allocates=True)
def lipschitz_errors(ptr, succ, count, up, down, extra, D, part, far_to, far_from, hubs, over, under):
    """Bound the error of averages of functions that distances bound: V(i) - V(j) <= D[i, j].

    Fills `over`, at least (p - p_hat) V, and `under`, at least (p_hat - p) V, for all p in each row's set and all V.

    Mass that moves from j to i changes the average by V(i) - V(j) <= D[i, k] + D[k, j] for any state k. For one k per
    row, two upper bounds on the sum: (1) the mass that arrives and the mass that leaves are each at most min(sum of
    gains, sum of losses), placed where they count most; (2) every entry gains or loses, whichever counts more. The
    result is the least over both and over the `hubs` most frequent successors as k.

    part
        [S] whether a state has finite distances; only these can be k.
    far_to, far_from
        [S] the largest distance to and from each state, for mass on successors that are not stored.
    """
    for r in range(len(extra)):
        begin, end = ptr[r], ptr[r + 1]
        n = end - begin
        more, less = extra[r], 0.0
        for j in range(begin, end):
            more += up[j]
            less += down[j]
        mass = min(more, less)
        weight, room = np.empty(n + 1), np.empty(n + 1)
        over[r] = under[r] = math.inf
        for j in range(n):
            weight[j] = -count[begin + j]
        order = np.arange(n)
        sort_by(weight, order)
        for h in order[:hubs]:
            k = succ[begin + h]
            if not part[k]:
                continue
            for sign in range(2):
                weight[n] = far_to[k] if sign == 0 else far_from[k]
                room[n] = extra[r]
                one = extra[r] * weight[n]
                for j in range(n):
                    i = succ[begin + j]
                    there, back = (D[i, k], D[k, i]) if sign == 0 else (D[k, i], D[i, k])
                    one += max(up[begin + j] * there, down[begin + j] * back)
                    weight[j], room[j] = there, up[begin + j]
                both = largest_sum(weight, room, mass)
                for j in range(n):
                    i = succ[begin + j]
                    weight[j], room[j] = D[k, i] if sign == 0 else D[i, k], down[begin + j]
                both += largest_sum(weight[:n], room[:n], mass)
                if sign == 0:
                    over[r] = min(over[r], one, both)
                else:
                    under[r] = min(under[r], one, both)


@jit(allocates=True)
def average_errors(ptr, succ, up, down, extra, V, highest, out):
    """Fill the largest (p - p_hat) V over each row's set; `highest` is the largest V of all states.

    Mass moves from the least values to the largest as long as that increases the average.
    """
    for r in range(len(extra)):
        begin, n = ptr[r], ptr[r + 1] - ptr[r]
        value, room = np.empty(n + 1), np.empty(n + 1)
        value[n], room[n] = highest, extra[r]
        for j in range(n):
            value[j], room[j] = V[succ[begin + j]], up[begin + j]
        best, worst = np.arange(n + 1), np.arange(n)
        sort_by(-value, best)
        sort_by(value, worst)
        out[r], i, j, given, taken = 0.0, 0, 0, 0.0, 0.0
        while i <= n and j < n and value[best[i]] > value[worst[j]]:
            move = min(room[best[i]] - given, down[begin + worst[j]] - taken)
            out[r] += move * (value[best[i]] - value[worst[j]])
            given += move
            taken += move
            if given >= room[best[i]]:
                i, given = i + 1, 0.0
            else:
                j, taken = j + 1, 0.0
