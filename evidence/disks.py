"""What else may happen to a run: signals, full disks, failing calls, a second process, a directory that is no run.

Each function makes something happen a number of times, and returns (times, problems in words). After each, what was
acknowledged is there; resumed, the run has the result of one that nothing happened to.
"""

import contextlib
import errno
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import gosprl
from evidence.killed import KINDS
from evidence.lives import End, live
from evidence.reading import chained
from gosprl.runs.files import disk, write_json
from gosprl.runs.manifests import FORMAT
from gosprl.runs.reading import read_log

TABLE, LAKE = "table, often renewed", "Gymnasium"
OURS = ("gosprl.errors.", "gosprl.runs.files.Damaged")
SYNC = (300, 0.01)


def digests(directory):
    """The digest of each file below a directory, but the lock, which has the number of who took it last."""
    files = sorted(path for path in Path(directory).rglob("*") if path.is_file() and path.name != "lock")
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def steps_in(path):
    """Steps in the log of a run, which has to be undamaged."""
    problems = read_log(path, json.loads((path / "manifest.json").read_text())["run"]).problems
    if problems:
        raise ValueError(f"damaged: {problems}")
    return int(np.count_nonzero(chained(path)[0]["flags"] & 1 == 0))


class Trial:
    """A run of a table in a new directory, and what goes wrong with it."""

    def __init__(self, summary, expected, folder, name=TABLE):
        self._summary, self._expected, self.path = summary, expected, Path(folder) / "run"
        self._journal, self._kind = Path(folder) / "journal", KINDS[name]
        self.problems = []

    def go(self, end=End("none"), before=lambda: None, way="collect"):  # noqa: B008 - immutable
        """Let a process begin the run or go on with it, after calling `before` there."""

        def work():
            before()
            return self._summary(self._kind.go(self.path, self._journal, 0, way, SYNC))

        self.life = live(work, end)
        if self.life.ended == "hangs":
            self.problems.append("hangs")
        if self.life.error and not self.last_line.startswith(OURS):
            self.problems.append(f"ends with {self.life.error}")
        if self.life.acknowledged and steps_in(self.path) + 1 < self.life.acknowledged:
            self.problems.append(
                f"{self.life.acknowledged} rows were acknowledged, {steps_in(self.path)} steps are there"
            )
        return self.life

    @property
    def last_line(self):
        return next((line for line in reversed(self.life.error.splitlines()) if line.startswith("gosprl.")), "")

    def resumed(self):
        """Go on to the end: the problems, which are none if the result is that of a run without trouble."""
        if self.problems:
            return self.problems
        life = self.go(way=random.Random(0).choice(("collect", "resume")))
        if life.ended != "finished":
            return [*self.problems, f"cannot be resumed: {life.error[-2000:]}"]
        expected, log = self._expected[:2]
        wrong = [
            f"{name} is not as if nothing had happened" for name in expected if expected[name] != life.answer[name]
        ]
        columns = chained(self.path)[0]
        return (
            self.problems + wrong + [f"{name} differs" for name in log if not np.array_equal(log[name], columns[name])]
        )


@contextlib.contextmanager
def trial():
    """A new `Trial`."""
    from evidence.kills import summary, uninterrupted

    expected = uninterrupted(TABLE, 0)
    with tempfile.TemporaryDirectory() as folder:
        yield Trial(summary, expected, folder)


def seconds_of_a_run():
    """Wall time of a run without trouble."""
    from evidence.kills import uninterrupted

    return uninterrupted(TABLE, 0)[3]


def signals(name, times):
    """SIGTERM, or Ctrl-C: which loses nothing at all."""
    problems, draw = [], random.Random(name)
    for _ in range(times):
        with trial() as run:
            life = run.go(End("time", draw.uniform(0, 1.2) * seconds_of_a_run(), name))
            if name == "Ctrl-C" and "KeyboardInterrupt" in life.error:  # before the walk began
                run.problems = []
            elif name == "Ctrl-C" and (life.ended != "finished" or life.answer["steps"] != steps_in(run.path)):
                run.problems.append(f"{life.ended}: {life.answer and life.answer['steps']} steps, {life.error}")
            problems += run.resumed()
    return times, problems


def failing(name, number, error):
    """A call of the disk that fails from its n-th time on, or only then."""

    def install():
        call, count = getattr(disk, name), 0

        def fails(*args, **at):
            nonlocal count
            count += 1
            if count >= number:
                raise OSError(error, os.strerror(error))
            return call(*args, **at)

        setattr(disk, name, fails)

    return install


def errors(times):
    """Every kind of call fails, at any moment."""
    problems, draw = [], random.Random(1)
    for i in range(times):
        name = ("write", "fsync", "replace", "open", "truncate")[i % 5]
        error = draw.choice((errno.EIO, errno.ENOSPC, errno.EDQUOT))
        with trial() as run:
            if name == "truncate":  # happens when a run is resumed
                run.go(End("call", draw.randint(20, 60), "after"))
            life = run.go(before=failing(name, draw.randint(1, 40), error))
            if life.ended == "finished" and life.answer["steps"] != steps_in(run.path):
                run.problems.append("finished, and not everything is on disk")
            problems += [f"{name}, {os.strerror(error)}: {problem}" for problem in run.resumed()]
    return times, problems


def short_writes(times):
    """Writes that take fewer bytes than they were given: nobody notices."""

    def install():
        draw, write = random.Random(0), disk.write
        disk.write = lambda fd, data: write(fd, data[: draw.randint(1, len(data))])

    problems = []
    for _ in range(times):
        with trial() as run:
            if run.go(before=install).ended != "finished":
                run.problems.append(f"ends with {run.life.error}")
            problems += run.resumed()
    return times, problems


def file_limit(times):
    """A limit on the size of files (RLIMIT_FSIZE), which is then lifted."""
    problems, draw = [], random.Random(2)
    for _ in range(times):
        size = draw.randint(1, 15_000)

        def limit(size=size):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

        with trial() as run:
            run.go(before=limit)
            problems += [f"{size} bytes: {problem}" for problem in run.resumed()]
    return times, problems


def full_disk(times):
    """A file system that is full (a small tmpfs), and then gets room; where it cannot be mounted, not at all."""
    problems, draw, done = [], random.Random(3), 0
    for _ in range(times):
        with trial() as run, tempfile.TemporaryDirectory() as mounted:
            kb = draw.choice((16, 32, 48, 64, 80))
            mount = ["mount", "-t", "tmpfs", "-o", f"size={kb}k", "tmpfs", mounted]
            if subprocess.run(mount, capture_output=True, check=False).returncode:
                break
            try:
                done += 1
                run.path = Path(mounted) / "run"
                run.go()
                subprocess.run(["mount", "-o", "remount,size=100m", mounted], check=True)
                problems += [f"{kb} kB: {problem}" for problem in run.resumed()]
            finally:
                subprocess.run(["umount", mounted], check=True)
    return done, problems


def two_processes(times):
    """A second process on the directory of a running one: refused, and the first unharmed."""
    problems = []
    for i in range(times):
        with trial() as run:
            first = os.fork()
            if first == 0:
                with contextlib.suppress(BaseException):
                    run._kind.go(run.path, run._journal, 0, sync=SYNC)
                os._exit(0)
            while not (run.path / "manifest.json").exists():
                time.sleep(0.001)
            second = run.go(way=("collect", "resume")[i % 2])
            running = os.waitpid(first, os.WNOHANG)[0] == 0
            if running and "is being written by" not in second.error:
                problems.append(f"the second process {second.ended}: {second.error[-500:]}")
            if running:
                os.waitpid(first, 0)
            problems += run.resumed()
    return times, problems


def refused(path):
    """(directory, call) that has to be refused, each."""
    mdp, other = gosprl.envs.make("riverswim6"), gosprl.envs.make("corridor24")
    run, newer, notes = path / "run", path / "newer", path / "notes"
    for directory in (run, newer):
        gosprl.collect(mdp, 3, seed=0, out=directory)
    manifest = json.loads((newer / "manifest.json").read_text())
    del manifest["digest"]
    write_json(newer / "manifest.json", {**manifest, "format": FORMAT + 1})
    notes.mkdir()
    (notes / "notes.txt").write_text("no run")
    yield newer, lambda: gosprl.resume(newer)
    yield newer, lambda: gosprl.collect(mdp, 3, seed=0, out=newer)
    yield notes, lambda: gosprl.resume(notes)
    yield notes, lambda: gosprl.collect(mdp, 3, seed=0, out=notes)
    yield notes, lambda: gosprl.collect(mdp, 3, seed=0, out=notes / "notes.txt")
    yield run, lambda: gosprl.collect(mdp, 4, seed=0, out=run)
    yield run, lambda: gosprl.collect(mdp, 3, seed=1, out=run)
    yield run, lambda: gosprl.collect(other, 3, seed=0, out=run)


def untouched(_):
    """A newer format, a directory that is no run, another system, other settings: refused, nothing is changed."""
    problems, times = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for times, (where, call) in enumerate(refused(Path(folder)), 1):
            before = digests(where)
            try:
                call()
                problems.append(f"call {times} was not refused")
            except gosprl.InputError:
                pass
            if digests(where) != before:
                problems.append(f"call {times} changed {where}")
    return times, problems


FAULTS = {  # name -> (function, how many times)
    "SIGTERM": (lambda times: signals("SIGTERM", times), 40),
    "Ctrl-C": (lambda times: signals("Ctrl-C", times), 40),
    "a call of the disk fails": (errors, 100),
    "short writes": (short_writes, 10),
    "a limit on the size of files": (file_limit, 40),
    "a full disk": (full_disk, 20),
    "a second process": (two_processes, 20),
    "no run, a newer one, or another one": (untouched, 1),
}
