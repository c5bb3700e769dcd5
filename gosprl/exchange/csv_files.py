"""csv files, read in blocks: UTF-8, a line with the names of the columns, then rows. Errors name row and column."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from gosprl.errors import InputError

BLOCK = 2**20  # bytes read at once; Arrow reads several blocks ahead
_FORMULA = r"^['=+\-@\t\r]"
_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
_CELL = re.compile(
    r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (\w+): (?:invalid value '(.*)')?", re.DOTALL
)
_LINE = re.compile(r"CSV parse error: Row #(\d+): (.*)", re.DOTALL)
_EXPECTED = {
    "int32": "a whole number below 2^31",
    "int64": "a whole number",
    "double": "a number",
    "bool": "true or false",
}


def csv_parts(
    path: Path, types: Mapping[str, Any], argument: str, check: Callable[[list[str]], Any] = lambda names: None
) -> Iterator[Any]:
    """Yield the rows of a csv file as record batches, texts as they were before `escaped`.

    Parameters
    ----------
    path
        The file.
    types
        The types of columns; those of others are inferred. Only blank cells are nothing: a text may be "nan".
    argument
        What errors begin with.
    check
        Called with the names of the columns first; it raises for those that are not known.
    """
    reading = pyarrow.csv.ReadOptions(use_threads=False, block_size=BLOCK)
    parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
    converting = pyarrow.csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
    with path.open("rb") as file:
        names = header(path, argument)
        if not file.read(1):
            raise InputError(f"{argument}: {path} is empty; expected a line with the names of the columns")
        file.seek(0)
        check(names)
        try:
            with pyarrow.csv.open_csv(file, reading, parsing, converting) as reader:
                for part in reader:
                    yield _unescaped(part)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise InputError(f"{argument}: {path}{explained(error, names)}") from None


def header(path: Path, argument: str) -> list[str]:
    """Return the names of the columns."""
    import csv

    with path.open("rb") as file:
        line = file.readline(2**16)
    try:
        return next(csv.reader([line.decode("utf-8-sig")]), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{argument}: {path} is no csv file in UTF-8: {error}") from None


def explained(error: Exception, names: list[str]) -> str:
    """Return what is wrong, with row and column; rows count from 1, without the line of names."""
    text = str(error)
    if cell := _CELL.search(text):
        number, row, kind, value = cell.groups()
        column = names[int(number)] if int(number) < len(names) else number
        got = "something else" if value is None else f"{value!r:.60}"
        return f", row {int(row) - 1}, column {column}: expected {_EXPECTED.get(kind, kind)}, got {got}"
    if line := _LINE.search(text):
        return f", row {int(line[1]) - 1}: {line[2].splitlines()[0]:.200}"
    return f" cannot be read: {text.splitlines()[0]:.300}"


def _unescaped(part: Any) -> Any:
    columns = [
        unescaped(column) if pa.types.is_string(field.type) or pa.types.is_large_string(field.type) else column
        for field, column in zip(part.schema, part.columns, strict=True)
    ]
    return pa.record_batch(columns, schema=part.schema)


def escaped(texts: Any) -> Any:
    """Return texts with an apostrophe before those that begin like a formula (= + - @, tab, return) and are no number.

    Texts that begin with an apostrophe get another one, so that `unescaped` gives back the same.
    """
    risky = pc.and_(pc.match_substring_regex(texts, _FORMULA), pc.invert(pc.match_substring_regex(texts, _NUMBER)))
    return pc.if_else(risky, pc.binary_join_element_wise("'", texts, ""), texts)


def unescaped(texts: Any) -> Any:
    """Return the texts that `escaped` was given."""
    return pc.replace_substring_regex(texts, r"^'(['=+\-@\t\r])", r"\1")
