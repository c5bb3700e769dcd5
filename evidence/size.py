"""One sample of every pair where there are many states: steps, time and memory with the learnt prior.

python -m evidence.size [--quick] [--largest] [--seeds 3]      writes evidence/results/size.md

Each run has a process of its own: the time is that of the collection, the memory that of the whole process. `--largest`
adds a million states, `--quick` runs tiny systems and writes nothing.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import gosprl
from evidence.families import maze

RESULT = Path(__file__).parent / "results" / "size.md"


def grid(n, seed):
    return gosprl.envs.make("open_grid", rows=n, columns=n)


MAKE = {"open grid": grid, "maze": maze}


class Case(NamedTuple):
    """A system, and what is asked of its runs."""

    kind: str
    n: int
    steps: float  # at most so many steps a pair
    seconds: float
    megabytes: float


CASES = (
    Case("open grid", 100, 1.45, 120, 700),
    Case("maze", 100, 2.0, 120, 700),
    Case("open grid", 316, 1.60, 120, 700),
)
LARGEST = Case("open grid", 1000, 1.60, 1800, 6000)
TINY = (Case("open grid", 6, 2.5, 60, 700), Case("maze", 6, 3.0, 60, 700))
TEXT = """\
One sample of every pair, nothing given, the default strategy with `prior=True`. Steps are divided by the number of
pairs: on open grids that is the fluid limit, in mazes the limit is larger, so the ratio to it is smaller. Seconds are
CPU time of one core, as other work on the machine would count otherwise. Means over seeds 0, 1, ...; memory: the
largest. A maze is another one for each seed."""


def run(kind, n, seed):
    """Steps, pairs, plans, seconds and bytes of one run."""
    gosprl.collect(grid(3, 0), 1, seed=0, prior=True)  # loads the compiled code
    mdp = MAKE[kind](n, seed)
    begin = time.process_time()
    result = gosprl.collect(mdp, 1, seed=seed, prior=True)
    seconds = time.process_time() - begin
    unit = 1 if sys.platform == "darwin" else 1024
    memory = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert result.met
    return {
        "steps": result.steps,
        "pairs": result.pairs,
        "plans": result.work["plans"],
        "seconds": seconds,
        "MB": memory / 1e6,
    }


def in_child(kind, n, seed):
    code = f"import json; from evidence.size import run; print(json.dumps(run({kind!r}, {n}, {seed})))"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def verdict(number, most, form):
    return f"{number:{form}} ({most:g}: {'met' if number <= most else 'MISSED'})"


def line(case, seeds):
    """A line of the table."""
    runs = [in_child(case.kind, case.n, seed) for seed in range(seeds)]
    mean = {key: float(np.mean([one[key] for one in runs])) for key in runs[0]}
    each = np.array([one["steps"] / one["pairs"] for one in runs])
    memory = max(one["MB"] for one in runs)
    cells = (
        f"{case.kind} {case.n} x {case.n}",
        f"{case.n**2:,}",
        seeds,
        f"{verdict(each.mean(), case.steps, '.3f')}, {each.min():.3f} to {each.max():.3f}",
        f"{mean['plans']:,.0f}",
        verdict(mean["seconds"], case.seconds, ".1f"),
        f"{1e6 * mean['seconds'] / mean['steps']:.0f}",
        verdict(memory, case.megabytes, ".0f"),
    )
    return f"| {' | '.join(map(str, cells))} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--largest", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    columns = ("system", "states", "runs", "steps a pair (at most), range", "plans", "s", "us a step", "peak (MB)")
    table = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    jobs = [(case, 1 if given.quick else given.seeds) for case in (TINY if given.quick else CASES)]
    command = "python -m evidence.size" + " --largest" * given.largest + f" --seeds {given.seeds}"
    head = ["# Many states, one sample of every pair", "", f"`{command}`", "", TEXT, ""]
    for case, seeds in [*jobs, (LARGEST, 1)] if given.largest else jobs:
        table.append(line(case, seeds))
        print(table[-1], flush=True)
        if not given.quick:  # after every line: the last ones take long
            RESULT.write_text("\n".join([*head, *table, ""]))


if __name__ == "__main__":
    main()
