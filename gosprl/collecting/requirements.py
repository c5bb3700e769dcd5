"""What is needed: b(s, a) per pair, b(s) per state with any action, or both; fixed or adaptive.

A requirement is constant within an attempt: it is updated before each, and may grow and shrink.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.rows import Rows
from gosprl.model.empirical import EmpiricalModel


class Requirement(Protocol):
    """Samples needed in total; those collected already count."""

    pair: NDArray[np.int64]  # [R] of each row
    state: NDArray[np.int64]  # [S] of each state, with any action

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Told before every attempt: the counts, and which rows of them changed since the last time.

        Returns the rows whose need, or whose state's, is another now; None if any may be: that costs O(R).
        """
        ...


NO_ROWS = np.empty(0, dtype=np.int64)


class Fixed:
    """The same need at all times."""

    def __init__(self, pair: NDArray[np.int64], state: NDArray[np.int64]) -> None:
        self.pair, self.state = pair, state

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nothing changes."""
        return NO_ROWS


class Found:
    """`samples` of every action of every state found so far, terminal states aside."""

    def __init__(self, samples: int, model: EmpiricalModel) -> None:
        self.samples = samples
        self.pair = np.zeros(len(model.rows), dtype=np.int64)
        self.state = np.zeros(model.num_states, dtype=np.int64)
        self.known = 0  # states with a requirement, of which a proportion is met
        self._seen = 0  # of the states found

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        new = [s for s in model.discovered[self._seen :] if not model.terminal[s]]
        self._seen = len(model.discovered)
        self.known += len(new)
        ptr = model.rows.ptr
        wanted = np.concatenate([NO_ROWS, *(np.arange(ptr[s], ptr[s + 1]) for s in new)])
        self.pair[wanted] = self.samples
        return wanted


class Asked:
    """A callable (model) -> array [S] or [S, A], asked before every attempt: the slow convenience."""

    def __init__(self, need: Callable[[EmpiricalModel], ArrayLike], rows: Rows) -> None:
        self._need = need
        self.pair = np.zeros(len(rows), dtype=np.int64)
        self.state = np.zeros(rows.num_states, dtype=np.int64)

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> None:
        self.pair, self.state = split(self._need(model), model.rows)


def split(need: ArrayLike, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`need` as samples per row [R] and per state with any action [S]; one of the two is zero."""
    S, A = rows.num_states, rows.num_actions
    given = _checks.integers("need", need, 0, None, "numbers of samples")
    if given.ndim == 0:
        return np.full(len(rows), int(given)), np.zeros(S, dtype=np.int64)
    if given.shape == (S,):
        return np.zeros(len(rows), dtype=np.int64), given
    if given.shape != (S, A):
        raise InputError(f"need: expected a number, [S] = ({S},) or [S, A] = ({S}, {A}), got shape {given.shape}")
    pair = given[rows.state, rows.action]
    if pair.sum() != given.sum():
        exists = rows.to_dense(np.ones(len(rows), dtype=bool))
        s, a = np.argwhere((given > 0) & ~exists)[0]
        raise InputError(f"need: action {a} does not exist in state {s}, but {given[s, a]} samples of it are asked for")
    return pair, np.zeros(S, dtype=np.int64)


def checked(need: Requirement, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The arrays of a requirement, after checking them."""
    pair = _checks.integers("need.pair", need.pair, 0, None, "numbers of samples")
    state = _checks.integers("need.state", need.state, 0, None, "numbers of samples")
    if pair.shape != (len(rows),) or state.shape != (rows.num_states,):
        raise InputError(
            f"need: expected pair [R] = ({len(rows)},) and state [S] = ({rows.num_states},), "
            f"got {pair.shape} and {state.shape}"
        )
    return pair, state


def as_requirement(need: Any, rows: Rows) -> Requirement:
    """What `collect` takes as `need`, as a Requirement."""
    if hasattr(need, "update") and hasattr(need, "pair") and hasattr(need, "state"):
        requirement: Requirement = need
        return requirement
    if callable(need):
        return Asked(need, rows)
    return Fixed(*split(need, rows))
