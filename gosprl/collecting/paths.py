"""Paths: what a system that knows its graph says about the states that are needed.

Only simulated MDPs do. States without a path from where the walk is are waived before the first step, and again when a
one-way door has closed behind the walk: it is then in another strongly connected component.
"""

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.record import Record
from gosprl.systems import System


class Paths:
    """Waives states that cannot be reached from where the walk is."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._system: System | None = None
        self._components: NDArray[np.int64] | None = None  # [S], None: not known
        self._seen = (-1, -1)  # component of the walk and version of the need, when this was last looked at
        self._reachable = np.ones(record.model.rows.num_states, dtype=bool)  # [S] from that component

    def look_at(self, system: System) -> NDArray[np.int64] | None:
        """Take another system; its components [S], None if it does not know them."""
        self._system, self._components = system, system.components()
        return self._components

    def begin_anew(self) -> None:
        """Ask again of all states: the walk begins elsewhere."""
        self._record.need.reconsider()
        self._seen = (-1, -1)

    def waive_unreachable(self, s: int) -> None:
        """Ask no more of states to which no path leads from s."""
        label, need, record = self._components, self._record.need, self._record
        if label is None or self._system is None or (label[s], need.version) == self._seen:
            return
        if label[s] != self._seen[0]:
            self._reachable = self._system.reachable(s)
        out = (need.unmet_items[: len(self._reachable)] > 0) & ~self._reachable
        if out.any():
            reason = f"no path from state {record.model.states[s]}"
            record.waive(dict.fromkeys(np.flatnonzero(out).tolist(), reason))
        self._seen = (int(label[s]), need.version)
