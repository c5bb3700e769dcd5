"""Incoming: a source of samples, which is read in batches.

Nothing is allocated by what a header claims: files are read piece by piece, and a piece that is missing is an error.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from gosprl.exchange.columns import Batch

ROWS = 65_536  # of a batch


class Incoming(ABC):
    """A source of samples.

    Attributes
    ----------
    name
        What errors call it.
    kind
        What it is, in a word.
    has_order
        Whether it proves the order in which it was collected: only a run does.
    """

    name: str
    kind: str
    has_order = False

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """Yield its rows in order."""

    def digest(self) -> str | None:
        """Return the SHA-256 of a file in hex; None: the source is none."""
        return None


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def short(error: BaseException) -> str:
    """Return an error on one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]
