"""A system of your own that is no Gymnasium environment: a lift that is only stepped through.

A `System` numbers its states and actions, says which actions exist in which state (`model`), and makes steps. Prints
the samples of every pair, and what was learnt of the moves.
"""

import sys

import numpy as np

import gosprl
from gosprl.systems import Outcome, System

FLOORS, ACTIONS = 4, ("down", "up", "door")
SLIP = 0.2  # probability that a move fails


class Lift(System):
    """State 2 f: at floor f with the door closed; 2 f + 1: with the door open, when no move exists."""

    def model(self):
        exists = np.zeros((2 * FLOORS, len(ACTIONS)), dtype=bool)
        exists[:, ACTIONS.index("door")] = True
        exists[2::2, ACTIONS.index("down")] = True
        exists[:-2:2, ACTIONS.index("up")] = True
        return gosprl.EmpiricalModel(2 * FLOORS, exists)

    def seed(self, rng):
        self.rng = rng

    def reset(self):
        self.floor, self.open = 0, False
        return self.state()

    def step(self, action):
        if ACTIONS[action] == "door":
            self.open = not self.open
        elif self.rng.random() >= SLIP:
            self.floor += 1 if ACTIONS[action] == "up" else -1
        return Outcome(self.state(), reward=0.0)

    def state(self):
        return 2 * self.floor + self.open


def main(seed=0, need=50):
    result = gosprl.collect(Lift(), need, seed=seed)
    print(f"{result}\n")
    print(
        f"   floor  door    {''.join(f'{action:>8}' for action in ACTIONS)}   samples of each action (· there is none)"
    )
    for s, counts in enumerate(result.counts):
        shown = "".join(f"{count or '·':>8}" for count in counts)
        print(f"   {s // 2:>5}  {'open' if s % 2 else 'closed':<8}{shown}")
    print(f"\n   a move fails with probability {SLIP:g}; by what was collected:")
    for floor, action in ((0, "up"), (1, "up"), (1, "down"), (FLOORS - 1, "down")):
        successors, p = result.model.p_hat(2 * floor, ACTIONS.index(action))
        failed = dict(zip(successors.tolist(), p.tolist(), strict=True)).get(2 * floor, 0.0)
        print(f"   {action:<5}from floor {floor}: {failed:.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
