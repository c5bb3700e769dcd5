"""Everything that a model has counted, as columns of numbers, and their digest.

States have the numbers of the model. Rows are in the order in which they were last changed, successors in that of their
first appearance; the digest does not depend on either.
"""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gosprl.model.empirical import EmpiricalModel


def columns_of(model: "EmpiricalModel") -> dict[str, NDArray[Any]]:
    """Return the columns of the pairs with samples [P], and of what they led to [T]: `pair` is a place in [P]."""
    counts = model.counts
    rows = np.flatnonzero(model.visits)
    rows = rows[np.argsort(counts.time[rows], kind="stable")]
    ptr, succ, number, first = model.stored(rows)
    seen, pair = number > 0, np.repeat(np.arange(len(rows)), np.diff(ptr))
    return {
        "state": model.rows.state[rows],
        "action": model.rows.action[rows],
        "visits": model.visits[rows],
        "rewards": model.reward_sum[rows],
        "squares": model.reward_sq[rows],
        "pair": pair[seen],
        "next_state": succ[seen],
        "count": number[seen],
        "first": first[seen],
    }


def digest_of(columns: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the columns that `columns_of` returns, in hex."""
    whole = {name: np.array(columns[name], dtype="<i8") for name in ("state", "action", "visits")}
    sums = {name: np.array(columns[name], dtype="<f8") for name in ("rewards", "squares")}
    moves = {name: np.array(columns[name], dtype="<i8") for name in ("pair", "next_state", "count", "first")}
    order = np.lexsort((whole["action"], whole["state"]))
    place = np.empty(len(order), dtype="<i8")
    place[order] = np.arange(len(order))
    moves["pair"] = place[moves["pair"]]
    of_moves = np.lexsort((moves["next_state"], moves["pair"]))
    digest = hashlib.sha256(f"{len(order)} {len(of_moves)}".encode())
    for columns_there, ordered in ((whole | sums, order), (moves, of_moves)):
        for column in columns_there.values():
            digest.update(column[ordered].tobytes())
    return digest.hexdigest()
