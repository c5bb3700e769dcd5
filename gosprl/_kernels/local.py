"""Plans with the learnt prior around the current state of the walk (`gosprl.planning.local`)."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit
from gosprl._kernels.arrays import sort_by
from gosprl._kernels.constants import DEAD
from gosprl._kernels.prior import COMMON, best_row

MARK, SIZE, LEVEL, RADIUS, SWEPT, SAME = range(6)  # in `Around.scalars`
RARE = 16  # steps that an action makes less often than once in so many do not widen a region
CLOSE = 8  # steps from the start within which values have to converge
DETOUR = 1.25  # paths that are longer than the shortest one by this factor are not followed to convergence
ITEMS, FOUND_GOALS, UNSEEN_MASS = range(3)  # in the result of `survey`


class Around(NamedTuple):
    """The region of the last plan: states by their distance in steps from where the walk was."""

    v: NDArray[np.float64]  # [S] values; DEAD outside of the region
    last: NDArray[np.float64]  # [S] value in the last plan that had the state; DEAD: it had none
    policy: NDArray[np.int64]  # [S] rows; -1 outside of the region
    states: NDArray[np.int64]  # [S] those of the region, the nearest first
    order: NDArray[np.int64]  # [S] the same states as they are swept
    depth: NDArray[np.int64]  # [S] steps from where the walk was, of the states of the region
    mark: NDArray[np.int64]  # [S] the MARK of the last region that had the state
    scalars: NDArray[np.int64]  # [6] MARK of this region, its SIZE, where its last LEVEL begins, its RADIUS in steps;
    # states SWEPT by all plans; the first MARK of a plan to the SAME goals


@jit
def begin(around, start, same):
    """Let the region be one state; `same`: the goals are those of the last plan."""
    scalars = around.scalars
    for i in range(scalars[SIZE]):
        around.v[around.states[i]] = DEAD
        around.policy[around.states[i]] = -1
    scalars[MARK] += 1
    if not same:
        scalars[SAME] = scalars[MARK]
    scalars[SIZE] = scalars[LEVEL] = scalars[RADIUS] = 0
    include(around, start)


@jit
def include(around, s):
    """Add a state to the region; its value is the last one to the same goals."""
    if around.mark[s] != around.scalars[MARK]:
        around.v[s] = around.last[s] if around.mark[s] >= around.scalars[SAME] else DEAD
        around.mark[s] = around.scalars[MARK]
        around.states[around.scalars[SIZE]] = s
        around.depth[s] = around.scalars[RADIUS]
        around.scalars[SIZE] += 1


@jit
def include_steps(learnt, around, s, kind):
    """Add the states that are frequent steps of a kind away from s."""
    shift = (learnt.steps.shape[1] - 1) // 2
    if s > shift:
        return
    for k in range(COMMON):
        t = s + learnt.common[kind, k]
        if RARE * learnt.times[kind, k] >= max(learnt.total[kind], 1) and t >= 0 and t <= shift:
            include(around, t)


@jit
def widen(learnt, counts, layout, reset, unmet, around):
    """Add the states one step beyond the region: seen successors, and those expected. Returns the goals among them."""
    scalars = around.scalars
    first, end = scalars[LEVEL], scalars[SIZE]
    scalars[RADIUS] += 1
    for i in range(first, end):
        s = around.states[i]
        if i > 0 and unmet[s] > 0:  # paths end there
            continue
        for row in range(layout.ptr[s], layout.ptr[s + 1]):
            if not layout.enabled[row]:
                continue
            if layout.certain[row]:
                include(around, reset)
                continue
            for j in range(counts.start[row], counts.start[row] + counts.length[row]):
                include(around, counts.succ[j])
            if not layout.terminal[s]:
                include_steps(learnt, around, s, layout.action[row])
        if not layout.terminal[s]:
            include_steps(learnt, around, s, len(learnt.new))
    scalars[LEVEL] = end
    goals = 0
    for i in range(end, scalars[SIZE]):
        goals += unmet[around.states[i]] > 0
    return goals


@jit
def settle(
    learnt, counts, layout, cost, floor, reset, unmet, price, around, start, parts, means, anywhere, sweeps, precision,
    scratch,
):  # fmt: skip
    """Solve the shortest paths to the goals of the region, as if nothing led out of it.

    Sweeps go from the farthest state to the nearest and back until no value changes by more than `precision`, relative
    to 1 + value. After the first two, this is about the states where a path from `start` may pass: going there, and on
    from there, takes not much longer than the shortest path. A successor that has no value yet counts as staying. So values come from the goals, and a state whose
    goals are gone has no low value that others rely on.
    """
    v, n = around.v, around.scalars[SIZE]
    some = n
    step, any_step = scratch[:2], scratch[2:4]
    order = around.order[:n]
    for i in range(n):
        s = around.states[i]
        order[n - 1 - i] = s
        if unmet[s] > 0:
            v[s] = price[s]
    for sweep in range(sweeps):
        change, longest = 0.0, DEAD
        if sweep >= 2 and sweep & (sweep - 1) == 0:
            sort_by(v, order)
            while sweep > 2 and v[start] < DEAD and some > 0 and v[order[some - 1]] > v[start] + CLOSE * floor:
                some -= 1  # farther from the goals than any state near the start
        if sweep >= 2 and v[start] < DEAD:
            longest = DETOUR * v[start] + 2 * floor
        around.scalars[SWEPT] += some
        for i in range(some):
            s = order[n - 1 - i] if sweep == 1 else order[i]
            if unmet[s] > 0:
                continue
            value, row = best_row(learnt, counts, layout, cost, reset, v, s, parts, means, anywhere, step, any_step)
            if row < 0:
                continue
            if sweep < 2 or (around.depth[s] <= CLOSE and around.depth[s] * floor + value <= longest):
                change = max(change, min(1.0, abs(value - v[s]) / (1.0 + value)))
            v[s], around.policy[s] = value, row
        if change <= precision:
            break


@jit
def plan_around(
    learnt, counts, layout, cost, floor, reset, unmet, price, around, start, same, parts, means, farthest, sweeps, precision,
    through, scratch,
):  # fmt: skip
    """Write values and rows for the states around `start`, and return the value there.

    The region has all states that are at most as many steps away as the nearest goal, and some more. It is widened
    until a step costing `floor` as often as its radius says costs as much as the plan, so that no goal outside is
    nearer; but to at most `farthest` times the distance of the nearest goal.
    """
    v, scalars = around.v, around.scalars
    begin(around, start, same)
    goals = 1 if unmet[start] > 0 else 0
    while goals == 0 and scalars[LEVEL] < scalars[SIZE]:
        goals = widen(learnt, counts, layout, reset, unmet, around)
    nearest = scalars[RADIUS]
    until, most = max(2, nearest + nearest // 8 + 1), farthest * (nearest + 1)
    while True:
        while scalars[RADIUS] < until and scalars[LEVEL] < scalars[SIZE]:
            widen(learnt, counts, layout, reset, unmet, around)
        for anywhere in (False, True):
            if not anywhere or v[start] >= DEAD:
                settle(
                    learnt, counts, layout, cost, floor, reset, unmet, price, around, start, parts, means, anywhere,
                    sweeps, precision, scratch,
                )  # fmt: skip
        radius = scalars[RADIUS]
        if scalars[LEVEL] == scalars[SIZE] or radius >= most or v[start] <= radius * floor:
            break
        until = min(most, max(2 * radius, 1)) if v[start] >= 2 * radius * floor else math.ceil(v[start] / floor)
    for i in range(scalars[SIZE]):
        s = around.states[i]
        if unmet[s] == 0:
            around.last[s] = v[s]
        if unmet[s] > 0 and through:
            around.policy[s] = best_row(
                learnt, counts, layout, cost, reset, v, s, parts, means, True, scratch[:2], scratch[2:4]
            )[1]
    return v[start]


@jit
def survey(learnt, counts, layout, unmet, out):
    """Write out [3]: unmet items, goals that were found, and the mean mass of unseen successors.

    The last is over the rows that plans walk over; 1 if there are none.
    """
    items, goals, mass, walked = 0.0, 0.0, 0.0, 0.0
    for s in range(len(unmet)):
        if unmet[s] > 0:
            items += unmet[s]
            goals += learnt.found[s]
            continue
        for row in range(layout.ptr[s], layout.ptr[s + 1]):
            if counts.visits[row] > 0 and layout.enabled[row]:
                c = learnt.concentration[layout.action[row]]
                mass += c / (counts.visits[row] + c)
                walked += 1
    out[ITEMS], out[FOUND_GOALS] = items, goals
    out[UNSEEN_MASS] = mass / walked if walked > 0 else 1.0


@jit
def overview(learnt, unmet, price, last, optimism, states, out):
    """Write the values of successors that are popular, known and unknown, over the first `states` states: out [3]."""
    least, least_unknown = DEAD, DEAD
    popular, into, known, number, unknown, others = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for s in range(states):
        value = price[s] if unmet[s] > 0 else last[s] if last[s] < DEAD else 0.0
        if learnt.found[s]:
            known += value
            number += 1
            if unmet[s] > 0:
                least = min(least, value)
        else:
            unknown += value
            others += 1
            if unmet[s] > 0:
                least_unknown = min(least_unknown, value)
        popular += learnt.into[s] * value
        into += learnt.into[s]
    least, least_unknown = min(least, least_unknown), least_unknown if least_unknown < DEAD else least
    out[0] = popular / into if into > 0 else 0.0
    out[1] = optimism * least + (1 - optimism) * known / max(number, 1.0)
    out[2] = optimism * least_unknown + (1 - optimism) * unknown / others if others > 0 else out[1]
