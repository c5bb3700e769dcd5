"""CartPole in bins: two of its four bounds are infinite, so observations are clipped before they are put into bins.

Episodes end when the pole falls, in states that other episodes pass alive: an ending belongs to the transition. Prints
what was collected, and how often the pole fell from each angle.
"""

import sys

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import DiscretizeObservation, TransformObservation

import gosprl

BINS = (1, 3, 8, 3)  # position, speed, angle, speed of the angle
BOUNDS = np.array([2.4, 3.0, 0.21, 3.0], dtype=np.float32)


def cart_pole():
    box = spaces.Box(-BOUNDS, BOUNDS)
    clipped = TransformObservation(gymnasium.make("CartPole-v1"), lambda x: np.clip(x, -BOUNDS, BOUNDS), box)
    return DiscretizeObservation(clipped, bins=BINS)


def main(seed=0, need=20):
    result = gosprl.collect(cart_pole(), need, unseen=0.5, seed=seed, max_steps=20_000)
    print(f"{result}\n")
    model = result.model
    falls, samples = np.zeros(BINS[2]), np.zeros(BINS[2])
    for s, _, s_next, count in zip(*model.transitions(), strict=True):
        angle = np.unravel_index(model.states[s], BINS)[2]
        samples[angle] += count
        falls[angle] += count * (model.states.kind(s_next) == "final")
    print("   angle     samples   episodes ended")
    for i in range(BINS[2]):
        low = -BOUNDS[2] + 2 * BOUNDS[2] * i / BINS[2]
        print(f"   {low:+.3f}.. {samples[i]:>8.0f} {falls[i] / max(1, samples[i]):>16.1%}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
