"""What a batch of a log claims to be, checked before Arrow decodes it.

The chain of digests does not prove who wrote a batch, and Arrow allocates as much memory as the metadata of a batch
states. Therefore the memory that decoding needs is computed here from the metadata, and compared with what the rows of
the batch can need. The metadata is a flatbuffer, laid out as in Arrow's Message.fbs.
"""

import struct

import pyarrow as pa

from gosprl.runs.files import MIB
from gosprl.runs.schemas import DTYPES, LOG

_BEGIN = b"\xff\xff\xff\xff"  # of a message
_METADATA_VERSION, _RECORD_BATCH, _ZSTD = 4, 3, 1  # as numbered in Arrow's Message.fbs
_NAMES_NODES, _NAMES_BUFFERS = 7, 17
_NAMES_BYTES = 64 * MIB  # of a decoded batch of names
_METADATA_BYTES = 9 * MIB  # of a message, with the notes of a fleet (`gosprl.runs.notes`)


def unpack(form: str, data: bytes | memoryview, position: int) -> int:
    """Return a number from bytes; an error if it is outside of them."""
    if position < 0:  # struct would count from the end
        raise ValueError("the metadata points outside of itself")
    return struct.unpack_from(form, data, position)[0]  # type: ignore[no-any-return]


class _Table:
    """A table of a flatbuffer. Every read is bounds-checked: `struct` checks the end, `unpack` the beginning."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._position = data, position
        self._fields = position - unpack("<i", data, position)
        self._size = unpack("<H", data, self._fields)

    def number(self, field: int, form: str) -> int:
        """Return a number; absent ones are 0."""
        place = self._place(field)
        return 0 if place is None else unpack(form, self._data, place)

    def table(self, field: int) -> "_Table":
        """Return a table inside this one."""
        return _Table(self._data, self._target(field))

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """Return a vector of structs with two numbers each."""
        place = self._target(field)
        count = unpack("<I", self._data, place)
        if count > 64:
            raise ValueError(f"the metadata has {count} buffers")
        numbers = struct.unpack_from(f"<{2 * count}q", self._data, place + 4)
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def _place(self, field: int) -> int | None:
        slot = 4 + 2 * field
        offset = unpack("<H", self._data, self._fields + slot) if slot + 2 <= self._size else 0
        return self._position + offset if offset else None

    def _target(self, field: int) -> int:
        place = self._place(field)
        if place is None:
            raise ValueError("the metadata is incomplete")
        return place + unpack("<I", self._data, place)


def check_claims(message: bytes, rows: int, schema: pa.Schema) -> None:
    """Raise unless a message is a batch of so many rows that needs no more memory than they can need.

    A compressed buffer begins with its decoded size, which Arrow allocates before it looks at the rest.
    """
    size = unpack("<I", message, 4)
    metadata, body = message[8 : 8 + size], memoryview(message)[8 + size :]
    if message[:4] != _BEGIN or len(metadata) != size or size % 8 or size > _METADATA_BYTES:
        raise ValueError("the message has no proper beginning")
    header = _Table(metadata, unpack("<I", metadata, 0))
    if (header.number(0, "<h"), header.number(1, "<B")) != (_METADATA_VERSION, _RECORD_BATCH):
        raise ValueError("the message is no batch")
    if header.number(3, "<q") != len(body):
        raise ValueError("the body has another length than the metadata says")
    _check_batch(header.table(2), body, rows, schema)


def _check_batch(batch: _Table, body: memoryview, rows: int, schema: pa.Schema) -> None:
    if batch.number(0, "<q") != rows:
        raise ValueError(f"expected {rows} rows, got {batch.number(0, '<q')}")
    compression = batch.table(3)
    if (compression.number(0, "<b"), compression.number(1, "<b")) != (_ZSTD, 0):
        raise ValueError("the buffers are not compressed with zstd")
    nodes = batch.pairs(1)
    sizes = [_decoded_size(body, *buffer) for buffer in batch.pairs(2)]
    if schema is LOG:
        expected = [size for dtype in DTYPES.values() for size in (0, rows * dtype.itemsize)]
        sound = nodes == [(rows, 0)] * len(LOG) and sizes == expected
    else:
        counts = (len(nodes), len(sizes)) == (_NAMES_NODES, _NAMES_BUFFERS)
        sound = counts and nodes[:5] == [(rows, 0)] * 5 and sum(sizes) <= _NAMES_BYTES
    if not sound:
        raise ValueError(f"the buffers do not fit {rows} rows: decoded, they would take {sum(sizes)} bytes")


def _decoded_size(body: memoryview, offset: int, length: int) -> int:
    """Return how many bytes Arrow allocates for a buffer."""
    if not 0 <= offset <= offset + length <= len(body):
        raise ValueError("a buffer is outside of the body")
    if length == 0:
        return 0
    if length < 8:
        raise ValueError("a compressed buffer has no size")
    size = unpack("<q", body, offset)
    if size < -1:
        raise ValueError("a buffer has a negative size")
    return length - 8 if size == -1 else size  # -1: the rest is not compressed
