"""What is needed: b(s, a) per pair, b(s) per state with any action, or both; fixed or adaptive.

A requirement is constant within an attempt: it is updated before each, and may grow and shrink.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.rows import Rows
from gosprl.model.empirical import EmpiricalModel

NO_ROWS = np.empty(0, dtype=np.int64)


class Requirement(ABC):
    """How many samples are needed where; the base class of requirements of your own.

    Set `pair` and `state` in ``__init__`` and keep them up to date in `update`. Samples are needed in total: those
    collected already count.

    Attributes
    ----------
    pair
        [R] int64, samples needed of each row.
    state
        [S] int64, samples needed of each state, with any action.
    """

    pair: NDArray[np.int64]
    state: NDArray[np.int64]

    @abstractmethod
    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Bring `pair` and `state` up to date; called before every attempt, and once when everything is met.

        Parameters
        ----------
        model
            The counts so far.
        rows
            [n] int64, the rows whose counts changed since the last call.

        Returns
        -------
        [m] int64, the rows whose need, or whose state's need, changed; None if any may have: that costs O(R).
        """

    def as_of_now(self, model: EmpiricalModel) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """(`pair`, `state`, `num_states`) as a result reports them, without changing anything.

        Another answer than the last update's only if the last steps add to what is needed.
        """
        return self.pair, self.state, self.num_states(model)

    def num_states(self, model: EmpiricalModel) -> int:
        """Return the number of states that the requirement speaks of: curve and progress are proportions of it."""
        return model.num_states


class Fixed(Requirement):
    """The same need at all times."""

    def __init__(self, pair: NDArray[np.int64], state: NDArray[np.int64]) -> None:
        self.pair, self.state = pair, state

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nothing changes."""
        return NO_ROWS


class Discovered(Requirement):
    """`samples` of every action of every state discovered so far, terminal states excepted."""

    def __init__(self, samples: int, model: EmpiricalModel) -> None:
        self.samples = samples
        self.pair = np.zeros(len(model.rows), dtype=np.int64)
        self.state = np.zeros(model.num_states, dtype=np.int64)
        self._with_need = 0  # states
        self._seen = 0  # entries of `model.discovered` taken into account

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add the states discovered since the last call."""
        new, added = self._added(model)
        self._seen = len(model.discovered)
        self._with_need += new
        self.pair[added] = self.samples
        return added

    def _added(self, model: EmpiricalModel) -> tuple[int, NDArray[np.int64]]:
        """(states, rows) with a need since the last update."""
        new = [s for s in model.discovered[self._seen :] if not model.terminal[s]]
        ptr = model.rows.ptr
        return len(new), np.concatenate([NO_ROWS, *(np.arange(ptr[s], ptr[s + 1]) for s in new)])

    def as_of_now(self, model: EmpiricalModel) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """With the states discovered since the last update."""
        new, added = self._added(model)
        pair = self.pair.copy()
        pair[added] = self.samples
        return pair, self.state, self._with_need + new

    def num_states(self, model: EmpiricalModel) -> int:
        """Return the states discovered, terminal ones excepted."""
        return self._with_need


class Computed(Requirement):
    """A callable (model) -> array [S] or [S, A], called before every attempt: convenient, and O(R) each time."""

    def __init__(self, need: Callable[[EmpiricalModel], ArrayLike], rows: Rows) -> None:
        self._need = need
        self.pair = np.zeros(len(rows), dtype=np.int64)
        self.state = np.zeros(rows.num_states, dtype=np.int64)

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> None:
        """Call it again."""
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
    exists = rows.to_dense(np.ones(len(rows), dtype=bool))
    if np.any(given[~exists]):
        s, a = np.argwhere((given > 0) & ~exists)[0]
        raise InputError(f"need: action {a} does not exist in state {s}, but {given[s, a]} samples of it are asked for")
    return pair, np.zeros(S, dtype=np.int64)


def checked(need: Requirement, pair: Any, state: Any, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the arrays `pair` and `state` of a requirement, after checking them."""
    name = type(need).__name__
    arrays = []
    for field, given, size, axis in (("pair", pair, len(rows), "R"), ("state", state, rows.num_states, "S")):
        array = _checks.integers(f"need: {name}.{field}", given, 0, None, "numbers of samples")
        if array.shape != (size,):
            raise InputError(f"need: expected {name}.{field} [{axis}] = ({size},), got shape {array.shape}")
        arrays.append(array)
    return arrays[0], arrays[1]


def checked_rows(need: Requirement, rows: Any, size: int) -> NDArray[np.int64] | None:
    """Return what `update` returned, after checking it: rows [m], or None."""
    if rows is None:
        return None
    name = f"need: what {type(need).__name__}.update returned"
    if not isinstance(rows, np.ndarray) or rows.ndim != 1:
        raise InputError(f"{name}: expected rows, an int64 array [m], or None, got {rows!r:.80}")
    return _checks.integers(name, rows, 0, size, "rows") if rows.size else NO_ROWS


def as_requirement(need: Any, rows: Rows) -> Requirement:
    """Return what `collect` takes as `need`, as a Requirement."""
    if isinstance(need, Requirement):
        return need
    if callable(need):
        return Computed(need, rows)
    if not (np.isscalar(need) or isinstance(need, (np.ndarray, list, tuple))):
        raise InputError(
            f"need: expected a number, an array [S] or [S, A], a callable (model) -> array or a gosprl.Requirement, "
            f"got {need!r:.80}"
        )
    return Fixed(*split(need, rows))
