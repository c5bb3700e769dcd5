"""`make` and `names`."""

import subprocess
import sys

import numpy as np
import pytest

from gosprl import envs
from gosprl.errors import InputError

MADE = [  # name, parameters, states, actions, pairs, name of the result
    ("riverswim", {}, 6, 2, 12, "riverswim6"),
    ("riverswim", {"states": 9}, 9, 2, 18, "riverswim9"),
    ("riverswim36", {}, 36, 2, 72, "riverswim36"),
    ("noisy_riverswim", {}, 36, 2, 72, "noisy_riverswim36"),
    ("noisy_riverswim12", {}, 12, 2, 24, "noisy_riverswim12"),
    ("wheel", {}, 30, 2, 60, "wheel30"),
    ("wheel5", {}, 5, 2, 10, "wheel5"),
    ("toy3", {}, 3, 2, 4, "toy3"),
    ("toy3", {"nu": 0.5}, 3, 2, 4, "toy3(nu=0.5)"),
    ("four_room43", {}, 43, 4, 172, "four_room43"),
    ("corridor24", {}, 24, 4, 96, "corridor24"),
    ("room20", {}, 20, 4, 80, "room20"),
    ("cliff48", {}, 48, 4, 192, "cliff48"),
    ("trap10", {"walls": "reflect"}, 10, 4, 40, "trap10(walls=reflect)"),
    ("gridworld", {"map": ["S.", "#T"], "walls": "reflect"}, 3, 4, 12, "gridworld"),
    ("gridworld", {"map": "S.", "name": "mine"}, 2, 4, 8, "mine"),
    ("open_grid", {"rows": 2, "columns": 3}, 6, 4, 24, "open_grid(rows=2, columns=3)"),
    (
        "garnet",
        {"states": 8, "actions": 2, "branching": 3, "seed": 1},
        *(8, 2, 16, "garnet(states=8, actions=2, branching=3, seed=1)"),
    ),
    ("two_state_chain", {"q": 0.1}, 2, 1, 2, "two_state_chain(q=0.1)"),
    ("epsilon_wheel", {"epsilons": [0.1, 0.2]}, 3, 2, 6, "epsilon_wheel(2 epsilons)"),
    (
        "one_state_modification",
        {"mdp": envs.make("riverswim6")},
        6,
        2,
        12,
        "one_state_modification(riverswim6: 5 -> 0)",
    ),
    (
        "hard_to_learn",
        {"states": 3, "actions": 2, "diameter": 5, "need": 6},
        *(3, 2, 6, "hard_to_learn(states=3, actions=2, diameter=5, need=6)"),
    ),
]


@pytest.mark.parametrize(("name", "parameters", "states", "actions", "pairs", "called"), MADE)
def test_make(name, parameters, states, actions, pairs, called):
    mdp = envs.make(name, **parameters)
    assert (mdp.num_states, mdp.num_actions, len(mdp.rows), mdp.name) == (states, actions, pairs, called)


def test_every_name_is_made_above():
    assert set(envs.names()) <= {name for name, *_ in MADE}
    assert envs.names() == sorted(set(envs.names()))


def test_the_size_in_the_name_is_the_parameter():
    np.testing.assert_array_equal(envs.make("riverswim12").dense(), envs.make("riverswim", states=12).dense())


@pytest.mark.parametrize("name", ["riverswin6", "riverswim-6", "garnet10", "room21", "", None, 6])
def test_unknown_names_list_the_known(name):
    with pytest.raises(InputError, match=r"^name: .* is not known; known are cliff48, corridor24, .*wheel"):
        envs.make(name)


def test_size_given_twice():
    with pytest.raises(InputError, match=r"^states: expected none, as riverswim6 sets it, got states=7"):
        envs.make("riverswim6", states=7)


def test_unknown_parameters_list_the_known():
    with pytest.raises(InputError, match=r"^size: riverswim has no such parameter; its parameters are states=6$"):
        envs.make("riverswim", size=7)
    with pytest.raises(InputError, match=r"^wall: .*parameters are map, walls='stay', slip=0.1, name='gridworld'$"):
        envs.make("gridworld", map="S.", wall="stay")


def test_missing_parameters_are_named():
    with pytest.raises(
        InputError, match=r"^actions, branching: .* whose parameters are states, actions, branching, seed=0$"
    ):
        envs.make("garnet", states=5)


def test_bad_values_reach_the_domain():
    with pytest.raises(InputError, match=r"^states: expected a whole number >= 2, got 1"):
        envs.make("riverswim1")


def test_importing_the_domains_is_light():
    heavy = "{'matplotlib', 'numba', 'scipy.optimize'} & set(sys.modules)"
    code = f"import sys, gosprl.envs; gosprl.envs.make('four_room43'); print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
