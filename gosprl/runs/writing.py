"""LogWriter: appends to the log of a run; and `copy_prefix`, which copies what was verified.

``log/000001.arrow``, ``log/000002.arrow``, ... (segments) have the transitions and ``states.arrow`` has the names of
states and actions. They are Arrow IPC streams with zstd-compressed buffers, which any Arrow implementation reads. A
stream has no checksums, so ``log/chain`` has a link for each batch (`gosprl.runs.chain`).

`LogWriter.sync` syncs the data, then writes the links, then syncs the chain. What it acknowledged survives a crash.
"""

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gosprl.errors import GosprlError, InputError
from gosprl.runs.appending import Output
from gosprl.runs.batches import encoded
from gosprl.runs.chain import (
    CHAIN,
    END,
    NAMES_FILE,
    WIDTH,
    Link,
    chunks,
    first_digest,
    next_digest,
    segment_name,
    segment_number,
)
from gosprl.runs.files import MIB, Damaged, disk, open_regular, synced, unshare
from gosprl.runs.notes import Notes
from gosprl.runs.places import Place, is_there, located
from gosprl.runs.reading import Contents
from gosprl.runs.schemas import BATCH_ROWS, DTYPES, LOG, NAMES, Name, checked_columns, checked_name, groups

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
        self, directory: Place, run_id: str, contents: Contents | None = None, segment_bytes: int = 64 * MIB
    ) -> None:
        links = () if contents is None else _resumable(contents, directory, run_id)
        sizes = {link.file: link.end for link in links} | {CHAIN: len(links) * WIDTH}
        if contents is None:
            _require_no_log(directory)
        else:
            _trim(contents, sizes)
        made = _made_folder(directory / "log")
        self._segment_bytes = segment_bytes
        self._digest = first_digest(run_id) if contents is None else contents.digest
        self._number = len(links)
        self._rows = 0 if contents is None else contents.rows
        self._acknowledged = self._rows
        self._segment = max([segment_number(link.file) or 0 for link in links], default=0)
        log_links = [link for link in links if link.file != NAMES_FILE]
        self._ended = not log_links or log_links[-1].may_be_end  # no segment is open
        self._closed = contents is not None and contents.closed  # the last link is an end marker
        self._parts: list[_Part] = []
        self._names: list[Name] = []
        self._error: Exception | None = None
        self._output = Output(directory, sizes, made)
        self._open_chain(resumed=bool(links))

    def lost(self) -> str | None:
        """Return the first open file that was removed or replaced; None if all are there."""
        return self._output.lost()

    @property
    def digest(self) -> str:
        """The digest of everything acknowledged, in hex."""
        return self._digest

    def append(self, columns: dict[str, NDArray[Any]], notes: Notes | None = None) -> None:
        """Write rows of the log, which the next `sync` acknowledges; until then their encoded form is kept.

        Parameters
        ----------
        columns
            Arrays of equal length with the names of `LOG`; `walker` and `order` are 0 if left out.
        notes
            What a fleet says besides them. They make one batch then, which may be empty.
        """
        arrays = checked_columns(columns)
        rows = len(arrays["state"])
        with self._unbroken():
            if notes is not None:
                if rows > BATCH_ROWS:
                    raise InputError(f"columns: expected at most {BATCH_ROWS} rows with notes, got {rows}")
                self._append_batch(arrays, notes)
                self._rows += rows
                return
            for begin in range(0, rows, BATCH_ROWS):
                self._append_batch({name: array[begin : begin + BATCH_ROWS] for name, array in arrays.items()})
            self._rows += rows

    def append_names(self, rows: Iterable[Name | tuple[Any, ...]]) -> None:
        """Take names of states and actions, which the next `sync` writes before the rows of the log."""
        names = [checked_name(Name(*row)) for row in rows]
        with self._unbroken():
            self._names.extend(names)

    def sync(self) -> int:
        """Acknowledge everything appended: it survives a crash. Return the rows of the log acknowledged so far."""
        with self._unbroken():
            parts = [self._written_names(group) for group in groups(self._names)] + self._parts
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
        """Open the chain before the data: a directory keeps the order of its names, and data without it are damage."""
        try:
            fd = self._output.open(CHAIN)
            if resumed:  # the last process may have been killed between writing these links and syncing them
                synced(fd)
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

    def _append_batch(self, columns: dict[str, NDArray[Any]], notes: Notes | None = None) -> None:
        # a segment ends only at the first batch after a sync: readers expect at most one that is not acknowledged
        large = self._output.size(segment_name(self._segment)) >= self._segment_bytes
        if large and not self._ended and not self._parts:
            self._end_segment()
        if self._ended:
            self._segment, self._ended = self._segment + 1, False
        batch = pa.record_batch([pa.array(columns[name]) for name in LOG.names], schema=LOG)
        metadata = None if notes is None else notes.metadata()
        self._parts.append(self._written(segment_name(self._segment), batch, metadata))

    def _end_segment(self) -> None:
        """Write the end marker; a stream without batches gets an empty one first, as links have whole messages."""
        if self._ended:
            self._append_batch({name: np.zeros(0, dtype) for name, dtype in DTYPES.items()})
        file = segment_name(self._segment)
        self._parts.append(_Part(file, self._output.append(file, END), END, 0))
        self._ended = True

    def _written_names(self, names: list[Name]) -> _Part:
        # states.arrow never gets an end marker, as every sync may add to it; readers stop at the end of the file
        if self._output.size(NAMES_FILE) == 0:
            self._output.sync()  # it is in another directory than the chain, and would be damage without it
        columns = zip(*names, strict=True)
        arrays = [pa.array(column, field.type) for field, column in zip(NAMES, columns, strict=True)]
        return self._written(NAMES_FILE, pa.record_batch(arrays, schema=NAMES))

    def _written(self, file: str, batch: Any, metadata: dict[bytes, bytes] | None = None) -> _Part:
        data = encoded(batch, with_schema=self._output.size(file) == 0, metadata=metadata)
        return _Part(file, self._output.append(file, data), data, batch.num_rows)

    def _acknowledge(self, parts: list[_Part]) -> None:
        self._output.sync()
        self._output.append(CHAIN, b"".join([self._linked(part) for part in parts]))
        self._output.sync()
        self._closed = parts[-1].data is END
        for part in parts:
            if part.data is END:
                self._output.done(part.file)

    def _linked(self, part: _Part) -> bytes:
        """Return the next line of the chain."""
        self._number += 1
        link = Link(self._number, part.file, part.offset, len(part.data), part.rows, "")
        self._digest = next_digest(self._digest, link.fields, [part.data])
        return dataclasses.replace(link, digest=self._digest).line


def _resumable(contents: Contents, directory: Place, run_id: str) -> tuple[Link, ...]:
    if (contents.directory, contents.run_id) != (directory, run_id):
        raise InputError(f"contents: expected those of {directory}, got those of {contents.directory}")
    if contents.problems:
        raise Damaged(*contents.problems[0])
    return contents.links


def _require_no_log(directory: Place) -> None:
    folder = directory / "log"
    if is_there(directory / NAMES_FILE) or (is_there(folder) and any(folder.iterdir())):
        raise InputError(f"out: {directory} has a log already; resume it, or give another directory")


def _made_folder(path: Place) -> list[Place]:
    """Make a directory; return those that were made, none if it exists."""
    try:
        path.mkdir()
    except FileExistsError:
        if not path.is_dir():
            raise
        return []
    return [path]


def _trim(contents: Contents, sizes: dict[str, int]) -> None:
    """Cut off torn tails. No sync is needed: if they come back after a crash, they are torn tails again."""
    for file in contents.unacknowledged:
        if file not in sizes:
            where, at = located(contents.directory / file)
            disk.unlink(where, **at)
            continue
        unshare(contents.directory, file)
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
    made = _made_folder(target / "log")
    output = Output(target, {}, made)
    try:
        output.open(CHAIN)
        previous = first_digest(contents.run_id)
        for link in contents.links:
            _copy(contents.directory, link, previous, output)
            previous = link.digest
        output.sync()
        output.append(CHAIN, b"".join([link.line for link in contents.links]))
        output.sync()
    finally:
        output.close()


def _copy(directory: Place, link: Link, previous: str, output: Output) -> None:
    data = b"".join(chunks(directory, link))  # bounded: links of longer batches are refused
    if next_digest(previous, link.fields, [data]) != link.digest:
        raise Damaged(link.file, link.number, "changed after it was verified")
    output.append(link.file, data)
