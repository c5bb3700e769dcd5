"""Runs on several cores. A run that raises, or takes its process down with it, fails alone."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Self

from gosprl.experiments.algorithms import ALGORITHMS
from gosprl.experiments.sweep import Case, Job, Run

Task = tuple[str, Job]  # the name of an experiment, and one of its runs
Answer = tuple[Task, Run | str]  # what it gave, or why it failed

TINY = Case("tiny", "", "riverswim6", need=1)
DIED = "the process that made it ended abruptly, as when memory runs out"


class Workers:
    """A number of processes; for one, this process itself."""

    def __init__(self, number: int, execute: Callable[[Job], Run]) -> None:
        self._number, self._execute = number, execute
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end(now=kind is not None)

    def each(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """Every task with what came of it, as soon as it is there."""
        if self._number == 1:
            yield from ((task, attempt(self._execute, task[1])) for task in tasks)
            return
        self._compile(tasks)
        waiting = deque(tasks)
        while waiting:
            for suspect in (yield from self._together(waiting)):
                if (yield from self._together(deque([suspect]))):  # one at a time, to find whose process dies
                    yield suspect, DIED

    def _together(self, waiting: deque[Task]) -> Generator[Answer, None, list[Task]]:
        """Until none is waiting, or a process dies: then, the tasks that it may have had."""
        running: dict[Future[Run | str], Task] = {}
        try:
            while waiting or running:
                while waiting and len(running) <= self._number:  # one more than processes, so that none is idle
                    running[self._submit(waiting[0])] = waiting[0]
                    waiting.popleft()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    answer = future.result()
                    yield running.pop(future), answer
        except BrokenProcessPool:
            self._end(now=True)
        return list(running.values())

    def _submit(self, task: Task) -> "Future[Run | str]":
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")  # a fork would copy threads and locks of the parent
            self._pool = ProcessPoolExecutor(self._number, mp_context=spawn, initializer=_end_with_parent)
        with _deaf_children():
            return self._pool.submit(attempt, self._execute, task[1])

    def _compile(self, tasks: Sequence[Task]) -> None:
        """Compile here, once on a machine, what all processes would compile at the same time."""
        for algorithm in dict.fromkeys(job.algorithm for _, job in tasks):
            if not ALGORITHMS[algorithm].trap_cost:
                with suppress(Exception):  # its own run will tell
                    self._execute(Job(TINY, algorithm, seed=0, max_steps=100))

    def _end(self, now: bool) -> None:
        if self._pool is not None:
            if now:
                for process in list((self._pool._processes or {}).values()):  # Python 3.14 has terminate_workers
                    process.terminate()
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def attempt(execute: Callable[[Job], Run], job: Job) -> Run | str:
    """A run, or why it failed: text, since not every exception can be sent to another process."""
    try:
        return execute(job)
    except Exception as error:
        return said(error)


def said(error: Exception) -> str:
    """An exception on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def _end_with_parent() -> None:
    """In a new process: end with its parent, also with one that was killed."""
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes that begin here do not hear Ctrl-C, which a terminal sends to them, too: their parent ends them.

    Had they to see to it themselves, those that are still importing would print where they were.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
