"""Rows: the existing state-action pairs, numbered state by state.

Every quantity "per pair" in this library is an array over rows. Action sets may depend on the state, so there are
R <= S * A rows. The rows of state s are `ptr[s] : ptr[s + 1]`, in increasing order of their action.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import InputError

T = TypeVar("T", bound=np.generic)

ROW_BYTES = 32  # memory per row while rows are built: action, state, and two keys


@dataclass(frozen=True, eq=False)
class Rows:
    """The actions that exist in each state.

    Attributes
    ----------
    ptr
        First row of each state [S + 1].
    action
        Action of each row [R].
    num_actions
        A: actions are 0 .. A - 1.
    """

    ptr: NDArray[np.int64]
    action: NDArray[np.int64]
    num_actions: int

    @property
    def num_states(self) -> int:
        """S, the number of states."""
        return len(self.ptr) - 1

    def __len__(self) -> int:
        """Return R, the number of existing pairs."""
        return len(self.action)

    @cached_property
    def state(self) -> NDArray[np.int64]:
        """State of each row [R]."""
        return np.repeat(np.arange(self.num_states), np.diff(self.ptr))

    @cached_property
    def _keys(self) -> NDArray[np.int64]:
        return self.state * self.num_actions + self.action

    def index(self, s: ArrayLike, a: ArrayLike) -> NDArray[np.int64]:
        """Return the row of each pair (s, a).

        Parameters
        ----------
        s, a
            States and actions: whole numbers, or arrays of one shape.

        Returns
        -------
        NDArray[np.int64]
            Rows, in the same shape.

        Raises
        ------
        InputError
            A state or action is out of range, or the action does not exist in the state.
        """
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
        """Return whether the same actions exist in the same states."""
        return np.array_equal(self.ptr, other.ptr) and np.array_equal(self.action, other.action)

    def pair(self, row: int) -> tuple[int, int]:
        """Return (s, a) of one row."""
        return int(self.state[row]), int(self.action[row])

    def enlarged(self, states: int, actions: int, fixed: int) -> "Rows":
        """Return rows for more states and actions.

        Parameters
        ----------
        states, actions
            The new numbers. States so far get all further actions; new ones have all actions, or one if `fixed`.
        fixed
            The number of states that were there from the start; 0 if all were discovered.
        """
        each = 1 if fixed else actions
        size = np.full(states, each)
        size[: self.num_states] = np.diff(self.ptr) + actions - self.num_actions
        ptr = np.concatenate([[0], np.cumsum(size)])
        state = np.repeat(np.arange(states), size)
        action = np.arange(len(state)) - ptr[state]
        last = np.flatnonzero(state < self.num_states)
        action[last] += actions - size[state[last]]  # the further actions are the last ones of a state
        rows = Rows(ptr, action, actions)
        action[rows.places(self)] = self.action
        return rows

    def places(self, fewer: "Rows") -> NDArray[np.int64]:
        """Return the row numbers here of rows of fewer states and actions, the first ones of each state."""
        return np.asarray(self.ptr[fewer.state] + np.arange(len(fewer)) - fewer.ptr[fewer.state])

    def to_dense(self, per_row: NDArray[T]) -> NDArray[T]:
        """Return an array [S, A] with `per_row` [R] at the existing pairs and 0 elsewhere."""
        dense = np.zeros((self.num_states, self.num_actions), dtype=per_row.dtype)
        dense[self.state, self.action] = per_row
        return dense

    @classmethod
    def from_keys(cls, keys: NDArray[np.int64], states: int, actions: int) -> "Rows":
        """Build rows from the sorted distinct keys s * A + a of the existing pairs."""
        counts = np.bincount(keys // actions, minlength=states)
        empty = np.flatnonzero(counts == 0)
        if empty.size:
            raise InputError(f"actions: every state needs at least one action, state {empty[0]} has none")
        return cls(np.concatenate([[0], np.cumsum(counts)]), keys % actions, actions)

    @classmethod
    def build(cls, states: int, actions: ArrayLike, row_bytes: int = ROW_BYTES) -> "Rows":
        """Build rows from the number of states and the actions.

        Parameters
        ----------
        states
            S, the number of states.
        actions
            The number of actions, or a bool mask [S, A] of those that exist.
        row_bytes
            Memory that a row will take, with everything that the caller stores for it. Rows that do not fit into the
            machine's memory are refused before anything is allocated.

        Returns
        -------
        Rows
            The existing pairs.

        Raises
        ------
        InputError
            An argument is invalid, or the rows do not fit into memory.
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
