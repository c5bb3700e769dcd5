"""Ten systems whose truth is known, for `evidence.probe`.

Each is a function without arguments that returns (environment, options of `gosprl.collect`).
"""

import time

import gymnasium
import minigrid  # noqa: F401  registers its environments
import numpy as np
from gymnasium import spaces

from evidence.systems import Contexts, by_content


class HiddenRing(gymnasium.Env):
    """A ring of six cells with a hidden gear that each "shift" changes: forward or backward is what it says."""

    observation_space = spaces.Discrete(6)
    action_space = spaces.Discrete(2)  # go, shift

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.gear = 0, 1
        return self.at, {}

    def step(self, action):
        if action:
            self.gear = -self.gear
        else:
            self.at = (self.at + self.gear) % 6
        return self.at, 0.0, False, False, {}


class Clock(gymnasium.Env):
    """A ring of five cells: at even times the first action moves on and the second stays, at odd times vice versa."""

    observation_space = spaces.Discrete(5)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.time = 0, 0
        return self.at, {}

    def step(self, action):
        self.at = (self.at + (action == self.time % 2)) % 5
        self.time += 1
        return self.at, 0.0, False, False, {}


class Trap(gymnasium.Env):
    """A line of six cells; the second action moves on with probability 0.8, and the last cell is never left."""

    observation_space = spaces.Discrete(6)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.at, {}

    def step(self, action):
        if self.at < 5:
            self.at = min(5, self.at + (self.np_random.random() < 0.8)) if action else max(0, self.at - 1)
        return self.at, 0.0, False, False, {}


class Slow(gymnasium.Env):
    """A noisy ring of twelve cells that takes a millisecond a step."""

    observation_space = spaces.Discrete(12)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.at, {}

    def step(self, action):
        time.sleep(0.001)
        self.at = (self.at + (2 * action - 1) * (self.np_random.random() < 0.7)) % 12
        return self.at, 0.0, False, False, {}


class Broken(gymnasium.Env):
    """A grid of 100 cells that returns a cell outside of it at step 700."""

    observation_space = spaces.Discrete(100)
    action_space = spaces.Discrete(4)
    fails_at = 700

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = 0, 0
        return self.at, {}

    def step(self, action):
        self.steps += 1
        x, y = divmod(self.at, 10)
        dx, dy = ((-1, 0), (1, 0), (0, -1), (0, 1))[action]
        self.at = 10 * min(max(x + dx, 0), 9) + min(max(y + dy, 0), 9)
        return 123 if self.steps == self.fails_at else self.at, 0.0, False, False, {}


def seen(observation, info):
    """Return what MiniGrid's agent sees, without the mission."""
    return np.asarray(observation["image"]).tobytes(), int(observation["direction"])


TEN = {
    "FrozenLake": lambda: (gymnasium.make("FrozenLake-v1"), {}),
    "Taxi": lambda: (gymnasium.make("Taxi-v4"), {}),
    "Blackjack": lambda: (gymnasium.make("Blackjack-v1"), {}),
    "MiniGrid, partial view": lambda: (gymnasium.make("MiniGrid-DoorKey-5x5-v0"), {"key": seen}),
    "hidden ring": lambda: (HiddenRing(), {}),
    "clock": lambda: (Clock(), {}),
    "absorbing trap": lambda: (Trap(), {}),
    "random starts": lambda: (Contexts(), {"key": by_content}),
    "slow": lambda: (Slow(), {}),
    "broken": lambda: (Broken(), {}),
}
