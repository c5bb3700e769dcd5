"""`convert`: tables of transitions without a run, batch by batch, and known dynamics, from one format to another."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gosprl.errors import InputError
from gosprl.exchange import npz
from gosprl.exchange.appearing import appearing, check_free
from gosprl.exchange.csv_files import csv_parts, header
from gosprl.exchange.dynamics import WRITERS, convert_model, model_format
from gosprl.exchange.exporting import format_of
from gosprl.exchange.npy import DAMAGED
from gosprl.exchange.parquet_files import in_full, opened, parquet_parts
from gosprl.exchange.tables import METADATA, NUMBERED, ROWS, TEXTS, TRANSITIONS, Table, to_csv, to_parquet

TABLES = ("npz", "parquet", "csv")
REQUIRED = ("state", "action", "next_state")
_TABLE = (
    "{file} is a table of transitions, which convert writes as {tables}; Minari data sets, graphs and model checkers' "
    "files need what only a run or a result has: begin one with the table (gosprl collect ... --data {file}), then "
    "gosprl export"
)
_MODEL = (
    "{file} has known dynamics, not transitions: convert writes them as drn, umb or prism; for transitions, collect "
    "them (gosprl.TabularMDP.from_{read}, gosprl.collect)"
)


def convert(
    source: str | os.PathLike[str], file: str | os.PathLike[str], to: str | None = None, *, force: bool = False
) -> None:
    """Write a table of transitions, or known dynamics, in another format; values and their order stay as they are.

    Parameters
    ----------
    source
        A csv, parquet or npz file with the columns state, action and next_state, and perhaps others of
        `gosprl.exchange.tables`. Of an npz file, counts and model are left out. Or known dynamics: a .drn or .umb file,
        a directory of PRISM's explicit files, or its .tra file with the others of the same name beside it.
    file
        What is written: a csv, parquet or npz file; for known dynamics a .drn, .umb or .prism file, or a directory of
        explicit files (to="prism").
    to
        Its format; by default from its ending.
    force
        Whether an existing file is replaced. A directory never is.

    Raises
    ------
    InputError
        A format or a column is unknown, a value does not fit its column (with its row), the dynamics are none, or the
        file exists.
    """
    origin, target = Path(source), Path(file)
    model = model_format(origin)
    if model is None and origin.is_dir():
        raise InputError(
            f"source: {origin} is a directory without a .tra file of PRISM; for a run: gosprl export {origin} FILE"
        )
    read = model or format_of(origin, None, TABLES, "source")
    written = format_of(target, to)
    if (written in WRITERS) != (read in WRITERS) or written not in (*WRITERS, *TABLES):
        raise InputError(
            f"to: {(_MODEL if model else _TABLE).format(file=origin, tables=', '.join(TABLES), read=read)}"
        )
    check_free(target, force)
    if not origin.exists():
        raise InputError(f"source: expected a file, but there is no {origin}")
    if model:
        convert_model(origin, read, target, written, force)
    else:
        _convert_table(origin, read, target, written, force)


def _convert_table(origin: Path, read: str, target: Path, written: str, force: bool) -> None:
    with _reading(origin, read):
        table = _READERS[read](origin)
    table.batches = _read_batches(table.batches, origin, read)
    table = checked(table)
    with appearing(target, force) as temporary:
        _write(table, temporary, written)


@contextmanager
def _reading(origin: Path, read: str) -> Iterator[None]:
    """Tell errors of reading from those of writing."""
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, *DAMAGED) as error:
        raise InputError(f"source: {origin} is no {read} file of transitions, or damaged: {error}") from None


def _read_batches(batches: Iterable[Any], origin: Path, read: str) -> Iterator[Any]:
    with _reading(origin, read):
        yield from batches


def _write(table: Table, file: Path, written: str) -> None:
    if written == "npz":
        with npz.Arrays(file) as arrays:
            arrays.add_table(_with_observations(table))
            arrays.add_metadata(table.metadata)
        return
    with file.open("wb") as sink:
        (to_csv if written == "csv" else to_parquet)(table, sink)


def checked(table: Table) -> Table:
    """Return a table whose batches have the types of `TRANSITIONS`; `InputError` names row and column."""
    names = table.schema.names
    missing = [name for name in REQUIRED if name not in names]
    unknown = [name for name in names if name not in TRANSITIONS.names]
    if missing or unknown or len(set(names)) < len(names):
        what = f"misses {', '.join(missing)}" if missing else f"has {', '.join(map(repr, unknown)) or 'one twice'}"
        raise InputError(
            f"source: expected columns {', '.join(REQUIRED)} and others of {', '.join(TRANSITIONS.names)}, each once; "
            f"the table {what:.200}"
        )
    schema = pa.schema([TRANSITIONS.field(name) for name in names])
    return Table(schema, _checked_batches(table, schema), table.metadata, table.observations)


def _checked_batches(table: Table, schema: pa.Schema) -> Iterator[Any]:
    first = 0
    for batch in table.batches:
        columns = [_checked_column(field, batch.column(field.name), first) for field in schema]
        done = pa.record_batch(columns, schema=schema)
        _check_resets(done, first)
        yield done
        first += len(batch)


def _checked_column(field: pa.Field, column: Any, first: int) -> Any:
    if column.null_count and field.name not in TEXTS:
        row = first + 1 + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(f"source: column {field.name}, row {row}: expected {field.type}, got nothing")
    if pa.types.is_boolean(field.type) and not pa.types.is_boolean(column.type):
        other = np.flatnonzero(~np.isin(column.to_numpy(zero_copy_only=False), (0, 1)))
        if other.size:
            row, value = first + 1 + int(other[0]), column[int(other[0])]
            raise InputError(f"source: column {field.name}, row {row}: expected true or false, got {value}")
    try:
        done = column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        i = next(i for i in range(len(column)) if not _fits(column.slice(i, 1), field.type))
        raise InputError(
            f"source: column {field.name}, row {first + i + 1}: expected {field.type}, got {column[i].as_py()!r:.60}"
        ) from None
    if field.name in REQUIRED and pc.min(done).as_py() is not None and pc.min(done).as_py() < -1:
        row = first + 1 + int(np.flatnonzero(done.to_numpy() < -1)[0])
        raise InputError(f"source: column {field.name}, row {row}: expected a number from -1 on")
    if field.name == "reward" and not (finite := np.isfinite(done.to_numpy())).all():
        i = int(np.flatnonzero(~finite)[0])
        raise InputError(f"source: column reward, row {first + i + 1}: expected a finite number, got {done[i]}")
    return done


def _fits(cell: Any, wanted: Any) -> bool:
    try:
        cell.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _check_resets(batch: Any, first: int) -> None:
    """Raise `InputError` unless the resets are the rows with action -1."""
    action = batch.column("action").to_numpy()
    resets = np.zeros(len(action), dtype=bool)
    if "reset" in batch.schema.names:
        resets = batch.column("reset").to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(resets != (action == -1))
    if wrong.size:
        i = int(wrong[0])
        raise InputError(
            f"source: column action, row {first + i + 1}: expected -1 where reset is true and nowhere else, got "
            f"{action[i]}"
        )


def _with_observations(table: Table) -> Table:
    """Return a table whose texts are gathered by number while it is read, for a format that has them by number."""
    pairs = [(text, number) for text, number in NUMBERED.items() if text in table.schema.names]
    if not pairs:
        return Table(table.schema, table.batches, table.metadata)
    texts: list[str] = []
    return Table(table.schema, _gathered(table, pairs, texts), table.metadata, texts)


def _gathered(table: Table, pairs: list[tuple[str, str]], texts: list[str]) -> Iterator[Any]:
    known: dict[int, str] = {}
    first = 0
    for batch in table.batches:
        for text, number in pairs:
            column = batch.column(number).to_numpy()
            values, place = np.unique(column, return_index=True)
            for value, one in zip(values.tolist(), batch.column(text).take(pa.array(place)).to_pylist(), strict=True):
                if value >= 0 and one is not None:
                    known.setdefault(value, one)
            expected = pa.array([known.get(value) for value in column.tolist()], pa.string())
            same = pc.equal(expected, batch.column(text)).fill_null(True)
            nulls = pc.equal(expected.is_null(), batch.column(text).is_null())
            wrong = np.flatnonzero(~pc.and_(same, nulls).to_numpy(zero_copy_only=False))
            if wrong.size:
                raise InputError(
                    f"source: column {text}, row {first + 1 + int(wrong[0])}: expected one text for each {number}; npz "
                    "holds no more"
                )
        first += len(batch)
        yield batch
    if known and max(known) > 100 * len(known) + 1000:
        raise InputError(f"source: the numbers of states go up to {max(known)}, too far for {len(known)} observations")
    texts += [known.get(number, "") for number in range(max(known, default=-1) + 1)]


def _read_csv(file: Path) -> Table:
    names = header(file, "source")
    types = {name: TRANSITIONS.field(name).type for name in names if name in TRANSITIONS.names}
    if len(types) < len(names) or not names:  # the error is that of `checked`
        return Table(pa.schema([(name, pa.string()) for name in names]), [])
    return Table(pa.schema(list(types.items())), csv_parts(file, types, "source"))


def _read_parquet(file: Path) -> Table:
    with opened(file) as parquet:
        schema = parquet.schema_arrow
    try:
        metadata = json.loads((schema.metadata or {}).get(METADATA, b"{}"))
    except (ValueError, RecursionError):
        metadata = {}
    return Table(schema, in_full(parquet_parts(file, ROWS, "source")), metadata if isinstance(metadata, dict) else {})


_READERS = {"csv": _read_csv, "parquet": _read_parquet, "npz": npz.read}
