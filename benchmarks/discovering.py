"""What it costs not to know the states: one sample of every pair of an open n x n grid, stepped through in Python.

    python benchmarks/discovering.py      writes benchmarks/results/discovering.md

The same grid three times: as `Discrete(n * n)`, whose size is known; behind an opaque key, so that every cell is
discovered; and as one of 10^7 elements of a space of which only these cells ever occur. Each line has a process of its
own: the time is that of the collection, the memory that of the whole process.
"""

import warnings

import gymnasium
from gymnasium import spaces
from report import cells, clock, header, in_child, options, peak_memory, write

import gosprl

SIZES = (5, 100, 316)
MANY = 10**7
MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))


class Grid(gymnasium.Env):
    """An open grid of n x n cells; moves into a wall stay."""

    action_space = spaces.Discrete(4)

    def __init__(self, n, size):
        self.n, self.observation_space = n, spaces.Discrete(size)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.y = 0
        return 0, {}

    def step(self, action):
        dx, dy = MOVES[action]
        self.x, self.y = min(max(self.x + dx, 0), self.n - 1), min(max(self.y + dy, 0), self.n - 1)
        return self.y * self.n + self.x, 0.0, False, False, {}


def opaque(cell, info):
    """A label that says nothing of its place."""
    return f"cell {cell * 7919 % MANY}"


SETTINGS = {
    "known size": lambda n: (Grid(n, n * n), {}),
    "opaque key": lambda n: (Grid(n, n * n), {"key": opaque}),
    "`Discrete(10**7)`": lambda n: (Grid(n, MANY), {}),
}


def collect(n, setting):
    """Steps, seconds and megabytes of one run."""
    warnings.simplefilter("ignore")  # that much may be unseen
    for size in (3, n):  # the first loads the compiled code
        system, how = SETTINGS[setting](size)
        begin = clock()
        result = gosprl.collect(system, 1, seed=0, **how)
        seconds = clock() - begin
    assert result.met
    return {"states": result.states, "steps": result.steps, "seconds": seconds, "MB": peak_memory() / 1e6}


def main(quick):
    """Write the table."""
    lines = ["# States known, and states discovered on the way", ""]
    lines += header("n", "setting", "states", "steps", "s", "of known size", "peak (MB)")
    for n in (4,) if quick else SIZES:
        known = None
        for setting in SETTINGS:
            run = in_child("discovering", f"collect({n}, {setting!r})")
            known = known or run
            assert run["steps"] == known["steps"]
            lines.append(
                cells(
                    *(n, setting, f"{run['states']:,.0f}", f"{run['steps']:,.0f}", f"{run['seconds']:.2f}"),
                    *(f"{run['seconds'] / known['seconds']:.2f}", f"{run['MB']:.0f}"),
                )
            )
            print(lines[-1], flush=True)
    write("discovering", lines, quick=quick, packages=("gymnasium",))


if __name__ == "__main__":
    main(options(__doc__).quick)
