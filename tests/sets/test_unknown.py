"""Sets with unknown places, against all completions: the sets that all n outcomes, in order, would have given."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gosprl
from gosprl import _kernels
from gosprl.exchange.adding import ModelTaker
from gosprl.model.committed import CommittedModel
from gosprl.sets import visits_for_unseen
from gosprl.sets.unknown import last_first

FAMILIES = [gosprl.KL(0.1), gosprl.KL(0.2, 0.5), gosprl.Bernstein(0.1, 0.05), gosprl.Bernstein(0.1, 0.05, 0.02)]
UNKNOWN = -1
KINDS = ["numbered", "closed", "discovered", "bounded"]


def empty(kind, S=4):
    if kind in ("numbered", "closed"):
        return gosprl.EmpiricalModel(S, 1, successors=np.ones((S, S), dtype=bool) if kind == "closed" else None)
    model = gosprl.EmpiricalModel(None, 1)
    if kind == "bounded":
        model.max_states = S
    for key in range(S):
        model.locate(key)
    return model


def with_places(kind, outcomes, fill=()):
    """Return a committed model whose row 0 has these outcomes; those that are `fill`ed came late, in this order."""
    model = CommittedModel(empty(kind))
    places = {}
    for i, s_next in enumerate(outcomes):
        if s_next == UNKNOWN or i in fill:
            places[i] = model.add_unknown(0)
        else:
            model.update(0, 0, s_next)
            model.mark_first(0, s_next)
    for i in fill:
        model.update(0, 0, outcomes[i])
        model.fill(0, places[i], outcomes[i])
    return model


def in_order(kind, outcomes):
    """Return a model that has counted these outcomes of row 0, one after the other."""
    full = empty(kind)
    full.update([0] * len(outcomes), [0] * len(outcomes), outcomes)
    return full


def mass_ends(family, model):
    """Return (lower [S], upper [S], the cap on every set of states) of row 0."""
    sets, S = family.intervals(model, np.array([0])), 4
    lower, upper = np.zeros(S), np.full(S, sets.each[0])
    lower[sets.succ], upper[sets.succ] = sets.lower, sets.upper
    unseen = [s for s in range(S) if s not in sets.succ.tolist()]
    return lower, upper, unseen, sets.total[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize(
    "outcomes",
    [
        [0, UNKNOWN, 0, 1, 0, 0],
        [UNKNOWN, 0, 0, 0],
        [0, 0, 0, 0, 0, UNKNOWN],
        [0, 1, UNKNOWN, UNKNOWN, 2, 0, 0, 0, 0, 0, 0, 0],
        [UNKNOWN, UNKNOWN],
        [0, 1, 2, 3, UNKNOWN],
        [0] * 40 + [UNKNOWN] + [0] * 30,
    ],
    ids=str,
)
def test_sets_contain_those_of_every_completion(kind, family, outcomes):
    lower, upper, unseen, total = mass_ends(family, with_places(kind, outcomes))
    holes = [i for i, s in enumerate(outcomes) if s == UNKNOWN]
    for values in itertools.product(range(4), repeat=len(holes)):
        whole = list(outcomes)
        for i, s in zip(holes, values, strict=True):
            whole[i] = s
        low, high, hidden, cap = mass_ends(family, in_order(kind, whole))
        assert (lower <= low + 1e-12).all()
        assert (upper >= high - 1e-12).all()
        # the mass of what no known place showed: what this completion shows of it, and its cap on the rest
        shown = sum(high[s] for s in unseen if s not in hidden)
        if unseen and kind != "closed" and isinstance(family, gosprl.KL):
            assert total >= min(shown + (cap if hidden else 0.0), 1.0) - 1e-12


def as_data(kind, *parts, walked=()):
    """Return the model of a run that began with rows of these outcomes, one source after the other, and went on."""
    model = empty(kind)
    for outcomes in parts:
        ModelTaker(model, SimpleNamespace(mdp=None, key_of=lambda key: key), (0.0, 1.0)).take(
            with_places(kind, outcomes)
        )
    for s_next in walked:
        model.update(0, 0, s_next)
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize(
    ("parts", "walked"),
    [
        ([[0, UNKNOWN, 0, 1]], [2, 0, 0, 0, 0, 0]),
        ([[UNKNOWN, UNKNOWN]], [0, 0, 0, 1, 0, 0, 0]),
        ([[0, 1, 0], [0, 0, UNKNOWN]], [0, 2]),
        ([[0, UNKNOWN], [1, 0, 2, UNKNOWN, 0]], [0, 0, 3, 0]),
        ([[0, UNKNOWN, UNKNOWN], [1, 1, 1]], [1] * 40),
        ([[0] * 30 + [UNKNOWN]], [1] + [0] * 30),
    ],
    ids=str,
)
def test_sets_that_begin_with_unknown_places_contain_those_of_every_completion(kind, family, parts, walked):
    """The places of the data keep their order: what the walk adds comes after them."""
    outcomes = [s for part in parts for s in part] + walked
    model = as_data(kind, *parts, walked=walked)
    lower, upper, unseen, total = mass_ends(family, model)
    holes = [i for i, s in enumerate(outcomes) if s == UNKNOWN]
    assert model.unknown[0] == len(holes)
    for filled in itertools.product(range(4), repeat=len(holes)):
        whole = list(outcomes)
        for place, s in zip(holes, filled, strict=True):
            whole[place] = s
        low, high, hidden, cap = mass_ends(family, in_order(kind, whole))
        assert (lower <= low + 1e-12).all()
        assert (upper >= high - 1e-12).all()
        shown = sum(high[s] for s in unseen if s not in hidden)
        if unseen and kind != "closed" and isinstance(family, gosprl.KL):
            assert total >= min(shown + (cap if hidden else 0.0), 1.0) - 1e-12
    if kind != "closed":
        ptr, _, _, first = model.stored(np.array([0]))
        last = max(outcomes.index(s) for s in outcomes) + 1  # of a first appearance, or of an unknown place
        until = last_first(model, np.array([0]), ptr, first, np.array([len(outcomes)]))[0]
        assert max(last, *(i + 1 for i in holes)) <= until <= len(outcomes)


@pytest.mark.parametrize("n", [1, 2, 5, 17, 100, 10_000])
def test_the_end_for_c_visits_is_at_most_c_times_that_for_one(n):
    for budget in (0.1, 1.0, 5.0, 12.0, 40.0):
        for c in range(1, min(n, 60) + 1):
            assert _kernels.kl_upper(float(c), float(n), budget) <= c * _kernels.kl_upper(1.0, float(n), budget) + 1e-12
            for weight in (0.3, 1.0):
                end, one = (_kernels.weighted_kl_ends(float(k), float(n), budget, weight)[1] for k in (c, 1))
                assert end <= c * one + 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize(
    ("outcomes", "fill"), [([0, 1, 0, 2, 0, 0, 0], [1]), ([0, 0, 1, 1, 0, 2], [5, 2]), ([3, 0], [0])]
)
def test_what_came_late_gives_a_set_that_contains_the_one_in_order(kind, family, outcomes, fill):
    late = family.intervals(with_places(kind, outcomes, fill), np.array([0]))
    prompt = family.intervals(in_order(kind, outcomes), np.array([0]))
    by_state = np.argsort(late.succ)
    order = np.argsort(prompt.succ)
    assert late.succ[by_state].tolist() == prompt.succ[order].tolist()
    assert (late.lower[by_state] <= prompt.lower[order] + 1e-12).all()
    assert (late.upper[by_state] >= prompt.upper[order] - 1e-12).all()
    assert late.total[0] >= prompt.total[0] - 1e-12
    assert late.each[0] >= prompt.each[0] - 1e-12


@pytest.mark.parametrize(
    ("kind", "family"),
    [("numbered", gosprl.KL(0.1)), ("discovered", gosprl.KL(0.1)), ("discovered", gosprl.Bernstein(0.1))],
    ids=str,
)
@pytest.mark.parametrize("x", [0.5, 0.1, 0.01])
def test_visits_for_unseen_bring_the_cap_down(kind, family, x):
    outcomes = [0, 0, UNKNOWN, 1, 0]
    needed = int(visits_for_unseen(with_places(kind, outcomes), family, np.array([0]), x)[0])
    more = [0] * (needed - 4)
    assert family.intervals(with_places(kind, outcomes + more), np.array([0])).total[0] <= x
    if more:
        assert family.intervals(with_places(kind, outcomes + more[1:]), np.array([0])).total[0] > x


def test_an_unknown_place_is_wider_than_leaving_it_out():
    left_out = with_places("numbered", [0] * 9)
    unknown = with_places("numbered", [0] * 9 + [UNKNOWN])
    narrow, wide = (gosprl.KL(0.1).intervals(model, np.array([0])) for model in (left_out, unknown))
    assert wide.total[0] > narrow.total[0]
    assert wide.lower[0] < narrow.lower[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", [gosprl.KL(0.1), gosprl.Bernstein(0.1), gosprl.KL(0.2, 0.3)], ids=repr)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_sets_contain_those_of_every_completion_while_places_are_lost_and_filled(kind, family, data):
    """Outcomes come, get lost and come late in any order; at every moment all completions of the rest are covered."""
    model, truth, open_places = CommittedModel(empty(kind)), [], {}
    often = data.draw(st.sampled_from([0.9, 0.97]))  # of state 0: long waits make the caps small
    for _ in range(data.draw(st.integers(3, 40))):
        what = data.draw(st.sampled_from(["known", "known", "known", "unknown", "fill"]))
        if what == "fill" and open_places:
            i = data.draw(st.sampled_from(sorted(open_places)))
            model.update(0, 0, truth[i])
            model.fill(0, open_places.pop(i), truth[i])
        else:
            truth.append(0 if data.draw(st.floats(0, 1)) < often else data.draw(st.integers(0, 3)))
            if what == "unknown" and len(open_places) < 2:
                open_places[len(truth) - 1] = model.add_unknown(0)
            else:
                model.update(0, 0, truth[-1])
                model.mark_first(0, truth[-1])
        lower, upper, unseen, total = mass_ends(family, model)
        for values in itertools.product(range(4), repeat=len(open_places)):
            whole = list(truth)
            for i, s in zip(open_places, values, strict=True):
                whole[i] = s
            low, high, hidden, cap = mass_ends(family, in_order(kind, whole))
            assert (lower <= low + 1e-12).all()
            assert (upper >= high - 1e-12).all()
            shown = sum(high[s] for s in unseen if s not in hidden)
            if unseen and kind != "closed" and (isinstance(family, gosprl.KL) or kind == "discovered"):
                assert total >= min(shown + (cap if hidden else 0.0), 1.0) - 1e-12
