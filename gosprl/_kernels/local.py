"""Plans with the learnt prior around the current state of the walk (`gosprl.planning.prior`)."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit
from gosprl._kernels.arrays import sort_by
from gosprl._kernels.constants import DEAD
from gosprl._kernels.prior import COMMON, RARE, concentrate, concentration_of, improve, learn, write_steps
from gosprl._kernels.steps import FILLED

MARK, SIZE, LEVEL, RADIUS, SWEPT, SAME = range(6)  # in `Around.scalars`
CLOSE = 8  # steps from the start within which values have to converge
DETOUR = 1.25  # paths that are longer than the shortest one by this factor are not followed to convergence
ITEMS, SAMPLES, FOUND_GOALS, UNSEEN_MASS = range(4)  # in the result of `survey`


class Around(NamedTuple):
    """The region of the last plan: states by their distance in steps from where the walk was."""

    v: NDArray[np.float64]  # [S] values; DEAD outside of the region
    last: NDArray[np.float64]  # [S] value in the last plan that had the state; DEAD: it had none
    policy: NDArray[np.int64]  # [S] rows; -1 outside of the region
    states: NDArray[np.int64]  # [S] those of the region, the nearest first
    order: NDArray[np.int64]  # [S] the same states as they are swept
    place: NDArray[np.int64]  # [S] where in `states` each state of the region is
    after: NDArray[np.int32]  # [S (A + 1) COMMON] where common steps lead from each of `states`: see `write_steps`
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
        around.place[s] = around.scalars[SIZE]
        around.depth[s] = around.scalars[RADIUS]
        around.scalars[SIZE] += 1


@jit
def look_ahead(learnt, around, i):
    """Write where common steps lead from the i-th state of the region."""
    width = len(learnt.total) * COMMON
    write_steps(learnt, around.states[i], around.after[i * width : (i + 1) * width])


@jit
def include_steps(learnt, around, i, kind):
    """Add the states that are frequent steps of a kind away from the i-th state."""
    begin = (i * len(learnt.total) + kind) * COMMON
    for k in range(COMMON):
        t = around.after[begin + k]
        if t >= 0 and RARE * learnt.times[kind, k] >= learnt.total[kind]:
            include(around, np.int64(t))


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
        look_ahead(learnt, around, i)
        for row in range(layout.ptr[s], layout.ptr[s + 1]):
            if not layout.enabled[row]:
                continue
            if layout.certain[row]:
                include(around, reset)
                continue
            for j in range(counts.start[row], counts.start[row] + counts.length[row]):
                include(around, np.int64(counts.succ[j]))
            if not layout.terminal[s]:
                include_steps(learnt, around, i, layout.action[row])
        if not layout.terminal[s]:
            include_steps(learnt, around, i, len(learnt.new))
    scalars[LEVEL] = end
    goals = 0
    for i in range(end, scalars[SIZE]):
        goals += unmet[around.states[i]] > 0
    return goals


@jit
def by_distance(around, unmet, back):
    """Write the states that are no goals to `order`, by distance; `back`: the farthest first. Returns their number."""
    n, size = 0, around.scalars[SIZE]
    for i in range(size):
        s = around.states[size - 1 - i] if back else around.states[i]
        if unmet[s] == 0:
            around.order[n] = s
            n += 1
    return n


@jit
def arrange(around, unmet, most):
    """Write the states whose values are at most `most`, or which have none, to `order`, by value. Returns their number.

    Goals are left out: their values are given.
    """
    n = 0
    for i in range(around.scalars[SIZE]):
        s = around.states[i]
        if unmet[s] == 0 and (around.v[s] <= most or around.v[s] >= DEAD):
            around.order[n] = s
            n += 1
    sort_by(around.v, around.order[:n])
    return n


@jit
def settle(
    learnt, counts, layout, cost, floor, reset, unmet, price, around, start, parts, means, anywhere, sweeps, precision,
    sums,
):  # fmt: skip
    """Solve the shortest paths to the goals of the region, as if nothing led out of it.

    A successor that has no value yet counts as staying. So values come from the goals, and a state whose goals are gone
    has no low value that others rely on. The first sweep goes from the farthest state to the nearest, the second back:
    there is a path to the nearest goal along which the first one finds all values. Later ones go by value, and leave
    out states that are farther from the goals than any near the start. If there are values to begin with, all are such.

    The sweeps end when no value near `start` changes by more than `precision`, relative to 1 + value, where a path from
    there may pass: going there, and on from there, takes not much longer than the shortest path.
    """
    v, order = around.v, around.order
    for i in range(around.scalars[SIZE]):
        s = around.states[i]
        if unmet[s] > 0:
            v[s] = price[s]
        elif i >= around.scalars[LEVEL]:  # the others looked ahead when the region was widened
            look_ahead(learnt, around, i)
    first, n = 0 if v[start] >= DEAD else 2, around.scalars[SIZE]
    for sweep in range(first, sweeps):
        longest = DEAD
        if sweep >= 2 and v[start] < DEAD:
            longest = DETOUR * v[start] + 2 * floor
        if sweep == 0 or sweep == 1:
            n = by_distance(around, unmet, sweep == 0)
        elif sweep & (sweep - 1) == 0:
            n = arrange(around, unmet, DEAD if sweep == 2 else v[start] + CLOSE * floor)
        around.scalars[SWEPT] += n
        change = improve(
            learnt, counts, layout, cost, reset, v, around.policy, order[:n], around.place, around.after,
            parts, means, anywhere, around.depth, CLOSE if sweep >= 2 else n, floor, longest, sums,
        )  # fmt: skip
        if change <= precision:
            break


@jit
def plan_around(
    learnt, counts, layout, cost, floor, reset, unmet, price, around, start, same, parts, means, optimism, states,
    farthest, sweeps, precision, through, sums,
):  # fmt: skip
    """Write values and rows for the states around `start`, and return the value there.

    The region has all states that are at most as many steps away as the nearest goal, and some more. It is widened
    until a step costing `floor` as often as its radius says costs as much as the plan, so that no goal outside is
    nearer; but to at most `farthest` times the distance of the nearest goal. If `states` is not 0, `means` are taken
    over so many of them before.
    """
    v, scalars = around.v, around.scalars
    if states > 0:
        overview(learnt, unmet, price, around.last, optimism, states, means)
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
                    sweeps, precision, sums,
                )  # fmt: skip
        radius = scalars[RADIUS]
        if scalars[LEVEL] == scalars[SIZE] or radius >= most or v[start] <= radius * floor:
            break
        until = min(most, max(2 * radius, 1)) if v[start] >= 2 * radius * floor else math.ceil(v[start] / floor)
    for i in range(scalars[SIZE]):
        s = around.states[i]
        if unmet[s] == 0:
            around.last[s] = v[s]
        if unmet[s] > 0 and through:  # `through` as the argument: a literal True would compile the kernel twice
            look_ahead(learnt, around, i)
            improve(
                learnt, counts, layout, cost, reset, v, around.policy, around.states[i : i + 1], around.place,
                around.after, parts, means, through, around.depth, scalars[RADIUS], floor, DEAD, sums,
            )  # fmt: skip
            v[s] = price[s]
    return v[start]


@jit
def survey(learnt, counts, layout, unmet, missing, states, out):
    """Write out [4]: unmet items, missing samples, goals that were found, and the mean mass of unseen successors.

    Over the first `states` states; the last over the rows that plans walk over, 1 if there are none.
    """
    items, samples, goals, mass, walked = 0.0, 0.0, 0.0, 0.0, 0.0
    for s in range(states):
        if unmet[s] > 0:
            items += unmet[s]
            samples += missing[s]
            goals += learnt.found[s]
            continue
        for row in range(layout.ptr[s], layout.ptr[s + 1]):
            if counts.visits[row] > 0 and layout.enabled[row]:
                c = concentration_of(learnt, row, layout.action[row])
                mass += c / (counts.visits[row] + c)
                walked += 1
    out[ITEMS], out[SAMPLES], out[FOUND_GOALS] = items, samples, goals
    out[UNSEEN_MASS] = mass / walked if walked > 0 else 1.0


@jit
def overview(learnt, unmet, price, last, optimism, states, out):
    """Write the values of successors that are popular, known and unknown, and of any state that has a value: out [4].

    Over the first `states` states.
    """
    least, least_unknown = DEAD, DEAD
    valued, total = 0.0, 0.0
    popular, into, known, number, unknown, others = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for s in range(states):
        value = price[s] if unmet[s] > 0 else last[s] if last[s] < DEAD else 0.0
        valued += unmet[s] > 0 or last[s] < DEAD
        total += value
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
    out[3] = total / max(valued, 1.0)


@jit
def take_in(
    learnt, counts, layout, rows, judging, last, look, rounds, pseudo, first, chance, unmet, missing, states, out
):  # fmt: skip
    """Learn from what is new in `rows`. If these are the `last` ones, improve concentrations, and `look` at all states.

    Returns 0. If the table of steps would not stay half empty, nothing is done: returns the slots that it needs.
    """
    new = 0
    for row in rows:
        new += counts.length[row] - learnt.taken[row]
    size = 2 * (learnt.steps.scalars[FILLED] + 2 * new)
    if len(rows) > 0 and size > len(learnt.steps.kind):
        return 2 * size
    learn(learnt, counts, layout, rows, judging, pseudo, chance)
    if last:
        concentrate(learnt, rounds, pseudo, first)
    if last and look:
        survey(learnt, counts, layout, unmet, missing, states, out)
    return 0
