"""Known dynamics: each set contains only the true distribution."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl.mdp.tabular import TabularMDP
from gosprl.sets.intervals import Confidence, Intervals


@dataclass(frozen=True, eq=False)
class Known(Confidence):
    """Sets that contain only the true distribution, whatever the counts are."""

    mdp: TabularMDP

    def intervals(self, model: object = None, rows: NDArray[np.int64] | None = None) -> Intervals:
        """Return the sets of `rows` [n] in this order; None: of all R rows. `model` is not used."""
        mdp = self.mdp
        if rows is None:
            zeros = np.zeros(len(mdp.rows))
            return Intervals(mdp.ptr, mdp.succ, mdp.prob, mdp.prob, zeros, zeros)
        length = np.diff(mdp.ptr)[rows]
        ptr = np.concatenate([[0], np.cumsum(length)])
        slot = np.repeat(mdp.ptr[rows] - ptr[:-1], length) + np.arange(ptr[-1])
        zeros = np.zeros(len(rows))
        return Intervals(ptr, mdp.succ[slot], mdp.prob[slot], mdp.prob[slot], zeros, zeros)
