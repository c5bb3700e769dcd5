"""What is needed: every way to say it, needs that grow and shrink, what they are told, and nonsense."""

import numpy as np
import pytest
from walked import table_collector

import gosprl
from gosprl import EmpiricalModel, InputError, Requirement, TabularMDP
from gosprl.collecting.requirements import Discovered, Fixed, as_requirement, split
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
    assert table_collector(6, 2, need, strategy=strategy).done


def test_a_need_that_exists_is_kept_as_it_is():
    need = Told([1] * 12)
    assert as_requirement(need, RIVER.rows) is need


# What an adaptive need is told


def walk(need, steps=10**6, **options):
    """Ask and tell on RiverSwim; the rows taken, in order, and the collector."""
    rng, collector, s, taken = np.random.default_rng(9), table_collector(6, 2, need, seed=2, **options), 0, []
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
        table_collector(3, np.array([[1, 0], [1, 0], [1, 1]], dtype=bool), wrap(need))


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


# Requirements that do not do what they should


class Bad(Requirement):
    """Needs 5 of every pair; from some step on has other arrays, returns something else, or raises."""

    def __init__(self, after, pair=None, state=None, returns=None, raises=None):
        self.pair, self.state = np.full(12, 5), np.zeros(6, dtype=np.int64)
        self.after, self.bad, self.returns, self.raises = after, (pair, state), returns, raises

    def update(self, model, rows):
        if model.visits.sum() < self.after:
            return np.empty(0, dtype=np.int64)
        if self.raises is not None:
            raise self.raises
        pair, state = self.bad
        self.pair, self.state = self.pair if pair is None else pair, self.state if state is None else state
        return self.returns


ARRAYS = {
    "short": ({"pair": np.full(11, 5)}, r"need: expected Bad\.pair \[R\] = \(12,\), got shape \(11,\)"),
    "long": ({"pair": np.full(13, 5)}, r"need: expected Bad\.pair \[R\] = \(12,\), got shape \(13,\)"),
    "two-dimensional": ({"pair": np.full((6, 2), 5)}, r"need: expected Bad\.pair \[R\] = \(12,\), got shape \(6, 2\)"),
    "a number": ({"pair": 5}, r"need: expected Bad\.pair \[R\] = \(12,\), got shape \(\)"),
    "halves": (
        {"pair": np.full(12, 0.5)},
        r"need: Bad\.pair: expected whole numbers .* got float64 values such as 0\.5",
    ),
    "nan": ({"pair": np.full(12, np.nan)}, r"need: Bad\.pair: expected whole numbers .* such as nan"),
    "negative": (
        {"pair": np.array([5] * 7 + [-3] + [5] * 4)},
        r"need: Bad\.pair: expected numbers of samples >= 0, got -3 at index 7",
    ),
    "bool": ({"pair": np.ones(12, dtype=bool)}, r"need: Bad\.pair: expected whole numbers .* got bool"),
    "words": ({"pair": ["much"] * 12}, r"need: Bad\.pair: expected whole numbers"),
    "ragged": ({"pair": [[1], [1, 2]]}, r"need: Bad\.pair: expected whole numbers"),
    "states short": (
        {"state": np.zeros(5, dtype=np.int64)},
        r"need: expected Bad\.state \[S\] = \(6,\), got shape \(5,\)",
    ),
    "states negative": (
        {"state": np.full(6, -1)},
        r"need: Bad\.state: expected numbers of samples >= 0, got -1 at index 0",
    ),
    "states halves": ({"state": np.full(6, 0.5)}, r"need: Bad\.state: expected whole numbers"),
}
ROWS = {
    "beyond": (np.array([3, 12]), r"need: what Bad\.update returned: expected rows in 0\.\.11, got 12 at index 1"),
    "negative": (np.array([3, -1]), r"need: what Bad\.update returned: expected rows in 0\.\.11, got -1 at index 1"),
    "halves": (np.array([0.5]), r"need: what Bad\.update returned: expected whole numbers \(rows\)"),
    "nan": (np.array([np.nan]), r"need: what Bad\.update returned: expected whole numbers \(rows\)"),
    "mask": (np.ones(12, dtype=bool), r"need: what Bad\.update returned: expected whole numbers \(rows\), got bool"),
    "list": ([3, 4], r"need: what Bad\.update returned: expected rows, an int64 array \[m\], or None, got \[3, 4\]"),
    "empty list": ([], r"need: what Bad\.update returned: expected rows, an int64 array \[m\], or None, got \[\]"),
    "number": (3, r"need: what Bad\.update returned: expected rows, an int64 array \[m\], or None, got 3"),
    "scalar": (np.int64(3), r"need: what Bad\.update returned: expected rows, an int64 array \[m\], or None, got "),
    "bool": (True, r"need: what Bad\.update returned: expected rows, an int64 array \[m\], or None, got True"),
    "two-dimensional": (np.array([[3]]), r"need: what Bad\.update returned: expected rows, an int64 array \[m\]"),
}
SAID = {"any": None, "all": np.arange(12), "some": np.array([7, 8])}  # what `update` says about what it changed


def failed(need, words):
    """The result of a run that fails because of the need, after 25 steps or more."""
    with pytest.raises(gosprl.CollectionError, match=rf"^the run failed after \d+ steps: {words}") as caught:
        gosprl.collect(RIVER, need, seed=0)
    result = caught.value.result
    assert (result.stop, result.met) == ("failed", False)
    assert result.steps == result.counts.sum() == result.model.visits.sum() >= 25
    # what was needed is what was last asked for
    have = np.minimum(result.counts, 5)
    assert (result.pairs, result.states, result.missing) == (12, 6, 60 - have.sum())
    assert result.unmet["needed"].tolist() == [5] * (have < 5).sum()
    return result


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_that_make_no_sense(kind, said):
    arrays, words = ARRAYS[kind]
    with pytest.raises(InputError, match=f"^{words}"):
        gosprl.collect(Untouched(RIVER), Bad(0, **arrays, returns=SAID[said]))
    failed(Bad(25, **arrays, returns=SAID[said]), words)


@pytest.mark.parametrize("kind", ROWS)
def test_rows_that_make_no_sense(kind):
    returned, words = ROWS[kind]
    with pytest.raises(InputError, match=f"^{words}"):
        gosprl.collect(Untouched(RIVER), Bad(0, returns=returned))
    failed(Bad(25, returns=returned), words)


@pytest.mark.parametrize("error", [ZeroDivisionError("no more"), KeyError("no more"), gosprl.GosprlError("no more")])
def test_updates_that_raise(error):
    with pytest.raises(gosprl.CollectionError, match=r"^the requirement failed at once: .*no more") as caught:
        gosprl.collect(Untouched(RIVER), Bad(0, raises=error))
    assert (caught.value.result.stop, caught.value.result.steps) == ("failed", 0)
    assert caught.value.__cause__ is error
    failed(Bad(25, raises=error), ".*no more")


def test_a_requirement_that_is_broken_may_be_mended():
    """The walk goes on, with all that was collected."""
    need = Bad(25, raises=OSError("the list is locked"))
    collector = table_collector(6, 2, need, seed=0)
    with pytest.raises(gosprl.CollectionError, match="the list is locked"):
        collector.run(RIVER)
    before = collector.result().steps
    need.raises, need.returns = None, np.empty(0, dtype=np.int64)
    result = collector.run()
    assert (result.met, result.stop) == (True, "met")
    assert result.steps == result.counts.sum() > before
    assert np.all(RIVER.dense()[result.model.transitions()[:3]] > 0)


def test_what_the_result_asks_may_fail_too():
    class Shy(Told):
        def as_of_now(self, model):
            raise OSError("ask me not")

    result = gosprl.collect(RIVER, Shy([3] * 12), seed=0, max_steps=20)
    assert (result.stop, result.steps, result.pairs) == ("max_steps", 20, 12)
    assert result.missing == np.maximum(3 - result.counts, 0).sum()


def test_a_requirement_without_arrays():
    class Empty(Requirement):
        def update(self, model, rows):
            return None

    with pytest.raises(gosprl.CollectionError, match=r"the requirement failed at once: .*'pair'"):
        table_collector(6, 2, Empty())


@pytest.mark.parametrize("arrays", [lambda x: x.tolist(), lambda x: x.astype(float), lambda x: x.astype(np.int8)])
@pytest.mark.parametrize("said", SAID)
def test_whole_numbers_of_any_kind_are_numbers_of_samples(arrays, said):
    """From the 25th step on 7 of the row 7, and 9 samples of state 4."""
    pair, state = np.full(12, 5), np.zeros(6, dtype=np.int64)
    pair[7], state[4] = 7, 25
    plain = gosprl.collect(RIVER, Bad(25, pair, state, SAID[said]), seed=0)
    other = gosprl.collect(RIVER, Bad(25, arrays(pair), arrays(state), SAID[said]), seed=0)
    assert plain.met
    assert plain.counts[3, 1] >= 7
    assert plain.counts[4].sum() >= 25
    assert other.counts.tolist() == plain.counts.tolist()
    assert other.curve.tolist() == plain.curve.tolist()


def test_whole_floats_are_rows():
    plain, other = (
        gosprl.collect(RIVER, Bad(25, np.array([5] * 7 + [30] + [5] * 4), returns=rows), seed=0)
        for rows in (np.array([7]), np.array([7.0]))
    )
    assert plain.counts[3, 1] >= 30
    assert plain.counts.tolist() == other.counts.tolist()


# States that are discovered


def test_what_is_discovered_is_needed_once_it_is_looked_at():
    model = EmpiricalModel(4, 2)
    need = Discovered(3, model)
    assert need.update(model, np.empty(0, dtype=np.int64)).tolist() == []
    assert need.num_states(model) == 0
    model.discover(2)
    model.discover(0)
    pair, state, known = need.as_of_now(model)
    assert (pair.tolist(), state.tolist(), known) == ([3, 3, 0, 0, 3, 3, 0, 0], [0] * 4, 2)
    assert (need.pair.sum(), need.num_states(model)) == (0, 0)  # nothing changes by that
    assert need.update(model, np.empty(0, dtype=np.int64)).tolist() == [4, 5, 0, 1]
    assert (need.pair.tolist(), need.num_states(model)) == ([3, 3, 0, 0, 3, 3, 0, 0], 2)


def test_final_states_are_not_discovered_and_resets_are_needed_once_there_are_some():
    model = EmpiricalModel(2, 2)
    model.allow_resets("terminal")
    need, nothing, reset = Discovered(3, model), np.empty(0, dtype=np.int64), int(model.rows.ptr[model.states.reset])
    model.final(1)
    model.update(model.states.reset, 0, 0)  # the start
    assert (need.update(model, nothing).tolist(), need.num_states(model)) == ([], 0)
    model.update(model.states.reset, 0, 0)  # another one, of which nobody knows why it was made
    assert (need.update(model, nothing).tolist(), need.num_states(model)) == ([], 0)
    model.ended = True
    assert (need.update(model, nothing).tolist(), need.num_states(model)) == ([reset], 1)
    assert need.update(model, nothing).tolist() == []
    assert np.flatnonzero(need.pair).tolist() == [reset]
