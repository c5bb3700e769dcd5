"""Rows against a plain list of the existing pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gosprl
from gosprl.mdp.rows import Rows


@st.composite
def masks(draw):
    """bool [S, A] with an action in every state."""
    S, A = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    mask = np.array(draw(st.lists(st.booleans(), min_size=S * A, max_size=S * A))).reshape(S, A)
    mask[np.arange(S), draw(st.lists(st.integers(0, A - 1), min_size=S, max_size=S))] = True
    return mask


@given(masks())
@settings(max_examples=200, deadline=None)
def test_rows_number_the_pairs_state_by_state(mask):
    rows = Rows.build(len(mask), mask)
    S, A = mask.shape
    pairs = [(s, a) for s in range(S) for a in range(A) if mask[s, a]]
    assert (rows.num_states, rows.num_actions, len(rows)) == (S, A, len(pairs))
    assert [rows.pair(r) for r in range(len(rows))] == pairs
    assert list(zip(rows.state, rows.action, strict=True)) == pairs
    for s in range(S):
        assert pairs[rows.ptr[s] : rows.ptr[s + 1]] == [(s, a) for a in range(A) if mask[s, a]]
    for r, (s, a) in enumerate(pairs):
        assert rows.index(s, a) == r
    np.testing.assert_array_equal(rows.index(*np.array(pairs).T), np.arange(len(pairs)))


@given(masks())
@settings(max_examples=50, deadline=None)
def test_missing_pairs_are_named(mask):
    rows = Rows.build(len(mask), mask)
    for s, a in np.argwhere(~mask):
        with pytest.raises(gosprl.InputError, match=f"^a: action {a} does not exist in state {s}$"):
            rows.index(s, a)


@given(masks(), st.sampled_from([np.int64, np.float64, bool]))
@settings(max_examples=50, deadline=None)
def test_to_dense_puts_each_row_at_its_pair(mask, dtype):
    rows = Rows.build(len(mask), mask)
    per_row = np.arange(1, len(rows) + 1).astype(dtype)
    dense = rows.to_dense(per_row)
    assert dense.dtype == dtype
    assert dense.shape == mask.shape
    np.testing.assert_array_equal(dense[mask], per_row)
    assert not dense[~mask].any()


def test_all_actions_exist_when_their_number_is_given():
    rows = Rows.build(3, 2)
    assert [rows.pair(r) for r in range(len(rows))] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert rows.ptr.tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("mask", [np.ones((2, 3), dtype=bool), np.array([[True, True, False], [False, True, True]])])
def test_index_keeps_the_shape(mask):
    rows = Rows.build(2, mask)
    index = rows.index([[0, 1], [1, 0]], [[1, 1], [2, 0]])
    assert [[rows.pair(r) for r in line] for line in index] == [[(0, 1), (1, 1)], [(1, 2), (0, 0)]]
    assert rows.index([], []).shape == (0,)


def test_index_names_the_first_missing_of_many():
    rows = Rows.build(2, [[True, False], [True, True]])
    with pytest.raises(gosprl.InputError, match="action 1 does not exist in state 0"):
        rows.index([1, 1, 0, 0], [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("s", "a", "expected"),
    [
        (2, 0, r"^s: expected states in 0..1, got 2$"),
        (-1, 0, r"^s: expected states in 0..1, got -1$"),
        ([0, 5], [0, 0], r"^s: expected states in 0..1, got 5 at index 1$"),
        (0, 2, r"^a: expected actions in 0..1, got 2$"),
        (0, -1, r"^a: expected actions in 0..1, got -1$"),
        (0.5, 0, r"^s: expected whole numbers \(states\), got float64 values such as 0.5"),
        (0, "left", r"^a: expected whole numbers \(actions\)"),
        ([0, 1], [0], r"^s, a: expected arrays of one shape, got \(2,\) and \(1,\)"),
        ([0, 1], 0, r"^s, a: expected arrays of one shape"),
    ],
)
def test_index_rejects(s, a, expected):
    with pytest.raises(gosprl.InputError, match=expected):
        Rows.build(2, 2).index(s, a)


@pytest.mark.parametrize(
    ("states", "actions", "expected"),
    [
        (0, 1, "^states: expected a whole number >= 1, got 0"),
        (2.0, 1, "^states: expected a whole number >= 1, got 2.0"),
        (True, 1, "^states: expected a whole number >= 1, got True"),
        (2, 0, "^actions: expected a whole number >= 1, got 0"),
        (2, -3, "^actions: expected a whole number >= 1, got -3"),
        (2, 1.5, "^actions: expected a whole number >= 1, got 1.5"),
        (2, None, "^actions: expected a whole number >= 1, got None"),
        (
            2,
            [True, True],
            r"^actions: expected their number, or a bool mask \[S, A\] with S = 2, got bool of shape \(2,\)",
        ),
        (2, np.ones((3, 2), dtype=bool), r"^actions: .* with S = 2, got bool of shape \(3, 2\)"),
        (2, np.ones((2, 2), dtype=int), r"^actions: .* got int64 of shape \(2, 2\)"),
        (2, [[True, False], [False, False]], "^actions: every state needs at least one action, state 1 has none"),
        (2, np.ones((2, 0), dtype=bool), "^actions: every state needs at least one action, state 0 has none"),
    ],
)
def test_build_rejects(states, actions, expected):
    with pytest.raises(gosprl.InputError, match=expected):
        Rows.build(states, actions)
