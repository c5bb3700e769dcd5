"""Incoming: a source of samples, which is read in batches.

Nothing is allocated by what a header claims: files are read piece by piece, and a piece that is missing is an error.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gosprl.exchange.columns import Batch
from gosprl.model.origins import Origin, run_id, within
from gosprl.runs.manifests import wrong_data

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
    size
        The bytes of a file, which bound the observations that are taken from it; None: the source is none.
    """

    name: str
    kind: str
    has_order = False
    size: int | None = None

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """Yield its rows in order."""

    def digest(self) -> str | None:
        """Return the SHA-256 of a file in hex; None: the source is none."""
        return None

    def ids(self) -> tuple[str, ...]:
        """Return its identities (`gosprl.model.origins`), as far as they are known without reading its rows."""
        digest, run = self.digest(), self.metadata().get("run")
        of_file = () if digest is None else (f"file:{digest}",)
        return (run_id(run), *of_file) if isinstance(run, str) else of_file

    def within(self) -> tuple[Origin, ...]:
        """Return the origins of what it began with itself."""
        return within_told(self.metadata().get("data"))

    def metadata(self) -> Mapping[str, Any]:
        """Return what `gosprl export` wrote beside the rows."""
        return {}


def within_told(data: Any) -> tuple[Origin, ...]:
    """Return the origins that metadata tell; none if they are not what a run has."""
    return () if data is None or wrong_data(data) else within(data)


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def short(error: BaseException) -> str:
    """Return an error on one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]
