"""Focused planning (see `gosprl.planning.focus`)."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit
from gosprl._kernels.constants import CONVERGED, HUNGRY, OUT_OF_SWEEPS, ROUNDS, TINY
from gosprl._kernels.operator import sweep
from gosprl._kernels.sets import is_open
from gosprl._kernels.ties import pick


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


@jit
def link(region, links, rows, succ, begin, end):
    """Note that rows[i] may lead to succ[begin[i]:end[i]]."""
    for i in range(len(rows)):
        for j in range(begin[i], end[i]):
            new = region.scalars[2]
            links.row[new] = rows[i]
            links.next[new] = region.head[succ[j]]
            region.head[succ[j]] = new
            region.scalars[2] += 1


@jit
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


@jit
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


@jit
def hungry(sets, goal, n_goals, r):
    """Whether the unseen mass of row r is more than goals not seen from there can take."""
    if not is_open(sets, r):
        return False
    unseen = n_goals
    for j in range(sets.begin[r], sets.end[r]):
        unseen -= goal[sets.succ[j]]
    return min(sets.total[r], sets.slack[r]) > sets.each[r] * unseen + TINY


@jit
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


@jit
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
        done, n, worst, starving = 0, len(states[:1]), 0.0, False
        while done < n:
            batch = states[done:n]
            if done == 0 and at_goal:  # its non-goal copy, which is never seen again
                goal[start] = False
                rows = sweep(
                    sets, cost, usable, goal, v, batch, len(batch), lowest.order, lowest.rank, lowest.prefix,
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
