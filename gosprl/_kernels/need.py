"""What is needed and not yet there, kept with the counts."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit
from gosprl._kernels.constants import COUNTED
from gosprl._kernels.counts import record


class Ledger(NamedTuple):
    """What is needed and not yet there. An item is a pair or a state with a need of its own."""

    row_state: NDArray[np.int64]  # [R]
    pair: NDArray[np.int64]  # [R] samples needed of each row
    state: NDArray[np.int64]  # [S] of each state, with any action
    visits: NDArray[np.int64]  # [S] N(s)
    unmet: NDArray[np.int64]  # [S] items of the state that are unmet
    missing: NDArray[np.int64]  # [S] samples that they lack
    scalars: NDArray[np.int64]  # [4] states with unmet items, samples missing, needed ones collected, changes of mind:
    # how often the set of the former was changed by what is needed, not by what was sampled
    worth: NDArray[
        np.float64
    ]  # [S] credited for a needed sample that leads there: set by strategies that keep accounts
    credit: NDArray[np.float64]  # [1] the sum of that


@jit
def settle(ledger, row_ptr, visits, states):
    """Count anew what the given states lack."""
    scalars = ledger.scalars
    another = False
    for s in states:
        was = ledger.unmet[s] > 0
        scalars[0] -= was
        scalars[1] -= ledger.missing[s]
        ledger.visits[s] = ledger.unmet[s] = ledger.missing[s] = 0
        for r in range(row_ptr[s], row_ptr[s + 1]):
            ledger.visits[s] += visits[r]
            ledger.unmet[s] += visits[r] < ledger.pair[r]
            ledger.missing[s] += max(0, ledger.pair[r] - visits[r])
        ledger.unmet[s] += ledger.visits[s] < ledger.state[s]
        ledger.missing[s] += max(0, ledger.state[s] - ledger.visits[s])
        another |= was != (ledger.unmet[s] > 0)
        scalars[0] += ledger.unmet[s] > 0
        scalars[1] += ledger.missing[s]
    scalars[3] += another


@jit
def note(counts, ledger, row, s_next, reward):
    """Count one transition in both; COUNTED, or why it was not, and then nothing changed."""
    outcome = record(counts, row, s_next, reward)
    if outcome != COUNTED:
        return outcome
    s = ledger.row_state[row]
    ledger.visits[s] += 1
    gained = 0
    gained += counts.visits[row] <= ledger.pair[row]
    gained += ledger.visits[s] <= ledger.state[s]
    ledger.missing[s] -= gained
    ledger.scalars[1] -= gained
    ledger.scalars[2] += gained
    if gained > 0:
        ledger.credit[0] += ledger.worth[s_next]
    fulfilled = 0
    fulfilled += counts.visits[row] == ledger.pair[row]
    fulfilled += ledger.visits[s] == ledger.state[s]
    if fulfilled > 0:
        ledger.unmet[s] -= fulfilled
        ledger.scalars[0] -= ledger.unmet[s] == 0
    return COUNTED


@jit
def note_many(counts, ledger, rows, s_next, rewards, steps, events, done, noted):
    """Count transitions `done`, `done + 1`, ..., writing (step, states unmet) into `events` from `noted` on.

    Returns the number of the first that could not be counted, and of the events written.
    """
    for i in range(done, len(rows)):
        unmet = ledger.scalars[0]
        if note(counts, ledger, rows[i], s_next[i], rewards[i]) != COUNTED:
            return i, noted
        if ledger.scalars[0] != unmet:
            events[noted, 0] = steps[i]
            events[noted, 1] = ledger.scalars[0]
            noted += 1
    return len(rows), noted


@jit
def fewest_visits(row_ptr, visits, pair, s):
    """Of the under-sampled rows of s, the first with the fewest visits; -1 if there is none."""
    best = -1
    for r in range(row_ptr[s], row_ptr[s + 1]):
        if visits[r] < pair[r] and (best < 0 or visits[r] < visits[best]):
            best = r
    return best
