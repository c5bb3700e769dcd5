"""Hitting times: all pairs of medium MDPs, and some goals of a large one.

    python benchmarks/distances.py      writes benchmarks/results/distances.md

Wall times, as cores are the point: nothing else should be running. Threads share the goals; their number must not
change a bit of the result.
"""

from time import perf_counter

import numpy as np
from report import cells, header, in_child, options, peak_memory, write

from gosprl.envs import make
from gosprl.mdp.distances import _cores

ALL_PAIRS = (
    ("garnet", {"states": 2000, "actions": 5, "branching": 5}),
    ("open_grid", {"rows": 45, "columns": 45}),
    ("riverswim", {"states": 2000}),
)
QUICK = (("garnet", {"states": 20, "actions": 2, "branching": 2}),)
SIDE, GOALS = 316, 4  # of the large grid, and goals in it


def seconds_and_times(name, parameters, workers):
    """Of all pairs, by an MDP that remembers nothing of them."""
    mdp = make(name, **parameters)
    begin = perf_counter()
    times = mdp.hitting_times(workers=workers)
    return perf_counter() - begin, times


def all_pairs(quick):
    cores = _cores()
    lines = [
        "## All pairs (s)",
        "",
        *header("domain", "states", "largest time (steps)", "1 worker", f"{cores} workers", "ratio"),
    ]
    make("riverswim", states=6).hitting_times()  # compiles
    for name, parameters in QUICK if quick else ALL_PAIRS:
        mdp = make(name, **parameters)
        one, times = seconds_and_times(name, parameters, 1)
        many, same = seconds_and_times(name, parameters, cores)
        np.testing.assert_array_equal(times, same)
        took = (f"{one:.1f}", f"{many:.1f}", f"{one / many:.2f}")
        lines.append(cells(mdp.name, f"{mdp.num_states:,}", f"{times.max():,.0f}", *took))
        print(lines[-1], flush=True)
    return lines


def some_goals(side, goals, workers):
    """Seconds, and bytes of the whole process before and after."""
    make("riverswim", states=6).ssp_diameters()  # compiles
    mdp = make("open_grid", rows=side, columns=side)
    spread = np.linspace(0, mdp.num_states - 1, goals).astype(np.int64)
    before, begin = peak_memory(), perf_counter()
    diameters = mdp.ssp_diameters(goals=spread, workers=workers)
    seconds = perf_counter() - begin
    return {"seconds": seconds, "before": before, "peak": peak_memory(), "diameter": float(diameters.max())}


def sample(quick):
    side, goals = (4, 2) if quick else (SIDE, GOALS)
    lines = [
        f"## {goals} goals of an open {side} x {side} grid",
        "",
        "`mdp.ssp_diameters(goals=...)`; memory of the whole process, without and with the times.",
        "",
        *header("states", "workers", "s", "s a goal", "MDP made (MB)", "peak (MB)", "largest time (steps)"),
    ]
    for workers in dict.fromkeys((1, _cores())):
        run = in_child("distances", f"some_goals({side}, {goals}, {workers})")
        took = (f"{run['seconds']:.1f}", f"{run['seconds'] / goals:.1f}")
        memory = (f"{run['before'] / 1e6:.0f}", f"{run['peak'] / 1e6:.0f}")
        lines.append(cells(f"{side * side:,}", workers, *took, *memory, f"{run['diameter']:,.0f}"))
    return lines


if __name__ == "__main__":
    quick = options(__doc__).quick
    some = sample(quick)  # first: a child's peak begins at what its parent holds
    lines = ["# Hitting times", "", "To a relative error of 1e-9.", "", *all_pairs(quick), "", *some]
    write("distances", lines, quick=quick, times="Wall times")
