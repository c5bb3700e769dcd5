"""Actions: which there are, and which of them a state offers."""

import itertools

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from gosprl import GosprlError, InputError
from gosprl.systems.offers import Actions

FOUR = spaces.Discrete(4)


def offered(mask, space=FOUR, given=None):
    return Actions(space, given).offered(0, {"action_mask": mask})


# Which actions there are


@pytest.mark.parametrize(
    ("space", "given", "values"),
    [
        (spaces.Discrete(3), None, [0, 1, 2]),
        (spaces.Discrete(3, start=-1), None, [-1, 0, 1]),
        (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2, start=5)]), None, [(0, 5), (0, 6), (1, 5), (1, 6)]),
        (spaces.Dict(a=spaces.Discrete(2)), None, [{"a": 0}, {"a": 1}]),
        (None, 3, [0, 1, 2]),
        (None, np.int64(2), [0, 1]),
        (None, ["left", "right"], ["left", "right"]),
        (None, ("x", None, 1, True, 1.0), ["x", None, 1, True, 1.0]),
        (spaces.Box(-1, 1), [-1.0, 1.0], [-1.0, 1.0]),
        (FOUR, 2, [0, 1]),
        (FOUR, [3, 1], [3, 1]),
    ],
)
def test_values(space, given, values):
    actions = Actions(space, given)
    assert list(actions.values) == values
    assert actions.count == len(values)
    assert actions.offered(0, {}) is None


def test_arrays_are_listed_with_the_last_component_fastest():
    actions = Actions(spaces.MultiDiscrete([2, 3], start=[1, 0]), None)
    assert [x.tolist() for x in actions.values] == [list(x) for x in itertools.product([1, 2], range(3))]
    actions = Actions(spaces.MultiBinary((2, 2)), None)
    assert [x.ravel().tolist() for x in actions.values] == [list(x) for x in itertools.product([0, 1], repeat=4)]
    assert {(x.dtype.name, x.shape) for x in actions.values} == {("int8", (2, 2))}


def test_values_may_be_anything():
    functions = [lambda: 1, lambda: 2]
    assert Actions(None, functions).values == functions
    rows = np.arange(6).reshape(3, 2)
    assert [x.tolist() for x in Actions(None, rows).values] == rows.tolist()


@pytest.mark.parametrize("given", [0, -1, True, "left", b"ab", [], {0, 1}, {"a": 1}, 2.0, [1, 1], ["a", "b", "a"]])
def test_actions_that_are_none(given):
    with pytest.raises(InputError, match=r"^actions: expected "):
        Actions(None, given)


@pytest.mark.parametrize(
    ("space", "given", "words"),
    [
        (None, None, r"^actions: expected the number of actions, a list .*, since the system has no action_space"),
        (
            spaces.Box(0, 1),
            None,
            r"^action_space: .*, got Box\(.*; use gymnasium\.wrappers\.DiscretizeAction\(.*actions=\[",
        ),
        (
            spaces.MultiBinary(14),
            None,
            r"^action_space: .* at most 10000 actions, got MultiBinary\(14\); use actions=\[",
        ),
        (spaces.Text(3), None, r"^action_space: .*actions="),
        (FOUR, 5, r"^actions: expected actions of Discrete\(4\), got 5, which stands for 0 \.\. 4"),
        (spaces.Discrete(4, start=1), 4, r"^actions: expected actions of Discrete\(4, start=1\)"),
        (FOUR, lambda: [0], "^actions: expected a function of one argument, the observation"),
    ],
)
def test_spaces_and_actions_that_do_not_do(space, given, words):
    with pytest.raises(InputError, match=words):
        Actions(space, given)


def test_arrays_of_a_space_are_handed_over_as_copies():
    pairs, own = spaces.MultiDiscrete([2, 2]), [np.array([0, 1])]
    for choose in (None, lambda observation: [0, 1]):
        actions = Actions(pairs, choose)
        actions.value(1)[:] = 7
        assert actions.value(1).tolist() == [0, 1]
    assert Actions(pairs, own).value(0) is own[0]


# Masks


@given(
    st.lists(st.booleans(), min_size=4, max_size=4).filter(any), st.sampled_from(["i1", "?", "u1", "i8", list, tuple])
)
def test_masks_of_all_kinds(bits, kind):
    mask = kind(bits) if kind in (list, tuple) else np.array(bits, dtype=kind)
    expected = tuple(i for i in range(4) if bits[i])
    actions = Actions(FOUR, None)
    for _ in range(2):
        assert actions.offered(0, {"action_mask": mask}) == (None if all(bits) else expected)


def test_no_mask_is_all():
    assert Actions(FOUR, None).offered(0, {"prob": 1}) is None
    assert offered(None) is None


@pytest.mark.parametrize(
    "mask",
    [
        np.ones(3, np.int8),
        np.ones((4, 1), bool),
        [1, 1, 1],
        [1, 0, 2, 0],
        [1, 0, -1, 0],
        np.array([1, 0, 3, 0], np.int8),
        np.ones(4),
        ["a"] * 4,
        "1101",
        1,
        {"a": 1},
        [[1], [1, 2]],
        (np.ones(2, np.int8),) * 2,
        [None] * 4,
    ],
)
def test_masks_that_are_wrong(mask):
    with pytest.raises(
        GosprlError, match=r"^info\['action_mask'\]: expected one 0 or 1 for each of the 4 actions, got "
    ):
        offered(mask)


def test_a_wrong_mask_is_refused_each_time():
    actions = Actions(FOUR, None)
    for _ in range(2):
        with pytest.raises(GosprlError, match="expected one 0 or 1"):
            actions.offered(0, {"action_mask": np.array([1, 0, 3, 0], np.int8)})


@pytest.mark.parametrize("mask", [np.zeros(4, np.int8), [False] * 4])
def test_nothing_offered(mask):
    with pytest.raises(GosprlError, match=r"^info\['action_mask'\] offers no action; return terminated=True where"):
        offered(mask)


def test_many_masks():
    space = spaces.Discrete(13)
    actions = Actions(space, None)
    for number in range(1, 2**13 - 1):  # more than are remembered
        mask = np.array([number >> i & 1 for i in range(13)], np.int8)
        assert actions.offered(0, {"action_mask": mask}) == tuple(np.flatnonzero(mask).tolist())


def test_masks_are_about_the_space_where_some_actions_are_used():
    assert offered([1, 0, 0, 1], given=[3, 1]) == (0,)
    assert offered([1, 1, 0, 0], given=[3, 1]) == (1,)
    assert offered([0, 1, 0, 1], given=[3, 1]) is None
    assert offered([0, 1, 0, 0], given=3) == (1,)
    with pytest.raises(GosprlError, match="offers none of the actions given with actions="):
        offered([1, 0, 1, 0], given=[3, 1])
    assert offered([1, 0], space=spaces.Box(-1, 1), given=[-1.0, 1.0]) == (0,)
    assert offered([0, 1, 0], space=None, given=["a", "b", "c"]) == (1,)
    pairs = spaces.MultiDiscrete([2, 2])
    assert offered([1, 0, 0, 1], space=pairs, given=[np.array([1, 1]), np.array([0, 1])]) == (0,)


# Functions of the user's own


@pytest.mark.parametrize(
    ("space", "answer", "expected"),
    [
        (FOUR, [2, 0], (0, 2)),
        (FOUR, (3,), (3,)),
        (FOUR, range(4), None),
        (FOUR, np.array([1, 2]), (1, 2)),
        (FOUR, np.array([True, False, False, True]), (0, 3)),
        (FOUR, np.array([1, 0, 0, 1], np.int8), (0, 3)),
        (FOUR, [True, False, False, True], (0, 3)),
        (FOUR, {1, 2}, (1, 2)),
        (FOUR, iter([np.int64(1)]), (1,)),
        (spaces.Discrete(3, start=5), [5, 7], (0, 2)),
        (spaces.MultiDiscrete([2, 2]), [np.array([1, 0])], (2,)),
        (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]), [(0, 1), (1, 1)], (1, 3)),
    ],
)
def test_functions_return_values_or_masks(space, answer, expected):
    assert Actions(space, lambda observation: answer).offered(0, {}) == expected


def test_functions_see_the_observation():
    actions = Actions(FOUR, lambda observation: observation)
    assert [actions.offered(x, {}) for x in ([1], [0, 3])] == [(1,), (0, 3)]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "^actions: expected the function to return action values or a mask, got None"),
        (2, "expected the function to return action values or a mask, got 2"),
        ("01", "expected the function to return action values or a mask"),
        ([4], r"^actions: expected values among \[0, 1, 2, 3\], got 4"),
        ([-1], "got -1"),
        (["left"], "got 'left'"),
        ([1.0], r"got 1\.0"),
        ([], "^actions: the function offers no action"),
        ([1, 0, 1, 1], "expected the function to return each action once, .* a mask, make it one of bools"),
        (np.zeros(4, bool), "^actions: the mask returned offers no action"),
        (np.ones(3, bool), "^actions: the mask returned: expected one 0 or 1 for each of the 4 actions"),
    ],
)
def test_functions_that_return_something_else(answer, words):
    with pytest.raises(GosprlError, match=words):
        Actions(FOUR, lambda observation: answer).offered(0, {})


def test_a_function_and_a_mask_must_agree():
    actions = Actions(FOUR, lambda observation: [0, 3])
    assert actions.offered(0, {"action_mask": [1, 0, 0, 1]}) == (0, 3)
    with pytest.raises(
        GosprlError, match=r"the function returned \[0, 3\], but info\['action_mask'\] says \[0, 1, 3\]"
    ):
        actions.offered(0, {"action_mask": [1, 1, 0, 1]})
    with pytest.raises(GosprlError, match=r"says \[0, 1, 2, 3\]; make them agree"):
        actions.offered(0, {"action_mask": [1, 1, 1, 1]})


def test_actions_that_only_the_function_knows():
    moves = {"hall": ["north", "south"], "attic": ["down", "north"]}
    actions = Actions(None, moves.__getitem__)
    assert (actions.count, list(actions.values)) == (None, [])
    assert actions.offered("hall", {}) == (0, 1)
    assert actions.offered("attic", {"action_mask": [1]}) == (0, 2)
    assert actions.offered("hall", {}) == (0, 1)
    assert list(actions.values) == ["north", "south", "down"]
    assert actions.count is None


def test_methods_are_the_same_action_each_time():
    class Door:
        def open(self):
            pass

        def close(self):
            pass

    door = Door()
    actions = Actions(None, lambda observation: [door.open, door.close][:observation])
    assert [actions.offered(n, {}) for n in (1, 2, 1)] == [(0,), (0, 1), (0,)]
    assert actions.values == [door.open, door.close]
    with pytest.raises(InputError, match="expected each action once"):
        Actions(None, [door.open, door.open])


def test_values_that_are_equal_only_in_python_are_different_actions():
    actions = Actions(None, lambda observation: [1, True, "1", 1.0])
    assert actions.offered(0, {}) == (0, 1, 2, 3)
