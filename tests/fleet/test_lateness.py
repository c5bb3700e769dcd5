"""When answers are late: by the mean of their kind, or after a fixed time."""

import math

import pytest

from gosprl import InputError
from gosprl.fleet.lateness import FEW, FIRST, LEAST, Lateness


def test_a_multiple_of_the_mean_once_there_is_one():
    lateness = Lateness(20)
    for i in range(FEW):
        assert lateness.limit() == FIRST
        lateness.note(float(i))
    assert lateness.limit() == pytest.approx(20 * (FEW - 1) / 2)
    assert not lateness.is_fixed


def test_resets_have_a_mean_of_their_own():
    lateness = Lateness(10)
    for _ in range(FEW):
        lateness.note(1.0)
    assert lateness.limit(of_reset=True) == FIRST
    for _ in range(FEW):
        lateness.note(30.0, of_reset=True)
    assert (lateness.limit(), lateness.limit(of_reset=True)) == (10.0, 300.0)


def test_fast_steps_are_not_late_because_the_machine_paused():
    lateness = Lateness(20)
    for _ in range(FEW):
        lateness.note(1e-5)
    assert lateness.limit() == LEAST


@pytest.mark.parametrize(("text", "seconds"), [("5s", 5), ("300ms", 0.3), ("2min", 120), ("0.5 h", 1800)])
def test_a_fixed_time(text, seconds):
    lateness = Lateness(text)
    lateness.note(100.0)
    assert lateness.limit() == lateness.limit(of_reset=True) == pytest.approx(seconds)
    assert lateness.is_fixed


def test_never():
    lateness = Lateness(None)
    for _ in range(2 * FEW):
        lateness.note(1.0)
    assert lateness.limit() == math.inf


@pytest.mark.parametrize("late", ["5", "five s", "0s", "-1s", 0, -3, math.nan, True])
def test_bad_input(late):
    with pytest.raises(InputError, match="late"):
        Lateness(late)


def test_the_last_samples_are_late_sooner_unless_the_time_is_fixed():
    lateness, fixed = Lateness(20), Lateness("5s")
    for _ in range(10):
        lateness.note(2.0)
        fixed.note(2.0)
    assert (lateness.limit(), lateness.limit(at_end=True)) == (40.0, pytest.approx(12.0))
    assert (fixed.limit(), fixed.limit(at_end=True)) == (5.0, 5.0)
