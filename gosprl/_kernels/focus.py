"""Focused planning: values and a policy for the states that an attempt is likely to visit (`gosprl.planning.focus`)."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit
from gosprl._kernels.constants import CONVERGED, OUT_OF_SWEEPS, ROUNDS, TINY, UNPLACED_MASS
from gosprl._kernels.operator import sweep
from gosprl._kernels.sets import is_open
from gosprl._kernels.ties import pick

STAMP, SIZE, LINKS, APPLIED, TOUCHED = range(5)  # in `Region.scalars`


class Lowest(NamedTuple):
    """The states of least value, in the form that `sweep` takes: goals, then a stand-in state for all others."""

    order: NDArray[np.int64]  # [n]
    rank: NDArray[np.int64]  # [S] place in `order`, n or more if not there
    prefix: NDArray[np.float64]  # [n + 1]


class Region(NamedTuple):
    """What focused planning keeps from plan to plan, and the arrays that it works with."""

    v: NDArray[np.float64]  # [S + 1] lower bounds on the values; the last is that of the stand-in
    best: NDArray[np.int64]  # [S] the best row of the last application
    q: NDArray[np.float64]  # [R] value of each row in its last application
    out: NDArray[np.float64]  # [S] L v
    states: NDArray[np.int64]  # [S] the states of the region, in the order in which they were added
    todo: NDArray[np.int64]  # [S] states to apply L to
    todo_next: NDArray[np.int64]  # [S] states to apply L to in the next pass
    weight: NDArray[np.float64]  # [S] estimate of the probability that the walk visits the state
    stamp: NDArray[np.int64]  # [S] the STAMP at which `weight` was set, plus 1 if the state is in the region
    policy: NDArray[np.int64]  # [S] rows, -1 outside of the region
    head: NDArray[np.int64]  # [S] first link of the list of rows that may lead there; -1: none
    scalars: NDArray[np.int64]  # [5] last STAMP (even), SIZE of the region, LINKS used, rows APPLIED, states TOUCHED

    @property
    def applied(self) -> int:
        """The number of rows applied so far."""
        return int(self.scalars[APPLIED])


class Links(NamedTuple):
    """For each state, a linked list of the rows that may lead there."""

    next: NDArray[np.int32]  # [pool] the next link of the same state; -1: none
    row: NDArray[np.int32]  # [pool]


@jit
def link(region, links, rows, succ, begin, end):
    """Add rows[i] to the lists of the states succ[begin[i]:end[i]]."""
    for i in range(len(rows)):
        for j in range(begin[i], end[i]):
            new = region.scalars[LINKS]
            links.row[new] = rows[i]
            links.next[new] = region.head[succ[j]]
            region.head[succ[j]] = new
            region.scalars[LINKS] += 1


@jit
def lower_values(sets, cost, usable, goal, row_state, lowest, frozen, region, links, n, tolerance, budget):
    """Lower v until v <= L v + tolerance everywhere. At the start this may fail only at region.todo[:n].

    When the value of a state decreases, its predecessors are added to the next list. Returns False if more than
    `budget` rows would be needed.
    """
    v, out, scalars = region.v, region.out, region.scalars
    todo, todo_next = region.todo, region.todo_next
    last = scalars[APPLIED] + budget
    while n > 0:
        if scalars[APPLIED] > last:
            return False
        applied = sweep(
            sets, cost, usable, goal, v, todo, n, lowest.order, lowest.rank, lowest.prefix, len(lowest.order),
            region.best, region.q, -math.inf, out, frozen,
        )[5]  # fmt: skip
        scalars[APPLIED] += applied
        scalars[STAMP] += 2
        more = 0
        for i in range(n):
            s = todo[i]
            if not goal[s] and out[s] < v[s] - tolerance:
                v[s] = out[s]
                j = region.head[s]
                while j >= 0:
                    x = row_state[links.row[j]]
                    if region.stamp[x] < scalars[STAMP]:
                        region.stamp[x] = scalars[STAMP]
                        todo_next[more] = x
                        more += 1
                    j = links.next[j]
        todo, todo_next, n = todo_next, todo, more
    return True


@jit
def raise_values(sets, cost, usable, goal, states, n, lowest, frozen, region):
    """Apply L to v at states[:n], in place, where that increases v. Returns the largest increase and the rows applied.

    L v may be below v by the tolerance of `lower_values`. Such a value stays: if it decreased, the values of its
    predecessors would be too high by as much, and so on.
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
def exceeds_goals(sets, goal, n_goals, r):
    """Whether the unseen mass of row r is more than the goals that the row has not seen can take."""
    if not is_open(sets, r):
        return False
    unseen = n_goals
    for j in range(sets.begin[r], sets.end[r]):
        unseen -= goal[sets.succ[j]]
    return min(sets.total[r], sets.slack[r]) > sets.each[r] * unseen + TINY


@jit
def expand(sets, goal, region, s, r, least_weight, n):
    """Add the seen successors of row r of state s whose weight reaches `least_weight` to a region of n states.

    s passes its own weight on in proportion to the middles of the successors' intervals. With least_weight = 0 all
    successors are added, also those whose weight is too small for a double. Returns the new size.
    """
    stamp, weight, now = region.stamp, region.weight, region.scalars[STAMP]
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
            region.scalars[TOUCHED] += 1
        weight[x] += weight[s] * (sets.lower[j] + sets.upper[j]) / total
        if weight[x] >= least_weight:
            stamp[x] = now + 1
            region.states[n] = x
            n += 1
    return n


@jit
def focus(
    sets, cost, usable, goal, n_goals, lowest, receivers, frozen, region, seen, start, precision, least_weight, tie,
    key, budget,
):  # fmt: skip
    """Raise v on the states that a walk from `start` is likely to visit, to a residual of at most `precision` there.

    Each round builds the region anew: it follows the greedy policy from `start` and applies L to each state on the way.
    If no value rose by more than precision / 2, that is the result: later increases within the round add at most the
    other half to the residual. Otherwise the region is swept backwards, at most ROUNDS times, before the next round.

    Returns (status, cost of the plan from `start`). UNPLACED_MASS: a row of the policy has more unseen mass than the
    goals can take, and fewer than `receivers` other states remain that no row of the policy has seen. OUT_OF_SWEEPS:
    more than `budget` rows were applied.
    """
    row_ptr = sets.row_ptr
    v, q, out, states, todo = region.v, region.q, region.out, region.states, region.todo
    weight, stamp, policy, scalars = region.weight, region.stamp, region.policy, region.scalars
    at_goal = goal[start]
    used = 0
    while True:
        for i in range(scalars[SIZE]):
            policy[states[i]] = -1
        scalars[STAMP] += 2
        scalars[TOUCHED] = 1
        states[0] = start
        weight[start] = 1.0
        stamp[start] = scalars[STAMP] + 1
        done, n, worst, unplaced = 0, len(states[:1]), 0.0, False
        while done < n:
            batch = states[done:n]
            if done == 0 and at_goal:  # apply L to its non-goal copy, which the plan never enters again
                goal[start] = False
                rows = sweep(
                    sets, cost, usable, goal, v, batch, len(batch), lowest.order, lowest.rank, lowest.prefix,
                    len(lowest.order), region.best, q, -math.inf, out, frozen,
                )[5]  # fmt: skip
                goal[start] = True
                start_cost = out[start]
            else:
                rise, rows = raise_values(sets, cost, usable, goal, batch, n - done, lowest, frozen, region)
                worst = max(worst, rise)
                if done == 0:
                    start_cost = v[start]
            used += rows
            end = n
            for i in range(done, end):
                s = states[i]
                least = start_cost if i == 0 else v[s]
                if least == math.inf:
                    continue
                r = pick(q, row_ptr[s], row_ptr[s + 1], least, tie, key, s, seen, v)
                policy[s] = r
                unplaced = unplaced or exceeds_goals(sets, goal, n_goals, r)
                n = expand(sets, goal, region, s, r, least_weight, n)
            done = end
        scalars[SIZE] = n
        unplaced = unplaced and len(goal) - n_goals - scalars[TOUCHED] < receivers
        if worst <= precision / 2 or unplaced or used > budget:
            break
        for i in range(n):
            todo[i] = states[n - 1 - i]
        for _ in range(ROUNDS):
            rise, rows = raise_values(sets, cost, usable, goal, todo, n - at_goal, lowest, frozen, region)
            used += rows
            if rise <= max(precision / 2, 0.1 * worst):
                break
    scalars[APPLIED] += used
    if unplaced:
        return UNPLACED_MASS, start_cost
    return (OUT_OF_SWEEPS if worst > precision / 2 else CONVERGED), start_cost
