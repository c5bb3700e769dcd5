"""Every compiled function of gosprl.

Free functions over arrays: no Python objects, no allocation in inner loops, no global randomness. They run unchanged
with NUMBA_DISABLE_JIT=1, bit for bit: only scalar `math`, no NumPy reductions (they round differently when compiled),
stable sorts. They live in one module because numba's on-disk cache does not notice edits across files.

Shapes: S states, R rows (existing pairs), nnz stored successors. `row_ptr` [S + 1] are the rows of a state, `ptr`
[R + 1] the stored successors of a row.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

TINY = 1e-14  # probability mass not worth placing; leaving it out errs towards optimism
FEASIBLE = 1e-9  # how far a set may be from containing a distribution before it counts as empty
TIE = 1e-6  # actions within this of the best (times the smallest cost, if below one) count as equally good
ROUNDING = 64 * 2.0**-52  # residuals below this, relative to the values, that no longer fall are rounding noise

FEW = 10  # sweeps of a policy that is not known to reach the goals
HISTORY = 6  # sweeps from which a policy's value is extrapolated
ROUNDS = 10  # sweeps of a region before its policy is followed again
FIRST_CAPACITY = 4  # successors that a row has room for when it is first visited

FAR = 1e150  # the largest weight of an edge
DEAD = 1e300  # value of a state that cannot reach a goal: sorts last, and 0 * DEAD is 0

CONVERGED, ROUNDED, OUT_OF_SWEEPS, HUNGRY = 0, 1, 2, 3
STEPS, GOAL, LIMIT, HORIZON, HANDED_BACK, MET, SETTLED, FOUND = 0, 1, 2, 3, 4, 5, 7, 8  # as in `gosprl.record.Ended`
COUNTED, NO_ROOM, FOREIGN = 0, -1, -2  # of a transition; the latter two: a larger pool is needed, no candidate


# ---------------------------------------------------------------------------------------------------------------------
# Counts: growing sparse rows, and the rows in the order of their last change
# ---------------------------------------------------------------------------------------------------------------------


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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def record_many(counts, begin, rows, s_next, rewards):
    """Count transitions `begin`, `begin + 1`, ...; the number of the first one that could not be counted."""
    for i in range(begin, len(rows)):
        if record(counts, rows[i], s_next[i], rewards[i]) != COUNTED:
            return i
    return len(rows)


@njit(cache=True)
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


@njit(cache=True)
def touch_many(counts, rows):
    """Make `rows` the last changed ones, in order."""
    for row in rows:
        touch(counts, row)


@njit(cache=True)
def changed_since(counts, mark, out):
    """Write the rows changed after update `mark`, last first; how many."""
    n = 0
    row = counts.scalars[2]
    while row >= 0 and counts.time[row] > mark:
        out[n] = row
        n += 1
        row = counts.older[row]
    return n


# ---------------------------------------------------------------------------------------------------------------------
# KL confidence sets
# ---------------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def kl_upper(k, n, budget):
    """Upper end of {q : n kl(k/n, q) <= budget}.

    Newton's method on a convex increasing function, from a point at or beyond the root (the smaller of two bounds): the
    iterates fall towards the root and never pass it, so the result errs outwards.
    """
    x = budget / n
    if k == 0:
        return -math.expm1(-x)
    if k == n:
        return 1.0
    p = k / n
    entropy = p * math.log(p) + (1 - p) * math.log(1 - p)
    q = min(p + math.sqrt(x / 2), 1 - math.exp((entropy - x) / (1 - p)))
    if q <= p:
        return p
    for _ in range(60):
        if q >= 1:
            return 1.0
        excess = entropy - p * math.log(q) - (1 - p) * math.log(1 - q) - x
        step = excess * q * (1 - q) / (q - p)
        if step <= 1e-15:
            break
        q -= step
        if q <= p:
            return p
    return q


@njit(cache=True)
def unseen_end(n, log_one, scale):
    """Upper end of each successor not yet seen in n visits; log_one = L = log(P / delta_0).

    Sum_x p(x) 1{x not seen} / (1 - p(x))^n is a martingale of mean 1, so it stays below P / delta_0 but for a
    probability of delta_0 / P. Weighing by p(x) takes log(1 / p(x)) of each x where a union over all would take log S:
    n log(1 / (1 - p(x))) < L + log(1 / p(x)). So p(x) is at most q = 1 - exp(-L / n), or the right side is at most
    L + log(1 / q), and p(x) is at most the end for that, which is no less than q.
    """
    q = -math.expm1(-log_one / n)
    return -math.expm1(-scale * (log_one - math.log(q)) / n)


@njit(cache=True)
def unseen_cap(first, n, S, log_a, log_b, scale):
    """Cap on the mass of all successors not yet seen in n visits: the least that any moment so far has shown.

    While i successors were known, the mass of the others was at most 1 - exp(-x) with either
    (a) x = [log C(S, i) + log(i (i + 1)) + log(P / delta_a)] / visits,   log_a = log(P / delta_a),
    (b) x = [log(i (i + 1)) + log(P / delta_b)] / visits since the i-th appeared,   log_b = log(P / delta_b).
    The unseen mass only falls, so all these bounds hold now. `first` are the visits of first appearance, increasing;
    0 where unknown, and then the bounds that would need them are left out.
    """
    known = len(first)
    least = math.inf
    choose = 0.0
    for i in range(1, known + 1):
        choose += math.log((S - i + 1) / i)
        if i == known:
            last = n
        elif first[i] > 0:
            last = first[i] - 1
        else:
            continue
        union = math.log(i * (i + 1.0))
        least = min(least, (choose + union + log_a) / last)
        if first[i - 1] > 0 and last > first[i - 1]:
            least = min(least, (union + log_b) / (last - first[i - 1]))
    return -math.expm1(-scale * least)


@njit(cache=True)
def kl_end(table, k, n, log_kl, scale):
    """`kl_upper` at n visits' budget; looked up in `table` where that is long enough, and kept there.

    The end for count k stands at n (n + 1) / 2 + k; what is negative was not yet asked for.
    """
    i = n * (n + 1) // 2 + k
    if i < len(table) and table[i] >= 0:
        return table[i]
    end = kl_upper(k, n, scale * (log_kl + 0.5 * math.log(math.pi * n + 1)))
    if i < len(table):
        table[i] = end
    return end


@njit(cache=True)
def kl_intervals(
    ptr, count, first, visits, S, closed, log_kl, log_one, log_a, log_b, scale, table, lower, upper, each, total
):
    """Fill the ends and caps of rows with the given counts; log_kl = log(M / delta_1), M the possible transitions.

    `table` has the ends known for this log_kl and scale. If `closed`, there is nothing but the stored successors.
    """
    for r in range(len(visits)):
        n = visits[r]
        each[r] = total[r] = 0.0 if closed else 1.0
        if closed and ptr[r + 1] - ptr[r] == 1:
            lower[ptr[r]] = upper[ptr[r]] = 1.0
        elif n == 0:
            for j in range(ptr[r], ptr[r + 1]):
                lower[j], upper[j] = 0.0, 1.0
        else:
            for j in range(ptr[r], ptr[r + 1]):
                lower[j] = 1.0 - kl_end(table, n - count[j], n, log_kl, scale)
                upper[j] = kl_end(table, count[j], n, log_kl, scale)
            if not closed:
                each[r] = unseen_end(n, log_one, scale)
                total[r] = unseen_cap(first[ptr[r] : ptr[r + 1]], n, S, log_a, log_b, scale)


@njit(cache=True)
def kl_means(total, visits, budget, lower, upper):
    """Fill the ends {q : n kl(total/n, q) <= budget} of means of n numbers in [0, 1]; [0, 1] where there are none."""
    for i in range(len(visits)):
        n = visits[i]
        lower[i], upper[i] = 0.0, 1.0
        if n > 0:
            k = min(max(total[i], 0.0), float(n))
            upper[i] = kl_upper(k, n, budget[i])
            lower[i] = 1.0 - kl_upper(n - k, n, budget[i])


# ---------------------------------------------------------------------------------------------------------------------
# What sets prove: the most that an average over the next state can be off
# ---------------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def largest_move(up, down, extra):
    """The most mass that p can have more than p_hat in some entries, and less in others: an entry gains or loses.

    All choices are tried; `extra` is what entries that are not stored can gain.
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


@njit(cache=True)
def largest_split_move(up, down, extra):
    """A bound on the same that takes a sort: one entry may do both, each in part.

    Those gain that have the most to gain for what they have to lose, until both sides have the same.
    """
    n = len(up)
    share, more, less = np.zeros(n), extra, 0.0
    for j in range(n):
        if up[j] > 0:
            share[j] = up[j] / (up[j] + down[j])
        less += down[j]
    for j in np.argsort(-share, kind="mergesort"):
        if more >= less or up[j] <= 0:
            break
        part = min(1.0, (less - more) / (up[j] + down[j]))
        more += part * up[j]
        less -= part * down[j]
    return min(more, less)


@njit(cache=True)
def largest_moves(ptr, up, down, extra, few, out):
    """Fill what mass can move in each row: exact in rows of up to `few` entries, a bound in longer ones."""
    for r in range(len(extra)):
        row = slice(ptr[r], ptr[r + 1])
        if ptr[r + 1] - ptr[r] <= few:
            out[r] = largest_move(up[row], down[row], extra[r])
        else:
            out[r] = largest_split_move(up[row], down[row], extra[r])


@njit(cache=True)
def dearest(weight, room, mass):
    """The most that `mass` can weigh, spread over slots with so much room each; what finds no room weighs nothing."""
    sum_ = 0.0
    for j in np.argsort(-weight, kind="mergesort"):
        if weight[j] <= 0 or mass <= 0:
            break
        take = min(room[j], mass)
        sum_ += take * weight[j]
        mass -= take
    return sum_


@njit(cache=True)
def lipschitz_errors(ptr, succ, count, up, down, extra, D, part, far_to, far_from, hubs, over, under):
    """How far row averages of a function can be off whose differences are at most distances: V(i) - V(j) <= D[i, j].

    For each row, `over` bounds (p - p_hat) V and `under` bounds (p_hat - p) V, for all p between p_hat - `down` and
    p_hat + `up` on the stored successors, with `extra` mass at most on others. All mass that moves is taken to move by
    way of one of the row's successors, the best of the `hubs` most frequent. Two bounds on what that weighs: no more
    mass arrives than leaves; and an entry gains or loses, whichever weighs more. `part` [S]: which states have
    distances, and may be that one. `far_to`, `far_from` [S]: the largest distance to and from each state.
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
        for h in np.argsort(-count[begin:end], kind="mergesort")[:hubs]:
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
                both = dearest(weight, room, mass)
                for j in range(n):
                    i = succ[begin + j]
                    weight[j], room[j] = D[k, i] if sign == 0 else D[i, k], down[begin + j]
                both += dearest(weight[:n], room[:n], mass)
                if sign == 0:
                    over[r] = min(over[r], one, both)
                else:
                    under[r] = min(under[r], one, both)


@njit(cache=True)
def average_errors(ptr, succ, up, down, extra, V, highest, out):
    """The most that p V can exceed p_hat V, over the same p; `highest` is the largest V of all states."""
    for r in range(len(extra)):
        begin, n = ptr[r], ptr[r + 1] - ptr[r]
        value, room = np.empty(n + 1), np.empty(n + 1)
        value[n], room[n] = highest, extra[r]
        for j in range(n):
            value[j], room[j] = V[succ[begin + j]], up[begin + j]
        best = np.argsort(-value, kind="mergesort")
        worst = np.argsort(value[:n], kind="mergesort")
        out[r], i, j, given, taken = 0.0, 0, 0, 0.0, 0.0
        while i <= n and j < n and value[best[i]] > value[worst[j]]:  # from the worst to the best, while that gains
            move = min(room[best[i]] - given, down[begin + worst[j]] - taken)
            out[r] += move * (value[best[i]] - value[worst[j]])
            given += move
            taken += move
            if given >= room[best[i]]:
                i, given = i + 1, 0.0
            else:
                j, taken = j + 1, 0.0


# ---------------------------------------------------------------------------------------------------------------------
# Optimistic shortest paths: reachability
# ---------------------------------------------------------------------------------------------------------------------


class Sets(NamedTuple):
    """The plausible dynamics as the planner reads them (see `gosprl.confidence.Intervals`), with each row's slack."""

    row_ptr: NDArray[np.int64]  # [S + 1]
    begin: NDArray[np.int64]  # [R] where the stored successors of a row begin
    end: NDArray[np.int64]  # [R] and end
    succ: NDArray[np.int32]  # [nnz], reordered by the planner within rows
    lower: NDArray[np.float64]  # [nnz]
    upper: NDArray[np.float64]  # [nnz]
    each: NDArray[np.float64]  # [R]
    total: NDArray[np.float64]  # [R]
    slack: NDArray[np.float64]  # [R] 1 - sum of the lower ends


@njit(cache=True)
def check_rows(ptr, succ, lower, upper, each, total, S, slack):
    """Fill `slack`; the first row that is out of place, the first whose set is empty (-1 if none), and whether any has
    slack. In place: slots follow those before, and successors are states.
    """
    open_rows = False
    for r in range(len(each)):
        if not 0 <= ptr[r] <= ptr[r + 1] <= len(succ):
            return r, -1, open_rows
        floor = 0.0
        room = min(total[r], (S - (ptr[r + 1] - ptr[r])) * each[r])
        for j in range(ptr[r], ptr[r + 1]):
            if not 0 <= succ[j] < S:
                return r, -1, open_rows
            if not (0 <= lower[j] <= upper[j] <= 1):
                return -1, r, open_rows
            floor += lower[j]
            room += upper[j]
        if not (floor <= 1 + FEASIBLE and room >= 1 - FEASIBLE and each[r] >= 0 and total[r] >= 0):
            return -1, r, open_rows
        slack[r] = 1.0 - floor
        open_rows = open_rows or slack[r] > TINY
    return -1, -1, open_rows


@njit(cache=True)
def replace_rows(sets, room, used, rows, ptr, succ, lower, upper, each, total, done):
    """Overwrite the sets of rows[done:] by new ones; the first for which the arrays have no room, or len(rows).

    `room` [R] is where a row's slots end, `used` [1] where the free ones begin.
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


@njit(cache=True)
def stays_alive(sets, r, alive, n_alive):
    """Whether the set of row r holds a distribution on the states that are alive."""
    room, seen = 0.0, 0
    for j in range(sets.begin[r], sets.end[r]):
        if alive[sets.succ[j]]:
            room += sets.upper[j]
            seen += 1
        elif sets.lower[j] > 0:
            return False
    return room + min(sets.total[r], sets.each[r] * (n_alive - seen)) >= 1 - FEASIBLE


@njit(cache=True)
def is_open(sets, r):
    """Whether successors never seen can get mass from row r."""
    return sets.slack[r] > TINY and sets.each[r] > 0 and sets.total[r] > 0


@njit(cache=True)
def search_back(sets, goal, alive, usable, reached, queue):
    """Mark in `reached` the states that can get to a goal with positive probability by usable rows; how many."""
    S = len(goal)
    n = 0
    for s in range(S):
        reached[s] = goal[s]
        if goal[s]:
            queue[n] = s
            n += 1
    done = 0
    pred_ptr = np.zeros(1, dtype=np.int64)
    pred = np.zeros(0, dtype=np.int32)
    while True:
        before = n
        for s in range(S):  # an open row gets to any reached state that it has not seen
            if alive[s] and not reached[s]:
                for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
                    if usable[r] and is_open(sets, r):
                        seen = 0
                        for j in range(sets.begin[r], sets.end[r]):
                            seen += reached[sets.succ[j]]
                        if n > seen:
                            reached[s] = True
                            queue[n] = s
                            n += 1
                            break
        if n == before and done == n:
            return n
        if len(pred_ptr) == 1:
            pred_ptr, pred = predecessors(sets, alive, usable, reached)
        while done < n:
            x = queue[done]
            done += 1
            for i in range(pred_ptr[x], pred_ptr[x + 1]):
                s = pred[i]
                if not reached[s]:
                    reached[s] = True
                    queue[n] = s
                    n += 1


@njit(cache=True)
def predecessors(sets, alive, usable, reached):
    """For each state, the alive and not yet reached states with a usable row that can lead there."""
    S = len(alive)
    ptr = np.zeros(S + 2, dtype=np.int64)
    pred = np.zeros(0, dtype=np.int32)
    for fill in range(2):  # first count, then fill
        for s in range(S):
            if alive[s] and not reached[s]:
                for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
                    if usable[r]:
                        for j in range(sets.begin[r], sets.end[r]):
                            if sets.lower[j] > 0 or (sets.slack[r] > TINY and sets.upper[j] > 0):
                                x = sets.succ[j]
                                if fill:
                                    pred[ptr[x + 1]] = s
                                    ptr[x + 1] += 1
                                else:
                                    ptr[x + 2] += 1
        if not fill:
            for x in range(S):
                ptr[x + 2] += ptr[x + 1]
            pred = np.empty(ptr[S + 1], dtype=np.int32)
    return ptr, pred


@njit(cache=True, nogil=True)
def reach(sets, goal, alive, usable):
    """Fill `alive`: the states from which a goal can be reached surely, nature helping, by the rows that are `usable`.

    What does not stay among the alive is taken out of `usable`. The alive are the largest set X such that from each of
    its states, by rows that can be kept inside X, a goal is reached with positive probability. Rows of goals belong to
    the goals' non-goal copies.
    """
    S = len(goal)
    alive[:] = True
    n_alive = S
    reached = np.zeros(S, dtype=np.bool_)
    queue = np.empty(S, dtype=np.int64)
    while True:
        n = search_back(sets, goal, alive, usable, reached, queue)
        if n == n_alive:
            return
        n_alive = n
        alive[:] = reached
        for r in range(len(usable)):
            usable[r] = usable[r] and stays_alive(sets, r, alive, n_alive)


@njit(cache=True, nogil=True)
def reversed_edges(sets, cost, usable):
    """The graph from successors to states, (ptr [S + 1], states, weights): an edge weighs c / upper.

    That is the cost of retrying until the edge is taken, if it is as likely as it can be.
    """
    S = len(sets.row_ptr) - 1
    ptr = np.zeros(S + 2, dtype=np.int64)
    state = np.empty(0, dtype=np.int32)
    weight = np.empty(0)
    for fill in range(2):  # first count, then fill
        for s in range(S):
            for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
                if usable[r]:
                    for j in range(sets.begin[r], sets.end[r]):
                        x = sets.succ[j]
                        if sets.upper[j] > 0 and x != s:
                            if fill:
                                state[ptr[x + 1]] = s
                                weight[ptr[x + 1]] = min(cost[r] / sets.upper[j], FAR)
                                ptr[x + 1] += 1
                            else:
                                ptr[x + 2] += 1
        if not fill:
            for x in range(S):
                ptr[x + 2] += ptr[x + 1]
            state = np.empty(ptr[S + 1], dtype=np.int32)
            weight = np.empty(ptr[S + 1])
    return ptr[: S + 1], state, weight


@njit(cache=True, nogil=True)
def lightest_paths(ptr, state, weight, dist):
    """Lower `dist` [S] to the lightest way from any state: Dijkstra's algorithm from all finite ones at once."""
    S = len(dist)
    heap = np.empty(S, dtype=np.int64)
    place = np.full(S, -1, dtype=np.int64)  # in the heap
    n = 0
    for s in range(S):
        if dist[s] < math.inf:
            heap[n] = s
            n += 1
            sift_up(heap, place, dist, n - 1)
    while n > 0:
        x = heap[0]
        n -= 1
        if n > 0:
            heap[0] = heap[n]
            sift_down(heap, place, dist, n)
        place[x] = S  # done
        for i in range(ptr[x], ptr[x + 1]):
            s = state[i]
            if place[s] < S and dist[x] + weight[i] < dist[s]:
                dist[s] = dist[x] + weight[i]
                if place[s] < 0:
                    heap[n] = s
                    place[s] = n
                    n += 1
                sift_up(heap, place, dist, place[s])


@njit(cache=True, nogil=True)
def sift_up(heap, place, dist, i):
    """Move the entry at i up to where it belongs."""
    s = heap[i]
    while i > 0 and dist[heap[(i - 1) // 2]] > dist[s]:
        heap[i] = heap[(i - 1) // 2]
        place[heap[i]] = i
        i = (i - 1) // 2
    heap[i] = s
    place[s] = i


@njit(cache=True, nogil=True)
def sift_down(heap, place, dist, n):
    """Move the first of n entries down to where it belongs."""
    s, i = heap[0], 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and dist[heap[child + 1]] < dist[heap[child]]:
            child += 1
        if dist[heap[child]] >= dist[s]:
            break
        heap[i] = heap[child]
        place[heap[i]] = i
        i = child
    heap[i] = s
    place[s] = i


@njit(cache=True, nogil=True)
def head_start(sets, cost, goal, usable, v):
    """Values to begin with: the lightest path to a goal, with every edge retried until it is taken.

    Nearly the right order of the states, which in-place sweeps live on. An unseen goal is an edge, too.
    """
    n_goals = 0
    for s in range(len(goal)):
        n_goals += goal[s]
        v[s] = 0.0 if goal[s] else math.inf
    for s in range(len(goal)):
        if not goal[s]:
            for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
                if usable[r] and is_open(sets, r):
                    v[s] = min(v[s], cost[r] / min(sets.total[r], sets.slack[r], sets.each[r] * n_goals))
    ptr, state, weight = reversed_edges(sets, cost, usable)
    lightest_paths(ptr, state, weight, v)


# ---------------------------------------------------------------------------------------------------------------------
# Optimistic shortest paths: the operator and its iterations
# ---------------------------------------------------------------------------------------------------------------------


@njit(cache=True)
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
            order[:] = order[np.argsort(v[order], kind="mergesort")]
            break
    for i in range(len(order)):
        rank[order[i]] = i


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def extrapolate(history, v):
    """v = sum_i gamma_i x_i, for successive iterates x_0 .. x_k of a linear iteration, the last two included in pairs.

    Reduced-rank extrapolation: the gamma that sum to one and make sum_i gamma_i (x_{i+1} - x_i) least in the Euclidean
    norm, by the normal equations. False if these have no use, or lead to values below 0 or above four times the largest
    so far: where the iteration is slow they are nearly singular, and a step too far would be hard to take back.
    """
    k = len(history) - 1
    M = np.empty((k, k))
    gamma = np.ones(k)
    for i in range(k):
        for j in range(i + 1):
            product = 0.0
            for s in range(len(v)):
                product += (history[i + 1, s] - history[i, s]) * (history[j + 1, s] - history[j, s])
            M[i, j] = M[j, i] = product
    for i in range(k):
        M[i, i] *= 1 + 1e-13
    for i in range(k):  # elimination needs no pivots: M is positive definite
        if not M[i, i] > 0:
            return False
        for j in range(i + 1, k):
            factor = M[j, i] / M[i, i]
            for c in range(i, k):
                M[j, c] -= factor * M[i, c]
            gamma[j] -= factor * gamma[i]
    total = 0.0
    for i in range(k - 1, -1, -1):
        for c in range(i + 1, k):
            gamma[i] -= M[i, c] * gamma[c]
        gamma[i] /= M[i, i]
        total += gamma[i]
    if not 0 < total < math.inf:
        return False
    plausible, ceiling = True, 0.0
    for s in range(len(v)):
        if history[k, s] < DEAD:
            ceiling = max(ceiling, 4 * history[k, s])
    for s in range(len(v)):
        x = 0.0
        for i in range(k):
            x += gamma[i] / total * (history[i + 1, s] - history[0, s])
        v[s] = history[0, s] + x
        plausible = plausible and v[s] >= 0 and (v[s] <= ceiling or history[k, s] == DEAD)
    return plausible


@njit(cache=True)
def evaluate(frozen, n, v, order, prefix, n_low, history, proper, target, limit):
    """Sweep a frozen policy of n states, in place, until a sweep changes no value by more than `target`.

    Where goals are far, the changes of successive sweeps shrink slowly: if the policy is proper, so that there is a
    limit, it is extrapolated every few sweeps, and taken back if that does not halve the change. Returns the sweeps
    made.
    """
    last_change, stored, extrapolated = math.inf, 0, False
    for count in range(1, limit + 1):
        if stored == 0:
            history[0] = v
        if n_low > 0:
            accumulate(v, order, n_low, prefix)
        change = sweep_frozen(frozen, n, v, order, prefix)
        if change <= target:
            return count
        if extrapolated and change > 0.5 * last_change:
            v[:] = history[-1]
            extrapolated = False
            stored = 0
            continue
        extrapolated = False
        stored += 1
        history[stored] = v
        if stored == len(history) - 1:
            stored = 0
            extrapolated = proper and extrapolate(history, v)
            if not extrapolated:
                v[:] = history[-1]
        last_change = change
    return limit


@njit(cache=True)
def noise(sets, cost, usable, goal, alive, v, q):
    """How much rounding may hide in the certificate's ratios: the error of q, over c, at rows that are nearly best."""
    most = 0.0
    for s in range(len(goal)):
        if alive[s] and not goal[s]:
            for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
                if usable[r] and q[r] <= v[s] * (1 + 1e-6):
                    terms = sets.end[r] - sets.begin[r] + 2
                    most = max(most, terms * 2.0**-53 * q[r] / cost[r])
    return most


@njit(cache=True, nogil=True)
def direct_start(sets, cost, goal, alive, usable, n_goals, v):
    """Values to begin with where unseen goals are near: go on until a goal is hit at once, or to where that is best."""
    nearest = math.inf
    for s in range(len(goal)):
        if alive[s] and not goal[s]:
            v[s] = math.inf
            for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
                if usable[r]:
                    rest, mass, unseen = sets.slack[r], 0.0, n_goals
                    for j in range(sets.begin[r], sets.end[r]):
                        if goal[sets.succ[j]]:
                            unseen -= 1
                            mass += sets.upper[j]
                            rest += sets.lower[j]
                    mass = min(mass + min(sets.total[r], sets.each[r] * unseen), rest)
                    if mass > 0:
                        v[s] = min(v[s], cost[r] / mass)
            nearest = min(nearest, v[s])
    if nearest == math.inf:
        nearest = 0.0
    for s in range(len(goal)):
        if alive[s] and not goal[s]:
            for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
                v[s] = min(v[s], nearest + cost[r])


@njit(cache=True, nogil=True)
def solve(sets, cost, goal, alive, usable, v, warm, evaluations, precision, ratio, limit, q, old):
    """Iterate v until L v is within `precision` of it and the certificate within `ratio`.

    v is 0 at goals and DEAD where no goal can be reached. With `evaluations` = 0 it is plain (Jacobi) value iteration,
    otherwise modified policy iteration with at most that many sweeps a policy, begun by `direct_start` unless `warm`. A
    policy that the certificate does not show to be proper is swept a few times only, and not at all when ten
    applications brought no progress; a proper one not after fifty. Value iteration alone converges from anywhere, so
    the whole does.

    q [R] are lower bounds on the rows' values for `old` [S], -inf where nothing is known; on return, the same for v.

    Returns (status, sweeps, residual, rise_ratio, fall_ratio); v is not yet divided by 1 + fall_ratio, the residual is
    that of the quotient.
    """
    S = len(goal)
    n_alive, n_goals, low, high, open_rows = 0, 0, math.inf, 0.0, False
    goals = np.empty(S, dtype=np.int64)
    for s in range(S):
        n_alive += alive[s]
        if goal[s]:
            goals[n_goals] = s
            n_goals += 1
    for r in range(len(cost)):
        low, high = min(low, cost[r]), max(high, cost[r])
        open_rows = open_rows or sets.slack[r] > TINY
    order = np.arange(S)
    rank = np.arange(S)
    prefix = np.zeros(S + 1)
    if evaluations > 0 and not warm:
        direct_start(sets, cost, goal, alive, usable, n_goals, v)
    out = v.copy()
    best = np.full(S, -1, dtype=np.int64)
    nothing = np.zeros(S, dtype=np.bool_)
    room, longest = frozen_room(sets, order, S)
    frozen = new_frozen(S, room, longest)
    history = np.empty((HISTORY + 1 if evaluations > 0 else 0, S))
    applications, evaluated, least_residual, stale = 0, 0, math.inf, 0
    while True:
        rank_states(v, order, rank)
        if open_rows:
            accumulate(v, order, n_alive, prefix)
        shift = 0.0
        for s in range(S):
            shift = min(shift, v[s] - old[s])
            old[s] = v[s]
        if evaluations == 0:
            shift = -math.inf
        rise, fall, rise_ratio, fall_ratio, kept, _ = sweep(
            sets, cost, usable, goal, v, order, n_alive, order, rank, prefix, n_alive, best, q, shift, out, frozen
        )
        applications += 1
        sweeps = applications + evaluated
        # dividing by 1 + fall_ratio adds at most high * fall_ratio to the residual: count it in
        residual = rise + high * fall_ratio
        if residual <= precision and rise_ratio + fall_ratio <= ratio:
            if ratio < math.inf and rise_ratio + fall_ratio + noise(sets, cost, usable, goal, alive, v, q) > ratio:
                return ROUNDED, sweeps, residual, rise_ratio, fall_ratio
            # the goals' non-goal copies, for the same v
            sweep(
                sets, cost, usable, nothing, v, goals, n_goals, order, rank, prefix, n_alive, best, q, -math.inf, out,
                frozen,
            )  # fmt: skip
            return CONVERGED, sweeps, residual, rise_ratio, fall_ratio
        if max(rise, fall) < 0.9 * least_residual:
            least_residual, stale = max(rise, fall), 0
        else:
            stale += 1
        if stale > 5 and max(rise, fall) <= ROUNDING * v[order[n_alive - 1]]:
            return ROUNDED, sweeps, residual, rise_ratio, fall_ratio
        v[:] = out
        if sweeps >= limit:
            return OUT_OF_SWEEPS, sweeps, residual, rise_ratio, fall_ratio
        proper = rise_ratio < 1 - 1e-6  # with room for rounding
        if evaluations > 0 and ((proper and stale < 50) or stale < 10):
            target = max(0.1 * min(precision, ratio * low), 0.02 * max(rise, fall))
            most = min(evaluations if proper else FEW, limit)
            n_low = n_alive if open_rows else 0
            evaluated += evaluate(frozen, kept, v, order, prefix, n_low, history, proper, target, most)


@njit(cache=True)
def sweep_relative(frozen, n, v, order, prefix, damping, out):
    """Apply a frozen policy to v, all states at once, and move v that part of the way; the span of the change."""
    state, cost, each, full, part, ptr, succ, weight, _ = frozen
    low, high = math.inf, -math.inf
    for i in range(n):
        value = cost[i] + each[i] * prefix[full[i]]
        if part[i] > 0:
            value += part[i] * v[order[full[i]]]
        for j in range(ptr[i], ptr[i + 1]):
            value += weight[j] * v[succ[j]]
        out[state[i]] = value - v[state[i]]
        low, high = min(low, out[state[i]]), max(high, out[state[i]])
    for s in range(len(v)):
        v[s] += damping * (out[s] - low)
    return high - low


@njit(cache=True, nogil=True)
def average(sets, cost, usable, v, evaluations, damping, precision, limit, q):
    """Iterate v until the span of L v - v is at most `precision`: then both its ends are that close to the least gain.

    Relative value iteration, where L has no goals: each application is followed by up to `evaluations` sweeps of the
    policy it found, while these narrow the span. Only a part `damping` of each step is made, so that no policy is
    periodic. Returns (status, sweeps, lower end, upper end); q [R] are the rows' values for v, if it converged. Begun
    again after `limit` sweeps, it goes on.
    """
    S = len(v)
    order, rank = np.arange(S), np.arange(S)
    prefix = np.zeros(S + 1)
    out = np.empty(S)
    best = np.full(S, -1, dtype=np.int64)
    nothing = np.zeros(S, dtype=np.bool_)
    room, longest = frozen_room(sets, order, S)
    frozen = new_frozen(S, room, longest)
    sweeps = 0
    while True:
        least = math.inf
        for s in range(S):
            least = min(least, v[s])
        for s in range(S):
            v[s] -= least
        rank_states(v, order, rank)
        accumulate(v, order, S, prefix)
        kept = sweep(sets, cost, usable, nothing, v, order, S, order, rank, prefix, S, best, q, -math.inf, out, frozen)[
            4
        ]
        sweeps += 1
        low, high = math.inf, -math.inf
        for s in range(S):
            low, high = min(low, out[s] - v[s]), max(high, out[s] - v[s])
        if high - low <= precision:
            return CONVERGED, sweeps, low, high
        for s in range(S):
            v[s] += damping * (out[s] - v[s] - low)
        if sweeps >= limit:
            return OUT_OF_SWEEPS, sweeps, low, high
        for _ in range(min(evaluations, limit - sweeps)):
            accumulate(v, order, S, prefix)
            sweeps += 1
            if sweep_relative(frozen, kept, v, order, prefix, damping, out) <= 0.1 * max(high - low, precision):
                break


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


# ---------------------------------------------------------------------------------------------------------------------
# Focused planning (see `gosprl.focus`)
# ---------------------------------------------------------------------------------------------------------------------


class Lowest(NamedTuple):
    """The states of least value, as `sweep` wants them: goals, then stand-ins for the rest."""

    order: NDArray[np.int64]  # [n]
    rank: NDArray[np.int64]  # [S] place there, or n and more
    prefix: NDArray[np.float64]  # [n + 1]


class Region(NamedTuple):
    """What focused planning keeps and works with."""

    v: NDArray[np.float64]  # [S + 1] lower bounds; the last is the stand-in's
    best: NDArray[np.int64]  # [S] the row that was best last time
    q: NDArray[np.float64]  # [R] the rows' values when last applied
    out: NDArray[np.float64]  # [S]
    states: NDArray[np.int64]  # [S] the region, in order of discovery
    other: NDArray[np.int64]  # [S] a second list
    later: NDArray[np.int64]  # [S] and a third
    weight: NDArray[np.float64]  # [S] how likely the walk gets there
    stamp: NDArray[np.int64]  # [S] when that was last touched: odd = in the region
    policy: NDArray[np.int64]  # [S] rows, -1 outside of the region
    head: NDArray[np.int64]  # [S] first link to a row that may lead there, -1 = none
    scalars: NDArray[np.int64]  # [5] last stamp, states in the region, links used, rows applied so far, states touched


class Links(NamedTuple):
    """Lists of the rows that may lead to a state."""

    next: NDArray[np.int32]  # [pool] the next link of the same state, -1 = none
    row: NDArray[np.int32]  # [pool]


@njit(cache=True)
def link(region, links, rows, succ, begin, end):
    """Note that rows[i] may lead to succ[begin[i]:end[i]]."""
    for i in range(len(rows)):
        for j in range(begin[i], end[i]):
            new = region.scalars[2]
            links.row[new] = rows[i]
            links.next[new] = region.head[succ[j]]
            region.head[succ[j]] = new
            region.scalars[2] += 1


@njit(cache=True)
def lower_values(sets, cost, usable, goal, row_state, lowest, frozen, region, links, n, tolerance, budget):
    """Lower v until no row's value is below that of its state by more than `tolerance`.

    `region.other[:n]` are the states that may be too high; from there, what falls is followed to its predecessors.
    False if `budget` rows were applied and there is still something to lower.
    """
    v, out, scalars = region.v, region.out, region.scalars
    todo, later = region.other, region.later
    last = scalars[3] + budget
    while n > 0:
        if scalars[3] > last:
            return False
        applied = sweep(
            sets, cost, usable, goal, v, todo, n, lowest.order, lowest.rank, lowest.prefix, len(lowest.order),
            region.best, region.q, -math.inf, out, frozen,
        )[5]  # fmt: skip
        scalars[3] += applied
        scalars[0] += 2
        more = 0
        for i in range(n):
            s = todo[i]
            if not goal[s] and out[s] < v[s] - tolerance:
                v[s] = out[s]
                j = region.head[s]
                while j >= 0:
                    x = row_state[links.row[j]]
                    if region.stamp[x] < scalars[0]:
                        region.stamp[x] = scalars[0]
                        later[more] = x
                        more += 1
                    j = links.next[j]
        todo, later, n = later, todo, more
    return True


@njit(cache=True)
def raise_values(sets, cost, usable, goal, states, n, lowest, frozen, region):
    """Apply L to v at `states[:n]`, in place; the largest rise, and the rows applied.

    What would fall stays: by less than the tolerance of `lower_values`, but it would add up in the states before.
    """
    v, out = region.v, region.out
    for i in range(n):
        out[states[i]] = v[states[i]]
    rise, _, _, _, _, rows = sweep(
        sets, cost, usable, goal, v, states, n, lowest.order, lowest.rank, lowest.prefix, len(lowest.order),
        region.best, region.q, -math.inf, v, frozen,
    )  # fmt: skip
    for i in range(n):
        s = states[i]
        v[s] = max(v[s], out[s])
    return rise, rows


@njit(cache=True)
def hungry(sets, goal, n_goals, r):
    """Whether the unseen mass of row r is more than goals not seen from there can take."""
    if not is_open(sets, r):
        return False
    unseen = n_goals
    for j in range(sets.begin[r], sets.end[r]):
        unseen -= goal[sets.succ[j]]
    return min(sets.total[r], sets.slack[r]) > sets.each[r] * unseen + TINY


@njit(cache=True)
def expand(sets, goal, region, s, r, least_weight, n):
    """Add to the region the seen successors of row r of state s that are likely enough; its size then.

    A successor's share is taken as the middle of its interval. What the walk gets to with a probability too small for
    a double is still likely enough if anything is.
    """
    stamp, weight, now = region.stamp, region.weight, region.scalars[0]
    total = 0.0
    for j in range(sets.begin[r], sets.end[r]):
        total += sets.lower[j] + sets.upper[j]
    for j in range(sets.begin[r], sets.end[r]):
        x = sets.succ[j]
        if goal[x] or stamp[x] == now + 1 or not sets.upper[j] > 0:
            continue
        if stamp[x] != now:
            stamp[x] = now
            weight[x] = 0.0
            region.scalars[4] += 1
        weight[x] += weight[s] * (sets.lower[j] + sets.upper[j]) / total
        if weight[x] >= least_weight:
            stamp[x] = now + 1
            region.states[n] = x
            n += 1
    return n


@njit(cache=True)
def focus(
    sets, cost, usable, goal, n_goals, lowest, wanted, frozen, region, seen, start, precision, least_weight, tie, key,
    budget,
):  # fmt: skip
    """Raise v on the states that a walk from `start` will likely visit, until its residual there is below `precision`.

    Each round follows the greedy policy outwards, applying L to every state on the way; if nothing rose by more than
    half the precision it is done (a later rise of the others adds at most the other half). Otherwise it sweeps the
    region backwards a few times and looks again.

    Returns (status, cost of the plan from `start`): HUNGRY if a row of the policy has more unseen mass than the goals
    can take, and there are not `wanted` other states that the policy's rows have not seen; OUT_OF_SWEEPS if `budget`
    rows were applied in vain.
    """
    row_ptr = sets.row_ptr
    v, q, out, states, other = region.v, region.q, region.out, region.states, region.other
    weight, stamp, policy, scalars = region.weight, region.stamp, region.policy, region.scalars
    at_goal = goal[start]
    used = 0
    while True:
        for i in range(scalars[1]):
            policy[states[i]] = -1
        scalars[0] += 2
        scalars[4] = 1
        states[0] = start
        weight[start] = 1.0
        stamp[start] = scalars[0] + 1
        done, n, worst, starving = 0, 1, 0.0, False
        while done < n:
            batch = states[done:n]
            if done == 0 and at_goal:  # its non-goal copy, which is never seen again
                goal[start] = False
                rows = sweep(
                    sets, cost, usable, goal, v, batch, 1, lowest.order, lowest.rank, lowest.prefix,
                    len(lowest.order), region.best, q, -math.inf, out, frozen,
                )[5]  # fmt: skip
                goal[start] = True
                leave = out[start]
            else:
                rise, rows = raise_values(sets, cost, usable, goal, batch, n - done, lowest, frozen, region)
                worst = max(worst, rise)
                if done == 0:
                    leave = v[start]
            used += rows
            end = n
            for i in range(done, end):
                s = states[i]
                least = leave if i == 0 else v[s]
                if least == math.inf:
                    continue
                r = pick(q, row_ptr[s], row_ptr[s + 1], least, tie, key, s, seen, v)
                policy[s] = r
                starving = starving or hungry(sets, goal, n_goals, r)
                n = expand(sets, goal, region, s, r, least_weight, n)
            done = end
        scalars[1] = n
        starving = starving and len(goal) - n_goals - scalars[4] < wanted
        if worst <= precision / 2 or starving or used > budget:
            break
        for i in range(n):
            other[i] = states[n - 1 - i]
        for _ in range(ROUNDS):
            rise, rows = raise_values(sets, cost, usable, goal, other, n - at_goal, lowest, frozen, region)
            used += rows
            if rise <= max(precision / 2, 0.1 * worst):
                break
    scalars[3] += used
    if starving:
        return HUNGRY, leave
    return (OUT_OF_SWEEPS if worst > precision / 2 else CONVERGED), leave


# ---------------------------------------------------------------------------------------------------------------------
# Walking: an attempt on a simulated MDP, with the ledger of what is needed
# ---------------------------------------------------------------------------------------------------------------------


class Ledger(NamedTuple):
    """What is needed and not yet there. An item is a pair or a state with a need of its own."""

    row_state: NDArray[np.int64]  # [R]
    pair: NDArray[np.int64]  # [R] samples needed of each row
    state: NDArray[np.int64]  # [S] of each state, with any action
    visits: NDArray[np.int64]  # [S] N(s)
    unmet: NDArray[np.int64]  # [S] items of the state that are unmet
    missing: NDArray[np.int64]  # [S] samples that they lack
    scalars: NDArray[np.int64]  # [4] states with unmet items, samples missing, needed ones collected, changes of mind:
    # how often the set of the former was changed by what is needed, not by what was sampled
    worth: NDArray[
        np.float64
    ]  # [S] credited for a needed sample that leads there: set by strategies that keep accounts
    credit: NDArray[np.float64]  # [1] the sum of that


@njit(cache=True)
def settle(ledger, row_ptr, visits, states):
    """Count anew what the given states lack."""
    scalars = ledger.scalars
    another = False
    for s in states:
        was = ledger.unmet[s] > 0
        scalars[0] -= was
        scalars[1] -= ledger.missing[s]
        ledger.visits[s] = ledger.unmet[s] = ledger.missing[s] = 0
        for r in range(row_ptr[s], row_ptr[s + 1]):
            ledger.visits[s] += visits[r]
            ledger.unmet[s] += visits[r] < ledger.pair[r]
            ledger.missing[s] += max(0, ledger.pair[r] - visits[r])
        ledger.unmet[s] += ledger.visits[s] < ledger.state[s]
        ledger.missing[s] += max(0, ledger.state[s] - ledger.visits[s])
        another |= was != (ledger.unmet[s] > 0)
        scalars[0] += ledger.unmet[s] > 0
        scalars[1] += ledger.missing[s]
    scalars[3] += another


@njit(cache=True)
def note(counts, ledger, row, s_next, reward):
    """Count one transition in both; COUNTED, or why it was not, and then nothing changed."""
    outcome = record(counts, row, s_next, reward)
    if outcome != COUNTED:
        return outcome
    s = ledger.row_state[row]
    ledger.visits[s] += 1
    gained = 0
    gained += counts.visits[row] <= ledger.pair[row]
    gained += ledger.visits[s] <= ledger.state[s]
    ledger.missing[s] -= gained
    ledger.scalars[1] -= gained
    ledger.scalars[2] += gained
    if gained > 0:
        ledger.credit[0] += ledger.worth[s_next]
    fulfilled = 0
    fulfilled += counts.visits[row] == ledger.pair[row]
    fulfilled += ledger.visits[s] == ledger.state[s]
    if fulfilled > 0:
        ledger.unmet[s] -= fulfilled
        ledger.scalars[0] -= ledger.unmet[s] == 0
    return COUNTED


@njit(cache=True)
def note_many(counts, ledger, rows, s_next, rewards, steps, events, done, noted):
    """Count transitions `done`, `done + 1`, ..., writing (step, states unmet) into `events` from `noted` on.

    Returns the number of the first that could not be counted, and of the events written.
    """
    for i in range(done, len(rows)):
        unmet = ledger.scalars[0]
        if note(counts, ledger, rows[i], s_next[i], rewards[i]) != COUNTED:
            return i, noted
        if ledger.scalars[0] != unmet:
            events[noted, 0] = steps[i]
            events[noted, 1] = ledger.scalars[0]
            noted += 1
    return len(rows), noted


@njit(cache=True)
def fewest_visits(row_ptr, visits, pair, s):
    """Of the under-sampled rows of s, the first with the fewest visits; -1 if there is none."""
    best = -1
    for r in range(row_ptr[s], row_ptr[s + 1]):
        if visits[r] < pair[r] and (best < 0 or visits[r] < visits[best]):
            best = r
    return best


@njit(cache=True)
def walk(
    row_ptr, ptr, succ, prob, rewards, bernoulli, counts, ledger, policy, random_policy, goals, limit, sample,
    choices, uniforms, s, steps, events, threshold,
):  # fmt: skip
    """Follow an attempt for at most `steps` steps from s, on an MDP simulated by one uniform a step.

    A step takes one of `uniforms`, two if rewards are Bernoulli, and one of `choices` if the policy is random.

    `policy` [S] are rows (-1: hand back), or, if it is empty, `random_policy` [R] are probabilities; with `sample`,
    what is needed comes first. Writes (step, states unmet) into `events` at each change. Returns (state, steps made,
    events written, why it stopped). A reward above `threshold` ends the walk. A step to a successor that is no
    candidate is not made. In both cases (row, successor) stands in `events`, after those written.
    """
    noted = 0
    closed = counts.scalars[3] != 0
    for step in range(steps):
        if not closed:
            capacity = FIRST_CAPACITY
            for row in range(row_ptr[s], row_ptr[s + 1]):
                capacity = max(capacity, 2 * counts.length[row])
            if counts.scalars[1] + capacity > len(counts.succ):
                return s, step, noted, NO_ROOM  # before anything is drawn
        row = -1
        if sample and ledger.unmet[s] > 0:
            row = fewest_visits(row_ptr, counts.visits, ledger.pair, s)
        if row >= 0:
            pass
        elif len(policy) > 0:
            row = policy[s]
            if row < 0:
                return s, step, noted, HANDED_BACK
        else:
            u = choices[step]
            row = row_ptr[s]
            for row in range(row_ptr[s], row_ptr[s + 1]):
                u -= random_policy[row]
                if u < 0:
                    break
        u = uniforms[step * (1 + bernoulli)]
        cumulative = 0.0
        j = ptr[row]
        for j in range(ptr[row], ptr[row + 1]):
            cumulative += prob[j]
            if u < cumulative:
                break
        reward = rewards[row]
        if bernoulli:
            reward = 1.0 if uniforms[2 * step + 1] < reward else 0.0
        unmet = ledger.scalars[0]
        if note(counts, ledger, row, succ[j], reward) == FOREIGN:
            events[noted, 0] = row
            events[noted, 1] = succ[j]
            return s, step, noted, FOREIGN
        s = succ[j]
        if ledger.scalars[0] != unmet:
            events[noted, 0] = step + 1
            events[noted, 1] = ledger.scalars[0]
            noted += 1
        if reward > threshold:
            events[noted, 0] = row
            events[noted, 1] = s
            return s, step + 1, noted, FOUND
        if ledger.scalars[0] != unmet and ledger.scalars[0] == 0:
            return s, step + 1, noted, MET
        if goals[s]:
            return s, step + 1, noted, GOAL
        if sample and ledger.scalars[0] != unmet:
            return s, step + 1, noted, SETTLED
        if counts.visits[row] > limit[row]:
            return s, step + 1, noted, LIMIT
    return s, steps, noted, STEPS
