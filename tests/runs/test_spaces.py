"""Runs of environments whose observations are arrays, tuples or dicts: what their files say of the space is enough."""

from collections import OrderedDict

import gymnasium
import numpy as np
import pytest
from forged import contents, reseal
from gymnasium import spaces

import gosprl
from gosprl.errors import GosprlError
from gosprl.report import report
from gosprl.runs import verify

ARRAY = spaces.Box(0, 9, (2,), np.int16)
SPACES = {
    "array": (ARRAY, lambda x, y: np.array([x, y], np.int16)),
    "bits": (spaces.MultiBinary((2, 2)), lambda x, y: np.array([[x & 1, x >> 1], [y & 1, y >> 1]], np.int8)),
    "tuple": (spaces.Tuple((spaces.Discrete(9, start=-2), ARRAY)), lambda x, y: (x, np.array([y, 3], np.int16))),
    "dict": (
        spaces.Dict(OrderedDict(z=ARRAY, a=spaces.Tuple((spaces.Discrete(9),)))),
        lambda x, y: {"z": np.array([x, 0], np.int16), "a": (y,)},
    ),
}


class Grid(gymnasium.Env):
    """Four by four cells; a step goes right or down, around the edge, and slips now and then."""

    action_space = spaces.Discrete(2)

    def __init__(self, name):
        self.observation_space, self.observed = SPACES[name]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = [0, 0]
        return self.observed(*self.cell), {}

    def step(self, action):
        if self.np_random.random() > 0.1:
            self.cell[action] = (self.cell[action] + 1) % 4
        return self.observed(*self.cell), 0.0, False, False, {}


@pytest.fixture(params=SPACES)
def kind(request):
    return request.param


@pytest.mark.parametrize("seed", [0, 1])
def test_the_default_plan_is_made_again_from_the_files_alone(kind, seed, tmp_path):
    """It plans with coordinates of observations, so that these have to be the same."""
    result = gosprl.collect(Grid(kind), 3, seed=seed, out=tmp_path / "run", max_steps=60)
    gosprl.resume(tmp_path / "run", system=Grid(kind), need=4)
    assert result.states > 4
    assert verify(tmp_path / "run").ok


def test_observations_are_shown_as_the_environment_made_them(kind, tmp_path):
    gosprl.collect(Grid(kind), 1, seed=0, out=tmp_path / "run", max_steps=3)
    page = report(tmp_path / "run", tmp_path / "page.html").read_text()
    assert "\\x00" not in page  # the bytes of an array


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"dtype": "<i4", "shape": [2]}, "none of its space"),
        ({"dtype": "<i2", "shape": [3]}, "none of its space"),
        ({"tuple": [None]}, "none of its space"),
        ({"dtype": "O", "shape": [2]}, "observations cannot be"),
        ({"dtype": "<i2", "shape": [2**40]}, "observations cannot be"),
        ({"dict": [["a"]]}, "observations cannot be"),
        ("array", "observations cannot be"),
    ],
)
def test_a_layout_that_cannot_be_is_damage(layout, words, tmp_path):
    gosprl.collect(Grid("array"), 1, seed=0, out=tmp_path / "run")
    reseal(tmp_path / "run/manifest.json", lambda manifest: manifest["system"].update(observations=layout))
    before = contents(tmp_path / "run")
    assert words in str(verify(tmp_path / "run"))
    assert verify(tmp_path / "run").damaged
    with pytest.raises(GosprlError):
        gosprl.resume(tmp_path / "run", system=Grid("array"), need=2)
    assert contents(tmp_path / "run") == before
