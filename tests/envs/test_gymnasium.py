"""TabularEnv and the registered ids: Gymnasium's own checker, and the law of the steps.

The chi-square tests have a fixed seed and a false-alarm level of 1e-6, and must detect a wrong P.
"""

import subprocess
import sys
import warnings
from itertools import accumulate

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs import registration as gym_registration
from gymnasium.utils import seeding
from gymnasium.utils.env_checker import check_env
from scipy import stats

from gosprl import envs
from gosprl.envs.registration import FAMILIES, READY, register
from gosprl.envs.tabular_env import TabularEnv
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP

LEVEL = 1e-6
PARAMETERS = {
    "riverswim": {"states": 12},
    "noisy_riverswim": {"states": 9},
    "wheel": {"states": 4},
    "gridworld": {"map": ["S.", "#T"], "walls": "reflect"},
    "open_grid": {"rows": 3, "columns": 2},
    "garnet": {"states": 10, "actions": 3, "branching": 2, "seed": 4},
    "two_state_chain": {"q": 0.3},
    "epsilon_wheel": {"epsilons": [0.2, 0.5]},
    "hard_to_learn": {"states": 3, "actions": 2, "diameter": 5, "need": 6},
}

pytestmark = pytest.mark.filterwarnings("error")


class Uniforms:
    """A generator that returns given numbers."""

    def __init__(self, *values):
        self.values = list(values)

    def random(self):
        return self.values.pop(0)


@pytest.mark.parametrize("name", READY)
def test_gymnasium_checks_the_ready_ones(name):
    env = gym.make(f"gosprl/{name}-v0")
    check_env(env.unwrapped)
    assert env.unwrapped.mdp.name == name
    assert env.observation_space == gym.spaces.Discrete(env.unwrapped.mdp.num_states)
    assert env.action_space == gym.spaces.Discrete(env.unwrapped.mdp.num_actions)


@pytest.mark.parametrize("name", FAMILIES)
def test_gymnasium_checks_the_families(name):
    env = gym.make(f"gosprl/{name}-v0", **PARAMETERS[name])
    check_env(env.unwrapped)
    np.testing.assert_array_equal(env.unwrapped.mdp.dense(), envs.make(name, **PARAMETERS[name]).dense())


def test_parameters_are_checked_through_gymnasium():
    with pytest.raises(InputError, match=r"^states, actions, branching: "):
        gym.make("gosprl/garnet-v0")
    with pytest.raises(InputError, match=r"^wall: "):
        gym.make("gosprl/room20-v0", wall="reflect")


def test_registering_again_changes_nothing():
    before = dict(gym_registration.registry)
    register()
    assert gym_registration.registry == before
    assert {f"gosprl/{name}-v0" for name in READY + FAMILIES} == {i for i in before if i.startswith("gosprl/")}


def test_gymnasium_can_import_the_ids_itself():
    code = 'import gymnasium; print(gymnasium.make("gosprl:gosprl/riverswim6-v0").observation_space.n)'
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "6"


def walk(env, steps, seed):
    """Return transitions [n, 3] of uniform existing actions, drawn by a generator of their own."""
    rng, mdp = np.random.default_rng(99), env.unwrapped.mdp
    s, info = env.reset(seed=seed)
    transitions = []
    for _ in range(steps):
        a = rng.choice(np.flatnonzero(info["action_mask"]))
        s_next, reward, terminated, truncated, info = env.step(a)
        mean = 0.0 if mdp.rewards is None else mdp.rewards[mdp.rows.index(s, a)]
        assert (reward, terminated, truncated) == (mean, False, False)
        transitions.append((s, a, s_next))
        s = s_next
    return np.array(transitions)


@pytest.mark.parametrize("name", ["noisy_riverswim", "gridworld", "garnet"])
def test_seeds_determine_the_walk(name):
    env = TabularEnv(name, **PARAMETERS[name])
    first = walk(env, 200, seed=3)
    np.testing.assert_array_equal(walk(env, 200, seed=3), first)
    assert np.any(walk(env, 200, seed=4) != first)


@pytest.mark.parametrize("name", ["riverswim6", "four_room43", "toy3"])
def test_one_uniform_a_step_by_inverse_cdf(name):
    mdp = envs.make(name)
    uniform = seeding.np_random(7)[0]
    for s, a, s_next in walk(TabularEnv(mdp), 500, seed=7):
        u = uniform.random()
        states, p = mdp.p(s, a)
        cumulative = list(accumulate(p))
        assert s_next == next(states[j] for j in range(len(p)) if u < cumulative[j])


def test_ends_of_the_inverse_cdf():
    env = TabularEnv(TabularMDP([[[0.5, 0.5]], [[0.5, 0.5]]]))
    env.reset()
    env.np_random = Uniforms(0.0, np.nextafter(0.5, 0), 0.5)
    assert [env.step(0)[0] for _ in range(3)] == [0, 0, 1]

    tenths = TabularEnv(TabularMDP(np.full((10, 1, 10), 0.1)))
    assert np.cumsum(np.full(10, 0.1))[-1] < 1  # rounding leaves a gap below one, and u can fall into it
    tenths.reset()
    tenths.np_random = Uniforms(np.nextafter(1.0, 0))
    assert tenths.step(0)[0] == 9


def chi_square(transitions, probabilities):
    """Return the p-value of the transitions under P; degrees of freedom: successors less one, over visited rows."""
    counts = np.zeros_like(probabilities)
    np.add.at(counts, tuple(transitions.T), 1)
    assert not np.any(counts[probabilities == 0])
    expected = counts.sum(axis=2, keepdims=True) * probabilities
    cells = expected > 0
    assert expected[cells].min() >= 5  # where the chi-square law is good enough
    statistic = np.sum((counts[cells] - expected[cells]) ** 2 / expected[cells])
    return stats.chi2.sf(statistic, cells.sum() - cells.any(axis=2).sum())


def test_steps_follow_the_probabilities():
    right = envs.make("riverswim6").dense()
    transitions = walk(gym.make("gosprl/riverswim6-v0"), 20_000, seed=11)
    assert chi_square(transitions, right) > LEVEL
    wrong = right.copy()
    wrong[1:-1, 1] += 0.05 * (np.eye(6)[1:-1] - np.roll(np.eye(6), 1, axis=1)[1:-1])  # up 0.30, stay 0.65
    assert chi_square(transitions, wrong) < LEVEL


def test_an_action_that_does_not_exist_does_nothing():
    env = TabularEnv("toy3", nu=0.5)
    _, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [1, 0]
    before = env.np_random.bit_generator.state
    assert env.step(1)[:4] == (0, 0.0, False, False)
    assert env.np_random.bit_generator.state == before


def test_masks():
    env = TabularEnv("toy3", nu=0.5)
    env.reset(seed=1)
    for _ in range(50):
        s, *_, info = env.step(0)
        assert info["action_mask"].dtype == np.int8
        assert info["action_mask"].tolist() == [[1, 0], [1, 0], [1, 1]][s]


@pytest.mark.parametrize("action", [2, -1, 0.5, "0"])
def test_actions_outside_the_space(action):
    env = TabularEnv("riverswim6")
    env.reset()
    with pytest.raises(InputError, match=r"^action: expected a whole number in 0\.\.1, got"):
        env.step(action)


def test_rewards():
    probabilities = [[[0.5, 0.5]], [[1, 0]]]
    env = TabularEnv(TabularMDP(probabilities, rewards=[[0.25], [3.0]]))
    env.reset()
    env.np_random = Uniforms(0.9, 0.9)  # one uniform a step
    assert [env.step(0)[:2] for _ in range(2)] == [(1, 0.25), (0, 3.0)]

    env = TabularEnv(TabularMDP(probabilities, rewards=[[0.25], [1.0]], noise="bernoulli"))
    env.reset()
    env.np_random = Uniforms(0.1, 0.24, 0.1, 0.25, 0.9, 0.0, 0.9, 0.999)  # the next state, then the reward
    assert [env.step(0)[:2] for _ in range(4)] == [(0, 1.0), (0, 0.0), (1, 1.0), (0, 1.0)]


def test_render_a_map():
    env = TabularEnv("gridworld", render_mode="ansi", map=["#S.", "T#."], slip=0)
    env.reset()
    assert env.render() == "#@.\nT#."
    env.step(0)
    assert env.render() == "#S@\nT#."
    env.step(1)
    assert env.render() == "#S.\nT#@"


def test_render_without_a_map():
    env = TabularEnv("two_state_chain", render_mode="ansi", q=1)
    env.reset()
    env.step(0)
    assert env.render() == "state 1 of 2"


def test_render_without_a_mode():
    env = TabularEnv("riverswim6")
    env.reset()
    with pytest.warns(UserWarning, match="render"):
        assert env.render() is None


def test_what_it_is_made_from():
    mdp = envs.make("riverswim6")
    assert TabularEnv(mdp).mdp is mdp
    with pytest.raises(InputError, match=r"^states: expected no parameters with a TabularMDP"):
        TabularEnv(mdp, states=6)
    with pytest.raises(InputError, match=r"^name: 'river' is not known"):
        TabularEnv("river")
    with pytest.raises(InputError, match=r"^render_mode: expected None or 'ansi', got 'human'"):
        TabularEnv(mdp, render_mode="human")


def test_it_never_ends_unless_told_to():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make("gosprl/corridor24-v0", max_episode_steps=5)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(5)] == [(False, False)] * 4 + [(False, True)]
