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
FIRST_CAPACITY = 4  # successors that a row has room for when it is first visited

DEAD = 1e300  # value of a state that cannot reach a goal: sorts last, and 0 * DEAD is 0

CONVERGED, ROUNDED, OUT_OF_SWEEPS = 0, 1, 2
STEPS, GOAL, LIMIT, HORIZON, HANDED_BACK, MET, NO_ROOM = 0, 1, 2, 3, 4, 5, -1  # as in `gosprl.record.Ended`


# ---------------------------------------------------------------------------------------------------------------------
# Counts: growing sparse rows, and the rows in the order of their last change
# ---------------------------------------------------------------------------------------------------------------------


class Counts(NamedTuple):
    """What was observed. A row's successors stand in order of first appearance in a pool that rows share."""

    visits: NDArray[np.int64]  # [R] N(s, a)
    start: NDArray[np.int64]  # [R] where the row's successors begin in the pool
    length: NDArray[np.int64]  # [R] how many it has
    capacity: NDArray[np.int64]  # [R] how many it has room for
    succ: NDArray[np.int32]  # [pool] successor
    number: NDArray[np.int64]  # [pool] N(s, a, s')
    first: NDArray[np.int64]  # [pool] the visit at which it first appeared, 0 where unknown
    reward_sum: NDArray[np.float64]  # [R]
    reward_sq: NDArray[np.float64]  # [R] sum of squares
    time: NDArray[np.int64]  # [R] number of the update that last changed the row, 0 = never
    newer: NDArray[np.int64]  # [R] the row changed next after this one, -1 = none
    older: NDArray[np.int64]  # [R] the row changed last before this one, -1 = none
    scalars: NDArray[np.int64]  # [3] updates so far, pool slots used, the row changed last (-1 = none)


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
    """Pool position of a successor, made if need be; -1 when the pool is full."""
    lo, n = counts.start[row], counts.length[row]
    for j in range(lo, lo + n):
        if counts.succ[j] == s_next:
            return j
    if n == counts.capacity[row]:
        capacity = max(FIRST_CAPACITY, 2 * n)
        used = counts.scalars[1]
        if used + capacity > len(counts.succ):
            return -1
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
    counts.first[j] = counts.visits[row] + 1
    counts.length[row] = n + 1
    return j


@njit(cache=True)
def record(counts, row, s_next, reward):
    """Count one transition; False, and nothing changed, when the pool has no room."""
    j = slot_of(counts, row, s_next)
    if j < 0:
        return False
    counts.number[j] += 1
    counts.visits[row] += 1
    counts.reward_sum[row] += reward
    counts.reward_sq[row] += reward * reward
    touch(counts, row)
    return True


@njit(cache=True)
def record_many(counts, begin, rows, s_next, rewards):
    """Count transitions `begin`, `begin + 1`, ...; the number of the first one for which the pool had no room."""
    for i in range(begin, len(rows)):
        if not record(counts, rows[i], s_next[i], rewards[i]):
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
def kl_lower(k, n, budget):
    """Lower end of the same set."""
    return 1.0 - kl_upper(n - k, n, budget)


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
def kl_intervals(ptr, count, first, visits, S, log_kl, log_a, log_b, scale, lower, upper, each, total):
    """Fill the ends and caps of rows with the given counts; log_kl = log(S P / delta_1)."""
    for r in range(len(visits)):
        n = visits[r]
        if n == 0:
            each[r] = total[r] = 1.0
            continue
        budget = scale * (log_kl + 0.5 * math.log(math.pi * n + 1))
        for j in range(ptr[r], ptr[r + 1]):
            lower[j] = kl_lower(count[j], n, budget)
            upper[j] = kl_upper(count[j], n, budget)
        each[r] = kl_upper(0, n, budget)
        total[r] = unseen_cap(first[ptr[r] : ptr[r + 1]], n, S, log_a, log_b, scale)


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
def misplaced_row(ptr, succ, S):
    """The first row whose slots do not follow those before, or whose successors are no states; -1 if none."""
    for r in range(len(ptr) - 1):
        if not 0 <= ptr[r] <= ptr[r + 1] <= len(succ):
            return r
        for j in range(ptr[r], ptr[r + 1]):
            if not 0 <= succ[j] < S:
                return r
    return -1


@njit(cache=True)
def infeasible_row(ptr, lower, upper, each, total, S, slack):
    """Fill `slack`; the first row whose set is empty, -1 if there is none."""
    for r in range(len(each)):
        floor = 0.0
        room = min(total[r], (S - (ptr[r + 1] - ptr[r])) * each[r])
        for j in range(ptr[r], ptr[r + 1]):
            if not (0 <= lower[j] <= upper[j] <= 1):
                return r
            floor += lower[j]
            room += upper[j]
        if not (floor <= 1 + FEASIBLE and room >= 1 - FEASIBLE and each[r] >= 0 and total[r] >= 0):
            return r
        slack[r] = 1.0 - floor
    return -1


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


# ---------------------------------------------------------------------------------------------------------------------
# Optimistic shortest paths: the operator and its iterations
# ---------------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def rank_states(v, order, rank):
    """Sort the states by value."""
    order[:] = np.argsort(v, kind="mergesort")
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


@njit(cache=True)
def sort_rows(sets, rank):
    """Order the stored successors of each row by the rank of their value: insertion, since they are nearly sorted."""
    _, begins, ends, succ, lower, upper, _, _, slack = sets
    for r in range(len(slack)):
        if slack[r] > TINY:
            begin = begins[r]
            for i in range(begin + 1, ends[r]):
                x, lo, up = succ[i], lower[i], upper[i]
                key = rank[x]
                j = i
                while j > begin and rank[succ[j - 1]] > key:
                    succ[j], lower[j], upper[j] = succ[j - 1], lower[j - 1], upper[j - 1]
                    j -= 1
                succ[j], lower[j], upper[j] = x, lo, up


@njit(cache=True)
def sweep(sets, cost, usable, skip, v, order, rank, prefix, n_alive, frozen, best, q, out):
    """Apply L to v at the alive states that are not skipped: q, the rows `best` that attain the least, and out = L v.

    With `frozen`, only the rows `best` are applied. `out` may be v itself: then states later in `order` see the new
    values of earlier ones. Returns max(Lv - v) and max(v - Lv), and the certificate's ratios: max of (Lv - v) / c over
    the best rows and of (v - Q) / c over all rows; each at least 0.

    The least expectation of v over the set of a row: give every successor its lower end, then hand out the slack in
    increasing order of value. A seen successor takes up to its upper end; a run of unseen ones between two seen takes
    `each` a state, out of a purse of `total`, by one subtraction of prefix sums. If `order` is not that of v, it is
    the expectation under the distribution that was best for the values it was sorted by.
    """
    # The row's step stands here in full: as a function of its own it costs four times as much, in reference counts.
    row_ptr, begins, ends, succ, lower, upper, each_one, total, slack = sets
    rise, fall, rise_ratio, fall_ratio = 0.0, 0.0, 0.0, 0.0
    for i in range(n_alive):
        s = order[i]
        if skip[s]:
            continue
        least, arg = math.inf, -1
        first, last = row_ptr[s], row_ptr[s + 1]
        if frozen:
            first, last = best[s], best[s] + 1
        for r in range(first, last):
            if not usable[r]:
                q[r] = math.inf
                continue
            value = cost[r]
            begin, end = begins[r], ends[r]
            for j in range(begin, end):
                value += lower[j] * v[succ[j]]
            rest = slack[r]
            if rest > TINY:
                each = each_one[r]
                purse = min(total[r], rest) if each > 0 else 0.0
                position = 0  # rank of the first state not yet dealt with
                for j in range(begin, end):
                    x = succ[j]
                    k = rank[x]
                    if k >= n_alive:
                        break
                    if k > position and purse > TINY:
                        wanted = each * (k - position)
                        if wanted <= purse:
                            value += each * (prefix[k] - prefix[position])
                            purse -= wanted
                            rest -= wanted
                        else:
                            full = min(int(purse / each), k - position)
                            value += each * (prefix[position + full] - prefix[position])
                            if position + full < k:
                                value += (purse - full * each) * v[order[position + full]]
                            rest -= purse
                            purse = 0.0
                        if rest <= TINY:
                            break
                    amount = min(upper[j] - lower[j], rest)
                    value += amount * v[x]
                    rest -= amount
                    if rest <= TINY:
                        break
                    purse = min(purse, rest)
                    position = k + 1
                if rest > TINY and purse > TINY and position < n_alive:
                    full = n_alive - position
                    if each * full > purse:
                        full = min(int(purse / each), full)
                    value += each * (prefix[position + full] - prefix[position])
                    if position + full < n_alive:
                        value += (purse - full * each) * v[order[position + full]]
            q[r] = value
            fall_ratio = max(fall_ratio, (v[s] - value) / cost[r])
            if value < least:
                least, arg = value, r
        best[s] = arg
        change = least - v[s]
        rise = max(rise, change)
        fall = max(fall, -change)
        if arg >= 0:
            rise_ratio = max(rise_ratio, change / cost[arg])
        out[s] = least
    return rise, fall, rise_ratio, fall_ratio


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
def evaluate(sets, cost, usable, goal, v, order, rank, prefix, n_alive, best, q, history, proper, target, limit):
    """Sweep the policy `best` under the frozen `order`, in place, until a sweep changes no value by more than `target`.

    Where goals are far, the changes of successive sweeps shrink slowly: if the policy is proper, so that there is a
    limit, it is extrapolated every few sweeps, and taken back if that does not halve the change. Returns the sweeps
    made.
    """
    last_change, stored, extrapolated = math.inf, 0, False
    for count in range(1, limit + 1):
        if stored == 0:
            history[0] = v
        accumulate(v, order, n_alive, prefix)
        rise, fall, _, _ = sweep(sets, cost, usable, goal, v, order, rank, prefix, n_alive, True, best, q, v)
        change = max(rise, fall)
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
def solve(sets, cost, goal, alive, usable, v, warm, evaluations, precision, ratio, limit, q):
    """Iterate v until L v is within `precision` of it and the certificate within `ratio`.

    v is 0 at goals and DEAD where no goal can be reached. With `evaluations` = 0 it is plain (Jacobi) value iteration,
    otherwise modified policy iteration with at most that many sweeps a policy; unless `warm`, it starts at L 0 and does
    not evaluate the first policy, since values that look two steps ahead tell little. A policy that the certificate
    does not show to be proper is swept a few times only, and not at all when ten applications brought no progress; a
    proper one not after fifty. Value iteration alone converges from anywhere, so the whole does.

    Returns (status, sweeps, residual, rise_ratio, fall_ratio), with q the rows' values for the v it leaves; v is not
    yet divided by 1 + fall_ratio, the residual is that of the quotient.
    """
    S = len(goal)
    n_alive, low, high, open_rows = 0, math.inf, 0.0, False
    for s in range(S):
        n_alive += alive[s]
    for r in range(len(cost)):
        low, high = min(low, cost[r]), max(high, cost[r])
        open_rows = open_rows or sets.slack[r] > TINY
    order = np.arange(S)
    rank = np.arange(S)
    prefix = np.zeros(S + 1)
    if evaluations > 0 and not warm:
        for s in range(S):
            if alive[s] and not goal[s]:
                least = math.inf
                for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
                    least = min(least, cost[r])
                v[s] = least
    out = v.copy()
    best = np.full(S, -1, dtype=np.int64)
    history = np.empty((HISTORY + 1 if evaluations > 0 else 0, S))
    applications, evaluated, least_residual, stale = 0, 0, math.inf, 0
    while True:
        rank_states(v, order, rank)
        if open_rows:
            accumulate(v, order, n_alive, prefix)
            sort_rows(sets, rank)
        rise, fall, rise_ratio, fall_ratio = sweep(
            sets, cost, usable, goal, v, order, rank, prefix, n_alive, False, best, q, out
        )
        applications += 1
        sweeps = applications + evaluated
        # dividing by 1 + fall_ratio adds at most high * fall_ratio to the residual: count it in
        if rise + high * fall_ratio <= precision and rise_ratio + fall_ratio <= ratio:
            if ratio < math.inf and rise_ratio + fall_ratio + noise(sets, cost, usable, goal, alive, v, q) > ratio:
                return ROUNDED, sweeps, rise + high * fall_ratio, rise_ratio, fall_ratio
            # the goals' non-goal copies, for the same v
            sweep(sets, cost, usable, ~goal, v, order, rank, prefix, n_alive, False, best, q, out)
            return CONVERGED, sweeps, rise + high * fall_ratio, rise_ratio, fall_ratio
        if max(rise, fall) < 0.9 * least_residual:
            least_residual, stale = max(rise, fall), 0
        else:
            stale += 1
        if stale > 5 and max(rise, fall) <= ROUNDING * v[order[n_alive - 1]]:
            return ROUNDED, sweeps, rise + high * fall_ratio, rise_ratio, fall_ratio
        v[:] = out
        if sweeps >= limit:
            return OUT_OF_SWEEPS, sweeps, rise + high * fall_ratio, rise_ratio, fall_ratio
        proper = rise_ratio < 1 - 1e-6  # with room for rounding
        if evaluations > 0 and (warm or applications > 1) and ((proper and stale < 50) or stale < 10):
            target = max(0.1 * min(precision, ratio * low), 0.02 * max(rise, fall))
            most = min(evaluations if proper else FEW, limit)
            evaluated += evaluate(
                sets, cost, usable, goal, v, order, rank, prefix, n_alive, best, q, history, proper, target, most
            )


@njit(cache=True)
def greedy(row_ptr, q, alive, tie, uniforms, leave, policy):
    """For each state the least q of its rows, and a row within `tie` of it: of n such rows number floor(u * n).

    inf and -1 where no row is usable.
    """
    for s in range(len(alive)):
        policy[s] = -1
        leave[s] = math.inf
        begin, end = row_ptr[s], row_ptr[s + 1]
        if not alive[s]:
            continue
        for r in range(begin, end):
            leave[s] = min(leave[s], q[r])
        if leave[s] == math.inf:
            continue
        ties = 0
        for r in range(begin, end):
            ties += q[r] <= leave[s] + tie
        skip = int(uniforms[s] * ties)
        for r in range(begin, end):
            if q[r] <= leave[s] + tie:
                if skip == 0:
                    policy[s] = r
                    break
                skip -= 1


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
    scalars: NDArray[np.int64]  # [3] states with unmet items, samples missing, needed samples collected so far


@njit(cache=True)
def settle(ledger, visits):
    """Count all unmet items anew."""
    ledger.visits[:] = 0
    ledger.unmet[:] = 0
    ledger.scalars[0] = 0
    ledger.scalars[1] = 0
    for r in range(len(visits)):
        ledger.visits[ledger.row_state[r]] += visits[r]
        ledger.unmet[ledger.row_state[r]] += visits[r] < ledger.pair[r]
        ledger.scalars[1] += max(0, ledger.pair[r] - visits[r])
    for s in range(len(ledger.unmet)):
        ledger.unmet[s] += ledger.visits[s] < ledger.state[s]
        ledger.scalars[0] += ledger.unmet[s] > 0
        ledger.scalars[1] += max(0, ledger.state[s] - ledger.visits[s])


@njit(cache=True)
def note(counts, ledger, row, s_next, reward):
    """Count one transition in both; False, and nothing changed, when the pool has no room."""
    if not record(counts, row, s_next, reward):
        return False
    s = ledger.row_state[row]
    ledger.visits[s] += 1
    gained = 0
    gained += counts.visits[row] <= ledger.pair[row]
    gained += ledger.visits[s] <= ledger.state[s]
    ledger.scalars[1] -= gained
    ledger.scalars[2] += gained
    fulfilled = 0
    fulfilled += counts.visits[row] == ledger.pair[row]
    fulfilled += ledger.visits[s] == ledger.state[s]
    if fulfilled > 0:
        ledger.unmet[s] -= fulfilled
        ledger.scalars[0] -= ledger.unmet[s] == 0
    return True


@njit(cache=True)
def note_many(counts, ledger, rows, s_next, rewards, steps, events, done, noted):
    """Count transitions `done`, `done + 1`, ..., writing (step, states unmet) into `events` from `noted` on.

    Returns the number of the first for which the pool had no room, and of the events written.
    """
    for i in range(done, len(rows)):
        unmet = ledger.scalars[0]
        if not note(counts, ledger, rows[i], s_next[i], rewards[i]):
            return i, noted
        if ledger.scalars[0] != unmet:
            events[noted, 0] = steps[i]
            events[noted, 1] = ledger.scalars[0]
            noted += 1
    return len(rows), noted


@njit(cache=True)
def walk(
    row_ptr, ptr, succ, prob, rewards, bernoulli, counts, ledger, policy, random_policy, goals, limit,
    choices, uniforms, s, steps, events,
):  # fmt: skip
    """Follow an attempt for at most `steps` steps from s, on an MDP simulated by one uniform a step.

    A step takes one of `uniforms`, two if rewards are Bernoulli, and one of `choices` if the policy is random.

    `policy` [S] are rows (-1: hand back), or, if it is empty, `random_policy` [R] are probabilities. Writes (step,
    states unmet) into `events` at each change. Returns (state, steps made, events written, why it stopped).
    """
    noted = 0
    for step in range(steps):
        capacity = FIRST_CAPACITY
        for row in range(row_ptr[s], row_ptr[s + 1]):
            capacity = max(capacity, 2 * counts.length[row])
        if counts.scalars[1] + capacity > len(counts.succ):
            return s, step, noted, NO_ROOM  # before anything is drawn
        if len(policy) > 0:
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
        s = succ[j]
        note(counts, ledger, row, s, reward)
        if ledger.scalars[0] != unmet:
            events[noted, 0] = step + 1
            events[noted, 1] = ledger.scalars[0]
            noted += 1
            if ledger.scalars[0] == 0:
                return s, step + 1, noted, MET
        if goals[s]:
            return s, step + 1, noted, GOAL
        if counts.visits[row] > limit[row]:
            return s, step + 1, noted, LIMIT
    return s, steps, noted, STEPS
