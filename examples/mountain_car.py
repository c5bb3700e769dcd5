"""MountainCar in 12 by 12 bins; and the same with each action held for 8 steps, so that it shows in the bins at all.

The first run is met over the two bins that the car begins in, and says that it knows of no others and how much may be
hidden. Prints both runs, and where samples were taken: position from left to right, speed from bottom to top.
"""

import sys
import warnings

import gymnasium
import numpy as np
from gymnasium.wrappers import DiscretizeObservation

import gosprl

BINS = 12


class Held(gymnasium.Wrapper):
    """Takes each action 8 times."""

    def step(self, action):
        for _ in range(8):
            observation, reward, terminated, truncated, info = self.env.step(action)
            if terminated or truncated:
                break
        return observation, reward, terminated, truncated, info


def in_bins(env):
    return DiscretizeObservation(env, bins=(BINS, BINS))


def main(seed=0, need=3):
    env = gymnasium.make("MountainCar-v0", max_episode_steps=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there may well be more states
        plain = gosprl.collect(in_bins(env), need, seed=seed)
        held = gosprl.collect(in_bins(Held(env)), need, seed=seed, max_steps=20_000)
    print(f"{plain}\n\n{held}\n")
    visits = held.counts.sum(axis=1).reshape(BINS, BINS)  # by position and speed
    for speed in reversed(range(BINS)):
        print("   " + "".join(f"{n or '·':>6}" for n in visits[:, speed]))
    print(f"\n   bins entered: {np.count_nonzero(visits)}; without holding actions {plain.states}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
