"""The chain of digests: hashlib computes the same one, and it covers all bytes."""

import itertools

import pytest
from small_logs import END, FIRST, RUN, WIDTH, chain_lines, data_files, parts_of, write_chained

from gosprl.runs.reading import read_log


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
