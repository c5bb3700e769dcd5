"""The rules of an attempt: which row is taken, and why the attempt ends.

They stand here once, as plain functions of numbers. The compiled walk (`gosprl._kernels.walk`) compiles them, the
step-by-step engine (`gosprl.collecting.engine`) calls them as they are: both follow an attempt in the same way.

Choosing, in state s:

1. If the attempt samples on the way and a pair of s is under-sampled, the under-sampled pair with the fewest visits,
   the first of them if there are several (`under_sampled_row`).
2. Otherwise the row that the policy has for s, -1 to hand back; a random policy draws one (`drawn_row`).

Ending, after each step, the first that applies (`why_ended`).
"""

from enum import IntEnum
from typing import Any

GOES_ON, GOAL, LIMIT, HORIZON, HANDED_BACK, MET, TELEPORT, SETTLED, FOUND, DOOR = range(10)
NO_ROW, INVALID_ROW = -1, -2
UNMET_STATES, MISSING, COLLECTED, VERSION = range(4)  # the totals of a need (`_kernels.need.Ledger.totals`)
OFF = 1e-6  # by which the probabilities of a random policy may miss the sum of one: rounding


class Ended(IntEnum):
    """Why an attempt ended; the numbers are those that compiled code uses."""

    GOES_ON = GOES_ON  # it did not: only the steps it was given are used up
    GOAL = GOAL  # the walk is at a goal
    LIMIT = LIMIT  # the visits of the row just taken exceed the attempt's limit
    HORIZON = HORIZON  # all steps of the attempt are made
    HANDED_BACK = HANDED_BACK  # the policy has no row for the state
    MET = MET  # everything needed is there
    TELEPORT = TELEPORT  # the system went somewhere else without a transition
    SETTLED = SETTLED  # an attempt that samples on the way gave a state all it needs
    FOUND = FOUND  # a reward above the threshold
    DOOR = DOOR  # no way leads back to where the step began (known dynamics only)


def why_ended(
    found: bool, met: bool, at_goal: bool, settled: bool, over_limit: bool, through_door: bool, last_step: bool
) -> int:
    """Why an attempt ended with the step just made, in this order; GOES_ON if it did not."""
    if found:
        return FOUND
    if met:
        return MET
    if at_goal:
        return GOAL
    if settled:
        return SETTLED
    if over_limit:
        return LIMIT
    if through_door:
        return DOOR
    if last_step:
        return HORIZON
    return GOES_ON


def under_sampled_row(begin: int, end: int, visits: Any, needed: Any) -> int:
    """Of the rows begin .. end - 1 with fewer visits than needed, the first with the fewest; NO_ROW if there is none.

    visits, needed
        Anything that can be indexed by row: arrays where it is compiled, lists where it is not.
    """
    best = NO_ROW
    for row in range(begin, end):
        if visits[row] < needed[row] and (best < 0 or visits[row] < visits[best]):
            best = row
    return best


def drawn_row(begin: int, end: int, probability: Any, u: float) -> int:
    """Return the row begin .. end - 1 that the uniform number u draws; INVALID_ROW without a distribution."""
    row, total = INVALID_ROW, 0.0
    for r in range(begin, end):
        p = probability[r]
        if not p >= 0:
            return INVALID_ROW
        total += p
        if u >= 0 and p > 0:
            u -= p
            row = r
    return row if abs(total - 1) < OFF else INVALID_ROW
