"""The remaining need as one number, so that a collector's problem is an MDP over states and levels.

A *level* is what is still missing of each needed item (a pair, or a state with any action), in mixed radix. Level 0:
nothing is missing. A sample lowers the level; nothing raises it.
"""

import numpy as np
from numpy.typing import NDArray

from gosprl.mdp.rows import Rows

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def count_levels(pair: Ints, state: Ints) -> int:
    """Return the number of levels of a need per row [R] and per state [S]: the product of all b + 1."""
    levels = 1
    for b in np.concatenate([pair[pair > 0], state[state > 0]]):
        levels *= int(b) + 1
    return levels


def lowered(pair: Ints, state: Ints, rows: Rows) -> Ints:
    """Return by how much a sample of each row lowers each level, [levels, R]."""
    needed, states = np.flatnonzero(pair), np.flatnonzero(state)
    sizes = np.append(pair[needed], state[states]) + 1
    stride = np.append(1, np.cumprod(sizes))[:-1]
    levels = count_levels(pair, state)
    # [levels, item]: by how much a sample of the item lowers the level; 0 where the item is not needed any more
    step = stride * (np.arange(levels)[:, None] // stride % sizes > 0)
    down = np.zeros((levels, len(rows)), dtype=np.int64)
    down[:, needed] += step[:, : len(needed)]
    for i, s in enumerate(states):
        down[:, rows.ptr[s] : rows.ptr[s + 1]] += step[:, len(needed) + i, None]
    return down


def augmented(rows: Rows, row: Ints, succ: NDArray[np.integer], prob: Floats, down: Ints) -> tuple[Ints, ...]:
    """Return transitions between augmented states, numbered level * S + s.

    Parameters
    ----------
    rows
        The existing pairs.
    row, succ, prob
        [n] transitions: row, next state, probability.
    down
        [levels, R], see `lowered`.

    Returns
    -------
    tuple
        (from, row, to, probability), each [levels * n].
    """
    S, level = rows.num_states, np.arange(len(down))[:, None]
    entries = np.broadcast_arrays(level * S + rows.state[row], row, (level - down[:, row]) * S + succ, prob)
    return entries[0].ravel(), entries[1].ravel(), entries[2].ravel(), entries[3].ravel()
