"""Environments and other objects that are stepped through: what is called, what comes back, and what is refused."""

import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from gosprl import GosprlError, InputError
from gosprl.envs import make
from gosprl.systems import Outcome, Start, as_system
from gosprl.systems.stepper import Stepper

FROZEN = "FrozenLake-v1"


class Script:
    """Answers what it is told to, in turn; no environment of Gymnasium."""

    def __init__(self, *answers, first=(0, {})):
        self.answers, self.first, self.calls = list(answers), first, []

    def reset(self, seed=None):
        self.calls.append(("reset", seed))
        return self.first

    def step(self, action):
        self.calls.append(("step", action))
        return self.answers.pop(0)


class Env(gym.Env):
    """A Gymnasium environment with the spaces given, which answers what it is told to."""

    def __init__(self, observations, actions, *answers, first=(0, {})):
        self.observation_space, self.action_space = observations, actions
        self.script = Script(*answers, first=first)

    def reset(self, *, seed=None, options=None):
        return self.script.reset(seed)

    def step(self, action):
        return self.script.step(action)


def begun(system, **options):
    stepper = Stepper(system, **options)
    stepper.reset()
    return stepper


def rng(seed=0):
    return np.random.default_rng(seed)


# Gymnasium's own


@pytest.mark.parametrize(
    ("name", "size", "actions", "numbered"),
    [
        (FROZEN, 16, 4, True),
        ("Taxi-v4", 500, 6, True),
        ("CliffWalking-v1", 48, 4, True),
        ("Blackjack-v1", 704, 2, False),
    ],
)
def test_the_steps_of_an_environment_pass_through(name, size, actions, numbered):
    """Compared with a second environment that is stepped by hand from the same seed."""
    stepper, env, choose = Stepper(gym.make(name, max_episode_steps=50)), gym.make(name, max_episode_steps=50), rng(1)
    facts = (stepper.space_size, stepper.num_actions, stepper.numbered, stepper.first, list(stepper.action_values))
    assert facts == (size, actions, numbered, 0, list(range(actions)))
    stepper.seed(rng())
    start, (observation, info) = stepper.reset(), env.reset(seed=int(rng().integers(2**31)))
    for _ in range(300):
        assert stepper.encoder.decode(start.state) == observation
        assert start.actions == masked(info, actions)
        over = False
        while not over:
            action = int(choose.integers(actions))
            outcome, (observation, reward, terminated, truncated, info) = stepper.step(action), env.step(action)
            assert stepper.encoder.decode(outcome.state) == observation
            assert outcome[1:4] == (reward, terminated, truncated)
            assert outcome.actions == (None if terminated else masked(info, actions))
            over = terminated or truncated
        start, (observation, info) = stepper.reset(), env.reset()


def masked(info, actions):
    found = tuple(np.flatnonzero(info.get("action_mask", np.ones(actions))).tolist())
    return None if len(found) == actions else found


def test_types_are_plain():
    stepper = begun(gym.make(FROZEN))
    outcome = stepper.step(1)
    assert [type(part) for part in outcome[:4]] == [int, float, bool, bool]
    stepper = begun(gym.make("Blackjack-v1"))
    assert {type(part) for part in stepper.step(0).state} == {int}


def test_spaces_that_start_elsewhere():
    env = Env(spaces.Discrete(3, start=-5), spaces.Discrete(2, start=7), (-3, 1, False, False, {}), first=(-5, {}))
    stepper = Stepper(env)
    assert (stepper.space_size, stepper.first, stepper.num_actions) == (3, -5, 2)
    assert stepper.reset() == Start(0, None)  # states are numbered from 0; the model tells observations
    assert stepper.step(1) == Outcome(2, 1.0, False, False, None)
    assert [stepper.model().states[i] for i in range(3)] == [-5, -4, -3]
    assert env.script.calls[-1] == ("step", 8)


def test_time_limits_truncate():
    stepper = begun(gym.make("CliffWalking-v1", max_episode_steps=3))
    assert [stepper.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def test_nothing_but_reset_and_step_is_used(monkeypatch):
    def refused(*_, **__):
        raise RuntimeError("a space was sampled, or P was looked at")

    class Closed(Env):
        P = property(refused)

    monkeypatch.setattr(spaces.Discrete, "sample", refused)
    stepper = begun(Closed(spaces.Discrete(2), spaces.Discrete(2), (1, 0.0, True, False, {})))
    assert stepper.step(0) == Outcome(1, 0.0, True)


def test_actions_that_are_arrays_are_handed_over_as_copies():
    env = Env(spaces.Discrete(2), spaces.MultiDiscrete([2, 3]), *[(0, 0.0, False, False, {})] * 2)
    stepper = begun(env)
    stepper.step(4)
    action = env.script.calls[-1][1]
    assert (action.tolist(), action.dtype) == ([1, 1], np.int64)
    action[:] = 9
    stepper.step(4)
    assert env.script.calls[-1][1].tolist() == [1, 1]


def test_minigrid_observations():
    """As MiniGrid declares them: the package itself is not needed."""
    image = np.arange(147, dtype=np.uint8).reshape(7, 7, 3)
    space = spaces.Dict(
        image=spaces.Box(0, 255, (7, 7, 3), np.uint8), direction=spaces.Discrete(4), mission=spaces.Text(9)
    )
    first = {"image": image, "direction": 2, "mission": "go"}
    stepper = Stepper(
        Env(space, spaces.Discrete(3), (first | {"direction": 3}, 0, False, False, {}), first=(first, {}))
    )
    state = stepper.reset().state
    image += 1  # environments may draw into the same array
    shown = stepper.encoder.decode(state)
    assert (shown["image"].ravel().tolist(), shown["direction"], shown["mission"]) == (list(range(147)), 2, "go")
    assert stepper.step(0).state != state
    assert stepper.space_size is None


# Objects that are no environments


def test_any_object_with_reset_and_step():
    script = Script(("hall", 1, False, False, {}), ("attic", 0.5, True, False, {}), first=("hall", {}))
    stepper = Stepper(script, actions=["up", "down"])
    assert (stepper.space_size, stepper.num_actions, stepper.numbered) == (None, 2, False)
    stepper.seed(rng())
    assert stepper.reset() == Start("hall", None)
    assert stepper.step(0) == Outcome("hall", 1.0)
    assert stepper.step(1) == Outcome("attic", 0.5, True)
    assert script.calls == [("reset", int(rng().integers(2**31))), ("step", "up"), ("step", "down")]
    assert (stepper.steps, stepper.resets) == (2, 1)


def test_spaces_of_an_object_are_used():
    script = Script((2, 0, False, False, {}))
    script.observation_space, script.action_space = spaces.Discrete(3), spaces.Discrete(2)
    stepper = begun(script)
    assert (stepper.space_size, stepper.num_actions, stepper.step(1).state) == (3, 2, 2)


def test_actions_are_required_where_there_is_no_action_space():
    with pytest.raises(
        InputError, match=r"^actions: expected the number of actions, a list of their values, or a func"
    ):
        Stepper(Script())


@pytest.mark.parametrize("env", [False, True])
def test_the_seed_goes_in_once(env):
    system = Env(spaces.Discrete(1), spaces.Discrete(1)) if env else Script()
    stepper = Stepper(system, actions=1)
    stepper.seed(rng(3))
    for _ in range(3):
        stepper.reset()
    expected = int(rng(3).integers(2**31))
    assert (system.script if env else system).calls == [("reset", expected), ("reset", None), ("reset", None)]


def test_a_reset_without_a_seed():
    class Unseeded(Script):
        def reset(self):
            return super().reset()

    class Keywords(Script):
        def reset(self, **options):
            return super().reset(**options)

    for kind, seeded in ((Unseeded, False), (Keywords, True)):
        stepper = Stepper(kind(), actions=1)
        stepper.seed(rng())
        stepper.reset()
        assert (stepper.system.calls[0][1] is not None) == seeded


def test_key_and_actions_of_the_users_own():
    place = {"x": 1.7, "doors": ["n"]}
    script = Script((place, 0, False, False, {"lives": 2}), first=({"x": 0.2, "doors": ["n", "s"]}, {"lives": 3}))
    options = {"key": lambda place, info: (round(place["x"]), info["lives"]), "actions": lambda place: place["doors"]}
    stepper = Stepper(script, **options)
    assert stepper.num_actions is None
    assert stepper.reset() == Start((0, 3), (0, 1))
    assert stepper.step(1) == Outcome((2, 2), 0.0, actions=(0,))
    assert (script.calls[-1], stepper.action_values) == (("step", "s"), ["n", "s"])


def test_masks_where_an_episode_ends():
    """Empty where it terminated: nothing is offered any more. After a truncation the state goes on."""
    nothing, some = {"action_mask": [0, 0]}, {"action_mask": [0, 1]}
    script = Script((1, 0, True, False, nothing), (1, 0, False, True, some))
    assert begun(script, actions=2).step(0) == Outcome(1, 0.0, True)
    assert begun(script, actions=2).step(0) == Outcome(1, 0.0, False, True, (1,))


# What is refused


class Both:
    reset = step = None


@pytest.mark.parametrize("system", [None, 3, FROZEN, Script, gym.Env, lambda: 0, [gym.make(FROZEN)], Both(), rng()])
def test_what_cannot_be_stepped(system):
    words = r"^system: expected a TabularMDP, a Gymnasium environment, an object with Gymnasium's reset and step, or a "
    with pytest.raises(InputError, match=words):
        as_system(system, actions=2)


def test_vector_environments():
    envs = gym.make_vec(FROZEN, num_envs=2, vectorization_mode="sync")
    with pytest.raises(
        InputError, match=r"^system: expected one environment, got a vector environment \(SyncVectorEnv\)"
    ):
        as_system(envs)
    envs.close()


def test_automatic_resets():
    env = gym.wrappers.TimeLimit(gym.wrappers.Autoreset(gym.make(FROZEN)), 100)
    with pytest.raises(
        InputError, match=r"^system: expected an environment without gymnasium\.wrappers\.Autoreset, .*unwrap"
    ):
        Stepper(env)


def test_tables_take_neither_key_nor_actions():
    mdp = make("four_room43")
    assert as_system(mdp).mdp is mdp
    with pytest.raises(InputError, match=r"^key: expected None for a TabularMDP"):
        as_system(mdp, key=lambda observation, info: 0)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, r"step\(\): expected \(observation, reward, terminated, truncated, info\), got None$"),
        ((0, 0.0), r"got \(0, 0\.0\)$"),
        ((0, 0.0, False, {}), r"4 values are the interface of Gym before 0\.26: wrap .*shimmy\.GymV21CompatibilityV0"),
        ((0, 0.0, False, False, None), r"step\(\): expected .* with info a dict, which may be empty, got"),
        ((0, None, False, False, {}), r"reward: expected a finite number, got None"),
        ((0, "1", False, False, {}), r"reward: expected a finite number, got '1'"),
        ((0, np.nan, False, False, {}), r"reward: expected a finite number, got nan"),
        ((0, np.float32("inf"), False, False, {}), r"reward: expected a finite number, got "),
        ((0, np.array([1.0]), False, False, {}), r"reward: expected a finite number, got array"),
        ((0, 10**400, False, False, {}), r"reward: expected a finite number, got 1000"),
        ((0, 1j, False, False, {}), r"reward: expected a finite number, got 1j"),
        ((0, 0, None, False, {}), r"terminated: expected a bool, got None"),
        ((0, 0, False, "no", {}), r"truncated: expected a bool, got 'no'"),
        (("0", 0, False, False, {}), r"observation changed its type: expected int as before, got str: '0'"),
        ((0, 0, False, False, {"action_mask": [0, 0]}), r"observation 0: info\['action_mask'\] offers no action"),
        ((0, 0, False, True, {"action_mask": [1]}), r"observation 0: info\['action_mask'\]: expected one 0 or 1"),
    ],
)
def test_answers_that_are_wrong_are_named_with_their_step(answer, words):
    stepper = begun(Script((0, 0, False, False, {}), answer), actions=["left", "right"])
    stepper.step(0)
    with pytest.raises(GosprlError, match=rf"^Script, step 2 \(action 'right'\): .*{words}"):
        stepper.step(1)
    with pytest.raises(GosprlError, match=r"^step\(\) was called before reset\(\), or after the end"):
        stepper.step(1)


@pytest.mark.parametrize("first", [None, 0, (0,), (0, {}, 1), (3, 4), (0, None)])
def test_a_reset_of_another_shape(first):
    with pytest.raises(GosprlError, match=r"^Script, reset 1: reset\(\): expected \(observation, info\)"):
        begun(Script(first=first), actions=2)


@pytest.mark.parametrize("outside", [7, -1, 1.0, None])
def test_an_environment_that_leaves_its_observation_space(outside):
    stepper = begun(Env(spaces.Discrete(4), spaces.Discrete(2), (outside, 0.0, False, False, {})))
    words = re.escape(f"observation left its space: expected an element of Discrete(4), got {outside}")
    with pytest.raises(GosprlError, match=rf"^Env, step 1 \(action 1\): {words}$"):
        stepper.step(1)


def test_keys_that_are_wrong_are_errors_of_the_argument():
    with pytest.raises(
        InputError, match=r"^Script, reset 1: key: expected a function that returns hashable values, got"
    ):
        begun(Script(), key=lambda observation, info: [observation], actions=2)


@pytest.mark.parametrize("one", [1, 1.0, True, np.float32(1), np.int64(1), np.bool_(True), np.array(1.0)])
def test_rewards_are_numbers_of_any_kind(one):
    reward = begun(Script((0, one, False, False, {})), actions=1).step(0).reward
    assert (reward, type(reward)) == (1.0, float)


@pytest.mark.parametrize("yes", [True, np.bool_(True), 1, np.int8(1)])
def test_ends_are_bools_of_any_kind(yes):
    outcome = begun(Script((0, 0, yes, yes, {})), actions=1).step(0)
    assert (outcome.terminated, outcome.truncated) == (True, True)
    assert type(outcome.terminated) is bool


@pytest.mark.parametrize("end", [(True, False), (False, True)])
def test_no_step_after_the_end(end):
    stepper = Stepper(Script(*[(0, 0, *end, {})] * 2), actions=1)
    for _ in range(2):
        with pytest.raises(GosprlError, match="before reset"):
            stepper.step(0)
        stepper.reset()
        stepper.step(0)
    assert len(stepper.system.calls) == 4


def test_what_the_system_raises_passes_through():
    class Broken(Script):
        def step(self, action):
            raise OSError("the motor is hot")

    stepper = begun(Broken(), actions=1)
    with pytest.raises(OSError, match="the motor is hot"):
        stepper.step(0)
    with pytest.raises(GosprlError, match="before reset"):  # nobody knows where it is
        stepper.step(0)
