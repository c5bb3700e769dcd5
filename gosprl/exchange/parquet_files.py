"""Parquet files, read in batches: memory grows neither with the file nor with its row groups."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

BUFFER = 2**20  # bytes of a column read at once; without it, all of a row group


def opened(path: Path) -> Any:
    """Return a Parquet file whose pages are checked where they have checksums, as those of `gosprl export`."""
    return pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False, buffer_size=BUFFER)


def parquet_parts(path: Path, rows: int) -> Iterator[Any]:
    """Yield record batches of at most so many rows."""
    with opened(path) as file:
        yield from file.iter_batches(batch_size=rows, use_threads=False)
