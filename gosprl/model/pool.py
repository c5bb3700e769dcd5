"""The arrays that transitions are counted in: made, enlarged, closed, read."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gosprl._kernels import Counts

Stored = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]

POOLS = ("succ", "number", "first")
EMPTY = {"newer": -1, "older": -1}  # of a row without visits; 0 in all other arrays


def empty(capacity: NDArray[np.int64]) -> "Counts":
    """Return counts of nothing, with space for `capacity` [R] successors per row."""
    from gosprl._kernels import Counts

    R = len(capacity)
    pool = max(64, int(capacity.sum()))
    return Counts(
        visits=np.zeros(R, dtype=np.int64),
        start=np.cumsum(capacity) - capacity,
        length=np.zeros(R, dtype=np.int64),
        capacity=capacity.astype(np.int64),
        succ=np.zeros(pool, dtype=np.int32),
        number=np.zeros(pool, dtype=np.int64),
        first=np.zeros(pool, dtype=np.int64),
        reward_sum=np.zeros(R),
        reward_sq=np.zeros(R),
        time=np.zeros(R, dtype=np.int64),
        newer=np.full(R, -1, dtype=np.int64),
        older=np.full(R, -1, dtype=np.int64),
        scalars=np.array([0, capacity.sum(), -1, 0], dtype=np.int64),
    )


def copied(counts: "Counts") -> "Counts":
    """Return a copy that later transitions do not change."""
    return counts._replace(**{name: part.copy() for name, part in counts._asdict().items()})


def with_larger_pool(counts: "Counts", length: int) -> "Counts":
    """Return the counts with a pool at least twice as large, so that a row of `length` successors can double."""
    extra = max(len(counts.succ), 4 * length + 64)
    succ, number, first = (
        np.concatenate([pool, np.zeros(extra, dtype=pool.dtype)]) for pool in (counts.succ, counts.number, counts.first)
    )
    return counts._replace(succ=succ, number=number, first=first)


def with_more_rows(counts: "Counts", row: NDArray[np.int64], size: int) -> "Counts":
    """Return counts of `size` rows, where the rows so far have the numbers `row` [R]; the others have no visits."""
    from gosprl._kernels import NEWEST

    parts = {}
    for name, part in counts._asdict().items():
        if name in (*POOLS, "scalars"):
            continue
        parts[name] = np.full(size, EMPTY.get(name, 0), dtype=part.dtype)
        parts[name][row] = part
    for name in ("newer", "older"):  # these are rows themselves
        linked = parts[name] >= 0
        parts[name][linked] = row[parts[name][linked]]
    scalars = counts.scalars.copy()
    if scalars[NEWEST] >= 0:
        scalars[NEWEST] = row[scalars[NEWEST]]
    return counts._replace(**parts, scalars=scalars)


def stored(counts: "Counts", rows: NDArray[np.int64] | None) -> Stored:
    """Return (ptr, succ, count, first) of the given rows: see `EmpiricalModel.stored`."""
    start, length = (counts.start, counts.length) if rows is None else (counts.start[rows], counts.length[rows])
    ptr = np.concatenate([[0], np.cumsum(length)])
    slot = np.repeat(start - ptr[:-1], length) + np.arange(ptr[-1])
    return ptr, counts.succ[slot], counts.number[slot], counts.first[slot]
