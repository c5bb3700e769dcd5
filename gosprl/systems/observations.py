"""Observations and their keys: what makes two observations the same state.

A key is hashable and immutable, and depends on the content of an observation only. Where a Gymnasium space says what
observations look like, keys are compact: ints for `Discrete`, bytes for arrays, tuples for `Tuple` and `Dict`. All
else has a key by content (`gosprl.model.content`). A function of the user's own (`key=`) overrides both.

Whether an observation lies in its space is checked for keys that are new: later ones with the same key do as well.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium import spaces as gym_spaces
from numpy.typing import NDArray

from gosprl.errors import GosprlError, InputError
from gosprl.model.content import USE_KEY, Content, thaw
from gosprl.systems import spaces

Key = Callable[[Any, Any], Hashable]
OBSERVATION = "observation"  # how errors call it
_NO_INFO: Mapping[str, Any] = {}


class Encoder(ABC):
    """Makes keys of observations, and observations of keys.

    Attributes
    ----------
    size
        Number of observations that the space has; None if it is not finite or not known.
    first
        The smallest observation of a `Discrete` space, else 0.
    numbered
        Whether keys are the ints first .. first + size - 1.
    layout
        What `decode` knows of the space, as JSON for `decoder`; None: keys by content tell all.
    """

    size: int | None = None
    first: int = 0
    numbered: bool = False
    layout: Any = None

    @abstractmethod
    def encode(self, observation: Any, info: Any = _NO_INFO) -> Hashable:
        """Return the key of an observation."""

    @abstractmethod
    def decode(self, key: Any) -> Any:
        """Return the observation of a key; arrays are read-only."""

    def key_of(self, shown: Any) -> Hashable:
        """Return the key of what `decode` shows: for needs and labels given by observation."""
        return self.encode(shown)


def decoder(layout: Any) -> Callable[[Any], Any]:
    """Return the function that makes observations of keys, from the `layout` of an encoder.

    It raises `ValueError` or `TypeError` for a key that the encoder did not make.
    """
    if layout is None:
        return thaw
    if "dtype" in layout:
        return partial(_array_of, np.dtype(layout["dtype"]), tuple(layout["shape"]))
    if "tuple" in layout:
        return partial(_tuple_of, [decoder(part) for part in layout["tuple"]])
    return partial(_dict_of, {label: decoder(part) for label, part in layout["dict"]})


def _array_of(dtype: Any, shape: tuple[int, ...], key: Any) -> NDArray[Any]:
    return np.frombuffer(key, dtype=dtype).reshape(shape)


def _tuple_of(parts: Sequence[Callable[[Any], Any]], key: Any) -> tuple[Any, ...]:
    return tuple([decode(part) for decode, part in zip(parts, key, strict=True)])


def _dict_of(parts: Mapping[Any, Callable[[Any], Any]], key: Any) -> dict[Any, Any]:
    return {label: decode(part) for (label, decode), part in zip(parts.items(), key, strict=True)}


def encoder(space: Any | None, key: Key | None = None) -> Encoder:
    """Return the encoder for a space (None: not known) and a function that tells states apart (None: by content)."""
    if key is not None:
        return ByKey(key)
    if space is None:
        return ByContent(OBSERVATION)
    if not isinstance(space, Space):
        raise InputError(f"observation_space: expected a gymnasium.Space or None, got {type(space).__name__}")
    return _for_space(OBSERVATION, space)


def _for_space(name: str, space: Any) -> Encoder:
    spaces.refuse_continuous(name, space, whole=name == OBSERVATION)
    if isinstance(space, gym_spaces.Discrete):
        return Numbers(name, space)
    if isinstance(space, (gym_spaces.MultiDiscrete, gym_spaces.MultiBinary, gym_spaces.Box)):
        return Arrays(name, space)
    if isinstance(space, gym_spaces.Tuple):
        return Tuples(name, space)
    if isinstance(space, gym_spaces.Dict):
        return Dicts(name, space)
    return ByContent(name, space)


class Numbers(Encoder):
    """Observations in `Discrete`: the key is the observation as a Python int."""

    numbered = True

    def __init__(self, name: str, space: gym_spaces.Discrete) -> None:
        self.name, self.space = name, space
        self.size, self.first = int(space.n), int(space.start)
        self._end = self.first + self.size

    def encode(self, observation: Any, info: Any = _NO_INFO) -> Hashable:
        """Return the observation as a Python int."""
        kind = type(observation)
        if kind is int or kind is np.int64:  # nearly always: the space's own test takes longer than many a step
            number = int(observation)
            if self.first <= number < self._end:
                return number
        if not self.space.contains(observation):
            raise _outside(self.name, self.space, observation)
        return int(observation)

    def decode(self, key: Any) -> Any:
        """Return the observation."""
        return key


class Arrays(Encoder):
    """Observations in `MultiDiscrete`, `MultiBinary` or a `Box` of integers: the key is the array's bytes."""

    def __init__(self, name: str, space: Any) -> None:
        self.name, self.space = name, space
        self.size = spaces.size(space)
        self._dtype, self._shape = np.dtype(space.dtype), tuple(space.shape)
        self.layout = {"dtype": self._dtype.str, "shape": list(self._shape)}
        self._seen: set[bytes] = set()

    def encode(self, observation: Any, info: Any = _NO_INFO) -> Hashable:
        """Return the array's bytes, in the dtype of the space."""
        if type(observation) is np.ndarray and observation.dtype is self._dtype and observation.shape == self._shape:
            key = observation.tobytes()
            if key in self._seen:
                return key
        key = self._checked(observation)
        self._seen.add(key)
        return key

    def decode(self, key: Any) -> Any:
        """Return the array, read-only."""
        return _array_of(self._dtype, self._shape, key)

    def _checked(self, observation: Any) -> bytes:
        try:
            array = np.asarray(observation)
        except ValueError:  # lists of different lengths
            raise _outside(self.name, self.space, observation) from None
        if array.dtype.kind not in "biu" or not self.space.contains(array):
            raise _outside(self.name, self.space, observation)
        return array.astype(self._dtype).tobytes()


class Tuples(Encoder):
    """Observations in `Tuple`: the key is the tuple of the keys of its parts."""

    def __init__(self, name: str, space: gym_spaces.Tuple[Any]) -> None:
        self.name, self.space = name, space
        self.size = spaces.size(space)
        parts = [_for_space(f"{name}[{i}]", part) for i, part in enumerate(space.spaces)]
        self._encode, self._decode = [part.encode for part in parts], [part.decode for part in parts]
        self.layout = {"tuple": [part.layout for part in parts]}

    def encode(self, observation: Any, info: Any = _NO_INFO) -> Hashable:
        """Return the keys of the parts."""
        if type(observation) is not tuple and not isinstance(observation, (tuple, list, np.ndarray)):
            raise _outside(self.name, self.space, observation)
        if len(observation) != len(self._encode):
            raise _outside(self.name, self.space, observation)
        return tuple([encode(part) for encode, part in zip(self._encode, observation, strict=False)])

    def decode(self, key: Any) -> Any:
        """Return the tuple of the parts."""
        return _tuple_of(self._decode, key)


class Dicts(Encoder):
    """Observations in `Dict`: the key is the tuple of the keys of its values, in the order of the space."""

    def __init__(self, name: str, space: gym_spaces.Dict) -> None:
        self.name, self.space = name, space
        self.size = spaces.size(space)
        self._parts = {label: _for_space(f"{name}[{label!r}]", part) for label, part in space.spaces.items()}
        self._encode = [(label, part.encode) for label, part in self._parts.items()]
        self._decode = {label: part.decode for label, part in self._parts.items()}
        self.layout = {"dict": [[str(label), part.layout] for label, part in self._parts.items()]}

    def encode(self, observation: Any, info: Any = _NO_INFO) -> Hashable:
        """Return the keys of the values."""
        if not isinstance(observation, Mapping) or observation.keys() != self._parts.keys():
            raise _outside(self.name, self.space, observation)
        return tuple([encode(observation[label]) for label, encode in self._encode])

    def decode(self, key: Any) -> Any:
        """Return the dict of the values."""
        return _dict_of(self._decode, key)


class ByContent(Encoder):
    """All other observations, by type and content.

    Without a space, observations must keep their type: an int that comes back as a str is an error of the system more
    often than another state. Classes of the user's own may alternate.
    """

    decode = staticmethod(thaw)

    def __init__(self, name: str, space: Any | None = None, one_type: bool = True) -> None:
        self.name, self.space, self._one_type = name, space, one_type and space is None
        self._freeze = Content().freeze
        self._seen: set[Hashable] = set()
        self._type: type | None = None  # of the last observation
        self._dtype: Any = None  # of the last observation, if it was an array
        self._kind: str | None = None  # of all observations

    def encode(self, observation: Any, info: Any = _NO_INFO) -> Hashable:
        """Return the key by content."""
        key = self.key_of(observation)
        if self._one_type:
            if type(observation) is not self._type or getattr(observation, "dtype", None) is not self._dtype:
                self._check_kind(observation, key)
        elif self.space is not None and key not in self._seen:
            if not self.space.contains(observation):
                raise _outside(self.name, self.space, observation)
            self._seen.add(key)
        return key

    def key_of(self, shown: Any) -> Hashable:
        """Return the key by content, without a test of its type or space."""
        try:
            return self._freeze(shown)
        except GosprlError as error:
            raise GosprlError(f"{self.name} {error}") from None
        except RecursionError:
            raise GosprlError(f"{self.name} contains itself, or is nested too deeply; {USE_KEY}") from None

    def _check_kind(self, observation: Any, key: Hashable) -> None:
        kind = _kind(key)
        if self._kind not in (None, kind):
            raise GosprlError(
                f"{self.name} changed its type: expected {self._kind} as before, got {kind}: {observation!r:.80}; "
                f"return one type, or {USE_KEY}"
            )
        self._type, self._dtype, self._kind = type(observation), getattr(observation, "dtype", None), kind


class ByKey(Encoder):
    """Observations that a function of the user's own tells apart; the function's value is what is shown."""

    decode = staticmethod(thaw)  # results keep it: not a method, whose object has the user's function

    def __init__(self, key: Key) -> None:
        if not takes(key, 2):
            raise InputError(f"key: expected a function (observation, info) -> hashable value, got {key!r:.80}")
        self._key, self._freeze = key, Content().freeze

    def encode(self, observation: Any, info: Any = _NO_INFO) -> Hashable:
        """Return the key that the function says, by type and content."""
        return self.key_of(called("key", self._key, observation, info))

    def key_of(self, shown: Any) -> Hashable:
        """Return the key of a value of the function."""
        if type(shown) is int:
            return shown
        try:
            hash(shown)
            return self._freeze(shown)
        except TypeError:
            raise InputError(
                f"key: expected a function that returns hashable values, got {shown!r:.80} ({type(shown).__name__}); "
                "return a tuple of numbers or strings, for an array tuple(array.ravel().tolist())"
            ) from None
        except GosprlError as error:
            raise InputError(
                f"key: its value {str(error).replace(USE_KEY, 'return a tuple of what matters')}"
            ) from None


def _kind(key: Hashable) -> str:
    """Return what an observation is, in words, from its key."""
    if type(key) is not tuple or not key or not isinstance(key[0], type):
        return type(key).__name__
    if key[0] is np.ndarray:
        return f"array of dtype {np.dtype(key[1])}"
    return key[0].__name__ if key[0] in (bool, float, complex, list, dict, frozenset) else "an object"


def _outside(name: str, space: Any, observation: Any) -> GosprlError:
    return GosprlError(
        f"{name} left its space: expected an element of {spaces.one_line(space)}, got {observation!r:.80}"
    )


def called(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the user's own; if it fails, the error says which, and with what."""
    try:
        return function(*arguments)
    except Exception as error:
        given = ", ".join(f"{argument!r:.80}" for argument in arguments)
        raise GosprlError(f"{name}: the function failed at ({given}): {type(error).__name__}: {error}") from error


def takes(function: Any, arguments: int) -> bool:
    """Whether a function can be called with this many arguments; True if that is not known."""
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except ValueError:  # builtins without a signature
        return True
    except TypeError:
        return False
    return True
