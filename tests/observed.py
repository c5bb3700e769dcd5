"""Values of many types that a system may return as observations, and what it means that two of them are the same."""

import dataclasses
import decimal
import fractions
from enum import Enum, IntEnum
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st


class Number(IntEnum):
    ONE = 1


class Colour(Enum):
    RED = 1


@dataclasses.dataclass(frozen=True)
class Place:
    x: Any
    seen: int = dataclasses.field(default=0, compare=False)


class Pair(NamedTuple):
    x: Any
    y: Any


class Valued:
    """Hashable, compared by value, and mutable all the same."""

    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return type(other) is Valued and self.x == other.x

    def __hash__(self):
        return hash(self.x)


class Plain:
    pass


@dataclasses.dataclass
class Loose:
    x: int


@dataclasses.dataclass(unsafe_hash=True)
class Hashed:
    x: int


def native(array):
    """The dtype, but for the byte order."""
    return array.dtype.newbyteorder("=")


def plainly(x):
    """The Python number in a NumPy scalar."""
    return x.item() if isinstance(x, np.generic) else x


def same(one, other):
    """Equal in type and content, spelled out; the oracle for keys."""
    one, other = plainly(one), plainly(other)
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return native(one) == native(other) and one.shape == other.shape and bool(np.all(one == other))
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, Place):
        return same(one.x, other.x)
    return one == other


# A small pool, so that pairs are often equal, and often equal in Python alone.
LEAVES = st.sampled_from(
    [0, 1, True, False, 0.0, -0.0, 1.0, 1j, "1", b"1", None, "", Number.ONE, Colour.RED, fractions.Fraction(1)]
    + [np.int64(1), np.uint8(1), np.float32(1), np.True_, decimal.Decimal(1), 2**70, float("inf")]
    + [np.array(x) for x in (1, [1], [[1]], [1.0], [0.0], [-0.0], [True], ["a"], [])]
    + [np.array([1], dtype=kind) for kind in ("i4", "u8", "f4", ">i8", "c8")]
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.tuples(inner),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
        st.dictionaries(st.sampled_from([1, 2, "a"]), inner, max_size=2),
        st.builds(Pair, inner, inner),
        st.builds(Place, inner),
    ),
    max_leaves=5,
)
