"""Keys by content: equal if and only if type and content are equal."""

import decimal
import fractions
import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from observed import VALUES, Hashed, Loose, Number, Place, Plain, Valued, same

from gosprl import GosprlError
from gosprl.systems.observations import encoder


@settings(max_examples=400, deadline=None)
@given(VALUES, VALUES)
def test_equal_keys_if_and_only_if_equal_content(one, other):
    keys = [encoder(None, None).encode(value, {}) for value in (one, other)]
    if keys[0] == keys[1]:
        assert hash(keys[0]) == hash(keys[1])
    assert (keys[0] == keys[1]) == same(one, other)


@settings(max_examples=400, deadline=None)
@given(VALUES)
def test_what_is_decoded_has_the_same_content(value):
    code = encoder(None, None)
    key = code.encode(value, {})
    assert same(code.decode(key), value)
    assert encoder(None, None).encode(code.decode(key), {}) == key == code.key_of(value)
    assert code.decode(key) is not value or not isinstance(value, (list, dict, np.ndarray))
    assert pickle.loads(pickle.dumps(key)) == key


def test_one_of_each_type_is_a_key_of_its_own():
    ones = [1, True, 1.0, 1 + 0j, "1", b"1", Number.ONE, fractions.Fraction(1), decimal.Decimal(1), (1,), [1], {1}]
    keys = {encoder(None, None).encode(one, {}) for one in ones}
    assert len(keys) == len(ones)
    assert encoder(None, None).encode(np.int64(1), {}) == 1


def test_sets_are_compared_by_their_members():
    code = encoder(None, None)
    assert code.encode({1, 2}, {}) == code.encode(frozenset([2, 1]), {}) != code.encode({1}, {})
    assert code.decode(code.encode({1, (2, 3)}, {})) == {1, (2, 3)}


def test_fields_that_are_not_compared_make_no_difference():
    code = encoder(None, None)
    key = code.encode(Place([1], seen=7), {})
    assert key == code.encode(Place([1], seen=8), {})
    assert code.decode(key) == Place([1])
    assert code.decode(key).seen == 0


# What has no key

LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Plain(), "equal only to itself"),
        ((1, [Plain()]), "equal only to itself"),
        (Plain, "equal only to itself"),
        (lambda: 0, "equal only to itself"),
        (len, "equal only to itself"),
        ([].append, "equal only to itself"),
        (Valued(1).__hash__, "equal only to itself"),
        (Loose(1), "not frozen"),
        (Hashed(1), "not frozen"),
        (bytearray(b"1"), "no hash"),
        (float("nan"), "contains nan, which equals nothing"),
        (np.float32("nan"), "contains nan, which equals nothing"),
        ({"a": (1, [complex(0, float("nan"))])}, "equals nothing"),
        (np.array([0, np.nan]), "array with NaN"),
        (np.array(["2020", "NaT"], dtype="M8[D]"), "array with NaT"),
        (decimal.Decimal("nan"), "does not equal its own copy"),
        (np.array([Plain()]), "dtype object"),
        (np.zeros(2, dtype=[("a", int)]), "dtype"),
        (np.zeros(2, dtype=np.longdouble), "dtype"),
        (LOOP, "contains itself"),
    ],
)
def test_observations_that_have_no_key(value, words):
    with pytest.raises(GosprlError, match=f"^observation contains .*{words}|^observation {words}.*") as caught:
        encoder(None, None).encode(value, {})
    assert "key=, a function (observation, info) -> hashable" in str(caught.value)


# Mutation


@pytest.mark.parametrize("space", [None, spaces.MultiDiscrete([9, 9])])
def test_arrays_that_are_changed_later(space):
    code, array = encoder(space, None), np.array([1, 2])
    key = code.encode(array, {})
    array[:] = 7
    assert code.decode(key).tolist() == [1, 2]
    assert code.encode(np.array([1, 2]), {}) == key != code.encode(array, {})
    with pytest.raises(ValueError, match="read-only"):
        code.decode(key)[0] = 3


@pytest.mark.parametrize(
    "make", [lambda x: [x], lambda x: {"a": [x]}, Valued, lambda x: Place([x]), lambda x: (1, [x])]
)
def test_objects_that_are_changed_later(make):
    code, value = encoder(None, None), make(1)
    key, before = code.encode(value, {}), hash(code.encode(value, {}))
    inner = value.x if isinstance(value, Place) else value
    if isinstance(inner, Valued):
        inner.x = 2
    elif isinstance(inner, dict):
        inner["a"][0] = 2
    elif isinstance(inner, tuple):
        inner[1][0] = 2
    else:
        inner[0] = 2
    assert hash(key) == before
    assert code.decode(key) == make(1)
    assert code.encode(value, {}) == code.encode(make(2), {}) != key
    assert code.encode(make(1), {}) == key


def test_what_was_decoded_may_be_changed():
    code = encoder(None, None)
    key = code.encode(Valued(1), {})
    code.decode(key).x = 2
    assert code.decode(key) == Valued(1)
