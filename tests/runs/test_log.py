"""The log of a run: what was acknowledged survives, every change is found, and nothing that is read is trusted.

Expected values come from outside: pyarrow reads the files with its own calls, and hashlib computes the chain anew.
"""

import errno
import hashlib
import itertools
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gosprl.errors import GosprlError, InputError
from gosprl.runs import files, log
from gosprl.runs.files import Damaged
from gosprl.runs.log import LOG, NAMES, LogWriter, copy_prefix, read_log

RUN = "00ab12"
END = b"\xff\xff\xff\xff\0\0\0\0"
WIDTH = 138


def columns(begin, end):
    """Return rows whose numbers can be told from their content."""
    number = np.arange(begin, end)
    return {
        "state": number.astype(np.int32),
        "action": (number % 3 - 1).astype(np.int32),
        "next_state": (number + 1).astype(np.int32),
        "reward": number / 7,
        "flags": (number % 64).astype(np.uint8),
    }


def names(begin, end):
    return [(n, "state", n, str(n), f"state é {n}", (0, n) if n % 2 else None) for n in range(begin, end)]


def small_run(directory, closed=True):
    """Write three batches of the log in two segments, and two of names."""
    writer = LogWriter(directory, RUN, segment_bytes=1500)
    for begin in (0, 3, 6):
        writer.append(columns(begin, begin + 3))
        if begin < 6:
            writer.append_names(names(begin, begin + 2))
        writer.sync()
    if closed:
        writer.close()
    return directory


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("written"))


@pytest.fixture
def run(written, tmp_path):
    return shutil.copytree(written, tmp_path / "run")


def data_files(directory):
    return [directory / "states.arrow", *sorted((directory / "log").glob("*.arrow"))]


def chain_lines(directory):
    """Return the fields of every line."""
    data = (directory / "log" / "chain").read_bytes()
    assert len(data) % WIDTH == 0
    lines = [data[i : i + WIDTH].decode() for i in range(0, len(data), WIDTH)]
    return [(line, *line.split()) for line in lines]


def rows_read(contents):
    batches = list(contents.batches())
    return {name: np.concatenate([b[name] for b in batches]) for name in LOG.names} if batches else {}


def assert_rows(contents, begin, end):
    read = rows_read(contents)
    for name, expected in columns(begin, end).items():
        np.testing.assert_array_equal(read[name], expected)
    assert not read["walker"].any()
    assert not read["order"].any()


def write_chained(directory, parts):
    """Write files and a valid chain of (file, bytes, rows), independent of the code under test."""
    (directory / "log").mkdir(parents=True, exist_ok=True)
    digest, contents, lines = hashlib.sha256(RUN.encode()).digest(), {}, []
    for number, (file, data, rows) in enumerate(parts, 1):
        offset = len(contents.get(file, b""))
        fields = f"{number:010d} {file:<16} {offset:016d} {len(data):010d} {rows:07d} ".encode()
        digest = hashlib.sha256(digest + fields + data).digest()
        start = fields + digest.hex().encode() + b" "
        lines.append(start + f"{zlib.crc32(start):08x}\n".encode())
        contents[file] = contents.get(file, b"") + data
    for file, data in contents.items():
        (directory / file).write_bytes(data)
    (directory / "log" / "chain").write_bytes(b"".join(lines))


def parts_of(directory):
    """Return the (file, bytes, rows) of every link."""
    parts = []
    for _, _, file, offset, length, rows, _, _ in chain_lines(directory):
        data = (directory / file).read_bytes()[int(offset) : int(offset) + int(length)]
        parts.append((file, data, int(rows)))
    return parts


def test_arrow_reads_the_files(run):
    tables = [pa.ipc.open_stream(path).read_all() for path in data_files(run)]
    assert tables[0].schema.equals(NAMES)
    assert all(table.schema.equals(LOG) for table in tables[1:])
    log_rows = pa.concat_tables(tables[1:])
    assert len(tables) == 3
    for name, expected in columns(0, 9).items():
        np.testing.assert_array_equal(log_rows[name].to_numpy(), expected)
    assert [tuple(row.values())[:5] for row in tables[0].to_pylist()] == [n[:5] for n in names(0, 2) + names(3, 5)]


def test_the_chain_is_that_of_hashlib(run, tmp_path):
    write_chained(tmp_path / "again", parts_of(run))
    for path in [run / "log" / "chain", *data_files(run)]:  # the links cover all bytes of every file
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(run)).read_bytes()
    assert chain_lines(run)[-1][6] == read_log(run, RUN).digest


def test_names_come_before_the_rows_of_the_same_sync(run):
    files_in_order = [file for _, _, file, *_ in chain_lines(run)]
    first, second = "log/000001.arrow", "log/000002.arrow"
    assert files_in_order == ["states.arrow", first, "states.arrow", first, first, second, second]
    assert [data == END for _, data, _ in parts_of(run)] == [False, False, False, False, True, False, True]


def test_everything_comes_back(run):
    contents = read_log(run, RUN)
    assert (contents.rows, contents.problems, contents.unacknowledged, contents.closed) == (9, (), {}, True)
    assert_rows(contents, 0, 9)
    assert [tuple(name) for name in contents.names()] == names(0, 2) + names(3, 5)


@pytest.mark.parametrize(("begin", "end"), [(0, 9), (2, 4), (3, 6), (4, None), (8, 100), (9, None), (5, 5)])
def test_a_part_of_the_rows(run, begin, end):
    states = [s for batch in read_log(run, RUN).batches(begin, end) for s in batch["state"]]
    assert states == list(range(9))[begin:end]


def test_walkers_and_orders_are_kept(tmp_path):
    writer = LogWriter(tmp_path, RUN)
    writer.append({**columns(0, 3), "walker": np.array([0, 7, 65535]), "order": np.array([0, -5, 2**31 - 1])})
    writer.close()
    read = rows_read(read_log(tmp_path, RUN))
    assert read["walker"].tolist() == [0, 7, 65535]
    assert read["order"].tolist() == [0, -5, 2**31 - 1]


def test_rewards_are_any_floats_and_arrays_any_views(tmp_path):
    rewards = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
    writer = LogWriter(tmp_path, RUN)
    doubled = {
        name: np.repeat(column, 2)[::2].astype(column.dtype.newbyteorder()) for name, column in columns(0, 5).items()
    }
    writer.append({**doubled, "reward": rewards})
    writer.append({**columns(5, 7), "reward": np.array([np.nan, 0.5], np.float32)})
    writer.close()
    read = rows_read(read_log(tmp_path, RUN))
    assert read["reward"].tobytes() == np.array([*rewards, np.nan, 0.5]).tobytes()
    np.testing.assert_array_equal(read["state"], np.arange(7))


def test_large_batches_are_split(tmp_path):
    rows = 2**20 + 5
    writer = LogWriter(tmp_path, RUN)
    writer.append(columns(0, rows))
    assert writer.sync() == rows
    writer.close()
    contents = read_log(tmp_path, RUN)
    assert [link.rows for link in contents.links] == [2**20, 5, 0]
    assert_rows(contents, 0, rows)


def test_many_long_names_are_split(tmp_path):
    writer = LogWriter(tmp_path, RUN)
    writer.append_names([(0, "state", i, "x" * (12 * 2**20), "", None) for i in range(4)])
    writer.close()
    contents = read_log(tmp_path, RUN)
    assert [link.rows for link in contents.links] == [2, 2, 0, 0]
    assert len(list(contents.names())) == 4


def test_an_empty_log_can_be_closed(tmp_path):
    LogWriter(tmp_path, RUN).close()
    assert pa.ipc.open_stream(tmp_path / "log" / "000001.arrow").read_all().num_rows == 0
    contents = read_log(tmp_path, RUN)
    assert (contents.rows, contents.closed, list(contents.batches()), list(contents.names())) == (0, True, [], [])


def test_a_directory_without_a_log_is_empty(tmp_path):
    contents = read_log(tmp_path, RUN)
    assert (contents.rows, contents.problems, contents.closed) == (0, (), False)
    with pytest.raises(InputError, match="which is none"):
        read_log(tmp_path / "missing", RUN)


def test_closing_twice_and_writing_after_it(tmp_path):
    writer = LogWriter(tmp_path, RUN)
    writer.close()
    writer.close()
    with pytest.raises(InputError, match="closed"):
        writer.append(columns(0, 1))


def link_at(directory, file, place):
    """Return the number of the batch that has this byte."""
    if file == "log/chain":
        return place // WIDTH + 1
    for _, number, other, offset, length, *_ in chain_lines(directory):
        if other == file and int(offset) <= place < int(offset) + int(length):
            return int(number)
    raise AssertionError("every byte has a link")


@pytest.fixture
def tiny(tmp_path):
    """Return a run that is small enough to try all changes, and a copy."""
    run = tmp_path / "run"
    run.mkdir()
    writer = LogWriter(run, RUN)
    writer.append_names(names(0, 1))
    for begin in (0, 2):
        writer.append(columns(begin, begin + 2))
    writer.close()
    return run, shutil.copytree(run, tmp_path / "copy")


def test_every_flipped_bit_is_reported_with_file_and_batch(tiny):
    run, written = tiny
    for path in [run / "log" / "chain", *data_files(run)]:
        file = path.relative_to(run).as_posix()
        data = path.read_bytes()
        fd = os.open(path, os.O_WRONLY)
        for place, byte in enumerate(data):
            expected = file, link_at(written, file, place)
            for bit in range(8):
                os.pwrite(fd, bytes([byte ^ 1 << bit]), place)
                problems = read_log(run, RUN).problems
                assert problems
                assert problems[0][:2] == expected
            os.pwrite(fd, bytes([byte]), place)
        os.close(fd)
    assert not read_log(run, RUN).problems


def test_every_truncation_of_data_is_reported_with_file_and_batch(tiny):
    run, written = tiny
    for path in data_files(run):
        file = path.relative_to(run).as_posix()
        data = path.read_bytes()
        for length in range(len(data)):
            path.write_bytes(data[:length])
            assert read_log(run, RUN).problems[0][:2] == (file, link_at(written, file, length))
        path.unlink()
        assert read_log(run, RUN).problems[0] == (file, link_at(written, file, 0), "is missing")
        path.write_bytes(data)


def test_every_truncation_of_the_chain_leaves_a_prefix_and_unacknowledged_data(written, run):
    links = read_log(written, RUN).links
    chain = run / "log" / "chain"
    data = chain.read_bytes()
    for length in range(len(data)):
        chain.write_bytes(data[:length])
        contents = read_log(run, RUN)
        assert contents.links == links[: length // WIDTH]
        assert not contents.closed
        assert contents.unacknowledged.get("log/chain", 0) == length % WIDTH
        rest = sum(link.length for link in links[length // WIDTH :])
        assert sum(n for file, n in contents.unacknowledged.items() if file != "log/chain") == rest or contents.problems
    chain.unlink()
    assert read_log(run, RUN).problems[0] == ("log/chain", None, "is missing")


def test_a_torn_chain_ends_with_zeros_or_a_beginning(run):
    chain = run / "log" / "chain"
    data = chain.read_bytes()
    for tail in (
        b"\0",
        b"\0" * 500,
        b"00000",
        b"0000000008 st",
        b"0000000008 log/0",
        data[: WIDTH - 1].replace(b"1", b"8", 1),
        b"0\0",
    ):
        chain.write_bytes(data + tail)
        contents = read_log(run, RUN)
        assert (contents.problems, contents.unacknowledged) == ((), {"log/chain": len(tail)})
    for tail in (b"x", b"0000000009", b"\0x", b"0" * WIDTH, b"\0" * 500 + data[-WIDTH:], b"\0" * 2**21):
        chain.write_bytes(data + tail)
        assert read_log(run, RUN).problems[0][:2] == ("log/chain", 8)


def test_flipped_bits_in_torn_tails_are_reported_or_change_nothing(tmp_path):
    small_run(tmp_path, closed=False)
    torn = LogWriter(tmp_path, RUN, read_log(tmp_path, RUN))
    torn.append(columns(9, 12))  # never acknowledged
    with (tmp_path / "log" / "chain").open("ab") as chain:
        chain.write(b"0000000007 log/000002.arrow 000")
    links = read_log(tmp_path, RUN).links
    for file, length in read_log(tmp_path, RUN).unacknowledged.items():
        data = (tmp_path / file).read_bytes()
        for bit in range(8 * (len(data) - length), 8 * len(data), 1 if file == "log/chain" else 7):
            changed = bytearray(data)
            changed[bit // 8] ^= 1 << bit % 8
            (tmp_path / file).write_bytes(changed)
            contents = read_log(tmp_path, RUN)
            assert contents.links == links
            assert contents.problems == () or contents.problems[0][:2] == ("log/chain", len(links) + 1)
        (tmp_path / file).write_bytes(data)


def test_lines_of_the_chain_cannot_be_moved_or_left_out(run):
    chain = run / "log" / "chain"
    lines = [line for line, *_ in chain_lines(run)]
    for order in itertools.permutations(range(4)):
        if order != (0, 1, 2, 3):
            chain.write_text("".join([lines[i] for i in order] + lines[4:]))
            moved = next(i for i, j in enumerate(order) if i != j)
            assert read_log(run, RUN).problems[0][:2] == ("log/chain", moved + 1)


def test_another_run_has_another_chain(run):
    assert "another id" in read_log(run, "ff").problems[0].what


def test_further_files_are_reported(run):
    data = bytearray((run / "states.arrow").read_bytes())
    data[100] ^= 1
    (run / "states.arrow").write_bytes(data)
    (run / "log" / "000002.arrow").unlink()
    assert [(p.file, p.batch) for p in read_log(run, RUN).problems] == [("states.arrow", 1), ("log/000002.arrow", None)]


def test_files_that_no_link_names_are_reported(run):
    for name in ("000004.arrow", "notes", "000000.arrow"):
        (run / "log" / name).touch()
        assert read_log(run, RUN).problems == ((f"log/{name}", None, "belongs to no link of the chain"),)
        (run / "log" / name).unlink()
    (run / "log" / "000003.arrow").write_bytes(b"begun")
    contents = read_log(run, RUN)
    assert (contents.problems, contents.unacknowledged) == ((), {"log/000003.arrow": 5})


@pytest.mark.parametrize("name", ["log", "log/chain", "log/000001.arrow", "states.arrow", "log/000003.arrow"])
def test_links_and_pipes_are_refused(run, tmp_path, name):
    path = run / name
    elsewhere = tmp_path / "elsewhere"
    if path.exists():
        path.rename(elsewhere)
    else:
        elsewhere.touch()
    path.symlink_to(elsewhere)
    assert read_log(run, RUN).problems
    with pytest.raises(Damaged):
        LogWriter(run, RUN, read_log(run, RUN))
    path.unlink()
    os.mkfifo(path)
    assert read_log(run, RUN).problems


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("torn", [True, False])
def test_appending_after_a_restart(tmp_path, closed, torn):
    small_run(tmp_path, closed)
    if torn:
        for name in ("log/chain", "log/000002.arrow", "log/000003.arrow", "states.arrow"):
            with (tmp_path / name).open("ab") as file:
                file.write(b"\0" * 20)
    contents = read_log(tmp_path, RUN)
    assert len(contents.unacknowledged) == 4 * torn
    writer = LogWriter(tmp_path, RUN, contents)
    writer.append(columns(9, 12))
    writer.append_names(names(9, 10))
    assert writer.sync() == 12
    writer.close()
    contents = read_log(tmp_path, RUN)
    assert (contents.problems, contents.unacknowledged, contents.closed) == ((), {}, True)
    assert_rows(contents, 0, 12)
    assert len(list(contents.names())) == 5
    tables = [pa.ipc.open_stream(path).read_all() for path in data_files(tmp_path)]
    assert [table.num_rows for table in tables] == ([5, 6, 3, 3] if closed else [5, 6, 6])


def test_resuming_a_closed_log_without_writing_changes_nothing(written, run):
    LogWriter(run, RUN, read_log(run, RUN)).close()
    assert parts_of(run) == parts_of(written)


def test_names_alone_reopen_a_closed_log(run):
    writer = LogWriter(run, RUN, read_log(run, RUN))
    writer.append_names(names(9, 10))
    writer.sync()
    assert not read_log(run, RUN).closed
    writer.close()
    contents = read_log(run, RUN)
    assert (contents.closed, contents.rows, contents.problems) == (True, 9, ())


def test_damage_is_not_appended_to(run):
    (run / "log" / "000002.arrow").write_bytes(b"")
    with pytest.raises(Damaged, match=r"log/000002\.arrow, batch 6"):
        LogWriter(run, RUN, read_log(run, RUN))


def test_a_file_that_changed_after_it_was_verified(run):
    contents = read_log(run, RUN)
    with (run / "states.arrow").open("ab") as file:
        file.write(b"x")
    writer = LogWriter(run, RUN, contents)
    writer.append_names(names(0, 1))
    with pytest.raises(Damaged, match="changed"):
        writer.sync()


def test_a_second_log_is_refused(run):
    with pytest.raises(InputError, match="has a log already"):
        LogWriter(run, RUN)
    with pytest.raises(InputError, match="expected those of"):
        LogWriter(run, "ff", read_log(run, RUN))


@pytest.mark.parametrize(
    "change",
    [
        {"state": np.array([2**31])},
        {"state": np.array([0.5])},
        {"flags": np.array([256])},
        {"walker": np.array([-1])},
        {"action": np.array([0, 1])},
        {"other": np.array([0])},
        {"state": np.array(["one"])},
        {"state": np.array([None])},
        {"state": np.array([10**30])},
        {"state": np.array([np.nan])},
    ],
    ids=range(10),
)
def test_columns_that_do_not_fit_are_refused_and_harm_nothing(tmp_path, change):
    writer = LogWriter(tmp_path, RUN)
    with pytest.raises(InputError, match="columns"):
        writer.append({**columns(0, 1), **change})
    with pytest.raises(InputError, match="columns"):
        writer.append({"state": np.array([0])})
    writer.append(columns(0, 3))
    writer.close()
    assert_rows(read_log(tmp_path, RUN), 0, 3)


@pytest.mark.parametrize(
    "row",
    [
        (0, "other", 0, "0", "0", None),
        (0, "state", 2**63, "0", "0", None),
        (0.5, "state", 0, "0", "0", None),
        (0, "state", 0, "\ud800", "0", None),
        (0, "state", 0, 0, "0", None),
        (0, "state", 0, "0", "0", [2**31]),
        (0, "state", 0, "0" * 2**25, "0", None),
    ],
    ids=range(7),
)
def test_names_that_do_not_fit_are_refused_and_harm_nothing(tmp_path, row):
    writer = LogWriter(tmp_path, RUN)
    with pytest.raises(InputError, match="names"):
        writer.append_names([row])
    writer.append_names([(0, "action", np.int64(3), "0", "0", np.array([1, 2]))])
    writer.close()
    assert list(read_log(tmp_path, RUN).names()) == [(0, "action", 3, "0", "0", (1, 2))]


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
    assert set(calls) == {("fsync", "log"), ("fsync", ".")}  # the names of the first segment and of the chain
    calls.clear()
    writer.append(columns(0, 3))
    writer.append_names(names(0, 1))
    writer.append(columns(3, 5))
    writer.sync()
    log_file, names_file, chain = "log/000001.arrow", "states.arrow", "log/chain"
    assert calls[:3] == [("write", log_file), ("write", log_file), ("write", names_file)]
    assert set(calls[3:5]) == {("fsync", log_file), ("fsync", names_file)}
    assert calls[5:] == [("fsync", "."), ("write", chain), ("fsync", chain)]
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
from gosprl.runs.log import LogWriter, read_log

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
    done = subprocess.run(
        [sys.executable, "-c", LIVES, str(tmp_path), RUN], capture_output=True, text=True, check=True, timeout=60
    )
    lives = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lives) == 12
    for acknowledged, rows, problems in lives:
        assert problems == []
        assert rows >= acknowledged
    contents = read_log(tmp_path, RUN)
    np.testing.assert_array_equal(rows_read(contents)["state"], np.arange(contents.rows))
    assert len(list((tmp_path / "log").glob("*.arrow"))) > 2


def test_a_prefix_is_copied_without_touching_the_source(written, run, tmp_path):
    data = bytearray((run / "log" / "000002.arrow").read_bytes())
    data[-20] ^= 1
    (run / "log" / "000002.arrow").write_bytes(data)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    contents = read_log(run, RUN)
    copy_prefix(contents, tmp_path / "repaired")
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    repaired = read_log(tmp_path / "repaired", RUN)
    assert (repaired.problems, repaired.unacknowledged, repaired.digest) == ((), {}, contents.digest)
    assert parts_of(tmp_path / "repaired") == parts_of(written)[:5]
    assert_rows(repaired, 0, 6)
    with pytest.raises(InputError, match="already"):
        copy_prefix(contents, tmp_path / "repaired")
    (run / "log" / "000001.arrow").write_bytes(b"")
    with pytest.raises(Damaged):
        copy_prefix(contents, tmp_path / "other")


def test_what_changes_after_verification_is_not_decoded(run):
    contents = read_log(run, RUN)
    for path in data_files(run):
        data = bytearray(path.read_bytes())
        data[-30] ^= 1
        path.write_bytes(data)
    with pytest.raises(Damaged, match="not those that were written"):
        list(contents.batches())
    with pytest.raises(Damaged, match="not those that were written"):
        list(contents.names())


def decode(directory, parts):
    """Read everything from a log with a valid chain."""
    write_chained(directory, parts)
    contents = read_log(directory, RUN)
    assert not contents.problems
    return list(contents.batches()), list(contents.names())


def stream(batch, compression="zstd", end=True):
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()[: None if end else -8]


def table_of(rows=3):
    data = {"walker": np.zeros(rows), "order": np.zeros(rows), **columns(0, rows)}
    return pa.record_batch([pa.array(data[f.name]).cast(f.type) for f in LOG], schema=LOG)


FIRST = "log/000001.arrow"


def test_batches_of_other_programs_are_read(tmp_path):
    (batch,), _ = decode(tmp_path / "x", [(FIRST, stream(table_of(), end=False), 3)])
    np.testing.assert_array_equal(batch["state"], [0, 1, 2])


def test_bombs_are_refused_before_anything_is_allocated(written, tmp_path):
    parts = parts_of(written)
    allocated = pa.default_memory_pool().max_memory()
    widths = [24, 8 * 3, 3 * 4, 3, 2 * 8, 3 * 2, 10, 2, 8]  # decoded sizes that occur in the small run
    refused = 0
    for i, (file, data, rows) in enumerate(parts):
        for place in range(0, len(data) - 8, 8):
            if struct.unpack_from("<q", data, place)[0] not in widths or data[place + 8 : place + 12] == b"\0\0\0\0":
                continue
            bomb = data[:place] + struct.pack("<q", 100 * 2**30) + data[place + 8 :]
            with pytest.raises(Damaged) as error:
                decode(tmp_path / f"{i} {place}", [*parts[:i], (file, bomb, rows), *parts[i + 1 :]])
            assert (error.value.file, error.value.batch) == (file, i + 1)
            refused += "would take" in str(error.value)
    assert refused > 20
    assert pa.default_memory_pool().max_memory() <= max(allocated, 2**20)


def test_rows_are_those_of_the_link(tmp_path):
    for rows in (2, 4, 2**20):
        with pytest.raises(Damaged, match=f"expected {rows} rows, got 3"):
            decode(tmp_path / str(rows), [(FIRST, stream(table_of(), end=False), rows)])


@pytest.mark.parametrize(
    "data",
    [
        stream(table_of(), "lz4", end=False),
        stream(table_of(), None, end=False),
        stream(table_of()),  # with an end marker that has no link of its own
        stream(table_of().rename_columns(list("abcdefg")), end=False),
        stream(table_of().select([0, 1, 2]), end=False),
        stream(pa.record_batch([pa.array(["a", None, "a"]).dictionary_encode()], ["x"]), end=False),
        stream(table_of(), end=False)[:-8],
        LOG.serialize().to_pybytes(),
        LOG.serialize().to_pybytes() * 2,
        b"\0" * 100,
        b"\xff" * 100,
        b"\xff\xff\xff\xff\xff\xff\xff\x7f" + b"\0" * 100,
        b"not Arrow",
        b"x",
    ],
    ids=range(14),
)
def test_other_streams_are_refused(tmp_path, data):
    with pytest.raises(Damaged, match=r"log/000001\.arrow, batch 1: "):
        decode(tmp_path / "x", [(FIRST, data, 3)])


def test_names_of_unknown_kinds_are_refused(tmp_path):
    values = {"event": [0], "kind": ["other"], "index": [0], "key": [""], "observation": [""], "actions": [None]}
    batch = pa.RecordBatch.from_pydict(values, schema=NAMES)
    with pytest.raises(Damaged, match="unknown kind"):
        decode(tmp_path / "x", [("states.arrow", stream(batch, end=False), 1)])


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        ([("log/000002.arrow", b"x", 1)], "segment 1"),
        ([(FIRST, b"x", 1), ("log/000002.arrow", b"x", 1)], "segment 1"),
        ([(FIRST, END, 0), (FIRST, b"x", 1)], "segment 2"),
        ([(FIRST, b"x", 2**20 + 1)], "no batch has"),
        ([(FIRST, b"", 0)], "no batch has"),
        ([("states.arrow", END, 0)], "end marker"),
        ([(FIRST, b"12345678", 0)], "end marker"),
    ],
    ids=range(7),
)
def test_valid_chains_of_impossible_links_are_refused(tmp_path, parts, what):
    write_chained(tmp_path / "x", parts)
    assert what in read_log(tmp_path / "x", RUN).problems[0].what


def mutated(data, rng):
    changed = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        changed[rng.integers(len(changed))] = rng.choice([0, 1, 127, 128, 255, rng.integers(256)])
    return bytes(changed)


def test_mutated_batches_with_a_valid_chain_never_crash(written, tmp_path):
    parts = parts_of(written)[:4]
    rng = np.random.default_rng(3)
    read = refused = 0
    for trial in range(2000):
        changed = list(parts)
        file, data, rows = changed[trial % 4]
        changed[trial % 4] = file, mutated(data, rng), rows
        try:
            batches, all_names = decode(tmp_path / "x", changed)
        except Damaged as error:
            refused += (error.file, error.batch) == (file, trial % 4 + 1)
        else:
            read += (sum(len(batch["state"]) for batch in batches), len(all_names)) == (6, 4)
    assert read + refused == 2000
    assert min(read, refused) > 100


def test_importing_the_package_does_not_import_arrow():
    code = "import sys, gosprl, gosprl.runs; sys.exit('pyarrow' in sys.modules)"
    root = str(Path(log.__file__).parents[2])
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=root).returncode == 0
