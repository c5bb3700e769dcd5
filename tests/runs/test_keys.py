"""Keys as text: one text for each key, one key for each text, and nothing else is accepted."""

import dataclasses
import enum
import json
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from gosprl.errors import InputError
from gosprl.model.content import Content, thaw
from gosprl.runs.keys import LIMIT, SHOWN, key_of, plain_of, text_of

FLOATS = st.floats(allow_nan=False)
ANY_TEXT = st.text(st.characters(exclude_categories=[]))  # with lone surrogates
DTYPES = st.one_of(
    npst.boolean_dtypes(),
    npst.integer_dtypes(),
    npst.floating_dtypes(sizes=(16, 32, 64)),
    npst.complex_number_dtypes(sizes=(64, 128)),
    npst.byte_string_dtypes(),
    npst.unicode_string_dtypes(),
    npst.datetime64_dtypes(),
    npst.timedelta64_dtypes(),
)


def without_nan(array):
    return not (array.dtype.kind in "fcmM" and (array != array).any())


ARRAYS = npst.arrays(DTYPES, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)).filter(without_nan)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    FLOATS,
    st.complex_numbers(allow_nan=False),
    ANY_TEXT,
    st.binary(),
    ARRAYS,
)
HASHABLE = st.one_of(st.integers(), ANY_TEXT, st.booleans(), FLOATS, st.binary(), st.tuples(st.integers(), FLOATS))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.frozensets(HASHABLE, max_size=4),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.dictionaries(HASHABLE, inner, max_size=3),
    ),
    max_leaves=8,
)


def frozen(value):
    return Content().freeze(value)


@settings(deadline=None, max_examples=400)
@given(VALUES)
def test_a_key_comes_back_from_its_text(value):
    key = frozen(value)
    text = text_of(key)
    assert text.isascii()
    assert text.isprintable()
    json.loads(text)
    assert key_of(text) == key
    assert text_of(key_of(text)) == text


@settings(deadline=None, max_examples=300)
@given(VALUES, VALUES)
def test_texts_are_equal_if_and_only_if_the_keys_are(first, second):
    assert (text_of(frozen(first)) == text_of(frozen(second))) == (frozen(first) == frozen(second))


def test_types_that_python_calls_equal_have_different_texts():
    values = [
        1,
        True,
        1.0,
        1 + 0j,
        "1",
        b"1",
        (1,),
        [1],
        {1},
        {1: 1},
        {"1": 1},
        None,
        np.array(1),
        np.array([1]),
        (),
        [],
    ]
    assert len({text_of(frozen(value)) for value in values}) == len(values)


def test_negative_zero_has_the_text_of_zero():
    assert text_of((float, -0.0)) == text_of((float, 0.0))
    assert text_of((complex, complex(-0.0, -0.0))) == text_of((complex, 0j))


@pytest.mark.parametrize("text", ["\ud83d\ude00", "\U0001f600", "\ud800", "a\udfff\n"])
def test_surrogates_survive(text):
    assert key_of(text_of(text)) == text


def test_a_pair_of_surrogates_is_not_the_character_that_it_encodes():
    assert text_of("\ud83d\ude00") != text_of("\U0001f600")


@pytest.mark.parametrize(
    "number", [2**63, -(10**4000), 10**5000, -(10**5000), 1 << 13_000, (1 << 13_000) - 1], ids=int.bit_length
)
def test_ints_of_any_size(number):
    assert key_of(text_of(number)) == number


def test_small_ints_are_json_ints():
    assert text_of((1, -2)) == "[1, -2]"


def test_members_of_sets_are_sorted_by_text():
    assert text_of(frozen({"b", "a", "c"})) == '{"set": ["a", "b", "c"]}'
    assert text_of(frozen({2: 0, 1: 0})) == '{"items": [[1, 0], [2, 0]]}'


def test_the_key_becomes_the_observation_again():
    value = {"image": np.arange(6, dtype=np.uint8).reshape(2, 3), "carrying": None, "pose": (1, 0.5)}
    back = thaw(key_of(text_of(frozen(value))))
    np.testing.assert_array_equal(back["image"], value["image"])
    assert (back["carrying"], back["pose"]) == (None, (1, 0.5))


class Colour(enum.Enum):
    RED = 1


class Point(NamedTuple):
    x: int


@dataclasses.dataclass(frozen=True)
class Card:
    rank: int


@pytest.mark.parametrize("value", [Colour.RED, Point(1), Card(1), (1, [Card(2)]), range(3)])
def test_other_types_are_refused_with_the_way_out(value):
    with pytest.raises(InputError, match=r"^out: an observation of type (Colour|Point|Card|range) .*key="):
        text_of(frozen(value))


@pytest.mark.parametrize("key", [True, 1.5, {1}, [1], (float, math.nan), (bool,), (list, (), ())])
def test_what_is_no_key_is_refused(key):
    with pytest.raises((InputError, TypeError), match="out: "):
        text_of(key)


def test_deep_and_long_keys_are_refused():
    deep = ()
    for _ in range(100):
        deep = (deep,)
    with pytest.raises(InputError, match="64 levels"):
        text_of(deep)
    with pytest.raises(InputError, match="cannot be stored"):
        text_of(b"x" * LIMIT)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 ",
        "[1,2]",
        "1.0",
        "true",
        "NaN",
        "1e5",
        '"\\u0041"',
        '"é"',
        "{}",
        '{"bool": 1}',
        '{"bool": true, "int": "0x1"}',
        '{"bool": true, "bool": true}',
        '{"float": 1}',
        '{"float": NaN}',
        '{"float": "nan"}',
        '{"float": -0.0}',
        '{"float": 1e999}',
        '{"complex": [1.0]}',
        '{"complex": [1.0, 1]}',
        '{"set": [2, 1]}',
        '{"set": [1, 1]}',
        '{"dict": [[1]]}',
        '{"items": [[1, 1, 1]]}',
        '{"items": [[1, 2], [1, 2]]}',
        '{"bytes": "?"}',
        '{"bytes": "QQ"}',
        '{"int": "0x1"}',
        '{"int": "__import__"}',
        '{"str": "00000041"}',
        '{"str": "00110000"}',
        '{"object": "os.system"}',
        '{"array": ["|O", [0], ""]}',
        '{"array": ["<i4,<i4", [0], ""]}',
        '{"array": ["<i4", [1], ""]}',
        '{"array": ["<i4", [-1, -1], "AAAAAA=="]}',
        '{"array": ["<i4", [0, 100000000000000000000000000000], ""]}',
        '{"array": ["i4", [1], "AAAAAA=="]}',
        '{"array": ["<i3", [0], ""]}',
        '{"array": ["<U1", [1], "////fw=="]}',
        '{"array": ["|b1", [1], "Ag=="]}',
        '{"array": ["|V4", [1], "AAAAAA=="]}',
        '{"array": ["|S1", ' + str([0] * 100) + ', ""]}',
        "1" * 5000,
        "[" * 100,
        "[" * 200_000,
        '{"list": ' * 50_000,
        "[" * 70 + "]" * 70,
        " " * (LIMIT + 1),
    ],
    ids=lambda text: text[:40],
)
def test_texts_of_no_key_are_refused(text):
    with pytest.raises(ValueError, match="key"):
        key_of(text)


@settings(deadline=None, max_examples=300)
@given(VALUES, st.data())
def test_changed_texts_are_refused_or_the_text_of_what_they_give(value, data):
    text = text_of(frozen(value))
    place = data.draw(st.integers(0, len(text) - 1))
    changed = text[:place] + data.draw(st.characters()) + text[place + 1 :]
    try:
        key = key_of(changed)
    except ValueError:
        return
    assert text_of(key) == changed
    hash(key)


class Silent:
    def __str__(self):
        raise RuntimeError("no")


@settings(deadline=None, max_examples=200)
@given(VALUES)
def test_what_people_are_shown_is_json(value):
    text = plain_of(value)
    text.encode()
    assert len(text) == SHOWN or json.loads(text) is not Ellipsis


def test_what_people_are_shown():
    value = {"a": np.array([1.5, np.nan]), "b": (1, np.int64(2)), 3: None, "c": Colour.RED}
    assert plain_of(value) == '{"a": [1.5, "nan"], "b": [1, 2], "3": null, "c": "Colour.RED"}'


@pytest.mark.parametrize(
    "value",
    [Silent(), [Silent()], 10**5000, "x" * 10**6, np.zeros(10**6), list(range(10**5))],
    ids=lambda value: type(value).__name__,
)
def test_showing_never_fails(value):
    assert 0 < len(plain_of(value)) <= SHOWN


def test_showing_what_contains_itself():
    loop = []
    loop.append(loop)
    assert len(plain_of(loop)) <= SHOWN
