"""What is needed: b(s, a) per pair, b(s) per state with any action, or both; fixed or adaptive.

A requirement is constant within an attempt: it is updated before each, and may grow and shrink.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
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
    of_discovered
        Whether it is about the states discovered, so that nothing is promised of others.
    """

    pair: NDArray[np.int64]
    state: NDArray[np.int64]
    of_discovered: bool = False

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

    def resize(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> None:
        """Take over the model's number of states and rows: it has got more of them.

        The default asks for nothing of the new ones. Extend it if there are other arrays of these sizes.

        Parameters
        ----------
        model
            The counts; `model.rows` are the new rows.
        rows
            [R] int64, the numbers that the rows so far have now.
        """
        if len(self.pair) == len(rows):  # not if it is about the states known beforehand only
            self.pair = scattered(self.pair, rows, len(model.rows))
            self.state = scattered(self.state, np.arange(len(self.state)), model.rows.num_states)

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
    """`samples` of every action that a state discovered so far offers; and as many resets, where there are resets."""

    of_discovered = True

    def __init__(self, samples: int, model: EmpiricalModel) -> None:
        self.samples = samples
        self.pair = np.zeros(len(model.rows), dtype=np.int64)
        self.state = np.zeros(model.rows.num_states, dtype=np.int64)
        self._with_need = 0  # states
        self._seen = 0  # entries of `model.discovered` taken into account

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add the states discovered since the last call, and what is offered only now."""
        new, added = self._added(model, rows)
        self._seen = len(model.discovered)
        self._with_need += new
        self.pair[added] = self.samples
        return added

    def _added(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
        """(states, rows) with a need since the last update; `rows` have changed since then."""
        new = model.discovered[self._seen :]
        ptr, reset = model.rows.ptr, model.states.reset
        parts = [np.arange(ptr[s], ptr[s + 1]) for s in new]
        if model.aliased:
            parts.append(rows[np.isin(model.rows.state[rows], list(model.aliased))])
        if reset >= 0 and self.pair[ptr[reset]] == 0 and are_resets_possible(model):
            new, parts = [*new, reset], [*parts, ptr[reset : reset + 1]]
        added = np.concatenate([NO_ROWS, *parts])
        return len(new), added[model.enabled[added] & ~model.certain[added]]

    def as_of_now(self, model: EmpiricalModel) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """With the states discovered since the last update."""
        new, added = self._added(model, NO_ROWS)
        pair = self.pair.copy()
        pair[added] = self.samples
        return pair, self.state, self._with_need + new

    def num_states(self, model: EmpiricalModel) -> int:
        """Return the number of states discovered; the reset is one if it has a need."""
        return self._with_need


def are_resets_possible(model: EmpiricalModel) -> bool:
    """Whether the system can be reset at will, or was reset more often than once, to begin."""
    return model.resets == "anytime" or bool(model.visits[model.rows.ptr[model.states.reset]] > 1)


class Computed(Requirement):
    """A callable (model) -> array [S] or [S, A], called before every attempt: convenient, and O(R) each time."""

    def __init__(self, need: Callable[[EmpiricalModel], ArrayLike], model: EmpiricalModel) -> None:
        self._need = need
        self.pair = np.zeros(len(model.rows), dtype=np.int64)
        self.state = np.zeros(model.rows.num_states, dtype=np.int64)

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> None:
        """Call it again."""
        self.pair, self.state = of_model(self._need(model), model)


class ByObservation(Requirement):
    """Needs by observation, for states that are discovered on the way: those never discovered are never met.

    Parameters
    ----------
    need
        Observation (its key) -> samples of each of its actions, or a mapping of actions to samples.
    """

    def __init__(self, need: Mapping[Any, Any], model: EmpiricalModel) -> None:
        self.need = dict(need)
        self.pair = np.zeros(len(model.rows), dtype=np.int64)
        self.state = np.zeros(model.rows.num_states, dtype=np.int64)
        self._seen = 0  # entries of `model.discovered` taken into account
        for key, wanted in self.need.items():
            numbers = list(wanted.values()) if isinstance(wanted, Mapping) else [wanted]
            _checks.integers(f"need: of {key!r:.40}", np.array(numbers), 0, None, "numbers of samples")

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ask for samples of the states discovered since the last call."""
        added = [NO_ROWS]
        for s in model.discovered[self._seen :]:
            wanted = self.need.get(model.states.key(s), 0)
            of_state = np.arange(model.rows.ptr[s], model.rows.ptr[s + 1])
            of_state = of_state[~model.certain[of_state]]
            actions = model.rows.action[of_state].tolist()
            self.pair[of_state] = [wanted.get(a, 0) if isinstance(wanted, Mapping) else wanted for a in actions]
            added.append(of_state)
        self._seen = len(model.discovered)
        return np.concatenate(added)

    def num_states(self, model: EmpiricalModel) -> int:
        """Return the number of observations that were given."""
        return len(self.need)


def of_model(need: Any, model: EmpiricalModel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`need` as samples per row [R] and per state with any action [S] of the model; one of the two is zero."""
    if model.growing:
        raise InputError(
            f"need: expected a number, or a dict of observations to samples, for states that are discovered on the "
            f"way; got {type(need).__name__}"
        )
    pair, state = split(need, model.known_rows)
    return scattered(pair, model.places(), len(model.rows)), scattered(
        state, np.arange(len(state)), model.rows.num_states
    )


def scattered(array: NDArray[np.int64], places: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return an array of the given size with these numbers at these places, 0 elsewhere."""
    out = np.zeros(size, dtype=np.int64)
    out[places] = array
    return out


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


def checked(
    need: Requirement, pair: Any, state: Any, model: EmpiricalModel
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the arrays `pair` and `state` of a requirement, after checking them.

    They may be about the states and actions known beforehand only: nothing is asked of the others then.
    """
    name, rows, known = type(need).__name__, model.rows, model.known_rows
    arrays = []
    for field, given, size, few, axis in (
        ("pair", pair, len(rows), len(known), "R"),
        ("state", state, rows.num_states, known.num_states, "S"),
    ):
        array = _checks.integers(f"need: {name}.{field}", given, 0, None, "numbers of samples")
        if array.shape not in ((size,), (few,)):
            raise InputError(f"need: expected {name}.{field} [{axis}] = ({size},), got shape {array.shape}")
        places = model.places() if axis == "R" else np.arange(few)
        arrays.append(array if len(array) == size else scattered(array, places, size))
    return arrays[0], arrays[1]


def checked_rows(need: Requirement, rows: Any, size: int) -> NDArray[np.int64] | None:
    """Return what `update` returned, after checking it: rows [m], or None."""
    if rows is None:
        return None
    name = f"need: what {type(need).__name__}.update returned"
    if not isinstance(rows, np.ndarray) or rows.ndim != 1:
        raise InputError(f"{name}: expected rows, an int64 array [m], or None, got {rows!r:.80}")
    return _checks.integers(name, rows, 0, size, "rows") if rows.size else NO_ROWS


def as_requirement(need: Any, model: EmpiricalModel) -> Requirement:
    """Return what `collect` takes as `need`, as a Requirement."""
    if isinstance(need, Requirement):
        return need
    if callable(need):
        return Computed(need, model)
    if isinstance(need, Mapping):
        return ByObservation(need, model)
    if not (np.isscalar(need) or isinstance(need, (np.ndarray, list, tuple))):
        raise InputError(
            f"need: expected a number, an array [S] or [S, A], a dict of observations to samples, a callable (model) "
            f"-> array or a gosprl.Requirement, got {need!r:.80}"
        )
    if model.growing and np.ndim(need) == 0:
        return Discovered(_checks.whole("need", need, 0), model)
    return Fixed(*of_model(need, model))
