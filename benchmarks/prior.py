"""The time of a step with the learnt prior, side by side with the same strategy without it.

python benchmarks/prior.py      writes benchmarks/results/prior.md
"""

import sys
from functools import partial
from pathlib import Path

from report import cells, clock, header, options, write

import gosprl
from gosprl.envs import make

sys.path.insert(0, str(Path(__file__).parents[1]))

from evidence.families import garnet, maze, queues, shuffled, tree

MOST = 1.5  # times the time of a step without the prior
RUNS = {1: 20, 10: 5}  # seeds, by the need
READY = ("riverswim20", "noisy_riverswim36", "four_room43", "corridor24", "room20", "cliff48")
SYSTEMS = {
    "maze 8 x 8": partial(maze, 8),
    "maze 14 x 14": partial(maze, 14),
    "maze 8 x 8, shuffled": lambda seed: shuffled(maze(8, seed), seed),
    "queues of 8": lambda seed: queues(8),
    "tree 5, 2": lambda seed: tree(5, 2),
    "garnet 60, 5": partial(garnet, 60, 5),
    "open grid 22 x 22": lambda seed: make("open_grid", rows=22, columns=22),
} | {name: lambda seed, name=name: make(name) for name in READY}
TEXT = f"""\
`python benchmarks/prior.py`. The default strategy, `prior=False` against the default: CPU time divided by steps. All
runs together, {RUNS[1]} at need 1 and {RUNS[10]} at need 10. The two runs of a seed follow each other, so that what
else the machine is doing slows both down. At most {MOST} is asked for. Runs with the prior make fewer steps, so the
last column, the ratio of whole runs, is smaller."""


def compared(make_system, need, runs):
    """[(seconds, steps) without the prior, with it], the sums over runs."""
    sums = [[0.0, 0], [0.0, 0]]
    gosprl.collect(make_system(0), need, seed=0)  # loads what is not loaded yet
    for seed in range(runs):
        mdp = make_system(seed)
        for prior in (False, True):
            begin = clock()
            steps = gosprl.collect(mdp, need, seed=seed, prior=prior).steps
            sums[prior][0] += clock() - begin
            sums[prior][1] += steps
    return sums


if __name__ == "__main__":
    quick = options(__doc__).quick
    columns = ("system", "need", "us a step, without", "with", f"ratio (at most {MOST})", "ratio of whole runs")
    lines = ["# The time of a step with the learnt prior", "", TEXT, "", *header(*columns)]
    for name, make_system in list(SYSTEMS.items())[: 1 if quick else None]:
        for need, runs in RUNS.items():
            (before, plain), (seconds, steps) = compared(make_system, need, 1 if quick else runs)
            each = (1e6 * before / plain, 1e6 * seconds / steps)
            ratio = each[1] / each[0]
            verdict = f"{ratio:.2f}" + (" MISSED" if ratio > MOST else "")
            lines.append(cells(name, need, f"{each[0]:.0f}", f"{each[1]:.0f}", verdict, f"{seconds / before:.2f}"))
            print(lines[-1], flush=True)
    write("prior", lines, quick=quick)
