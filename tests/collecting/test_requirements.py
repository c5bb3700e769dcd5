"""What is needed: every way to say it, needs that grow and shrink, what they are told, and nonsense."""

import numpy as np
import pytest

import gosprl
from gosprl import Collector, InputError, Requirement, TabularMDP
from gosprl.collecting.requirements import Fixed, as_requirement, split
from gosprl.envs import make
from gosprl.strategies import Gosprl, Planner, Strategy
from gosprl.systems.tabular import Tabular

RIVER = make("riverswim6")
TOY = make("toy3")  # 3 states with 1, 1, 2 actions


class Told(Requirement):
    """A need per pair that remembers what it was told; `change(model)` may return a new one."""

    def __init__(self, pair, change=lambda model: None):
        self.pair, self.state = np.array(pair), np.zeros(6, dtype=np.int64)
        self.change, self.calls = change, []

    def update(self, model, rows):
        self.calls.append((int(model.visits.sum()), rows.tolist(), model.visits.copy()))
        new = self.change(model)
        self.pair = self.pair if new is None else new


def test_a_number_is_meant_for_every_existing_pair():
    pair, state = split(3, TOY.rows)
    assert pair.tolist() == [3, 3, 3, 3]
    assert state.tolist() == [0, 0, 0]
    result = gosprl.collect(TOY, 3, seed=0)
    assert (result.pairs, result.states, result.met) == (4, 3, True)
    assert result.counts.shape == (3, 2)
    assert result.counts[[0, 1], 1].tolist() == [0, 0]  # these do not exist
    assert result.counts[[0, 1, 2, 2], [0, 0, 0, 1]].min() >= 3


def test_an_array_of_states_is_meant_for_any_action():
    pair, state = split([4, 0, 2], TOY.rows)
    assert pair.tolist() == [0, 0, 0, 0]
    assert state.tolist() == [4, 0, 2]
    result = gosprl.collect(RIVER, [0, 0, 9, 0, 0, 1], seed=0)
    assert result.counts.sum(axis=1)[[2, 5]].min() >= 1
    assert result.counts[2].sum() >= 9
    assert (result.pairs, result.states, result.met) == (0, 2, True)


def test_an_array_of_pairs_is_meant_as_it_stands():
    pair, state = split([[4, 0], [0, 0], [1, 7]], TOY.rows)
    assert pair.tolist() == [4, 0, 1, 7]
    assert state.tolist() == [0, 0, 0]
    need = np.zeros((6, 2), dtype=np.int8)
    need[3] = 2, 5
    result = gosprl.collect(RIVER, need, seed=0)
    assert (result.counts >= need).all()
    assert (result.pairs, result.states, result.met) == (2, 1, True)


def test_whole_floats_are_numbers_of_samples():
    assert split(np.full((6, 2), 2.0), RIVER.rows)[0].tolist() == [2] * 12


@pytest.mark.parametrize(
    "need", [2, np.full((6, 2), 2), lambda model: 2, lambda model: np.full((6, 2), 2), Told([2] * 12)]
)
def test_the_same_need_said_otherwise_is_the_same_run(need):
    plain = gosprl.collect(RIVER, [[2, 2]] * 6, seed=4)
    other = gosprl.collect(RIVER, need, seed=4)
    assert other.steps == plain.steps
    assert other.attempts == plain.attempts
    assert other.counts.tolist() == plain.counts.tolist()
    assert other.curve.tolist() == plain.curve.tolist()


def test_pairs_and_states_may_be_needed_together():
    result = gosprl.collect(RIVER, Fixed(np.array([3] + [0] * 11), np.array([0, 0, 8, 0, 0, 0])), seed=0)
    assert result.met
    assert result.counts[0, 0] >= 3
    assert result.counts[2].sum() >= 8
    assert (result.pairs, result.states) == (1, 2)


@pytest.mark.parametrize("need", [0, np.zeros(6, dtype=int), np.zeros((6, 2)), lambda model: 0])
@pytest.mark.parametrize("strategy", ["gosprl", "random"])
def test_nothing_needed_is_met_at_once(need, strategy):
    result = gosprl.collect(RIVER, need, strategy=strategy, seed=0)
    assert (result.met, result.steps, result.attempts, result.stop) == (True, 0, 0, "met")
    assert (result.pairs, result.states) == (0, 0)
    assert result.curve.tolist() == [(0, 1.0)]
    assert result.unmet.tolist() == []
    assert Collector(6, 2, need, strategy=strategy).done


def test_a_need_that_exists_is_kept_as_it_is():
    need = Told([1] * 12)
    assert as_requirement(need, RIVER.rows) is need


# What an adaptive need is told


def walk(need, steps=10**6, **options):
    """Ask and tell on RiverSwim; the rows taken, in order, and the collector."""
    rng, collector, s, taken = np.random.default_rng(9), Collector(6, 2, need, seed=2, **options), 0, []
    while not collector.done and len(taken) < steps:
        a = collector.ask(s)
        succ, p = RIVER.p(s, a)
        s_next = int(rng.choice(succ, p=p))
        collector.tell(s, a, s_next)
        taken.append(2 * s + a)
        s = s_next
    return taken, collector


def test_it_is_told_the_rows_that_changed_since_the_last_time():
    need = Told([3] * 12)
    taken, _ = walk(need, strategy="gosprl")
    before = 0
    for t, rows, visits in need.calls:
        assert sorted(rows) == sorted(set(taken[before:t]))
        assert visits.tolist() == np.bincount(taken[:t], minlength=12).tolist()
        before = t
    assert len(need.calls) > 30
    assert sum(len(rows) > 1 for _, rows, _ in need.calls) > 5


class Asked(Strategy):
    """Algorithm 1; remembers at which time it was asked for an attempt."""

    def __init__(self):
        self.times = []

    def begin(self, model, need, rng):
        return AskedPlanner(self.times, Gosprl().begin(model, need, rng))


class AskedPlanner(Planner):
    def __init__(self, times, inner):
        self.times, self.inner = times, inner

    def restart(self):
        self.inner.restart()

    def attempt(self, s, t):
        self.times.append(t - 1)
        return self.inner.attempt(s, t)


def test_it_is_told_before_every_attempt_and_never_within_one():
    need, strategy = Told([3] * 12), Asked()
    taken, _ = walk(need, strategy=strategy)
    told = {t for t, _, _ in need.calls}
    assert set(strategy.times) <= told
    assert told <= {*strategy.times, len(taken)}
    assert len(told) < len(taken)  # some attempts are longer than a step


def test_a_need_may_grow():
    result = gosprl.collect(RIVER, lambda model: 1 if model.visits.min() == 0 else 4, seed=0)
    assert result.met
    assert result.counts.min() >= 4
    assert result.unmet.tolist() == []


def test_a_need_that_grows_as_it_is_met_is_not_met():
    """Always one more of the first pair than there is."""
    one_more = Told([0] * 12, lambda model: np.array([model.visits[0] + 1] + [0] * 11))
    result = gosprl.collect(RIVER, one_more, seed=0, max_steps=60)
    assert (result.met, result.stop, result.steps) == (False, "max_steps", 60)
    taken, collector = walk(Told([0] * 12, one_more.change), steps=60)
    assert len(taken) == 60
    assert not collector.done


def test_a_need_may_shrink():
    def need(model):
        return 50 if model.visits.sum() < 20 else (model.visits.reshape(6, 2) > 0).astype(int)

    result = gosprl.collect(RIVER, need, seed=0)
    assert result.met
    assert 20 <= result.steps < 60  # attempts are short
    assert result.curve[-1].tolist() == (result.steps, 1.0)


def test_the_curve_of_a_need_that_grows_falls():
    result = gosprl.collect(RIVER, lambda model: 1 if model.visits.min() == 0 else 4, seed=0)
    proportion = result.curve["proportion"]
    assert proportion[0] == 0
    assert proportion[-1] == 1
    assert (np.diff(proportion) < 0).sum() == 1
    assert (np.diff(result.curve["step"]) >= 0).all()


# Nonsense


class Untouched(Tabular):
    def follow(self, engine, steps):
        pytest.fail("a step was made")


@pytest.mark.parametrize(
    ("need", "words"),
    [
        (-1, "need: expected numbers of samples >= 0, got -1"),
        (1.5, "need: expected whole numbers"),
        (np.nan, "need: expected whole numbers"),
        (True, "need: expected whole numbers"),
        ("much", "need: expected whole numbers"),
        ({1, 2}, "need: expected "),
        (None, "need: expected "),
        ([1, 2], r"need: expected a number, \[S\] = \(3,\) or \[S, A\] = \(3, 2\), got shape \(2,\)"),
        ([], r"need: .* got shape \(0,\)"),
        (np.ones((2, 3), dtype=int), r"need: .* got shape \(2, 3\)"),
        ([1, -2, 0], "need: .* got -2 at index 1"),
        ([[1, 0], [0, 0.5], [0, 0]], "need: expected whole numbers"),
        ([[1, 0], [0, 3], [0, 0]], "need: action 1 does not exist in state 1, but 3 samples"),
        ([[1, 2], [3]], "need"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda need: need, lambda need: lambda model: need], ids=["array", "callable"])
def test_nonsense_is_refused_before_any_step(need, words, wrap):
    with pytest.raises(InputError, match=words):
        gosprl.collect(Untouched(TOY), wrap(need))
    with pytest.raises(InputError, match=words):
        Collector(3, np.array([[1, 0], [1, 0], [1, 1]], dtype=bool), wrap(need))


@pytest.mark.parametrize(
    ("pair", "state"),
    [
        (np.ones(5, dtype=int), np.zeros(6, dtype=int)),
        (np.ones(12, dtype=int), np.zeros(7, dtype=int)),
        (np.full(12, 1.5), np.zeros(6, dtype=int)),
        (np.full(12, -1), np.zeros(6, dtype=int)),
        (np.full(12, np.nan), np.zeros(6, dtype=int)),
    ],
)
def test_a_requirement_full_of_nonsense_is_refused_before_any_step(pair, state):
    need = Told(pair)
    need.state = state
    with pytest.raises(InputError, match="need"):
        gosprl.collect(Untouched(RIVER), need, max_steps=1000)


def raising(model):
    if model.visits.sum() >= 25:
        raise ZeroDivisionError("no more")
    return 5


def nonsense(model):
    return 5 if model.visits.sum() < 25 else -1


@pytest.mark.parametrize(
    ("need", "words"),
    [
        (raising, "no more"),
        (nonsense, "need: expected numbers of samples >= 0, got -1"),
        (Told([5] * 12, lambda model: 0 * raising(model) or None), "no more"),
        (Told([5] * 12, lambda model: None if model.visits.sum() < 25 else np.ones(3, dtype=int)), "failed after"),
    ],
    ids=["raises", "nonsense", "object raises", "object's nonsense"],
)
def test_a_need_that_fails_on_the_way_loses_nothing(need, words):
    with pytest.raises(gosprl.CollectionError, match=words) as caught:
        gosprl.collect(RIVER, need, seed=0)
    result = caught.value.result
    assert result.stop == "failed"
    assert not result.met
    assert result.steps == result.counts.sum() == result.model.visits.sum() >= 25
    assert f"after {result.steps} steps" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_a_need_that_fails_at_once_is_a_failed_run_too():
    def need(model):
        raise ZeroDivisionError("at once")

    with pytest.raises(gosprl.CollectionError, match="at once") as caught:
        gosprl.collect(RIVER, need, seed=0)
    assert (caught.value.result.stop, caught.value.result.steps) == ("failed", 0)


def test_needs_of_one_state():
    mdp = TabularMDP(np.ones((1, 1, 1)))
    assert gosprl.collect(mdp, 3, seed=0).steps == 3
    assert gosprl.collect(mdp, [3], seed=0).steps == 3
