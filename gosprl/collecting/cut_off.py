"""States whose actions are never available, since every episode that gets there is cut off: a time limit, mostly.

A truncation is a jump: the step before it counts, and leads to a state in which nothing can be done. A state that a
time limit of H steps lets a walk reach only with the last of them is discovered, and needed, but never acted in.

The counts say which states may be like that: the walk came there, and no action was ever taken there. If all that is
still missing is of such states, and the walk came to each of them at least `ARRIVALS` times, they are given up. That is
a heuristic: as long as the dynamics are not known, another arrival may come earlier. If one arrival in ten could act,
30 in a row that cannot have a probability of 4 %. The result lists these states, and the guarantee names what is taken
for granted. It is a function of the counts and of where the walkers are, so that a run that is made again gives up the
same.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.record import Record

ARRIVALS = 30  # at each of the states before they are given up
MOST = 1_000  # states that are looked at: while more are missing, it is not the end of a run
NO_STATES = np.empty(0, dtype=np.int64)
REASON = "heuristic: each of "  # what reasons of this kind begin with


class CutOff:
    """Gives up states in which every arrival was cut off, once nothing else is missing."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def waive(self, walkers: Sequence[int]) -> None:
        """Ask no more of such states, if nothing else is missing; `walkers` are the states where walks go on."""
        if not len(self._suspects(walkers)):  # nearly always
            return
        self._record.update_need()  # what was discovered since may be needed, too
        missing = self._suspects(walkers)
        arrivals = self._arrivals(missing)
        if arrivals.min(initial=ARRIVALS) >= ARRIVALS:
            reasons = {s: reason_of(n) for s, n in zip(missing.tolist(), arrivals.tolist(), strict=True)}
            self._record.waive(reasons)

    def _suspects(self, walkers: Sequence[int]) -> NDArray[np.int64]:
        """[n] the states that are missing, if no action was ever taken in any of them; otherwise none."""
        need = self._record.need
        if not self._record.model.ended or not 0 < need.unmet_states <= MOST:
            return NO_STATES
        missing = np.flatnonzero(need.unmet_items > 0)
        if need.state_visits[missing].any() or np.isin(missing, walkers).any():
            return NO_STATES
        return missing

    def _arrivals(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        """[n] how often a step led to each of these states."""
        model = self._record.model
        ptr, succ, number, _ = model.stored(np.flatnonzero(model.visits))
        rows = np.flatnonzero(model.visits)
        is_step = ~model.terminal[model.rows.state[np.repeat(rows, np.diff(ptr))]]
        found = np.bincount(succ[is_step], weights=number[is_step], minlength=model.rows.num_states)
        arrivals: NDArray[np.int64] = found[states].astype(np.int64)
        unknown = self._record.counted.model.unknown
        if len(unknown):  # a walker was there, and is gone: nobody knows whether it could act
            arrivals[np.isin(states, model.rows.state[np.flatnonzero(unknown)])] = 0
        return arrivals


def reason_of(arrivals: int) -> str:
    """Return why a state is given up."""
    return (
        f"{REASON}{arrivals:,} episodes that came there was cut off at once, so that its actions were never available; "
        "the time limit is too short"
    )


def are_assumed(reasons: Iterable[str]) -> bool:
    """Whether a state was given up for such a reason."""
    return any(why.startswith(REASON) for why in reasons)
