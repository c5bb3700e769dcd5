"""The learnt prior where states are discovered: observations that are places, and observations that say nothing.

python -m evidence.coordinates [--runs 30]      writes evidence/results/coordinates.md
"""

import argparse
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np

import gosprl
from evidence.families import MOVES, maze, queues
from evidence.runs import mean_and_interval
from gosprl.envs.gridworld import FOUR_ROOM43, WALL

RESULT = Path(__file__).parent / "results" / "coordinates.md"
WIND = (0, 0, 0, 1, 1, 1, 2, 2, 1, 0)  # rows by which each column's wind may move up
KINDS = ("numbers", "places", "strings")  # what observations are


class Shown:
    """A simulated MDP as an environment with an observation for each state."""

    def __init__(self, mdp, observations):
        self.mdp, self.observations = mdp, observations
        self.action_space = gymnasium.spaces.Discrete(mdp.rows.num_actions)

    def reset(self, *, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.state = self.mdp.start
        return self.observations[self.state], {}

    def step(self, action):
        succ, prob = self.mdp.p(self.state, action)
        self.state = int(self.rng.choice(succ, p=prob / prob.sum()))
        return self.observations[self.state], 0.0, False, False, {}


def windy(rows=7):
    """A grid in which the wind of a column moves one up in half of all steps."""
    columns = len(WIND)
    P = np.zeros((rows * columns, 4, rows * columns))
    for i, j, a, gust in np.ndindex(rows, columns, 4, 2):
        there = i + MOVES[a][0] - gust * WIND[j], j + MOVES[a][1]
        k, m = np.clip(there, 0, (rows - 1, columns - 1))
        P[i * columns + j, a, k * columns + m] += 0.5
    return gosprl.TabularMDP(P)


def grid(rows, columns):
    return list(np.ndindex(rows, columns))


def four_rooms():
    return [(i, j) for i, line in enumerate(FOUR_ROOM43) for j, cell in enumerate(line) if cell != WALL]


SYSTEMS = {  # seed -> MDP, and the place of each state
    "maze 8 x 8": (partial(maze, 8), grid(8, 8)),
    "maze 14 x 14": (partial(maze, 14), grid(14, 14)),
    "queues of 8": (lambda seed: queues(8), grid(8, 8)),
    "four_room43": (lambda seed: gosprl.envs.make("four_room43"), four_rooms()),
    "windy grid 7 x 10": (lambda seed: windy(), grid(7, 10)),
}


def taxi(number):
    """Row, column, where the passenger is, where to go."""
    return number // 100, number // 20 % 5, number // 4 % 5, number % 4


ENVIRONMENTS = {  # with episodes that end: the place of each observation
    "FrozenLake8x8-v1": lambda number: divmod(number, 8),
    "CliffWalking-v1": lambda number: divmod(number, 12),
    "Taxi-v4": taxi,
}


def strings(number, seed):
    """Names that say nothing."""
    return [f"{x:x}" for x in np.random.default_rng([seed, 1]).integers(2**60, size=number)]


def walked(name, kind, prior, every, seed):
    """Steps for each sample that was needed; `every`: of all states, else of those discovered."""
    make, places = SYSTEMS[name]
    mdp = make(seed)
    shown = list(range(len(places))) if kind == "numbers" else places
    shown = strings(len(places), seed) if kind == "strings" else shown
    need = dict.fromkeys(shown, 1) if every else 1
    system = Shown(mdp, shown)
    if kind == "numbers":
        system.observation_space = gymnasium.spaces.Discrete(len(places))
    return per_sample(gosprl.collect(system, need, seed=seed, prior=prior, resets="never"))


def ended(name, kind, prior, seed):
    """The same for an environment whose episodes end."""
    place, names = ENVIRONMENTS[name], strings(500, seed)
    keys = {"numbers": None, "places": lambda o, info: place(int(o)), "strings": lambda o, info: names[int(o)]}
    env = gymnasium.make(name, max_episode_steps=1000)
    return per_sample(gosprl.collect(env, 1, seed=seed, prior=prior, key=keys[kind]))


def per_sample(result):
    assert result.met
    return result.steps / np.count_nonzero(result.counts)


def job(arguments):
    warnings.simplefilter("ignore")  # that there may be more states than those discovered
    function, *rest = arguments
    return function(*rest)


def cell(with_prior, without):
    """Steps with the prior, without, and the ratio of the means with the interval of the paired differences."""
    mean, half = mean_and_interval((with_prior - without) / without.mean())
    texts = ["{:.2f} ± {:.2f}".format(*mean_and_interval(x)) for x in (with_prior, without)]
    return f"{texts[0]} / {texts[1]} | {1 + mean:.2f} ± {half:.2f}"


def table(function, names, runs, pool, *rest):
    lines = ["| system | " + " | ".join(f"{kind} | ratio" for kind in KINDS) + " |", "|---|" + "---|" * 2 * len(KINDS)]
    for name in names:
        jobs = [
            (function, name, kind, prior, *rest, s) for kind in KINDS for prior in (True, False) for s in range(runs)
        ]
        steps = np.array(list(pool.map(job, jobs, chunksize=4))).reshape(len(KINDS), 2, runs)
        lines.append(f"| {name} | " + " | ".join(cell(*each) for each in steps) + " |")
        print(lines[-1], flush=True)
    return lines


def head(runs):
    return [
        "# Coordinates: the learnt prior where states are discovered",
        "",
        f"`python -m evidence.coordinates --runs {runs}`: steps for each sample, one of every pair, with the prior /",
        f"without, mean of {runs} runs ± 95 %; and the ratio of the two, paired by seed. Observations are the numbers",
        "of a `Discrete` space, whose states are known beforehand; tuples of coordinates, discovered on the way; or",
        "random strings, discovered as well. Mazes are other ones for each seed.",
        "",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    given, began = parser.parse_args(), time.time()
    runs = given.runs
    job((walked, "maze 8 x 8", "places", True, False, 0))  # compile before the workers start
    with ProcessPoolExecutor(given.cores) as pool:
        lines = [
            *head(runs),
            "## Every state is needed: the walk goes on until all are found",
            "",
            *table(walked, SYSTEMS, runs, pool, True),
            "",
            "## The states discovered are needed",
            "",
            *table(walked, SYSTEMS, runs, pool, False),
            "",
            "## The same, with episodes that end (Gymnasium)",
            "",
            *table(ended, ENVIRONMENTS, runs, pool),
        ]
    RESULT.write_text("\n".join(lines) + "\n")
    print(f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
