"""Killed runs: random `kill -9`, power cuts, signals, full disks, failing writes; nothing acknowledged is ever lost.

    python -m evidence.kills [--kills 1000]              writes evidence/results/kills.md
    python -m evidence.kills --only NAME [--times 10]    only one line of the tables, which is not written

A run is killed again and again, at moments that a seed decides, and resumed until it ends (`evidence/lives.py`). After
each life the log is read by code apart from the package (`evidence/reading.py`), and

- everything that was acknowledged is there, and nothing that was there before has changed;
- what a system's own journal says it did in this life begins with exactly what the log says: nothing is invented,
  duplicated, or out of order;
- in the end, a table, and a system that tells its state, have the same log and the same result as never interrupted.

Runs that are done are kept in `--state FILE`, so that the evidence can be interrupted and continued.
"""

import argparse
import itertools
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

from evidence.disks import FAULTS
from evidence.killed import KINDS, RENEWAL
from evidence.lives import End, live
from evidence.reading import chained, journal_of, steps_of
from gosprl.collecting import collector as collecting
from gosprl.runs import verify
from gosprl.runs.reading import read_log

RESULT = Path(__file__).parent / "results" / "kills.md"
MOST_LIVES = 12
HOWS = ("time", "call", "power")
SEEDS = 2  # of the runs of a kind; where and when they are killed differs


def summary(answer):
    """All that an answer says, as JSON."""
    result = getattr(answer, "collected", answer)
    said = {name: getattr(result, name) for name in ("steps", "attempts", "resets", "stop", "met", "work", "crashes")}
    said |= {"counts": result.counts.tolist(), "unmet": result.unmet.tolist(), "guarantee": str(result.guarantee)}
    if answer is not result:
        said |= {"eta": np.nan_to_num(answer.eta, nan=-1).tolist()}
    return json.loads(json.dumps(said, default=float))


@cache
def uninterrupted(name, seed):
    """(answer, columns of the log, certificate, seconds, calls of the disk) of a run that nothing interrupts."""
    kind = KINDS[name]
    with tempfile.TemporaryDirectory() as folder:
        path, journal, sync = Path(folder) / "run", Path(folder) / "journal", sync_of(kind.typical, random.Random(0))
        kind.go(
            Path(folder) / "first", journal, seed, sync=sync
        )  # compiles, so that processes forked from this one need not
        begin = time.perf_counter()
        life = live(lambda: summary(kind.go(path, journal, seed, sync=sync)), End("none"))
        seconds = time.perf_counter() - begin
        if life.ended != "finished":
            raise RuntimeError(f"{name}: {life.error}")
        certificate = json.loads((path / "certificate.json").read_text())
        return life.answer, chained(path)[0], certificate, seconds, life.calls


def sync_of(steps, draw):
    """(steps, seconds) between two syncs, such that a run has some, or many."""
    return max(1, int(steps / draw.choice((4, 20, 100)))), draw.choice((0.01, 0.05, 1.0))


def killed(job):
    """Kill a run until it ends: (kind, kills by how they were made, lives, steps, problems)."""
    name, number = job
    draw, kind = random.Random(f"{name} {number}"), KINDS[name]
    seed, kills, problems = number % SEEDS, Counter(), []
    expected = uninterrupted(name, seed)
    most = draw.randint(1, MOST_LIVES)
    with tempfile.TemporaryDirectory() as folder:
        path, before, life, anew = Path(folder) / "run", None, None, False
        for number_of_life in range(most + 1):
            journal = Path(folder) / str(number_of_life) / "journal"
            journal.parent.mkdir()
            end = end_of(draw, expected) if number_of_life < most else End("none")
            could_restore = (path / "checkpoint" / "system.json").exists()
            way, sync = draw.choice(("collect", "resume")), sync_of(kind.typical, draw)
            life = live(lambda j=journal, w=way, s=sync: summary(kind.go(path, j, seed, w, s)), end)
            kills[end.how] += life.ended == "killed"
            if life.ended in ("failed", "hangs"):
                problems.append(f"life {number_of_life} ({end}, {way}, {sync}) {life.ended}: {life.error}")
                break
            before, found = wrong_after(kind, path, journal, life, before)
            if could_restore and begun_anew(path) and not anew:
                found.append("the state of the system was saved, and not used")
            anew = (path / "manifest.json").exists() and begun_anew(path)
            problems += [f"life {number_of_life} ({end}, {way}, {sync}): {what}" for what in found]
            if life.ended == "finished" or problems:
                break
        if not problems:
            problems += wrong_in_the_end(kind, path, life.answer, expected)
        steps = 0 if before is None else int(np.count_nonzero(before["flags"] & 1 == 0))
    return name, dict(kills), number_of_life + 1, steps, problems


def end_of(draw, expected):
    """A random end of a life: within the run, near its beginning, or near its end."""
    *_, seconds, calls = expected
    how, where = draw.choice(HOWS), draw.choice(("before", "after"))
    if how == "time":
        return End(how, draw.choice((0.05, 0.3, 1.1)) * seconds * draw.random())
    when = draw.choice((draw.randint(1, min(30, calls)), draw.randint(1, calls), max(1, calls - draw.randint(0, 25))))
    return End(how, when, where, draw.randrange(2**31))


def wrong_after(kind, path, journal, life, before):
    """(columns of the log, what is wrong) after a life."""
    problems = []
    if not (path / "manifest.json").exists():
        return before, ["acknowledged rows, and no manifest"] if life.acknowledged else []
    manifest = json.loads((path / "manifest.json").read_text())
    problems += [f"damaged: {problem}" for problem in read_log(path, manifest["run"]).problems]
    columns, observations, actions = chained(path)
    rows, known = len(columns["flags"]), 0 if before is None else len(before["flags"])
    if rows < life.acknowledged:
        problems.append(f"{life.acknowledged} rows were acknowledged, {rows} are there")
    if before is not None:
        problems += [f"{name} changed" for name in columns if not np.array_equal(columns[name][:known], before[name])]
    if kind.journal is not None:
        problems += wrong_in_journal(kind, {n: c[known:] for n, c in columns.items()}, observations, actions, journal)
    return columns, problems


def wrong_in_journal(kind, columns, observations, actions, journal, patience=300):
    """What the log has of this life has to be what the system's journal begins with."""
    made = steps_of(columns, observations, actions, kind.journal)
    end = time.monotonic() + patience
    while True:  # a program in another language may need a moment to end
        told = journal_of(journal)
        if told[: len(made)] == made:
            return []
        if time.monotonic() > end:
            i = next(i for i, step in enumerate(made) if i >= len(told) or step != told[i])
            return [f"step {i} of this life is {made[i]} in the log, {told[i : i + 1]} in the journal"]
        time.sleep(0.05)


def wrong_in_the_end(kind, path, answer, expected):
    """What is wrong with a run that has ended."""
    columns, certificate = chained(path)[0], path / "certificate.json"
    steps = int(np.count_nonzero(columns["flags"] & 1 == 0))
    if not certificate.exists():
        yield "no certificate"
        return
    certified = json.loads(certificate.read_text())
    if not answer["met"] or steps != answer["steps"] or certified["steps"] != steps:
        yield f"{steps} steps in the log, {answer['steps']} in the answer, {certified['steps']} in the certificate"
    had = certified.get("data", {"samples": 0})["samples"]
    if sum(map(sum, certified["counts"])) != steps + had or certified["counts"] != answer["counts"]:
        yield "the counts are not those of the log and of the data"
    if kind.exact and not begun_anew(path):
        before, log, certificate_before, *_ = expected
        yield from (f"{name} is not as if uninterrupted" for name in before if before[name] != answer[name])
        yield from (f"{name} differs from the uninterrupted log" for name in log if differ(log[name], columns[name]))
        names = set(certificate_before) - {"log", "digest"}
        yield from (f"certificate: {name}" for name in names if certificate_before[name] != certified[name])
    yield from not_verified(kind, path)


def begun_anew(path):
    """Whether the manifest says that a life could not go on exactly where the one before was."""
    continued = json.loads((path / "manifest.json").read_text())["continued"]
    return any(entry["how"] in ("new trajectory", "at an ending") for entry in continued)


def differ(a, b):
    return not np.array_equal(a, b)


def not_verified(kind, path):
    """What `gosprl verify` says against a run."""
    collecting.RENEWAL = kind.renewal or RENEWAL
    checked = verify(path, **kind.functions)
    if not checked.ok:
        yield f"gosprl verify: {checked}"


def jobs(kinds):
    """Runs to kill, one kind after the other."""
    return ((name, number) for number in itertools.count() for name in kinds)


def all_killed(kills, kinds, state, workers):
    """The outcomes of as many runs as it takes for so many kills; those in the file `state` are not made again."""
    done = [json.loads(line) for line in state.read_text().splitlines()] if state.exists() else []
    todo = itertools.islice(jobs(kinds), len(done), None)
    total = kills_in(done)
    with ProcessPoolExecutor(workers) as pool:
        while kinds and total < kills:
            for outcome in pool.map(killed, itertools.islice(todo, workers * len(kinds))):
                done.append(outcome)
                with state.open("a") as file:
                    file.write(json.dumps(outcome) + "\n")
                for problem in outcome[4]:
                    print(f"{outcome[0]}: {problem}", flush=True)
            total = kills_in(done)
            print(f"{total} kills", flush=True)
    return done


def kills_in(done):
    """Number of kills in outcomes."""
    return sum(sum(outcome[1].values()) for outcome in done)


def table(done):
    """The lines of the table of kills."""
    lines = ["| run | runs | kill -9 at a moment | at a call | with a power cut | steps kept | problems |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for name in KINDS:
        own = [outcome for outcome in done if outcome[0] == name]
        kills = sum((Counter(outcome[1]) for outcome in own), Counter())
        steps, problems = sum(outcome[3] for outcome in own), sum(len(outcome[4]) for outcome in own)
        each = " | ".join(f"{kills[how]:,}" for how in HOWS)
        lines.append(f"| {name} | {len(own)} | {each} | {steps:,} | {problems} |")
    return lines


def faults(names, times):
    """The lines of the table of everything else, and the problems."""
    lines, problems = ["| what else happens | times | problems |", "|---|---|---|"], []
    for name in names:
        function, usual = FAULTS[name]
        done, found = function(times or usual)
        lines.append(f"| {name} | {done} | {len(found)} |")
        problems += [f"{name}: {problem}" for problem in found]
    return lines, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--state", type=Path, default=Path(tempfile.gettempdir()) / "gosprl-kills.jsonl")
    parser.add_argument("--fresh", action="store_true", help="forget what was done before")
    parser.add_argument("--only", choices=[*KINDS, *FAULTS], help="only this line of the tables")
    parser.add_argument("--times", type=int, help="how often anything else happens")
    given, begin = parser.parse_args(), time.perf_counter()
    if given.fresh:
        given.state.unlink(missing_ok=True)
    kinds, others = ([name for name in names if given.only in (None, name)] for names in (KINDS, FAULTS))
    done = all_killed(given.kills, kinds, given.state, 1 if given.only else os.cpu_count())
    lines = ["# Killed runs", "", f"`python -m evidence.kills --kills {given.kills}`", "", *table(done), ""]
    more, found = faults(others, given.times)
    print("\n".join(found), flush=True)
    problems = len(found) + sum(len(outcome[4]) for outcome in done)
    took = f"{time.perf_counter() - begin:.0f} s"
    lines += [*more, "", f"{problems} problems after {kills_in(done):,} kills; {took}."]
    if not given.only:
        RESULT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
