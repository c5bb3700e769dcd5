"""Walkers in processes on this machine, each at the end of a pair of connected sockets.

Processes are forked from a fork server, which has imported this package once. What a walker writes is read without
blocking, and only bytes are read (`gosprl.fleet.wire`). A walker that breaks the rules is ended: one that answers with
anything but the report of its open order, twice, or without being asked. If several of its messages are read at once,
none of them counts.

A process that hangs is noticed by the learner, who calls `dismiss`. Before it has joined, it is noticed here.
"""

import contextlib
import multiprocessing
import pickle
import selectors
import signal
import socket
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

from gosprl.collecting.streams import Entropy
from gosprl.errors import GosprlError, InputError
from gosprl.fleet import wire, worker
from gosprl.fleet.crew import NONE, STARTING, Crew, Member, could_not_begin
from gosprl.fleet.orders import Order, Report, next_of_lease
from gosprl.fleet.walking import Facts

PIECE = 1 << 16  # bytes of a read
GRACE = 1.0  # seconds to end in after SIGTERM
FILES = 2  # that the learner has open for a process: its socket, and what says that it ended
OTHER_FILES = 64  # that the learner may have open besides
STATUS = 0.2  # seconds to wait for the status of a process whose socket is closed
PRELOADED = ["__main__", "gosprl.fleet.worker", "gosprl.systems.stepper", "gosprl._kernels"]
GUARD = (
    "; every process imports the program that starts the fleet: it has to be a file, and whatever is to run once has "
    'to stand below if __name__ == "__main__":'
)


class Child(Member):
    """A process."""

    __slots__ = ("buffer", "lease", "line", "process")

    def __init__(self, number: int, slot: int, initial: bool, process: BaseProcess, line: socket.socket) -> None:
        super().__init__(number, slot, initial)
        self.process, self.line = process, line
        self.buffer = b""  # the beginning of a message; or what is read when the learner knows what it answers
        self.lease = NONE  # what it works on, with the number that it knows


class Processes(Crew[Child]):
    """Walkers in processes on this machine.

    Parameters
    ----------
    factory
        A function that makes the system; it must be picklable.
    workers
        Number of processes.
    key, actions
        What tells states apart, and which actions there are, as in `gosprl.collect`; picklable, too.
    entropy
        The seed of the run.
    describe
        What `walking.describe` says of the learner's own copy; walkers that differ are refused. None: all must be like
        the first one.
    start_timeout
        Seconds in which a process has to make its system.

    Attributes
    ----------
    run
        What a process runs; tests replace it.
    """

    leases = True
    run: Callable[[socket.socket, bytes, int, Entropy], None] = staticmethod(worker.main)

    def __init__(
        self,
        factory: Callable[[], Any],
        workers: int,
        *,
        key: Any = None,
        actions: Any = None,
        entropy: Entropy = None,
        describe: Facts | None = None,
        start_timeout: float = STARTING,
    ) -> None:
        super().__init__(workers, entropy, describe, start_timeout)
        self._pickled = pickled(factory, key, actions)
        self._context = _context()
        _check_room(self.workers)
        self._leaving: list[tuple[float, BaseProcess]] = []  # (when it is killed, process)
        self._selector = selectors.DefaultSelector()

    def pid(self, walker: int) -> int | None:
        """Return the number of a walker's process; None if it is gone."""
        member = self._members.get(walker)
        return None if member is None else member.process.pid

    def close(self) -> None:
        """End all processes."""
        super().close()
        deadline = time.monotonic() + GRACE
        for _, process in self._leaving:
            process.join(max(0.0, deadline - time.monotonic()))
            _kill(process)
        self._leaving.clear()
        self._selector.close()

    def _start(self, slot: int, initial: bool = False) -> None:
        number = self._slots.number()
        ours, theirs = socket.socketpair()
        arguments = (theirs, self._pickled, number, self._entropy)
        try:
            ours.setblocking(False)
            process = self._context.Process(target=self.run, args=arguments, name=f"walker {number}", daemon=True)
            process.start()
        except (OSError, EOFError, RuntimeError) as error:
            ours.close()
            raise GosprlError(f"workers: a process could not be started: {error}{GUARD}") from error
        finally:
            theirs.close()  # otherwise the end of the process would not be the end of the stream
        member = Child(number, slot, initial, process, ours)
        self._enter(member)
        self._selector.register(ours, selectors.EVENT_READ, member)

    def _hand(self, member: Child, order: Order) -> None:
        try:
            message = wire.packed_order(order)
            sent = member.line.send(message)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._lose(member, _how_ended(member))
            return
        member.lease = order
        if sent < len(message):  # there is room for thousands of orders
            self._lose(member, "it does not read its orders")

    def goes_on(self, order: Order) -> None:
        """Take in which order a walker goes on with by itself; it may have answered already."""
        member = self._members.get(order.walker)
        if member is not None:
            member.order = order
            if member.buffer:
                self._read_by_rules(member, b"")

    def _wait(self, seconds: float | None) -> None:
        if self._leaving:
            seconds = self._kill_late(seconds)
        for key, _ in self._selector.select(seconds):
            self._read(key.data)

    def _read(self, member: Child) -> None:
        """Read what a walker wrote: at most one message, if it keeps to the rules."""
        try:
            data = member.line.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose(member, _how_ended(member), GUARD)
            return
        self._read_by_rules(member, data)

    def _read_by_rules(self, member: Child, data: bytes) -> None:
        try:
            if (
                len(data) == wire.PLAIN_SIZE
                and not member.buffer
                and data[4] == wire.PLAIN
                and member.order is not NONE
            ):
                self._take_report(member, wire.plain_report_of(data, member.lease))
            else:
                self._read_any(member, data)
        except ValueError as error:
            if isinstance(error, GosprlError):  # of ours, to be raised
                raise
            self._lose(member, f"it broke the rules: {error}")

    def _read_any(self, member: Child, data: bytes) -> None:
        """Read a message of any kind, or a part of it."""
        data = member.buffer = member.buffer + data
        if len(data) < wire.HEAD.size:
            return
        length, kind = wire.HEAD.unpack_from(data)
        if not 1 <= length <= wire.LONGEST:
            raise ValueError(f"expected a message of 1 to {wire.LONGEST:,} bytes, got one of {length:,}")
        if len(data) < length + 4:
            return
        data, member.buffer = data[: length + 4], data[length + 4 :]
        content = data[wire.HEAD.size :]
        if not member.joined:
            if member.buffer:
                raise ValueError("it wrote more than it was asked")
            self._greet(member, kind, content)
        elif kind == wire.FAILED:
            why, trace = wire.failure_of(content)
            self._lose(member, why, trace=trace)
        else:
            self._read_report(member, kind, data, content)

    def _read_report(self, member: Child, kind: int, data: bytes, content: bytes) -> None:
        assert self._facts is not None
        if member.order is NONE:
            raise ValueError("it wrote without being asked")
        if kind == wire.PLAIN and len(data) == wire.PLAIN_SIZE:
            self._take_report(member, wire.plain_report_of(data, member.lease))
        elif kind == wire.REPORT:
            self._take_report(member, wire.report_of(content, member.lease, self._facts["actions"]))
        else:
            raise ValueError(f"expected a report, got a message of kind {kind}")

    def _take_report(self, member: Child, report: Report) -> None:
        number, following = member.order.number, next_of_lease(member.lease, report)
        if member.buffer and following is None:
            raise ValueError("it answered more than it was asked")
        self._events.append(report if report.number == number else report._replace(number=number))
        member.order, member.lease, member.reported = NONE, following or NONE, True

    def _greet(self, member: Child, kind: int, content: bytes) -> None:
        """Read the first message of a walker."""
        if kind not in (wire.HELLO, wire.REFUSED):
            raise ValueError(f"expected a description of its system first, got a message of kind {kind}")
        fields = wire.object_of(content)
        if kind == wire.REFUSED:
            wrong = InputError if fields.get("input") is True else GosprlError
            self._refuse(member, could_not_begin(f"{fields.get('why')!s:.300}", wrong))
        elif type(fields.get("actions")) is not int or fields["actions"] < 1:
            raise ValueError(f"expected a number of actions, got {fields.get('actions')!r:.40}")
        else:
            self._join(member, fields)

    def _end(self, member: Child) -> None:
        """Stop listening to a process, and ask it to end; it is killed if it does not."""
        self._selector.unregister(member.line)
        member.line.close()
        if member.process.is_alive():
            member.process.terminate()
            self._leaving.append((time.monotonic() + GRACE, member.process))

    def _kill_late(self, seconds: float | None) -> float | None:
        """Kill processes that were asked to end long ago; seconds to wait until there is another one."""
        now = time.monotonic()
        for at, process in self._leaving:
            if at <= now:
                _kill(process)
        self._leaving = [(at, process) for at, process in self._leaving if at > now]
        if not self._leaving:
            return seconds
        nearest = self._leaving[0][0] - now + 1e-3
        return nearest if seconds is None else min(seconds, nearest)


def pickled(factory: Any, key: Any, actions: Any) -> bytes:
    """Return what a walker needs to make its system, as bytes."""
    for name, value in (("system", factory), ("key", key), ("actions", actions)):
        try:
            pickle.dumps(value)
        except Exception as error:  # pickling calls methods of the user's own
            raise InputError(
                f"{name}: expected something that can be sent to another process, got {value!r:.80} ({error!s:.120}); "
                "use a function at the top level of a module, functools.partial of one, or the id of an environment"
            ) from None
    return pickle.dumps((factory, key, actions))


def _check_room(workers: int) -> None:
    """Raise `InputError` if this process may not open as many files as the processes need."""
    import resource  # there is none where there is no forkserver

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files != resource.RLIM_INFINITY and FILES * workers + OTHER_FILES > files:
        most = max(1, (files - OTHER_FILES) // FILES)
        raise InputError(
            f"workers: expected at most {most:,} processes, got {workers:,}: each needs {FILES} open files, and "
            f"{files:,} are allowed; `ulimit -n` in the shell shows and raises the limit"
        )


def _context() -> Any:
    try:
        context = multiprocessing.get_context("forkserver")
    except ValueError:
        raise InputError('workers: processes need a system with "forkserver"; use workers="threads:8"') from None
    context.set_forkserver_preload(PRELOADED)  # no effect if the server runs already
    return context


def _how_ended(member: Child) -> str:
    """Say how a process ended."""
    member.process.join(STATUS)
    status = member.process.exitcode
    if status is None:
        return "it closed its socket"
    if status >= 0:
        return f"its process exited with status {status}"
    with contextlib.suppress(ValueError):
        return f"its process was ended by the signal {signal.Signals(-status).name}"
    return f"its process was ended by the signal {-status}"


def _kill(process: BaseProcess) -> None:
    if process.is_alive():  # otherwise its number may be another process's
        process.kill()
        process.join(GRACE)
