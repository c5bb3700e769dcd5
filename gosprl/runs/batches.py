"""Batches of the log and of the names as messages of Arrow streams: encoded, and decoded after checks."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from numpy.typing import NDArray

from gosprl.runs.chain import END, Link, chunks, next_digest
from gosprl.runs.claims import check_claims, unpack
from gosprl.runs.files import Damaged
from gosprl.runs.notes import Notes, notes_of
from gosprl.runs.places import Place
from gosprl.runs.schemas import LOG, PREFIXES

_WRITTEN = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1), use_threads=False)


class Decoded(NamedTuple):
    """A batch, and what a fleet says besides its rows; None: it says nothing."""

    batch: Any
    notes: Notes | None


def encoded(batch: Any, with_schema: bool, metadata: Mapping[bytes, bytes] | None = None) -> memoryview:
    """Return the message of a batch, as a stream of its own without the end marker, and perhaps without the schema.

    A stream of several batches has exactly these messages, so a stream can be continued after a restart. `metadata` is
    the custom metadata of the message.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_WRITTEN) as stream:
        stream.write_batch(batch, metadata)
    begin = 0 if with_schema else len(PREFIXES[batch.schema])
    return memoryview(sink.getvalue())[begin : -len(END)]


def decoded(directory: Place, link: Link, previous: str, schema: pa.Schema) -> Decoded:
    """Return a batch, after its bytes were verified and its claims were checked."""
    try:
        data = b"".join(chunks(directory, link))
        if next_digest(previous, link.fields, [data]) != link.digest:
            raise ValueError("the bytes are not those that were written")
        message = _without_schema(data, schema) if link.offset == 0 else data
        check_claims(message, link.rows, schema)
        return _batch_of(message, schema)
    except Damaged as error:
        raise Damaged(link.file, link.number, error.what) from None
    except Exception as error:  # whatever Arrow raises is about the bytes
        raise Damaged(link.file, link.number, f"cannot be decoded: {error!s:.200}") from None


def _without_schema(data: bytes, schema: pa.Schema) -> bytes:
    """Return what follows the schema, which has to be ours; other versions of Arrow may write it with other bytes."""
    if data.startswith(PREFIXES[schema]):
        return data[len(PREFIXES[schema]) :]
    end = 8 + unpack("<I", data, 4)
    if end > len(data) or not pa.ipc.read_schema(pa.py_buffer(data[:end])).equals(schema):
        raise ValueError("the schema is not that of this file")
    return data[end:]


def _batch_of(message: bytes, schema: pa.Schema) -> Decoded:
    options = pa.ipc.IpcReadOptions(use_threads=False)
    stream = pa.ipc.open_stream(pa.py_buffer(PREFIXES[schema] + message), options=options)
    batch, metadata = stream.read_next_batch_with_custom_metadata()
    batch.validate(full=True)
    for field, column in zip(schema, batch.columns, strict=True):
        if column.null_count and not field.nullable:
            raise ValueError(f"{field.name} has missing values")
    return Decoded(batch, notes_of(None if metadata is None else dict(metadata)))


def columns_of(batch: Any) -> dict[str, NDArray[Any]]:
    """Return the columns of a batch of the log, as read-only arrays."""
    return {field.name: batch.column(i).to_numpy(zero_copy_only=True) for i, field in enumerate(LOG)}
