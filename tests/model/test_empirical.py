"""EmpiricalModel against a ledger of plain dictionaries, written transition by transition."""

import re
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gosprl
from gosprl import EmpiricalModel

TWO = np.array([[True, False], [True, True]])  # rows 0: (0, 0), 1: (1, 0), 2: (1, 1)


TWO3 = np.array([[True, False], [True, True], [True, True]])


class Ledger:
    """What an EmpiricalModel over the pairs of a mask should know."""

    def __init__(self, mask):
        self.pairs = [(int(s), int(a)) for s, a in np.argwhere(mask)]
        self.shape = (*mask.shape, len(mask))
        self.count = Counter()  # (row, s_next) -> N
        self.visits = Counter()
        self.appeared = defaultdict(list)  # row -> [(s_next, visit at which it first appeared)]
        self.rewards = defaultdict(list)
        self.log = []  # rows in the order of the updates

    def add(self, row, s_next, reward=0.0):
        self.visits[row] += 1
        if not self.count[row, s_next]:
            self.appeared[row].append((s_next, self.visits[row]))
        self.count[row, s_next] += 1
        self.rewards[row].append(reward)
        self.log.append(row)

    def changed_since(self, position):
        return list(dict.fromkeys(reversed(self.log[position:])))

    def check(self, model):
        R = range(len(self.pairs))
        np.testing.assert_array_equal(model.visits, [self.visits[r] for r in R])
        np.testing.assert_array_equal(model.reward_sum, [sum(self.rewards[r]) for r in R])
        np.testing.assert_array_equal(model.reward_sq, [sum(x * x for x in self.rewards[r]) for r in R])
        triples = sorted((*self.pairs[r], x, n) for (r, x), n in self.count.items() if n)
        assert list(zip(*(part.tolist() for part in model.transitions()), strict=True)) == triples
        self.check_stored(model, None)
        P = np.zeros(self.shape)
        for r, (s, a) in enumerate(self.pairs):
            seen = sorted(x for x, _ in self.appeared[r])
            frequencies = [self.count[r, x] / self.visits[r] for x in seen]
            states, p = model.p_hat(s, a)
            assert states.tolist() == seen
            assert p.tolist() == frequencies
            P[s, a, seen] = frequencies
        np.testing.assert_array_equal(model.dense(), P)
        assert f"{sum(self.visits.values())} visits, {len(triples)} transitions" in repr(model)

    def check_stored(self, model, rows):
        ptr, succ, count, first = model.stored(rows)
        given = range(len(self.pairs)) if rows is None else rows
        assert np.diff(ptr).tolist() == [len(self.appeared[r]) for r in given]
        assert ptr[0] == 0
        expected = [(x, self.count[r, x], visit) for r in given for x, visit in self.appeared[r]]
        assert list(zip(succ.tolist(), count.tolist(), first.tolist(), strict=True)) == expected


class Closed(Ledger):
    """The same for a model that knows what is possible [R, S]: all of that is stored, seen or not, increasing."""

    def __init__(self, mask, possible):
        super().__init__(mask)
        self.possible = possible

    def check(self, model):
        super().check(model)
        assert repr(model).endswith(f" transitions of {self.possible.sum()} possible)")
        assert (model.closed, model.num_candidates) == (True, self.possible.sum())

    def check_stored(self, model, rows):
        ptr, succ, count, first = model.stored(rows)
        given = range(len(self.pairs)) if rows is None else rows
        assert ptr.tolist() == np.cumsum([0] + [self.possible[r].sum() for r in given]).tolist()
        expected = [
            (x, self.count[r, x], dict(self.appeared[r]).get(x, 0))
            for r in given
            for x in np.flatnonzero(self.possible[r]).tolist()
        ]
        assert list(zip(succ.tolist(), count.tolist(), first.tolist(), strict=True)) == expected


@st.composite
def batches(draw):
    """A mask [S, A] and batches of (row, s_next, reward); rewards are eighths, whose sums are exact in any order."""
    S, A = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    mask = np.array(draw(st.lists(st.booleans(), min_size=S * A, max_size=S * A))).reshape(S, A)
    mask[:, draw(st.integers(0, A - 1))] = True
    reward = st.integers(-16, 16).map(lambda n: n / 8)
    transition = st.tuples(st.integers(0, mask.sum() - 1), st.integers(0, S - 1), reward)
    return mask, draw(st.lists(st.lists(transition, max_size=12), max_size=8))


@given(batches(), st.data())
@settings(max_examples=150, deadline=None)
def test_updates_in_any_pieces(batches, data):
    mask, pieces = batches
    model, ledger = EmpiricalModel(len(mask), mask), Ledger(mask)
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
    """Rows of up to 60 successors, grown in turns, in batches of 1 to 400."""
    rng = np.random.default_rng(seed)
    mask = rng.random((60, 3)) < 0.6
    mask[:, 1] = True
    model, ledger = EmpiricalModel(60, mask), Ledger(mask)
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
    ledger = Ledger(mask)
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
    """The first piece is given as counts, cut up, shuffled and with zeros; the others as transitions."""
    mask, pieces = batches
    S = len(mask)
    ledger = Ledger(mask)
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


# Successors known


def possible_with(pieces, R, S, rng):
    """What is possible [R, S]: all that occurs, something of every row, and some more."""
    possible = rng.random((R, S)) < rng.choice([0, 0.3, 1])
    possible[np.arange(R), rng.integers(S, size=R)] = True
    for piece in pieces:
        for row, s_next, _ in piece:
            possible[row, s_next] = True
    return possible


def as_callable(possible, mask):
    number = {pair: r for r, pair in enumerate(map(tuple, np.argwhere(mask).tolist()))}
    return lambda s, a: np.flatnonzero(possible[number[s, a]])


@given(batches(), st.integers(0, 8), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_a_closed_model_counts_the_same(batches, when, seed):
    """Whether it knew what is possible from the beginning or is told after some of the transitions."""
    mask, pieces = batches
    possible = possible_with(pieces, mask.sum(), len(mask), np.random.default_rng(seed))
    successors, ledger = as_callable(possible, mask), Closed(mask, possible)
    models = [EmpiricalModel(len(mask), mask, successors), EmpiricalModel(len(mask), mask)]
    assert [model.closed for model in models] == [True, False]
    for i, piece in enumerate([*pieces, []]):
        if i == min(when, len(pieces)):
            mark = models[1].mark()
            models[1].restrict(successors)
            assert sorted(models[1].changed(mark)) == list(range(mask.sum()))  # their sets are new
        for row, s_next, reward in piece:
            ledger.add(row, s_next, reward)
            for model in models:
                model.update(*ledger.pairs[row], s_next, reward)
    for model in models:
        ledger.check(model)
        rows = np.random.default_rng(seed).permutation(mask.sum())
        ledger.check_stored(model, rows)
    assert models[0].changed(0).tolist() == ledger.changed_since(0)


@given(batches(), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_closed_models_from_parts(batches, seed):
    mask, pieces = batches
    S, together = len(mask), [transition for piece in pieces for transition in piece]
    possible = possible_with(pieces, mask.sum(), S, np.random.default_rng(seed))
    successors, ledger = as_callable(possible, mask), Closed(mask, possible)
    for transition in together:
        ledger.add(*transition)
    row, s_next, reward = np.array(together).reshape(-1, 3).T
    s, a = np.array(ledger.pairs)[row.astype(int)].T
    options = {"states": S, "actions": mask, "successors": successors}
    ledger.check(EmpiricalModel.from_transitions(s, a, s_next, rewards=reward, **options))
    ledger.rewards.clear()
    for r in range(mask.sum()):  # when these were first seen is not known
        ledger.appeared[r] = [(x, 0) for x, _ in ledger.appeared[r]]
    ledger.check(EmpiricalModel.from_counts(s, a, s_next, np.ones(len(s), int), **options))


def test_candidates_by_hand():
    model = EmpiricalModel(3, 1, lambda s, a: [2, s])
    assert repr(model) == "EmpiricalModel(3 states, 3 pairs, 0 visits, 0 transitions of 5 possible)"
    assert (model.mark(), model.changed(0).tolist()) == (0, [])
    model.update([0, 0, 2], [0, 0, 0], [2, 0, 2])
    assert [part.tolist() for part in model.stored()] == [
        [0, 2, 4, 5],
        [0, 2, 1, 2, 2],
        [1, 1, 0, 0, 1],
        [2, 1, 0, 0, 1],
    ]
    assert [part.tolist() for part in model.transitions()] == [[0, 0, 2], [0, 0, 0], [0, 2, 2], [1, 1, 1]]
    assert [part.tolist() for part in model.p_hat(1, 0)] == [[], []]
    model.restrict(np.ones((3, 3), dtype=bool))  # other knowledge takes the place of what was known
    assert repr(model) == "EmpiricalModel(3 states, 3 pairs, 3 visits, 3 transitions of 9 possible)"
    model.update(0, 0, 1)
    assert [part.tolist() for part in model.stored(np.array([0]))] == [[0, 3], [0, 1, 2], [1, 1, 1], [2, 3, 1]]


FOREIGN = [
    ((1, 1, 0), "(s, a) = (1, 1) led to state 0, which is not among its candidates [1, 2]"),
    (([0, 2, 1], [0, 0, 1], [1, 0, 0]), "(s, a) = (2, 0) led to state 0, which is not among its candidates [2]"),
    (([0] * 100 + [1], [0] * 100 + [1], [1] * 100 + [0]), "(s, a) = (1, 1) led to state 0"),
]


@pytest.mark.parametrize(("arguments", "expected"), FOREIGN)
def test_a_transition_that_is_not_possible_leaves_the_model_as_it_was(arguments, expected):
    model = EmpiricalModel(3, 2, lambda s, a: range(s if a or s == 2 else 0, 3))
    model.update([0, 1], [0, 1], [1, 2])
    before = snapshot(model)
    with pytest.raises(gosprl.GosprlError, match="^successors: " + re.escape(expected)):
        model.update(*arguments)
    assert snapshot(model) == before
    model.update(1, 1, 1)
    assert model.visits.tolist() == [1, 0, 0, 2, 0, 0]


def test_a_long_list_of_candidates_is_cut():
    model = EmpiricalModel(1000, 1, lambda s, a: range(1, 1000) if s == 4 else [s])
    with pytest.raises(gosprl.GosprlError, match=r"not among its candidates \[1, 2, 3, \.\.\., 999\]$"):
        model.update(4, 0, 0)


def test_what_was_seen_cannot_be_impossible():
    model = EmpiricalModel(3, TWO3)
    model.update([2, 1, 1, 0], [1, 1, 1, 0], [0, 2, 0, 1])
    before = snapshot(model)
    words = r"^successors: the model has seen \(s, a, s_next\) = \(1, 1, 0\), .* candidates \[1, 2\] of \(1, 1\)$"
    with pytest.raises(gosprl.InputError, match=words):
        model.restrict(lambda s, a: [1, 2])
    assert snapshot(model) == before
    assert not model.closed
    with pytest.raises(gosprl.InputError, match=words):
        EmpiricalModel.from_counts(*model.transitions(), states=3, actions=TWO3, successors=lambda s, a: [1, 2])
    model.restrict(lambda s, a: [0, 1, 2])
    with pytest.raises(gosprl.InputError, match=words):  # nor on a second thought
        model.restrict(lambda s, a: [1, 2])
    assert model.num_candidates == 15


def test_a_plan_made_before_the_successors_were_known_is_not_taken_over():
    mdp = gosprl.envs.make("four_room43")
    model = gosprl.collect(mdp, 1, strategy="random", seed=0, max_steps=400).model
    before = gosprl.plan(model, [0])
    model.restrict(mdp)
    warm, cold = gosprl.plan(model, [0], warm=before), gosprl.plan(model, [0])
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-3)
    assert cold.values.max() > before.values.max() + 1


# Bad input


def snapshot(model):
    parts = [*model.stored(), *model.transitions(), model.visits, model.reward_sum, model.reward_sq, model.changed(0)]
    return [part.tolist() for part in parts], model.mark()


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
