"""A child process that is spoken to in lines: started, written to, read from with a time-out, ended.

It gets a session of its own, so that Ctrl-C in a terminal reaches us and not it, and so that whatever it starts itself
is ended with it; only a daemon, which leaves that session, stays. Its standard error goes to a log; the last lines are
kept, for error messages.
"""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from gosprl.errors import GosprlError, InputError
from gosprl.systems.protocol import LONGEST, Violation

GRACE = 1.0  # seconds to exit in, when asked to
TICK = 0.05  # seconds between two looks whether the process is alive, while it is silent
AWAKE = 1e-4  # seconds to wait for an answer without sleeping
PIECE = 1 << 16  # bytes of a read
TAIL = 2000  # bytes of standard error that are kept


class Ended(Exception):
    """The process has ended: it will not answer."""


class TooLate(GosprlError):
    """There was no answer in time."""


class Child:
    """A process, from its start to its end.

    Parameters
    ----------
    command
        The program and its arguments; no shell reads them.
    log
        A file to which standard error is appended; None: only the last lines are kept.
    cwd, env
        The directory it runs in, and its environment; None: ours.

    Attributes
    ----------
    lines
        Number of lines read so far.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.lines = 0
        self._owner = os.getpid()  # a forked copy of us must not end it
        self._over = self._closing = False
        self._ending = threading.RLock()  # another thread may close it
        self._tail = b""
        self._buffer = bytearray()
        pipe, file = subprocess.PIPE, _opened(log)
        try:
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=env, start_new_session=True, bufsize=0
            )
        except (OSError, ValueError, TypeError) as error:
            if file is not None:
                file.close()
            raise InputError(f"process: expected a program that can be started, got {command[0]!r}: {error}") from None
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        for descriptor in (self._in, self._out, self._process.stderr.fileno()):
            os.set_blocking(descriptor, False)
        self._readable = select.poll()
        self._readable.register(self._out, select.POLLIN)
        self._listener = threading.Thread(target=self._listen, args=(file,), daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def write(self, line: bytes) -> None:
        """Write a line to its standard input."""
        try:
            written = os.write(self._in, line)
        except BlockingIOError:
            written = 0
        except OSError:
            raise self._end_of_pipe() from None
        if written < len(line):  # a pipe has room for hundreds of requests, and there is one at a time
            raise Violation("expected a program that reads every request, but its standard input is full")

    def read(self, timeout: float) -> bytes:
        """Return the next line of its standard output.

        Raises
        ------
        TooLate
            There was none in time.
        Violation
            It is too long.
        Ended
            The process has ended before.
        """
        end = self._buffer.find(b"\n")
        if end < 0:
            end = self._fill(time.monotonic() + timeout, timeout)
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        self.lines += 1
        return line

    def unasked(self) -> bytes:
        """Return what it has printed beyond the lines that were read; nothing, if it answers each request once."""
        if not self._buffer and self._readable.poll(0):
            self._more()
        return bytes(self._buffer)

    def _fill(self, deadline: float, timeout: float) -> int:
        """Read until the buffer has a line; return where it ends."""
        searched = 0
        while True:
            left = deadline - time.monotonic()
            if self._soon() or self._readable.poll(max(0.0, min(left, TICK)) * 1000):
                if not self._more():
                    raise self._end_of_pipe()
                end = self._buffer.find(b"\n", searched)
                if end >= 0:
                    return end
                searched = len(self._buffer)
                if searched > LONGEST:
                    raise Violation(f"expected a line of at most {LONGEST:,} bytes, got {searched:,} and no end")
            elif self._closing or self._exit() is not None:  # what it has started may hold its standard output open
                if not self._readable.poll(0):
                    raise self._end_of_pipe()
            elif left <= 0:
                raise TooLate(f"no answer within {timeout:g} s")

    def _soon(self) -> bool:
        """Whether it answers within a moment, in which we stay awake: to fall asleep and wake up takes longer."""
        end = time.perf_counter() + AWAKE
        while time.perf_counter() < end:
            if self._readable.poll(0):
                return True
            os.sched_yield()
        return False

    def _more(self) -> bool:
        """Read what is there; False at the end of the output."""
        try:
            piece = os.read(self._out, PIECE)
        except BlockingIOError:
            return True
        self._buffer += piece
        return bool(piece)

    def _end_of_pipe(self) -> Exception:
        """Return what to raise if nothing more can be read or written: how it ended, or that it did not."""
        if self._closing:  # by another thread: the program did not end by itself
            return GosprlError("it was closed before it answered")
        if how := self._how_ended(GRACE):
            return Ended(how)
        return Violation("expected answers until the program exits, but it closed its standard input or output")

    def _how_ended(self, timeout: float) -> str:
        """Say how it ended; nothing if it still runs after this time."""
        result = self._exit(timeout)
        if result is None:
            return ""
        if result.si_code == os.CLD_EXITED:
            return f"it exited with status {result.si_status}"
        number = result.si_status
        known = {one.value: one.name for one in signal.Signals}  # real-time signals have no names
        return f"it was ended by the signal {known.get(number, number)}"

    def _exit(self, timeout: float = 0.0) -> "os.waitid_result | None":
        """Return how it ended, None if it runs. Its number stays reserved until `end`: no signal can hit another."""
        deadline = time.monotonic() + timeout
        while True:
            result = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if result is not None or time.monotonic() >= deadline:
                return result
            time.sleep(TICK / 10)

    def last_words(self) -> str:
        """Return the end of its standard error, for an error message; all of it is there after `end`."""
        text = self._tail.decode(errors="replace").strip()
        return f"; its standard error ends with {text[-300:]!r}" if text else ""

    def leave(self, farewell: bytes) -> str:
        """Say a last line, and give it a moment to exit before it is ended; how it took that, in words."""
        if os.getpid() != self._owner:
            return ""
        with self._ending:
            if self._over:
                return ""
            self._closing = True
            with contextlib.suppress(OSError):
                os.write(self._in, farewell)
            self._close_input()
            how = self._how_ended(GRACE)
            if not how:
                self._signal(signal.SIGTERM)
                self._exit(GRACE)
            self.end()
            return how or f"it still ran after {GRACE:g} s"

    def end(self) -> None:
        """End it at once, and what it started in its session."""
        if os.getpid() != self._owner:
            return
        with self._ending:
            if self._over:
                return
            self._over = self._closing = True
            process = self._process
            assert process.stdout
            self._close_input()
            self._signal(signal.SIGKILL)
            process.wait()
            self._listener.join(GRACE)
            process.stdout.close()

    def _close_input(self) -> None:
        assert self._process.stdin
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and to what it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _listen(self, file: BinaryIO | None) -> None:
        """Pass its standard error on, until it ends; a daemon may hold it open for longer than that."""
        stream = self._process.stderr
        assert stream
        ready = select.poll()
        ready.register(stream, select.POLLIN)
        with stream, file or contextlib.nullcontext():
            while True:
                over = self._over
                if not ready.poll(TICK * 1000) and over:
                    return
                piece = stream.read(PIECE)
                if piece == b"":
                    return
                self._note(piece or b"", file)

    def _note(self, piece: bytes, file: BinaryIO | None) -> None:
        self._tail = (self._tail + piece)[-TAIL:]
        if file is not None:
            with contextlib.suppress(OSError):  # a full disk must not stop the program, which would look like a crash
                file.write(piece)


def _opened(log: Path | None) -> BinaryIO | None:
    try:
        return None if log is None else log.open("ab", buffering=0)
    except OSError as error:
        raise InputError(f"log: expected a file that can be written, got {str(log)!r}: {error}") from None
