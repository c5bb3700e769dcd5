"""States that are discovered: a model that grows is the one that would have been built at once; endings and resets."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gosprl import KL, Bernstein, EmpiricalModel, GosprlError, InputError


def shown(model):
    """As results show it."""
    return model.arranged(model.arrangement())


def named(model):
    """The transitions by observation: (key, action, (kind, key)) -> count, and the starts."""
    states = model.states
    steps = zip(*(part.tolist() for part in model.transitions()), strict=True)
    starts = zip(*(part.tolist() for part in model.starts()), strict=True)
    return (
        {(states[s], a, (states.kind(t), states[t])): n for s, a, t, n in steps},
        {states[s]: n for s, n in starts},
    )


# Growing

WALKS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.booleans()), min_size=1, max_size=120)


@given(WALKS)
@settings(max_examples=60, deadline=None)
def test_states_found_one_by_one_are_those_of_a_model_built_at_once(walk):
    """Bit for bit: counts, the order in which successors appeared, and the visit at which each did."""
    model, index, triples = EmpiricalModel(None, 3), {"start": 0}, []
    s, key = model.locate("start"), "start"
    for a, place, _ in walk:
        index.setdefault(place, len(index))
        t = model.locate(place)
        model.update(s, a, t, reward=place)
        triples.append((index[key], a, index[place], place))
        s, key = t, place
    source, action, target, reward = np.array(triples).T
    whole = EmpiricalModel.from_transitions(source, action, target, rewards=reward, states=len(index), actions=3)
    grown = shown(model)
    assert list(grown.states) == list(index)
    assert grown.num_states == model.num_states == len(index)
    for part, other in zip(grown.stored(), whole.stored(), strict=True):
        assert part.tolist() == other.tolist()
    assert (grown.visits.tolist(), grown.reward_sum.tolist()) == (whole.visits.tolist(), whole.reward_sum.tolist())
    assert grown.changed(0).tolist() == whole.changed(0).tolist()  # the order of the last changes
    assert model.rows.num_states > model.num_states  # there is room for one at least


@given(WALKS)
@settings(max_examples=60, deadline=None)
def test_endings_and_starts_are_counted_by_observation(walk):
    """Against plain dicts. The same observation may be alive and final."""
    model, steps, starts = EmpiricalModel(None, 3), Counter(), Counter()
    model.allow_resets("terminal")
    s, key = model.locate("start"), "start"
    reset = model.states.reset
    for a, place, ended in walk:
        t = model.final(place) if ended else model.locate(place)
        model.update(s, a, t)
        steps[key, a, ("final" if ended else "live", place)] += 1
        s, key = t, place
        if ended:
            model.update(t, 0, reset)
            begin = place % 3
            s, key = model.locate(begin), begin
            model.update(reset, 0, s)
            starts[begin] += 1
    for seen in (model, shown(model)):
        assert named(seen) == (steps, starts)
    kinds = [shown(model).states.kind(i) for i in range(shown(model).rows.num_states)]
    lives = kinds.count("live")
    assert kinds == ["live"] * lives + ["reset"] + ["final"] * (len(kinds) - lives - 1)
    assert model.visits[model.rows.ptr[reset]] == sum(starts.values())  # one row for all endings


def test_what_a_model_says_after_growth_is_about_the_new_rows():
    """Marks and changes survive, whatever numbers rows get."""
    model = EmpiricalModel(None, 2)
    a = model.locate("a")
    model.update(a, 1, a)
    mark, rows = model.mark(), model.rows
    for key in range(40):
        model.locate(key)
    assert model.rows is not rows
    model.update(a, 0, model.states.live(7))
    model.update(model.states.live(39), 1, a)
    changed = model.changed(mark).tolist()
    assert [model.rows.pair(row) for row in changed] == [(model.states.live(39), 1), (a, 0)]
    assert model.p_hat(a, 1)[0].tolist() == [a]


def test_actions_whose_number_is_not_known():
    model = EmpiricalModel(None, 1)
    model.all_actions = False
    a, b = model.locate("a", (0,)), model.locate("b", (0,))
    model.update(a, 0, b)
    model.widen(3)
    model.offer(b, (0, 2))
    model.update(b, 2, a)
    transitions = np.column_stack(model.transitions()).tolist()
    assert transitions == [[a, 0, b, 1], [b, 2, a, 1]]
    assert [model.enabled[model.rows.index(s, action)] for s, action in ((a, 0), (a, 2), (b, 0), (b, 2))] == [
        1,
        0,
        1,
        1,
    ]


def test_a_bound_on_the_number_of_observations():
    model = EmpiricalModel(None, 1)
    model.max_states = 2
    model.locate("a")
    model.locate("b")
    model.locate("a")
    with pytest.raises(GosprlError, match=r"^max_states: expected at most 2 observations, got another: 'c'"):
        model.locate("c")
    assert model.num_outcomes == 2
    model = EmpiricalModel(None, 1)
    model.max_states = 2
    model.allow_resets("terminal")
    model.final("z")  # no observation of its own: endings are not in the bound
    model.locate("a")
    model.locate("b")
    assert model.num_outcomes == 5  # alive, final, and the crash


# What states offer


def offered(model, s):
    begin, end = model.rows.ptr[s], model.rows.ptr[s + 1]
    return model.rows.action[begin:end][model.enabled[begin:end]].tolist()


def test_a_state_has_the_actions_that_it_offers():
    model = EmpiricalModel(None, 4)
    a = model.locate("a", (1, 3))
    assert (offered(model, a), model.aliased) == ([1, 3], set())
    assert not model.offer(a, (1, 3))
    assert shown(model).rows.action.tolist() == [1, 3]


def test_a_state_that_offers_other_actions_is_aliased_and_has_all_of_them():
    for first, then, union in (((1, 3), (1, 2), [1, 2, 3]), (None, (2,), [0, 1, 2, 3]), ((0,), None, [0, 1, 2, 3])):
        model = EmpiricalModel(None, 4)
        a = model.locate("a", first)
        assert model.aliased == set()
        model.offer(a, then)
        assert (offered(model, a), model.aliased) == (union, {a})


def test_what_is_not_said_is_no_offer():
    model = EmpiricalModel(None, 4)
    a = model.locate("a", ())
    model.offer(a, (1, 2))
    assert (offered(model, a), model.aliased) == ([1, 2], set())


@pytest.mark.parametrize("actions", [(0, 4), (-1,), ["left"], 2])
def test_what_is_no_offer(actions):
    with pytest.raises(InputError, match=r"^actions: expected indices of the actions that a state offers"):
        EmpiricalModel(None, 4).locate("a", actions)


# What is certain


@pytest.mark.parametrize("family", [KL(0.1), Bernstein(0.1)], ids=repr)
@pytest.mark.parametrize("max_states", [None, 5])
def test_a_certain_row_has_one_outcome_before_it_was_ever_taken(family, max_states):
    model = EmpiricalModel(None, 2)
    model.max_states = max_states
    model.allow_resets("anytime")
    a, end = model.locate("a"), model.final("z")
    rows = np.array([model.rows.ptr[a + 1] - 1, model.rows.ptr[end]])  # the reset by choice, and after the ending
    assert model.certain.nonzero()[0].tolist() == sorted(rows.tolist())
    sets = family.intervals(model, rows)
    assert sets.succ.tolist() == [model.states.reset] * 2
    assert (sets.lower.tolist(), sets.upper.tolist(), sets.total.tolist()) == ([1, 1], [1, 1], [0, 0])
    assert len(model.transitions()[0]) == 0


def test_resets_at_any_time_are_rows_of_all_states_with_a_cost():
    model = EmpiricalModel(3, 2)
    model.allow_resets("anytime")
    model.reset_cost = 2.5
    assert model.num_actions == 3
    chosen = model.rows.index([0, 1, 2], [2, 2, 2])
    assert model.costs()[chosen].tolist() == [2.5] * 3
    assert model.costs()[model.places()].tolist() == [1.0] * 6
    assert model.costs()[model.rows.ptr[model.states.reset]] == 0


def test_what_resets_cannot_be():
    model = EmpiricalModel(None, 2)
    model.allow_resets("terminal")
    with pytest.raises(InputError, match=r"^resets: the model was begun with 'terminal', got 'anytime'"):
        model.allow_resets("anytime")
