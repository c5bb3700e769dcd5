"""Guarantee: a value that prints as one line."""

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from walked import RIVER

import gosprl
from gosprl import Guarantee

KINDS = {
    "delta=0.1": Guarantee(0.1),
    "delta=1e-06": Guarantee(1e-6),
    "delta=0.05, given the successors": Guarantee(0.05, given=("the successors",)),
    "delta=0.05, given the successors and the rewards": Guarantee(0.05, given=("the successors", "the rewards")),
    "delta=0.1: |p_hat - p| <= 0.2": Guarantee(0.1, of="|p_hat - p| <= 0.2"),
    "delta=0.1, given the successors: D <= 3": Guarantee(0.1, of="D <= 3", given=("the successors",)),
    "known dynamics": Guarantee(known=True),
    "known dynamics: D <= 3": Guarantee(known=True, of="D <= 3"),
    "heuristic: scale 0.1": Guarantee.heuristic("scale 0.1"),
    "none: a random walk": Guarantee.none("a random walk"),
    "that of MySets": Guarantee(why="that of MySets"),
}


@pytest.mark.parametrize("text", KINDS)
def test_it_prints_as_one_line(text):
    assert str(KINDS[text]) == text
    assert f"{KINDS[text]}" == text


@pytest.mark.parametrize("text", KINDS)
def test_whether_anything_is_promised(text):
    assert KINDS[text].holds == text.startswith(("delta", "known"))


@pytest.mark.parametrize("text", KINDS)
def test_it_is_a_value(text):
    guarantee = KINDS[text]
    assert guarantee == replace(guarantee)
    assert hash(guarantee) == hash(replace(guarantee))
    assert [other for other in KINDS.values() if other == guarantee] == [guarantee]
    assert guarantee != text
    with pytest.raises(FrozenInstanceError):
        guarantee.level = 0.5


@pytest.mark.parametrize("text", KINDS)
def test_it_travels_between_processes(text):
    again = pickle.loads(pickle.dumps(KINDS[text]))
    assert again == KINDS[text]
    assert str(again) == text
    assert eval(repr(again), {"Guarantee": Guarantee}) == again


def test_the_same_level_of_another_statement():
    run = Guarantee(0.1, given=("the successors",))
    answer = run.about("V* <= 3")
    assert answer == Guarantee(0.1, "V* <= 3", ("the successors",))
    assert run.of == ""
    assert str(Guarantee.heuristic("scale 0.1").about("V* <= 3")) == "heuristic: scale 0.1: V* <= 3"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Guarantee(0.1)),
        ({"delta": 0.02, "confidence": "bernstein"}, Guarantee(0.02)),
        ({"successors": RIVER}, Guarantee(0.1, given=("the successors",))),
        ({"dynamics": RIVER}, Guarantee(known=True)),
        ({"strategy": "gosprl", "dynamics": RIVER}, Guarantee(known=True)),
        ({"strategy": "gosprl", "scale": 0.1}, Guarantee.heuristic("scale 0.1")),
        ({"strategy": "gosprl", "scale": 2.0}, Guarantee(0.1)),
        ({"strategy": "gosprl", "confidence": gosprl.KL(0.1)}, Guarantee(why="that of KL")),
        ({"strategy": "practical"}, Guarantee.heuristic("scale 0.01")),
        ({"strategy": "practical", "dynamics": RIVER}, Guarantee(known=True)),
        ({"strategy": "random"}, Guarantee.none("a random walk")),
        ({"strategy": "zero_rmax"}, None),
        ({"strategy": "maxent"}, Guarantee.none("the heuristic MaxEnt")),
    ],
    ids=str,
)
def test_what_runs_promise(options, expected):
    guarantee = gosprl.collect(RIVER, 1, seed=0, max_steps=200, **options).guarantee
    assert isinstance(guarantee, Guarantee)
    if expected is None:
        assert str(guarantee).startswith("none: ")
    else:
        assert guarantee == expected
