"""Observations and their keys, for spaces, without a space, and for functions of the user's own."""

import copy
import fractions
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from observed import Colour, Loose, Number, Pair, Place, Plain, plainly, same

from gosprl import GosprlError, InputError
from gosprl.systems.observations import encoder
from gosprl.systems.spaces import elements, size

DISCRETE = st.builds(lambda n, start: spaces.Discrete(n, start=start), st.integers(1, 4), st.integers(-3, 3))
ARRAYS = st.one_of(
    st.lists(st.integers(1, 3), min_size=1, max_size=3).map(spaces.MultiDiscrete),
    st.sampled_from([spaces.MultiDiscrete([[2, 3], [1, 2]], dtype=np.int8, start=[[0, 5], [-1, 0]])]),
    st.sampled_from([1, 3, (2, 2)]).map(spaces.MultiBinary),
    st.sampled_from([np.uint8, np.int16]).map(lambda kind: spaces.Box(0, 2, (2, 1), kind)),
)
TEXT = st.just(spaces.Text(2, charset="ab"))
SPACES = st.recursive(
    st.one_of(DISCRETE, ARRAYS, TEXT),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(spaces.Dict),
        st.lists(inner, min_size=1, max_size=2).map(spaces.OneOf),
    ),
    max_leaves=4,
)


@settings(max_examples=200, deadline=None)
@given(SPACES, st.integers(0, 2**31))
def test_round_trips_in_nested_spaces(space, seed):
    space = copy.deepcopy(space)
    space.seed(seed)
    code, samples = encoder(space, None), [space.sample() for _ in range(6)]
    keys = [code.encode(sample, {}) for sample in samples]
    for key, sample in zip(keys, samples, strict=True):
        shown = code.decode(key)
        assert space.contains(shown)
        assert same(shown, sample)
        assert code.encode(shown, {}) == key == code.key_of(shown)
        assert pickle.loads(pickle.dumps(key)) == key
        for other, value in zip(keys, samples, strict=True):
            assert (key == other) == same(sample, value)


@settings(max_examples=60, deadline=None)
@given(SPACES)
def test_the_size_of_a_space_is_the_number_of_its_elements(space):
    values, code = elements(space), encoder(space, None)
    if values is None:
        assert size(space) is None or size(space) > 10_000
    else:
        assert len({code.encode(value, {}) for value in values}) == len(values) == size(space) == code.size


def test_the_size_of_large_spaces():
    assert size(spaces.MultiBinary(100)) == 2**100
    assert size(spaces.Tuple([spaces.Discrete(10**6), spaces.MultiDiscrete([10**6] * 9)])) == 10**60
    assert elements(spaces.MultiBinary(14)) is None
    assert len(elements(spaces.Discrete(10**9))) == 10**9
    assert size(spaces.Box(0, 255, (2,), np.uint8)) is None


@pytest.mark.parametrize("five", [5, np.int64(5), np.int32(5), np.uint8(5), np.array(5)])
def test_discrete_observations_are_plain_ints(five):
    code = encoder(spaces.Discrete(3, start=4), None)
    key = code.encode(five, {})
    assert (key, type(key)) == (5, int)
    assert (code.size, code.first, code.numbered) == (3, 4, True)


@pytest.mark.parametrize(
    ("space", "value"),
    [(spaces.Discrete(3), x) for x in (3, -1, 1.0, "1", None, np.array([1]), np.float64(1))]
    + [(spaces.MultiDiscrete([2, 2]), x) for x in (np.array([0, 2]), np.zeros(3, int), np.zeros(2), 0, [[0], [1, 2]])]
    + [(spaces.Box(0, 9, (2,), np.uint8), x) for x in (np.array([1, 2]), np.array([10, 0], np.uint8), None)]
    + [(spaces.Tuple([spaces.Discrete(2)] * 2), x) for x in ((0,), (0, 2), 0, "01", (0, 1, 0))]
    + [(spaces.Dict(a=spaces.Discrete(2)), x) for x in ({}, {"a": 2}, {"b": 0}, {"a": 0, "b": 0}, 0)]
    + [(spaces.Text(2, charset="ab"), x) for x in ("abc", "c", 1)],
)
def test_observations_outside_of_their_space(space, value):
    with pytest.raises(GosprlError, match=r"^observation(\[\S+\])? left its space: expected an element of ") as caught:
        encoder(space, None).encode(value, {})
    assert not isinstance(caught.value, InputError)


def test_errors_name_the_part_of_an_observation():
    space = spaces.Dict(a=spaces.Tuple([spaces.Discrete(2), spaces.Discrete(3)]))
    with pytest.raises(GosprlError, match=r"^observation\['a'\]\[1\] left .* Discrete\(3\), got 7$"):
        encoder(space, None).encode({"a": (0, 7)}, {})


CART = gym.make("CartPole-v1")


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (
            spaces.Box(0, 1, (2,)),
            r"but observation is continuous, .*; use gymnasium\.wrappers\.DiscretizeObservation\(",
        ),
        (CART.observation_space, r"bound it with gymnasium\.wrappers\.TransformObservation\(.* then use .*Discretize"),
        (spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1)]), r"observation\[1\] is continuous, .*; give key=, a fun"),
        (spaces.Dict(a=spaces.Sequence(spaces.Box(0, 1))), r"observation\['a'\]\.feature_space is continuous"),
        (spaces.OneOf([spaces.Discrete(2), spaces.Box(0, 1)]), r"observation\[1\] is continuous"),
        (spaces.Graph(spaces.Discrete(2), spaces.Box(0, 1)), r"observation\.edge_space is continuous"),
        (spaces.Box(-np.inf, 1, (99,)), r"finitely many observations, but observation is continuous"),
    ],
)
def test_continuous_observations(space, words):
    with pytest.raises(InputError, match=f"^observation_space: .*{words}") as caught:
        encoder(space, None)
    assert "key=" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_advice_for_continuous_observations_works():
    low, high = np.full(4, -2, np.float32), np.full(4, 2, np.float32)
    env = gym.wrappers.TransformObservation(CART, lambda x: np.clip(x, low, high), spaces.Box(low, high))
    env = gym.wrappers.DiscretizeObservation(env, bins=10)
    code = encoder(env.observation_space, None)
    assert code.size == 10**4
    assert code.decode(code.encode(*env.reset(seed=0))) in env.observation_space


def test_a_space_that_is_none():
    with pytest.raises(InputError, match=r"^observation_space: expected a gymnasium\.Space or None, got int"):
        encoder(3, None)


# Without a space


@pytest.mark.parametrize("later", [True, 1.0, "1", None, (1,), [1], np.array([1]), Number.ONE])
def test_observations_keep_their_type(later):
    code = encoder(None, None)
    code.encode(1, {})
    code.encode(np.int64(2), {})
    with pytest.raises(GosprlError, match=r"^observation changed its type: expected int as before, got "):
        code.encode(later, {})
    assert code.encode(3, {}) == 3


def test_arrays_keep_their_dtype_and_may_change_their_shape():
    code = encoder(None, None)
    code.encode(np.array([1, 2]), {})
    code.encode(np.array([1, 2, 3]), {})
    with pytest.raises(GosprlError, match="expected array of dtype int64 as before, got array of dtype int32"):
        code.encode(np.array([1], dtype=np.int32), {})


def test_classes_of_ones_own_may_alternate():
    code = encoder(None, None)
    values = [Place(1), Pair(1, 2), Colour.RED, fractions.Fraction(1), Place(2)]
    assert [code.decode(code.encode(value, {})) for value in values] == values


# Keys of the user's own


def test_a_key_is_shown_as_it_is():
    code = encoder(CART.observation_space, lambda observation, info: (round(float(observation[0])), info["lives"]))
    key = code.encode(np.array([0.7, 0, 0, 0]), {"lives": 3})
    assert code.decode(key) == (1, 3)
    assert code.key_of((1, 3)) == key
    assert (code.size, code.first, code.numbered) == (None, 0, False)


def test_keys_of_different_types_do_not_collide():
    code = encoder(None, lambda observation, info: observation)
    values = [1, True, 1.0, "1", None, (1, 0), (True, 0), Number.ONE, np.float64(2)]
    keys = [code.encode(value, {}) for value in values]
    assert len(set(keys)) == len(values)
    assert [(type(x), x) for x in map(code.decode, keys)] == [(type(plainly(x)), plainly(x)) for x in values]


@pytest.mark.parametrize("value", [[1], {}, np.arange(2), ([1],), Plain(), (1, Plain()), float("nan"), Loose(1)])
def test_keys_that_cannot_be_used(value):
    with pytest.raises(InputError, match=r"^key: ") as caught:
        encoder(None, lambda observation, info: value).encode(0, {})
    assert "return a tuple" in str(caught.value)
    assert "give key=" not in str(caught.value)


@pytest.mark.parametrize("key", [3, "x", lambda observation: 1, lambda: 1, tuple])
def test_keys_that_are_no_function_of_two_arguments(key):
    with pytest.raises(InputError, match=r"^key: expected a function \(observation, info\) -> hashable value, got "):
        encoder(None, key)


def test_encoders_can_be_sent_to_other_processes():
    for space in (None, spaces.Discrete(3), spaces.Dict(a=spaces.MultiBinary(2), b=spaces.Text(3))):
        code = encoder(space, None)
        value = (1, Colour.RED) if space is None else space.sample()
        key = code.encode(value, {})
        assert pickle.loads(pickle.dumps(code)).encode(value, {}) == key
