"""Lives of a collecting process: forked from a warm one, and killed at a random moment or at a chosen call of the disk.

A *life* ends in one of these ways:

- time: `kill -9` from outside, after some milliseconds; or another signal, if `where` names one;
- call: `kill -9` by itself at its n-th call that changes a file: before it, after it, or in the middle of a write;
- power: the same, and what was not synced by then is lost, in part or as zeros: a power cut, as far as that can be
  shown without one. Names of files that were not synced may be lost, and renames undone;
- none: it goes on to its end.

The process reports through a pipe what was acknowledged (each return of `LogWriter.sync`), and its answer.
"""

import json
import os
import random
import select
import signal
import stat
import struct
import time
import traceback
from typing import Any, NamedTuple

from gosprl.runs.files import disk
from gosprl.runs.writing import LogWriter

PATIENCE = 900  # seconds, then it hangs; a loaded machine takes minutes for what takes seconds
SIGNALS = {"": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "Ctrl-C": signal.SIGINT}
CALLS = ("open", "write", "fsync", "replace", "truncate", "unlink")


class End(NamedTuple):
    """How a life ends; `when`: seconds, or the number of the call."""

    how: str
    when: float = 0
    where: str = ""
    seed: int = 0


class Life(NamedTuple):
    """What is known of a life: how it ended; rows acknowledged; answer; traceback; calls of the disk.

    It ended "killed", "finished", "failed" (with a traceback) or "hangs".
    """

    ended: str
    acknowledged: int
    answer: Any
    error: str
    calls: int


def live(work, end):
    """Call `work` in a process of its own that ends as told; what it returns has to be JSON."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _be_child(work, end, writer)
    os.close(writer)
    ended, received = _watch(child, reader, end)
    os.close(reader)
    return _life(ended, received)


def _be_child(work, end, writer):
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored in the background
        _report_syncs(writer)
        calls = Calls(end)
        calls.install()
        answer = work()
        _send(writer, b"R", json.dumps([calls.count, answer]).encode())
    except BaseException:
        _send(writer, b"E", traceback.format_exc().encode())
    finally:
        os._exit(0)


def _report_syncs(writer):
    sync = LogWriter.sync

    def reported(log):
        rows = sync(log)
        _send(writer, b"A", struct.pack("<q", rows))
        return rows

    LogWriter.sync = reported


def _send(writer, kind, data):
    os.write(writer, kind + struct.pack("<I", len(data)) + data)


def _watch(child, reader, end):
    """(how it ended, what it said) when the process has ended."""
    begin, received = time.monotonic(), b""
    deadline = begin + (end.when if end.how == "time" else PATIENCE)
    hangs = False
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            sent = signal.SIGKILL if hangs or end.how != "time" else SIGNALS[end.where]
            os.kill(child, sent)
            hangs = hangs or end.how != "time"
            deadline = time.monotonic() + PATIENCE
            end = end._replace(how="none")
            continue
        if select.select([reader], [], [], min(left, 10))[0]:
            data = os.read(reader, 1 << 16)
            if not data:  # also a program that it started may hold the pipe for a moment
                break
            received += data
    _, status = os.waitpid(child, 0)
    if hangs:
        return "hangs", received
    return "killed" if os.WIFSIGNALED(status) else "finished", received


def _life(ended, received):
    acknowledged, answer, error, calls = 0, None, "", 0
    while len(received) >= 5:
        (length,) = struct.unpack("<I", received[1:5])
        kind, data, received = received[:1], received[5 : 5 + length], received[5 + length :]
        if len(data) < length:
            break
        if kind == b"A":
            (acknowledged,) = struct.unpack("<q", data)
        elif kind == b"R":
            calls, answer = json.loads(data)
        else:
            ended, error = "failed", data.decode()
    return Life(ended, acknowledged, answer, error, calls)


class Calls:
    """Counts the calls of `gosprl.runs.files.disk`, keeps in mind what is not synced, and kills its own process."""

    def __init__(self, end):
        self._end, self.count = end, 0
        self._draw = random.Random(end.seed)
        self._unsynced = {}  # file -> bytes that are on the disk
        self._new = {}  # files whose names are not, in the order in which they were made
        self._renamed = {}  # file -> what it was before a rename that is not
        self._cut = {}  # file -> bytes that were cut off

    def install(self):
        for name in CALLS:
            setattr(disk, name, self._hooked(name, getattr(disk, name)))

    def _hooked(self, name, call):
        def hooked(*args, **at):
            self.count += 1
            at_end = self._end.how in ("call", "power") and self.count == self._end.when
            if at_end and self._end.where == "before":
                self._die()
            if at_end and name == "write":
                args = (args[0], args[1][: self._draw.randint(0, len(args[1]))])
            note = getattr(self, f"_note_{name}", None)
            if note is not None:
                note(*args, **at)
            answer = call(*args, **at)
            if at_end:
                self._die()
            return answer

        return hooked

    def _die(self):
        if self._end.how == "power":
            self._lose()
        os.kill(os.getpid(), signal.SIGKILL)

    def _note_open(self, path, flags, *mode, dir_fd=None):
        path = _full(path, dir_fd)
        if flags & os.O_CREAT and not os.path.exists(path):
            self._new[path] = None

    def _note_write(self, fd, data):
        path = _path(fd)
        self._unsynced.setdefault(path, os.fstat(fd).st_size)

    def _note_truncate(self, fd, size):
        path = _path(fd)
        self._cut[path] = (size, os.pread(os.open(path, os.O_RDONLY), 1 << 24, size))

    def _note_fsync(self, fd):
        path = _path(fd)
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            self._unsynced.pop(path, None)
            self._cut.pop(path, None)
            return
        self._new = {file: None for file in self._new if os.path.dirname(file) != path}
        self._renamed = {file: old for file, old in self._renamed.items() if os.path.dirname(file) != path}

    def _note_replace(self, source, target, src_dir_fd=None, dst_dir_fd=None):
        source, target = _full(source, src_dir_fd), _full(target, dst_dir_fd)
        self._renamed.setdefault(target, _content(target))
        self._new.pop(source, None)
        if source in self._unsynced:
            self._unsynced[target] = self._unsynced.pop(source)

    def _lose(self):
        """Lose what was not synced; how much of it is drawn."""
        for path, (size, tail) in self._cut.items():
            if path not in self._unsynced and os.path.exists(path) and self._draw.random() < 0.5:
                with open(path, "r+b") as file:
                    file.seek(size)
                    file.write(tail)
        for path, size in self._unsynced.items():
            if os.path.exists(path):
                _tear(path, size, self._draw)
        for path, old in self._renamed.items():
            if self._draw.random() < 0.5:
                _put(path, old)
        lost = {}
        for path in self._new:  # file systems with a journal keep the order of names within a directory
            folder = os.path.dirname(path)
            lost[folder] = lost.get(folder) or self._draw.random() < 0.5
            if lost[folder] and os.path.exists(path):
                os.unlink(path)


def _full(path, dir_fd):
    """The path of a file in a directory that is held."""
    return os.fspath(path) if dir_fd is None else os.path.join(_path(dir_fd), path)


def _path(fd):
    return os.readlink(f"/proc/self/fd/{fd}")


def _content(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return file.read()


def _put(path, content):
    if content is None:
        os.unlink(path)
        return
    with open(path, "wb") as file:
        file.write(content)


def _tear(path, size, draw):
    """Keep some of what follows the first `size` bytes: the rest is cut off, or zeros."""
    length = os.path.getsize(path)
    if length <= size:
        return
    kept = draw.randint(size, length)
    os.truncate(path, kept)
    if draw.random() < 0.5:
        os.truncate(path, length)
