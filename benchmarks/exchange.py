"""Long logs out and in: time and peak memory of each export and import, each in a process of its own.

    python benchmarks/exchange.py     writes benchmarks/results/exchange.md

Transitions of a random walk on four_room43, in two lengths: if memory does not grow with the log, both have the same
peak. Minari data sets have episodes, which a table has not: there, a system whose episodes are cut off after 1,000
steps is walked, which takes longer, so that its logs are shorter; the peak is that of the processes that write and
compare.

Importing is `gosprl.collect(system, need=1, data=FILE)`. The data meet the need: what is left is reading and counting.
"""

import os
import resource
import tempfile
import time
import warnings
from pathlib import Path

from report import cells, header, in_child, options, peak_memory, write

ENDLESS = 10**9  # a need that is never met
LENGTH = 1000  # of an episode
FORMATS = ("parquet", "csv", "npz")
QUICK = False
MOST = 1.25  # peak of the longer log over that of the shorter one


class Line:
    """Steps to the left and to the right, in episodes of LENGTH steps."""

    def reset(self, *, seed=None):
        self.place, self.age = 0, 0
        return self.place, {}

    def step(self, action):
        self.place, self.age = min(max(self.place + 2 * action - 1, 0), 9), self.age + 1
        return self.place, 0.0, False, self.age == LENGTH, {}


def system_of(episodes):
    """(What is walked, the options of `collect`)."""
    import gosprl

    return (Line(), {"actions": 2}) if episodes else (gosprl.envs.make("four_room43"), {})


def collected(run, steps, episodes):
    """Write a run of so many steps; its length."""
    import gosprl

    system, how = system_of(episodes)
    result = gosprl.collect(system, ENDLESS, strategy="random", seed=0, max_steps=steps, out=run, **how)
    return result.steps


def exported(run, file, to):
    """Seconds, peak bytes of this process or of one that it started, and bytes written."""
    from gosprl.exchange import export

    begin = time.perf_counter()
    export(run, file, to)
    took = time.perf_counter() - begin
    peak = max(peak_memory(), 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    parts = [file] if os.path.isfile(file) else [part for part in Path(file).rglob("*") if part.is_file()]
    return took, peak, sum(os.path.getsize(part) for part in parts)


def imported(file, episodes, steps):
    """Seconds, peak bytes."""
    import gosprl

    system, how = system_of(episodes)
    order = {} if os.path.isdir(f"{file}/log") else {"data_order": "collected"}
    warnings.simplefilter("ignore", UserWarning)  # that there may be more states
    begin = time.perf_counter()
    result = gosprl.collect(system, 1, seed=0, max_steps=1, data=file, **order, **how)
    took = time.perf_counter() - begin
    assert result.counts.sum() - result.steps == steps
    return took, peak_memory()


def apart(function, *arguments):
    """The answer of a function, in a process of its own; in this one for a smoke run."""
    if QUICK:
        return function(*arguments)
    return in_child("exchange", f"{function.__name__}({', '.join(map(repr, arguments))})")


def measured(steps, episodes, formats):
    """{(direction, format): (seconds, peak, bytes)} of a log of so many transitions."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        run = f"{folder}/run"
        assert apart(collected, run, steps, episodes) == steps
        size = sum(part.stat().st_size for part in Path(run).rglob("*") if part.is_file())
        if not episodes:
            found["in", "run directory"] = (*apart(imported, run, episodes, steps), size)
        for to in formats:
            file = f"{folder}/walk-v0" if to == "minari" else f"{folder}/walk.{to}"
            found["out", to] = apart(exported, run, file, to)
            found["in", to] = (*apart(imported, file, episodes, steps), found["out", to][2])
    return found


def table(sizes, episodes, formats):
    """The lines of a table, and what grew."""
    found = [measured(steps, episodes, formats) for steps in sizes]
    names = [f"{what}, {steps:,}" for steps in sizes for what in ("s", "peak MB", "file MB")]
    lines = header("direction", "format", *names)
    grown = []
    for key in sorted(found[0], key=lambda key: (key[0] != "out", key[1])):
        numbers = [x for one in found for x in (f"{one[key][0]:.1f}", *(f"{part / 1e6:.0f}" for part in one[key][1:]))]
        lines.append(cells(*key, *numbers))
        if found[1][key][1] > MOST * found[0][key][1]:
            grown.append(f"{key[0]} {key[1]}")
    return lines, grown


def main(quick):
    """Write the tables."""
    sizes, fewer = ((1000, 2000), (500, 1500)) if quick else ((3 * 10**6, 10**7), (3 * 10**5, 10**6))
    lines = ["# Logs of 10 million transitions, out and in", "", "four_room43, a table:", ""]
    rows, grown = table(sizes, False, FORMATS)
    lines += [*rows, "", f"Episodes of {LENGTH:,} steps, of a system that is stepped through:", ""]
    rows, more = table(fewer, True, ("parquet",) if quick else ("minari", "parquet"))
    lines += [
        *rows,
        "",
        f"Memory grows with the log: {', '.join(grown + more) or 'nowhere'} (more than {MOST:g} times).",
    ]
    write("exchange", lines, quick=quick, packages=("pyarrow", "minari"), times="Wall times")


if __name__ == "__main__":
    QUICK = options(__doc__).quick
    main(QUICK)
