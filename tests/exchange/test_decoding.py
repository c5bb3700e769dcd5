"""Files from strangers: a few hundred bytes that claim gigabytes are refused, or counted, in bounded memory.

They are read in a process that has 1 GiB more than it has after its imports, which a reader that decodes what a file
claims exceeds.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gosprl
from gosprl.errors import InputError
from gosprl.exchange import decoding, npy, parquet_files, parquet_pages
from gosprl.exchange.decoding import Allowance
from gosprl.exchange.parquet_files import in_full, parquet_parts

ROOM = 2**30  # bytes
READ = """
import json, resource, sys
import pyarrow.parquet
import gosprl
from tests.exchange.test_decoding import Rooms, samples
samples({"observation": ["a"], "a": [0], "next_observation": ["a"]})
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + int(sys.argv[1]),) * 2)
for path in sys.argv[2:]:
    try:
        if "need" in path:
            gosprl.collect(Rooms(), path, actions=1, need_unknown="wait", max_steps=1, seed=0)
        said = samples(path)
    except gosprl.InputError as error:
        said = str(error)
    except MemoryError:
        said = "no memory"
    print(json.dumps(said), flush=True)
"""


class Rooms:
    """Two rooms whose names are texts."""

    def reset(self, seed=None):
        return "a", {}

    def step(self, action):
        return "b", 0.0, False, False, {}


def samples(data):
    """Return how many samples a source has."""
    found = gosprl.collect(Rooms(), 1, actions=1, max_steps=1, seed=0, data=data, data_order="collected")
    return int(found.model.visits.sum()) - found.steps - found.resets - 1  # its start


def by_number(text, rows):
    """One text, and rows that all are this text: a dictionary, and runs of equal numbers."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([text]))


def parquet(path, columns, **options):
    table = pa.table(columns)
    with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False, **options) as writer:
        writer.write_table(table)
    assert path.stat().st_size < 100_000  # small, whatever it claims
    return path


def rows_of(text, rows):
    whole = by_number(text, rows)
    return {"observation": whole, "a": np.zeros(rows, dtype=np.int64), "next_observation": whole}


def member(dtype, shape, data, pieces=1):
    """An array in a zip file: its header, and so many pieces of data."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False, "shape": shape})
    return [head.getvalue(), *[data] * pieces]


def npz(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, pieces in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                for piece in pieces:
                    file.write(piece)
    return path


ONE = member("<i8", (1,), bytes(8))
LONG = ("z" * 16_384).encode("utf-32-le")
FILES = {  # name -> (how it is written, what it has, what its reader says)
    "repeated.parquet": (parquet, rows_of("x" * 100_000, 131_072), 131_072),  # the first batch is 13 GB in full
    "page.parquet": (
        partial(parquet, use_dictionary=False, data_page_size=2**31 - 1),
        {"observation": ["x" * 500_000] * 700, "a": [0] * 700, "next_observation": ["a"] * 700},
        r"page.parquet: expected pages of at most 268,435,456 bytes in all columns, got 350,\d+,\d+; write the file",
    ),
    "before.parquet": (
        partial(parquet, use_dictionary=False, column_encoding={"observation": "DELTA_BYTE_ARRAY"}),
        {"observation": ["x" * 100_000] * 2000, "a": [0] * 2000, "next_observation": ["a"] * 2000},
        r"before.parquet: column observation: expected values in full or by number, got DELTA_BYTE_ARRAY .* write the",
    ),
    "list.parquet": (
        parquet,
        {"s": pa.array([np.zeros(40_000_000, dtype=np.int8)]), "a": [0], "s_next": ["a"]},
        r"column s\..*: expected lists of at most 8,388,608 values in a row group, .*, got 40,000,000; write the file",
    ),
    "text.parquet": (
        parquet,
        rows_of("x" * 20_000_000, 10),
        r"column observation: expected observations of at most 16,777,216 characters, got one of 20,000,000; give",
    ),
    "more.parquet": (
        parquet,
        {"s": ["a"], "a": [0], "s_next": ["a"], "more": pa.array([np.zeros(40_000_000, dtype=np.int8)])},
        "column 'more' is not known",
    ),
    "need.parquet": (
        parquet,
        {"observation": by_number("x" * 100_000, 65_536), "number": np.ones(65_536, dtype=np.int64)},
        r"need: .*need\.parquet, row 2: the same observation and action as in a row before",
    ),
    "need page.parquet": (
        partial(parquet, use_dictionary=False, data_page_size=2**31 - 1),
        {"observation": ["x" * 500_000] * 700, "number": [1] * 700},
        r"need: .*page\.parquet: expected pages of at most 268,435,456 bytes in all columns, got 350,\d+,\d+; write",
    ),
    "text.npz": (
        npz,
        {"s": member("<U100000000", (1,), bytes(400_000), 1000), "a": ONE, "s_next": ONE},
        r"column s: expected rows of 1 to 67,108,864 bytes, got <U100000000 \(1,\); use parquet for long texts",
    ),
    "nothing.npz": (
        npz,
        {"s": member("<i8", (2**30, 0), b""), "a": ONE, "s_next": ONE},
        r"column s: expected rows of 1 to 67,108,864 bytes, got int64 \(1073741824, 0\)",
    ),
    "header.npz": (
        npz,
        {"s": [b"\x93NUMPY\x02\x00", (2**31).to_bytes(4, "little"), b" " * 2**20], "a": ONE, "s_next": ONE},
        r"column s: its header claims 2147483648 bytes; at most 10000 are read",
    ),
    "rows.npz": (  # the columns of its one batch are 1.6 GB
        npz,
        {
            "s": member("<U16384", (12_000,), LONG, 12_000),
            "a": member("<i8", (12_000,), bytes(8), 12_000),
            "s_next": member("<U16384", (12_000,), LONG, 12_000),
        },
        12_000,
    ),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What the reader of each file says: the samples that it counted, or its error."""
    folder, root = tmp_path_factory.mktemp("files"), Path(__file__).parents[2]
    paths = [str(write(folder / name, content)) for name, (write, content, _) in FILES.items()]
    done = subprocess.run(
        [sys.executable, "-c", READ, str(ROOM), *paths],
        capture_output=True,
        text=True,
        timeout=1800,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(FILES, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("name", FILES)
def test_small_files_that_claim_gigabytes(name, said):
    expected = FILES[name][2]
    if isinstance(expected, int):
        assert said[name] == expected
    else:
        assert re.search(expected, str(said[name])), said[name]


def test_texts_of_an_npz_file_are_bounded_by_their_characters(tmp_path, monkeypatch):
    texts = member("<U1048576", (17,), "y".encode("utf-32-le") * 2**20, 17)
    path = npz(tmp_path / "x.npz", {"state": ONE, "action": ONE, "next_state": ONE, "observations": texts})
    monkeypatch.setattr(decoding, "CHARACTERS_A_BYTE", 1)
    monkeypatch.setattr(decoding, "CHARACTERS", 2**24)
    monkeypatch.setattr(npy, "BUDGET", 2**24)  # four texts at once
    with pytest.raises(InputError, match=r"column observations: expected observations of at most 16,777,216 char"):
        samples(path)
    monkeypatch.setattr(decoding, "CHARACTERS", 2**25)
    assert samples(path) == 1


def test_texts_in_full_are_handed_on_in_pieces(tmp_path, monkeypatch):
    path = parquet(tmp_path / "x.parquet", rows_of("x" * 1000, 5000))
    monkeypatch.setattr(parquet_files, "BUDGET", 10**6)
    parts = list(in_full(parquet_parts(path, 5000, "source")))
    assert max(part.nbytes for part in parts) < 1.1e6
    assert pa.Table.from_batches(parts)["observation"].to_pylist() == ["x" * 1000] * 5000


def test_different_observations_are_bounded_by_the_bytes_of_the_file(tmp_path, monkeypatch):
    """Sorted numbers take no bytes: a thousand rows or 10^9, the file has the same size."""
    monkeypatch.setattr(decoding, "STATES", 1000)
    path = tmp_path / "x.parquet"
    columns = {"s": np.arange(20_000), "a": np.zeros(20_000, dtype=np.int64), "s_next": np.arange(20_000)}
    parquet(
        path,
        columns,
        use_dictionary=False,
        column_encoding={"s": "DELTA_BINARY_PACKED", "s_next": "DELTA_BINARY_PACKED"},
    )
    with pytest.raises(InputError, match=r"at most 1,000 different observations in a file of 7\d\d bytes"):
        samples(path)


def test_what_is_in_memory_already_is_not_bounded(monkeypatch):
    monkeypatch.setattr(decoding, "STATES", 0)
    monkeypatch.setattr(decoding, "CHARACTERS", 0)
    assert samples({"observation": ["a", "b"], "a": [0, 0], "next_observation": ["b", "a"]}) == 2


def test_an_allowance_grows_with_the_file():
    small, large = Allowance("x", 10), Allowance("x", 2**25)
    large.text(decoding.LONGEST_TEXT)
    for _ in range(2**28 // 2**24):
        small.text(decoding.LONGEST_TEXT)
        large.text(decoding.LONGEST_TEXT)
    with pytest.raises(InputError, match="x: expected observations of at most 268,435,456 characters in all"):
        small.text(1)
    with pytest.raises(InputError, match="x: expected observations of at most 16,777,216 characters, got one of"):
        large.text(decoding.LONGEST_TEXT + 1)


@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}, {"compression": "snappy"}]
)
def test_honest_files_are_read_as_pyarrow_reads_them(options, tmp_path):
    """Pages of every kind, several row groups, gaps, and statistics in the headers of pages."""
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "s": [None if i % 7 == 0 else f"observation {i % 50}" for i in range(30_000)],
            "a": rng.integers(0, 4, 30_000),
            "reward": rng.random(30_000),
            "reset": rng.random(30_000) < 0.1,
            "s_next": [[int(i), 1] for i in rng.integers(0, 9, 30_000)],
        }
    )
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=7000, data_page_size=2**12, **options)
    parts = list(in_full(parquet_parts(tmp_path / "x.parquet", 4096, "data")))
    assert max(part.num_rows for part in parts) <= 4096
    assert pa.Table.from_batches(parts).cast(table.schema).equals(table)


def test_pages_are_counted_as_they_are_written(tmp_path):
    """Oracle: the values of a column chunk, which pyarrow's metadata have, and the rows of a table."""
    columns = {"x": [f"{i % 100}" for i in range(50_000)], "y": np.arange(50_000)}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=20_000, data_page_size=2**12)
    with (tmp_path / "x.parquet").open("rb") as raw:
        for column in range(2):
            chunks = list(parquet_pages._chunks(raw, parquet_pages._groups(raw), column, "x"))
            assert [sum(page.values for page in pages if page.kind != 2) for pages in chunks] == [
                20_000,
                20_000,
                10_000,
            ]


def test_damaged_files_are_refused_or_read(tmp_path):
    pq.write_table(pa.table({"s": ["a"], "a": [0], "s_next": ["b"]}), tmp_path / "x.parquet", compression="none")
    whole = (tmp_path / "x.parquet").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(200):
        data = bytearray(whole)
        data[rng.integers(4, len(data) - 8)] = rng.integers(256)
        (tmp_path / "x.parquet").write_bytes(data)
        with contextlib.suppress(InputError, pa.ArrowException, OSError):
            assert sum(part.num_rows for part in parquet_parts(tmp_path / "x.parquet", 10, "data")) == 1
