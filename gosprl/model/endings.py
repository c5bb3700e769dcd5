"""Candidates for the next state where episodes can end: a candidate may be reached alive, or as the end."""

import numpy as np
from numpy.typing import NDArray

from gosprl.mdp.rows import Rows
from gosprl.model.states import States
from gosprl.model.successors import Candidates


def with_endings(candidates: Candidates, states: States, known: Rows, rows: Rows) -> Candidates:
    """Return the candidates of all rows of a model with endings.

    Parameters
    ----------
    candidates
        Those of the rows known beforehand, over live states.
    states
        The model's; every observation known beforehand has its final state.
    known, rows
        The rows known beforehand, and all rows of the model.

    Returns
    -------
    For known rows, each candidate alive and final. For the reset, all live states. For all other rows, the reset.
    """
    final = np.array([states.final(key) for key in range(states.fixed)])
    lists: list[NDArray[np.int64]] = [np.array([states.reset])] * len(rows)
    lists[int(rows.ptr[states.reset])] = np.arange(states.fixed)
    for i, row in enumerate(rows.places(known).tolist()):
        alive = candidates.succ[candidates.ptr[i] : candidates.ptr[i + 1]].astype(np.int64)
        lists[row] = np.sort(np.append(alive, final[alive]))
    ptr = np.concatenate([[0], np.cumsum([len(part) for part in lists])])
    return Candidates(ptr, np.concatenate(lists).astype(np.int32))
