"""Runs in several processes, or on a Ray cluster. One that raises, or ends its process, does not affect the others."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Any, Generic, Protocol, Self, TypeVar

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.experiments.sweep import Run
from gosprl.fleet import ray_cluster


class Work(Protocol):
    """The specification of a run."""

    def tiny(self) -> Self | None:
        """Return a short one that compiles the same code; None if there is none."""


J = TypeVar("J", bound=Work)
Task = tuple[str, J]  # the name of an experiment, and one of its runs
Answer = tuple[Task[J], Run | str]  # the run, or why it failed
TIMEOUT = 20.0  # seconds in which a cluster has to answer
DIED = "the process that made it ended abruptly, as when memory runs out"
SCRIPT = "so do all in a script whose call is not below if __name__ == '__main__':"  # they begin with its import


class Workers(Generic[J]):
    """A number of worker processes; with one worker, the runs are made in this process."""

    def __init__(self, number: int, execute: Callable[[J], Run]) -> None:
        self._number, self._execute = number, execute
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        """Return itself; processes start when they are needed."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the processes; after an exception, without waiting for them."""
        self._end(now=kind is not None)

    def each(self, tasks: Sequence[Task[J]]) -> Iterator[Answer[J]]:
        """Yield every task with its outcome, as soon as it is finished."""
        if self._number == 1:
            yield from ((task, attempt(self._execute, task[1])) for task in tasks)
            return
        self._compile(tasks)
        waiting = deque(tasks)
        while waiting:
            for suspect in (yield from self._together(waiting)):
                if (
                    yield from self._together(deque([suspect]))
                ):  # one at a time, to see which of them ends its process
                    yield suspect, f"{DIED}; {SCRIPT}"

    def _together(self, waiting: deque[Task[J]]) -> Generator[Answer[J], None, list[Task[J]]]:
        """Run the waiting tasks until none is left or a process dies; return the tasks that were running then."""
        running: dict[Future[Run | str], Task[J]] = {}
        try:
            while waiting or running:
                while (
                    waiting and len(running) <= self._number
                ):  # one more than there are processes, so that none is idle
                    running[self._submit(waiting[0])] = waiting[0]
                    waiting.popleft()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    answer = future.result()
                    yield running.pop(future), answer
        except BrokenProcessPool:
            self._end(now=True)
        return list(running.values())

    def _submit(self, task: Task[J]) -> "Future[Run | str]":
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")  # a fork would copy the parent's threads and locks
            self._pool = ProcessPoolExecutor(self._number, mp_context=spawn, initializer=_end_with_parent)
        with _ignoring_interrupts():
            return self._pool.submit(attempt, self._execute, task[1])

    def _compile(self, tasks: Sequence[Task[J]]) -> None:
        """Compile in this process first: otherwise all processes would compile the same at the same time."""
        for tiny in dict.fromkeys(job.tiny() for _, job in tasks):
            if tiny is not None:
                with suppress(Exception):  # its own run will raise the same
                    self._execute(tiny)

    def _end(self, now: bool) -> None:
        if self._pool is not None:
            if now:
                for process in list((self._pool._processes or {}).values()):  # Python 3.14 has terminate_workers
                    process.terminate()
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


class RayWorkers(Generic[J]):
    """Runs as tasks of a Ray cluster: one for each of its CPUs at a time."""

    def __init__(self, address: str | None, execute: Callable[[J], Run]) -> None:
        self._address, self._execute = address, execute
        self._ours = False

    def __enter__(self) -> Self:
        """Connect; a cluster of our own is started without an address."""
        self._ours = ray_cluster.connect(self._address, None, TIMEOUT)
        return self

    def __exit__(self, *_: object) -> None:
        """End what is under way, if the cluster is ours."""
        if self._ours:
            ray_cluster.imported().shutdown()

    def each(self, tasks: Sequence[Task[J]]) -> Iterator[Answer[J]]:
        """Yield every task with its outcome, as soon as it is finished."""
        ray = ray_cluster.imported()
        remote = ray.remote(attempt).options(num_cpus=1, max_retries=0)
        waiting: deque[Task[J]] = deque(tasks)
        running: dict[Any, Task[J]] = {}
        most = 1 + max(1, int(ray.cluster_resources().get("CPU", 1)))  # one more, so that no CPU is idle
        while waiting or running:
            while waiting and len(running) < most:
                task = waiting.popleft()
                running[remote.remote(self._execute, task[1])] = task
            done, _ = ray.wait(list(running), num_returns=1)
            for reference in done:
                yield running.pop(reference), _answer(ray, reference)


def _answer(ray: Any, reference: Any) -> Run | str:
    try:
        answer: Run | str = ray.get(reference)
        return answer
    except ray.exceptions.RayError as error:
        return f"{DIED}, or its node ({one_line(error):.200})"


def team_of(workers: int | str | None, execute: Callable[[J], Run]) -> "Team[J]":
    """Return what makes runs: so many processes, None for one a core; "ray", or the address of a Ray cluster."""
    if isinstance(workers, str):
        if workers == "ray" or workers.startswith("ray://"):
            return RayWorkers(None if workers == "ray" else workers, execute)
        if not workers.removeprefix("-").isdecimal():
            raise InputError(
                f'workers: expected a number of processes, "ray" or "ray://host:port", got {workers!r:.80}'
            )
        workers = int(workers)
    number = _checks.whole("workers", (os.cpu_count() or 1) if workers is None else workers, 1)
    return Workers(number, execute)


Team = Workers[J] | RayWorkers[J]


def attempt(execute: Callable[[J], Run], job: J) -> Run | str:
    """Return a run, or its error as text, since not every exception can be sent to another process."""
    try:
        return execute(job)
    except Exception as error:
        return one_line(error)


def one_line(error: Exception) -> str:
    """Return an exception as one line of text."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def _end_with_parent() -> None:
    """Make a new process end when its parent ends, even if the parent was killed."""
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Start processes that ignore Ctrl-C, which a terminal sends to them as well; their parent ends them.

    Processes that handled it themselves would print a traceback if they were still importing.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
