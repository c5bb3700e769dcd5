"""A crash of the system itself is an outcome: the pair led to it, and then to the reset."""

import pickle

import numpy as np
import pytest

import gosprl
from gosprl import CRASH, CollectionError, Collector, EmpiricalModel, InputError
from gosprl.systems import Outcome, System


class Fragile(System):
    """Two rooms; action 1 changes the room, and in room 1 crashes the system one time in four."""

    def __init__(self, states=None, answer=None):
        self._states, self._answer = states, answer
        self.log = []

    def model(self):
        return EmpiricalModel(self._states, 2)

    def seed(self, rng):
        self.rng = rng

    def reset(self):
        self.room, self.alive = 0, True
        return 0

    def step(self, action):
        assert self.alive
        before, led_to = self.room, self.room
        if action == 1:
            led_to = CRASH if self.room == 1 and self.rng.random() < 0.25 else 1 - self.room
        self.log.append((before, action, led_to))
        if led_to is CRASH:
            self.alive = False
            return self._answer or Outcome(CRASH, terminated=True)
        self.room = led_to
        return Outcome(led_to)


@pytest.mark.parametrize("states", [None, 2])
@pytest.mark.parametrize("resets", ["terminal", "anytime"])
def test_a_crash_is_where_the_step_led(states, resets, strategy):
    system = Fragile(states)
    result = gosprl.collect(system, 30, seed=0, strategy=strategy, resets=resets)
    crashes = sum(led_to is CRASH for _, _, led_to in system.log)
    assert result.met
    assert (result.crashes, result.steps) == (crashes, len(system.log))
    assert crashes > 0
    assert result.resets >= crashes - 1
    states = result.model.states
    s, a, s_next, count = result.model.transitions()
    seen = {(states[i], int(j), states[k]): int(n) for i, j, k, n in zip(s, a, s_next, count, strict=True)}
    assert seen == {step: system.log.count(step) for step in set(system.log)}
    crash = states.final(CRASH)
    assert (states.kind(crash), states.name(crash), states[crash]) == ("crash", "crash", CRASH)
    assert result.counts.shape == (2, 2)  # the crash is no state to sample
    assert pickle.loads(pickle.dumps(result)).model.states[crash] is CRASH
    assert f"crashes    {crashes}" in repr(result)


def test_the_set_of_a_pair_has_the_crash_as_a_next_state():
    model = gosprl.collect(Fragile(2), 40, seed=1).model
    sets = gosprl.KL(0.1).intervals(model, np.array([model.rows.index(1, 1)]))
    ends = {model.states.kind(int(x)): (low, up) for x, low, up in zip(sets.succ, sets.lower, sets.upper, strict=True)}
    assert ends["crash"][0] < 0.25 < ends["crash"][1]
    assert ends["live"][0] < 0.75 < ends["live"][1]


def test_ask_and_tell_hear_of_crashes():
    collector = Collector(actions=2, need=5, seed=0)
    rng, room, crashes = np.random.default_rng(0), "a", 0
    while not collector.done:
        action = collector.ask(room)
        if action == 1 and rng.random() < 0.5:
            collector.tell(room, action, None, crashed=True)
            room, crashes = "a", crashes + 1
        else:
            after = "b" if action == 1 else "a"
            collector.tell(room, action, after)
            room = after
    result = collector.result()
    assert (result.met, result.crashes) == (True, crashes)
    assert crashes > 0


def test_a_crash_where_there_are_no_resets():
    with pytest.raises(
        CollectionError, match="no ending with resets='never', but the system crashed at step"
    ) as caught:
        gosprl.collect(Fragile(), 30, seed=0, resets="never")
    assert caught.value.result.steps > 0


@pytest.mark.parametrize("answer", [Outcome(CRASH), Outcome(CRASH, truncated=True), (CRASH, 0.0, False, False)])
@pytest.mark.parametrize("states", [None, 2])
def test_a_crash_ends_the_episode(answer, states):
    with pytest.raises(CollectionError, match="expected an observation, or CRASH with terminated=True") as caught:
        gosprl.collect(Fragile(states, answer), 30, seed=0)
    assert caught.value.result.crashes == 0


def test_a_system_cannot_begin_with_a_crash():
    class Dead(Fragile):
        def reset(self):
            return CRASH

    with pytest.raises(InputError, match=r"the state that Dead\.reset\(\) returned: expected an observation"):
        gosprl.collect(Dead(), 1)
