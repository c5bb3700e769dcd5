"""Intervals of a user's own family: everything that can be wrong with them is an error that names it."""

from dataclasses import replace

import numpy as np
import pytest

import gosprl
from gosprl import KL, Confidence, InputError
from gosprl.envs import make

RIVER = make("riverswim6")


def changed(name, change):
    """A function of intervals: the same with one field changed."""
    return lambda sets: replace(sets, **{name: change(getattr(sets, name))})


def with_entry(value):
    def change(array):
        array = array.copy()
        array[0] = value
        return array

    return change


WRONG = {
    "nothing": (lambda sets: None, "to return Intervals, got None"),
    "an array": (lambda sets: np.zeros(3), "to return Intervals"),
    "ptr too short": (changed("ptr", lambda ptr: ptr[:-1]), r"entries in \w+\.intervals\.ptr"),
    "ptr of floats": (changed("ptr", lambda ptr: ptr.astype(float)), r"\.ptr to be a int64 array, got float64"),
    "ptr not from 0": (changed("ptr", lambda ptr: ptr + 1), r"\.ptr from 0 to the number of successors"),
    "ptr falling": (
        changed("ptr", lambda ptr: np.append(ptr[:-1][::-1], ptr[-1])),
        r"\.ptr from 0|successors in 0\.\.5",
    ),
    "succ out of range": (changed("succ", with_entry(6)), r"successors in 0\.\.5, each once, at \(s, a\)"),
    "succ negative": (changed("succ", with_entry(-1)), r"successors in 0\.\.5, each once, at \(s, a\)"),
    "succ a list": (changed("succ", lambda succ: succ.tolist()), r"\.succ to be a int32 array"),
    "lower too long": (changed("lower", lambda lower: np.append(lower, 0.0)), r"entries in \w+\.intervals\.lower"),
    "lower nan": (changed("lower", with_entry(np.nan)), "hold no distribution"),
    "upper below lower": (changed("upper", lambda upper: 0 * upper), "hold no distribution"),
    "upper of words": (changed("upper", lambda upper: upper.astype(str)), r"\.upper to be a float64 array"),
    "each negative": (changed("each", lambda each: each - 2), "hold no distribution"),
    "total [n, 1]": (changed("total", lambda total: total[:, None]), r"\.total to be a float64 array"),
    "total too short": (changed("total", lambda total: total[1:]), r"entries in \w+\.intervals\.total"),
}


class Wrong(Confidence):
    """KL sets that go wrong once there are `after` visits."""

    def __init__(self, change, after):
        self.change, self.after = change, after

    def intervals(self, model, rows=None):
        sets = KL(0.1).intervals(model, rows)
        return self.change(sets) if model.visits.sum() >= self.after else sets


@pytest.mark.parametrize("strategy", ["gosprl", "zero_one_ucrl"])
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_intervals_on_the_way_are_named_and_nothing_is_lost(wrong, strategy):
    change, words = WRONG[wrong]
    with pytest.raises(gosprl.CollectionError, match=rf"confidence: .*{words}") as caught:
        gosprl.collect(RIVER, 50, strategy=strategy, confidence=Wrong(change, after=20), seed=0)
    assert caught.value.result.steps >= 20
    assert caught.value.result.counts.sum() == caught.value.result.steps


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_intervals_of_a_model(wrong):
    change, words = WRONG[wrong]
    model = gosprl.collect(RIVER, 3, seed=0).model
    with pytest.raises(InputError, match=rf"confidence: .*{words}"):
        gosprl.plan(model, goals=[5], confidence=Wrong(change, after=0))


def test_a_successor_twice_in_a_row():
    def twice(sets):
        return replace(sets, succ=np.zeros_like(sets.succ))

    model = gosprl.collect(RIVER, 3, seed=0).model
    with pytest.raises(InputError, match="each once, at"):
        gosprl.plan(model, goals=[5], confidence=Wrong(twice, after=0))


def test_other_layouts_and_types_are_taken():
    def other(sets):
        strided = {name: np.repeat(getattr(sets, name), 2)[::2] for name in ("succ", "lower", "upper", "each", "total")}
        return replace(sets, ptr=sets.ptr.astype(np.int32), **strided)

    model = gosprl.collect(RIVER, 3, seed=0).model
    expected = gosprl.plan(model, goals=[5], confidence=KL(0.1))
    got = gosprl.plan(model, goals=[5], confidence=Wrong(other, after=0))
    assert got.values.tolist() == expected.values.tolist()
