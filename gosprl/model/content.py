"""Keys by content: a hashable, immutable stand-in for a value, from which the value can be rebuilt.

Two values get equal keys if and only if their types and contents are equal. Python alone does not tell types apart:
``1 == True == 1.0``, with equal hashes. Therefore the keys of all values other than int, str, bytes, None and tuple
are tuples that begin with a type, such as ``(bool, True)``. The key of a tuple never does, since types are no values
here. NumPy scalars count as the Python numbers that they hold.

A key shares nothing with the value that could be changed later: what is mutable is copied.
"""

import copy
import dataclasses
from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from types import BuiltinFunctionType, MethodType, NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import GosprlError

USE_KEY = "give key=, a function (observation, info) -> hashable value that tells states apart"
_PLAIN = frozenset({int, str, bytes, NoneType})  # their own keys
_EXTENDED = frozenset({"g", "G"})  # long doubles: their bytes have undefined padding
_FUNCTIONS = (BuiltinFunctionType, MethodType)  # equal if they belong to the same object, which may be large to copy
Rule = Callable[[Any], Hashable]


class Content:
    """Makes keys of values; an object of its own, because it remembers copies and how to treat each type."""

    def __init__(self) -> None:
        self._rules: dict[type, Rule] = {}
        self._copies: dict[Hashable, Hashable] = {}  # keys of custom objects

    def __reduce__(self) -> tuple[type["Content"], tuple[()]]:
        """Return how to pickle it: what it remembers only saves time."""
        return Content, ()

    def freeze(self, value: Any) -> Hashable:
        """Return the key of a value."""
        kind = type(value)
        if kind in _PLAIN:
            return value  # type: ignore[no-any-return]
        if kind is tuple:  # common, and mostly of ints
            return tuple([x if type(x) is int else self.freeze(x) for x in value])
        if kind is np.ndarray:
            return _freeze_array(value)
        rule = self._rules.get(kind)
        if rule is None:
            rule = self._rules[kind] = self._rule(kind)
        return rule(value)

    def _rule(self, kind: Any) -> Rule:
        """Return the function that makes keys of values of this type."""
        if issubclass(kind, Enum):  # before int and str, which its members may be as well
            return lambda member: (kind, member)
        if issubclass(kind, np.integer):
            return int
        if issubclass(kind, np.generic) or kind in (bool, float, complex):
            return self._freeze_scalar
        if issubclass(kind, (tuple, list, dict, set, frozenset)):
            return self._container_rule(kind)
        if _is_record(kind):
            names = [field.name for field in dataclasses.fields(kind) if field.compare]
            return lambda record: (kind, *[self.freeze(getattr(record, name)) for name in names])
        return self._freeze_custom

    def _container_rule(self, kind: type) -> Rule:
        if hasattr(kind, "_make"):  # a NamedTuple
            return lambda fields: (kind, *self._each(fields))
        if issubclass(kind, tuple):
            return self._each
        if issubclass(kind, list):
            return lambda items: (list, self._each(items))
        if issubclass(kind, dict):
            return self._freeze_dict
        return lambda members: (frozenset, frozenset(self._each(members)))

    def _each(self, values: Iterable[Any]) -> tuple[Hashable, ...]:
        return tuple([self.freeze(value) for value in values])

    def _freeze_dict(self, value: dict[Any, Any]) -> Hashable:
        items = [(self.freeze(k), self.freeze(v)) for k, v in value.items()]
        if all(type(k) is str for k in value):  # sorted, so that it is shown the same way every time
            return dict, tuple(sorted(items, key=lambda item: item[0]))  # type: ignore[arg-type,return-value]
        return dict, frozenset(items)

    def _freeze_scalar(self, value: Any) -> Hashable:
        if isinstance(value, np.generic):
            if value.dtype.char in _EXTENDED or value.dtype.kind not in "biufcSU":
                return _freeze_array(np.asarray(value))
            return self.freeze(value.item())
        if value != value:
            raise GosprlError(f"contains {value!r}, which equals nothing, not even itself; {USE_KEY}")
        return type(value), value + 0.0 if type(value) is not bool else value  # -0.0 becomes 0.0

    def _freeze_custom(self, value: Any) -> Hashable:
        """Return the key of an object that Python can hash and compare by value; a copy, in case it is mutable."""
        kind: Any = type(value)
        if kind.__eq__ is object.__eq__ or kind.__hash__ is object.__hash__ or isinstance(value, _FUNCTIONS):
            raise GosprlError(f"contains {_shown(value)}, an object that is equal only to itself; {USE_KEY}")
        if dataclasses.is_dataclass(kind) and not _parameters(kind).frozen:
            raise GosprlError(f"contains {_shown(value)}, a dataclass that is not frozen; freeze it, or {USE_KEY}")
        key = (kind, value)
        try:
            known = self._copies.get(key)
        except TypeError:
            raise GosprlError(f"contains {_shown(value)}, which has no hash (it is mutable); {USE_KEY}") from None
        return self._copied(key) if known is None else known

    def _copied(self, key: tuple[type, Any]) -> Hashable:
        value = copy.deepcopy(key[1])
        try:
            same = hash(value) == hash(key[1]) and bool(value == key[1])
        except (TypeError, ValueError):  # arrays compare element by element
            same = False
        if not same:
            raise GosprlError(f"contains {_shown(value)}, which does not equal its own copy; {USE_KEY}")
        return self._copies.setdefault((key[0], value), (key[0], value))


def thaw(key: Any) -> Any:
    """Return the value that a key was made of; arrays are read-only, sets are frozen."""
    if type(key) is not tuple:
        return key
    if not key or not isinstance(key[0], type):
        return tuple([thaw(part) for part in key])
    kind = key[0]
    if kind is np.ndarray:
        return np.frombuffer(key[3], dtype=key[1]).reshape(key[2])
    if kind in (list, frozenset):
        return kind(thaw(part) for part in key[1])
    if kind is dict:
        return {thaw(k): thaw(v) for k, v in key[1]}
    if issubclass(kind, tuple):
        return kind._make(thaw(part) for part in key[1:])  # type: ignore[attr-defined]
    if _is_record(kind) and not issubclass(kind, Enum):
        return _rebuilt(kind, [thaw(part) for part in key[1:]])
    return copy.deepcopy(key[1])


def _freeze_array(array: NDArray[Any]) -> Hashable:
    dtype = array.dtype
    if dtype.kind in "fc" and dtype.char not in _EXTENDED:
        if np.isnan(array).any():
            raise GosprlError(f"contains an array with NaN, which equals nothing, not even itself; {USE_KEY}")
        array = array + 0.0  # -0.0 becomes 0.0
    elif dtype.kind in "mM":
        if np.isnat(array).any():
            raise GosprlError(f"contains an array with NaT, which equals nothing, not even itself; {USE_KEY}")
    elif dtype.kind not in "biuSU":
        raise GosprlError(f"contains an array of dtype {dtype}, whose bytes do not say what it holds; {USE_KEY}")
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
        array = array.astype(dtype)
    return np.ndarray, dtype.str, array.shape, array.tobytes()


def _is_record(kind: type) -> bool:
    """Whether it is a frozen dataclass that compares its fields."""
    return dataclasses.is_dataclass(kind) and _parameters(kind).frozen and _parameters(kind).eq


def _parameters(kind: Any) -> Any:
    return kind.__dataclass_params__


def _rebuilt(kind: Any, values: list[Any]) -> Any:
    """Return a frozen dataclass with these fields; those that are not compared have their default, or None."""
    record, given = object.__new__(kind), iter(values)
    for field in dataclasses.fields(kind):
        default = None if field.default is dataclasses.MISSING else field.default
        object.__setattr__(record, field.name, next(given) if field.compare else default)
    return record


def _shown(value: Any) -> str:
    return f"{value!r:.80} ({type(value).__name__})"
