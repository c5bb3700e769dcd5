"""Vector environments in lockstep: the same steps as separate environments make, and no step that nobody ordered."""

import fleet_systems as systems
import gymnasium
import numpy as np
import pytest
from fleet_talk import opened
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from gosprl import GosprlError, InputError
from gosprl.fleet.orders import RESET, Joined, Lost, Order, Report
from gosprl.fleet.vector import IDLE, Vector
from gosprl.fleet.walking import Walker, describe
from gosprl.systems import as_system

MODES = [AutoresetMode.DISABLED, AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP]


class Chain(gymnasium.Env):
    """Walks to a random side; ends on the right with chance 1/2, is cut off after 12 steps; masks say what is left."""

    observation_space = gymnasium.spaces.Discrete(7, start=3)
    action_space = gymnasium.spaces.Discrete(2, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.age, self.over = int(self.np_random.integers(2)), 0, False
        return self.x + 3, {"action_mask": self.mask()}

    def mask(self):
        return np.array([1, self.x % 2 == 0], dtype=np.int8)

    def step(self, action):
        assert not self.over
        assert self.mask()[action - 1]
        self.x = int(np.clip(self.x + self.np_random.choice([-1, 1, 1]), 0, 6))
        self.age += 1
        ended, cut = self.x == 6 and self.np_random.random() < 0.5, self.age == 12
        self.over = ended or cut
        return self.x + 3, float(action) / 2, ended, cut, {"action_mask": self.mask()}


class Fixed(Chain):
    """No masks, never ends."""

    def mask(self):
        return np.ones(2, dtype=np.int8)

    def step(self, action):
        reward = super().step(action)[1]
        self.over = False
        return self.x + 3, reward, False, False, {}


class Broken(Fixed):
    def step(self, action):
        if action == 2:
            raise ZeroDivisionError("of its own")
        return super().step(action)


def sync(kind, count, mode=AutoresetMode.DISABLED, **options):
    return Vector(SyncVectorEnv([kind] * count, autoreset_mode=mode), entropy=4, **options)


def reference(kind, number):
    return Walker(as_system(kind()), number, 4)


def resets(talk, count):
    """All walkers have joined and are reset; their reports."""
    numbers = [event.walker for event in talk.events(count)]
    for number in numbers:
        talk.send(number, RESET)
    return talk.events(count)


@pytest.mark.parametrize("mode", MODES)
def test_each_walker_makes_the_steps_of_an_environment_of_its_own(mode):
    with opened(sync(Chain, 3, mode)) as talk:
        references = [reference(Chain, i) for i in range(3)]
        assert talk.events(3) == [Joined(0), Joined(1), Joined(2)]
        next_actions, endings, seen = [RESET] * 3, 0, 0
        sent = {}
        while seen < 900:
            for walker, action in enumerate(next_actions):
                if walker not in sent:
                    sent[walker] = talk.send(walker, action), action
            for report in talk.executor.receive():
                number, action = sent.pop(report.walker)
                assert report == references[report.walker].answer(Order(number, report.walker, action))
                over = report.terminated or report.truncated
                endings += over
                seen += 1
                # an offered action; where all are, the second
                chosen = 1 if report.actions is None else report.actions[0]
                next_actions[report.walker] = RESET if over else chosen
        assert endings > 30


@pytest.mark.parametrize("mode", MODES)
def test_a_walker_without_an_order_is_lost_and_its_step_counts_for_nobody(mode):
    with opened(sync(Chain, 2, mode)) as talk:
        resets(talk, 2)
        talk.send(0, 0)
        events = talk.events(3)
        assert isinstance(events[0], Report)
        assert events[1:] == [Lost(1, IDLE), Joined(2)]
        talk.send(1, RESET)  # gone
        talk.send(2, RESET)
        talk.send(0, 0)
        while True:  # at once, or when the episode that it is in has ended
            event = talk.event()
            if event.walker == 2:
                break
            over = event.terminated or event.truncated
            talk.send(0, RESET if over else 0)
        assert event.key in (0, 1)
        assert event[3:6] == (0.0, False, False)


def test_a_walker_that_waits_for_its_first_reset_may_be_left_alone():
    with opened(sync(Fixed, 2)) as talk:
        talk.events(2)
        talk.order(0, RESET)
        for _ in range(20):
            assert talk.order(0, 0).walker == 0
        assert talk.order(1, RESET).key in (0, 1)


def test_a_reset_within_an_episode():
    with opened(sync(Fixed, 2)) as talk:
        resets(talk, 2)
        for walker in (0, 1):
            for _ in range(6):
                talk.send(0, 0)
                talk.send(1, 0)
                talk.events(2)
            assert talk.order(walker, RESET).key in (0, 1)


@pytest.mark.parametrize("mode", MODES[1:])
def test_a_reset_within_an_episode_is_refused_where_it_cannot_be_made(mode):
    with opened(sync(Fixed, 1, mode)) as talk:
        resets(talk, 1)
        with pytest.raises(InputError, match=r"^resets: .* autoreset_mode=gymnasium.vector.AutoresetMode.DISABLED"):
            talk.send(0, RESET)


def test_a_step_before_the_reset_is_refused():
    with opened(sync(Fixed, 1)) as talk:
        talk.event()
        with pytest.raises(GosprlError, match="walker 0 has to be reset before it steps"):
            talk.send(0, 1)


def test_an_exception_ends_all_walkers():
    with opened(sync(Broken, 2)) as talk:
        resets(talk, 2)
        talk.send(0, 0)
        talk.send(1, 1)
        assert [lost[:2] for lost in talk.events(2)] == [(walker, "ZeroDivisionError: of its own") for walker in (0, 1)]
        with pytest.raises(GosprlError, match="no walker is left: ZeroDivisionError: of its own"):
            talk.executor.receive()


def test_dismissed_and_idle():
    with opened(sync(Fixed, 2)) as talk:
        resets(talk, 2)
        talk.executor.dismiss(0)
        assert talk.event() == Joined(2)
        assert talk.executor.receive(0.01) == []
        with pytest.raises(GosprlError, match="no walker has an order"):
            talk.executor.receive()


def test_a_key_of_the_user_and_a_list_of_actions():
    with opened(sync(Fixed, 1, key=lambda observation, info: f"at {observation}", actions=[2])) as talk:
        assert resets(talk, 1)[0].key.startswith("at ")
        assert talk.order(0, 0).reward == 1.0


def test_processes_of_gymnasium():
    executor = Vector(
        AsyncVectorEnv([Fixed] * 2, context="forkserver", autoreset_mode=AutoresetMode.DISABLED), entropy=4
    )
    with opened(executor) as talk:
        references = [reference(Fixed, i) for i in range(2)]
        assert resets(talk, 2) == [references[i].answer(Order(i + 1, i, RESET)) for i in range(2)]
        for _ in range(30):
            orders = [Order(talk.send(i, 1), i, 1) for i in range(2)]
            assert talk.events(2) == [references[order.walker].answer(order) for order in orders]


def test_other_vector_environments_take_one_seed():
    env = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point")
    with opened(Vector(env, key=lambda observation, info: round(float(observation[0]), 1), entropy=0)) as talk:
        resets(talk, 2)
        for walker in (0, 1):
            talk.send(walker, 1)
        assert {report.reward for report in talk.events(2)} == {1.0}


def test_bad_input():
    with pytest.raises(InputError, match=r"^system: expected a gymnasium.vector.VectorEnv, got Chain"):
        Vector(Chain())
    env = SyncVectorEnv([Chain])
    env.metadata = {}
    with pytest.raises(InputError, match=r"metadata\['autoreset_mode'\] = None"):
        Vector(env)
    executor = sync(Chain, 1, describe=describe(as_system(systems.Texts())))
    with pytest.raises(InputError, match=r"^system: expected copies of one system, but their number of states"):
        executor.open()
