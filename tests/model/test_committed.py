"""CommittedModel: counts of its own over the states and rows of a model that grows."""

import numpy as np
import pytest

import gosprl
from gosprl.model.committed import CommittedModel


def test_counts_are_its_own_and_states_are_shared():
    returned = gosprl.EmpiricalModel(None, 2)
    committed = CommittedModel(returned)
    a, b = returned.locate("a"), returned.locate("b")
    returned.update(a, 0, b)
    assert (returned.visits.sum(), committed.visits.sum()) == (1, 0)
    committed.update(a, 0, b)
    committed.update(b, 1, a)
    assert (returned.visits.sum(), committed.visits.sum()) == (1, 2)
    assert committed.states is returned.states
    assert committed.rows is returned.rows
    assert committed.returned is returned
    assert returned.returned is returned


def test_both_grow_together():
    """Unknown places and counts stay with their pairs while states are discovered beyond the room that there was."""
    returned = gosprl.EmpiricalModel(None, 2)
    committed = CommittedModel(returned)
    pairs = {}
    for i in range(100):
        s = returned.locate(i)
        pairs[i] = i % 2
        row = int(returned.rows.ptr[s]) + pairs[i]
        committed.add_unknown(row)
        committed.update(s, pairs[i], s)
        committed.mark_first(row, s)
    assert len(committed.unknown) == len(committed.visits) == len(returned.rows)
    for i in range(100):
        row = int(returned.rows.ptr[returned.locate(i)]) + pairs[i]
        assert (committed.unknown[row], committed.unknown_until[row], committed.visits[row]) == (1, 1, 1)
    assert (committed.unknown.sum(), committed.visits.sum(), returned.visits.sum()) == (100, 100, 0)


def test_what_was_counted_before_is_committed():
    returned = gosprl.EmpiricalModel(3, 1)
    returned.update(0, 0, 1)
    committed = CommittedModel(returned)
    assert committed.visits.tolist() == [1, 0, 0]
    returned.update(0, 0, 1)
    assert committed.visits.tolist() == [1, 0, 0]


def test_places_and_first_appearances():
    model = CommittedModel(gosprl.EmpiricalModel(3, 1))
    model.update(0, 0, 0)
    assert model.add_unknown(0) == 2
    model.update(0, 0, 1)
    model.mark_first(0, 1)
    assert model.places_of(0) == 3
    assert model.stored(np.array([0]))[3].tolist() == [1, -3]  # at place 3, or at 2
    model.update(0, 0, 2)
    model.fill(0, 2, 2)
    assert model.places_of(0) == 3
    assert (model.unknown[0], model.unknown_until[0]) == (0, 2)
    assert model.stored(np.array([0]))[3].tolist() == [1, -3, -3]
    model.update(0, 0, 2)
    assert model.stored(np.array([0]))[2].tolist() == [1, 1, 2]


def test_a_place_that_is_not_unknown_cannot_be_filled():
    model = CommittedModel(gosprl.EmpiricalModel(2, 1))
    model.update(0, 0, 1)
    with pytest.raises(gosprl.GosprlError, match="no place of row 0 is unknown"):
        model.fill(0, 1, 1)


def test_an_unknown_place_is_a_change_of_its_row():
    model = CommittedModel(gosprl.EmpiricalModel(3, 1))
    mark = model.mark()
    model.add_unknown(2)
    assert model.changed(mark).tolist() == [2]


@pytest.mark.parametrize("states", [3, None])
def test_a_copy_is_not_changed_by_what_follows(states):
    returned = gosprl.EmpiricalModel(states, 1)
    committed = CommittedModel(returned)
    s = returned.locate("a") if states is None else 0
    committed.add_unknown(int(returned.rows.ptr[s]))
    copy = committed.copy()
    committed.update(s, 0, s)
    committed.add_unknown(int(returned.rows.ptr[s]))
    assert (copy.visits.sum(), copy.unknown.sum()) == (0, 1)
    assert copy.returned is copy
