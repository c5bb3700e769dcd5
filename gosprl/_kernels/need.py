"""The samples that are still missing, updated together with the counts."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import inlined, jit
from gosprl._kernels.constants import COUNTED
from gosprl._kernels.counts import record
from gosprl.collecting.rules import COLLECTED, MISSING, UNMET_STATES, VERSION


class Ledger(NamedTuple):
    """The samples that are needed and missing. An item is a pair with a need, or a state with its own need."""

    row_state: NDArray[np.int64]  # [R] the state that a sample of each row counts for: of a chosen reset, the reset
    pair: NDArray[np.int64]  # [R] samples needed of each row
    state: NDArray[np.int64]  # [S] samples needed of each state, with any action
    state_visits: NDArray[np.int64]  # [S] N(s)
    unmet_items: NDArray[np.int64]  # [S] items of the state that are unmet
    missing_samples: NDArray[np.int64]  # [S] samples missing for these items
    totals: NDArray[np.int64]  # [4] states with unmet items; samples missing; needed samples collected; version,
    # increased when the requirement, not a sample, changes which states are unmet
    credit_at: NDArray[np.float64]  # [S] credit of a needed sample that leads to the state; set by planners that use it
    credit: NDArray[np.float64]  # [1] the sum of the credits
    began: NDArray[np.int64]  # [1] the state that the last needed sample led to; -1: there was none


@jit
def recount(ledger, row_ptr, visits, states):
    """Recompute the missing samples of the given states; the version increases if other states are unmet now."""
    totals = ledger.totals
    another = False
    for s in states:
        was = ledger.unmet_items[s] > 0
        totals[UNMET_STATES] -= was
        totals[MISSING] -= ledger.missing_samples[s]
        ledger.state_visits[s] = ledger.unmet_items[s] = ledger.missing_samples[s] = 0
        for r in range(row_ptr[s], row_ptr[s + 1]):
            ledger.state_visits[s] += visits[r] if ledger.row_state[r] == s else 0
            ledger.unmet_items[s] += visits[r] < ledger.pair[r]
            ledger.missing_samples[s] += max(0, ledger.pair[r] - visits[r])
        ledger.unmet_items[s] += ledger.state_visits[s] < ledger.state[s]
        ledger.missing_samples[s] += max(0, ledger.state[s] - ledger.state_visits[s])
        another |= was != (ledger.unmet_items[s] > 0)
        totals[UNMET_STATES] += ledger.unmet_items[s] > 0
        totals[MISSING] += ledger.missing_samples[s]
    totals[VERSION] += another


@inlined
def note(counts, ledger, row, s_next, reward):
    """Count one transition in `counts` and `ledger`. Returns COUNTED; or why it was not counted, without any change."""
    outcome = record(counts, row, s_next, reward)
    if outcome != COUNTED:
        return outcome
    s = ledger.row_state[row]
    ledger.state_visits[s] += 1
    gained = 0
    gained += counts.visits[row] <= ledger.pair[row]
    gained += ledger.state_visits[s] <= ledger.state[s]
    ledger.missing_samples[s] -= gained
    ledger.totals[MISSING] -= gained
    ledger.totals[COLLECTED] += gained
    if gained > 0:
        ledger.credit[0] += ledger.credit_at[s_next]
        ledger.began[0] = s_next
    fulfilled = 0
    fulfilled += counts.visits[row] == ledger.pair[row]
    fulfilled += ledger.state_visits[s] == ledger.state[s]
    if fulfilled > 0:
        ledger.unmet_items[s] -= fulfilled
        ledger.totals[UNMET_STATES] -= ledger.unmet_items[s] == 0
    return COUNTED


@jit
def note_many(counts, ledger, rows, s_next, rewards, steps, events, done, noted):
    """Count transitions `done`, `done + 1`, ...; at each change write (step, unmet states) to events[noted] and later.

    Returns the index of the first transition that was not counted (or len(rows)), and the number of events written.
    """
    for i in range(done, len(rows)):
        unmet = ledger.totals[UNMET_STATES]
        if note(counts, ledger, rows[i], s_next[i], rewards[i]) != COUNTED:
            return i, noted
        if ledger.totals[UNMET_STATES] != unmet:
            events[noted, 0] = steps[i]
            events[noted, 1] = ledger.totals[UNMET_STATES]
            noted += 1
    return len(rows), noted
