"""Optimistic shortest paths: iterations of the operator L until the certificate is good enough."""

import math

import numpy as np

from gosprl._kernels._jit import jit
from gosprl._kernels.arrays import copy_to, count, members
from gosprl._kernels.constants import CONVERGED, DEAD, FEW, HISTORY, OUT_OF_SWEEPS, ROUNDED, ROUNDING, TINY
from gosprl._kernels.operator import accumulate, frozen_room, new_frozen, rank_states, sweep, sweep_frozen


@jit(allocates=True)
def extrapolate(history, v):
    """Reduced-rank extrapolation of a linear iteration from its successive iterates x_0 .. x_k, the rows of `history`.

    v = sum_{i<k} gamma_i x_{i+1}, with the gamma that sum to 1 and minimise |sum_i gamma_i (x_{i+1} - x_i)|_2, by the
    normal equations. Returns False if these are singular, or if a value is negative or more than four times the largest
    one before: where the iteration converges slowly the equations are nearly singular, and it would take many sweeps to
    undo such a step.
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
    for i in range(k):  # M is positive definite: elimination without pivots
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

    If goals are far, the changes decrease slowly. So the values of a proper policy, which converge, are extrapolated
    every HISTORY sweeps. An extrapolation that does not halve the change of the next sweep is undone. Returns the
    number of sweeps.
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
def rounding_error(sets, cost, usable, goal, alive, v, q):
    """Bound the rounding error of the certificate's ratios: that of q over the cost, at nearly best rows."""
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
    """Fill initial values, which are good if unseen successors may be goals.

    The value is the least of two costs: of repeating one row until it leads to a goal; and of one step to the state
    where that is cheapest, and repeating its row there.
    """
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


@jit(nogil=True, allocates=True)
def solve(sets, cost, goal, alive, usable, v, warm, evaluations, precision, ratio, limit, q, old):
    """Iterate v until the residual is at most `precision` and the ratios of the certificate sum to at most `ratio`.

    v is given at goals (0, or the cost of ending there) and is DEAD where no goal can be reached.

    With evaluations = 0: value iteration (Jacobi). Otherwise modified policy iteration with at most this number of
    sweeps per policy, from the values of `direct_start` unless `warm`. A policy that is not certified to be proper is
    swept only FEW times. After 10 applications of L without progress such a policy is not swept at all, and after 50 no
    policy is. This is then value iteration, which converges from any values.

    q, old
        q [R] are lower bounds on the values of the rows for the values old [S], -inf where nothing is known. On return,
        the same for v.

    Returns (status, sweeps, residual, rise_ratio, fall_ratio). v is not yet divided by 1 + fall_ratio; the residual is
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
    applications, evaluated, least_residual, stalled = 0, 0, math.inf, 0
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
        # division by 1 + fall_ratio adds at most high * fall_ratio to the residual
        residual = rise + high * fall_ratio
        if residual <= precision and rise_ratio + fall_ratio <= ratio:
            errors = rounding_error(sets, cost, usable, goal, alive, v, q) if ratio < math.inf else 0.0
            if rise_ratio + fall_ratio + errors > ratio:
                return ROUNDED, sweeps, residual, rise_ratio, fall_ratio
            # the rows of the goals' non-goal copies, for the same v
            sweep(
                sets, cost, usable, nothing, v, goals, len(goals), order, rank, prefix, n_alive, best, q, -math.inf,
                out, frozen,
            )  # fmt: skip
            return CONVERGED, sweeps, residual, rise_ratio, fall_ratio
        if max(rise, fall) < 0.9 * least_residual:
            least_residual, stalled = max(rise, fall), 0
        else:
            stalled += 1
        if stalled > 5 and max(rise, fall) <= ROUNDING * v[order[n_alive - 1]]:
            return ROUNDED, sweeps, residual, rise_ratio, fall_ratio
        copy_to(v, out)
        if sweeps >= limit:
            return OUT_OF_SWEEPS, sweeps, residual, rise_ratio, fall_ratio
        proper = rise_ratio < 1 - 1e-6  # the certificate asks for < 1; the rest allows for rounding
        if evaluations > 0 and ((proper and stalled < 50) or stalled < 10):
            target = max(0.1 * min(precision, ratio * low), 0.02 * max(rise, fall))
            most = min(evaluations if proper else FEW, limit)
            n_low = n_alive * open_rows
            evaluated += evaluate(frozen, kept, v, order, prefix, n_low, history, proper, target, most)
