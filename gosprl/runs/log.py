r"""The log of a run: every transition in order, in Arrow files whose bytes a chain of digests covers.

Files
-----
``log/000001.arrow``, ``log/000002.arrow``, ... (segments) have the transitions and ``states.arrow`` has the names of
states and actions. They are Arrow IPC streams with zstd-compressed buffers, which any Arrow implementation reads. A
stream has no checksums, so ``log/chain`` has a line of fixed width, a link, for each batch::

    number file offset length rows digest check\n

with ``digest_k = SHA-256(digest_{k-1} || the fields before the digest, as text || the bytes of the batch)``,
``digest_0 = SHA-256(run id)`` and ``check`` the CRC-32 of the line before it. The check tells a damaged line from
damaged data. The first batch of a file includes the schema; the end marker of a segment is a link of its own. The links
of a file are contiguous from its first byte.

Promises
--------
`LogWriter.sync` syncs the data, then writes the links, then syncs the chain. What it acknowledged survives a crash.
What a crash leaves behind the last link was never acknowledged: it is a torn tail, no damage, and is cut off when the
run is resumed. A torn chain ends with the beginning of a line, with zeros, or with both. Everything else that differs
is damage, reported with file and batch. A chain that was cut at the end of a line looks like a crash before the rest
was acknowledged; the rest of the data then shows up as unacknowledged.

Reading trusts nothing: the chain does not prove who wrote it. The memory that decoding needs is computed from the
metadata of a batch, and compared with what its rows can need, before Arrow sees it.
"""

import contextlib
import dataclasses
import hashlib
import operator
import os
import re
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gosprl.errors import GosprlError, InputError
from gosprl.runs.files import MIB, Damaged, disk, open_regular, sync_directory, synced, write_all

RESET, TERMINATED, TRUNCATED, CRASH, UNKNOWN, LATE = 1, 2, 4, 8, 16, 32  # bits of the flags
CHAIN, NAMES_FILE = "log/chain", "states.arrow"
KINDS = ("state", "action", "offer")
BATCH_ROWS = 2**20
LOG = pa.schema(
    [
        pa.field("walker", pa.uint16(), nullable=False),
        pa.field("order", pa.int32(), nullable=False),
        pa.field("state", pa.int32(), nullable=False),
        pa.field("action", pa.int32(), nullable=False),
        pa.field("next_state", pa.int32(), nullable=False),
        pa.field("reward", pa.float64(), nullable=False),
        pa.field("flags", pa.uint8(), nullable=False),
    ]
)
NAMES = pa.schema(
    [
        pa.field("event", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("index", pa.int64(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("observation", pa.string(), nullable=False),
        pa.field("actions", pa.list_(pa.field("item", pa.int32(), nullable=False))),
    ]
)
_DTYPES = {field.name: np.dtype(field.type.to_pandas_dtype()) for field in LOG}
_OPTIONAL = ("walker", "order")
_PREFIXES = {schema: schema.serialize().to_pybytes() for schema in (LOG, NAMES)}  # what a stream begins with
_END = b"\xff\xff\xff\xff\0\0\0\0"  # what a stream ends with
_WIDTH = 138  # bytes of a link
_LINE = re.compile(
    rb"(\d{10}) (states\.arrow    |log/\d{6}\.arrow) (\d{16}) (\d{10}) (\d{7}) ([0-9a-f]{64}) ([0-9a-f]{8})\n"
)
_SEGMENT = re.compile(r"log/(\d{6})\.arrow")
_BATCH_BYTES = 96 * MIB  # encoded; more than the largest batch of either schema
_NAMES_BYTES = 64 * MIB  # of a decoded batch of names
_NAMES_WRITTEN = 32 * MIB  # of texts and lists in a batch of names that is written: less, as other columns take room
_NAMES_ROWS = 2**16
_TAIL = MIB  # the longest torn tail of a chain
_CHUNK = MIB
_PROBLEMS = 100  # reported at most
_METADATA_VERSION, _RECORD_BATCH, _ZSTD = 4, 3, 1  # as numbered in Arrow's Message.fbs
_NAMES_NODES, _NAMES_BUFFERS = 7, 17


class Problem(NamedTuple):
    """Damage that was found: the file, relative to the run; the number of the batch; what is wrong."""

    file: str
    batch: int | None
    what: str


class Name(NamedTuple):
    """A row of ``states.arrow``; `event` is the number of rows of the log before it, `key` a text of `keys.text_of`."""

    event: int
    kind: str
    index: int  # type: ignore[assignment]  # hides the method of tuples
    key: str
    observation: str
    actions: tuple[int, ...] | None


@dataclasses.dataclass(frozen=True, slots=True)
class Link:
    """A line of the chain."""

    number: int
    file: str
    offset: int
    length: int
    rows: int
    digest: str

    @property
    def end(self) -> int:
        """The offset of what follows the batch."""
        return self.offset + self.length

    @property
    def fields(self) -> bytes:
        """The part of the line that the digest covers."""
        return f"{self.number:010d} {self.file:<16} {self.offset:016d} {self.length:010d} {self.rows:07d} ".encode()

    @property
    def line(self) -> bytes:
        """The whole line."""
        start = self.fields + self.digest.encode() + b" "
        return start + b"%08x\n" % zlib.crc32(start)


def _link_of(line: bytes) -> Link | None:
    """Return the link on a line; None if the line is damaged."""
    match = _LINE.fullmatch(line)
    if match is None or int(match[7], 16) != zlib.crc32(line[: match.start(7)]):
        return None
    file = match[2].decode().rstrip()
    return Link(int(match[1]), file, int(match[3]), int(match[4]), int(match[5]), match[6].decode())


def _first_digest(run_id: str) -> str:
    return hashlib.sha256(run_id.encode()).hexdigest()


def _next_digest(previous: str, fields: bytes, chunks: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.sha256(bytes.fromhex(previous) + fields)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _segment_name(number: int) -> str:
    return f"log/{number:06d}.arrow"


def _segment_number(file: str) -> int | None:
    match = _SEGMENT.fullmatch(file)
    return int(match[1]) if match else None


@dataclasses.dataclass(frozen=True)
class Contents:
    """What `read_log` found.

    Attributes
    ----------
    links
        The verified links: everything before the first damage.
    rows
        The number of rows of the log that they acknowledge.
    digest
        The digest of the last one, in hex.
    problems
        All damage found; empty if there is none.
    unacknowledged
        For each file with a torn tail, the number of bytes after the last link.
    closed
        Whether the last link is an end marker and nothing follows it: `LogWriter.close` was called.
    """

    directory: Path
    run_id: str
    links: tuple[Link, ...]
    rows: int
    digest: str
    problems: tuple[Problem, ...]
    unacknowledged: dict[str, int]
    closed: bool

    def batches(self, begin_row: int = 0, end_row: int | None = None) -> Iterator[dict[str, NDArray[Any]]]:
        """Return the columns of the log, batch by batch, as read-only arrays; the bytes are verified again.

        Raises
        ------
        Damaged
            If a batch is not what the link says, or no batch of a log.
        """
        end_row = self.rows if end_row is None else min(end_row, self.rows)
        end = 0
        for link, previous in self._links(LOG):
            begin, end = end, end + link.rows
            if begin >= end_row:
                return
            if end > begin_row and link.rows:
                columns = _columns(_decoded(self.directory, link, previous, LOG))
                part = slice(max(begin_row - begin, 0), end_row - begin)
                yield {name: column[part] for name, column in columns.items()}

    def names(self) -> Iterator[Name]:
        """Return the rows of ``states.arrow``.

        Raises
        ------
        Damaged
            If a batch is not what the link says, or no batch of names.
        """
        for link, previous in self._links(NAMES):
            for row in _decoded(self.directory, link, previous, NAMES).to_pylist():
                if row["kind"] not in KINDS:
                    raise Damaged(link.file, link.number, f"has a row of unknown kind {row['kind']!r:.40}")
                actions = row.pop("actions")
                yield Name(**row, actions=None if actions is None else tuple(actions))

    def _links(self, schema: pa.Schema) -> Iterator[tuple[Link, str]]:
        """Return the links of batches with this schema, each with the digest before it."""
        previous = _first_digest(self.run_id)
        for link in self.links:
            if (link.file == NAMES_FILE) == (schema is NAMES) and not _may_be_end(link):
                yield link, previous
            previous = link.digest


def _may_be_end(link: Link) -> bool:
    return link.rows == 0 and link.length == len(_END)  # every batch is longer


def read_log(directory: Path, run_id: str) -> Contents:
    """Verify the chain of a run and all bytes that it covers, without holding them in memory.

    Parameters
    ----------
    directory
        The directory of the run.
    run_id
        The id that the log was written with.
    """
    if not directory.is_dir():
        raise InputError(f"out: expected the directory of a run, got {directory}, which is none")
    return _Verifier(directory, run_id).contents()


class _Verifier:
    """Reads a chain from its beginning; what follows the first damage is only looked at for missing files."""

    def __init__(self, directory: Path, run_id: str) -> None:
        self._directory, self._run_id = directory, run_id
        self._digest = _first_digest(run_id)
        self._links: list[Link] = []
        self._lines = 0
        self._problems: list[Problem] = []
        self._unacknowledged: dict[str, int] = {}
        self._ends: dict[str, int] = {NAMES_FILE: 0}  # for each file that a link names
        self._segment, self._ended = 0, True

    def contents(self) -> Contents:
        self._read_chain()
        self._compare_sizes()
        self._look_for_strays()
        rows = sum(link.rows for link in self._links if link.file != NAMES_FILE)
        problems, unacknowledged = tuple(self._problems), self._unacknowledged
        # a crash may tear the chain behind the end marker of a full segment, but not before the next one has data
        closed = bool(self._links) and _may_be_end(self._links[-1]) and not problems and not unacknowledged
        return Contents(
            self._directory,
            self._run_id,
            tuple(self._links),
            rows,
            self._digest,
            problems,
            unacknowledged,
            closed,
        )

    def _report(self, file: str, batch: int | None, what: str) -> None:
        if len(self._problems) < _PROBLEMS:
            self._problems.append(Problem(file, batch, what))

    def _read_chain(self) -> None:
        try:
            with os.fdopen(open_regular(self._directory, CHAIN), "rb") as chain:
                while len(line := chain.read(_WIDTH)) == _WIDTH and not line.endswith(b"\0"):
                    self._lines += 1
                    self._take(line)
                self._end_with(line + chain.read(_TAIL))
        except FileNotFoundError:
            if os.path.lexists(self._directory / NAMES_FILE) or any(self._in_log()):  # else nothing was written yet
                self._report(CHAIN, None, "is missing")
        except Damaged as error:
            self._report(error.file, None, error.what)
        except OSError as error:
            self._report(CHAIN, self._lines + 1, f"cannot be read: {error.strerror}")

    def _take(self, line: bytes) -> None:
        link = _link_of(line)
        if link is None:
            return self._report(CHAIN, self._lines, "the line is damaged")
        if not self._problems:
            self._verify(link)
        self._ends[link.file] = max(link.end, self._ends.get(link.file, 0))

    def _verify(self, link: Link) -> None:
        if wrong := self._misplaced(link):
            return self._report(CHAIN, self._lines, wrong)
        try:
            wrong = self._different(link)
        except Damaged as error:
            wrong = error.what
        except OSError as error:
            wrong = f"cannot be read: {error.strerror}"
        if wrong:
            return self._report(link.file, link.number, wrong)
        self._accept(link)

    def _misplaced(self, link: Link) -> str | None:
        """Return why this link cannot follow the last one."""
        segment = _segment_number(link.file)
        if link.number != self._lines:
            return f"expected the link of batch {self._lines}, got that of {link.number}"
        if segment is not None and segment != self._segment + self._ended:
            return f"expected a link of segment {self._segment + self._ended}, got one of {segment}"
        if link.offset != self._ends.get(link.file, 0):
            return f"{link.file}: expected a batch at byte {self._ends.get(link.file, 0)}, got one at {link.offset}"
        if not 0 < link.length <= _BATCH_BYTES or link.rows > BATCH_ROWS:
            return f"no batch has {link.length} bytes or {link.rows} rows"
        return None

    def _different(self, link: Link) -> str | None:
        """Return what is wrong with the bytes of a batch."""
        size = self._size(link.file)
        if size is None:
            return "is missing"
        if size < link.end:
            return f"has {size} bytes; the batch ends at {link.end}"
        chunks = _chunks(self._directory, link)
        if _next_digest(self._digest, link.fields, chunks) != link.digest:
            return "the bytes are not those that were written" + (" (or the run has another id)" * (link.number == 1))
        if _may_be_end(link) and (link.file == NAMES_FILE or b"".join(_chunks(self._directory, link)) != _END):
            return "expected an end marker"
        return None

    def _accept(self, link: Link) -> None:
        self._links.append(link)
        self._digest = link.digest
        if link.file != NAMES_FILE:
            self._segment, self._ended = self._segment + self._ended, _may_be_end(link)

    def _end_with(self, tail: bytes) -> None:
        """Judge what follows the last whole line."""
        if len(tail) >= _TAIL or not _begins_line(tail.rstrip(b"\0"), self._lines + 1):
            self._report(CHAIN, self._lines + 1, "ends with bytes that are neither a line nor the beginning of one")
        elif tail:
            self._unacknowledged[CHAIN] = len(tail)

    def _compare_sizes(self) -> None:
        reported = {problem.file for problem in self._problems}
        for file, end in self._ends.items():
            try:
                size = self._size(file) or 0
            except Damaged as error:
                size = end
                if file not in reported:
                    self._report(file, None, error.what)
            if size < end and file not in reported:
                self._report(file, None, f"has {size} bytes; its batches end at {end}")
            if size > end:
                self._unacknowledged[file] = size - end

    def _look_for_strays(self) -> None:
        if self._problems:
            return  # which files belong to the log is not known
        following = _segment_name(self._segment + 1)
        for file in self._in_log():
            if file == following:
                self._note_following(file)
            elif file not in self._ends:
                self._report(file, None, "belongs to no link of the chain")

    def _note_following(self, file: str) -> None:
        """Note a segment that was begun, but has no acknowledged batch."""
        try:
            self._unacknowledged[file] = self._size(file) or 0
        except Damaged as error:
            self._report(file, None, error.what)

    def _in_log(self) -> Iterator[str]:
        """Return the files beside the chain."""
        folder = self._directory / "log"
        if folder.is_dir():
            for name in sorted(os.listdir(folder)):
                if name != "chain":
                    yield f"log/{name}".encode("utf-8", "backslashreplace").decode()

    def _size(self, file: str) -> int | None:
        """Return the size of a regular file; None if it is missing."""
        try:
            status = os.lstat(self._directory / file)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(status.st_mode):
            raise Damaged(file, None, "is no regular file")
        return status.st_size


def _begins_line(tail: bytes, number: int) -> bool:
    """Whether this is the beginning of the line with this number."""
    for file in (NAMES_FILE, _segment_name(1)):
        line = Link(number, file, 0, 0, 0, "0" * 64).line
        match = _LINE.fullmatch(tail + line[len(tail) :])
        if match is not None and int(match[1]) == number:
            return True
    return False


def _chunks(directory: Path, link: Link) -> Iterator[bytes]:
    """Return the bytes of a batch in pieces."""
    fd = open_regular(directory, link.file)
    try:
        for offset in range(link.offset, link.end, _CHUNK):
            yield os.pread(fd, min(_CHUNK, link.end - offset), offset)
    finally:
        os.close(fd)


def _decoded(directory: Path, link: Link, previous: str, schema: pa.Schema) -> Any:
    """Return a batch, after its bytes were verified and its claims were checked."""
    try:
        data = b"".join(_chunks(directory, link))
        if _next_digest(previous, link.fields, [data]) != link.digest:
            raise ValueError("the bytes are not those that were written")
        message = _without_schema(data, schema) if link.offset == 0 else data
        _check_claims(message, link.rows, schema)
        return _batch_of(message, schema)
    except Damaged as error:
        raise Damaged(link.file, link.number, error.what) from None
    except Exception as error:  # whatever Arrow raises is about the bytes
        raise Damaged(link.file, link.number, f"cannot be decoded: {error!s:.200}") from None


def _without_schema(data: bytes, schema: pa.Schema) -> bytes:
    """Return what follows the schema, which has to be ours; other versions of Arrow may write it with other bytes."""
    if data.startswith(_PREFIXES[schema]):
        return data[len(_PREFIXES[schema]) :]
    end = 8 + _unpack("<I", data, 4)
    if end > len(data) or not pa.ipc.read_schema(pa.py_buffer(data[:end])).equals(schema):
        raise ValueError("the schema is not that of this file")
    return data[end:]


def _batch_of(message: bytes, schema: pa.Schema) -> Any:
    options = pa.ipc.IpcReadOptions(use_threads=False)
    batch = pa.ipc.open_stream(pa.py_buffer(_PREFIXES[schema] + message), options=options).read_next_batch()
    batch.validate(full=True)
    for field, column in zip(schema, batch.columns, strict=True):
        if column.null_count and not field.nullable:
            raise ValueError(f"{field.name} has missing values")
    return batch


def _columns(batch: Any) -> dict[str, NDArray[Any]]:
    return {field.name: batch.column(i).to_numpy(zero_copy_only=True) for i, field in enumerate(LOG)}


class _Table:
    """A table of a flatbuffer. Every read is bounds-checked: `struct` checks the end, `_unpack` the beginning."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._position = data, position
        self._fields = position - _unpack("<i", data, position)
        self._size = _unpack("<H", data, self._fields)

    def number(self, field: int, form: str) -> int:
        """Return a number; absent ones are 0."""
        place = self._place(field)
        return 0 if place is None else _unpack(form, self._data, place)

    def table(self, field: int) -> "_Table":
        """Return a table inside this one."""
        return _Table(self._data, self._target(field))

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """Return a vector of structs with two numbers each."""
        place = self._target(field)
        count = _unpack("<I", self._data, place)
        if count > 64:
            raise ValueError(f"the metadata has {count} buffers")
        numbers = struct.unpack_from(f"<{2 * count}q", self._data, place + 4)
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def _place(self, field: int) -> int | None:
        slot = 4 + 2 * field
        offset = _unpack("<H", self._data, self._fields + slot) if slot + 2 <= self._size else 0
        return self._position + offset if offset else None

    def _target(self, field: int) -> int:
        place = self._place(field)
        if place is None:
            raise ValueError("the metadata is incomplete")
        return place + _unpack("<I", self._data, place)


def _unpack(form: str, data: bytes | memoryview, position: int) -> int:
    if position < 0:  # struct would count from the end
        raise ValueError("the metadata points outside of itself")
    return struct.unpack_from(form, data, position)[0]  # type: ignore[no-any-return]


def _check_claims(message: bytes, rows: int, schema: pa.Schema) -> None:
    """Raise unless a message is a batch of so many rows that needs no more memory than they can need.

    A compressed buffer begins with its decoded size, which Arrow allocates before it looks at the rest.
    """
    size = _unpack("<I", message, 4)
    metadata, body = message[8 : 8 + size], memoryview(message)[8 + size :]
    if message[:4] != _END[:4] or len(metadata) != size or size % 8:
        raise ValueError("the message has no proper beginning")
    header = _Table(metadata, _unpack("<I", metadata, 0))
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
        expected = [size for dtype in _DTYPES.values() for size in (0, rows * dtype.itemsize)]
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
    size = _unpack("<q", body, offset)
    if size < -1:
        raise ValueError("a buffer has a negative size")
    return length - 8 if size == -1 else size  # -1: the rest is not compressed


class _Output:
    """Files of a run that are appended to; `sizes` has what they are expected to have when they are opened."""

    def __init__(self, directory: Path, sizes: dict[str, int]) -> None:
        self._directory, self._sizes = directory, sizes
        self._fds: dict[str, int] = {}
        self._unsynced: dict[str, None] = {}  # in the order of the first write
        self._changed: dict[Path, None] = {directory: None}  # directories with names to sync

    def size(self, file: str) -> int:
        return self._sizes.get(file, 0)

    def open(self, file: str) -> int:
        if file not in self._fds:
            fd = open_regular(self._directory, file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._fds[file] = fd
            if os.fstat(fd).st_size != self.size(file):
                raise Damaged(file, None, "changed after it was verified")
            if self.size(file) == 0:
                self._changed[(self._directory / file).parent] = None
        return self._fds[file]

    def append(self, file: str, data: bytes | memoryview) -> int:
        """Write bytes and return their offset."""
        write_all(self.open(file), data)
        offset = self.size(file)
        self._sizes[file] = offset + len(data)
        self._unsynced[file] = None
        return offset

    def sync(self) -> None:
        """Wait until everything appended is on the disk, and the names of new files."""
        for file in self._unsynced:
            synced(self._fds[file])
        self._unsynced.clear()
        for directory in self._changed:
            sync_directory(directory)
        self._changed.clear()

    def done(self, file: str) -> None:
        os.close(self._fds.pop(file))

    def close(self) -> None:
        for file in list(self._fds):
            self.done(file)


_CLOSED = InputError("the log is closed: nothing can be appended; resume the run")


class _Part(NamedTuple):
    """A batch that was written and is not acknowledged yet."""

    file: str
    offset: int
    data: bytes | memoryview
    rows: int


class LogWriter:
    """Appends to the log of a run.

    After an `OSError` nothing is known about what is on the disk: the writer is broken, and every later call raises
    the same error. Resuming from `read_log` finds out what was acknowledged.

    Parameters
    ----------
    directory
        The directory of the run, which exists; the caller holds its lock.
    run_id
        The id of the run, with which the chain begins.
    contents
        What `read_log` found there, to go on after it; torn tails are cut off. None: there is no log yet.
    segment_bytes
        The size from which on a segment is ended, and the next one begun.
    """

    def __init__(
        self, directory: Path, run_id: str, contents: Contents | None = None, segment_bytes: int = 64 * MIB
    ) -> None:
        links = () if contents is None else _resumable(contents, directory, run_id)
        sizes = {link.file: link.end for link in links} | {CHAIN: len(links) * _WIDTH}
        if contents is None:
            _require_no_log(directory)
        else:
            _trim(contents, sizes)
        (directory / "log").mkdir(exist_ok=True)
        self._segment_bytes = segment_bytes
        self._digest = _first_digest(run_id) if contents is None else contents.digest
        self._number = len(links)
        self._rows = 0 if contents is None else contents.rows
        self._acknowledged = self._rows
        self._segment = max([_segment_number(link.file) or 0 for link in links], default=0)
        log_links = [link for link in links if link.file != NAMES_FILE]
        self._ended = not log_links or _may_be_end(log_links[-1])  # no segment is open
        self._closed = contents is not None and contents.closed  # the last link is an end marker
        self._parts: list[_Part] = []
        self._names: list[Name] = []
        self._error: Exception | None = None
        self._output = _Output(directory, sizes)
        self._open_chain(resumed=bool(links))

    @property
    def digest(self) -> str:
        """The digest of everything acknowledged, in hex."""
        return self._digest

    def append(self, columns: dict[str, NDArray[Any]]) -> None:
        """Write rows of the log, which the next `sync` acknowledges; until then their encoded form is kept.

        Parameters
        ----------
        columns
            Arrays of equal length with the names of `LOG`; `walker` and `order` are 0 if left out.
        """
        arrays = _checked_columns(columns)
        rows = len(arrays["state"])
        with self._unbroken():
            for begin in range(0, rows, BATCH_ROWS):
                self._append_batch({name: array[begin : begin + BATCH_ROWS] for name, array in arrays.items()})
            self._rows += rows

    def append_names(self, rows: Iterable[Name | tuple[Any, ...]]) -> None:
        """Take names of states and actions, which the next `sync` writes before the rows of the log."""
        names = [_checked_name(Name(*row)) for row in rows]
        with self._unbroken():
            self._names.extend(names)

    def sync(self) -> int:
        """Acknowledge everything appended: it survives a crash. Return the rows of the log acknowledged so far."""
        with self._unbroken():
            parts = [self._written_names(group) for group in _groups(self._names)] + self._parts
            if parts:
                self._acknowledge(parts)
            self._names, self._parts, self._acknowledged = [], [], self._rows
        return self._acknowledged

    def close(self) -> None:
        """Acknowledge everything, write the end marker and close the files. A second call does nothing."""
        if self._error is _CLOSED:
            return
        try:
            with self._unbroken():
                if self._names or self._parts or not self._closed:
                    self._end_segment()
            self.sync()
        finally:
            self._output.close()
        self._error = _CLOSED

    def _open_chain(self, resumed: bool) -> None:
        """Open the chain before the data, so that one sync of the directory is enough for both."""
        try:
            fd = self._output.open(CHAIN)
            if resumed:  # the last process may have been killed between writing these links and syncing them
                synced(fd)
            else:
                self._output.open(_segment_name(1))
                self._output.sync()  # names of new files, while there is time
        except BaseException:
            self._output.close()
            raise

    @contextlib.contextmanager
    def _unbroken(self) -> Iterator[None]:
        if self._error is not None:
            raise self._error
        try:
            yield
        except OSError as error:
            self._error = error
            raise
        except BaseException as error:
            self._error = GosprlError(f"writing the log was interrupted ({type(error).__name__}); resume the run")
            raise

    def _append_batch(self, columns: dict[str, NDArray[Any]]) -> None:
        large = self._output.size(_segment_name(self._segment)) >= self._segment_bytes
        if large and not self._ended and not self._parts:  # only the first batch after a sync: readers expect at most
            self._end_segment()  # one segment that is not acknowledged
        if self._ended:
            self._segment, self._ended = self._segment + 1, False
        batch = pa.record_batch([pa.array(columns[name]) for name in LOG.names], schema=LOG)
        self._parts.append(self._written(_segment_name(self._segment), batch))

    def _end_segment(self) -> None:
        """Write the end marker; a stream without batches gets an empty one first, as links have whole messages."""
        if self._ended:
            self._append_batch({name: np.zeros(0, dtype) for name, dtype in _DTYPES.items()})
        file = _segment_name(self._segment)
        self._parts.append(_Part(file, self._output.append(file, _END), _END, 0))
        self._ended = True

    def _written_names(self, names: list[Name]) -> _Part:
        # states.arrow never gets an end marker, as every sync may add to it; readers stop at the end of the file
        columns = zip(*names, strict=True)
        arrays = [pa.array(column, field.type) for field, column in zip(NAMES, columns, strict=True)]
        return self._written(NAMES_FILE, pa.record_batch(arrays, schema=NAMES))

    def _written(self, file: str, batch: Any) -> _Part:
        data = _encoded(batch, with_schema=self._output.size(file) == 0)
        return _Part(file, self._output.append(file, data), data, batch.num_rows)

    def _acknowledge(self, parts: list[_Part]) -> None:
        self._output.sync()
        self._output.append(CHAIN, b"".join([self._linked(part) for part in parts]))
        self._output.sync()
        self._closed = parts[-1].data is _END
        for part in parts:
            if part.data is _END:
                self._output.done(part.file)

    def _linked(self, part: _Part) -> bytes:
        """Return the next line of the chain."""
        self._number += 1
        link = Link(self._number, part.file, part.offset, len(part.data), part.rows, "")
        self._digest = _next_digest(self._digest, link.fields, [part.data])
        return dataclasses.replace(link, digest=self._digest).line


def _encoded(batch: Any, with_schema: bool) -> memoryview:
    """Return the message of a batch, as a stream of its own without the end marker, and perhaps without the schema.

    A stream of several batches has exactly these messages, so one can be gone on with after a restart.
    """
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1), use_threads=False)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    begin = 0 if with_schema else len(_PREFIXES[batch.schema])
    return memoryview(sink.getvalue())[begin : -len(_END)]


def _checked_columns(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return all columns with their types."""
    unknown = columns.keys() - _DTYPES.keys()
    missing = _DTYPES.keys() - columns.keys() - set(_OPTIONAL)
    if unknown or missing:
        raise InputError(f"columns: expected {', '.join(_DTYPES)}, got {', '.join(columns)}")
    rows = len(columns["state"])
    return {name: _checked_column(name, columns.get(name), rows) for name in _DTYPES}


def _checked_column(name: str, values: NDArray[Any] | None, rows: int) -> NDArray[Any]:
    dtype = _DTYPES[name]
    if values is None:
        return np.zeros(rows, dtype)
    values = np.asarray(values)
    if values.shape != (rows,):
        raise InputError(f"columns: {name} has shape {values.shape}, expected {(rows,)}")
    if values.dtype == dtype:
        return values
    try:
        with np.errstate(all="ignore"):
            cast = values.astype(dtype)
        same = np.array_equal(cast, values, equal_nan=dtype.kind == "f")
    except (TypeError, ValueError, OverflowError):
        same = False
    if not same:
        raise InputError(f"columns: {name} has values that {dtype} does not hold")
    return cast


def _checked_name(name: Name) -> Name:
    """Return a name that Arrow holds."""
    try:
        actions = None if name.actions is None else tuple([operator.index(action) for action in name.actions])
        name = name._replace(event=operator.index(name.event), index=operator.index(name.index), actions=actions)
        fits = max(abs(name.event), abs(name.index)) < 2**63 and max(map(abs, actions or ()), default=0) < 2**31
        room = _room(name)
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"names: {name!r:.200} cannot be stored ({error})") from None
    if name.kind not in KINDS or not fits or room > _NAMES_WRITTEN:
        raise InputError(
            f"names: expected a kind among {', '.join(KINDS)}, an event and an index of 64 bits, actions of 32 bits "
            f"and at most {_NAMES_WRITTEN} bytes, got {name!r:.200}"
        )
    return name


def _room(name: Name) -> int:
    """Return how many bytes the texts and the list of a name take."""
    return len(name.key.encode()) + len(name.observation.encode()) + 4 * len(name.actions or ())


def _groups(names: list[Name]) -> Iterator[list[Name]]:
    """Return the names in groups that make batches of bounded size."""
    group: list[Name] = []
    size = 0
    for name in names:
        room = _room(name)
        if group and (size + room > _NAMES_WRITTEN or len(group) == _NAMES_ROWS):
            yield group
            group, size = [], 0
        group.append(name)
        size += room
    if group:
        yield group


def _resumable(contents: Contents, directory: Path, run_id: str) -> tuple[Link, ...]:
    if (contents.directory, contents.run_id) != (directory, run_id):
        raise InputError(f"contents: expected those of {directory}, got those of {contents.directory}")
    if contents.problems:
        raise Damaged(*contents.problems[0])
    return contents.links


def _require_no_log(directory: Path) -> None:
    folder = directory / "log"
    if os.path.lexists(directory / NAMES_FILE) or (os.path.lexists(folder) and any(folder.iterdir())):
        raise InputError(f"out: {directory} has a log already; resume it, or give another directory")


def _trim(contents: Contents, sizes: dict[str, int]) -> None:
    """Cut off torn tails. No sync is needed: if they come back after a crash, they are torn tails again."""
    for file in contents.unacknowledged:
        if file not in sizes:
            disk.unlink(contents.directory / file)
            continue
        fd = open_regular(contents.directory, file, os.O_WRONLY)
        try:
            disk.truncate(fd, sizes[file])
        finally:
            os.close(fd)


def copy_prefix(contents: Contents, target: Path) -> None:
    """Write the verified part of a log to a new directory, without touching the old one.

    Parameters
    ----------
    contents
        What `read_log` found; everything before the first problem is copied.
    target
        A directory that has no log; it is made if it does not exist.

    Raises
    ------
    Damaged
        If the files changed since they were verified.
    """
    target.mkdir(parents=True, exist_ok=True)
    _require_no_log(target)
    (target / "log").mkdir(exist_ok=True)
    output = _Output(target, {})
    try:
        output.open(CHAIN)
        previous = _first_digest(contents.run_id)
        for link in contents.links:
            _copy(contents.directory, link, previous, output)
            previous = link.digest
        output.sync()
        output.append(CHAIN, b"".join([link.line for link in contents.links]))
        output.sync()
    finally:
        output.close()


def _copy(directory: Path, link: Link, previous: str, output: _Output) -> None:
    data = b"".join(_chunks(directory, link))  # bounded: links of longer batches are refused
    if _next_digest(previous, link.fields, [data]) != link.digest:
        raise Damaged(link.file, link.number, "changed after it was verified")
    output.append(link.file, data)
