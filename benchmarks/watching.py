"""What `gosprl watch` costs the run that it watches.

    python benchmarks/watching.py              writes benchmarks/results/watching.md

Runs of four_room43 with a log, of a fixed number of steps, in turns with and without a process that watches them, at
the priority of `gosprl watch`. Wall time of the runs, and CPU time of both sides; that of the watching process without
its imports.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from report import cells, header, options, write
from scipy.stats import binom

import gosprl
from gosprl.runs.settings import Out

TARGET = 2.0  # per cent of the run's wall time
STEPS, TURNS = 30_000_000, 9
QUICK_STEPS = 200_000
WATCH = """
import os, sys, time
from gosprl.cli.watching import POLITE
from gosprl.watching import watch
os.nice(POLITE)
print(time.process_time(), flush=True)
while not os.path.exists(sys.argv[1] + "/manifest.json"):
    time.sleep(0.02)
for look in watch(sys.argv[1], 1.0):
    print(look.facts["steps"])
print(time.process_time())
"""


def watching(directory):
    """Start a process that watches a run, as soon as there is one; as `gosprl watch` does."""
    return subprocess.Popen([sys.executable, "-c", WATCH, str(directory)], stdout=subprocess.PIPE, text=True)


def turn(mdp, steps, watched):
    """(wall time, CPU time, looks of the watching process, its CPU time) of one run."""
    with tempfile.TemporaryDirectory() as parent:
        directory = Path(parent) / "run"
        process = watching(directory) if watched else None
        imports = float(process.stdout.readline()) if process is not None else 0.0
        begin, cpu = time.perf_counter(), time.process_time()
        gosprl.collect(mdp, 10**9, seed=0, max_steps=steps, out=Out(directory))
        took = time.perf_counter() - begin, time.process_time() - cpu
        if process is None:
            return (*took, 0, 0.0)
        *looks, used = process.communicate()[0].split()
        assert int(looks[-1]) == steps
        return (*took, len(looks), float(used) - imports)


def median_interval(values):
    """(low, median, high): the median with its 95 % interval by the sign test, whatever the distribution is."""
    ordered = np.sort(values)
    k = max(int(binom.ppf(0.025, len(ordered), 0.5)), 1)
    return ordered[k - 1], np.median(ordered), ordered[-k]


def verdict(low, high):
    """Whether the target is met; a machine that is busy with other things decides nothing."""
    if high < TARGET:
        return "met"
    return "MISSED" if low > TARGET else "not decided, the machine does too many other things"


def main():
    quick = options(__doc__).quick
    steps, turns = (QUICK_STEPS, 1) if quick else (STEPS, TURNS)
    mdp = gosprl.envs.make("four_room43")
    turn(mdp, QUICK_STEPS, False)
    load = os.getloadavg()[0]
    runs = {watched: [] for watched in (False, True)}
    for i in range(turns):
        for watched in (False, True) if i % 2 else (True, False):  # what else the machine does may grow or fall
            runs[watched].append(turn(mdp, steps, watched))
    alone, beside = (np.median(np.array(runs[watched]), axis=0) for watched in (False, True))
    low, more, high = median_interval([100 * (b[0] / a[0] - 1) for a, b in zip(*runs.values(), strict=True)])
    lines = [
        "# Watching a run",
        "",
        f"`python benchmarks/watching.py`: {steps:,} steps of four_room43 with a log, alone and beside a process that",
        f"looks once a second; medians of {turns}. Load of the machine: {load:.1f} before, "
        f"{os.getloadavg()[0]:.1f} after.",
        "",
        *header("", "run, s", "run, CPU s", "steps a second", "looks", "watching, CPU s"),
        cells("alone", f"{alone[0]:.2f}", f"{alone[1]:.2f}", f"{steps / alone[0]:,.0f}", "", ""),
        cells(
            *("watched", f"{beside[0]:.2f}", f"{beside[1]:.2f}", f"{steps / beside[0]:,.0f}"),
            *(f"{beside[2]:.0f}", f"{beside[3]:.2f}"),
        ),
        "",
        f"Watched takes {more:+.1f} % more wall time (median of the pairs, 95 % interval {low:+.1f} to {high:+.1f}); "
        f"target below {TARGET:g}: {verdict(low, high)}.",
    ]
    write("watching", lines, quick=quick, packages=("pyarrow",), times="Wall and CPU times")


if __name__ == "__main__":
    main()
