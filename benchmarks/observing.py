"""What a step through an environment costs beyond the environment's own: keys of observations, masks, checks.

python benchmarks/observing.py      writes benchmarks/results/observing.md
"""

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from report import ONCE, cells, header, medians, options, timed, write

from gosprl.systems.observations import encoder
from gosprl.systems.stepper import Stepper

STEPS, ROUNDS = 20_000, 9
ENVIRONMENTS = ("FrozenLake-v1", "CliffWalking-v1", "Taxi-v4", "Blackjack-v1")
OBSERVATIONS = (
    ("`Discrete`, int", spaces.Discrete(16), 5),
    ("`Discrete`, np.int64", spaces.Discrete(16), np.int64(5)),
    ("`MultiDiscrete`, 3 entries", spaces.MultiDiscrete([9] * 3), np.array([1, 2, 3])),
    ("`Box` of uint8, 7 x 7 x 3", spaces.Box(0, 255, (7, 7, 3), np.uint8), np.ones((7, 7, 3), np.uint8)),
    ("`Tuple` of 3 `Discrete`", spaces.Tuple([spaces.Discrete(32)] * 3), (1, 2, 0)),
    ("no space, int", None, 5),
    ("no space, str", None, "hall"),
    ("no space, tuple of 3 ints", None, (1, 2, 3)),
    ("no space, array of 3 ints", None, np.array([1, 2, 3])),
)


def encoding(space, observation, times):
    """Seconds for the key of an observation seen before, the loop included."""
    encode, info = encoder(space, None).encode, {}

    def run():
        for _ in range(times):
            encode(observation, info)

    return timed(run)[0] / times


def stepping(env, actions, reset, step):
    """Seconds a step, resets included, from the same seed and with the same actions each time."""

    def run():
        env.reset(seed=0)
        reset()
        for action in actions:
            if step(action):
                reset()

    return timed(run, **ONCE)[0] / len(actions)


def both(name, steps, rounds):
    """Seconds a step of the environment alone, and through a `Stepper`; in turn, since machines have slow moments."""
    env = gym.make(name)
    stepper = Stepper(env)
    actions = np.random.default_rng(0).integers(stepper.num_actions, size=steps).tolist()

    def alone(action):
        _, _, terminated, truncated, _ = env.step(action)
        return terminated or truncated

    def through(action):
        outcome = stepper.step(action)
        return outcome.terminated or outcome.truncated

    def one():
        return {
            "alone": stepping(env, actions, env.reset, alone),
            "through": stepping(env, actions, stepper.reset, through),
        }

    return medians([one() for _ in range(rounds)])


if __name__ == "__main__":
    quick = options(__doc__).quick
    steps = 100 if quick else STEPS
    lines = ["# Observing", "", "Microseconds a step:", ""]
    lines += header("environment", "alone", "through `Stepper`", "ratio")
    frozen_lake = None
    for name in ENVIRONMENTS:
        alone, through = both(name, steps, 1 if quick else ROUNDS).values()
        frozen_lake = frozen_lake or alone
        lines.append(cells(name, f"{alone * 1e6:.2f}", f"{through * 1e6:.2f}", f"{through / alone:.2f}"))
    lines += ["", f"The key of one observation, and its share of a step of {ENVIRONMENTS[0]}:", ""]
    lines += header("observation", "microseconds", "share")
    for name, space, observation in OBSERVATIONS:
        seconds = encoding(space, observation, steps)
        lines.append(cells(name, f"{seconds * 1e6:.2f}", f"{seconds / frozen_lake:.1%}"))
    write("observing", lines, quick=quick, packages=("gymnasium",))
