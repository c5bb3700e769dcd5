"""Small logs, written with `LogWriter`, and logs with a valid chain that is computed with hashlib alone."""

import hashlib
import zlib

import numpy as np

from gosprl.runs.schemas import LOG
from gosprl.runs.writing import LogWriter

RUN = "00ab12"
FIRST = "log/000001.arrow"
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
