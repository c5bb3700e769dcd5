"""Reading a log: every change of a byte is reported with file and batch, and a torn tail is no damage."""

import hashlib
import os
import shutil

import pytest
from small_logs import RUN, WIDTH, assert_rows, chain_lines, columns, data_files, names, small_run

from gosprl.errors import InputError
from gosprl.runs.files import Damaged
from gosprl.runs.reading import read_log
from gosprl.runs.writing import LogWriter


def test_everything_comes_back(run):
    contents = read_log(run, RUN)
    assert (contents.rows, contents.problems, contents.unacknowledged, contents.closed) == (9, (), {}, True)
    assert_rows(contents, 0, 9)
    assert [tuple(name) for name in contents.names()] == names(0, 2) + names(3, 5)


@pytest.mark.parametrize(("begin", "end"), [(0, 9), (2, 4), (3, 6), (4, None), (8, 100), (9, None), (5, 5)])
def test_a_part_of_the_rows(run, begin, end):
    states = [s for batch in read_log(run, RUN).batches(begin, end) for s in batch["state"]]
    assert states == list(range(9))[begin:end]


def test_a_directory_without_a_log_is_empty(tmp_path):
    contents = read_log(tmp_path, RUN)
    assert (contents.rows, contents.problems, contents.closed) == (0, (), False)
    with pytest.raises(InputError, match="which is none"):
        read_log(tmp_path / "missing", RUN)


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
        whole = length // WIDTH
        while whole and links[whole - 1].file == "states.arrow":  # names that no rows follow
            whole -= 1
        assert contents.links == links[:whole]
        assert contents.digest == (links[whole - 1].digest if whole else hashlib.sha256(RUN.encode()).hexdigest())
        assert not contents.closed
        assert contents.unacknowledged.get("log/chain", 0) == length - whole * WIDTH
        rest = sum(link.length for link in links[whole:])
        assert sum(n for file, n in contents.unacknowledged.items() if file != "log/chain") == rest or contents.problems
    chain.unlink()
    assert read_log(run, RUN).problems[0] == ("log/chain", None, "is missing")


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
