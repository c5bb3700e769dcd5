"""How collecting grows: one sample of every pair of an open n x n gridworld.

    python benchmarks/growth.py              writes benchmarks/results/growth.md
    python benchmarks/growth.py --large      a million states; writes benchmarks/results/growth_large.md

Each line has a process of its own: the time is that of the collection, the memory that of the whole process. The fluid
limit is 1 step a pair. A setting that fails, or takes longer than its limit, is not tried on larger grids.
"""

import subprocess

import numpy as np
from report import cells, clock, header, in_child, options, peak_memory, write

import gosprl
from gosprl.envs import make

SMALL = 0.01  # scale at which kl sets need no candidates
SIZES, LARGE = (10, 32, 100, 316), 1000
LIMIT, LARGE_LIMIT = 900, 1800  # seconds a line
SEEDS, FEW_SEEDS, MANY_UP_TO = 5, 3, 100  # runs a line, and the largest n with many
TARGET_SIZE, TARGETS = 316, {"known": 1.35, "candidates": 1.45, "small scale": 2.5}  # steps a pair
TARGET_SECONDS, TARGET_MB = 120, 600
AT_ONCE = {"strategy": "gosprl", "duplicate_start": False}
SETTINGS = {
    "known": lambda mdp: {**AT_ONCE, "dynamics": mdp},
    "candidates": lambda mdp: {**AT_ONCE, "successors": mdp},
    "small scale": lambda mdp: {**AT_ONCE, "scale": SMALL},
    "guarded": lambda mdp: {},
}
SETTINGS_AT_LARGE = ("known", "candidates")
COLUMNS = (
    *("setting", "n", "states", "pairs", "steps a pair", "target", "attempts", "s", "us a step", "peak (MB)"),
    *("rows an attempt, mean", "median", "plans for all states", "leavings"),
)
TEXT = f"""\
Open n x n grid, 1 sample of every pair. Settings: known dynamics; kl sets with the successors given; kl sets
x{SMALL:g} without; `guarded`, the default, with nothing given. The first three with `duplicate_start=False`: an
under-sampled state is sampled at once where an attempt would start. The targets were stated for this variant;
Algorithm 1 as printed leaves such a state first.

Means of {SEEDS} seeds up to n = {MANY_UP_TO}, {FEW_SEEDS} at n = {TARGET_SIZE}, 1 beyond; memory and median: their
largest. `rows`: applications of a row of the model in planning; `leavings`: walks that left their region."""


def collect(n, setting, seeds):
    """Means over runs with seeds 0, 1, ..."""
    small = make("open_grid", rows=3, columns=3)
    for more in ({},) if setting == "guarded" else ({"planning": "focused"}, {"planning": "full"}):
        gosprl.collect(small, 1, seed=0, **more, **SETTINGS[setting](small))  # loads the compiled code
    mdp = make("open_grid", rows=n, columns=n)
    runs = []
    for seed in range(seeds):
        begin = clock()
        result = gosprl.collect(mdp, 1, seed=seed, **SETTINGS[setting](mdp))
        seconds = clock() - begin
        assert result.met
        own = {"steps": result.steps, "pairs": result.pairs, "attempts": result.attempts, "seconds": seconds}
        runs.append({**own, **result.work})
        del result  # or the next run's memory would count it
    means = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    return {**means, "median rows": max(run["median rows"] for run in runs), "MB": peak_memory() / 1e6}


def line(n, setting, seeds):
    """A line of the table, and the numbers in it (None: there are none)."""
    target = TARGETS.get(setting, "-") if n == TARGET_SIZE else "-"
    head = (setting, n, f"{n * n:,}", f"{4 * n * n:,}")
    limit = LARGE_LIMIT if n == LARGE else LIMIT
    try:
        run = in_child("growth", f"collect({n}, {setting!r}, {seeds})", timeout=limit)
    except subprocess.TimeoutExpired:
        return cells(*head, "-", target, "-", f"> {limit}", *"------"), None
    except subprocess.CalledProcessError:  # it has said why
        return cells(*head, "failed", target, *"--------"), None
    took = (f"{run['seconds']:.1f}", f"{1e6 * run['seconds'] / run['steps']:.0f}", f"{run['MB']:.0f}")
    median = f"< {run['median rows']:,}" if run["median rows"] else "-"
    rows = (f"{run['rows'] / run['attempts']:,.0f}", median)
    walked = (f"{run['steps'] / run['pairs']:.3f}", target, f"{run['attempts']:,.0f}")
    return cells(*head, *walked, *took, *rows, f"{run['full']:,.0f}", f"{run['leavings']:,.0f}"), run


def summary(setting, run):
    """The numbers of the largest grid with targets, beside these."""

    def beside(number, target, unit):
        verdict = "" if target is None else f" (target {target}: {'met' if number <= target else 'MISSED'})"
        return f"{number:.4g} {unit}{verdict}"

    if run is None:
        return f"- {setting}: not done."
    steps = beside(run["steps"] / run["pairs"], TARGETS.get(setting), "steps a pair")
    return f"- {setting}: {steps}, {beside(run['seconds'], TARGET_SECONDS, 's')}, {beside(run['MB'], TARGET_MB, 'MB')}."


def main(quick, large):
    table, summed = header(*COLUMNS), []
    for setting in SETTINGS_AT_LARGE if large else SETTINGS:
        if not quick:
            line(3, setting, 1)  # a process that compiles takes more memory; the next ones find its code on disk
        reached = None
        for n in (4,) if quick else (LARGE,) if large else SIZES:
            text, run = line(n, setting, SEEDS if n <= MANY_UP_TO else FEW_SEEDS if n < LARGE else 1)
            table.append(text)
            print(text, flush=True)
            if run is None:
                break
            reached = run if n == TARGET_SIZE else reached
        summed.append(summary(setting, reached))
    lines = ["# Collecting on growing gridworlds", "", TEXT, "", *table]
    if not large:
        lines += ["", f"At n = {TARGET_SIZE}:", "", *summed]
    write("growth_large" if large else "growth", lines, quick=quick)


if __name__ == "__main__":
    flags = options(__doc__, large=f"n = {LARGE} instead, with known dynamics and with candidates, one seed")
    main(flags.quick, flags.large)
