"""How collecting grows: one sample of every pair of an open n x n gridworld.

    python benchmarks/growth.py      writes benchmarks/results/growth.md

One run a line, in a process of its own: the time is that of the collection, the memory that of the whole process. The
fluid limit is 1 step a pair. A setting that fails, or takes longer than LIMIT, is not tried on larger grids.
"""

import subprocess

from report import cells, clock, header, in_child, options, peak_memory, write

import gosprl
from gosprl.envs import make

SMALL = 0.01  # scale at which kl sets need no candidates
LIMIT = 900  # seconds
SIZES = (10, 32, 100, 316)
TARGET_SIZE, TARGETS = 316, {"known": "1.35", "candidates": "1.45", "small scale": "2.5"}
SETTINGS = {
    "known": lambda mdp: {"dynamics": mdp},
    "candidates": lambda mdp: {"confidence": "kl", "successors": mdp},
    "small scale": lambda mdp: {"confidence": "kl", "scale": SMALL},
}


def collect(n, setting):
    """One run, as numbers."""
    small = make("open_grid", rows=3, columns=3)
    gosprl.collect(small, 1, seed=0, **SETTINGS[setting](small))  # loads the compiled code
    mdp = make("open_grid", rows=n, columns=n)
    begin = clock()
    result = gosprl.collect(mdp, 1, seed=0, **SETTINGS[setting](mdp))
    seconds = clock() - begin
    assert result.met
    work = getattr(result.strategy, "work", {})  # of the planner
    return {
        "pairs": result.pairs,
        "steps": result.steps,
        "attempts": result.attempts,
        "seconds": seconds,
        "peak": peak_memory(),
        "rows": int(work["rows"]) if "rows" in work else None,
        "leavings": int(work["leavings"]) if "leavings" in work else None,
    }


def line(n, setting):
    """A line of the table, and whether the run came to an end."""
    head = (setting, n, f"{n * n:,}", f"{4 * n * n:,}")
    target = TARGETS[setting] if n == TARGET_SIZE else "-"
    try:
        run = in_child("growth", f"collect({n}, {setting!r})", timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return cells(*head, "-", target, "-", f"> {LIMIT}", *"----"), False
    except subprocess.CalledProcessError:  # it has said why
        return cells(*head, "failed", target, *"------"), False
    a_step = 1e6 * run["seconds"] / run["steps"]
    touched = "-" if run["rows"] is None else f"{run['rows'] / run['attempts']:,.0f}"
    leavings = "-" if run["leavings"] is None else f"{run['leavings']:,}"
    rest = (f"{run['attempts']:,}", f"{run['seconds']:.1f}", f"{a_step:.0f}", f"{run['peak'] / 1e6:.0f}")
    return cells(*head, f"{run['steps'] / run['pairs']:.2f}", target, *rest, touched, leavings), True


if __name__ == "__main__":
    flags = options(__doc__, large="n = 1000 too")
    sizes = (4,) if flags.quick else (*SIZES, 1000) if flags.large else SIZES
    columns = ("setting", "n", "states", "pairs", "steps a pair", "target", "attempts", "s", "us a step", "peak (MB)")
    lines = [
        "# Collecting on growing gridworlds",
        "",
        "Open n x n grid, 1 sample of every pair. Settings: known dynamics; kl sets with the successors given; "
        f"kl sets x{SMALL:g} without. Target at n = {TARGET_SIZE} besides steps a pair: 120 s, 600 MB.",
        "",
        *header(*columns, "rows touched an attempt", "leavings"),
    ]
    for setting in SETTINGS:
        line(3, setting)  # a process that compiles takes more memory; the next ones find its code on disk
        for n in sizes:
            text, finished = line(n, setting)
            lines.append(text)
            print(text, flush=True)
            if not finished:
                break
    write("growth", lines, quick=flags.quick)
