"""What a walker makes of what systems return, and what descriptions say."""

import functools

import fleet_systems as systems
import gymnasium
import numpy as np
import pytest

import gosprl
from gosprl import InputError
from gosprl.fleet.orders import RESET, Order, Report
from gosprl.fleet.walking import Walker, check_same, describe, difference, reason, reward_of
from gosprl.systems import Outcome, as_system


class Says(systems.Faulty):
    """Returns what it is told to."""

    def __init__(self, start=0, outcome=None):
        super().__init__()
        self.start, self.outcome = start, outcome

    def reset(self):
        return self.start

    def step(self, action):
        return self.outcome


def stepped(outcome):
    return Walker(Says(outcome=outcome), 4, 0).answer(Order(9, 4, 1))


@pytest.mark.parametrize(
    ("outcome", "report"),
    [
        (Outcome(2), Report(9, 4, 2)),
        (Outcome(np.int64(2), np.float32(0.5)), Report(9, 4, 2, 0.5)),
        ((1, 3, False, True), Report(9, 4, 1, 3.0, False, True)),
        ([1, 3, True, False, (0,)], Report(9, 4, 1, 3.0, True)),
        (Outcome(1, actions=(0, 2)), Report(9, 4, 1, actions=(0, 2))),
        (Outcome(gosprl.CRASH, terminated=True), Report(9, 4, gosprl.CRASH, 0.0, True)),
    ],
)
def test_outcomes(outcome, report):
    got = stepped(outcome)
    assert got == report
    assert [type(part) for part in got] == [type(part) for part in report]


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (None, "expected an Outcome"),
        ((1, 2), "expected an Outcome"),
        (Outcome(3), "expected a state in 0..2, got 3"),
        (Outcome("a"), "expected whole numbers"),
        (Outcome(1, np.inf), "reward: expected a finite number, got inf"),
        (Outcome(1, "2"), "reward: expected a finite number"),
        (Outcome(gosprl.CRASH), "expected CRASH with terminated=True"),
    ],
)
def test_what_no_system_may_return(outcome, message):
    with pytest.raises(InputError, match=message):
        stepped(outcome)


def test_a_reset_is_no_crash():
    with pytest.raises(InputError, match="expected an observation, got CRASH"):
        Walker(Says(start=gosprl.CRASH), 0, 0).answer(Order(0, 0, RESET))


def test_rewards():
    assert reward_of(np.float64(0.5)) == 0.5
    for wrong in (None, "1", b"1", np.nan, 10**400, [1, 2]):
        with pytest.raises(InputError, match="reward: expected a finite number"):
            reward_of(wrong)


def test_reasons_are_short_and_on_one_line():
    assert reason(ValueError("a\n  b")) == "ValueError: a b"
    assert reason(KeyboardInterrupt()) == "KeyboardInterrupt"
    assert len(reason(ValueError("x" * 10_000))) == 300


class Spaced:
    def __init__(self, observations, actions):
        self.observation_space, self.action_space = observations, actions

    def reset(self, *, seed=None):
        raise NotImplementedError

    def step(self, action):
        raise NotImplementedError


D, M = gymnasium.spaces.Discrete, gymnasium.spaces.MultiDiscrete


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (Spaced(D(4), D(2)), Spaced(D(5), D(2)), "number of states: expected 4 as in the learner, got 5"),
        (Spaced(D(4), D(2)), Spaced(D(4), D(3)), "number of actions: expected 2 as in the learner, got 3"),
        (Spaced(D(4), D(2)), Spaced(D(4, start=1), D(2)), "first observation: expected 0 as in the learner, got 1"),
        (Spaced(D(4), D(2)), Spaced(D(4), D(2, start=1)), "action values: expected none .* got \\[1, 2\\]"),
        (Spaced(M([2, 2]), D(2)), Spaced(M([2, 3]), D(2)), r"observation space: expected MultiDiscrete\(\[2 2\]\)"),
        (gosprl.envs.make("toy3"), gosprl.envs.make("riverswim", states=3), "pairs of state and action"),
    ],
)
def test_differences_have_words(one, other, words):
    ours, theirs = describe(as_system(one)), describe(as_system(other))
    assert difference(ours, ours) == ""
    check_same(ours, ours)
    check_same(None, theirs)
    with pytest.raises(InputError, match=f"^system: expected copies of one system, but their .*{words}"):
        check_same(ours, theirs)


def test_descriptions_stay_small():
    values = [functools.partial(print, i) for i in range(2000)]
    facts = describe(as_system(Spaced(D(4), None), actions=values))
    assert len(str(facts)) < 500
    assert difference(facts, describe(as_system(Spaced(D(4), None), actions=values[::-1])))
