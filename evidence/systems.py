"""Systems as they come: Gymnasium's own, MiniGrid, discretised control, contexts, a text game, a rare door.

Each is a function without arguments that returns (environment, options of `gosprl.collect`).
"""

from typing import ClassVar

import gymnasium
import minigrid  # noqa: F401  registers its environments
import numpy as np
from gymnasium import spaces
from gymnasium.envs.toy_text.frozen_lake import generate_random_map
from gymnasium.wrappers import DiscretizeAction, DiscretizeObservation, TransformObservation


class Lamps(gymnasium.Env):
    """A Dict of observations: where the hand is, and which of three lamps are lit; all lit ends the episode."""

    observation_space = spaces.Dict({"hand": spaces.Discrete(3), "lamps": spaces.MultiBinary(3)})
    action_space = spaces.Discrete(3)  # left, right, press: which works with probability 0.8

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.hand, self.lamps = 0, np.zeros(3, dtype=np.int8)
        return self._observed(), {}

    def step(self, action):
        if action == 2:
            self.lamps[self.hand] ^= self.np_random.random() < 0.8
        else:
            self.hand = min(max(self.hand + (1 if action else -1), 0), 2)
        return self._observed(), 0.0, bool(self.lamps.all()), False, {}

    def _observed(self):
        return {"hand": self.hand, "lamps": self.lamps}


class Plane(gymnasium.Env):
    """A MultiDiscrete grid of 6 by 6 cells; its far corner ends the episode."""

    observation_space = spaces.MultiDiscrete([6, 6])
    action_space = spaces.MultiDiscrete([3, 3])  # -1, 0 or 1 in both directions

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = np.zeros(2, dtype=np.int64)
        return self.at, {}

    def step(self, action):
        self.at += np.asarray(action) - 1
        np.clip(self.at, 0, 5, out=self.at)  # the same array each time: observations must be copied
        return self.at, 0.0, bool(self.at.min() == 5), False, {}


class Contexts(gymnasium.Env):
    """One of 100 contexts is drawn at reset, and stays for three steps."""

    observation_space = spaces.Tuple((spaces.Discrete(100), spaces.Discrete(4)))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.context, self.time = int(self.np_random.integers(100)), 0
        return (self.context, 0), {}

    def step(self, action):
        self.time += 1
        return (self.context, self.time), float(action), self.time == 3, False, {}


class Lock(gymnasium.Env):
    """Two rooms of four cells, and a door between them that opens with probability 0.02 when pushed."""

    observation_space = spaces.Discrete(8)
    action_space = spaces.Discrete(2)
    opens = 0.02

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.at, {}

    def step(self, action):
        if action == 0:
            self.at = self.at - 1 if self.at not in (0, 4) else self.at
        elif self.at == 3:
            self.at = 4 if self.np_random.random() < self.opens else 3
        elif self.at == 7:
            self.at = 0
        else:
            self.at += 1
        return self.at, 0.0, False, False, {}


class Cave:
    """A text game: an object with `reset` and `step`, no spaces; observations and actions are strings."""

    MAP: ClassVar = {
        "You are in a meadow. There is a cave to the north.": {"north": 1, "look": 0},
        "You are in a cave. It is dark; a passage leads east, the meadow south.": {"south": 0, "east": 2, "light": 3},
        "You stumble in the dark and fall. The end.": {},
        "Your lamp lights the cave. A chest stands here.": {"south": 0, "open": 4, "east": 5},
        "The chest is full of gold. You have won.": {},
        "A bridge crosses a river. It swings in the wind.": {"west": 3, "cross": 6},
        "The far side. A merchant offers to take you home.": {"home": 0, "west": 5},
    }

    def __init__(self):
        self.rooms = list(self.MAP)
        self.rng = np.random.default_rng()

    def reset(self, seed=None):
        self.rng = np.random.default_rng(seed) if seed is not None else self.rng
        self.room = 0
        return self.rooms[0], {}

    def step(self, word):
        self.room = self.MAP[self.rooms[self.room]][word]
        if self.room == 6 and self.rng.random() < 0.3:  # the wind
            self.room = 5
        text = self.rooms[self.room]
        return text, float(self.room == 4), not self.MAP[text], False, {}

    @classmethod
    def offered(cls, text):
        """Return the words that a room understands."""
        return list(cls.MAP[text])


class FullState(gymnasium.Wrapper):
    """MiniGrid with its whole state as observation, and without drawing the view of the agent."""

    def __init__(self, name, layout=0):
        super().__init__(gymnasium.make(name, disable_env_checker=True))
        self.env.unwrapped.gen_obs = dict
        self.layout = layout  # the seed of every reset: one layout

    def reset(self, *, seed=None, options=None):
        self.env.reset(seed=self.layout)
        return self._observed(), {}

    def step(self, action):
        _, reward, terminated, truncated, _ = self.env.step(action)
        return self._observed(), float(reward), bool(terminated), bool(truncated), {}

    def _observed(self):
        grid = self.env.unwrapped
        carried = None if grid.carrying is None else grid.carrying.encode()
        return tuple(map(int, grid.agent_pos)), int(grid.agent_dir), carried, grid.mission, grid.grid.encode().tobytes()


def by_content(observation, info):
    """Return what tells states apart: the observation itself; the space that MiniGrid declares is another."""
    return observation


def _minigrid(name):
    return lambda: (FullState(name), {"key": by_content})


def _in_bounds(env, low, high):
    """Clip observations, since some bounds are infinite, and discretisation needs finite ones."""
    space = spaces.Box(np.array(low, dtype=np.float32), np.array(high, dtype=np.float32))
    return TransformObservation(env, lambda x: np.clip(x, space.low, space.high), space)


def _cart_pole():
    env = _in_bounds(gymnasium.make("CartPole-v1"), [-2.4, -3, -0.21, -3], [2.4, 3, 0.21, 3])
    return DiscretizeObservation(env, bins=(1, 3, 6, 3)), {}


def _pendulum():
    env = DiscretizeAction(gymnasium.make("Pendulum-v1"), bins=3)
    return DiscretizeObservation(env, bins=(6, 6, 5)), {}


SYSTEMS = {
    "FrozenLake 4x4": lambda: (gymnasium.make("FrozenLake-v1"), {}),
    "FrozenLake 8x8": lambda: (gymnasium.make("FrozenLake8x8-v1"), {}),
    "FrozenLake, a random map": lambda: (gymnasium.make("FrozenLake-v1", desc=generate_random_map(6, seed=3)), {}),
    "CliffWalking": lambda: (gymnasium.make("CliffWalking-v1"), {}),
    "CliffWalking, slippery": lambda: (gymnasium.make("CliffWalking-v1", is_slippery=True), {}),
    "Taxi": lambda: (gymnasium.make("Taxi-v4"), {}),
    "Taxi, rainy": lambda: (gymnasium.make("Taxi-v4", is_rainy=True), {}),
    "Blackjack": lambda: (gymnasium.make("Blackjack-v1"), {}),
    "MiniGrid Empty": _minigrid("MiniGrid-Empty-5x5-v0"),
    "MiniGrid FourRooms": _minigrid("MiniGrid-FourRooms-v0"),
    "MiniGrid DoorKey": _minigrid("MiniGrid-DoorKey-5x5-v0"),
    "MiniGrid LavaGap": _minigrid("MiniGrid-LavaGapS5-v0"),
    "MiniGrid GoToDoor": _minigrid("MiniGrid-GoToDoor-5x5-v0"),
    "MultiDiscrete plane": lambda: (Plane(), {}),
    "Dict of lamps": lambda: (Lamps(), {}),
    "MountainCar, 12 x 12 bins": lambda: (DiscretizeObservation(gymnasium.make("MountainCar-v0"), bins=(12, 12)), {}),
    "CartPole, 54 bins": _cart_pole,
    "Pendulum, 180 bins, 3 torques": _pendulum,
    "contexts drawn at reset": lambda: (Contexts(), {}),
    "a text game": lambda: (Cave(), {"actions": Cave.offered}),
}
