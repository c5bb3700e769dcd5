"""Paths: what the true dynamics, where a system tells them, say about the states that are needed.

Only simulated MDPs tell them. States without a path from where the walk is are waived before the first step, and again
when a one-way door has closed behind the walk: it is then in another strongly connected component.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.record import Record
from gosprl.mdp.tabular import TabularMDP
from gosprl.systems import System

NEVER: tuple[frozenset[int], int] = (frozenset(), -1)


class Paths:
    """Waives states that cannot be reached from where the walk is."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._mdp: TabularMDP | None = None  # None: nothing is known, or every state can be reached
        self._from: dict[int, NDArray[np.bool_]] = {}  # component -> [S] the states that can be reached from there
        self._seen: tuple[frozenset[int], int] = NEVER  # components of the walks and version of the need, at that time
        self._reachable = np.ones(record.model.rows.num_states, dtype=bool)  # [S] from that component

    def look_at(self, system: System) -> NDArray[np.int64] | None:
        """Take another system; its components [S], None if they are not known or there is only one."""
        self._from.clear()
        self._mdp = None if system.ends else system.mdp  # a reset may lead anywhere
        if self._mdp is not None and not self._mdp.components().any():
            self._mdp = None
        return None if self._mdp is None else self._mdp.components()

    def begin_anew(self) -> None:
        """Ask again of all states: the walk begins elsewhere."""
        self._record.need.reconsider()
        self._seen = NEVER

    def lead_nowhere(self, s: int) -> bool:
        """Whether it is known that no path leads from s to a state that is needed."""
        if self._mdp is None:
            return False
        label = int(self._mdp.components()[s])
        if label not in self._from:
            self._from[label] = self._mdp.reachable(s)
        reachable = self._from[label]
        return not np.any(self._record.need.unmet_items[: len(reachable)][reachable])

    def waive_unreachable(self, walkers: Sequence[int]) -> None:
        """Ask no more of states to which no path leads from where any walker is."""
        need, record, s = self._record.need, self._record, walkers[0]
        if self._mdp is None:
            return
        label = frozenset(self._mdp.components()[walkers].tolist())
        if (label, need.version) == self._seen:
            return
        if label != self._seen[0]:
            self._reachable = np.logical_or.reduce([self._mdp.reachable(state) for state in walkers])
        out = (need.unmet_items[: len(self._reachable)] > 0) & ~self._reachable
        if out.any():
            reason = f"no path from state {record.model.states[s]}"
            record.waive(dict.fromkeys(np.flatnonzero(out).tolist(), reason))
        self._seen = (label, need.version)
