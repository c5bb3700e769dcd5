"""`convert`: tables of transitions without a run, from one format to another, batch by batch."""

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from gosprl.errors import InputError
from gosprl.exchange import npz
from gosprl.exchange.exporting import FORMATS, appearing, check_free, format_of
from gosprl.exchange.tables import METADATA, NUMBERED, ROWS, TEXTS, TRANSITIONS, Table, to_csv, to_parquet, unescaped

CONVERTED = dict.fromkeys(("npz", "parquet", "csv"))
REQUIRED = ("state", "action", "next_state")
_HEADER = 2**16  # bytes of the line of names of a csv file
_ONLY = (
    "convert writes tables of transitions as csv, parquet or npz; Minari data sets, graphs and model checkers' files "
    "need what only a run or a result has: gosprl export"
)


def convert(
    source: str | os.PathLike[str], file: str | os.PathLike[str], to: str | None = None, *, force: bool = False
) -> None:
    """Write a table of transitions in another format; values and their order stay as they are.

    Parameters
    ----------
    source
        A csv, parquet or npz file with the columns state, action and next_state, and perhaps others of
        `gosprl.exchange.tables`. Of an npz file, counts and model are left out.
    file
        What is written, a csv, parquet or npz file.
    to
        Its format; by default from its ending.
    force
        Whether an existing file is replaced.

    Raises
    ------
    InputError
        A format or a column is unknown, a value does not fit its column (with its row), or the file exists.
    """
    origin, target = Path(source), Path(file)
    if (to in FORMATS and to not in CONVERTED) or (to is None and _ending_of_others(target)):
        raise InputError(f"to: {_ONLY}")
    if origin.is_dir():
        raise InputError(f"source: {origin} is a directory; for a run: gosprl export")
    written, read = format_of(target, to, CONVERTED), format_of(origin, None, CONVERTED)
    check_free(target, force)
    if not origin.is_file():
        raise InputError(f"source: expected a file, but there is no {origin}")
    try:
        table = checked(_READERS[read](origin))
        with appearing(target, force) as temporary:
            _write(table, temporary, written)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, UnicodeDecodeError) as error:
        raise InputError(f"source: {origin} is no {read} file of transitions: {error}") from None


def _ending_of_others(target: Path) -> bool:
    return any(target.suffix.lower() in entry.endings for name, entry in FORMATS.items() if name not in CONVERTED)


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
        row = first + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(f"source: column {field.name}, row {row}: expected {field.type}, got nothing")
    try:
        done = column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"source: column {field.name}, in rows {first} to {first + len(column) - 1}: expected {field.type}: {error}"
        ) from None
    if field.name in (*REQUIRED,) and pc.min(done).as_py() is not None and pc.min(done).as_py() < -1:
        row = first + int(np.flatnonzero(done.to_numpy() < -1)[0])
        raise InputError(f"source: column {field.name}, row {row}: expected a number from -1 on")
    if field.name == "reward" and not (finite := np.isfinite(done.to_numpy())).all():
        row = first + int(np.flatnonzero(~finite)[0])
        raise InputError(f"source: column reward, row {row}: expected a finite number, got {done[row - first]}")
    return done


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
            f"source: column action, row {first + i}: expected -1 where reset is true and nowhere else, got {action[i]}"
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
                    f"source: column {text}, row {first + int(wrong[0])}: expected one text for each {number}; npz "
                    "holds no more"
                )
        first += len(batch)
        yield batch
    if known and max(known) > 100 * len(known) + 1000:
        raise InputError(f"source: the numbers of states go up to {max(known)}, too far for {len(known)} observations")
    texts += [known.get(number, "") for number in range(max(known, default=-1) + 1)]


def _read_csv(file: Path) -> Table:
    with file.open("rb") as opened:
        line = opened.readline(_HEADER)
    names = next(csv.reader([line.decode("utf-8-sig")]), [])
    types = {name: TRANSITIONS.field(name).type for name in names if name in TRANSITIONS.names}
    if len(types) < len(names) or not names:  # the error is that of `checked`
        return Table(pa.schema([(name, pa.string()) for name in names]), [])
    options = pyarrow.csv.ConvertOptions(
        column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
    )
    parsed = pyarrow.csv.ParseOptions(newlines_in_values=True)
    return Table(pa.schema(list(types.items())), _csv_batches(file, options, parsed))


def _csv_batches(file: Path, options: Any, parsed: Any) -> Iterator[Any]:
    with file.open("rb") as opened, pyarrow.csv.open_csv(opened, convert_options=options, parse_options=parsed) as rows:
        for batch in rows:
            columns = [
                unescaped(column) if pa.types.is_string(field.type) else column
                for field, column in zip(batch.schema, batch.columns, strict=True)
            ]
            yield pa.record_batch(columns, names=batch.schema.names)


def _read_parquet(file: Path) -> Table:
    with pq.ParquetFile(file, page_checksum_verification=True) as opened:
        schema = opened.schema_arrow
    try:
        metadata = json.loads((schema.metadata or {}).get(METADATA, b"{}"))
    except (ValueError, RecursionError):
        metadata = {}
    return Table(schema, _parquet_batches(file), metadata if isinstance(metadata, dict) else {})


def _parquet_batches(file: Path) -> Iterator[Any]:
    with pq.ParquetFile(file, page_checksum_verification=True) as opened:
        yield from opened.iter_batches(batch_size=ROWS)


_READERS = {"csv": _read_csv, "parquet": _read_parquet, "npz": npz.read}
