"""The optimistic operator L: one application, and the policy that it found."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit
from gosprl._kernels.arrays import sort_by
from gosprl._kernels.constants import DEAD, TIE, TINY


@jit
def rank_states(v, order, rank):
    """Sort the states by value, starting from an earlier `order`: insertion while that is little work."""
    moves = 8 * len(order)
    for i in range(1, len(order)):
        s = order[i]
        key = v[s]
        j = i
        while j > 0 and v[order[j - 1]] > key:
            order[j] = order[j - 1]
            j -= 1
        order[j] = s
        moves -= i - j
        if moves < 0:
            sort_by(v, order)
            break
    for i in range(len(order)):
        rank[order[i]] = i


@jit
def accumulate(v, order, n_alive, prefix):
    """prefix[i] = sum of the values of the i first states of `order`."""
    running = 0.0
    prefix[0] = 0.0
    for i in range(n_alive):
        running += v[order[i]]
        prefix[i + 1] = running


class Frozen(NamedTuple):
    """A policy with the distributions that nature chose for it: its i-th state's value is the affine function
    cost + each * (sum of the `full` least values) + part * (the next least) + sum_j weight_j v(succ_j)."""

    state: NDArray[np.int64]  # [n]
    cost: NDArray[np.float64]  # [n]
    each: NDArray[np.float64]  # [n]
    full: NDArray[np.int64]  # [n]
    part: NDArray[np.float64]  # [n]
    ptr: NDArray[np.int64]  # [n + 1]
    succ: NDArray[np.int32]  # [room]
    weight: NDArray[np.float64]  # [room]
    scratch: NDArray[np.float64]  # [2, longest row]


@jit
def frozen_room(sets, states, n):
    """Stored successors that a policy of `states[:n]` may have at most, and of the longest of all their rows."""
    room, longest = 0, 0
    for i in range(n):
        s = states[i]
        most = 0
        for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
            most = max(most, sets.end[r] - sets.begin[r])
        room += most
        longest = max(longest, most)
    return room, longest


@jit
def new_frozen(n, room, longest):
    """A policy with room for n states."""
    return Frozen(
        np.empty(n, dtype=np.int64),
        np.empty(n),
        np.empty(n),
        np.empty(n, dtype=np.int64),
        np.empty(n),
        np.zeros(n + 1, dtype=np.int64),
        np.empty(room, dtype=np.int32),
        np.empty(room),
        np.empty((2, longest)),
    )


@jit
def sweep(sets, cost, usable, skip, v, states, n, order, rank, prefix, n_low, best, q, shift, out, frozen):
    """Apply L to v at `states[:n]` but those to skip: q, the rows `best` that attain the least, out = L v, `frozen`.

    `out` may be v itself: then later states see the new values of earlier ones. Returns max(Lv - v) and max(v - Lv),
    the certificate's ratios, max of (Lv - v) / c over the best rows and of (v - Q) / c over all rows, each at least 0;
    how many states are in `frozen`, and how many rows were applied.

    The least expectation of v over the set of a row: give every successor its lower end, then hand out the slack in
    increasing order of value. A seen successor takes up to its upper end; a run of unseen ones between two seen takes
    `each` a state, out of a purse of `total`, by one subtraction of prefix sums. For that, `order[:n_low]` are the
    states of least value, increasing, `rank` their places there (n_low or more elsewhere) and `prefix` the sums of
    their values.

    A row need not be applied if q + shift, a lower bound on its value, shows that it is not nearly as good as the
    best: q was its value for some v', and no state's value has fallen by more than -shift since (-inf: apply all).
    """
    # The row's step stands here in full: as a function of its own it costs four times as much, in reference counts.
    row_ptr, begins, ends, succ, lower, upper, each_one, total, slack = sets
    f_state, f_cost, f_each, f_full, f_part, f_ptr, f_succ, f_weight, scratch = frozen
    rise, fall, rise_ratio, fall_ratio, kept, applied = 0.0, 0.0, 0.0, 0.0, 0, 0
    this = 0  # which half of the scratch is free; the other has the weights of the best row so far
    for i in range(n):
        s = states[i]
        if skip[s]:
            continue
        least, arg = math.inf, -1
        least_each, least_full, least_part = 0.0, 0, 0.0
        first, last = row_ptr[s], row_ptr[s + 1]
        favourite = max(first, best[s])  # first, since it may make others superfluous
        for number in range(first, last):
            r = favourite if number == first else first if number == favourite else number
            if not usable[r]:
                q[r] = math.inf
                continue
            q[r] += shift
            if q[r] > max(least, v[s]) + TIE * cost[r]:
                continue
            applied += 1
            begin, end = begins[r], ends[r]
            rest = slack[r]
            each, full, part = 0.0, 0, 0.0
            if rest <= TINY:
                for j in range(begin, end):
                    scratch[this, j - begin] = lower[j]
            else:
                for k in range(begin + 1, end):  # by rank, then value: insertion, as they are nearly sorted
                    x, lo, up = succ[k], lower[k], upper[k]
                    j = k
                    while j > begin:
                        y = succ[j - 1]
                        if rank[y] < rank[x] or (rank[y] == rank[x] and v[y] <= v[x]):
                            break
                        succ[j], lower[j], upper[j] = y, lower[j - 1], upper[j - 1]
                        j -= 1
                    succ[j], lower[j], upper[j] = x, lo, up
                each = each_one[r]
                purse = min(total[r], rest) if each > 0 else 0.0
                position = 0  # rank of the first state not yet dealt with
                for j in range(begin, end):
                    weight = lower[j]
                    if rest > TINY and v[succ[j]] != DEAD:
                        k = min(rank[succ[j]], n_low)
                        if k > position and purse > TINY:
                            full = k
                            spent = each * (k - position)
                            if spent > purse:
                                full = min(position + int(purse / each), k)
                                part = purse - each * (full - position) if full < k else 0.0
                                spent = purse
                            purse -= spent
                            rest -= spent
                        if rest > TINY:
                            amount = min(upper[j] - lower[j], rest)
                            weight += amount
                            rest -= amount
                            purse = min(purse, rest)
                            position = k + 1
                    scratch[this, j - begin] = weight
                if rest > TINY and purse > TINY and position < n_low:
                    full = n_low
                    if each * (n_low - position) > purse:
                        full = min(position + int(purse / each), n_low)
                        part = purse - each * (full - position) if full < n_low else 0.0
                if full > 0:
                    for j in range(begin, end):  # it is not unseen
                        if rank[succ[j]] < full:
                            scratch[this, j - begin] -= each
            value = cost[r] + each * prefix[full]
            if part > 0:
                value += part * v[order[full]]
            for j in range(begin, end):
                value += scratch[this, j - begin] * v[succ[j]]
            q[r] = value
            fall_ratio = max(fall_ratio, (v[s] - value) / cost[r])
            if value < least or (value == least and r < arg):
                least, arg = value, r
                least_each, least_full, least_part = each, full, part
                this = 1 - this
        best[s] = arg
        change = least - v[s]
        rise = max(rise, change)
        fall = max(fall, -change)
        out[s] = least
        if arg < 0:
            continue
        rise_ratio = max(rise_ratio, change / cost[arg])
        if len(f_state) == 0:
            continue
        f_state[kept] = s
        f_cost[kept], f_each[kept], f_full[kept], f_part[kept] = cost[arg], least_each, least_full, least_part
        begin, to = begins[arg], f_ptr[kept]
        for j in range(begin, ends[arg]):
            f_succ[to], f_weight[to] = succ[j], scratch[1 - this, j - begin]
            to += 1
        kept += 1
        f_ptr[kept] = to
    return rise, fall, rise_ratio, fall_ratio, kept, applied


@jit
def sweep_frozen(frozen, n, v, order, prefix):
    """Apply the first n states of a frozen policy to v, in place; the largest change."""
    state, cost, each, full, part, ptr, succ, weight, _ = frozen
    most = 0.0
    for i in range(n):
        value = cost[i] + each[i] * prefix[full[i]]
        if part[i] > 0:
            value += part[i] * v[order[full[i]]]
        for j in range(ptr[i], ptr[i + 1]):
            value += weight[j] * v[succ[j]]
        most = max(most, abs(value - v[state[i]]))
        v[state[i]] = value
    return most
