"""What is needed: b(s, a) per pair, b(s) per state with any action, or both; fixed or adaptive.

A requirement is constant within an attempt: it is updated before each, and may grow and shrink.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.rows import Rows
from gosprl.model.empirical import EmpiricalModel

NO_ROWS = np.empty(0, dtype=np.int64)
ANY = -1  # in the place of an action: any of the state's actions will do


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
    is_fixed
        Whether what is needed of a state or pair does not depend on what was seen there. Only then does the fluid limit
        say what collecting it costs: a need that grows with the samples asks in the end for what was walked.
    """

    pair: NDArray[np.int64]
    state: NDArray[np.int64]
    of_discovered: bool = False
    is_fixed: bool = False

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

    def remember(self) -> dict[str, Any] | None:
        """Return what a new requirement has to `recall` to ask for the same, besides the counts: JSON values.

        Called at fixed numbers of steps in every run, kept on disk or not: what is not returned must be forgotten.
        None, the default: that is not possible. A run with such a requirement is resumed by following its log from the
        beginning. An empty dict: its needs are a function of the counts.
        """
        return None

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Ask for the same as the requirement that remembered this; called once, before `update` sees the counts."""

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

    is_fixed = True

    def __init__(self, pair: NDArray[np.int64], state: NDArray[np.int64]) -> None:
        self.pair, self.state = pair, state

    def remember(self) -> dict[str, Any]:
        """Return nothing: the need never changes."""
        return {}

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nothing changes."""
        return NO_ROWS


class Discovered(Requirement):
    """`samples` of every action that a state discovered so far offers; and as many resets, where there are resets."""

    of_discovered = is_fixed = True

    def __init__(self, samples: int, model: EmpiricalModel) -> None:
        self.samples = samples
        self.pair = np.zeros(len(model.rows), dtype=np.int64)
        self.state = np.zeros(model.rows.num_states, dtype=np.int64)
        self._with_need = 0  # states
        self._seen = 0  # entries of `model.discovered` taken into account

    def remember(self) -> dict[str, Any]:
        """Return nothing: the counts say what was discovered."""
        return {}

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add the states discovered since the last call, and what is offered only now."""
        new, added = self._added(model, rows)
        self._seen = len(model.discovered)
        self._with_need += new
        gone = rows[(self.pair[rows] > 0) & ~model.enabled[rows]]  # it was not known that they are not offered
        if not added.size and not gone.size:
            return NO_ROWS
        self.pair[added], self.pair[gone] = self.samples, 0
        return np.concatenate([added, gone])

    def _added(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
        """(states, rows) with a need since the last update; `rows` have changed since then."""
        new = model.discovered[self._seen :]
        ptr, reset = model.rows.ptr, model.states.reset
        parts = [np.arange(ptr[s], ptr[s + 1]) for s in new]
        if model.aliased:
            parts.append(rows[np.isin(model.rows.state[rows], list(model.aliased))])
        if reset >= 0 and self.pair[ptr[reset]] == 0 and are_resets_possible(model):
            new, parts = [*new, reset], [*parts, ptr[reset : reset + 1]]
        if not parts:
            return 0, NO_ROWS
        added = np.concatenate([NO_ROWS, *parts])
        return len(new), added[model.enabled[added] & ~model.certain[added]]

    def as_of_now(self, model: EmpiricalModel) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """With the states discovered since the last update."""
        new, added = self._added(model, NO_ROWS)
        pair = np.where(model.enabled, self.pair, 0)
        pair[added] = self.samples
        return pair, self.state, self._with_need + new

    def num_states(self, model: EmpiricalModel) -> int:
        """Return the number of states discovered; the reset is one if it has a need."""
        return self._with_need


def are_resets_possible(model: EmpiricalModel) -> bool:
    """Whether the system can be reset at will, or was seen to end an episode and to begin again.

    Without an ending that was seen, no walk leads to another reset: those that were made began the parts of a run, or
    its walkers.
    """
    return model.resets == "anytime" or (model.ended and bool(model.visits[model.rows.ptr[model.states.reset]] > 1))


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
    """Needs by observation, for states that are discovered on the way.

    As long as some are not discovered, the state that stands for those is needed: the walk goes on looking for them.

    Parameters
    ----------
    need
        Observation (its key) -> samples of each action that it offers, or a mapping of actions to samples; there, `ANY`
        stands for samples of any of them.
    """

    is_fixed = True

    def __init__(self, need: Mapping[Any, Any], model: EmpiricalModel) -> None:
        self.need = dict(need)
        self.pair = np.zeros(len(model.rows), dtype=np.int64)
        self.state = np.zeros(model.rows.num_states, dtype=np.int64)
        self._seen = 0  # entries of `model.discovered` taken into account
        self._found = 0  # of them, those with a need
        self._free = model.states.used  # the state that stands for what is not discovered
        self._wanted = {key for key, wanted in self.need.items() if _most(key, wanted) > 0}
        for key, wanted in self.need.items():
            for action in wanted if isinstance(wanted, Mapping) else ():
                if action != ANY:
                    _action(key, action, model.num_actions)

    def remember(self) -> dict[str, Any]:
        """Return nothing: the counts say what was discovered."""
        return {}

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ask for samples of the states discovered since the last call, and go on looking for the others."""
        found, added, numbers = self._added(model, rows)
        before, self._free = self._free, model.states.used
        self.state[before] = 0
        self.state[self._free] = len(self._wanted) - self._found - found
        self._ask_any(model, self.state)
        self._seen, self._found = len(model.discovered), self._found + found
        self.pair[added] = numbers
        ptr = model.rows.ptr
        return np.concatenate([added, *(np.arange(ptr[s], ptr[s + 1]) for s in {before, self._free})])

    def _ask_any(self, model: EmpiricalModel, state: NDArray[np.int64]) -> None:
        """Write what is needed of any action of the states discovered since the last update."""
        for s in model.discovered[self._seen :]:
            wanted = self.need.get(model.states.key(s), 0)
            if isinstance(wanted, Mapping):
                state[s] = wanted.get(ANY, 0)

    def _added(
        self, model: EmpiricalModel, rows: NDArray[np.int64]
    ) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
        """(states discovered since the last update that are needed, rows with another need, what it is)."""
        new = model.discovered[self._seen :]
        gone = rows[(self.pair[rows] > 0) & ~model.enabled[rows]]  # it was not known that they are not offered
        again = {*(s for s in model.rows.state[rows].tolist() if s in model.aliased), *model.rows.state[gone].tolist()}
        added, numbers = [NO_ROWS], [NO_ROWS]
        for s in [*new, *sorted(again.difference(new))]:
            wanted = self.need.get(model.states.key(s), 0)
            of_state = np.arange(model.rows.ptr[s], model.rows.ptr[s + 1])
            of_state = of_state[~model.certain[of_state]]
            if isinstance(wanted, Mapping):
                number = np.array([wanted.get(a, 0) for a in model.rows.action[of_state].tolist()], dtype=np.int64)
            else:
                number = np.where(model.enabled[of_state], wanted, 0)
            added.append(of_state)
            numbers.append(number)
        found = sum(model.states.key(s) in self._wanted for s in new)
        return found, np.concatenate(added), np.concatenate(numbers)

    def as_of_now(self, model: EmpiricalModel) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """With the states discovered since the last update."""
        found, added, numbers = self._added(model, np.flatnonzero(self.pair > 0))
        pair, state = self.pair.copy(), self.state.copy()
        pair[added] = numbers
        left = len(self._wanted) - self._found - found
        state[self._free] = 0
        self._ask_any(model, state)
        state[model.states.used] = left
        return pair, state, self._found + found + (left > 0)

    def num_states(self, model: EmpiricalModel) -> int:
        """Return the number of needed states that are discovered; those that are not are one more."""
        return self._found + (self._found < len(self._wanted))


def _most(key: Any, wanted: Any) -> int:
    """Return the largest number of samples of an action that is wanted of an observation, after checking them."""
    numbers = list(wanted.values()) if isinstance(wanted, Mapping) else [wanted]
    checked = _checks.integers(f"need: of {key!r:.40}", np.array(numbers), 0, None, "numbers of samples")
    return int(checked.max(initial=0))


def _action(key: Any, action: Any, num_actions: int) -> int:
    return _checks.index(f"need: of {key!r:.40}", action, num_actions, "an action")


def of_mapping(need: Mapping[Any, Any], model: EmpiricalModel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return needs by observation as samples per row [R] and per state with any action [S]; all states are known."""
    rows = model.known_rows
    out = np.zeros((rows.num_states, rows.num_actions), dtype=np.int64)
    of_state = np.zeros(model.rows.num_states, dtype=np.int64)
    for key, wanted in need.items():
        s = _checks.index("need: an observation", key, rows.num_states, "a state")
        _most(key, wanted)
        there = rows.action[rows.ptr[s] : rows.ptr[s + 1]]
        by_action = wanted if isinstance(wanted, Mapping) else dict.fromkeys(there.tolist(), wanted)
        for a, number in by_action.items():
            if isinstance(a, int) and a == ANY:
                of_state[s] = number
            else:
                out[s, _action(key, a, rows.num_actions)] = number
    return of_model(out, model)[0], of_state


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


@dataclass(frozen=True)
class Deferred:
    """A need that can be made only when the model is there."""

    make: Callable[[EmpiricalModel], Requirement]


def as_requirement(need: Any, model: EmpiricalModel) -> Requirement:
    """Return what `collect` takes as `need`, as a Requirement."""
    if isinstance(need, Requirement):
        return need
    if isinstance(need, Deferred):
        return need.make(model)
    if callable(need):
        return Computed(need, model)
    if isinstance(need, Mapping):
        return ByObservation(need, model) if model.growing else Fixed(*of_mapping(need, model))
    if not (np.isscalar(need) or isinstance(need, (np.ndarray, list, tuple))):
        raise InputError(
            f"need: expected a number, an array [S] or [S, A], a dict of observations to samples, a callable (model) "
            f"-> array or a gosprl.Requirement, got {need!r:.80}"
        )
    if model.growing and np.ndim(need) == 0:
        return Discovered(_checks.whole("need", need, 0), model)
    return Fixed(*of_model(need, model))
