"""What a run on disk costs: collecting with `out=` beside the same without, encoding, reading back, resuming.

    python benchmarks/keeping.py              writes benchmarks/results/keeping.md
    python benchmarks/keeping.py --profile    also prints where the time of short runs goes

Wall time, since a thread of its own writes. Runs with and without a log take turns, and the medians of their times are
compared. "Not synced" replaces fsync by nothing: the difference is the disk's. `TMPDIR` decides which disk that is.
"Calls alone" are the system calls of a run of one batch, with files of similar sizes and the same syncs, after a run
without a log. Nothing is encoded, described or checked: a run with these files and syncs cannot take less.
"""

import cProfile
import os
import pstats
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
from report import cells, header, options, write

import gosprl
from gosprl.envs import make
from gosprl.runs.files import disk
from gosprl.runs.opened import OpenRun
from gosprl.runs.reading import read_log
from gosprl.runs.writing import LogWriter

DOMAINS = ("corridor24", "four_room43", "cliff48")
TARGETS = {10: 5, 1000: 20}  # per cent above a run without a log, by need
MOST_BYTES = 3
SYNC_STEPS = 100_000
ENDLESS = 10**9  # a need that is never met


@contextmanager
def folder():
    """A directory that does not exist yet, removed afterwards."""
    with tempfile.TemporaryDirectory() as parent:
        yield Path(parent) / "run"


@contextmanager
def without_sync():
    """Nothing waits for the disk."""
    disk.fsync = lambda fd: None
    try:
        yield
    finally:
        del disk.fsync


def seconds(function, *args, **kwargs):
    """(wall time of a call, its answer)."""
    begin = time.perf_counter()
    answer = function(*args, **kwargs)
    return time.perf_counter() - begin, answer


def size(path):
    """Bytes of all files of a log."""
    return sum(file.stat().st_size for file in path.glob("log/*"))


def kept(mdp, need, seed):
    """(seconds, bytes of the log) of a run on disk."""
    with folder() as path:
        took, _ = seconds(gosprl.collect, mdp, need, seed=seed, out=path)
        return took, size(path)


def calls_alone(data):
    """Seconds of the calls that a run of one batch makes; `data` is how many bytes its batch has."""
    with folder() as path:
        return seconds(make_calls, os.fspath(path), data)[0]


def make_calls(run, data):
    """Make and sync the files of a run, as `gosprl.runs` does."""
    os.mkdir(run)
    lock = os.open(f"{run}/lock", os.O_RDWR | os.O_CREAT)
    for directory in ("log", "checkpoint"):
        os.mkdir(f"{run}/{directory}")
    replace_file(f"{run}/manifest.json", 1200)
    sync_names(run)
    chain, segment = (append_to(f"{run}/log/{file}") for file in ("chain", "000001.arrow"))
    os.write(segment, bytes(data))
    os.fsync(segment)
    sync_names(f"{run}/log")
    sync_names(os.path.dirname(run))
    os.write(chain, bytes(2 * 138))
    os.fsync(chain)
    replace_file(f"{run}/certificate.json", 1800)
    for fd in (chain, segment, lock):
        os.close(fd)


def append_to(path):
    """The descriptor of a new file."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def replace_file(path, size):
    """Write a file beside its name, sync it and rename it."""
    fd = os.open(f"{path}.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(fd, bytes(size))
    os.fsync(fd)
    os.close(fd)
    os.rename(f"{path}.tmp", path)


def sync_names(directory):
    """Sync a directory."""
    fd = os.open(directory, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def overhead(name, need, rounds):
    """Steps, times [rounds, without a log, not synced, synced], seconds of calls alone, bytes a step.

    Seeds change from round to round.
    """
    mdp, times, steps, bytes_written, calls = make(name), [], [], [], []
    for seed in range(-2 if rounds > 1 else 0, rounds):  # the first two warm up, if times matter
        plain, result = seconds(gosprl.collect, mdp, need, seed=max(seed, 0))
        alone = calls_alone(3 * result.steps // 2)
        with without_sync():
            unsynced, written = kept(mdp, need, max(seed, 0))
        synced, _ = kept(mdp, need, max(seed, 0))
        if seed >= 0:
            times.append((plain, unsynced, synced))
            calls.append(alone)
            steps.append(result.steps)
            bytes_written.append(written)
    return np.median(steps), np.array(times), np.median(calls), sum(bytes_written) / sum(steps)


def overheads(rounds):
    """The table of runs with and without a log, and the verdicts."""
    names = ("no log, ms", "log, not synced, ms", "log, ms", "calls alone, ms", "bytes a step")
    lines = header("domain", "need", "steps", *names)
    verdicts = []
    for name in DOMAINS:
        for need, target in TARGETS.items():
            steps, times, alone, written = overhead(name, need, max(1, rounds // (1 if need == 10 else 4)))
            plain, unsynced, synced = 1e3 * np.median(times, axis=0)
            more = 100 * (np.median(times / times[:, :1], axis=0) - 1)  # of each round, since seeds differ
            each = (f"{value:.1f} (+{part:.0f} %)" for value, part in ((unsynced, more[1]), (synced, more[2])))
            least = f"{1e3 * alone:.1f} (+{1e5 * alone / plain:.0f} %)" if need == 10 else ""  # others write in between
            lines.append(cells(name, f"{need:,}", f"{steps:,.0f}", f"{plain:.1f}", *each, least, f"{written:.2f}"))
            verdicts += [f"{name}, need {need}: {more[2]:.0f} %, target {target}"] if more[2] > target else []
            verdicts += [f"{name}, need {need}: {written:.2f} bytes"] if need == 1000 and written > MOST_BYTES else []
    missed = "; ".join(verdicts)
    return [*lines, "", f"Targets: {f'MISSED ({missed})' if missed else 'met'}."]


def columns_of(steps):
    """The log of a run on four_room43, as columns."""
    with folder() as path:
        gosprl.collect(make("four_room43"), ENDLESS, seed=0, max_steps=steps, out=path)
        batches = list(OpenRun.read(path).contents.batches())
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def encoding(steps, sync_steps):
    """Microseconds a transition of writing a log alone, with a sync after every `sync_steps`."""
    columns = columns_of(steps)
    took = {}
    for name, context in (("synced", nullcontext()), ("not synced", without_sync())):
        with context, folder() as path:
            path.mkdir()
            writer = LogWriter(path, "benchmark")
            begin = time.perf_counter()
            for start in range(0, steps, sync_steps):
                writer.append({field: column[start : start + sync_steps] for field, column in columns.items()})
                writer.sync()
            writer.close()
            took[name] = 1e6 * (time.perf_counter() - begin) / steps
    return took


def reading(steps):
    """Seconds to write a run of so many steps, to verify it, to decode it, and to resume it; bytes of its log."""
    mdp = make("four_room43")
    with folder() as path:
        written, _ = seconds(gosprl.collect, mdp, ENDLESS, seed=0, max_steps=steps, out=path)
        run_id = OpenRun.read(path).manifest["run"]
        verified, contents = seconds(read_log, path, run_id)
        decoded, rows = seconds(lambda: sum(len(batch["flags"]) for batch in contents.batches()))
        assert rows == contents.rows == steps + 1  # and the reset with which it began
        resumed, result = seconds(gosprl.resume, path, max_steps=steps + 1)
        assert result.steps == steps + 1
        for file in (path / "checkpoint").glob("*.json"):
            file.unlink()
        replayed, result = seconds(gosprl.resume, path, max_steps=steps + 2)
        assert result.steps == steps + 2
        return written, verified, decoded, resumed, replayed, size(path)


def profiled(name, need, sync):
    """Print which functions of the walking thread take the time of a run on disk."""
    mdp = make(name)
    kept(mdp, need, 0)
    profile = cProfile.Profile()
    for seed in range(20):
        with folder() as path:
            profile.runcall(gosprl.collect, mdp, need, seed=seed, out=path)
    print(f"{name}, need {need}, {'synced' if sync else 'not synced'}, 20 runs")
    pstats.Stats(profile).sort_stats("cumulative").print_stats("gosprl/runs|acquire|fsync|json", 25)


def main(quick, profile):
    """Write the tables."""
    rounds, steps, many = (1, 2000, (1000, 2000)) if quick else (40, 10**6, (10**6, 10**7))
    lines = ["# Runs on disk", "", "`gosprl.collect(..., out=)` beside the same without, medians, in turns:", ""]
    lines += overheads(rounds)
    took = encoding(steps, min(SYNC_STEPS, steps // 2))
    lines += ["", f"Encoding alone, {steps:,} transitions of four_room43, a sync every {SYNC_STEPS:,}: "]
    lines += [", ".join(f"{value:.3f} us a transition {name}" for name, value in took.items()) + ".", ""]
    names = ("write", "verify", "decode", "resume", "resume without checkpoints", "MB")
    lines += header("transitions of four_room43", *(f"{name}, s" if name != "MB" else name for name in names))
    for steps in many:
        *times, written = reading(steps)
        lines.append(cells(f"{steps:,}", *(f"{value:.2f}" for value in times), f"{written / 1e6:.1f}"))
    write("keeping", lines, quick=quick, packages=("pyarrow",), times="Wall times")
    if profile:
        with without_sync():
            profiled("corridor24", 10, sync=False)
        profiled("corridor24", 10, sync=True)


if __name__ == "__main__":
    given = options(__doc__, profile="print where the time of short runs goes")
    main(given.quick, given.profile)
