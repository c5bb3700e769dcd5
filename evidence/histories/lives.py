"""One call of the package: with which system, what is done to it meanwhile, and what it left.

A kill is a copy of the directory at the n-th call that changes a file, before it or in the middle of a write: what a
process would have left that died there. The call goes on to its end, and what it wrote is thrown away.
"""

import contextlib
import shutil
import signal
import threading
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evidence.histories.systems import Diary, Kinds, Program, Step, made
from evidence.lives import CALLS
from gosprl.errors import CollectionError, GosprlError, InputError
from gosprl.fleet.simulated import Simulated
from gosprl.runs.files import disk
from gosprl.runs.journal import DiskJournal
from gosprl.systems import process

WALKERS = 3
LOSING = 0.95


class Event(NamedTuple):
    """What happens during a call: "nothing", or "kill", "interrupt", "fail" at the n-th moment."""

    what: str = "nothing"
    when: int = 0


class Failed(Exception):
    """Raised by a system."""


class Life(NamedTuple):
    """What a call left: what it returned, or its error; the diary; a copy of the directory when it was killed."""

    value: Any
    error: Exception | None
    diary: Diary
    killed: Path | None


def interrupt():
    if threading.current_thread() is threading.main_thread():
        signal.raise_signal(signal.SIGINT)


def fail():
    raise Failed("the motor is hot")


def diary_of(event):
    """A diary in which this happens."""
    what = {"interrupt": interrupt, "fail": fail}.get(event.what)
    return Diary({} if what is None else {event.when: what})


def carried(kind, carrier, diary, entropy, bias):
    """The arguments `system`, `workers` and those that cannot be stored, of a call."""
    make, given = made(kind, diary), dict(Kinds[kind].given)
    if carrier == "one":
        return make(), given
    if carrier == "threads":
        return (make() if Kinds[kind].is_table else make), {**given, "workers": "threads:2"}
    system = make() if Kinds[kind].is_table else make
    lost = Losses(kind, bias, diary)
    duration = slow_if_rewarded if bias == "late" else None
    fleet = Simulated(
        system, WALKERS, lost=lost, entropy=entropy, **given, **({} if duration is None else {"duration": duration})
    )
    return system, {**given, "workers": fleet}


class Losses:
    """Walkers die by what they would have reported."""

    def __init__(self, kind, bias, diary):
        law = Kinds[kind].law
        self.bias, self.diary = bias, diary
        self.best = int(np.argmax(law.rewards))

    def __call__(self, rng, report):
        lost = rng.random() < LOSING and self._is_meant(report)
        self.diary.lost += lost
        return lost

    def _is_meant(self, report):
        last = self.diary.entries[-1] if self.diary.entries else None
        if self.bias == "reward":  # of the best state
            before = last.state if isinstance(last, Step) else None
            return report.reward == 1 and (before is None or _number(before) == self.best)
        if self.bias == "state":
            return report.key == self._target
        return False

    @property
    def _target(self):
        return "room 1" if self.diary.entries and isinstance(self.diary.entries[-1].state, str) else 1


def slow_if_rewarded(rng, report):
    return 50.0 if report.reward == 1 and rng.random() < LOSING else 1.0


def _number(state):
    return int(str(state).split()[-1])


def live(work, diary, event=None, path=None):
    """Do `work` while something happens to the run at `path`."""
    event = event or Event()
    killed = path.with_name(path.name + ".killed") if event.what == "kill" else None
    value = error = None
    with warnings.catch_warnings(), _dying(path, killed, event.when):
        warnings.simplefilter("ignore")
        try:
            value = work()
        except (InputError, CollectionError) as caught:
            error = caught
        except GosprlError as caught:
            error = caught
        except KeyboardInterrupt:
            if event.what != "interrupt" and not diary.endless:
                raise
    if diary.endless:
        raise AssertionError(f"endless: {diary.begun} steps and resets, the last {diary.entries[-6:]}")
    return Life(value, error, diary, killed if killed is not None and killed.exists() else None)


@contextlib.contextmanager
def programs():
    """Programs are `Program` meanwhile."""
    child, process.Child = process.Child, Program
    try:
        yield
    finally:
        process.Child = child


@contextlib.contextmanager
def _dying(path, killed, when):
    """Copy the directory at the n-th call that changes a file."""
    if killed is None:
        yield
        return
    calls = {name: getattr(disk, name) for name in CALLS}
    count, lock = 0, threading.Lock()

    def hooked(name):
        def call(*args, **options):
            nonlocal count
            with lock:
                count += 1
                now = count == when
            if now and name == "write":
                half = len(args[1]) // 2
                written = calls["write"](args[0], args[1][:half])
                _copy(path, killed)
                return written
            if now:
                _copy(path, killed)
            return calls[name](*args, **options)

        return call

    try:
        for name in CALLS:
            setattr(disk, name, hooked(name))
        yield
    finally:
        for name, call in calls.items():
            setattr(disk, name, call)


@contextlib.contextmanager
def written_at_once():
    """Journals are written by the thread that walks, at once: no clock decides what a kill leaves."""
    kept = DiskJournal.start, DiskJournal._request
    DiskJournal.start, DiskJournal._request = _started, _requested
    try:
        yield
    finally:
        DiskJournal.start, DiskJournal._request = kept


def _started(journal, prepare):
    journal._prepare = prepare


def _requested(journal, state):
    journal.check()
    with journal._lock:
        if state is not None:
            journal._pending.state = (journal.events, state)
        journal._asked_at, journal._never_asked = journal.steps, False
    try:
        with journal._writing:
            if pending := journal._taken():
                log = journal._log()
                journal._write(log, pending, log.sync)
    except Exception as error:
        journal._error = error
    journal.check()


def _copy(path, killed):
    if path.exists():
        shutil.copytree(path, killed, ignore=shutil.ignore_patterns("lock"))
