"""`read_log`: verify the log of a run; and what it contains.

What a crash leaves behind the last link was never acknowledged: it is a torn tail, no damage, and is cut off when the
run is resumed. A torn chain ends with the beginning of a line, with zeros, or with both. Everything else that differs
is damage, reported with file and batch. A chain that was cut at the end of a line looks like a crash before the rest
was acknowledged; the rest of the data is then reported as unacknowledged. Names are acknowledged with the rows that
follow them.

The files may come from a stranger: the chain does not prove who wrote it (`gosprl.runs.claims`).
"""

import dataclasses
import os
import stat
from collections import deque
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from gosprl.errors import InputError
from gosprl.runs.batches import columns_of, decoded
from gosprl.runs.chain import (
    CHAIN,
    END,
    NAMES_FILE,
    WIDTH,
    Link,
    Problem,
    begins_line,
    chunks,
    first_digest,
    link_of,
    next_digest,
    segment_name,
    segment_number,
)
from gosprl.runs.files import MIB, Damaged, open_regular
from gosprl.runs.notes import Notes
from gosprl.runs.places import Place, is_there
from gosprl.runs.schemas import BATCH_ROWS, KINDS, LOG, NAMES, Name

_BATCH_BYTES = 96 * MIB  # encoded; more than the largest batch of either schema
_TAIL = MIB  # the longest torn tail of a chain
_PROBLEMS = 100  # reported at most


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

    directory: Place
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
                columns = columns_of(decoded(self.directory, link, previous, LOG).batch)
                part = slice(max(begin_row - begin, 0), end_row - begin)
                yield {name: column[part] for name, column in columns.items()}

    def noted(self, begin_row: int = 0) -> Iterator[tuple[int, dict[str, NDArray[Any]], Notes | None]]:
        """Return (number of its first row, columns, notes) of the batches that do not end before a row.

        Raises
        ------
        Damaged
            If a batch is not what the link says, or no batch of a log.
        """
        end = 0
        for link, previous in self._links(LOG):
            begin, end = end, end + link.rows
            if end >= begin_row:
                batch, notes = decoded(self.directory, link, previous, LOG)
                yield begin, columns_of(batch), notes

    def last_notes(self) -> Notes | None:
        """Return the notes of the last batch; None if it has none."""
        last = deque(self._links(LOG), maxlen=1)
        return decoded(self.directory, *last[0], LOG).notes if last else None

    def names(self) -> Iterator[Name]:
        """Return the rows of ``states.arrow``.

        Raises
        ------
        Damaged
            If a batch is not what the link says, or no batch of names.
        """
        for link, previous in self._links(NAMES):
            for row in decoded(self.directory, link, previous, NAMES).batch.to_pylist():
                if row["kind"] not in KINDS:
                    raise Damaged(link.file, link.number, f"has a row of unknown kind {row['kind']!r:.40}")
                actions = row.pop("actions")
                yield Name(**row, actions=None if actions is None else tuple(actions))

    def _links(self, schema: pa.Schema) -> Iterator[tuple[Link, str]]:
        """Return the links of batches with this schema, each with the digest before it."""
        previous = first_digest(self.run_id)
        for link in self.links:
            if (link.file == NAMES_FILE) == (schema is NAMES) and not link.may_be_end:
                yield link, previous
            previous = link.digest


def read_log(directory: Place, run_id: str) -> Contents:
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
    return _ChainReader(directory, run_id).contents()


class _ChainReader:
    """Reads a chain from its beginning; after the first damage, it only looks for missing files."""

    def __init__(self, directory: Place, run_id: str) -> None:
        self._directory, self._run_id = directory, run_id
        self._digest = first_digest(run_id)
        self._links: list[Link] = []
        self._lines = 0
        self._problems: list[Problem] = []
        self._unacknowledged: dict[str, int] = {}
        self._ends: dict[str, int] = {NAMES_FILE: 0}  # for each file that a link names
        self._segment, self._ended = 0, True

    def contents(self) -> Contents:
        self._read_chain()
        if not self._problems:
            self._leave_out_last_names()
        self._compare_sizes()
        self._look_for_strays()
        rows = sum(link.rows for link in self._links if link.file != NAMES_FILE)
        problems, unacknowledged = tuple(self._problems), self._unacknowledged
        # a chain cut by a crash may also end with an end marker, but then the next segment has data already
        closed = bool(self._links) and self._links[-1].may_be_end and not problems and not unacknowledged
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

    def _leave_out_last_names(self) -> None:
        """Leave out names without rows after them: a crash tore the chain before the links of the rows."""
        while self._links and self._links[-1].file == NAMES_FILE:
            link = self._links.pop()
            self._ends[NAMES_FILE] = link.offset
            self._unacknowledged[CHAIN] = self._unacknowledged.get(CHAIN, 0) + WIDTH
            self._digest = self._links[-1].digest if self._links else first_digest(self._run_id)

    def _report(self, file: str, batch: int | None, what: str) -> None:
        if len(self._problems) < _PROBLEMS:
            self._problems.append(Problem(file, batch, what))

    def _read_chain(self) -> None:
        try:
            with os.fdopen(open_regular(self._directory, CHAIN), "rb") as chain:
                while len(line := chain.read(WIDTH)) == WIDTH and not line.endswith(b"\0"):
                    self._lines += 1
                    self._take(line)
                self._end_with(line + chain.read(_TAIL))
        except FileNotFoundError:
            if is_there(self._directory / NAMES_FILE) or any(self._in_log()):  # else nothing was written yet
                self._report(CHAIN, None, "is missing")
        except Damaged as error:
            self._report(error.file, None, error.what)
        except OSError as error:
            self._report(CHAIN, self._lines + 1, f"cannot be read: {error.strerror}")

    def _take(self, line: bytes) -> None:
        link = link_of(line)
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
        segment = segment_number(link.file)
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
        if next_digest(self._digest, link.fields, chunks(self._directory, link)) != link.digest:
            return "the bytes are not those that were written" + (" (or the run has another id)" * (link.number == 1))
        if link.may_be_end and (link.file == NAMES_FILE or b"".join(chunks(self._directory, link)) != END):
            return "expected an end marker"
        return None

    def _accept(self, link: Link) -> None:
        self._links.append(link)
        self._digest = link.digest
        if link.file != NAMES_FILE:
            self._segment, self._ended = self._segment + self._ended, link.may_be_end

    def _end_with(self, tail: bytes) -> None:
        """Judge what follows the last whole line."""
        if len(tail) >= _TAIL or not begins_line(tail.rstrip(b"\0"), self._lines + 1):
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
        following = segment_name(self._segment + 1)
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
            for name in sorted(place.name for place in folder.iterdir()):
                if name != "chain":
                    yield f"log/{name}".encode("utf-8", "backslashreplace").decode()

    def _size(self, file: str) -> int | None:
        """Return the size of a regular file; None if it is missing."""
        try:
            status = (self._directory / file).lstat()
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(status.st_mode):
            raise Damaged(file, None, "is no regular file")
        return status.st_size
