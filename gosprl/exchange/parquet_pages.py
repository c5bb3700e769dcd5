"""What the pages of a Parquet file need once they are decoded, from their headers, before any is decoded.

A page of a few bytes can stand for gigabytes: values are compressed, repeated by number (a dictionary), or said to be
like the one before; and the metadata at the end of a file need not agree with its pages. So the header of each page is
read, as parquet.thrift defines it, and what Arrow will allocate for it is bounded.

A column with values of a fixed size takes what its rows take. Text that stands in full takes what its pages take, and
text by number stays by number (`Plan.by_number`). Elsewhere, each value may be as long as the page that it comes from.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.exchange.decoding import BUDGET

MOST_VALUES = 2**23  # in a row group, of a column of lists
LONGEST_HEADER = 2**24  # bytes, as in Arrow
LONGEST_FOOTER = 2**26  # bytes, of the metadata at the end
_DAMAGED = (AttributeError, IndexError, KeyError, OSError, TypeError, ValueError)
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3  # types of pages
_BY_NUMBER = {2, 8}  # encodings: PLAIN_DICTIONARY, RLE_DICTIONARY
_ENCODINGS = {0, 3, 5, 9} | _BY_NUMBER  # PLAIN, RLE, DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT
_OF_ANY_LENGTH = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_DEEPEST = 16  # structs in structs
WAY_OUT = "write the file with smaller pages and row groups, as pyarrow.parquet.write_table does by default"


class Unbounded(ValueError):
    """What a file would take once decoded is too much, or cannot be known."""


class Page(NamedTuple):
    """What the header of a page says."""

    kind: int
    size: int  # bytes, uncompressed
    values: int
    encoding: int


@dataclass(frozen=True)
class Plan:
    """How a file can be read in bounded memory.

    Attributes
    ----------
    rows
        The largest number of rows of a batch.
    by_number
        The columns of text to be read as numbers and a dictionary.
    by_group
        Whether no batch may have rows of two row groups.
    """

    rows: int
    by_number: list[str]
    by_group: bool


def plan(file: BinaryIO, parquet: Any, names: list[str], rows: int) -> Plan:
    """Return how columns can be read in batches of at most `rows` rows.

    Parameters
    ----------
    file
        The file, open for reading.
    parquet
        The `pyarrow.parquet.ParquetFile` of it.
    names
        The columns that will be read.
    rows
        The rows wanted for a batch.

    Raises
    ------
    Unbounded
        The columns cannot be decoded in bounded memory.
    """
    metadata = parquet.metadata
    leaves = [i for i in range(metadata.num_columns) if _top(metadata.schema.column(i).path) in names]
    groups = _groups(file)
    columns = {i: list(_chunks(file, groups, i, metadata.schema.column(i).path)) for i in leaves}
    held = sum(_held(chunks) for chunks in columns.values())
    if held > BUDGET:
        raise Unbounded(f"expected pages of at most {BUDGET:,} bytes in all columns, got {held:,}; {WAY_OUT}")
    by_number, by_group = [], False
    for i, chunks in columns.items():
        leaf = metadata.schema.column(i)
        is_text = leaf.physical_type in _OF_ANY_LENGTH
        if leaf.max_repetition_level:
            _check_lists(leaf.path, chunks, is_text)
            by_group = True
        elif is_text:
            numbered = leaf.physical_type == "BYTE_ARRAY" and any(_longest(pages) for pages in chunks)
            by_number += [leaf.path] if numbered else []
            rows = _rows_of_texts(chunks, rows, numbered)
    return Plan(rows, by_number, by_group)


def _top(path: str) -> str:
    return path.partition(".")[0]


def _chunks(file: BinaryIO, groups: list[Any], column: int, path: str) -> Iterator[list[Page]]:
    """Yield the pages of a column, by row group."""
    for group in groups:
        try:
            yield list(_pages(file, group[1][column][3]))
        except Unbounded as error:
            raise Unbounded(f"column {path:.60}: {error}") from None
        except _DAMAGED as error:
            raise Unbounded(f"column {path:.60}: the header of a page is damaged: {error}") from None


def _groups(file: BinaryIO) -> list[Any]:
    """Return the row groups as the end of the file has them: pyarrow ends the process where one is damaged."""
    size = file.seek(-8, 2)
    length = int.from_bytes(file.read(4), "little")
    if length > min(size, LONGEST_FOOTER):
        raise Unbounded(f"the metadata at its end claim {length:,} bytes")
    file.seek(-8 - length, 2)
    try:
        groups: list[Any] = _Compact(file.read(length)).struct()[4]
    except _DAMAGED as error:
        raise Unbounded(f"the metadata at its end are damaged: {error}") from None
    return groups


def _pages(file: BinaryIO, chunk: dict[int, Any]) -> Iterator[Page]:
    """Yield the pages that Arrow reads of a column chunk, after checking what their headers claim."""
    values, length, place, dictionary = chunk[5], chunk[7], chunk[9], chunk.get(11, 0)
    if 0 < dictionary < place:
        place = dictionary
    end, seen = place + length, 0
    while seen < values and place < end:
        header, used = _header(file, place)
        page = _page(header)
        if page.kind in (_DATA, _DATA_V2, _DICTIONARY):
            if page.encoding not in _ENCODINGS:
                raise Unbounded(
                    "expected values in full or by number, got DELTA_BYTE_ARRAY or another encoding whose size is not "
                    "known before; write the file with the default encodings of pyarrow"
                )
            if page.kind == _DICTIONARY and page.values > max(1, page.size):
                raise Unbounded(f"a dictionary of {page.size:,} bytes claims {page.values:,} values")
            yield page
        seen += page.values if page.kind in (_DATA, _DATA_V2) else 0
        place += used + header[3]


def _page(header: dict[int, Any]) -> Page:
    kind, size, compressed = header[1], header[2], header[3]
    own = header.get({_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}.get(kind, -1), {})
    values, encoding = own.get(1, 0), own.get(4 if kind == _DATA_V2 else 2, 0)
    if min(size, compressed, values) < 0:
        raise KeyError(f"it claims {size} and {compressed} bytes, {values} values")
    return Page(kind, size, values, encoding)


def _held(chunks: list[list[Page]]) -> int:
    """Return what Arrow holds of a column at a time: a dictionary and a page."""
    return max((_longest(pages) + max((page.size for page in _data(pages)), default=0) for pages in chunks), default=0)


def _longest(pages: list[Page]) -> int:
    """Return the bytes of the largest dictionary, which no value of it exceeds."""
    return max((page.size for page in pages if page.kind == _DICTIONARY), default=0)


def _data(pages: list[Page]) -> list[Page]:
    return [page for page in pages if page.kind != _DICTIONARY]


def _check_lists(path: str, chunks: list[list[Page]], is_text: bool) -> None:
    """Raise unless all values of a row group fit: a row may have any number of them."""
    for pages in chunks:
        values = sum(page.values for page in _data(pages))
        if values > MOST_VALUES or (is_text and values * _longest(pages) > BUDGET):
            raise Unbounded(
                f"column {path:.60}: expected lists of at most {MOST_VALUES:,} values in a row group, and of short "
                f"texts, got {values:,}; {WAY_OUT}"
            )


def _rows_of_texts(chunks: list[list[Page]], rows: int, by_number: bool) -> int:
    """Return how many consecutive rows of a column, at most `rows`, take no more than the budget."""
    pages = [page for part in chunks for page in part]
    longest = _longest(pages)
    first = np.cumsum([0, *(page.values * (page.kind != _DICTIONARY) for page in pages)])
    size = np.cumsum([0, *(page.size for page in pages)])
    while rows > 1 and _most(first, size, rows) + longest * (1 if by_number else rows) > 2 * BUDGET:
        rows //= 2
    return rows


def _most(first: NDArray[np.int64], size: NDArray[np.int64], rows: int) -> int:
    """Return the bytes of the pages that so many consecutive rows lie in, at most."""
    begin = np.arange(len(first) - 1)
    end = np.searchsorted(first, first[begin + 1] + rows - 1, side="left")
    return int(np.max(size[np.minimum(end, len(size) - 1)] - size[begin], initial=0))


def _header(file: BinaryIO, place: int) -> tuple[dict[int, Any], int]:
    """Return the fields of the header of a page, and its bytes."""
    for size in (2**8, 2**16, LONGEST_HEADER):
        file.seek(place)
        data = file.read(size)
        reader = _Compact(data)
        try:
            return reader.struct(), reader.place
        except IndexError:
            if len(data) < size:
                raise
    raise IndexError(f"it has more than {LONGEST_HEADER} bytes")


class _Compact:
    """Reads structs of Thrift's compact protocol; an `IndexError` if the bytes end before."""

    def __init__(self, data: bytes) -> None:
        self._data, self.place = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            delta, kind = head >> 4, head & 15
            field = field + delta if delta else self._whole()
            found[field] = self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise KeyError("it is nested too deeply")
        if kind in (1, 2):  # a truth value is its own type
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._whole()
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._varint())
        if kind == 9:
            return self._list(depth + 1)
        if kind == 12:
            return self.struct(depth + 1)
        raise KeyError(f"it has a field of the type {kind}")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._varint()
        if size > len(self._data) - self.place:  # each element has a byte
            raise IndexError("it ends too early")
        return [self._byte() if head & 15 in (1, 2) else self._value(head & 15, depth) for _ in range(size)]

    def _byte(self) -> int:
        byte = self._data[self.place]
        self.place += 1
        return byte

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise KeyError("a number is too long")

    def _whole(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def _skip(self, size: int) -> None:
        self.place += size
        if self.place > len(self._data):
            raise IndexError("it ends too early")
