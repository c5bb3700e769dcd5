"""The actions of a system: their values, and which of them a state offers.

An action is an index 0 .. A - 1 inside, and a value that `step` takes outside. Values come from a finite action space,
or from the user (`actions=`): a number, a list of values, or a function of the observation.

What a state offers comes from ``info["action_mask"]`` (one 0 or 1 for each action of the action space), or from the
user's function, which returns values or a mask. Where both say something they must agree.
"""

import copy
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from gosprl import _checks
from gosprl.errors import GosprlError, InputError
from gosprl.model.content import Content
from gosprl.systems import spaces
from gosprl.systems.observations import called, takes

MASK = "info['action_mask']"
EXPECTED = "the number of actions, a list of their values, or a function observation -> values offered"
_REMEMBERED = 4096  # masks
_UNKNOWN = object()


class Numbering:
    """Values and their indices; values are the same if type and content are, functions if Python says so."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values
        self._freeze = Content().freeze
        self._index: dict[Hashable, int] = {}
        if not isinstance(values, range):
            self._index = {self._key(value): i for i, value in reversed(list(enumerate(values)))}

    def index(self, value: Any) -> int | None:
        """Return the index of a value; None if it has none."""
        key = self._key(value)
        if isinstance(self.values, range):
            return self.values.index(key) if type(key) is int and key in self.values else None
        return self._index.get(key)

    def add(self, value: Any) -> int:
        """Append a value; its index."""
        assert isinstance(self.values, list)
        self.values.append(value)
        return self._index.setdefault(self._key(value), len(self.values) - 1)

    def _key(self, value: Any) -> Hashable:
        try:
            return self._freeze(value)
        except GosprlError:  # a function, say: as Python compares it
            return Numbering, value if isinstance(value, Hashable) else id(value)


class Actions:
    """The actions of a system.

    Parameters
    ----------
    space
        The action space; None if there is none.
    given
        What the user says, `actions=`; None for all of the space.

    Attributes
    ----------
    values
        What `step` takes, by index; it grows if only a function of the user's own knows the actions.
    shown
        The same for results: text in the place of values that cannot be compared or stored, such as functions.
    """

    def __init__(self, space: Any | None, given: Any | None) -> None:
        in_space = spaces.elements(space)
        self._choose: Callable[[Any], Any] | None = given if callable(given) else None
        self._grows = self._choose is not None and in_space is None
        # arrays listed here are handed over as copies, in case the system changes them; a user's values as they are
        self._copies = in_space is not None and not isinstance(in_space, range) and (given is None or callable(given))
        self.values = _values(space, in_space, given)
        self._numbering = Numbering(self.values)
        self.shown = self.values if isinstance(self.values, range) else [_shown(value) for value in self.values]
        self._masks: dict[bytes, tuple[int, ...] | None] = {}
        self._bits, self._positions = len(self.values), None
        if in_space is not None and in_space is not self.values:  # masks are about all of the space
            numbers = list(map(Numbering(in_space).index, self.values))
            if None not in numbers:
                self._bits, self._positions = len(in_space), np.array(numbers)

    @property
    def count(self) -> int | None:
        """The number of actions; None if it is not known."""
        return None if self._grows else len(self.values)

    def value(self, index: int) -> Any:
        """Return what to hand to `step`."""
        value = self.values[index]
        return copy.deepcopy(value) if self._copies else value

    def index(self, value: Any) -> int:
        """Return the index of a value, a new one if only a function of the user's own knows the actions."""
        index = self._numbering.index(value)
        if index is None:
            if not self._grows:
                raise InputError(f"actions: expected values among {self._shown(None)}, got {value!r:.80}")
            index = self._numbering.add(value)
            assert isinstance(self.shown, list)
            self.shown.append(_shown(value))
        return index

    def offered(self, observation: Any, info: Mapping[str, Any]) -> tuple[int, ...] | None:
        """Return the indices of the actions offered with this observation, in order; None for all."""
        mask = None if self._grows else info.get("action_mask")
        if self._choose is None:
            return None if mask is None else self._from_mask(MASK, mask)
        own = self._from_answer(called("actions", self._choose, observation))
        if mask is not None and self._from_mask(MASK, mask) != own:
            raise GosprlError(
                f"actions: the function returned {self._shown(own)}, but {MASK} says "
                f"{self._shown(self._from_mask(MASK, mask))}; make them agree, or leave one out"
            )
        return own

    def _from_mask(self, name: str, mask: Any) -> tuple[int, ...] | None:
        if type(mask) is not np.ndarray or mask.dtype.itemsize != 1 or mask.shape != (self._bits,):
            mask = _as_mask(name, mask, self._bits)
        key = mask.tobytes()
        found = self._masks.get(key, _UNKNOWN)
        if found is _UNKNOWN:
            if len(self._masks) >= _REMEMBERED:
                self._masks.clear()
            found = self._masks[key] = self._indices(name, _as_mask(name, mask, self._bits))
        return found  # type: ignore[return-value]

    def _indices(self, name: str, mask: Any) -> tuple[int, ...] | None:
        mine = mask if self._positions is None else mask[self._positions]
        found = tuple(np.flatnonzero(mine).tolist())
        if not found:
            which = "no action" if not mask.any() else "none of the actions given with actions="
            raise GosprlError(f"{name} offers {which}; return terminated=True where an episode cannot go on")
        return None if len(found) == len(mine) else found

    def _from_answer(self, answer: Any) -> tuple[int, ...] | None:
        """Return the indices of what the user's function returned."""
        if not self._grows and self._is_mask(answer):
            return self._from_mask("actions: the mask returned", answer)
        if isinstance(answer, (str, bytes, Mapping)) or not isinstance(answer, Iterable):
            raise InputError(f"actions: expected the function to return action values or a mask, got {answer!r:.80}")
        found = [self.index(value) for value in answer]
        if not found:
            raise GosprlError("actions: the function offers no action; return terminated=True where an episode ends")
        if len(set(found)) < len(found):
            raise InputError(
                f"actions: expected the function to return each action once, got {answer!r:.80}; "
                "if that is a mask, make it one of bools"
            )
        return None if len(found) == self.count else tuple(sorted(found))

    def _is_mask(self, answer: Any) -> bool:
        """Whether it is an array of bools or int8 (Gymnasium's masks), or a list of bools that are no actions."""
        if isinstance(answer, np.ndarray):
            return answer.dtype in (np.bool_, np.int8)
        listed = isinstance(answer, (list, tuple)) and all(isinstance(x, (bool, np.bool_)) for x in answer)
        return listed and len(answer) > 0 and not any(isinstance(value, bool) for value in self.values)

    def _shown(self, indices: Iterable[int] | None) -> str:
        values = self.values if indices is None else [self.values[i] for i in indices]
        return f"{list(values[:20])!r:.200}"


def _shown(value: Any) -> Any:
    try:
        Content().freeze(value)
        return value
    except GosprlError:
        return f"{value!r:.80}"


def _values(space: Any, in_space: Sequence[Any] | None, given: Any) -> Sequence[Any]:
    if given is None:
        return _all_of(space, in_space)
    if callable(given):
        if not takes(given, 1):
            raise InputError(f"actions: expected a function of one argument, the observation, got {given!r:.80}")
        return [] if in_space is None else in_space
    return _listed(given, space)


def _all_of(space: Any, in_space: Sequence[Any] | None) -> Sequence[Any]:
    if in_space is not None:
        return in_space
    if space is None:
        raise InputError(f"actions: expected {EXPECTED}, since the system has no action_space that says")
    discretize = "gymnasium.wrappers.DiscretizeAction(env, bins=5), or " if isinstance(space, gym_spaces.Box) else ""
    raise InputError(
        f"action_space: expected Discrete, or MultiDiscrete, MultiBinary, Tuple or Dict with at most {spaces.MOST} "
        f"actions, got {spaces.one_line(space)}; use {discretize}actions=[...], a list of the values to use"
    )


def _listed(given: Any, space: Any) -> Sequence[Any]:
    """Return the values that a number or a list of the user's stands for."""
    if isinstance(given, (int, np.integer)):
        count = _checks.whole("actions", given, 1)
        if isinstance(space, gym_spaces.Discrete) and not (space.contains(0) and space.contains(count - 1)):
            raise InputError(f"actions: expected actions of {space}, got {given}, which stands for 0 .. {count - 1}")
        return range(count)
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)) or len(given) == 0:
        raise InputError(f"actions: expected {EXPECTED}, got {given!r:.80}")
    values = list(given)
    numbering = Numbering(values)
    if [numbering.index(value) for value in values] != list(range(len(values))):
        raise InputError(f"actions: expected each action once, got {given!r:.80}")
    return values


def _as_mask(name: str, mask: Any, bits: int) -> Any:
    """Return a mask as an int8 array [A] of zeros and ones."""
    try:
        array = np.asarray(mask)
    except ValueError:  # lists of different lengths
        array = np.empty(0, dtype=object)
    if array.shape != (bits,) or array.dtype.kind not in "biu" or not np.all((array == 0) | (array == 1)):
        what = f"shape {array.shape} of {array.dtype}" if array.shape != (bits,) else f"{array.dtype} values"
        raise GosprlError(f"{name}: expected one 0 or 1 for each of the {bits} actions, got {what}: {mask!r:.80}")
    return array.astype(np.int8)
