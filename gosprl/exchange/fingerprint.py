"""The digest of rows as they are counted: the same for a log and for a table of it, in whatever format and batches."""

import hashlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.runs.keys import text_of

COLUMNS = 6


class Fingerprint:
    """Takes rows, batch by batch."""

    def __init__(self) -> None:
        self._columns = [hashlib.sha256() for _ in range(COLUMNS)]
        self._marks: list[int] = []  # of keys, by id

    def marks(self, ids: NDArray[np.int64], keys: Sequence[Hashable], fixed: int) -> NDArray[Any]:
        """[n] what stands for the states with these ids; `fixed` of them are known by number."""
        if fixed:
            return ids.astype("<u8")
        self._marks += [mark_of(key) for key in keys[len(self._marks) :]]
        marks: NDArray[Any] = np.array(self._marks, dtype="<u8")[ids]
        return marks

    def add(self, *columns: NDArray[Any]) -> None:
        """Take the columns of a batch, always the same ones."""
        for digest, column in zip(self._columns, columns, strict=True):
            digest.update(np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<")).tobytes())

    def hexdigest(self) -> str:
        """Return the digest of all rows so far."""
        return hashlib.sha256(b"".join(digest.digest() for digest in self._columns)).hexdigest()


def mark_of(key: Hashable) -> int:
    """Return what stands for a key: equal for equal ones. A key that has no text is only equal to itself here."""
    try:
        text = text_of(key)
    except InputError:
        text = repr(key)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()[:8], "little")


def digest_of_counts(model: EmpiricalModel) -> str:
    """Return a digest of the counts of a model, in whatever order its states are."""
    states = model.states
    kinds = {"live": 0, "final": 1, "reset": 2, "crash": 3}
    named = [(kinds[states.kind(s)], states.key(s)) for s in range(states.used)]
    marks = np.array([mark_of(key if kind < 2 else None) // 4 * 4 + kind for kind, key in named], dtype="<u8")
    rows = np.flatnonzero(model.visits)
    ptr, succ, number, _ = model.stored(rows)
    pairs = np.repeat(rows, np.diff(ptr))
    columns = [marks[model.rows.state[pairs]], model.rows.action[pairs], marks[succ], number]
    told = [column[number > 0].astype("<u8") for column in columns]
    order = np.lexsort(told)
    return hashlib.sha256(b"".join(column[order].tobytes() for column in told)).hexdigest()
