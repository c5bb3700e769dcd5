"""A model as results show it: live states first, then the reset and the final states; nothing that is not in use."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.mdp.rows import Rows


class Arrangement(NamedTuple):
    """Which states and rows of a model are kept, in which order."""

    states: NDArray[np.int64]  # [n] indices in the model, live ones first
    rows: NDArray[np.int64]  # [m] numbers in the model: the rows that were ever offered
    place: NDArray[np.int64]  # [S] index of each state of the model among `states`; -1 if it is left out


def arrange(rows: Rows, lives: list[int], others: list[int], enabled: NDArray[np.bool_]) -> Arrangement:
    """Return the arrangement of a model with the given rows.

    Parameters
    ----------
    lives, others
        Indices of the live states, in order, and of the final states and the reset.
    enabled
        [R] the rows that can be taken.
    """
    states = np.array([*lives, *others], dtype=np.int64)
    place = np.full(rows.num_states, -1)
    place[states] = np.arange(len(states))
    kept = np.flatnonzero(enabled & (place[rows.state] >= 0))
    kept = kept[np.argsort(place[rows.state[kept]], kind="stable")]
    return Arrangement(states, kept, place)


def rows_of(rows: Rows, kept: Arrangement, num_actions: int) -> Rows:
    """Return the rows that are kept, over the states that are."""
    number = np.bincount(kept.place[rows.state[kept.rows]], minlength=len(kept.states))
    return Rows(np.concatenate([[0], np.cumsum(number)]), rows.action[kept.rows], num_actions)
