"""What was acknowledged survives failed calls, kills and power cuts at any moment."""

import errno
import itertools
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import warmed
from small_logs import RUN, assert_rows, columns, names, rows_read, small_run

from gosprl.errors import GosprlError
from gosprl.runs import files
from gosprl.runs.reading import read_log
from gosprl.runs.writing import LogWriter


def raised_by(call):
    try:
        call()
    except OSError as error:
        return error
    return None


def script(directory, acknowledged):
    """Write a log in several lives; note what is acknowledged."""
    contents = read_log(directory, RUN)
    writer = LogWriter(directory, RUN, contents, segment_bytes=1500)
    begin = contents.rows
    try:
        for n in range(begin, begin + 9, 3):
            writer.append(columns(n, n + 3))
            writer.append_names(names(n, n + 1))
            acknowledged.append(writer.sync())
    except OSError as error:
        for call in (writer.sync, lambda: writer.append(columns(0, 1)), lambda: writer.append_names([]), writer.close):
            assert raised_by(call) is error  # noqa: PT017 - the same object
        raise
    writer.close()


def failing_at(number, call, code):
    """Return a call that fails once, after so many successes; a failed write has written some of the bytes."""
    original, count = getattr(os, {"truncate": "ftruncate"}.get(call, call)), itertools.count()

    def fail(*args):
        if next(count) == number:
            if call == "write":
                os.write(args[0], args[1][: len(args[1]) // 2])
            raise OSError(code, os.strerror(code))
        return original(*args)

    return fail


@pytest.mark.parametrize(("call", "code"), [("write", errno.ENOSPC), ("fsync", errno.EIO), ("open", errno.EMFILE)])
def test_a_failure_at_any_call_loses_nothing_acknowledged(tmp_path, monkeypatch, call, code):
    for number in itertools.count():
        directory = tmp_path / str(number)
        directory.mkdir()
        acknowledged = [0]
        with monkeypatch.context() as patch:
            patch.setattr(files.disk, call, failing_at(number, call, code))
            try:
                script(directory, acknowledged)
            except (OSError, GosprlError):
                failed = True
            else:
                failed = False
        contents = read_log(directory, RUN)
        assert not contents.problems
        assert contents.rows >= acknowledged[-1]
        script(directory, acknowledged)
        contents = read_log(directory, RUN)
        assert contents.closed
        assert_rows(contents, 0, acknowledged[-1])
        if not failed:
            break
    assert number > 5  # so many calls can fail


def test_short_writes_are_completed(tmp_path, monkeypatch):
    monkeypatch.setattr(files.disk, "write", lambda fd, data: os.write(fd, data[:7]))
    small_run(tmp_path)
    assert_rows(read_log(tmp_path, RUN), 0, 9)


def test_an_interrupted_writer_is_broken(tmp_path, monkeypatch):
    writer = LogWriter(tmp_path, RUN)
    with monkeypatch.context() as patch:
        patch.setattr(files.disk, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            writer.append(columns(0, 3))
    with pytest.raises(GosprlError, match="interrupted"):
        writer.sync()


def test_data_is_synced_before_the_chain_is_written(tmp_path, monkeypatch):
    calls = []

    def noted(call):
        def note(fd, *args):
            calls.append((call, os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), tmp_path)))
            return getattr(os, call)(fd, *args)

        return note

    for call in ("write", "fsync"):
        monkeypatch.setattr(files.disk, call, noted(call))
    writer = LogWriter(tmp_path, RUN)
    assert calls == []  # nothing is acknowledged yet
    writer.append(columns(0, 3))
    writer.append_names(names(0, 1))
    writer.append(columns(3, 5))
    writer.sync()
    log_file, names_file, chain = "log/000001.arrow", "states.arrow", "log/chain"
    assert calls[:3] == [("write", log_file), ("write", log_file), ("fsync", log_file)]
    assert set(calls[3:6]) == {("fsync", "log"), ("fsync", "."), ("fsync", "..")}  # the names of all new files
    assert calls[6:] == [  # names without a chain would be damage
        *(("write", names_file), ("fsync", names_file), ("fsync", ".")),
        *(("write", chain), ("fsync", chain)),
    ]
    calls.clear()
    assert writer.sync() == 5
    assert calls == []  # nothing to acknowledge


class Cache:
    """A disk that may lose, in a power cut, everything after the last fsync of each file."""

    def __init__(self, directory, acknowledged):
        self.directory, self.acknowledged = directory, acknowledged
        self.synced = {}
        self.moments = []

    def write(self, fd, data):
        written = os.write(fd, data)
        self.note()
        return written

    def fsync(self, fd):
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        if path.is_file():
            self.synced[path.relative_to(self.directory)] = path.stat().st_size
        self.note()

    def note(self):
        paths = [path for path in self.directory.rglob("*") if path.is_file()]
        contents = {path.relative_to(self.directory): path.read_bytes() for path in paths}
        self.moments.append((contents, dict(self.synced), self.acknowledged[-1]))


def after_power_cut(directory, contents, synced, rng):
    """Write what a disk may have: of the bytes not synced, some, none, or others in their place."""
    (directory / "log").mkdir(parents=True)
    for file, data in contents.items():
        safe = synced.get(file, 0)
        kept = data[: rng.integers(safe, len(data) + 1)]
        lost = len(data) - len(kept)
        if file == Path("log/chain"):
            data = kept if rng.integers(2) else data[:safe] + b"\0" * (len(data) - safe)
        else:
            data = kept + rng.bytes(lost) * int(rng.integers(2))
        if data or file == Path("log/chain") or rng.integers(2):
            (directory / file).write_bytes(data)


def test_a_power_cut_at_any_moment_loses_nothing_acknowledged(tmp_path, monkeypatch):
    acknowledged = [0]
    (tmp_path / "run").mkdir()
    cache = Cache(tmp_path / "run", acknowledged)
    with monkeypatch.context() as patch:
        patch.setattr(files.disk, "write", cache.write)
        patch.setattr(files.disk, "fsync", cache.fsync)
        script(tmp_path / "run", acknowledged)
    rng = np.random.default_rng(4)
    for i, (contents, synced, rows) in enumerate(cache.moments * 4):
        directory = tmp_path / str(i)
        after_power_cut(directory, contents, synced, rng)
        found = read_log(directory, RUN)
        assert found.problems == ()
        assert found.rows >= rows
        script(directory, [0])
        assert_rows(read_log(directory, RUN), 0, found.rows + 9)


LIVES = """
import json, os, random, signal, sys, time
from pathlib import Path
import numpy as np
from gosprl.runs.reading import read_log
from gosprl.runs.writing import LogWriter

directory, run = Path(sys.argv[1]), sys.argv[2]
draw = random.Random(5)

def live(pipe):
    contents = read_log(directory, run)
    writer = LogWriter(directory, run, contents, segment_bytes=20_000)
    n = contents.rows
    while True:
        rows = np.arange(n, n + draw.randrange(1, 300))
        writer.append({"state": rows, "action": rows, "next_state": rows, "reward": rows / 3, "flags": rows % 64})
        writer.append_names([(n, "state", n, str(n), "", None)])
        n = writer.sync()
        os.write(pipe, b"%020d" % n)

for life in range(12):
    begin, end = os.pipe()
    child = os.fork()
    if child == 0:
        live(end)
    os.close(end)
    os.read(begin, 20)  # it is under way
    time.sleep(draw.random() / 20)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    told = b""
    while part := os.read(begin, 1 << 16):
        told += part
    os.close(begin)
    contents = read_log(directory, run)
    print(json.dumps([int(told[-20:] or 0), contents.rows, contents.problems]))
"""


def test_kill_9_at_random_moments_loses_nothing_acknowledged(tmp_path):
    done = warmed.run(
        [sys.executable, "-c", LIVES, str(tmp_path), RUN], capture_output=True, text=True, check=True, timeout=600
    )
    lives = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lives) == 12
    for acknowledged, rows, problems in lives:
        assert problems == []
        assert rows >= acknowledged
    contents = read_log(tmp_path, RUN)
    np.testing.assert_array_equal(rows_read(contents)["state"], np.arange(contents.rows))
    assert len(list((tmp_path / "log").glob("*.arrow"))) > 2
