"""Steps between states, as differences of codes (`gosprl.model.coordinates`), and how often they were made.

A code is a number below 2^62, linear in the coordinates of a state, modulo 2^62. So the difference of two codes says by
which vector their states differ, and adding it to the code of another state says where the same step leads from there.

Where states have numbers of their own, the code is the number. Elsewhere a hash table leads from codes to states, and a
code that no state has stands for a state that is not discovered. Hash tables have linear probing and are at most half
full. No more than PROBES slots are looked at: what finds no place there is not counted.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit

CODES = 2**62 - 1  # the largest code; a mask
FIXED, SPARE, FILLED = range(3)  # in `Steps.scalars`
PROBES = 200
LOW, FACTORS = 2**31 - 1, (0x2545F491, 0x1F123BB5)  # below 2^30: the sum of products does not overflow
SPREAD = 0x27D4EB2F  # so that the same step of other kinds begins elsewhere


class Steps(NamedTuple):
    """Codes of S states; a table of T slots from codes to states, one of U slots from steps to numbers."""

    code: NDArray[np.int64]  # [S] -1: the state has no coordinates
    state: NDArray[np.int64]  # [T] -1: free; T = 1 where states have numbers of their own
    kind: NDArray[np.int64]  # [U] action, or the number of actions for any of them; -1: free
    step: NDArray[np.int64]  # [U]
    number: NDArray[np.int64]  # [U] how often a new successor was so far away
    scalars: NDArray[np.int64]  # [3] FIXED: states with numbers; SPARE: not discovered ones; FILLED slots of U


@jit
def first_slot(code, size):
    """Return where the search begins in a table whose size is a power of two."""
    mixed = (code & LOW) * FACTORS[0] + (code >> 31) * FACTORS[1]
    return (mixed ^ (mixed >> 29)) & (size - 1)


@jit
def place_state(steps, s, code):
    """Let s be the state of a code, unless another one is."""
    steps.code[s] = code
    size = len(steps.state)
    slot = first_slot(code, size)
    for _ in range(min(PROBES, size)):
        t = steps.state[slot]
        if t < 0:
            steps.state[slot] = s
        if t < 0 or steps.code[t] == code:
            return
        slot = (slot + 1) & (size - 1)


@jit(inline="always")
def state_after(steps, s, step):
    """Return where a step leads from s, which has a code: SPARE if not discovered, -1 if there is no such state."""
    code = (steps.code[s] + step) & CODES
    if steps.scalars[FIXED] > 0:
        return code if code < steps.scalars[FIXED] else -1
    size = len(steps.state)
    slot = first_slot(code, size)
    for _ in range(min(PROBES, size)):
        t = steps.state[slot]
        if t < 0:
            break
        if steps.code[t] == code:
            return t
        slot = (slot + 1) & (size - 1)
    return steps.scalars[SPARE]


@jit
def slot_of_step(steps, kind, step):
    """Return the slot of a step, or the free one that it would take; -1: neither."""
    size = len(steps.kind)
    slot = first_slot((step + kind * SPREAD) & CODES, size)
    for _ in range(min(PROBES, size)):
        if steps.kind[slot] < 0 or (steps.kind[slot] == kind and steps.step[slot] == step):
            return slot
        slot = (slot + 1) & (size - 1)
    return -1


@jit
def number_of(steps, kind, step):
    """Return how often a step was made."""
    slot = slot_of_step(steps, kind, step)
    return steps.number[slot] if slot >= 0 and steps.kind[slot] >= 0 else 0


@jit
def add_step(steps, kind, step):
    """Count a step; return how often it was made so far, 0 if that is not known."""
    slot = slot_of_step(steps, kind, step)
    if slot < 0:
        return 0
    if steps.kind[slot] < 0:
        steps.kind[slot], steps.step[slot] = kind, step
        steps.scalars[FILLED] += 1
    steps.number[slot] += 1
    return steps.number[slot]


@jit
def move_steps(old, new):
    """Count all steps of one table in another, which is larger."""
    for slot in range(len(old.kind)):
        if old.kind[slot] >= 0 and add_step(new, old.kind[slot], old.step[slot]) > 0:
            new.number[slot_of_step(new, old.kind[slot], old.step[slot])] = old.number[slot]
