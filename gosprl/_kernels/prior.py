"""The learnt prior (`gosprl.planning.prior`): learning from successors that were new to their row, and planning."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit
from gosprl._kernels.constants import DEAD
from gosprl._kernels.steps import CODES, FIXED, SPARE, Steps, add_step, number_of, state_after

# experts: where a new successor may come from
SELF, SIBLING, BEFORE, STEP, ANY_STEP, POPULAR, KNOWN, UNKNOWN, EXPERTS = range(9)
COMMON = 8  # steps of an action that are told apart when planning: the most frequent ones
NEAR = 16  # predecessors of a state that are remembered
BUCKETS, EXACT = 96, 20  # of numbers of visits: see `first_of`
STATES, EVENTS, PLACES, THERE, NOT_THERE = range(5)  # in `Learnt.scalars`
UNDISCOVERED = 1  # states that are not known, before any is
LEAST_C, LARGEST_C = 1e-5, 1e3  # bounds of a concentration
OTHER, ALONE, SHARED, STAYS, KINDS = range(5)  # of rows, by their successors: see `kind_of`
RARE, UNUSUAL = 16, 32  # one step in so many is rare; is unusual if others made it no more often than that
ANYWHERE = 1.0  # concentration from which on rows that jump are taken to lead anywhere


class Learnt(NamedTuple):
    """What is known of new successors: S states, R rows, A actions."""

    weight: NDArray[np.float64]  # [EXPERTS] number of new successors that each one explains
    again: NDArray[np.float64]  # [EXPERTS] the same of those that came at a second or later visit
    taken: NDArray[np.int64]  # [R] successors of the row that were learnt from
    visited: NDArray[np.int64]  # [R] visits that were learnt from
    found: NDArray[np.bool_]  # [S] whether a row led to the state, or from there
    into: NDArray[np.int64]  # [S] number of rows that led to the state
    head: NDArray[np.int64]  # [S] first place in the list of its predecessors; -1: none
    before: NDArray[np.int64]  # [NEAR S] predecessor at a place
    next: NDArray[np.int64]  # [NEAR S] the next place of the same list; -1: none
    steps: Steps  # how often a new successor was so far away
    common: NDArray[np.int64]  # [A + 1, COMMON] the most frequent steps
    times: NDArray[np.int64]  # [A + 1, COMMON] how often they were made; 0: no step
    total: NDArray[np.int64]  # [A + 1] number of steps
    kind: NDArray[np.int64]  # [R] of the row
    new: NDArray[np.float64]  # [A, KINDS] successors that were new at a second or later visit
    repeats: NDArray[np.float64]  # [A, KINDS, BUCKETS] visits, by the number of earlier visits
    concentration: NDArray[np.float64]  # [A + 1] c of each action; last: of all together
    factor: NDArray[np.float64]  # [KINDS] what c is multiplied by in rows of a kind
    jumps: NDArray[np.bool_]  # [R] whether all that the row led to was an unusual step away
    jump_new: NDArray[np.float64]  # [1] successors that were new to such a row
    jump_repeats: NDArray[np.float64]  # [BUCKETS] its visits, by the number of earlier visits
    jump_concentration: NDArray[np.float64]  # [1] c of such rows
    scalars: NDArray[np.int64]  # [5] STATES that a row led to, EVENTS (new successors), PLACES in use; see `note_there`


class Layout(NamedTuple):
    """The rows that can be taken, and what is known of their states."""

    ptr: NDArray[np.int64]  # [S + 1] rows of each state
    state: NDArray[np.int64]  # [R]
    action: NDArray[np.int64]  # [R]
    enabled: NDArray[np.bool_]  # [R]
    certain: NDArray[np.bool_]  # [R] the row leads to the reset
    terminal: NDArray[np.bool_]  # [S] nothing is learnt from its rows


@jit
def first_of(bucket):
    """Return the least number of visits in a bucket: each number up to EXACT has its own, then two share a doubling."""
    if bucket <= EXACT:
        return bucket
    doublings, half = (bucket - EXACT) // 2, (bucket - EXACT) % 2
    return (EXACT << doublings) + half * (EXACT << doublings) // 2


@jit
def note_visits(repeats, begin, end):
    """Count visits begin, ..., end - 1 of a row: each by the number of those before it."""
    bucket = 0
    while bucket + 1 < BUCKETS and first_of(bucket + 1) <= begin:
        bucket += 1
    while begin < end:
        until = min(end, first_of(bucket + 1)) if bucket + 1 < BUCKETS else end
        repeats[bucket] += until - begin
        begin = until
        bucket += 1


@jit
def note_step(learnt, kind, step):
    """Count a step of an action (or of any, the last kind), and keep the list of the most frequent ones."""
    number, rarest = add_step(learnt.steps, kind, step), 0
    learnt.total[kind] += 1
    for k in range(COMMON):
        if learnt.times[kind, k] > 0 and learnt.common[kind, k] == step:
            learnt.times[kind, k] = number
            return
        if learnt.times[kind, k] < learnt.times[kind, rarest]:
            rarest = k
    if number > learnt.times[kind, rarest]:
        learnt.common[kind, rarest], learnt.times[kind, rarest] = step, number


@jit
def note_before(learnt, s, t):
    """Remember that s leads to t."""
    at, number = learnt.head[t], 0
    while at >= 0:
        if learnt.before[at] == s:
            return
        number += 1
        at = learnt.next[at]
    if number < NEAR:
        place = learnt.scalars[PLACES]
        learnt.before[place], learnt.next[place], learnt.head[t] = s, learnt.head[t], place
        learnt.scalars[PLACES] = place + 1


@jit
def unknown_states(learnt):
    """Return the number of states that no row led to; where it cannot be known, as many as are known."""
    states, fixed = learnt.scalars[STATES], learnt.steps.scalars[FIXED]
    return fixed - states if fixed > 0 else UNDISCOVERED + states


@jit
def judge(learnt, counts, layout, row, t, chance):
    """Write the probability that each expert gave to the new successor t of a row."""
    s, a, A = layout.state[row], layout.action[row], len(learnt.new)
    for k in range(EXPERTS):
        chance[k] = 0.0
    if t == s:
        chance[SELF] = 1.0
    number, right = 0, 0
    for other in range(layout.ptr[s], layout.ptr[s + 1]):
        if other != row:
            for j in range(counts.start[other], counts.start[other] + learnt.taken[other]):
                if counts.succ[j] != s:
                    number += 1
                    right += counts.succ[j] == t
    if number > 0:
        chance[SIBLING] = right / number
    at, number, right = learnt.head[s], 0, 0
    while at >= 0:
        number += 1
        right += learnt.before[at] == t
        at = learnt.next[at]
    if number > 0:
        chance[BEFORE] = right / number
    if learnt.steps.code[s] >= 0 and learnt.steps.code[t] >= 0:
        step = (learnt.steps.code[t] - learnt.steps.code[s]) & CODES
        chance[STEP] = number_of(learnt.steps, a, step) / (learnt.total[a] + 1.0)
        chance[ANY_STEP] = number_of(learnt.steps, A, step) / (learnt.total[A] + 1.0)
    chance[POPULAR] = learnt.into[t] / (learnt.scalars[EVENTS] + 1.0)
    if learnt.into[t] == 0 and t != s:
        chance[UNKNOWN] = 1.0 / max(1, unknown_states(learnt))
    else:
        chance[KNOWN] = 1.0 / max(1, learnt.scalars[STATES])


@jit
def note_there(learnt, s, a, t):
    """Note whether the usual step of an action led from s to a state t that was new, or no state is there."""
    most = 0
    for k in range(COMMON):
        if learnt.times[a, k] > learnt.times[a, most]:
            most = k
    if learnt.times[a, most] > 0 and learnt.common[a, most] != 0:
        usual = state_after(learnt.steps, s, learnt.common[a, most])
        if usual == t and learnt.into[t] == 0:
            learnt.scalars[THERE] += 1
        elif usual == learnt.steps.scalars[SPARE]:
            learnt.scalars[NOT_THERE] += 1


@jit
def credit(learnt, again, pseudo, chance):
    """Divide a new successor among the experts, by weight and chance; `again`: it came at a second or later visit.

    The weights of the latter begin as `pseudo` events that are divided like all others.
    """
    total, total_again, events = 0.0, 0.0, 0.0
    for k in range(EXPERTS):
        events += learnt.weight[k]
    for k in range(EXPERTS):
        total += learnt.weight[k] * chance[k]
        total_again += (learnt.again[k] + pseudo * learnt.weight[k] / events) * chance[k]
    if total > 0:
        for k in range(EXPERTS):
            if again:
                learnt.again[k] += (learnt.again[k] + pseudo * learnt.weight[k] / events) * chance[k] / total_again
            learnt.weight[k] += learnt.weight[k] * chance[k] / total


@jit
def kind_of(learnt, counts, layout, row):
    """Return the kind of a row with one successor: STAYS, SHARED with another row of its state, ALONE; or OTHER."""
    if learnt.taken[row] != 1:
        return OTHER
    s, t = layout.state[row], counts.succ[counts.start[row]]
    if t == s:
        return STAYS
    for other in range(layout.ptr[s], layout.ptr[s + 1]):
        if other != row:
            for j in range(counts.start[other], counts.start[other] + learnt.taken[other]):
                if counts.succ[j] == t:
                    return SHARED
    return ALONE


@jit
def is_unusual(learnt, s, t):
    """Whether hardly another new successor is as far from its state as t from s; not before there are a few of them."""
    code, A = learnt.steps.code, len(learnt.new)
    if code[s] < 0 or code[t] < 0:
        return False
    others = number_of(learnt.steps, A, (code[t] - code[s]) & CODES) - 1
    return learnt.total[A] >= RARE and UNUSUAL * others <= learnt.total[A]


@jit
def find_jumps(learnt, counts, layout):
    """Write which rows jump, by the steps as they are now."""
    for row in range(len(learnt.jumps)):
        learnt.jumps[row] = learnt.taken[row] > 0
        for j in range(counts.start[row], counts.start[row] + learnt.taken[row]):
            if not is_unusual(learnt, layout.state[row], counts.succ[j]):
                learnt.jumps[row] = False


@jit(inline="always")
def concentration_of(learnt, row, a):
    """Return the concentration of a row that was visited."""
    if learnt.jumps[row] and learnt.jump_concentration[0] >= ANYWHERE:
        return learnt.jump_concentration[0]
    return learnt.concentration[a] * learnt.factor[learnt.kind[row]]


@jit
def learn(learnt, counts, layout, rows, judging, pseudo, chance):
    """Learn from what is new in `rows`, which were changed last to first; `judging`: experts are credited."""
    code, A = learnt.steps.code, len(learnt.new)
    for i in range(len(rows) - 1, -1, -1):
        row = rows[i]
        s, a = layout.state[row], layout.action[row]
        if layout.terminal[s] or layout.certain[row]:
            continue
        kind, before = learnt.kind[row], learnt.taken[row]
        jumped = learnt.jumps[row]
        for j in range(counts.start[row] + learnt.taken[row], counts.start[row] + counts.length[row]):
            t = counts.succ[j]
            if judging:
                judge(learnt, counts, layout, row, t, chance)
                credit(learnt, learnt.taken[row] > 0, pseudo, chance)
                if learnt.taken[row] == 0 and code[s] >= 0 and learnt.steps.scalars[FIXED] == 0:
                    note_there(learnt, s, a, t)
            if code[s] >= 0 and code[t] >= 0:
                note_step(learnt, a, (code[t] - code[s]) & CODES)
                note_step(learnt, A, (code[t] - code[s]) & CODES)
            learnt.jumps[row] = (learnt.taken[row] == 0 or learnt.jumps[row]) and is_unusual(learnt, s, t)
            if learnt.into[t] == 0:
                learnt.scalars[STATES] += 1
            learnt.into[t] += 1
            learnt.found[s] = learnt.found[t] = True
            learnt.scalars[EVENTS] += 1
            if t != s:
                note_before(learnt, s, t)
            if learnt.taken[row] > 0:
                learnt.new[a, kind] += 1
            learnt.taken[row] += 1
        note_visits(learnt.repeats[a, kind], max(learnt.visited[row], 1), counts.visits[row])
        if jumped:
            learnt.jump_new[0] += learnt.taken[row] - before
            note_visits(learnt.jump_repeats, learnt.visited[row], counts.visits[row])
        learnt.visited[row] = counts.visits[row]
        if learnt.taken[row] > before:
            for other in range(layout.ptr[s], layout.ptr[s + 1]):
                learnt.kind[other] = kind_of(learnt, counts, layout, other)


@jit
def expected_new(repeats, c):
    """Return the sum of 1 / (n + c) over visits, n the number of those before it: c times as many are new."""
    total = 0.0
    for bucket in range(1, BUCKETS - 1):
        if repeats[bucket] > 0:
            total += repeats[bucket] / (0.5 * (first_of(bucket) + first_of(bucket + 1) - 1) + c)
    return total


@jit
def concentrate(learnt, rounds, pseudo, first):
    """Improve the concentrations: c times `expected_new` is the number of new successors.

    All actions together have `pseudo` more such events at concentration `first`, each action as many at that of all,
    each kind of row with one successor as many at those of the actions, and rows that jump as many at `first`.
    """
    c, A, f = learnt.concentration, len(learnt.new), learnt.factor
    for _ in range(rounds):
        new, expected = pseudo * first, pseudo
        for a in range(A):
            for k in range(KINDS):
                new += learnt.new[a, k]
                expected += expected_new(learnt.repeats[a, k], c[A])
        c[A] = min(max(new / expected, LEAST_C), LARGEST_C)
    for a in range(A):
        for _ in range(rounds):
            new, expected = pseudo, pseudo / c[A]
            for k in range(KINDS):
                new += learnt.new[a, k]
                expected += expected_new(learnt.repeats[a, k], c[a])
            c[a] = min(max(new / expected, LEAST_C), LARGEST_C)
    for k in range(OTHER + 1, KINDS):
        for _ in range(rounds):
            new, expected = pseudo, pseudo
            for a in range(A):
                new += learnt.new[a, k]
                expected += c[a] * expected_new(learnt.repeats[a, k], f[k] * c[a])
            f[k] = new / expected
    c = learnt.jump_concentration
    for _ in range(rounds):
        expected = pseudo + expected_new(learnt.jump_repeats, c[0])
        c[0] = min((pseudo * first + learnt.jump_new[0]) / expected, LARGEST_C)


@jit
def write_steps(learnt, s, out):
    """Write where the common steps of each action, and of any, lead from s: [(A + 1) COMMON], -1 where no state is."""
    for kind in range(len(learnt.total)):
        for k in range(COMMON):
            leads = learnt.times[kind, k] > 0 and learnt.steps.code[s] >= 0
            out[kind * COMMON + k] = state_after(learnt.steps, s, learnt.common[kind, k]) if leads else -1


@jit(inline="always")
def stepped(after, begin, times, kind, spare, there, v, s, otherwise):
    """Return the mean value after a step of a kind, without those that stay; and the part of those that stay.

    `after` has where the steps lead to from `begin` on. Those that lead to no state do not count. If none is left, the
    value is `otherwise`. Where states are discovered, steps to unknown places count in part: as often as there was a
    state. States without a value (DEAD) count as staying.
    """
    total, value, stayed = 0.0, 0.0, 0.0
    for k in range(COMMON):
        t = after[begin + k]
        if t >= 0:
            number = float(times[kind, k])
            if t == spare:
                number *= there
            total += number
            if t == s or v[t] >= DEAD:
                stayed += number
            else:
                value += number * v[t]
    if total > 0:
        return value / total, stayed / total
    return otherwise, 0.0


@jit
def improve(
    learnt, counts, layout, cost, reset, v, policy, states, place, after, parts, means, anywhere, depth, deepest, floor,
    longest, sums,
):  # fmt: skip
    """Write value and best row of each of `states`, in turn; return the largest change of a value.

    A row's law is (N p_hat + c base) / (N + c). `parts` [EXPERTS] are the weights of the base, `means` [4] the values
    of successors that are popular, known and unknown, and of any state. A successor without a value (DEAD) counts as
    staying. A state keeps its value if no row leads on. Not `anywhere`: rows count only if they may lead to a state
    near by that has a value. `after` has what `write_steps` wrote for the state at each place.

    A change is relative to 1 + value, and counts in states of at most this depth where `depth` times `floor` plus the
    value is at most `longest`. `sums` [2 A] are overwritten.
    """
    ptr, action, enabled, certain, terminal = layout.ptr, layout.action, layout.enabled, layout.certain, layout.terminal
    visits, start, length, succ, number = counts.visits, counts.start, counts.length, counts.succ, counts.number
    head, before, following = learnt.head, learnt.before, learnt.next
    times, concentration, kind, factor = learnt.times, learnt.concentration, learnt.kind, learnt.factor
    spare, A = learnt.steps.scalars[SPARE], len(learnt.new)
    there = learnt.scalars[THERE] + 1.0
    there /= there + learnt.scalars[NOT_THERE] + 1.0
    to_itself, to_any_step, to_step = parts[SELF], parts[ANY_STEP], parts[STEP]
    popular, known, unknown = parts[POPULAR], parts[KNOWN], parts[UNKNOWN]
    beside, otherwise = parts[SIBLING] + parts[BEFORE], means[0]
    beyond = popular * means[0] + known * means[1] + unknown * means[2]
    jumps, jump_c, of_any = learnt.jumps, learnt.jump_concentration[0], means[3]
    change = 0.0
    for s in states:
        near, first, end, here = DEAD, ptr[s], ptr[s + 1], (A + 1) * COMMON * place[s]
        for row in range(first, end):
            rest, stays = 0.0, 0.0
            for j in range(start[row], start[row] + length[row]):
                t = succ[j]
                if t != s:
                    near = min(near, v[t])
                if t == s or v[t] >= DEAD:
                    stays += number[j]
                else:
                    rest += number[j] * v[t]
            sums[2 * (row - first)], sums[2 * (row - first) + 1] = rest, stays
        at = head[s]
        while at >= 0:
            near = min(near, v[before[at]])
            at = following[at]
        any_value, any_stays = stepped(after, here + A * COMMON, times, A, spare, there, v, s, otherwise)
        value, best = DEAD, -1
        for row in range(first, end):
            if not enabled[row]:
                continue
            if certain[row]:
                total, stays, rest = 1.0, 1.0 if v[reset] >= DEAD else 0.0, v[reset]
                leads = 1.0
            else:
                total, rest, stays = float(visits[row]), sums[2 * (row - first)], sums[2 * (row - first) + 1]
                leads = total - stays
                if not terminal[s] and jumps[row] and jump_c >= ANYWHERE:
                    total, rest = total + jump_c, rest + jump_c * of_any
                elif not terminal[s]:
                    a = action[row]
                    c = concentration[a] * factor[kind[row]] if total > 0 else 1.0
                    step, step_stays = stepped(after, here + a * COMMON, times, a, spare, there, v, s, otherwise)
                    base = beyond + to_any_step * any_value + to_step * step
                    kept = to_itself + to_any_step * any_stays + to_step * step_stays
                    if near < DEAD:
                        base += beside * near
                    else:
                        kept += beside
                    leads += 1.0 - kept - popular - known - unknown
                    total, stays, rest = total + c, stays + c * kept, rest + c * base
            if total - stays > 1e-9 * total and (anywhere or leads > 1e-9):
                q = (cost[row] * total + rest) / (total - stays)
                if q < value - 1e-9:
                    value, best = q, row
        if best < 0:
            continue
        if depth[s] <= deepest and depth[s] * floor + value <= longest:
            change = max(change, min(1.0, abs(value - v[s]) / (1.0 + value)))
        v[s], policy[s] = value, best
    return change
