"""The optimistic operator L (see `gosprl.planning.ssp`): one application, and the greedy policy as an affine map."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit
from gosprl._kernels.arrays import sort_by
from gosprl._kernels.constants import DEAD, TIE, TINY


@jit
def rank_states(v, order, rank):
    """Sort the states by value, starting from the `order` of earlier values. rank[s] is the place of s.

    Insertion sort, since most states are in place; merge sort if that takes more than 8 moves per state.
    """
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
    """Fill prefix[i], the sum of the values of order[:i]."""
    running = 0.0
    prefix[0] = 0.0
    for i in range(n_alive):
        running += v[order[i]]
        prefix[i + 1] = running


class Frozen(NamedTuple):
    """A fixed policy with fixed distributions of nature.

    The new value of its i-th state is the affine function cost + each * (sum of the `full` least values) +
    part * (the next value) + sum_j weight_j v(succ_j) of v.
    """

    state: NDArray[np.int64]  # [n] which state
    cost: NDArray[np.float64]  # [n]
    each: NDArray[np.float64]  # [n]
    full: NDArray[np.int64]  # [n]
    part: NDArray[np.float64]  # [n]
    ptr: NDArray[np.int64]  # [n + 1]
    succ: NDArray[np.int32]  # [room]
    weight: NDArray[np.float64]  # [room]
    scratch: NDArray[np.float64]  # [2, longest row] weights of the current row, and of the best row so far


@jit
def frozen_room(sets, states, n):
    """Return the most stored successors of a policy of states[:n], and of a single one of their rows."""
    room, longest = 0, 0
    for i in range(n):
        s = states[i]
        most = 0
        for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
            most = max(most, sets.end[r] - sets.begin[r])
        room += most
        longest = max(longest, most)
    return room, longest


@jit(allocates=True)
def new_frozen(n, room, longest):
    """Return empty arrays for a policy of n states with `room` stored successors."""
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
    """Apply L to v at states[:n] except those to skip.

    Fills q [R], `best` [S] (the rows that attain the least), out = L v and `frozen`. `out` may be v itself: then later
    states use the new values of earlier ones.

    Returns
    -------
    rise, fall
        max(Lv - v) and max(v - Lv), at least 0.
    rise_ratio, fall_ratio
        The ratios of the certificate, at least 0: max of (Lv - v) / c over best rows, of (v - Q) / c over all rows.
    kept, applied
        Number of states in `frozen`, and of rows applied.

    Method. The least expectation of v over the set of a row gives every successor its lower end and then distributes
    the slack in increasing order of v. A stored successor takes up to upper - lower, an unseen one up to `each`, all
    unseen ones together up to `total`. The unseen ones need no loop: those that get mass are the first `full` states in
    order of value without the stored ones, so their values sum to a prefix sum minus those of the stored ones. For
    that, order[:n_low] are the states of least value, increasing, rank their places there (n_low or more elsewhere),
    and prefix the sums of their values.

    Rows that are skipped. q + shift is a lower bound on a row's value: q was its value for an earlier v, and no state's
    value has decreased by more than -shift since. A row whose bound is not within a tie of the least value is not
    applied. shift = -inf applies all rows.
    """
    row_ptr, begins, ends, succ, lower, upper, each_one, total, slack = sets
    f_state, f_cost, f_each, f_full, f_part, f_ptr, f_succ, f_weight, scratch = frozen
    rise, fall, rise_ratio, fall_ratio, kept, applied = 0.0, 0.0, 0.0, 0.0, 0, 0
    this = 0  # the half of `scratch` for the current row; the other half has the weights of the best row so far
    for i in range(n):
        s = states[i]
        if skip[s]:
            continue
        least, arg = math.inf, -1
        least_each, least_full, least_part = 0.0, 0, 0.0
        first, last = row_ptr[s], row_ptr[s + 1]
        last_best = max(first, best[s])  # the previous best row comes first: others may then be skipped
        for number in range(first, last):
            r = last_best if number == first else first if number == last_best else number
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
                for k in range(begin + 1, end):  # insertion sort by rank, then value: slots are nearly in order
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
                unseen_left = min(total[r], rest) if each > 0 else 0.0
                position = 0  # unseen states of lower rank have got their mass
                for j in range(begin, end):
                    weight = lower[j]
                    if rest > TINY and v[succ[j]] != DEAD:
                        k = min(rank[succ[j]], n_low)
                        if k > position and unseen_left > TINY:
                            full = k
                            spent = each * (k - position)
                            if spent > unseen_left:
                                full = min(position + int(unseen_left / each), k)
                                part = unseen_left - each * (full - position) if full < k else 0.0
                                spent = unseen_left
                            unseen_left -= spent
                            rest -= spent
                        if rest > TINY:
                            amount = min(upper[j] - lower[j], rest)
                            weight += amount
                            rest -= amount
                            unseen_left = min(unseen_left, rest)
                            position = k + 1
                    scratch[this, j - begin] = weight
                if rest > TINY and unseen_left > TINY and position < n_low:
                    full = n_low
                    if each * (n_low - position) > unseen_left:
                        full = min(position + int(unseen_left / each), n_low)
                        part = unseen_left - each * (full - position) if full < n_low else 0.0
                if full > 0:
                    for j in range(begin, end):  # the prefix sum counts stored successors as unseen ones: correct it
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
    """Apply the first n states of a frozen policy to v, in place. Returns the largest change."""
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
