"""Batches made by a stranger, with a valid chain: nothing that they claim is believed.

Expected values come from outside: pyarrow writes the batches with its own calls.
"""

import struct

import numpy as np
import pyarrow as pa
import pytest
from small_logs import FIRST, RUN, columns, parts_of, write_chained

from gosprl.runs.files import Damaged
from gosprl.runs.reading import read_log
from gosprl.runs.schemas import LOG, NAMES


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
    names = ("states.arrow", stream(batch, end=False), 1)
    with pytest.raises(Damaged, match="unknown kind"):
        decode(tmp_path / "x", [names, (FIRST, stream(table_of(), end=False), 3)])


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
