"""Models whose possible successors are known, against counts in plain dictionaries."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_counts import TWO3, PlainCandidates, batches, snapshot

import gosprl
from gosprl import EmpiricalModel


def possible_with(pieces, R, S, rng):
    """Return candidates [R, S]: all successors that occur, at least one per row, and some more."""
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
    """Candidates are given at the beginning, or after some of the transitions."""
    mask, pieces = batches
    possible = possible_with(pieces, mask.sum(), len(mask), np.random.default_rng(seed))
    successors, ledger = as_callable(possible, mask), PlainCandidates(mask, possible)
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
    successors, ledger = as_callable(possible, mask), PlainCandidates(mask, possible)
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
