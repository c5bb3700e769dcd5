"""Tables of rows: parquet and csv files, data frames, Arrow tables, dicts of arrays."""

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gosprl.errors import InputError
from gosprl.exchange.columns import FLAGS, Batch, batch_of, roles
from gosprl.exchange.csv_files import csv_parts, header
from gosprl.exchange.incoming import base
from gosprl.exchange.incoming.base import Incoming, digest_of_file, short
from gosprl.exchange.parquet_files import opened, parquet_parts
from gosprl.exchange.tables import METADATA


class Tables(Incoming):
    """Rows in the form of Arrow."""

    def batches(self) -> Iterator[Batch]:
        """Yield its rows."""
        first, names = 0, None
        try:
            for part in self._parts():
                names = part.schema.names
                for begin in range(0, part.num_rows, base.ROWS):
                    piece = part.slice(begin, base.ROWS)
                    columns = {
                        name: piece.column(i) for i, name in enumerate(names) if not name.startswith("__index_level_")
                    }
                    if len(columns) < sum(not name.startswith("__index_level_") for name in names):
                        twice = next(name for name in names if names.count(name) > 1)
                        raise InputError(f"data: {self.name}: column {twice!r:.60} is there twice")
                    yield batch_of(columns, self.name, first)
                    first += piece.num_rows
        except (pa.ArrowException, OSError, MemoryError) as error:
            raise InputError(f"data: {self.name} cannot be read after row {first}: {short(error)}") from None
        if names is None:
            self._check_empty()

    def _check_empty(self) -> None:
        """Check the columns of a table without rows."""

    @abstractmethod
    def _parts(self) -> Iterator[Any]:
        """Yield record batches or tables."""


class Parquet(Tables):
    """A parquet file."""

    kind = "parquet"

    def __init__(self, path: Path) -> None:
        self.name, self._path, self.size = str(path), path, path.stat().st_size

    def digest(self) -> str:
        """Return the SHA-256 of the file."""
        return digest_of_file(self._path)

    def metadata(self) -> Mapping[str, Any]:
        """Return what `gosprl export` wrote into the schema."""
        try:
            with opened(self._path) as file:
                told = json.loads((file.schema_arrow.metadata or {}).get(METADATA, b"{}"))
        except (pa.ArrowException, OSError, ValueError, RecursionError):
            return {}  # reading the rows says what is wrong
        return told if isinstance(told, dict) else {}

    def _parts(self) -> Iterator[Any]:
        with opened(self._path) as file:
            if file.metadata.num_rows == 0:
                batch_of({name: pa.nulls(0) for name in file.schema_arrow.names}, self.name, 0)
        yield from parquet_parts(self._path, base.ROWS, "data", lambda names: roles(names, self.name))


class Csv(Tables):
    """A csv file, with the names of its columns in the first line."""

    kind = "csv"

    def __init__(self, path: Path) -> None:
        self.name, self._path, self.size = str(path), path, path.stat().st_size

    def digest(self) -> str:
        """Return the SHA-256 of the file."""
        return digest_of_file(self._path)

    def _parts(self) -> Iterator[Any]:
        types = dict.fromkeys(("observation", "next_observation", "action_value"), pa.large_string())
        types |= dict.fromkeys(("state", "next_state", "count", "order", "walker"), pa.int64())
        types |= {"reward": pa.float64(), **dict.fromkeys(FLAGS, pa.bool_())}
        empty = True
        for part in csv_parts(self._path, types, "data", lambda names: roles(names, self.name)):
            empty = empty and part.num_rows == 0
            yield part
        if empty:
            batch_of({name: pa.nulls(0) for name in header(self._path, "data")}, self.name, 0)


class Frame(Tables):
    """A data frame of pandas or polars, an Arrow table, or anything that hands over columns like them."""

    kind = "frame"

    def __init__(self, frame: Any) -> None:
        self.name, self._frame = f"the {type(frame).__name__}", frame

    def _parts(self) -> Iterator[Any]:
        return frame_parts(self._frame, "data")


def frame_parts(frame: Any, argument: str) -> Iterator[Any]:
    """Yield the parts of a data frame as Arrow tables; no library of data frames is imported."""
    try:
        if hasattr(frame, "__arrow_c_stream__"):
            yield from pa.RecordBatchReader.from_stream(frame)
        elif callable(getattr(frame, "to_arrow", None)):
            yield frame.to_arrow()
        else:
            columns = {str(name): np.asarray(frame[name].to_numpy()) for name in frame.columns}
            yield pa.table({name: pa.array(column) for name, column in columns.items()})
    except (pa.ArrowException, AttributeError, KeyError, TypeError) as error:
        raise InputError(
            f"{argument}: {type(frame).__name__} cannot be read: {short(error)}; expected one type in each column"
        ) from None


class Arrays(Incoming):
    """A dict of arrays."""

    kind = "arrays"

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.name = "the arrays"
        self._arrays = {str(name): _array(str(name), array) for name, array in arrays.items()}
        batch_of({name: array[:0] for name, array in self._arrays.items()}, self.name, 0)
        lengths = {name: len(array) for name, array in self._arrays.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"data: expected arrays of one length, got {lengths}")

    def batches(self) -> Iterator[Batch]:
        """Yield their rows."""
        for first in range(0, len(next(iter(self._arrays.values()))), base.ROWS):
            part = {name: array[first : first + base.ROWS] for name, array in self._arrays.items()}
            yield batch_of(part, self.name, first)


def _array(name: str, given: Any) -> NDArray[Any]:
    if isinstance(given, np.ndarray) and given.ndim:
        return given
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(f"data: {name}: expected an array [n], got {given!r:.60}")
    items = list(given)
    if all(type(item) in (int, float, bool) for item in items):
        return np.array(items)
    array = np.empty(len(items), dtype=object)  # tuples stay tuples, and numbers beside text stay numbers
    for i, item in enumerate(items):
        array[i] = item
    return array
