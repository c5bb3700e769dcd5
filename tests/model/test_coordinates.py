"""Codes of observations: linear in their coordinates, and none for what has none."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
import pytest

from gosprl.model.coordinates import MOST, NONE, code_of

BITS = 2**62 - 1


class Place(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Room:
    x: int
    y: int


class Colour(Enum):
    RED = 1


NO_NUMBERS = ["a", (), None, 0.5, float("nan"), float("inf"), (1, "a"), b"12", Colour.RED, np.array(["a"]), {1, 2}, 1j]
NO_NUMBERS += [np.array([0.5, 1]), Room]


@pytest.mark.parametrize("number", [0, 7, -3, True, np.int8(5), 2**62 + 5, -(10**40), np.uint64(2**64 - 1), 4.0])
def test_the_code_of_a_number_is_the_number(number):
    assert code_of(number) == int(number) & BITS


def test_the_same_coordinates_in_another_form_have_the_same_code():
    shapes = [(3, -2), [3, -2], np.array([3, -2], dtype=np.int8), np.array([[3.0], [-2.0]]), ((3,), [-2])]
    shapes += [Place(3, -2), Room(3, -2), {"b": -2, "a": 3}, (np.int64(3), -2.0)]
    assert len({code_of(shape) for shape in shapes}) == 1


@pytest.mark.parametrize(
    "observation",
    [*NO_NUMBERS, tuple(range(MOST + 1)), list(range(10**5)), np.zeros(10**5, dtype=int)],
)
def test_others_have_none(observation):
    assert code_of(observation) == NONE


def test_a_step_is_the_same_from_everywhere():
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, MOST):
        step = rng.integers(-9, 10, size)
        places = [rng.integers(-(10**12), 10**12, size) for _ in range(9)]
        assert len({(code_of(x + step) - code_of(x)) & BITS for x in places}) == 1


def test_other_vectors_have_other_codes():
    vectors = list(np.ndindex(9, 9, 9, 9)) + list(np.ndindex(20, 20)) + list(np.ndindex(9, 9, 9))
    assert len({code_of(v) for v in vectors}) == len(vectors)
