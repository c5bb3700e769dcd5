"""The lower-bound families: rows as printed, and their closed forms."""

import numpy as np
import pytest

from gosprl.envs.chains import riverswim, toy3
from gosprl.envs.gridworld import gridworld
from gosprl.envs.lower_bounds import (
    epsilon_wheel,
    farthest_pair,
    hard_to_learn,
    one_state_modification,
    two_state_chain,
)
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP


@pytest.mark.parametrize("q", [1, 0.5, 0.01])
def test_two_state_chain(q):
    mdp = two_state_chain(q)
    assert (mdp.num_states, mdp.num_actions, mdp.start) == (2, 1, 0)
    np.testing.assert_allclose(mdp.dense(), [[[1 - q, q]], [[1, 0]]], atol=1e-15)
    assert mdp.diameter() == pytest.approx(1 / q)


@pytest.mark.parametrize("q", [0, -0.5, 1.5, "1"])
def test_two_state_chain_rejects(q):
    with pytest.raises(InputError, match=r"^q: "):
        two_state_chain(q)


def test_epsilon_wheel_rows():
    mdp = epsilon_wheel([0.5, 0.2])
    center = [[0.5, 0.5, 0], [0.8, 0, 0.2]]
    np.testing.assert_allclose(mdp.dense(), [center, [[1, 0, 0]] * 2, [[1, 0, 0]] * 2])
    assert mdp.start == 0


def test_epsilon_wheel_closed_form():
    epsilons = np.array([0.5, 0.1, 0.03, 0.9])
    np.testing.assert_allclose(epsilon_wheel(epsilons).ssp_diameters(), [1, *(1 / epsilons + 1)])


@pytest.mark.parametrize("epsilons", [[], 0.5, [[0.5]], ["a"], None])
def test_epsilon_wheel_rejects_shapes(epsilons):
    with pytest.raises(InputError, match=r"^epsilons: expected an array \[S\]"):
        epsilon_wheel(epsilons)


@pytest.mark.parametrize("wrong", [0, 1, -0.1, np.nan])
def test_epsilon_wheel_rejects_values(wrong):
    with pytest.raises(InputError, match=r"^epsilons: expected numbers strictly between 0 and 1, got .* at index 1"):
        epsilon_wheel([0.5, wrong])


def test_one_state_modification_of_riverswim():
    mdp = riverswim(6)
    assert farthest_pair(mdp) == (0, 5)
    changed = one_state_modification(mdp)
    expected = mdp.dense()
    expected[5] = [[1, 0, 0, 0, 0, 0]] * 2  # the longest way is from 0 to 5
    np.testing.assert_allclose(changed.dense(), expected)
    assert changed.diameter() == pytest.approx(mdp.diameter())
    assert changed.name == "one_state_modification(riverswim6: 5 -> 0)"


def test_one_state_modification_keeps_the_times_to_its_state_but_not_always_the_diameter():
    mdp = epsilon_wheel([0.5, 0.5, 0.5])  # D = 1 + 1 / 0.5 from one rim state to another; first (1, 2)
    changed = one_state_modification(mdp)
    np.testing.assert_allclose(changed.hitting_times()[:, 2], mdp.hitting_times()[:, 2])
    assert mdp.diameter() == pytest.approx(3)
    assert changed.diameter() == pytest.approx(4)  # from 2 to 3: to 1, to the center, then two steps on average


def test_one_state_modification_keeps_action_sets_rewards_start_and_map():
    toy = toy3(0.1)
    rewards = np.array([[0.1, 0], [0.2, 0], [0.3, 0.4]])
    mdp = TabularMDP(toy.dense(), start=1, rewards=rewards, noise="bernoulli")
    changed = one_state_modification(mdp)
    assert (len(changed.rows), changed.start, changed.noise) == (4, 1, "bernoulli")
    np.testing.assert_array_equal(changed.rewards, [0.1, 0.2, 0.3, 0.4])
    assert one_state_modification(gridworld("S..")).map == ("S..",)


def test_one_state_modification_rejects():
    with pytest.raises(InputError, match=r"^mdp: expected a communicating MDP.*from state 1 to state 0"):
        one_state_modification(TabularMDP([[[0, 1]], [[0, 1]]]))
    with pytest.raises(InputError, match=r"^mdp: expected at least two states, got one"):
        one_state_modification(TabularMDP([[[1]]]))
    with pytest.raises(InputError, match=r"^mdp: expected a TabularMDP, got str"):
        one_state_modification("riverswim6")


def test_hard_to_learn_rows():
    mdp = hard_to_learn(3, 2, diameter=4, need=6, special=[0, 1])
    nu = np.sqrt(2 * 2 / 6) / 64
    best, other = 1 / 4, (1 - nu) / 4
    expected = [
        [[1 - best, 0, best], [1 - other, 0, other]],
        [[0, 1 - other, other], [0, 1 - best, best]],
        [[0.5, 0.5, 0], [0.5, 0.5, 0]],
    ]
    np.testing.assert_allclose(mdp.dense(), expected, atol=1e-15)
    assert mdp.start == 0


def test_hard_to_learn_special_actions_are_the_first_by_default():
    given = hard_to_learn(4, 3, 10, 100, special=[0, 0, 0]).dense()
    np.testing.assert_array_equal(hard_to_learn(4, 3, 10, 100).dense(), given)


@pytest.mark.parametrize("diameter", [1, 2.5, 40])
@pytest.mark.parametrize("states", [2, 3, 6])
def test_hard_to_learn_closed_forms(states, diameter):
    mdp = hard_to_learn(states, 4, diameter, need=1000)
    diameters = mdp.ssp_diameters()
    assert diameters[-1] == pytest.approx(diameter)
    # x steps from s_bar to s: x = 1 + (S - 2)/(S - 1) (D + x), so that D + x = (S - 1)(D + 1)
    others = (states - 1) * (diameter + 1) if states > 2 else 1
    np.testing.assert_allclose(diameters[:-1], others)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"states": 1}, r"^states: expected a whole number >= 2"),
        ({"actions": 0}, r"^actions: expected a whole number >= 1"),
        ({"diameter": 0.5}, r"^diameter: expected a number >= 1"),
        ({"diameter": np.inf}, r"^diameter: expected a positive finite number"),
        ({"need": 11}, r"^need: expected at least states \* actions = 12 samples, got 11"),
        ({"need": 12.5}, r"^need: expected a whole number"),
        ({"special": [0, 1]}, r"^special: expected one action for each state but the last, \[3\], got shape \(2,\)"),
        ({"special": [0, 1, 3]}, r"^special: expected actions in 0\.\.2, got 3"),
    ],
)
def test_hard_to_learn_rejects(parameters, message):
    with pytest.raises(InputError, match=message):
        hard_to_learn(**({"states": 4, "actions": 3, "diameter": 5.0, "need": 100} | parameters))
