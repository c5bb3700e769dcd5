"""Damaged runs: flipped bits, files cut off, and files made by a stranger.

    python -m evidence.flips [--flips 10000] [--mutations 100000]      writes evidence/results/flips.md

Flips. In a copy of a run, one bit of one file is flipped, or a file is cut off. Then the run is resumed, and the result
is compared with that of the undamaged run. Allowed is:

- reported: the run is refused with an error that names the file, and of log files the batch; not a byte was written;
- no effect: the resumed run has the same log and the same result, bit for bit (a checkpoint, a lock);
- shorter: what was cut off is the end of the chain, which looks like a crash before the rest was acknowledged; all that
  is left is a beginning of what was there. Only runs without a certificate: with one, it has to be reported.

Mutations (`evidence/mutations.py`). Whole files are changed and sealed again with the right digests, so that only the
decoders stand between them and the process.
"""

import argparse
import atexit
import dataclasses
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

import gosprl
from evidence.killed import KINDS, Kind
from evidence.lives import End, live
from evidence.reading import chained
from gosprl.errors import GosprlError
from gosprl.runs import journal
from gosprl.runs.files import Damaged, read_json

RESULT = Path(__file__).parent / "results" / "flips.md"
SHM = Path("/dev/shm")
SYNC = (40, 10.0)
CHUNK = 250


def _small(name, need, renewal=60):
    return dataclasses.replace(KINDS[name], need=need, renewal=renewal)


RUNS = {  # name -> (kind, at which call of the disk it is killed; 0: not at all)
    "table, finished": (Kind(lambda _: gosprl.envs.make("riverswim6"), 8, exact=True, renewal=60), 0),
    "table, killed": (Kind(lambda _: gosprl.envs.make("riverswim6"), 12, exact=True, renewal=60), 40),
    "table, with data": (_small("table, with data", 12), 40),
    "Gymnasium, finished": (_small("Gymnasium", 2), 0),
    "Gymnasium, killed": (_small("Gymnasium", 3), 40),
    "growing, finished": (_small("growing", 1), 0),
    "growing, killed": (_small("growing", 2), 40),
    "own, with its state": (_small("own, with its state", 6), 40),
}


@cache
def root():
    """A directory for copies, in memory if possible; the process that first asked for it removes it in the end."""
    folder = tempfile.TemporaryDirectory(dir=SHM if SHM.is_dir() else None, prefix="gosprl-flips-")
    atexit.register(folder.cleanup)  # not in workers, which are forked and end without
    return Path(folder.name)


@cache
def original(name):
    """A run to damage, in a directory that stays until the process ends, and its files."""
    kind, call = RUNS[name]
    folder = Path(tempfile.mkdtemp(dir=root()))
    go(kind, folder / "first")  # compiles
    shutil.rmtree(folder / "first")
    life = live(lambda: _written_at_once(kind, folder / "run"), End("call", call, "after") if call else End("none"))
    if life.ended != ("killed" if call else "finished"):
        raise RuntimeError(f"{name}: {life}")
    return folder


def _written_at_once(kind, path):
    """Begin a run that waits for each sync: the number of its calls of the disk does not depend on how fast that is."""
    journal.BACKLOG = 0  # of this process only
    return go(kind, path)


@cache
def undamaged(name):
    """(digest of what a resumed run did, columns of the log before) without damage."""
    folder = original(name)
    shutil.copytree(folder / "run", folder / "copy")
    before = chained(folder / "copy")[0]
    outcome = resumed(RUNS[name][0], folder / "copy")
    shutil.rmtree(folder / "copy")
    return outcome, before


def go(kind, path):
    """Begin a run or go on with it; what it says in the end, as JSON."""
    from evidence.kills import summary

    journal = path.parent / "journal"
    journal.unlink(missing_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return summary(kind.go(path, journal, 0, "resume", SYNC))


def resumed(kind, path):
    """Everything that a resumed run is in the end, as a digest."""
    answer = go(kind, path)
    digest = hashlib.sha256(json.dumps(answer, sort_keys=True).encode())
    for column in chained(path)[0].values():
        digest.update(column.tobytes())
    return digest.hexdigest()


def contents(path):
    """The bytes of all files of a run; not the lock, which has the number of its last owner."""
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != "lock")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def flipped(job):
    """Damage a run in one way after the other: Counter of what happened, and problems."""
    name, begin, end = job
    folder, (expected, before) = original(name), undamaged(name)
    source, path, kind = folder / "run", folder / "damaged", RUNS[name][0]
    files, done, problems = contents(source), Counter(), []
    for number in range(begin, end):
        draw = random.Random(f"{name} {number}")
        file = draw.choice(sorted(files))
        data, what = damaged(files[file], draw)
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(source, path)
        (path / file).write_bytes(data)
        try:
            verdict = judged(kind, path, file, expected, before)
        except Exception as error:  # whatever else happens is a problem
            verdict = f"{type(error).__name__}: {error}"
        if verdict in ("reported", "no effect", "shorter"):
            done[verdict] += 1
        else:
            problems.append(f"{name}, case {number}, {file}, {what}: {verdict}")
    return name, dict(done), problems


def damaged(data, draw):
    """Bytes with a bit flipped, or cut off, and which."""
    if draw.random() < 0.2 and data:
        length = draw.randrange(len(data))
        return data[:length], f"cut off after {length} of {len(data)} bytes"
    place, bit = draw.randrange(max(len(data), 1)), draw.randrange(8)
    out = bytearray(data or b"\0")
    out[place] ^= 1 << bit
    return bytes(out), f"bit {bit} of byte {place} of {len(data)}"


def judged(kind, path, file, expected, before):
    """ "reported", "no effect" or "shorter", or what is wrong."""
    there = contents(path)
    try:
        outcome = resumed(kind, path)
    except GosprlError as error:
        if contents(path) != there:
            return f"refused ({error}), and something was written"
        named = file in str(error) and (not file.startswith(("log/", "states")) or "batch" in str(error))
        return "reported" if named else f"refused without naming it: {error}"
    if file == "certificate.json" and reads(path.parent / "given", there[file]):
        return "a changed certificate is read"
    if outcome == expected:
        return "no effect"
    if file != "log/chain" or "certificate.json" in there:
        return "another result"
    return shorter(chained(path)[0], before)


def reads(path, data):
    """Whether a file with these bytes is accepted."""
    path.write_bytes(data)
    try:
        read_json(path)
    except Damaged:
        return False
    return True


def shorter(columns, before):
    """Whether a run began as the original one, up to some event."""
    length = min(len(columns["flags"]), len(before["flags"]))
    same = np.ones(length, dtype=bool)
    for name, column in before.items():
        same &= column[:length] == columns[name][:length]
    return "shorter" if same[0] else "another result"


def jobs(cases, names, chunk):
    """(run, first case, end of the cases) for each piece of work."""
    root()  # before workers are forked
    each = -(-cases // len(names))
    return [(name, begin, min(begin + chunk, each)) for name in names for begin in range(0, each, chunk)]


def all_flipped(flips, names, workers):
    """The outcomes of so many flips, spread over these runs."""
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(flipped, jobs(flips, names, CHUNK)))


def flip_table(done):
    """The lines of the table of flips."""
    lines = ["| run | damaged | reported | no effect | shorter | problems |", "|---|---|---|---|---|---|"]
    for name in RUNS:
        own = [outcome for outcome in done if outcome[0] == name]
        seen, problems = sum((Counter(o[1]) for o in own), Counter()), sum(len(o[2]) for o in own)
        each = " | ".join(f"{seen[verdict]:,}" for verdict in ("reported", "no effect", "shorter"))
        lines.append(f"| {name} | {seen.total() + problems:,} | {each} | {problems} |")
    return lines


def main():
    from evidence.mutations import all_mutated, mutation_table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--only", choices=RUNS, help="only this run; nothing is written")
    given, begin = parser.parse_args(), time.perf_counter()
    names, workers = ([given.only], 1) if given.only else (list(RUNS), os.cpu_count())
    flips = all_flipped(given.flips, names, workers)
    mutations = all_mutated(given.mutations, names, workers)
    found = [problem for outcome in (*flips, *mutations) for problem in outcome[2]]
    print("\n".join(found[:200]))
    lines = ["# Damaged runs", ""]
    lines += [f"`python -m evidence.flips --flips {given.flips} --mutations {given.mutations}`", ""]
    lines += [*flip_table(flips), "", *mutation_table(mutations), ""]
    lines += [f"{len(found)} problems; {time.perf_counter() - begin:.0f} s."]
    if not given.only:
        RESULT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
