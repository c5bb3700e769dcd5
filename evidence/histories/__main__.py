"""Histories of runs: what users do with runs, one thing after the other, in any order.

    python -m evidence.histories [--histories 2000]        writes evidence/results/histories.md
    python -m evidence.histories --without NAME            puts a defect back, and tries until it is found
    python -m evidence.histories --seed N                  tries again what was drawn with this seed, and shortens it

A history is up to 8 calls: begin a run (nine kinds of systems; one walker, threads, or a simulated fleet whose walkers
are lost by what they would have said), with the data of others; go on with it, with a larger need or other walkers;
meanwhile a kill, Ctrl-C, an error of the system, or another name of the directory; copy it, rename it, damage it,
export and import it, ask a question. `evidence/histories/invariants.py` has what must hold after each call.
"""

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from evidence.histories.defects import DEFECTS
from evidence.histories.trials import AT_ONCE, MOST, Tried, honest, tried, without
from evidence.runs import Finished

RESULT = Path(__file__).parents[1] / "results" / "histories.md"
SOURCES = Path(__file__).parent


def key_of(*job):
    """What names a job in the store: with the sources of these histories, and of what they use."""
    import hashlib

    own = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(SOURCES.glob("*.py")))).hexdigest()[:16]
    return " ".join(["histories", own, *map(str, job)])


def all_done(function, jobs):
    """The answers of a function, in the order of the jobs; finished ones are kept."""
    with Finished() as finished:
        keys = {job: key_of(function.__name__, job) for job in jobs}
        left = [job for job in jobs if keys[job] not in finished.answers]
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            for job, answer in zip(left, pool.map(function, left), strict=True):
                finished.add(keys[job], answer)
        return [finished.answers[keys[job]] for job in jobs]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=2000)
    parser.add_argument("--without", choices=DEFECTS, metavar="NAME", help="; ".join(DEFECTS))
    parser.add_argument("--seed", type=int)
    given, begin = parser.parse_args(), time.perf_counter()
    if given.without:
        number, how = without(given.without)
        print(f"found in history {number}: {how}" if number else f"not found in {MOST} histories")
        return int(number is None)
    if given.seed is not None:
        print(tried(given.seed, AT_ONCE, shrink=True).failure)
        return 0
    done = [Tried(*answer) for answer in all_done(honest, range(-(-given.histories // AT_ONCE)))]
    found = all_done(without, list(DEFECTS))
    failures = [one.failure for one in done if one.failure]
    rules = sum((Counter(one.rules) for one in done), Counter())
    lines = ["# Histories of runs", "", f"`python -m evidence.histories --histories {given.histories}`", ""]
    lines += [
        f"{sum(one.histories for one in done):,} histories, {rules.total():,} calls, {len(failures)} failures.",
        "",
    ]
    lines += [
        "| call | times |",
        "|---|---|",
        *(f"| {name} | {times:,} |" for name, times in sorted(rules.items())),
        "",
    ]
    lines += ["Defects that were put back, one at a time, and the number of histories until one failed:", ""]
    lines += ["| defect | histories | how it showed |", "|---|---|---|"]
    lines += [
        f"| {name} | {number or 'not found'} | {short(how)} |"
        for name, (number, how) in zip(DEFECTS, found, strict=True)
    ]
    lines += ["", f"{time.perf_counter() - begin:.0f} s."]
    RESULT.write_text("\n".join(lines) + "\n")
    print("\n".join([*failures, *lines]))
    return int(bool(failures) or any(number is None for number, _ in found))


def short(text):
    return text.replace("|", "/").partition("\n")[0][:120]


if __name__ == "__main__":
    sys.exit(main())
