"""EmpiricalModel against counts in plain dictionaries, and invalid input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_counts import TWO, PlainCounts, batches, snapshot

import gosprl
from gosprl import EmpiricalModel


@given(batches(), st.data())
@settings(max_examples=150, deadline=None)
def test_updates_in_any_pieces(batches, data):
    mask, pieces = batches
    model, ledger = EmpiricalModel(len(mask), mask), PlainCounts(mask)
    marks = []
    for piece in pieces:
        marks.append((model.mark(), len(ledger.log)))
        for transition in piece:
            ledger.add(*transition)
        if piece:
            row, s_next, reward = zip(*piece, strict=True)
            s, a = zip(*(ledger.pairs[r] for r in row), strict=True)
        if len(piece) == 1 and data.draw(st.booleans()):
            model.update(s[0], a[0], s_next[0], reward[0])
        elif piece:
            model.update(s, a, s_next, reward)
        else:
            model.update([], [], [])
        for mark, position in marks:
            assert model.changed(mark).tolist() == ledger.changed_since(position)
    assert model.changed(model.mark()).tolist() == []
    assert model.changed(0).tolist() == ledger.changed_since(0)
    ledger.check(model)
    rows = np.array(data.draw(st.lists(st.integers(0, len(ledger.pairs) - 1), max_size=6)), dtype=np.int64)
    ledger.check_stored(model, rows)


@pytest.mark.parametrize("seed", range(3))
def test_many_successors_outgrow_the_room(seed):
    """Rows grow alternately to up to 60 successors, in batches of 1 to 400 updates."""
    rng = np.random.default_rng(seed)
    mask = rng.random((60, 3)) < 0.6
    mask[:, 1] = True
    model, ledger = EmpiricalModel(60, mask), PlainCounts(mask)
    marks = []
    for size in rng.integers(1, 400, size=40):
        marks.append((model.mark(), len(ledger.log)))
        row, s_next = rng.integers(len(ledger.pairs), size=size), rng.integers(60, size=size)
        reward = rng.integers(0, 9, size=size) / 8
        for transition in zip(row.tolist(), s_next.tolist(), reward.tolist(), strict=True):
            ledger.add(*transition)
        model.update(*np.array(ledger.pairs)[row].T, s_next, reward)
    ledger.check(model)
    ledger.check_stored(model, rng.permutation(len(ledger.pairs)))
    for mark, position in marks:
        assert model.changed(mark).tolist() == ledger.changed_since(position)


def test_one_row_with_every_successor():
    order = np.random.default_rng(0).permutation(5000)
    model = EmpiricalModel(5000, 1)
    model.update(np.full(5000, 7), np.zeros(5000), order)
    ptr, succ, count, first = model.stored(np.array([7]))
    np.testing.assert_array_equal(ptr, [0, 5000])
    np.testing.assert_array_equal(succ, order)
    np.testing.assert_array_equal(count, np.ones(5000))
    np.testing.assert_array_equal(first, np.arange(1, 5001))
    np.testing.assert_array_equal(model.p_hat(7, 0)[0], np.arange(5000))


def test_a_million_updates_in_one_call():
    rng = np.random.default_rng(1)
    n, S, A = 1_000_000, 200, 4
    s, a, s_next, reward = (
        rng.integers(S, size=n),
        rng.integers(A, size=n),
        rng.integers(S, size=n),
        rng.integers(2, size=n),
    )
    model = EmpiricalModel(S, A)
    model.update(s, a, s_next, reward)
    assert model.mark() == n
    key, count = np.unique((s * A + a) * S + s_next, return_counts=True)
    got = model.transitions()
    for part, expected in zip(got, (key // S // A, key // S % A, key % S, count), strict=True):
        np.testing.assert_array_equal(part, expected)
    np.testing.assert_array_equal(model.visits, np.bincount(s * A + a, minlength=S * A))
    ones = np.bincount(s * A + a, weights=reward, minlength=S * A)
    np.testing.assert_array_equal(model.reward_sum, ones)
    np.testing.assert_array_equal(model.reward_sq, ones)


def test_stored_and_first_visits_by_hand():
    model = EmpiricalModel(2, TWO)
    model.update([1, 1, 0, 1, 1], [1, 1, 0, 1, 0], [1, 1, 1, 0, 0], [1.0, 2.0, 0.5, -3.0, 0.0])
    parts = [part.tolist() for part in model.stored()]
    assert parts == [[0, 1, 2, 4], [1, 0, 1, 0], [1, 1, 2, 1], [1, 1, 1, 3]]
    parts = [part.tolist() for part in model.stored(np.array([2, 0]))]
    assert parts == [[0, 2, 3], [1, 0, 1], [2, 1, 1], [1, 3, 1]]
    assert model.changed(0).tolist() == [1, 2, 0]
    assert model.changed(2).tolist() == [1, 2, 0]
    assert model.changed(3).tolist() == [1, 2]
    assert model.changed(4).tolist() == [1]
    assert model.reward_sum.tolist() == [0.5, 0, 0]
    assert model.reward_sq.tolist() == [0.25, 0, 14]


def test_a_new_model_knows_nothing():
    model = EmpiricalModel(3, 2)
    assert (model.num_states, model.num_actions, len(model.rows), list(model.states)) == (3, 2, 6, [0, 1, 2])
    assert [len(part) for part in model.p_hat(1, 1)] == [0, 0]
    assert [len(part) for part in model.transitions()] == [0] * 4
    assert not model.dense().any()
    assert (model.mark(), model.changed(0).tolist()) == (0, [])
    assert repr(model) == "EmpiricalModel(3 states, 6 pairs, 0 visits, 0 transitions)"


def test_one_reward_for_all():
    model = EmpiricalModel(2, 1)
    model.update([0, 1, 0], [0, 0, 0], [1, 0, 0], 0.5)
    assert model.reward_sum.tolist() == [1.0, 0.5]
    assert model.reward_sq.tolist() == [0.5, 0.25]


@pytest.mark.parametrize("name", ["visits", "reward_sum", "reward_sq"])
def test_sums_are_read_only(name):
    model = EmpiricalModel(2, 2)
    array = getattr(model, name)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_what_is_returned_does_not_reach_into_the_model():
    model = EmpiricalModel(2, TWO)
    model.update([0, 1, 1], [0, 1, 1], [1, 0, 1])
    before = snapshot(model)
    rows = np.array([0, 2])
    for arrays in (model.stored(), model.stored(rows), model.transitions(), model.p_hat(1, 1), [model.changed(0)]):
        for array in arrays:
            array[:] = 9
    model.dense()[:] = 9
    assert snapshot(model) == before


@given(batches())
@settings(max_examples=50, deadline=None)
def test_from_transitions_is_an_update_of_a_new_model(batches):
    mask, pieces = batches
    ledger = PlainCounts(mask)
    together = [transition for piece in pieces for transition in piece]
    for transition in together:
        ledger.add(*transition)
    row, s_next, reward = np.array(together).reshape(-1, 3).T
    s, a = np.array(ledger.pairs)[row.astype(int)].T
    ledger.check(EmpiricalModel.from_transitions(s, a, s_next, states=len(mask), actions=mask, rewards=reward))


def test_from_transitions_without_rewards():
    model = EmpiricalModel.from_transitions([0, 1], [1, 0], [1, 1], states=2, actions=2)
    assert model.visits.tolist() == [0, 1, 1, 0]
    assert model.reward_sum.tolist() == [0] * 4


@given(batches(), st.data())
@settings(max_examples=100, deadline=None)
def test_from_counts_and_then_updates(batches, data):
    """The first batch is given as counts, split, shuffled and with zeros; the others as transitions."""
    mask, pieces = batches
    S = len(mask)
    ledger = PlainCounts(mask)
    old, new = (pieces[0] if pieces else []), [t for piece in pieces[1:] for t in piece]
    for row, s_next, _ in sorted(old):
        ledger.add(row, s_next)
    parts = [(row, s_next, 1) for row, s_next, _ in old]
    parts += [
        (r, x, 0) for r, x in data.draw(st.lists(st.tuples(st.integers(0, mask.sum() - 1), st.integers(0, S - 1))))
    ]
    row, s_next, count = np.array(data.draw(st.permutations(parts)), dtype=int).reshape(-1, 3).T
    s, a = np.array(ledger.pairs)[row].T
    model = EmpiricalModel.from_counts(s, a, s_next, count, states=S, actions=mask)
    assert model.changed(0).tolist() == sorted({row for row, _, _ in old}, reverse=True)
    for r in range(len(ledger.pairs)):  # when these were first seen is not known
        ledger.appeared[r] = [(x, 0) for x, _ in ledger.appeared[r]]
    ledger.check(model)
    mark = model.mark()
    ledger.log.clear()
    for row, s_next, reward in new:
        ledger.add(row, s_next, reward)
        model.update(*ledger.pairs[row], s_next, reward)
    ledger.check(model)
    assert model.changed(mark).tolist() == ledger.changed_since(0)


def test_from_counts_by_hand():
    parts = ([1, 0, 1, 1, 0], [1, 0, 1, 1, 0], [1, 1, 0, 1, 0], [3, 5, 2, 4, 0])
    model = EmpiricalModel.from_counts(*parts, states=2, actions=TWO)
    assert [part.tolist() for part in model.transitions()] == [[0, 1, 1], [0, 1, 1], [1, 0, 1], [5, 2, 7]]
    assert model.visits.tolist() == [5, 0, 9]
    model.update(1, 1, 0)
    model.update(1, 0, 0)
    assert [part.tolist() for part in model.p_hat(1, 1)] == [[0, 1], [0.3, 0.7]]
    assert model.visits.tolist() == [5, 1, 10]
    assert model.stored(np.array([1]))[3].tolist() == [1]


def test_large_counts_are_exact():
    model = EmpiricalModel.from_counts([0, 0], [0, 0], [0, 1], [2**61 + 1, 2**60], states=2, actions=1)
    model.update(0, 0, 0)
    assert model.transitions()[3].tolist() == [2**61 + 2, 2**60]
    assert model.visits.tolist() == [2**61 + 2**60 + 2, 0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((2, 0, 0), r"^s: expected states in 0..1, got 2"),
        ((-1, 0, 0), r"^s: expected states in 0..1, got -1"),
        ((0, 2, 0), r"^a: expected actions in 0..1, got 2"),
        ((0, -1, 0), r"^a: expected actions in 0..1, got -1"),
        ((0, 0, 2), r"^s_next: expected states in 0..1, got 2"),
        ((0, 0, -1), r"^s_next: expected states in 0..1, got -1"),
        ((0, 1, 0), r"^a: action 1 does not exist in state 0"),
        ((0.5, 0, 0), r"^s: expected whole numbers"),
        ((0, 0, 0.5), r"^s_next: expected whole numbers"),
        ((None, 0, 0), r"^s: expected whole numbers"),
        (([0, 1], [0, 0], [0, 2]), r"^s_next: expected states in 0..1, got 2 at index 1"),
        (([1, 0], [1, 1], [0, 0]), r"^a: action 1 does not exist in state 0"),
        (([0, 1], [0, 0], [0]), r"^s, a, s_next: expected numbers or arrays of one length, got \(2,\), \(1,\)"),
        (([0, 1], [0, 0], 0), r"^s, a, s_next: expected numbers or arrays of one length"),
        (([0, 1], [0], [0, 0]), r"^s, a: expected arrays of one shape"),
        (([[0]], [[0]], [[0]]), r"^s, a, s_next: expected numbers or arrays of one length"),
        ((0, 0, 0, np.nan), r"^reward: expected finite numbers"),
        ((0, 0, 0, np.inf), r"^reward: expected finite numbers"),
        (([0, 1], [0, 0], [0, 0], [1.0, np.nan]), r"^reward: expected finite numbers"),
        (([0, 1], [0, 0], [0, 0], [1.0]), r"^reward: expected a number or one per transition, got \(1,\) for 2"),
        ((0, 0, 0, [1.0, 2.0]), r"^reward: expected a number or one per transition, got \(2,\) for 1"),
    ],
)
def test_a_failing_update_leaves_the_model_as_it_was(arguments, expected):
    model = EmpiricalModel(2, TWO)
    model.update([0, 1, 1, 1], [0, 1, 0, 1], [1, 0, 1, 1], [1, 2, 3, 4])
    before = snapshot(model)
    with pytest.raises(gosprl.InputError, match=expected):
        model.update(*arguments)
    assert snapshot(model) == before


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (([0], [0], [0], [-1]), r"^count: expected numbers of visits .*got -1"),
        (([0], [0], [0], [1.5]), r"^count: expected whole numbers \(numbers of visits\)"),
        (([0], [0], [0], [np.nan]), r"^count: expected whole numbers"),
        (([0], [0], [0], np.array([2**63], dtype=np.uint64)), r"^count: expected"),
        (([0, 0], [0, 0], [0, 1], [1]), r"^s, a, s_next, count: expected arrays of one length"),
        (([0], [0], [0, 1], [1, 1]), r"^s, a, s_next, count: expected arrays of one length"),
        (([[0]], [[0]], [[0]], [[1]]), r"^s, a, s_next, count: expected arrays of one length"),
        (([2], [0], [0], [1]), r"^s: expected states in 0..1, got 2"),
        (([0], [0], [2], [0]), r"^s_next: expected states in 0..1, got 2"),
        (([0], [1], [0], [1]), r"^a: action 1 does not exist in state 0"),
    ],
)
def test_from_counts_rejects(parts, expected):
    with pytest.raises(gosprl.InputError, match=expected):
        EmpiricalModel.from_counts(*parts, states=2, actions=TWO)


def test_a_model_needs_states_and_actions():
    with pytest.raises(gosprl.InputError, match=r"^states: "):
        EmpiricalModel(0, 1)
    with pytest.raises(gosprl.InputError, match=r"^actions: every state needs at least one action, state 1 has none"):
        EmpiricalModel(2, [[True], [False]])


def test_p_hat_of_a_pair_that_does_not_exist():
    with pytest.raises(gosprl.InputError, match="action 1 does not exist in state 0"):
        EmpiricalModel(2, TWO).p_hat(0, 1)


def test_a_dense_copy_of_a_large_model_is_refused():
    with pytest.raises(gosprl.InputError, match=r"^dense: expected at most 50000000 entries, got 5001 x 2 x 5001"):
        EmpiricalModel(5001, 2).dense()
