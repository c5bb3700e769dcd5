"""Sparse parts (s, a, s_next, p): conversion of the user's transition probabilities into rows.

Entries are sorted into rows, repeated entries are added, each row is checked to be a distribution and normalised. An
iterator of parts is processed part by part, so that a large MDP needs little more memory than its result.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.rows import Rows

SUM_TOLERANCE = 1e-6  # a row may differ from sum 1 by this, and is then normalised; a larger difference is an error
ENTRY_BYTES = 140  # peak memory per entry while an MDP is built from sparse parts
STATE_BYTES = 24  # the same per state

Parts = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]  # (s, a, s_next, p), of one length
Entries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # the same, checked


def check_size(argument: str, entries: int) -> None:
    """Raise `InputError` if an MDP with this number of transitions does not fit into memory."""
    _checks.memory(f"{argument}: {entries} transitions", ENTRY_BYTES * entries, "try fewer")


def as_blocks(P: Any, states: int | None, actions: int | None) -> tuple[Iterable[Entries], int, int]:
    """Return P as blocks of checked sparse parts, with S and A.

    Parameters
    ----------
    P
        Probabilities [S, A, S], sparse parts, or an iterator of sparse parts.
    states, actions
        S and A, or None where P determines them.
    """
    if isinstance(P, Iterator):
        if states is None or actions is None:
            raise InputError("states, actions: expected both with an iterator of sparse parts")
        S, A = _sized(_checks.whole("states", states, 1)), _checks.whole("actions", actions, 1)
        return (_entries(parts, S, A) for parts in P), S, A
    if not (isinstance(P, tuple) and len(P) == 4):
        entries, S, A = _dense_entries(P, states, actions)
        return [entries], S, A
    entries = _entries(P, states, actions)
    S = int(max(entries[0].max(), entries[2].max())) + 1 if states is None else states
    A = int(entries[1].max()) + 1 if actions is None else actions
    return [entries], _sized(S), A


def join(
    blocks: Iterable[Entries], S: int, A: int
) -> tuple[Rows, NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Return (rows, ptr, succ, prob) of blocks of entries; the rows of each block must be later than those before."""
    columns: tuple[_Growing, ...] = (_Growing(np.int64), _Growing(np.int64), _Growing(np.int32), _Growing(np.float64))
    last = -1
    for block in blocks:
        pieces: tuple[NDArray[Any], ...] = _compress(*block, S, A)
        keys = pieces[0]
        if keys.size and keys[0] <= last:
            s, a = divmod(int(keys[0]), A)
            raise InputError(f"P: expected parts of later rows than those before, got (s, a) = ({s}, {a}) after them")
        last = keys[-1] if keys.size else last
        for column, piece in zip(columns, pieces, strict=True):
            column.append(piece)
    row_keys, length, succ, prob = (column.result() for column in columns)
    ptr = np.zeros(len(row_keys) + 1, dtype=np.int64)
    np.cumsum(length, out=ptr[1:])
    return Rows.from_keys(row_keys, S, A), ptr, succ, prob


def _sized(states: int) -> int:
    """Return the number of states, if arrays of that length fit into memory."""
    _checks.memory(f"states: {states} of them", STATE_BYTES * states, "number the states without gaps, or take fewer")
    return states


def _dense_entries(P: Any, states: int | None, actions: int | None) -> tuple[Entries, int, int]:
    if isinstance(P, np.ndarray) and P.dtype != np.float64:
        _checks.memory(f"P: {P.shape} as doubles", 8 * P.size, "give sparse parts (s, a, s_next, p)")
    try:
        array = np.asarray(P, dtype=float)
    except ValueError as error:
        raise InputError(f"P: expected probabilities [S, A, S] or sparse parts (s, a, s_next, p): {error}") from None
    if array.ndim != 3 or array.shape[0] != array.shape[2] or 0 in array.shape:
        raise InputError(
            f"P: expected probabilities [S, A, S] or sparse parts (s, a, s_next, p), got an array {array.shape}"
        )
    S, A, _ = array.shape
    if states not in (None, S) or actions not in (None, A):
        raise InputError(f"states, actions: P has S = {S} and A = {A}, got {states} and {actions}")
    s, a, s_next = np.nonzero(array)
    return (s, a, s_next, array[s, a, s_next]), S, A


def _entries(parts: Any, states: int | None, actions: int | None) -> Entries:
    arrays = [np.atleast_1d(np.asarray(part)) for part in parts]
    shapes = [array.shape for array in arrays]
    if len(arrays) != 4 or len(set(shapes)) != 1 or arrays[0].ndim != 1 or arrays[0].size == 0:
        raise InputError(f"P: expected four arrays (s, a, s_next, p) of one length, got shapes {shapes}")
    check_size("P", arrays[0].size)
    huge = np.iinfo(np.int32).max
    bound = huge if states is None else min(huge, _checks.whole("states", states, 1))
    s = _checks.integers("P[0] (s)", arrays[0], 0, bound, "states")
    a = _checks.integers(
        "P[1] (a)", arrays[1], 0, None if actions is None else _checks.whole("actions", actions, 1), "actions"
    )
    s_next = _checks.integers("P[2] (s_next)", arrays[2], 0, bound, "states")
    return s, a, s_next, _checks.floats("P[3] (p)", arrays[3])


class _Growing:
    """An array that grows at its end, in place: concatenating a list of pieces would need twice the memory."""

    def __init__(self, dtype: Any) -> None:
        self._array = np.empty(0, dtype=dtype)
        self._used = 0

    def append(self, piece: NDArray[Any]) -> None:
        begin, self._used = self._used, self._used + len(piece)
        if self._used > len(self._array):
            self._array.resize(self._used + (self._used // 8 if begin else 0), refcheck=False)
        self._array[begin : self._used] = piece

    def result(self) -> NDArray[Any]:
        self._array.resize(self._used, refcheck=False)
        return self._array


def _compress(
    s: NDArray[np.int64], a: NDArray[np.int64], s_next: NDArray[np.int64], p: NDArray[np.float64], S: int, A: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Sort the entries into rows, check that each row is a distribution, normalise it, drop zeros.

    Returns
    -------
    tuple
        The keys s * A + a of the rows, their numbers of successors, the successors, and the probabilities.
    """
    bad = np.flatnonzero(~(np.isfinite(p) & (p >= 0)))
    if bad.size:
        i = bad[0]
        raise InputError(
            f"P: expected probabilities >= 0, got {p[i]} at (s, a, s_next) = ({s[i]}, {a[i]}, {s_next[i]})"
        )
    keys = (s * A + a) * S + s_next
    if not np.all(p > 0):
        keys, p = keys[p > 0], p[p > 0]
    if np.any(keys[1:] <= keys[:-1]):
        order = np.argsort(keys, kind="stable")  # the stable sort is fast if entries are nearly in order
        keys, p = keys[order], p[order]
        new = _firsts(keys)
        keys, p = keys[new], np.bincount(np.cumsum(new) - 1, weights=p).astype(np.float64)
    row_keys = keys // S
    first = np.flatnonzero(_firsts(row_keys))
    row_keys = row_keys[first]
    sums = np.add.reduceat(p, first)
    off = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
    if off.size:
        pair = divmod(int(row_keys[off[0]]), A)
        raise InputError(
            f"P: every row must sum to one (or be all zeros), the row of (s, a) = {pair} sums to {sums[off[0]]:.9g}"
        )
    length = np.diff(first, append=len(keys))
    return row_keys, length, (keys % S).astype(np.int32), p / np.repeat(sums, length)


def _firsts(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the sorted keys that differ from their predecessor."""
    return np.concatenate([np.ones(min(1, len(keys)), dtype=bool), keys[1:] != keys[:-1]])
