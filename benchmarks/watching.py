"""What `gosprl watch` costs the run that it watches.

    python benchmarks/watching.py              writes benchmarks/results/watching.md

Runs with a log, in pairs: one alone, and one beside a process that watches it at the priority of `gosprl watch`, in
turns first and second. What counts is the wall time of the run, over that of its pair; the median of the pairs has a
95 % interval by the sign test, whatever the distribution is. Two runs are measured: one that collects with the default
strategy, at about a million steps a second, for which there is a target; and a random walk, the fastest run there is,
for which there is none: it and its log keep more than one core busy.

Other programs make wall times longer by more than watching does. What they take of the processor is measured during
each run: all that the machine was busy with, or did not get from its host, without the run and the one that watches.
A pair in which that is more than `QUIET` cores is made again. If too few pairs are left, nothing is decided.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from report import cells, header, options, write
from scipy.stats import binom

import gosprl
from gosprl.runs.settings import Out

TARGET = 2.0  # per cent of the run's wall time
MORE = 1.25  # pairs that are made at most, for each that is wanted
QUIET = 0.1  # cores that other programs may use
TICKS = os.sysconf("SC_CLK_TCK")
WATCH = """
import os, sys, time
from gosprl.cli.watching import POLITE
from gosprl.watching import watch
os.nice(POLITE)
print(flush=True)
while not os.path.exists(sys.argv[1] + "/manifest.json"):
    time.sleep(0.02)
for look in watch(sys.argv[1], 1.0):
    print(look.facts["steps"])
"""


class Case(NamedTuple):
    """A kind of run."""

    title: str
    side: int  # of the open grid
    need: int
    options: dict
    pairs: int
    has_target: bool

    def system(self):
        return gosprl.envs.make("open_grid", rows=self.side, columns=self.side)


CASES = (
    Case("400 samples of each of 14,400 pairs, default strategy", 60, 400, {}, 40, True),
    Case("random walk on 10,000 states", 100, 10**9, {"strategy": "random", "max_steps": 50_000_000}, 16, False),
)
QUICK = (Case("3 samples of each of 400 pairs", 10, 3, {}, 1, True),)


class Turn(NamedTuple):
    """One run."""

    wall: float  # seconds
    cpu: float  # seconds of the run
    watching: float  # seconds of CPU of the process that watches, while the run goes on
    others: float  # cores that everything else used
    looks: int
    steps: int


def busy():
    """Seconds that all cores were busy or not there since the machine was started; nan if the system does not say."""
    try:
        user, nice, system, _, _, *more = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    except OSError:
        return float("nan")
    return sum(map(int, (user, nice, system, *more))) / TICKS


def used(process):
    """Seconds of CPU of another process."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / TICKS


def watcher(directory):
    """Start a process that watches a run, as soon as there is one; as `gosprl watch` does."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", WATCH, str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables)
    process.stdout.readline()  # it has its imports
    return process


def turn(case, mdp, watched):
    """Make one run."""
    with tempfile.TemporaryDirectory() as parent:
        directory = Path(parent) / "run"
        process = watcher(directory) if watched else None

        def clocks():
            return np.array([time.perf_counter(), time.process_time(), used(process) if watched else 0.0, busy()])

        before = clocks()
        steps = gosprl.collect(mdp, case.need, seed=0, out=Out(directory), **case.options).steps
        wall, cpu, watching, everything = clocks() - before
        looks = process.communicate()[0].split() if watched else []
        assert not watched or int(looks[-1]) == steps
        return Turn(wall, cpu, watching, (everything - cpu - watching) / wall, len(looks), steps)


def pairs(case, mdp, allowed):
    """(pairs of turns, alone and watched, in which other programs used few cores; how many were made)."""
    quiet = []
    for made in range(1, int(MORE * case.pairs) + 1):
        order = (False, True) if made % 2 else (True, False)  # what else the machine does may grow or fall
        turns = {watched: turn(case, mdp, watched) for watched in order}
        if not max(one.others for one in turns.values()) > allowed:  # nan: not known here
            quiet.append((turns[False], turns[True]))
        if len(quiet) == case.pairs:
            break
    return quiet, made


def median_interval(values):
    """(low, median, high): the median with its 95 % interval by the sign test."""
    ordered = np.sort(values)
    k = max(int(binom.ppf(0.025, len(ordered), 0.5)), 1)
    return ordered[k - 1], np.median(ordered), ordered[-k]


def verdict(low, high, count, wanted):
    """Whether the target is met; a machine that is busy with other things decides nothing."""
    if count < wanted:
        return "not decided, the machine does too many other things"
    if high < TARGET:
        return "met"
    return "MISSED" if low > TARGET else "not decided, the interval contains it"


def said(kind, quiet, clock):
    """A sentence about one clock of the runs, and the ends of the interval."""
    low, more, high = median_interval([100 * (clock(beside) / clock(alone) - 1) for alone, beside in quiet])
    return f"Watched takes {more:+.1f} % more {kind} (95 % interval {low:+.1f} to {high:+.1f})", low, high


def section(case, allowed):
    """The lines about one kind of run."""
    mdp = case.system()
    quiet, made = pairs(case, mdp, allowed)
    lines = ["", f"## {case.title}", "", f"{made} pairs, of which {len(quiet)} count."]
    if not quiet:
        return [
            *lines,
            f"Target below {TARGET:g} %: {verdict(0, 0, 0, case.pairs)}." if case.has_target else "No result.",
        ]
    alone, beside = (np.median(np.array(turns), axis=0) for turns in zip(*quiet, strict=True))
    cpu, *_ = said("CPU time of its own", quiet, lambda one: one.cpu)
    wall, low, high = said("wall time", quiet, lambda one: one.wall)
    names = ("run, s", "run, CPU s", "steps a second", "looks", "watching, CPU s", "other programs, cores")
    lines += ["", *header("medians", *names)]
    for name, one in (("alone", Turn(*alone)), ("watched", Turn(*beside))):
        watching = (f"{one.looks:.0f}", f"{one.watching:.2f}") if one.looks else ("", "")
        rate = f"{one.steps / one.wall:,.0f}"
        lines.append(cells(name, f"{one.wall:.2f}", f"{one.cpu:.2f}", rate, *watching, f"{one.others:.2f}"))
    target = f"; target below {TARGET:g}: {verdict(low, high, len(quiet), case.pairs)}" if case.has_target else ""
    return [*lines, "", f"{cpu}.", f"{wall}{target}."]


def main():
    quick = options(__doc__).quick
    turn(QUICK[0], QUICK[0].system(), False)
    lines = [
        "# Watching a run",
        "",
        "`python benchmarks/watching.py`: runs with a log, alone and beside a process that looks once a second. Pairs",
        f"during which other programs used more than {QUIET:g} cores do not count.",
    ]
    for case in QUICK if quick else CASES:
        lines += section(case, np.inf if quick else QUIET)
    write("watching", lines, quick=quick, packages=("pyarrow",), times="Wall and CPU times")


if __name__ == "__main__":
    main()
