"""Validation of input: each function returns the checked value, or raises an `InputError` that names the argument."""

import difflib
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl.errors import InputError

T = TypeVar("T")

NEAR = 0.7  # difflib's ratio from which on a name is suggested


def integers(name: str, value: ArrayLike, low: int, high: int | None, meaning: str) -> NDArray[np.int64]:
    """Return `value` as an int64 array with entries in [low, high), or at least `low` if `high` is None.

    Parameters
    ----------
    name
        The argument, for the error.
    value
        Numbers; floats are accepted if they are whole.
    low, high
        The range.
    meaning
        What the numbers are, for the error: "states", "actions", ...
    """
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{name}: expected whole numbers ({meaning}): {error}") from None
    if array.size == 0:
        return array.astype(np.int64)
    whole_floats = array.dtype.kind == "f" and bool(np.all(np.isfinite(array) & (array == np.floor(array))))
    if not whole_floats and array.dtype.kind not in "iu":
        raise InputError(
            f"{name}: expected whole numbers ({meaning}), got {array.dtype} values such as {array.flat[0]}"
        )
    if array.dtype.kind in "iu" and array.min() >= low and array.max() < (2**63 if high is None else high):
        return array.astype(np.int64)
    flat = array.ravel()
    outside = np.flatnonzero((flat < low) | (flat >= (2**63 if high is None else high)))
    if outside.size:
        where = f" at index {outside[0]}" if array.ndim else ""
        wanted = f">= {low}" if high is None else f"in {low}..{high - 1}"
        raise InputError(f"{name}: expected {meaning} {wanted}, got {flat[outside[0]]}{where}")
    return array.astype(np.int64)


def floats(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """Return `value` as a float64 array."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: expected numbers: {error}") from None


def index(name: str, value: ArrayLike, size: int, meaning: str) -> int:
    """Return `value` as one int in [0, size)."""
    if type(value) is int and 0 <= value < size:  # the common case, called in loops
        return value
    array = integers(name, value, 0, size, meaning)
    if array.ndim:
        raise InputError(f"{name}: expected {meaning} in 0..{size - 1}, got an array of shape {array.shape}")
    return int(array)


def whole(name: str, value: Any, low: int) -> int:
    """Return `value` as an int that is at least `low`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise InputError(f"{name}: expected a whole number >= {low}, got {value!r}")
    return int(value)


def positive(name: str, value: Any) -> float:
    """Return `value` as a positive finite float."""
    try:
        if _is_real(value) and 0 < float(value) < np.inf:
            return float(value)
    except OverflowError:  # ints may be larger than any float
        pass
    raise InputError(f"{name}: expected a positive finite number, got {value!r:.80}")


def number(name: str, value: Any) -> float:
    """Return `value` as a finite float."""
    try:
        if _is_real(value) and np.isfinite(float(value)):
            return float(value)
    except OverflowError:  # ints may be larger than any float
        pass
    raise InputError(f"{name}: expected a finite number, got {value!r:.80}")


def open_unit(name: str, value: Any) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    if not _is_real(value) or not 0 < value < 1:
        raise InputError(f"{name}: expected a number strictly between 0 and 1, got {value!r}")
    return float(value)


def choice(name: str, value: Any, known: Mapping[str, T]) -> T:
    """Return the entry of `known` whose name is `value`."""
    if not isinstance(value, str) or value not in known:
        raise unknown(name, value, known)
    return known[value]


def memory(what: str, size: int, instead: str) -> None:
    """Raise `InputError` if `size` bytes exceed the memory of the machine; called before anything is allocated.

    Parameters
    ----------
    what
        The argument and what is to be allocated, for the error.
    size
        Bytes.
    instead
        What the user can do, for the error.
    """
    available = machine_memory()
    if size > available:
        needed = f"{size / 1e9:.3g}" if size < 1e300 else "over 1e291"
        raise InputError(
            f"{what}: needs about {needed} GB of memory, but there are {available / 1e9:.3g} GB; {instead}"
        )


def machine_memory() -> float:
    """Return the memory of the machine in bytes; inf if unknown."""
    try:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return np.inf
    return size if size > 0 else np.inf


def unknown(name: str, value: Any, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not among the known ones; it says which of them is like it."""
    names = sorted(known)
    return InputError(f"{name}: {value!r} is not known; known are {', '.join(names)}{nearest(value, names)}")


def nearest(value: Any, known: Iterable[str]) -> str:
    """Return the end of an error that suggests the known name nearest to `value`; empty if none is near."""
    found = difflib.get_close_matches(value, list(known), n=1, cutoff=NEAR) if isinstance(value, str) else []
    return f"; did you mean {found[0]!r}?" if found else ""


def _is_real(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def reasons(name: str, given: Any, num_states: int) -> dict[int, str]:
    """Return `given`, states that are given up and why, as a dict."""
    if not isinstance(given, Mapping):
        raise InputError(f"{name}: expected a dict {{state: reason}}, got {given!r:.80}")
    for s, reason in given.items():
        index(name, s, num_states, "a state")
        if not isinstance(reason, str):
            raise InputError(f"{name}: expected a reason in words for state {s}, got {reason!r:.80}")
    return dict(given)
