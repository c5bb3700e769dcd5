"""Parquet files, read in batches: memory grows neither with the file, nor with its row groups, nor with its claims."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gosprl.errors import InputError
from gosprl.exchange.decoding import BUDGET
from gosprl.exchange.parquet_pages import Unbounded, plan

BUFFER = 2**20  # bytes of a column read at once; without it, all of a row group
MOST_PARTS = 100_000  # row groups, or columns, of a file


def opened(path: Path, by_number: list[str] | None = None) -> Any:
    """Return a Parquet file whose pages are checked where they have checksums, as those of `gosprl export`."""
    return pq.ParquetFile(
        path,
        page_checksum_verification=True,
        pre_buffer=False,
        buffer_size=BUFFER,
        read_dictionary=by_number,
        thrift_container_size_limit=MOST_PARTS,
    )


def parquet_parts(
    path: Path, rows: int, argument: str, check: Callable[[list[str]], Any] = lambda names: None
) -> Iterator[Any]:
    """Yield record batches of at most so many rows; texts may be numbers and a dictionary.

    Parameters
    ----------
    path
        The file.
    rows
        The largest number of rows of a batch.
    argument
        What errors begin with.
    check
        Called with the names of the columns, before anything is decoded; it raises for those that are not known.

    Raises
    ------
    InputError
        What decoding would take is not bounded.
    """
    with opened(path) as file:
        check(file.schema_arrow.names)
        names = [name for name in file.schema_arrow.names if not name.startswith("__index_level_")]  # pandas' own
        try:
            with path.open("rb") as raw:
                how = plan(raw, file, names, rows)
        except Unbounded as error:
            raise InputError(f"{argument}: {path}: {error}") from None
        groups = [[group] for group in range(file.num_row_groups)] if how.by_group else [None]
    with opened(path, how.by_number) as file:
        for group in groups:
            yield from file.iter_batches(batch_size=how.rows, row_groups=group, columns=names, use_threads=False)


def in_full(parts: Iterator[Any]) -> Iterator[Any]:
    """Yield the same rows with texts in full, in batches that stay in the budget."""
    for part in parts:
        if _texts_size(part) > BUDGET and part.num_rows > 1:
            half = part.num_rows // 2
            yield from in_full(iter([part.slice(0, half), part.slice(half)]))
        else:
            columns = [
                column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
                for column in part.columns
            ]
            yield pa.record_batch(columns, names=part.schema.names)


def _texts_size(part: Any) -> int:
    """Return the bytes that texts by number take in full."""
    numbered = [column for column in part.columns if pa.types.is_dictionary(column.type)]
    lengths = [pc.binary_length(column.dictionary).take(column.indices) for column in numbered]
    return sum(pc.sum(length.cast(pa.int64())).as_py() or 0 for length in lengths)
