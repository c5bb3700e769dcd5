"""The time of a step with the learnt prior, side by side with the same strategy without it.

python benchmarks/prior.py      writes benchmarks/results/prior.md
"""

import sys
import warnings
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
from report import cells, clock, header, options, write

import gosprl
from gosprl.envs import make

sys.path.insert(0, str(Path(__file__).parents[1]))

from evidence.families import garnet, maze, queues, shuffled, tree
from evidence.systems import Plane

MOST = 1.5  # times the time of a step without the prior
RUNS = {1: 20, 10: 5}  # seeds, by the need


def domain(name, **options):
    return lambda seed: make(name, **options)


def fixed(make_system, *arguments):
    return lambda seed: make_system(*arguments)


SYSTEMS = {  # whose targets at need 1 the prior was made for
    "maze 8 x 8": partial(maze, 8),
    "maze 14 x 14": partial(maze, 14),
    "queues of 8": fixed(queues, 8),
    "tree 5, 2": fixed(tree, 5, 2),
    **{name: domain(name) for name in ("riverswim20", "riverswim36", "noisy_riverswim36")},
    **{name: domain(name) for name in ("four_room43", "corridor24", "room20", "cliff48")},
}
OTHERS = {
    "maze 20 x 20": partial(maze, 20),
    "maze 8 x 8, shuffled": lambda seed: shuffled(maze(8, seed), seed),
    "queues of 12": fixed(queues, 12),
    "tree 4, 3": fixed(tree, 4, 3),
    "garnet 60, 5": partial(garnet, 60, 5),
    "garnet 200, 3": partial(garnet, 200, 3),
    "garnet 500, 2": partial(garnet, 500, 2),
    "open grid 20 x 20": domain("open_grid", rows=20, columns=20),
    "wheel30": domain("wheel30"),
    "noisy_riverswim100": domain("noisy_riverswim100"),
    "Taxi-v4": lambda seed: gymnasium.make("Taxi-v4"),
    "FrozenLake8x8-v1": lambda seed: gymnasium.make("FrozenLake8x8-v1"),
    "plane, 6 x 6 pairs": lambda seed: Plane(),
}
TEXT = f"""\
`python benchmarks/prior.py`. The default strategy against `prior=False`: CPU time divided by steps, over
{RUNS[1]} runs at need 1 and {RUNS[10]} at need 10, ± 95 % (jackknife over runs). The two runs of a seed follow each
other, in turns which is first, so that what else the machine is doing slows both down. All systems have at most 500
states. The target is a ratio of at most {MOST}: met if the interval ends below, missed if it begins above, else
undecided. Runs with the prior make fewer steps, so the ratio of whole runs is often smaller."""


def compared(make_system, need, runs):
    """(CPU seconds, steps) of each run without the prior, and with it: [2, 2, runs]."""
    found = np.zeros((2, 2, runs))
    for prior in (False, True):  # loads what is not loaded yet
        gosprl.collect(make_system(0), need, seed=0, prior=prior)
    for seed in range(runs):
        system = make_system(seed)
        for prior in (False, True) if seed % 2 else (True, False):
            begin = clock()
            steps = gosprl.collect(system, need, seed=seed, prior=prior).steps
            found[int(prior), :, seed] = clock() - begin, steps
    return found


def ratio_of(found):
    """The time of a step with the prior over that without, all runs together."""
    (before, plain), (seconds, steps) = found.sum(axis=2)
    return (seconds / steps) / (before / plain)


def half_width(found):
    """Half of a 95 % interval of that ratio: the jackknife over runs."""
    runs = found.shape[2]
    if runs < 2:
        return np.inf
    without = np.array([ratio_of(np.delete(found, run, axis=2)) for run in range(runs)])
    return 1.96 * np.sqrt((runs - 1) * without.var())


def verdict(ratio, half):
    return "met" if ratio + half <= MOST else "missed" if ratio - half > MOST else "undecided"


def table(systems, quick):
    """(The lines of a table, its verdicts)."""
    columns = ("system", "need", "us a step, without", "with", "ratio", f"at most {MOST}", "ratio of whole runs")
    lines, verdicts = header(*columns), []
    for name, make_system in list(systems.items())[: 1 if quick else None]:
        for need, runs in RUNS.items():
            found = compared(make_system, need, 1 if quick else runs)
            ratio, half = ratio_of(found), half_width(found)
            (before, plain), (seconds, steps) = found.sum(axis=2)
            each = (f"{1e6 * before / plain:.0f}", f"{1e6 * seconds / steps:.0f}", f"{ratio:.2f} ± {half:.2f}")
            verdicts.append(verdict(ratio, half))
            lines.append(cells(name, need, *each, verdicts[-1], f"{seconds / before:.2f}"))
            print(lines[-1], flush=True)
    return lines, verdicts


if __name__ == "__main__":
    quick = options(__doc__).quick
    warnings.simplefilter("ignore", UserWarning)  # there may be more states than were discovered
    named, first = table(SYSTEMS, quick)
    others, second = table(OTHERS, quick)
    number = {word: (first + second).count(word) for word in ("met", "undecided", "missed")}
    summary = ", ".join(f"{count} {word}" for word, count in number.items())
    lines = ["# The time of a step with the learnt prior", "", TEXT, "", f"Of {len(first + second)} cases: {summary}."]
    lines += ["", "Systems that the prior was made for:", "", *named, "", "Other systems:", "", *others]
    write("prior", lines, quick=quick)
