"""Rows: the existing state-action pairs, numbered state by state.

Everything in this library that is "per pair" is an array over rows. Action sets may depend on the state, so there are
R <= S * A rows; the rows of state s are `ptr[s] : ptr[s + 1]`, in increasing order of their action.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import InputError

T = TypeVar("T", bound=np.generic)

ROW_BYTES = 32  # of a row while rows are made: action, state, and two keys


@dataclass(frozen=True, eq=False)
class Rows:
    """Which actions exist where."""

    ptr: NDArray[np.int64]  # [S + 1] first row of each state
    action: NDArray[np.int64]  # [R]
    num_actions: int  # A: actions are 0 .. A - 1

    @property
    def num_states(self) -> int:
        return len(self.ptr) - 1

    def __len__(self) -> int:
        return len(self.action)

    @cached_property
    def state(self) -> NDArray[np.int64]:
        """[R] the state of each row."""
        return np.repeat(np.arange(self.num_states), np.diff(self.ptr))

    @cached_property
    def _keys(self) -> NDArray[np.int64]:
        return self.state * self.num_actions + self.action

    def index(self, s: ArrayLike, a: ArrayLike) -> NDArray[np.int64]:
        """Row of each pair (s, a), arrays of one shape."""
        s = _checks.integers("s", s, 0, self.num_states, "states")
        a = _checks.integers("a", a, 0, self.num_actions, "actions")
        if s.shape != a.shape:
            raise InputError(f"s, a: expected arrays of one shape, got {s.shape} and {a.shape}")
        key = s * self.num_actions + a
        if len(self) == self.num_states * self.num_actions:
            return key
        row = np.minimum(np.searchsorted(self._keys, key), len(self) - 1)
        missing = np.flatnonzero((self._keys[row] != key).ravel())
        if missing.size:
            i = missing[0]
            raise InputError(f"a: action {a.ravel()[i]} does not exist in state {s.ravel()[i]}")
        return row

    def same(self, other: "Rows") -> bool:
        """Whether the same actions exist in the same states."""
        return np.array_equal(self.ptr, other.ptr) and np.array_equal(self.action, other.action)

    def pair(self, row: int) -> tuple[int, int]:
        """(s, a) of one row."""
        return int(self.state[row]), int(self.action[row])

    def to_dense(self, per_row: NDArray[T]) -> NDArray[T]:
        """[S, A] array with `per_row` [R] at the existing pairs and 0 elsewhere."""
        dense = np.zeros((self.num_states, self.num_actions), dtype=per_row.dtype)
        dense[self.state, self.action] = per_row
        return dense

    @classmethod
    def from_keys(cls, keys: NDArray[np.int64], states: int, actions: int) -> "Rows":
        """From the sorted distinct keys s * A + a of the existing pairs."""
        counts = np.bincount(keys // actions, minlength=states)
        empty = np.flatnonzero(counts == 0)
        if empty.size:
            raise InputError(f"actions: every state needs at least one action, state {empty[0]} has none")
        return cls(np.concatenate([[0], np.cumsum(counts)]), keys % actions, actions)

    @classmethod
    def build(cls, states: int, actions: ArrayLike, row_bytes: int = ROW_BYTES) -> "Rows":
        """From the number of states and `actions`: their number, or a mask [S, A] of those that exist.

        `row_bytes` is what a row will take in all, with what the caller keeps for it.
        """
        states = _checks.whole("states", states, 1)
        mask = np.asarray(actions)
        if mask.ndim == 0:
            count = _checks.whole("actions", actions, 1)
            fewer = "fewer states or actions, or a mask of the actions that exist"
            _checks.memory(f"states, actions: {states} x {count} pairs", states * count * row_bytes, f"try {fewer}")
            return cls.from_keys(np.arange(states * count), states, count)
        if mask.ndim != 2 or mask.shape[0] != states or mask.dtype != bool:
            raise InputError(
                f"actions: expected their number, or a bool mask [S, A] with S = {states}, "
                f"got {mask.dtype} of shape {mask.shape}"
            )
        pairs = int(np.count_nonzero(mask))
        _checks.memory(f"actions: {pairs} pairs", pairs * row_bytes, "try fewer states or actions")
        return cls.from_keys(np.flatnonzero(mask), states, mask.shape[1])
