"""npz: a zip of NumPy arrays, written and read column by column in pieces, so that memory does not grow with the log.

walker order state action next_state reward reset terminated truncated crash unknown late     [n] each, of a run
observations          [N] JSON text of each number of a state, where that is not the number itself
counts                [S, A] visits, as in `Result.counts`
model_*               [m] each: the columns of a model (`gosprl.exchange.tables`)
model_observations    [M] JSON text of each state of the model, where that is not its index
model_number          [M] the number that the transitions have for it; -1 for the reset and the crash; of a run
metadata              a JSON text
"""

import json
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.exchange.decoding import check_texts
from gosprl.exchange.npy import DAMAGED, read_header, read_rows, read_text, read_texts
from gosprl.exchange.sources import Source
from gosprl.exchange.tables import NUMBERED, ROWS, TEXTS, TRANSITIONS, Numbered, Table, model_columns, transitions

_MOST = 2**30  # bytes of an array of texts
_MOST_READ = 2 * _MOST


def write(source: Source, file: Path, *, delta: float | None = None) -> None:
    """Write the transitions of a run, and counts and model of any source."""
    delta = source.delta if delta is None else _checks.open_unit("delta", delta)
    with Arrays(file) as arrays:
        if source.has_log:
            arrays.add_table(transitions(source))
        arrays.add("counts", source.counts)
        for name, column in model_columns(source, delta).items():
            arrays.add(f"model_{name}", column)
        if source.model_observations is not None:
            arrays.add_texts("model_observations", source.model_observations)
        if source.has_log:
            arrays.add("model_number", source.numbers())
        arrays.add_metadata({**source.metadata, "delta": delta, "sets": "kl"})


class Arrays:
    """Writes an npz file; columns of unknown length are first written beside it, in one pass over the rows."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __enter__(self) -> "Arrays":
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()

    def add(self, name: str, array: NDArray[Any]) -> None:
        """Write an array."""
        with self._zip.open(f"{name}.npy", "w", force_zip64=True) as member:
            npy.write_array(member, np.asarray(array, order="C"), allow_pickle=False)

    def add_texts(self, name: str, texts: list[str]) -> None:
        """Write texts; all take as much room as the longest."""
        size = 4 * len(texts) * max(map(len, texts), default=0)
        if size > _MOST:
            raise InputError(
                f"file: the observations take {size:,} bytes as an array, because all have the length of the longest; "
                "npz holds at most 1 GiB of them: use parquet"
            )
        self.add(name, np.array(texts, dtype=np.str_))

    def add_metadata(self, metadata: dict[str, Any]) -> None:
        """Write where the data comes from."""
        self.add("metadata", np.array(json.dumps(metadata)))

    def add_table(self, table: Table) -> None:
        """Write the columns of a table, without its texts; these go into `observations`."""
        names = [name for name in table.schema.names if name not in TEXTS]
        dtypes = {name: np.dtype(table.schema.field(name).type.to_pandas_dtype()) for name in names}
        places = {name: self._file.with_name(f"{self._file.name}.{name}") for name in names}
        with ExitStack() as stack:
            columns = {name: stack.enter_context(place.open("wb")) for name, place in places.items()}
            rows = 0
            for batch in table.batches:
                for name, column in columns.items():
                    values = batch.column(name).to_numpy(zero_copy_only=False)
                    column.write(np.asarray(values, dtype=dtypes[name]).tobytes())
                rows += len(batch)
        for name, place in places.items():
            self._add_file(name, place, dtypes[name], rows)
        if table.observations is not None:
            self.add_texts("observations", table.observations)

    def _add_file(self, name: str, place: Path, dtype: np.dtype[Any], rows: int) -> None:
        header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows,)}
        with self._zip.open(f"{name}.npy", "w", force_zip64=True) as member, place.open("rb") as column:
            npy.write_array_header_1_0(member, header)
            shutil.copyfileobj(column, member, 2**20)
        place.unlink()


def read(file: Path) -> Table:
    """Return the transitions in an npz file; arrays of other names are not read.

    Raises
    ------
    InputError
        It is no npz file of transitions.
    """
    try:
        with zipfile.ZipFile(file) as arrays:
            members = {info.filename.removesuffix(".npy"): info for info in arrays.infolist()}
            names = [name for name in TRANSITIONS.names if name in members and name not in TEXTS]
            rows = {name: _rows(arrays, members[name], name) for name in names}
            texts = _texts(arrays, members["observations"], file.stat().st_size) if "observations" in members else None
            metadata = metadata_of(arrays, members["metadata"]) if "metadata" in members else {}
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError(f"source: {file} is no npz file that NumPy can read: {error}") from None
    if len(set(rows.values())) > 1:
        raise InputError(f"source: {file}: expected columns of one length, got {rows}")
    fields = [TRANSITIONS.field(name) for name in names]
    fields += [TRANSITIONS.field(name) for name in TEXTS if texts is not None and NUMBERED[name] in names]
    schema = pa.schema(fields)
    return Table(schema, _batches(file, schema, names, texts), metadata, texts)


def _batches(file: Path, schema: pa.Schema, names: list[str], texts: list[str] | None) -> Iterator[Any]:
    numbered = None if texts is None else Numbered(texts)
    with zipfile.ZipFile(file) as arrays, ExitStack() as stack:
        members = {name: stack.enter_context(arrays.open(f"{name}.npy")) for name in names}
        sizes = {name: arrays.getinfo(f"{name}.npy").file_size for name in names}
        headers = {name: read_header(member, sizes[name]) for name, member in members.items()}
        left = headers[names[0]][0][0] if names else 0
        while left:
            rows = min(left, ROWS if numbered is None else numbered.rows)
            columns = {name: _native(read_rows(members[name], rows, (), headers[name][1])) for name in names}
            if numbered is not None:
                for text, number in NUMBERED.items():
                    if number in columns:
                        _check_numbers(columns[number], len(texts or ()), number)
                        columns[text] = numbered.take(columns[number])
            yield pa.record_batch([pa.array(columns[name]) for name in schema.names], names=schema.names)
            left -= rows


def _native(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(column.dtype.newbyteorder("="))


def _check_numbers(numbers: NDArray[Any], end: int, name: str) -> None:
    if numbers.dtype.kind not in "iu" or numbers.max(initial=-1) >= end:
        raise InputError(f"source: column {name}: expected numbers below {end}, the length of observations")


def _rows(arrays: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> int:
    """Return the length of a column."""
    with arrays.open(info) as member:
        try:
            shape, dtype = read_header(member, info.file_size)
        except ValueError as error:
            raise InputError(f"source: column {name}: {error}") from None
    if len(shape) != 1 or dtype.kind not in "biuf":
        raise InputError(f"source: column {name}: expected numbers [n], got {dtype} {shape}")
    return int(shape[0])


def _texts(arrays: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> list[str]:
    if info.file_size > _MOST_READ:
        raise InputError(f"source: observations have {info.file_size:,} bytes; at most {_MOST_READ:,} are read")
    with arrays.open(info) as member:
        shape, dtype = read_header(member, info.file_size)
        if dtype.kind != "U" or len(shape) != 1:
            raise InputError(f"source: observations: expected texts [N], got {dtype} {shape}")
        check = partial(check_texts, "source: observations", size=size)
        return read_texts(member, shape[0], dtype, check)


def metadata_of(arrays: zipfile.ZipFile, info: zipfile.ZipInfo) -> dict[str, Any]:
    """Return what was written beside the arrays; nothing if it cannot be read."""
    if info.file_size > 2**24:
        return {}
    with arrays.open(info) as member:
        try:
            value = json.loads(read_text(member, info.file_size))
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}
