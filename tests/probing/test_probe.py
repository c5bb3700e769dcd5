"""`gosprl.probe`: what is said of systems whose truth is known, of those that fail, and of wrong arguments."""

import dataclasses
import warnings

import gymnasium
import pytest

import gosprl
from evidence.probe import TRUTH, claims, right
from evidence.probed import TEN, Broken, Clock
from gosprl import InputError

QUICK = {"MiniGrid, partial view": 20_000, "Blackjack": 30_000, "absorbing trap": 5_000}


@pytest.mark.parametrize("name", TEN)
def test_what_is_said_is_true(name):
    env, options = TEN[name]()
    found = gosprl.probe(env, seed=0, max_steps=QUICK.get(name, 50_000), **options)
    told, truth = claims(found), TRUTH[name]
    good, known = right(told, truth)
    assert good == known, (told, truth)


def test_the_slow_one_is_said_to_be_slow():
    env, options = TEN["slow"]()
    cost = gosprl.probe(env, seed=0, max_steps=300, **options).cost
    assert 1e-3 <= cost.system <= cost.seconds
    assert cost.seconds < 0.1  # on a busy machine


class Raises(Broken):
    """Raises instead."""

    def step(self, action):
        if self.steps == self.fails_at - 1:
            raise OSError("the cable is loose")
        return super().step(action)


class NotANumber(Broken):
    """Returns a reward that is none."""

    def step(self, action):
        observation, _, *rest = super().step(action)
        return (observation if observation < 100 else 0), float("nan" if self.steps == 700 else 0), *rest


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (Broken, "observation left its space"),
        (Raises, "the cable is loose (OSError, raised by action "),
        (NotANumber, "reward: expected a finite number, got nan"),
    ],
)
def test_a_failure_is_a_finding(make, says):
    found = gosprl.probe(make(), seed=0)
    assert found.stop == "failed"
    assert found.steps == 699
    assert not found.met
    assert says in found.failure
    assert found.verdicts[0].about == "failure"
    assert found.states > 20
    assert "would fail as this walk did" in repr(found)


def test_a_failure_after_the_need_was_met():
    env = Broken()
    env.fails_at = 4000
    found = gosprl.probe(env, need=1, seed=0)
    assert (found.met, found.stop, found.steps) == (True, "failed", 3999)
    assert 400 <= found.forecast.steps < 3999
    assert "would fail" not in repr(found)


def test_a_failure_at_the_first_reset():
    class Dead:
        def reset(self, seed=None):
            raise ConnectionError("nobody there")

        def step(self, action):
            raise AssertionError

    found = gosprl.probe(Dead(), actions=2, seed=0)
    assert found.steps == 0
    assert "nobody there (ConnectionError, raised by a reset)" in found.failure
    assert [verdict.about for verdict in found.verdicts] == ["failure"]


def test_bugs_of_ours_are_not_said_to_be_failures_of_the_system(monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("planning is broken")

    monkeypatch.setattr("gosprl.strategies.guarded.GuardedPlanner.attempt", broken)
    with pytest.raises(gosprl.CollectionError, match="planning is broken"):
        gosprl.probe(Clock(), seed=0)


def test_the_same_seed_gives_the_same_probe():
    one, two = (gosprl.probe(gymnasium.make("FrozenLake-v1"), seed=3) for _ in range(2))
    for name in ("size", "outcomes", "endings", "rewards", "aliasing", "classes", "steps", "attempts", "stop"):
        assert getattr(one, name) == getattr(two, name)
    assert one.forecast.steps == two.forecast.steps


def test_what_collect_takes_is_taken():
    class Cells:
        def reset(self, seed=None):
            self.at = 0
            return [self.at], {}

        def step(self, word):
            self.at = max(0, min(5, self.at + (1 if word == "up" else -1)))
            return [self.at], 0.0, False, False, {}

    options = {"key": lambda observation, info: observation[0] // 2, "actions": ["up", "down"]}
    found = gosprl.probe(Cells(), need={0: 3, 1: {"up": 2}}, seed=0, max_states=3, horizon=50, **options)
    assert (found.states, found.size.actions, found.size.at_most) == (3, 2, 3)
    assert found.aliasing.found  # a key that is too coarse


def test_masks():
    found = gosprl.probe(gymnasium.make("Taxi-v4"), need=1, seed=0)
    assert found.masked
    assert found.aliased_offers == ()
    assert found.size.pairs < 6 * found.size.states


class Moody(Clock):
    """Offers other actions at even and at odd times."""

    def reset(self, **options):
        observation, _ = super().reset(**options)
        return observation, {"action_mask": [1, 1]}

    def step(self, action):
        *answer, _ = super().step(action)
        return *answer, {"action_mask": [1, self.time % 2]}


def test_aliased_offers():
    found = gosprl.probe(Moody(), need=2, seed=0, max_steps=500)
    assert found.aliased_offers
    assert "do not always offer the same actions" in repr(found)


def test_bounds_are_left_out_where_the_system_is_not_markov():
    assert any(verdict.known == "proved" for verdict in gosprl.probe(TEN["slow"]()[0], seed=0, max_steps=800).verdicts)
    about = [v.about for v in gosprl.probe(Clock(), seed=0).verdicts if v.known == "proved"]
    assert about[0] == "history"
    assert set(about[1:]) == {""}
    assert "the guarantee would be: none" in repr(gosprl.probe(Clock(), seed=0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_steps": 0}, "max_steps: expected a whole number >= 1, got 0"),
        ({"max_seconds": -1}, "max_seconds: expected a positive finite number, got -1"),
        ({"level": 0}, "level: expected a number strictly between 0 and 1, got 0"),
        ({"delta": 2}, "delta: expected a number strictly between 0 and 1, got 2"),
        ({"need": -1}, "need: expected a whole number >= 0, got -1"),
        ({"resets": "often"}, "resets: 'often' is not known"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(InputError, match=message):
        gosprl.probe(Clock(), **options)


def test_no_warnings_and_plain_values():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = gosprl.probe(Clock(), need=1, seed=0)
    assert dataclasses.asdict(found)["size"]["states"] == 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.steps = 0
