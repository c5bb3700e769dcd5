"""Arrays in a zip file, read piece by piece: nothing is allocated by what a header claims, and nothing is unpickled."""

import io
import math
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from gosprl.exchange.decoding import BUDGET, LONGEST_TEXT

# what a damaged or foreign zip file raises
DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError, NotImplementedError, RuntimeError)
LONGEST_HEADER = 10_000  # bytes, as in NumPy
LONGEST_ROW = 4 * LONGEST_TEXT  # bytes


def read_header(file: IO[bytes], size: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of an array, at whose beginning a file is; `ValueError` if it is none that can be read.

    Parameters
    ----------
    file
        The member of a zip file.
    size
        Its bytes, to which those that the header claims are compared.
    """
    shape, fortran, dtype = _header(file)
    if dtype.hasobject or dtype.names is not None:
        raise ValueError(f"expected numbers or text, got an array of {dtype}")
    if not shape or (fortran and len(shape) > 1):
        raise ValueError(f"expected an array [n], got shape {shape}")
    if 0 in (dtype.itemsize, *shape[1:]) or dtype.itemsize * math.prod(shape[1:]) > LONGEST_ROW:
        raise ValueError(
            f"expected rows of 1 to {LONGEST_ROW:,} bytes, got {dtype} {shape}; use parquet for long texts"
        )
    claimed, there = dtype.itemsize * int(np.prod([int(n) for n in shape], dtype=object)), size - file.tell()
    if claimed != there:
        raise ValueError(f"its header claims {claimed} bytes, {there} are there")
    return shape, dtype


def read_text(file: IO[bytes], size: int) -> str:
    """Return the text that an array without dimensions is; `ValueError` if it is none. `size` as of `read_header`."""
    shape, _, dtype = _header(file)
    there = size - file.tell()
    if shape or dtype.kind != "U" or dtype.itemsize != there:
        raise ValueError(f"expected one text of {there} bytes, got {dtype} {shape}")
    return str(read_rows(file, 1, (), dtype)[0])


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"the format {version} of arrays is unknown")
    digits = file.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(digits, "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"its header claims {length} bytes; at most {LONGEST_HEADER} are read")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    return read(io.BytesIO(digits + file.read(length)))


def read_rows(file: IO[bytes], n: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the next n rows of an array; `shape` is that of one row."""
    size = n * int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = file.read(size)
    if len(raw) < size:
        raise EOFError(f"it ends {size - len(raw)} bytes too early")
    return np.frombuffer(raw, dtype=dtype).reshape(n, *shape)


def rows_in_budget(row_bytes: int, most: int) -> int:
    """Return how many rows of so many bytes are read at once, at most `most`."""
    return max(1, min(most, BUDGET // max(1, row_bytes)))


def read_texts(file: IO[bytes], n: int, dtype: np.dtype[Any], check: Callable[[int], None]) -> list[str]:
    """Return n texts; `check` is called with the characters of those read so far. All take the room of the longest."""
    texts: list[str] = []
    characters, piece = 0, rows_in_budget(dtype.itemsize, n)
    for first in range(0, n, piece):
        for text in read_rows(file, min(piece, n - first), (), dtype).tolist():
            characters += len(text)
            texts.append(text)
        check(characters)
    return texts
