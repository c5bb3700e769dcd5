"""Optimistic shortest paths: iterations of the operator."""

import math

import numpy as np

from gosprl._kernels._jit import jit
from gosprl._kernels.arrays import copy_to, count, members
from gosprl._kernels.constants import CONVERGED, DEAD, FEW, HISTORY, OUT_OF_SWEEPS, ROUNDED, ROUNDING, TINY
from gosprl._kernels.operator import accumulate, frozen_room, new_frozen, rank_states, sweep, sweep_frozen


@jit
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


@jit
def evaluate(frozen, n, v, order, prefix, n_low, history, proper, target, limit):
    """Sweep a frozen policy of n states, in place, until a sweep changes no value by more than `target`.

    Where goals are far, the changes of successive sweeps shrink slowly: if the policy is proper, so that there is a
    limit, it is extrapolated every few sweeps, and taken back if that does not halve the change. Returns the sweeps
    made.
    """
    last_change, stored, extrapolated = math.inf, 0, False
    for sweeps in range(1, limit + 1):
        if stored == 0:
            copy_to(history[0], v)
        if n_low > 0:
            accumulate(v, order, n_low, prefix)
        change = sweep_frozen(frozen, n, v, order, prefix)
        if change <= target:
            return sweeps
        if extrapolated and change > 0.5 * last_change:
            copy_to(v, history[-1])
            extrapolated = False
            stored = 0
            continue
        extrapolated = False
        stored += 1
        copy_to(history[stored], v)
        if stored == len(history) - 1:
            stored = 0
            extrapolated = proper and extrapolate(history, v)
            if not extrapolated:
                copy_to(v, history[-1])
        last_change = change
    return limit


@jit
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


@jit(nogil=True)
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


@jit(nogil=True)
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
    n_alive, goals = count(alive), members(goal)
    low, high, open_rows = math.inf, 0.0, False
    for r in range(len(cost)):
        low, high = min(low, cost[r]), max(high, cost[r])
        open_rows = open_rows or sets.slack[r] > TINY
    order = np.arange(S)
    rank = np.arange(S)
    prefix = np.zeros(S + 1)
    if evaluations > 0 and not warm:
        direct_start(sets, cost, goal, alive, usable, len(goals), v)
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
                sets, cost, usable, nothing, v, goals, len(goals), order, rank, prefix, n_alive, best, q, -math.inf,
                out, frozen,
            )  # fmt: skip
            return CONVERGED, sweeps, residual, rise_ratio, fall_ratio
        if max(rise, fall) < 0.9 * least_residual:
            least_residual, stale = max(rise, fall), 0
        else:
            stale += 1
        if stale > 5 and max(rise, fall) <= ROUNDING * v[order[n_alive - 1]]:
            return ROUNDED, sweeps, residual, rise_ratio, fall_ratio
        copy_to(v, out)
        if sweeps >= limit:
            return OUT_OF_SWEEPS, sweeps, residual, rise_ratio, fall_ratio
        proper = rise_ratio < 1 - 1e-6  # with room for rounding
        if evaluations > 0 and ((proper and stale < 50) or stale < 10):
            target = max(0.1 * min(precision, ratio * low), 0.02 * max(rise, fall))
            most = min(evaluations if proper else FEW, limit)
            n_low = n_alive * open_rows
            evaluated += evaluate(frozen, kept, v, order, prefix, n_low, history, proper, target, most)
