"""An attempt on a simulated MDP, by the rules of `gosprl.collecting.rules`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit
from gosprl._kernels.constants import FIRST_CAPACITY, FOREIGN, INVALID, NO_ROOM
from gosprl._kernels.counts import CLOSED, USED
from gosprl._kernels.need import note
from gosprl.collecting import rules
from gosprl.collecting.rules import FOUND, GOES_ON, HANDED_BACK, NO_ROW, UNMET_STATES

why_ended = jit(rules.why_ended)
under_sampled_row = jit(rules.under_sampled_row)
drawn_row = jit(rules.drawn_row)


class Dynamics(NamedTuple):
    """A known MDP, to be simulated."""

    row_ptr: NDArray[np.int64]  # [S + 1]
    ptr: NDArray[np.int64]  # [R + 1]
    succ: NDArray[np.int32]  # [nnz]
    prob: NDArray[np.float64]  # [nnz]
    rewards: NDArray[np.float64]  # [R] means
    component: NDArray[np.int64]  # [S] states with the same label can be reached from each other


class Course(NamedTuple):
    """An attempt (`gosprl.strategies.base`) as arrays."""

    policy: NDArray[np.int64]  # [S] rows, NO_ROW to hand back; empty if the policy is random
    probability: NDArray[np.float64]  # [R] of a random policy; empty otherwise
    goals: NDArray[np.bool_]  # [S]
    limit: NDArray[np.int64]  # [R]


@jit(nogil=True)
def walk(mdp, bernoulli, counts, ledger, course, sample, choices, uniforms, s, steps, events, trace, threshold):
    """Follow an attempt for at most `steps` steps from s, on an MDP simulated by one uniform number a step.

    A step uses one of `uniforms`, two if rewards are Bernoulli, and one of `choices` if the policy is random. Writes
    the row of each step to `trace`, and (step, unmet states) to `events` at each change. Returns (state, steps made,
    events written, why it stopped): GOES_ON if all steps were made, NO_ROOM if the counts need a larger pool, FOREIGN
    if a successor is no candidate, INVALID if the policy's row does not belong to the state; in the last three cases
    the step was not made. With FOUND and FOREIGN, the next entry of `events` is (row, successor).
    """
    noted = 0
    closed = counts.scalars[CLOSED] != 0
    for step in range(steps):
        begin, end = mdp.row_ptr[s], mdp.row_ptr[s + 1]
        if not closed:
            capacity = FIRST_CAPACITY
            for row in range(begin, end):
                capacity = max(capacity, 2 * counts.length[row])
            if counts.scalars[USED] + capacity > len(counts.succ):
                return s, step, noted, NO_ROOM  # before anything is drawn
        row = NO_ROW
        if sample and ledger.unmet_items[s] > 0:
            row = under_sampled_row(begin, end, counts.visits, ledger.pair)
        if row < 0:
            if len(course.policy) > 0:
                row = course.policy[s]
                if row == NO_ROW:
                    return s, step, noted, HANDED_BACK
            else:
                row = drawn_row(begin, end, course.probability, choices[step])
            if not begin <= row < end:
                return s, step, noted, INVALID
        u = uniforms[step * (1 + bernoulli)]
        cumulative = 0.0
        j = mdp.ptr[row]
        for j in range(mdp.ptr[row], mdp.ptr[row + 1]):
            cumulative += mdp.prob[j]
            if u < cumulative:
                break
        reward = mdp.rewards[row]
        if bernoulli:
            reward = 1.0 if uniforms[2 * step + 1] < reward else 0.0
        unmet = ledger.totals[UNMET_STATES]
        s_next = mdp.succ[j]
        if note(counts, ledger, row, s_next, reward) == FOREIGN:
            events[noted, 0] = row
            events[noted, 1] = s_next
            return s, step, noted, FOREIGN
        trace[step] = row
        through_door = mdp.component[s] != mdp.component[s_next]
        s = s_next
        left = ledger.totals[UNMET_STATES]
        if left != unmet:
            events[noted, 0] = step + 1
            events[noted, 1] = left
            noted += 1
        over = why_ended(
            reward > threshold,
            left != unmet and left == 0,
            course.goals[s],
            sample and left != unmet,
            counts.visits[row] > course.limit[row],
            through_door,
            False,
        )
        if over == FOUND:
            events[noted, 0] = row
            events[noted, 1] = s
        if over != GOES_ON:
            return s, step + 1, noted, over
    return s, steps, noted, GOES_ON
