"""All forms in which successors can be given, against plain lists."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import gosprl
from gosprl import InputError, TabularMDP
from gosprl.mdp.rows import Rows
from gosprl.model.successors import as_candidates


@st.composite
def possible(draw):
    """Draw which pairs exist [S, A], and candidates [S, A, S]: at least one for existing pairs, any for others."""
    S, A = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    exists = rng.random((S, A)) < 0.7
    exists[np.arange(S), rng.integers(A, size=S)] = True
    mask = rng.random((S, A, S)) < draw(st.sampled_from([0.1, 0.5, 1.0]))
    mask[exists, rng.integers(S, size=exists.sum())] = True
    return exists, mask


def lists(candidates):
    """The candidates of every row."""
    ends = zip(candidates.ptr[:-1], candidates.ptr[1:], strict=True)
    return [candidates.succ[begin:end].tolist() for begin, end in ends]


def only(exists, mask):
    """Return the candidates without those of pairs that do not exist."""
    return mask & exists[:, :, None]


def shuffled_entries(matrix):
    """The same matrix with every entry stored twice, in random order, among explicit zeros."""
    rng = np.random.default_rng(0)
    entries = [(i, j, value) for (i, j), value in np.ndenumerate(matrix) for _ in range(2)]
    row, column, value = np.array(entries).reshape(-1, 3)[rng.permutation(len(entries))].T
    return sparse.coo_array((value.astype(float), (row, column)), shape=matrix.shape)


FORMS = {
    "bool array": lambda exists, mask: mask,
    "without what does not exist": only,
    "csr": lambda exists, mask: sparse.csr_array(mask.reshape(-1, len(mask))),
    "csc matrix of numbers": lambda exists, mask: sparse.csc_matrix(0.25 * mask.reshape(-1, len(mask))),
    "entries twice and zeros": lambda exists, mask: shuffled_entries(mask.reshape(-1, len(mask))),
    "callable": lambda exists, mask: lambda s, a: np.flatnonzero(mask[s, a]),
    "callable, a generator": lambda exists, mask: lambda s, a: (int(x) for x in np.flatnonzero(mask[s, a])),
    "callable, unsorted twice": lambda exists, mask: lambda s, a: [*np.flatnonzero(mask[s, a])[::-1]] * 2,
    "callable, a set": lambda exists, mask: lambda s, a: set(np.flatnonzero(mask[s, a]).tolist()),
    "mdp": lambda exists, mask: TabularMDP(only(exists, mask) / np.maximum(1, mask.sum(axis=2, keepdims=True))),
}


@pytest.mark.parametrize("form", FORMS)
@given(possible())
@settings(max_examples=40, deadline=None)
def test_every_form_means_the_same(form, problem):
    exists, mask = problem
    candidates = as_candidates(FORMS[form](exists, mask), Rows.build(len(mask), exists))
    assert lists(candidates) == [np.flatnonzero(mask[s, a]).tolist() for s, a in np.argwhere(exists)]
    assert (candidates.ptr.dtype, candidates.succ.dtype) == (np.int64, np.int32)


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array, sparse.lil_matrix])
@given(possible())
@settings(max_examples=20, deadline=None)
def test_one_row_a_state_is_meant_for_all_its_actions(as_given, problem):
    exists, mask = problem
    mask = mask.any(axis=1)
    candidates = as_candidates(as_given(mask), Rows.build(len(mask), exists))
    assert lists(candidates) == [np.flatnonzero(mask[s]).tolist() for s, _ in np.argwhere(exists)]


def test_a_callable_is_asked_once_for_each_existing_pair():
    asked = []
    as_candidates(lambda s, a: asked.append((s, a)) or [0], Rows.build(3, np.eye(3, 2, dtype=bool) | [True, False]))
    assert asked == [(0, 0), (1, 0), (1, 1), (2, 0)]
    assert {type(x) for pair in asked for x in pair} == {int}


def test_what_is_given_is_left_alone():
    matrix = sparse.csr_array((np.array([1.0, 0.0, 1.0]), np.array([1, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    mdp = gosprl.envs.make("riverswim6")
    before = [part.copy() for part in (matrix.data, matrix.indices, matrix.indptr, mdp.ptr, mdp.succ)]
    for candidates in (as_candidates(matrix, Rows.build(2, 1)), as_candidates(mdp, mdp.rows)):
        candidates.succ[:] = 0
        candidates.ptr[:] = 0
    after = [matrix.data, matrix.indices, matrix.indptr, mdp.ptr, mdp.succ]
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))


# Bad input; 2 states, 3 actions of which (1, 2) does not exist

ROWS = Rows.build(2, np.array([[True, True, True], [True, True, False]]))
FULL = np.ones((2, 3, 2), dtype=bool)


@pytest.mark.parametrize(
    ("successors", "expected"),
    [
        (np.ones((2, 2, 2), bool), "a bool array [S, A, S] = (2, 3, 2) or [S, S] = (2, 2)"),
        (np.ones((2, 2, 2), bool), "got bool of shape (2, 2, 2)"),
        (np.ones((6, 2), bool), "got bool of shape (6, 2)"),
        (np.ones((2, 3, 2)), "got float64 of shape (2, 3, 2)"),
        (np.ones((2, 2), int), "got int64 of shape (2, 2)"),
        ([[0], [0, 1]], "got list"),
        (None, "got NoneType"),
        (7, "got int64 of shape ()"),
        (sparse.csr_array(np.ones((5, 2))), "[S * A, S] = (6, 2) with row s * A + a, or [S, S] = (2, 2), got float64"),
        (sparse.csr_array(np.ones((2, 6))), "of shape (2, 6)"),
        (sparse.csr_array(np.ones((6, 2), complex)), "got complex128 of shape (6, 2)"),
        (TabularMDP(np.ones((2, 2, 2)) / 2), "an MDP with S = 2 states and A = 3 actions, got one with 2 and 2"),
        (TabularMDP(np.ones((3, 3, 3)) / 3), "an MDP with S = 2 states and A = 3 actions, got one with 3 and 3"),
        (FULL & (np.arange(3) != 1)[:, None], "at least one candidate of every pair, (s, a) = (0, 1) has none"),
        (np.array([[True, True], [False, False]]), "(s, a) = (1, 0) has none"),
        (sparse.csr_array(np.eye(6, 2)), "(s, a) = (0, 2) has none"),
        (TabularMDP(np.eye(2)[:, None, :] * np.array([1, 0, 1])[:, None]), "(s, a) = (0, 1) has none"),
        (lambda s, a: [] if (s, a) == (1, 1) else [0], "(s, a) = (1, 1) has none"),
        (lambda s, a: [0, 2] if (s, a) == (1, 0) else [0], "of (s, a) = (1, 0), whole numbers in 0..1, got 2"),
        (lambda s, a: [0, -1] if (s, a) == (0, 2) else [0], "of (s, a) = (0, 2), whole numbers in 0..1, got -1"),
        (
            lambda s, a: [1, 2**80] if (s, a) == (0, 2) else [0],
            f"of (s, a) = (0, 2), whole numbers in 0..1, got {2**80}",
        ),
        (lambda s, a: [0.5] if a else [0], "of (s, a) = (0, 1), whole numbers in 0..1, got 0.5"),
        (lambda s, a: [True, False], "of (s, a) = (0, 0), whole numbers in 0..1, got True"),
        (lambda s, a: np.array([True, False]), "of (s, a) = (0, 0), whole numbers in 0..1, got np.True_"),
        (lambda s, a: [[0, 1]], "of (s, a) = (0, 0), whole numbers in 0..1, got [0, 1]"),
        (lambda s, a: "01", "of (s, a) = (0, 0), whole numbers in 0..1, got '0'"),
        (lambda s, a: 1, "of (s, a) = (0, 0), whole numbers in 0..1, got 1"),
        (lambda s, a: None, "of (s, a) = (0, 0), whole numbers in 0..1, got None"),
    ],
)
def test_bad_input_is_named(successors, expected):
    with pytest.raises(InputError, match=r"^successors: expected .*" + re.escape(expected)):
        as_candidates(successors, ROWS)


def test_what_is_good_about_the_same_rows():
    assert lists(as_candidates(lambda s, a: range(2 - s), ROWS)) == [[0, 1]] * 3 + [[0]] * 2


def test_an_error_inside_the_callable_is_its_own():
    def broken(s, a):
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        as_candidates(broken, ROWS)


def test_a_grid_of_a_hundred_thousand_states():
    """The candidates of the MDP and of a matrix with its 1.6 million transitions agree."""
    mdp = gosprl.envs.make("open_grid", rows=316, columns=316)
    matrix = sparse.csr_array((mdp.prob, mdp.succ, mdp.ptr), shape=(len(mdp.rows), mdp.num_states))
    model = gosprl.EmpiricalModel(mdp.num_states, 4, matrix)
    other = gosprl.EmpiricalModel.over(mdp.rows)
    other.restrict(mdp)
    assert model.num_candidates == other.num_candidates == len(mdp.succ) > 1_500_000
    s, a, s_next = mdp.rows.state, mdp.rows.action, mdp.succ[mdp.ptr[1:] - 1]
    for known in (model, other):
        known.update(s, a, s_next)
        for part, expected in zip(known.transitions(), (s, a, s_next, np.ones(len(s))), strict=True):
            assert np.array_equal(part, expected)
