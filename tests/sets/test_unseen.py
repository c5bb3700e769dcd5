"""`visits_for_unseen` against the caps themselves, visit by visit."""

import math

import numpy as np
import pytest
from growing import bounded, sampled, unknown
from hypothesis import given, settings
from hypothesis import strategies as st

import gosprl
from gosprl import _kernels
from gosprl.sets import visits_for_unseen

ROW = np.array([0])


def as_kind(kind, model):
    """Return the model of a table, or what it is if the number of states is unknown or bounded."""
    if kind == "table":
        return model
    return unknown(model, [4] * model.num_states) if kind == "unknown" else bounded(model, 20)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.integers(0, 4), max_size=25),
    st.floats(0.02, 0.95),
    st.sampled_from(["table", "unknown", "bounded"]),
    st.sampled_from([gosprl.KL(0.1), gosprl.KL(0.3, 0.05), gosprl.KL(0.01, 2.0)]),
)
def test_it_is_the_first_visit_at_which_the_cap_is_small_enough(samples, x, kind, family):
    model = as_kind(kind, sampled(samples, states=6))
    (n,) = visits_for_unseen(model, family, ROW, x)
    more = int(n) - len(samples)
    assert more >= 0
    repeated = samples[-1] if samples else 0

    def total(extra):
        return family.intervals(as_kind(kind, sampled(samples + [repeated] * extra, states=6)), ROW).total[0]

    assert total(more) <= x
    if more > 0:
        assert total(more - 1) > x


def test_closed_form_for_one_successor():
    """The cap (b) is 1 - exp(-log(2 A i (i + 1) / (0.7 delta)) / (N - 1)) for one successor."""
    model = unknown(sampled([0] * 10, states=2, actions=3), [5, 1])
    level = 0.1 * 0.7 / (3 * 5 * 6)
    for x in (0.5, 0.1, 1e-3, 1e-6):
        expected = 1 + math.ceil(math.log(2 / level) / -math.log1p(-x))
        assert visits_for_unseen(model, gosprl.KL(0.1), ROW, x) == [max(10, expected)]


@pytest.mark.parametrize("family", [gosprl.KL(0.1), gosprl.Bernstein(0.1)])
def test_many_rows_at_once_and_certain_ones(family):
    rng = np.random.default_rng(0)
    s, a, s_next = rng.integers(30, size=3000), rng.integers(2, size=3000), rng.integers(4, size=3000)
    model = unknown(gosprl.EmpiricalModel.from_transitions(s, a, s_next, states=31, actions=2))
    model.certain = np.arange(62) == 7
    rows = rng.permutation(62)
    got = visits_for_unseen(model, family, rows, 0.2)
    assert got.dtype == np.int64
    assert np.all(got >= model.visits[rows])
    assert got[rows == 7] == model.visits[7]
    small = family.intervals(model, rows).total <= 0.2
    np.testing.assert_array_equal(got == model.visits[rows], small)
    for row in rows[:10]:
        assert visits_for_unseen(model, family, np.array([row]), 0.2) == got[rows == row]
    never = model.visits[rows] == 0
    assert never.sum() == 2
    assert np.all(got[never] > 10)


def test_the_last_visits_are_those_that_matter():
    """A long wait before the last new successor counts too, by what it said of the mass that was unseen then."""
    waited = unknown(sampled([0] * 200 + [1], states=3))
    assert visits_for_unseen(waited, gosprl.KL(0.1), ROW, 0.05) == [201]
    fresh = unknown(sampled([0, 1], states=3))
    assert visits_for_unseen(fresh, gosprl.KL(0.1), ROW, 0.05) > [90]


def test_extreme_numbers():
    model = unknown(sampled([0] * 5, states=2))
    (n,) = visits_for_unseen(model, gosprl.KL(0.1), ROW, 1e-15)
    assert n == pytest.approx(math.log(4 / 0.07) * 1e15, rel=1e-6)
    assert visits_for_unseen(model, gosprl.KL(0.1), ROW, 1e-300) == [_kernels.MANY]
    counted = gosprl.EmpiricalModel.from_counts([0, 0], [0, 0], [0, 1], [4, 4], states=2, actions=1)
    assert 8 < visits_for_unseen(counted, gosprl.KL(0.1), ROW, 0.1) < [200]
    assert visits_for_unseen(unknown(counted), gosprl.KL(0.1), ROW, 0.1) == [_kernels.MANY]  # no order to go by


def test_closed_models_hide_nothing():
    model = gosprl.EmpiricalModel(3, 1, successors=np.ones((3, 3), dtype=bool))
    np.testing.assert_array_equal(visits_for_unseen(model, gosprl.KL(0.1), np.arange(3), 0.1), 0)


@pytest.mark.parametrize("x", [0, 1, -0.1, 2, math.nan])
def test_x_out_of_range(x):
    with pytest.raises(gosprl.InputError, match="unseen: expected a probability above 0 and below 1"):
        visits_for_unseen(sampled([0]), gosprl.KL(0.1), ROW, x)


@pytest.mark.parametrize("kind", ["table", "bounded"])
def test_bernstein_has_no_cap_where_states_are_counted(kind):
    with pytest.raises(gosprl.InputError, match='use confidence="kl"'):
        visits_for_unseen(as_kind(kind, sampled([0])), gosprl.Bernstein(0.1), ROW, 0.1)
