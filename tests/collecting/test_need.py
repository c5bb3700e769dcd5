"""Need: what is met and missing, against counting it all anew after every step."""

import numpy as np
import pytest

from gosprl import EmpiricalModel, InputError, Requirement
from gosprl.collecting.engine import Engine
from gosprl.collecting.record import Record
from gosprl.collecting.requirements import Fixed
from gosprl.strategies.base import UNLIMITED, Attempt


def made(S, A, pair, state):
    need = Fixed(np.asarray(pair, dtype=np.int64), np.asarray(state, dtype=np.int64))
    record = Record(EmpiricalModel(S, A), need)
    record.update_need()
    return record


def endless(record):
    """An attempt that ends only when everything is met."""
    S, R = record.model.num_states, len(record.model.rows)
    return Attempt(np.zeros(S, dtype=np.int64), np.zeros(S, dtype=bool), np.full(R, UNLIMITED), UNLIMITED)


def missing(N, pair, state):
    """[(state, action or -1, needed, have)] by definition; N is [S, A]."""
    S, A = N.shape
    pairs = [(s, a, pair[s, a], N[s, a]) for s in range(S) for a in range(A) if N[s, a] < pair[s, a]]
    return pairs + [(s, -1, state[s], N[s].sum()) for s in range(S) if N[s].sum() < state[s]]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kinds", [(1, 0), (0, 1), (1, 1)])
def test_what_is_met_is_known_after_every_step(seed, kinds):
    rng = np.random.default_rng([seed, *kinds])
    S, A = 4, 3
    pair, state = rng.integers(0, 5, (S, A)) * kinds[0], rng.integers(0, 9, S) * kinds[1]
    record = made(S, A, pair.ravel(), state)
    engine, need = Engine(record, rng), record.need
    N = np.zeros((S, A), dtype=int)
    curve = [(0, (S - len({item[0] for item in missing(N, pair, state)})) / S)]
    for t in range(1, 200):
        s, a = rng.integers(S), rng.integers(A)
        engine.begin(endless(record))
        engine.state = int(s)
        engine.arrive(int(s * A + a), int(rng.integers(S)), 0.0, False)
        N[s, a] += 1
        items = missing(N, pair, state)
        # "met" is said by the step that meets it; later steps may be told whatever is convenient
        met = 1 - len({item[0] for item in items}) / S
        if met != curve[-1][1]:
            curve.append((t, met))
            assert (engine.attempt is None) == (not items)
        elif items:
            assert engine.attempt is not None
        if t % 10 == 0:
            record.flush()
            assert need.unmet().tolist() == items
            assert need.met == (not items)
            assert need.proportion_met == pytest.approx(met)
            lack = np.maximum(pair - N, 0).sum(axis=1) + np.maximum(state - N.sum(axis=1), 0)
            assert need.missing_samples.tolist() == lack.tolist()
            assert need.missing == lack.sum()
            assert need.collected == (pair.sum() + state.sum()) - lack.sum()
            assert need.unmet_items.tolist() == [sum(item[0] == x for item in items) for x in range(S)]
            assert need.unmet_states == len({item[0] for item in items})
            assert need.state_visits.tolist() == N.sum(axis=1).tolist()
    assert record.steps == 199
    assert [step for step, _ in record.curve] == [step for step, _ in curve]
    assert [met for _, met in record.curve] == pytest.approx([met for _, met in curve])
    record.flush()
    assert record.model.visits.tolist() == N.ravel().tolist()


def test_needs_that_change():
    class Changing(Requirement):
        pair, state = np.array([2, 0]), np.array([0, 3])
        told = None

        def update(self, model, rows):
            self.told = sorted(rows.tolist())

    asked = Changing()
    record = Record(EmpiricalModel(2, 1), asked)
    record.update_need()
    assert asked.told == []
    assert record.need.unmet().tolist() == [(0, 0, 2, 0), (1, -1, 3, 0)]
    record.step(0, 1, 0.0, False)
    record.step(0, 1, 0.0, False)
    record.update_need()
    assert asked.told == [0]
    assert record.need.unmet().tolist() == [(1, -1, 3, 0)]
    asked.pair = np.array([5, 1])  # grows
    assert record.need.requirement is asked
    record.update_need()
    assert asked.told == []
    assert record.need.unmet().tolist() == [(0, 0, 5, 2), (1, 0, 1, 0), (1, -1, 3, 0)]
    asked.pair, asked.state = np.array([2, 0]), np.array([0, 0])  # shrinks
    record.update_need()
    assert record.need.met
    assert record.need.unmet().tolist() == []
    assert record.curve == [(0, 0.0), (2, 0.5), (2, 0.0), (2, 1.0)]


@pytest.mark.parametrize("seed", range(6))
def test_changes_of_mind_are_those_of_the_set_of_states(seed):
    """Counted once for each look at which what is needed, not what was sampled, made another set of it unmet."""
    rng = np.random.default_rng(seed)
    S, A = 4, 2

    class Fickle(Requirement):
        pair, state = np.zeros(S * A, dtype=np.int64), np.zeros(S, dtype=np.int64)

        def update(self, model, rows):
            few = rng.permutation(S * A)[: rng.integers(0, 3)]
            self.pair[few] = np.maximum(0, model.visits[few] + rng.integers(-2, 4, len(few)))
            state = int(rng.integers(S))
            self.state[state] = rng.integers(0, 30) if rng.random() < 0.3 else self.state[state]
            touched = np.union1d(few, [state * A])
            return None if rng.random() < 0.3 else touched

    def unmet():
        N = record.model.visits.reshape(S, A)
        return {item[0] for item in missing(N, asked.pair.reshape(S, A), asked.state)}

    asked = Fickle()
    record, expected, moved = Record(EmpiricalModel(S, A), asked), 0, 0
    need = record.need
    for _ in range(300):
        record.flush()
        before = unmet()
        numbers = asked.pair.copy()
        record.update_need()
        expected += before != unmet()
        moved += before == unmet() and not np.array_equal(numbers, asked.pair)
        assert need.version == expected
        assert set(np.flatnonzero(need.unmet_items).tolist()) == unmet()
        assert set(need.unmet()["state"].tolist()) == unmet()
        for _ in range(rng.integers(0, 4)):
            record.step(int(rng.integers(S * A)), int(rng.integers(S)), 0.0, False)
        record.flush()
        assert need.version == expected
    assert expected > 20
    assert moved > 20  # needs that are others for the same states


class Partial(Requirement):
    """Needs per pair that say which rows they changed: `changes` are {call: {row: need}}."""

    def __init__(self, pair, changes=None, state=None):
        self.pair = np.array(pair)
        self.state = np.zeros(len(pair), dtype=np.int64) if state is None else np.array(state)
        self.changes, self.told = changes or {}, []

    def update(self, model, rows):
        self.told.append(sorted(rows.tolist()))
        change = self.changes.get(len(self.told), {})
        self.pair[list(change)] = list(change.values())
        return np.array(list(change), dtype=np.int64)


def test_results_hide_no_rows_from_the_requirement():
    """A look at the result in between takes nothing away from what the next update is told."""
    for looks in (False, True):
        asked = Partial([3, 3])
        record = Record(EmpiricalModel(2, 1), asked)
        record.update_need()
        record.step(0, 1, 0.0, False)
        if looks:
            record.flush()
            record.need.unmet()
        record.step(1, 0, 0.0, False)
        record.update_need()
        record.update_need()
        assert asked.told == [[], [0, 1], []]


def test_rows_are_told_again_if_the_requirement_failed():
    class Failing(Partial):
        def update(self, model, rows):
            super().update(model, rows)
            if len(self.told) == 2:
                raise ArithmeticError("not now")
            return None

    asked = Failing([3, 3])
    record = Record(EmpiricalModel(2, 1), asked)
    record.update_need()
    record.step(0, 1, 0.0, False)
    with pytest.raises(ArithmeticError):
        record.update_need()
    record.step(1, 0, 0.0, False)
    record.update_need()
    assert asked.told == [[], [0], [0, 1]]


# What is listed is what was last asked for


def test_what_was_asked_for_last_stays_if_the_requirement_breaks():
    asked = Partial([3, 0])
    record = Record(EmpiricalModel(2, 1), asked)
    record.update_need()
    for broken in (np.ones(5, dtype=np.int64), np.array([0.5, 1]), np.array([-1, 2]), "none"):
        asked.pair = broken
        asked.update = lambda model, rows: None
        with pytest.raises(InputError, match=r"^need: .*Partial\.pair"):
            record.update_need()
        assert record.need.unmet().tolist() == [(0, 0, 3, 0)]
        pair, state, num_states = record.need.asked()
        assert (pair.tolist(), state.tolist(), num_states) == ([3, 0], [0, 0], 2)


def test_a_change_that_is_not_said_is_not_collected():
    asked = Partial([3, 3])
    record = Record(EmpiricalModel(2, 1), asked)
    record.update_need()
    asked.pair[:] = 7
    record.update_need()
    assert record.need.pair.tolist() == [3, 3]
    assert record.need.missing == 6


# Needs that no walk will ever meet

HUGE = 2**62


@pytest.mark.parametrize(
    ("pair", "state"),
    [
        ([HUGE, HUGE, HUGE], [0, 0, 0]),
        ([0, HUGE, 0], [0, 0, 0]),
        ([5, 0, 0], [HUGE, HUGE, HUGE]),
        ([HUGE, HUGE, HUGE], [HUGE, HUGE, HUGE]),
        ([2**63 - 1] * 3, [2**63 - 1] * 3),
    ],
)
def test_no_sum_overflows(pair, state):
    record = made(3, 1, pair, state)
    need = record.need
    for row in (0, 1, 2, 1):
        record.step(row, 0, 0.0, False)
    record.flush()
    assert need.missing > 0
    assert (need.missing_samples >= 0).all()
    assert need.unmet_states == sum(p > 0 or s > 0 for p, s in zip(pair, state, strict=True))
    N = [1, 2, 1]
    expected = [(s, 0, pair[s], N[s]) for s in range(3) if pair[s]]
    expected += [(s, -1, state[s], N[s]) for s in range(3) if state[s]]
    assert need.unmet().tolist() == expected
    assert need.collected == sum(min(n, p) + min(n, s) for n, p, s in zip(N, pair, state, strict=True))
    assert not need.met


def test_a_need_may_become_huge_and_small_again():
    asked = Partial([3, 3, 3], {2: {1: HUGE}, 3: {0: 1}, 4: {1: 2}})
    record = Record(EmpiricalModel(3, 1), asked)
    listed = []
    for _ in range(4):
        record.update_need()
        listed.append([(int(row["needed"])) for row in record.need.unmet()])
        assert record.need.missing > 0
    assert listed == [[3, 3, 3], [3, HUGE, 3], [1, HUGE, 3], [1, 2, 3]]


# Waived states


def test_nothing_is_asked_of_waived_states_but_they_are_listed():
    record = made(3, 2, [1, 1, 2, 2, 0, 0], [0, 0, 4])
    need = record.need
    before = need.version
    record.waive({1: "behind a door", 2: "behind another"})
    assert need.version > before
    assert (need.unmet_items.tolist(), need.missing, need.unmet_states) == ([2, 0, 0], 2, 1)
    assert need.unmet().tolist() == [(0, 0, 1, 0), (0, 1, 1, 0), (1, 0, 2, 0), (1, 1, 2, 0), (2, -1, 4, 0)]
    record.step(0, 0, 0.0, False)
    record.step(1, 0, 0.0, False)
    record.update_need()
    assert need.met
    assert need.unmet()["state"].tolist() == [1, 1, 2]
    assert need.waived == {1: "behind a door", 2: "behind another"}


@pytest.mark.parametrize("all_rows", [False, True])
def test_a_need_that_changes_asks_nothing_of_waived_states(all_rows):
    asked = Partial([1, 1, 0], {3: {1: 5, 2: 3}})
    if all_rows:
        update = asked.update
        asked.update = lambda model, rows: [update(model, rows), None][1]
    record = Record(EmpiricalModel(3, 1), asked)
    record.update_need()
    record.waive({1: "gone"})
    record.update_need()
    record.update_need()
    assert record.need.pair.tolist() == [1, 0, 3]
    assert record.need.unmet().tolist() == [(0, 0, 1, 0), (1, 0, 5, 0), (2, 0, 3, 0)]


def test_waived_states_are_never_counted_as_met():
    record = made(4, 1, [1, 1, 1, 0], [0, 0, 0, 0])
    assert record.need.proportion_met == 0.25
    record.waive({1: "gone", 2: "gone"})
    assert (record.need.proportion_met, record.need.unmet_waived) == (0.25, 2)
    record.step(0, 0, 0.0, False)
    record.flush()
    assert record.need.met
    assert record.need.proportion_met == 0.5
    assert record.curve == [(0, 0.25), (1, 0.5)]


def test_waived_states_that_need_nothing_any_more_are_met():
    asked = Partial([1, 1, 1], {2: {1: 0}})
    record = Record(EmpiricalModel(3, 1), asked)
    record.update_need()
    record.waive({1: "gone", 2: "gone"})
    assert record.need.unmet_waived == 2
    record.update_need()
    assert (record.need.unmet_waived, record.need.proportion_met) == (1, pytest.approx(1 / 3))


def test_what_was_waived_is_asked_for_again():
    record = made(3, 1, [1, HUGE, 1], [0, 0, 2])
    need = record.need
    before = (need.unmet_items.tolist(), need.missing, need.unmet().tolist(), need.pair.tolist())
    record.waive({1: "gone", 2: "gone"})
    need.reconsider()
    assert (need.unmet_items.tolist(), need.missing, need.unmet().tolist(), need.pair.tolist()) == before
    assert (need.waived, need.unmet_waived) == ({}, 0)
