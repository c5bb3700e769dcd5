"""TabularMDP: dense and sparse P against each other and against plain arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gosprl
from gosprl import TabularMDP

LOOP = np.ones((1, 1, 1))  # one state that stays


@st.composite
def weights(draw, states=5, actions=3):
    """[S, A, S] small whole numbers; a row of zeros is a missing action, and every state has an action."""
    S, A = draw(st.integers(1, states)), draw(st.integers(1, actions))
    flat = draw(st.lists(st.sampled_from([0, 0, 0, 1, 2, 7]), min_size=S * A * S, max_size=S * A * S))
    w = np.array(flat).reshape(S, A, S)
    for s in range(S):
        if not w[s].any():
            w[s, draw(st.integers(0, A - 1)), draw(st.integers(0, S - 1))] = 1
    return w


def probabilities(w):
    return w / np.maximum(w.sum(axis=2, keepdims=True), 1)


@given(weights())
@settings(max_examples=100, deadline=None)
def test_a_dense_mdp_has_the_rows_of_its_array(w):
    P = probabilities(w)
    mdp = TabularMDP(P)
    S, A, _ = P.shape
    pairs = [(s, a) for s in range(S) for a in range(A) if P[s, a].any()]
    assert (mdp.num_states, mdp.num_actions, len(mdp.rows)) == (S, A, len(pairs))
    assert [mdp.rows.pair(r) for r in range(len(pairs))] == pairs
    for r, (s, a) in enumerate(pairs):
        successors = np.flatnonzero(P[s, a])
        for states, p in (mdp.p(s, a), (x[mdp.ptr[r] : mdp.ptr[r + 1]] for x in (mdp.succ, mdp.prob))):
            np.testing.assert_array_equal(states, successors)
            np.testing.assert_allclose(p, P[s, a, successors], rtol=1e-15)
    np.testing.assert_allclose(mdp.dense(), P, rtol=1e-15)


@given(weights(), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_sparse_parts_in_any_order_with_repeats_and_zeros_are_the_dense_mdp(w, seed):
    P = probabilities(w)
    S, A, _ = P.shape
    rng = np.random.default_rng(seed)
    entries = []
    for s, a, s_next in np.ndindex(P.shape):
        pieces = rng.integers(0, 4)
        if P[s, a, s_next] > 0:
            entries += [(s, a, s_next, P[s, a, s_next] / (pieces + 1))] * (pieces + 1)
        else:
            entries += [(s, a, s_next, 0.0)] * pieces
    entries = [entries[i] for i in rng.permutation(len(entries))]
    sparse = TabularMDP(tuple(zip(*entries, strict=True)), states=S, actions=A)
    dense = TabularMDP(P)
    np.testing.assert_array_equal(sparse.rows.ptr, dense.rows.ptr)
    np.testing.assert_array_equal(sparse.rows.action, dense.rows.action)
    np.testing.assert_array_equal(sparse.ptr, dense.ptr)
    np.testing.assert_array_equal(sparse.succ, dense.succ)
    np.testing.assert_allclose(sparse.prob, dense.prob, rtol=1e-14)
    np.testing.assert_allclose(sparse.dense(), P, rtol=1e-14)


@given(weights(), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_parts_may_come_one_after_the_other(w, size):
    P = probabilities(w)
    S, A, _ = P.shape
    s, a, s_next = np.indices(P.shape)
    parts = [
        tuple(x[i : i + size].ravel() for x in (s, a, s_next, P)) for i in range(0, S, size)
    ]  # zeros included: a part may have no entry that counts
    pieced, whole = TabularMDP(iter(parts), states=S, actions=A), TabularMDP(P)
    assert pieced.rows.same(whole.rows)
    for name in ("ptr", "succ", "prob"):
        mine, expected = getattr(pieced, name), getattr(whole, name)
        assert mine.dtype == expected.dtype
        np.testing.assert_array_equal(mine, expected)


def test_parts_that_come_one_after_the_other_need_an_order_and_sizes():
    first, second = ([0, 0], [0, 1], [1, 0], [1, 1]), ([1], [0], [0], [1])
    with pytest.raises(gosprl.InputError, match=r"^states, actions: expected both with an iterator"):
        TabularMDP(iter([first, second]), states=2)
    with pytest.raises(
        gosprl.InputError, match=r"^P: expected parts of later rows .*got \(s, a\) = \(0, 0\) after them"
    ):
        TabularMDP(iter([second, first]), states=2, actions=2)
    with pytest.raises(gosprl.InputError, match=r"^P\[2\] \(s_next\): expected states in 0..1, got 2"):
        TabularMDP(iter([first, ([1], [0], [2], [1])]), states=2, actions=2)
    with pytest.raises(gosprl.InputError, match=r"^P: expected four arrays"):
        TabularMDP(iter([first[:3]]), states=2, actions=2)
    with pytest.raises(gosprl.InputError, match=r"every state needs at least one action, state 0 has none"):
        TabularMDP(iter([]), states=2, actions=2)


def test_numbers_of_states_and_actions_are_the_largest_that_occur_or_as_given():
    parts = ([0, 1, 2], [0, 1, 0], [1, 2, 0], [1.0, 1.0, 1.0])
    mdp = TabularMDP(parts)
    assert (mdp.num_states, mdp.num_actions) == (3, 2)
    mdp = TabularMDP(parts, states=3, actions=5)
    assert (mdp.num_states, mdp.num_actions, len(mdp.rows)) == (3, 5, 3)
    assert mdp.dense().shape == (3, 5, 3)


@pytest.mark.parametrize("excess", [9.9e-7, -9.9e-7])
def test_a_row_a_little_off_is_renormalised(excess):
    mdp = TabularMDP([[[0.25 * (1 + excess), 0.75 * (1 + excess)]], [[1, 0]]])
    np.testing.assert_allclose(mdp.p(0, 0)[1], [0.25, 0.75], rtol=1e-15)


@pytest.mark.parametrize("total", [1 + 1.01e-6, 1 - 1.01e-6, 0.5, 2])
def test_a_row_that_does_not_sum_to_one_is_named(total):
    P = np.zeros((2, 3, 2))
    P[:, 0] = P[:, 2] = [0.5, 0.5]
    P[1, 2] *= total
    with pytest.raises(gosprl.InputError, match=rf"^P: every row must sum to one .*\(1, 2\) sums to {total:.9g}$"):
        TabularMDP(P)
    s, a, s_next = np.nonzero(P)
    with pytest.raises(gosprl.InputError, match=r"\(s, a\) = \(1, 2\)"):
        TabularMDP((s, a, s_next, P[s, a, s_next]))


def test_attributes():
    mdp = TabularMDP([[[0, 1], [0, 0]], [[1, 0], [0.5, 0.5]]], start=1)
    assert (mdp.num_states, mdp.num_actions, mdp.start) == (2, 2, 1)
    assert (mdp.rewards, mdp.noise, mdp.name, mdp.map) == (None, "none", "mdp", None)
    assert repr(mdp) == "TabularMDP(mdp: 2 states, 3 pairs, start 1)"
    mdp = TabularMDP(LOOP, name="dot", map=["S"])
    assert (mdp.name, mdp.map, repr(mdp)) == ("dot", ("S",), "TabularMDP(dot: 1 states, 1 pairs, start 0)")


def test_the_array_given_is_not_kept():
    P = np.array([[[0.5, 0.5]], [[1.0, 0.0]]])
    mdp = TabularMDP(P)
    P[:] = 0
    mdp.dense()[:] = 0
    np.testing.assert_array_equal(mdp.dense(), [[[0.5, 0.5]], [[1, 0]]])


def test_rewards_stand_at_the_rows_of_their_pairs():
    P = np.zeros((3, 2, 3))
    P[0, 1, 1] = P[1, 0, 2] = P[1, 1, 0] = P[2, 0, 0] = 1
    mdp = TabularMDP(P, rewards=[[9, 1.5], [-2, 3], [0.25, 9]])
    np.testing.assert_array_equal(mdp.rewards, [1.5, -2, 3, 0.25])
    mdp = TabularMDP(P, rewards=np.full((3, 2), 0.5), noise="bernoulli")
    assert mdp.noise == "bernoulli"
    np.testing.assert_array_equal(mdp.rewards, [0.5] * 4)


def test_p_of_a_missing_action():
    with pytest.raises(gosprl.InputError, match="action 1 does not exist in state 0"):
        TabularMDP([[[1.0, 0], [0, 0]], [[0, 1], [1, 0]]]).p(0, 1)


@pytest.mark.parametrize("wrong", [-0.5, np.nan, np.inf, -np.inf])
def test_probabilities_must_be_finite_and_not_negative(wrong):
    P = np.array([[[0.0, 1.0]], [[1.0, wrong]]])
    expected = r"^P: expected probabilities >= 0, got .* at \(s, a, s_next\) = \(1, 0, 1\)"
    with pytest.raises(gosprl.InputError, match=expected):
        TabularMDP(P)
    with pytest.raises(gosprl.InputError, match=expected):
        TabularMDP(([0, 1, 1], [0, 0, 0], [1, 0, 1], [1.0, 1.0, wrong]))


@pytest.mark.parametrize(
    "P",
    [
        1.0,
        np.eye(2),
        np.ones((2, 1, 3)) / 3,
        np.zeros((0, 1, 0)),
        np.zeros((1, 0, 1)),
        ([0], [0], [0]),
        ([0, 1], [0, 0], [1.0]),
        [[[1.0]], [[1.0, 0.0]]],
    ],
    ids=["number", "2-d", "not square", "no states", "no actions", "three parts", "three unequal parts", "ragged"],
)
def test_the_shape_of_dense_probabilities(P):
    with pytest.raises(gosprl.InputError, match=r"^P: expected probabilities \[S, A, S\] or sparse parts"):
        TabularMDP(P)


@pytest.mark.parametrize("parts", [([0, 1], [0, 0], [0], [1.0, 1.0]), ([], [], [], []), ([[0]], [[0]], [[0]], [[1.0]])])
def test_sparse_parts_must_be_of_one_length(parts):
    with pytest.raises(gosprl.InputError, match=r"^P: expected four arrays \(s, a, s_next, p\) of one length"):
        TabularMDP(parts)


@pytest.mark.parametrize(
    ("parts", "sizes", "expected"),
    [
        (([0, 3], [0, 0], [0, 0], [1, 1]), {"states": 2}, r"^P\[0\] \(s\): expected states in 0..1, got 3 at index 1"),
        (([0, 1], [0, 2], [0, 0], [1, 1]), {"actions": 2}, r"^P\[1\] \(a\): expected actions in 0..1, got 2 at"),
        (([0, 1], [0, 0], [0, 2], [1, 1]), {"states": 2}, r"^P\[2\] \(s_next\): expected states in 0..1, got 2 at"),
        (([-1], [0], [0], [1]), {}, r"^P\[0\] \(s\): expected states"),
        (([0], [-1], [0], [1]), {"actions": 1}, r"^P\[1\] \(a\): expected actions"),
        (([0], [0], [-1], [1]), {}, r"^P\[2\] \(s_next\): expected states"),
        (([0.5], [0], [0], [1]), {"states": 1}, r"^P\[0\] \(s\): expected whole numbers"),
        (([np.nan], [0], [0], [1]), {}, r"^P\[0\] \(s\): expected whole numbers"),
        (([0], [0], [0], [1]), {"states": 0}, r"^states: expected a whole number >= 1, got 0"),
        (([0], [0], [0], [1]), {"actions": 1.5}, r"^actions: expected a whole number >= 1, got 1.5"),
        (LOOP, {"states": 2}, r"^states, actions: P has S = 1 and A = 1, got 2 and None"),
        (LOOP, {"actions": 2}, r"^states, actions: P has S = 1 and A = 1, got None and 2"),
    ],
)
def test_states_and_actions_beyond_the_sizes(parts, sizes, expected):
    with pytest.raises(gosprl.InputError, match=expected):
        TabularMDP(parts, **sizes)


@pytest.mark.parametrize(
    ("P", "states", "without"),
    [
        (np.zeros((2, 2, 2)), None, 0),
        ([[[0.5, 0.5]], [[0, 0]]], None, 1),
        (([0], [0], [1], [1.0]), None, 1),
        (([0], [0], [0], [1.0]), 3, 1),
        (([0, 1], [0, 0], [0, 0], [1.0, 0.0]), None, 1),
    ],
)
def test_every_state_has_an_action(P, states, without):
    with pytest.raises(gosprl.InputError, match=f"^actions: every state needs .* state {without} has none"):
        TabularMDP(P, states=states)


@pytest.mark.parametrize("start", [-1, 1, 0.5, np.nan, "0", None, True])
def test_start_must_be_a_state(start):
    with pytest.raises(gosprl.InputError, match=r"^start: expected"):
        TabularMDP(LOOP, start)


@pytest.mark.parametrize("start", [[0], [0, 0]])
def test_start_must_be_one_state(start):
    with pytest.raises(gosprl.InputError, match=r"^start: expected"):
        TabularMDP(LOOP, start)


def test_start_may_be_any_whole_number():
    assert [TabularMDP(np.ones((2, 1, 2)) / 2, one).start for one in (1, 1.0, np.int8(1))] == [1, 1, 1]


@pytest.mark.parametrize("rewards", [0.5, [0.5], np.ones((2, 1)), np.ones((1, 1, 1))])
def test_rewards_are_per_pair(rewards):
    with pytest.raises(gosprl.InputError, match=r"^rewards: expected mean rewards \[S, A\] = \(1, 1\), got shape"):
        TabularMDP(LOOP, rewards=rewards)


@pytest.mark.parametrize(
    ("noise", "mean", "expected"),
    [
        ("none", np.nan, "finite means, got nan"),
        ("none", np.inf, "finite means, got inf"),
        ("bernoulli", np.nan, r"means in \[0, 1\] with noise='bernoulli', got nan"),
        ("bernoulli", 1.001, r"means in \[0, 1\] with noise='bernoulli', got 1.001"),
        ("bernoulli", -0.001, r"means in \[0, 1\] with noise='bernoulli', got -0.001"),
    ],
)
def test_rewards_must_be_means(noise, mean, expected):
    P = np.ones((2, 2, 2)) / 2
    with pytest.raises(gosprl.InputError, match=rf"^rewards: expected {expected} at \(s, a\) = \(1, 0\)"):
        TabularMDP(P, rewards=[[0, 1], [mean, 0.5]], noise=noise)


def test_the_same_mdp_with_other_rewards():
    P = np.zeros((3, 2, 3))
    P[0, 1, 1] = P[1, 0, 2] = P[1, 1, 0] = P[2, 0, 0] = 1
    mdp = TabularMDP(P, 2, rewards=np.full((3, 2), 7.0), name="ring")
    paid = mdp.with_rewards([[9, 0.5], [0, 1], [0.25, 9]], noise="bernoulli")
    np.testing.assert_array_equal(paid.rewards, [0.5, 0, 1, 0.25])
    assert (paid.noise, paid.start, paid.name) == ("bernoulli", 2, "ring")
    np.testing.assert_array_equal(paid.dense(), P)
    by_state = mdp.with_rewards([0.5, 3, -1])
    np.testing.assert_array_equal(by_state.rewards, [0.5, 3, 3, -1])
    assert by_state.noise == "none"
    np.testing.assert_array_equal(mdp.rewards, [7.0] * 4)


@pytest.mark.parametrize(
    ("rewards", "noise", "message"),
    [
        (
            np.ones((2, 3)),
            "none",
            r"^rewards: expected mean rewards \[S, A\] = \(3, 2\) or \[S\] = \(3,\), got shape \(2, 3\)",
        ),
        (0.5, "none", r"^rewards: expected mean rewards"),
        (np.full(3, 1.5), "bernoulli", r"^rewards: expected means in \[0, 1\] with noise='bernoulli', got 1.5 at"),
        (np.ones(3), "gaussian", r"^noise: 'gaussian' is not known; known are bernoulli, none$"),
        ("high", "none", r"^rewards: expected numbers"),
    ],
)
def test_other_rewards_are_checked(rewards, noise, message):
    with pytest.raises(gosprl.InputError, match=message):
        TabularMDP(np.full((3, 2, 3), 1 / 3)).with_rewards(rewards, noise)


@pytest.mark.parametrize("noise", ["gaussian", None, 0])
def test_unknown_noise_lists_the_known(noise):
    with pytest.raises(gosprl.InputError, match=r"^noise: .* is not known; known are bernoulli, none$"):
        TabularMDP(LOOP, noise=noise)


def test_a_dense_copy_of_a_large_mdp_is_refused():
    ring = np.arange(7072)  # 7072 * 7072 is just above what is allowed
    mdp = TabularMDP((ring, 0 * ring, np.roll(ring, -1), np.ones(len(ring))))
    with pytest.raises(gosprl.InputError, match=r"^dense: expected at most 50000000 entries, got 7072 x 1 x 7072"):
        mdp.dense()
