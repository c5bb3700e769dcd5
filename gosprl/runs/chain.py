r"""The chain of a run: a line for each batch of its log, with a digest that covers the batch and all before it.

``log/chain`` has lines of fixed width, the links::

    number file offset length rows digest check\n

with ``digest_k = SHA-256(digest_{k-1} || the fields before the digest, as text || the bytes of the batch)``,
``digest_0 = SHA-256(run id)`` and ``check`` the CRC-32 of the line before it. The check tells a damaged line from
damaged data. The first batch of a file includes the schema; the end marker of a segment is a link of its own. The links
of a file are contiguous from its first byte.
"""

import dataclasses
import hashlib
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gosprl.runs.files import MIB, open_regular
from gosprl.runs.places import Place

CHAIN, NAMES_FILE = "log/chain", "states.arrow"
END = b"\xff\xff\xff\xff\0\0\0\0"  # the end marker of an Arrow stream
WIDTH = 138  # bytes of a link
_LINE = re.compile(
    rb"(\d{10}) (states\.arrow    |log/\d{6}\.arrow) (\d{16}) (\d{10}) (\d{7}) ([0-9a-f]{64}) ([0-9a-f]{8})\n"
)
_SEGMENT = re.compile(r"log/(\d{6})\.arrow")
_CHUNK = MIB


class Problem(NamedTuple):
    """Damage that was found: the file, relative to the run; the number of the batch; what is wrong."""

    file: str
    batch: int | None
    what: str


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
    def may_be_end(self) -> bool:
        """Whether this is the end marker of a segment, by its length: every batch is longer."""
        return self.rows == 0 and self.length == len(END)

    @property
    def fields(self) -> bytes:
        """The part of the line that the digest covers."""
        return f"{self.number:010d} {self.file:<16} {self.offset:016d} {self.length:010d} {self.rows:07d} ".encode()

    @property
    def line(self) -> bytes:
        """The whole line."""
        start = self.fields + self.digest.encode() + b" "
        return start + b"%08x\n" % zlib.crc32(start)


def link_of(line: bytes) -> Link | None:
    """Return the link on a line; None if the line is damaged."""
    match = _LINE.fullmatch(line)
    if match is None or int(match[7], 16) != zlib.crc32(line[: match.start(7)]):
        return None
    file = match[2].decode().rstrip()
    return Link(int(match[1]), file, int(match[3]), int(match[4]), int(match[5]), match[6].decode())


def begins_line(tail: bytes, number: int) -> bool:
    """Whether this is the beginning of the line with this number."""
    for file in (NAMES_FILE, segment_name(1)):
        line = Link(number, file, 0, 0, 0, "0" * 64).line
        match = _LINE.fullmatch(tail + line[len(tail) :])
        if match is not None and int(match[1]) == number:
            return True
    return False


def first_digest(run_id: str) -> str:
    """Return the digest before the first batch, in hex."""
    return hashlib.sha256(run_id.encode()).hexdigest()


def next_digest(previous: str, fields: bytes, chunks: Iterable[bytes | memoryview]) -> str:
    """Return the digest of a batch, in hex.

    Parameters
    ----------
    previous
        The digest of the batch before it, or `first_digest`.
    fields
        The fields of its link.
    chunks
        Its bytes, in pieces.
    """
    digest = hashlib.sha256(bytes.fromhex(previous) + fields)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def segment_name(number: int) -> str:
    """Return the file of a segment, counted from 1."""
    return f"log/{number:06d}.arrow"


def segment_number(file: str) -> int | None:
    """Return the number of the segment in a file; None if it is no segment."""
    match = _SEGMENT.fullmatch(file)
    return int(match[1]) if match else None


def chunks(directory: Place, link: Link) -> Iterator[bytes]:
    """Return the bytes of a batch in pieces."""
    fd = open_regular(directory, link.file)
    try:
        for offset in range(link.offset, link.end, _CHUNK):
            yield os.pread(fd, min(_CHUNK, link.end - offset), offset)
    finally:
        os.close(fd)
