"""Tables of transitions and of models, as Parquet and csv; written batch by batch, so that memory does not grow.

Transitions, in the order of the log, have the columns of the log, with flags as truth values::

    walker order state action next_state reward reset terminated truncated crash unknown late

and `observation`, `next_observation` (JSON text) where a number is not the observation itself. A reset is a row with
`reset` true, action -1, and the state that it led to. A model has a row for each transition that was seen::

    state action next_state count p_hat lower upper reset label

with its confidence interval. Next states with the label "final" are final copies (`gosprl.model.states`), the one with
the label "crash" stands for crashes; the rows with `reset` true, state -1 and action -1 are the law of the start.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.exchange.columns import FLAGS as NAMES
from gosprl.exchange.csv_files import escaped
from gosprl.exchange.sources import Source
from gosprl.sets.kl import KL

FLAGS = {name: 1 << i for i, name in enumerate(NAMES)}  # bits
TRANSITIONS = pa.schema(
    [
        ("walker", pa.uint16()),
        ("order", pa.int32()),
        ("state", pa.int32()),
        ("action", pa.int32()),
        ("next_state", pa.int32()),
        ("reward", pa.float64()),
        *((name, pa.bool_()) for name in FLAGS),
        ("observation", pa.string()),
        ("next_observation", pa.string()),
    ]
)
TEXTS = ("observation", "next_observation")
NUMBERED = {"observation": "state", "next_observation": "next_state"}  # the numbers that texts belong to
TABLES = {"transitions": None, "model": None}
METADATA = b"gosprl"  # key in the metadata of a Parquet schema
ROWS = 2**16  # of a row group
_TEXT_BYTES = 64 * 2**20  # of texts in a batch


@dataclass
class Table:
    """A table that is read once, from its beginning.

    Attributes
    ----------
    schema
        Its columns.
    batches
        Its rows.
    metadata
        Where it comes from, as JSON values.
    observations
        Text of each number of a state; None if there is none.
    """

    schema: pa.Schema
    batches: Iterable[Any]
    metadata: dict[str, Any] = field(default_factory=dict)
    observations: list[str] | None = None


def table_of(source: Source, table: str | None = None, delta: float | None = None) -> Table:
    """Return what csv and Parquet hold of a source.

    Parameters
    ----------
    source
        A run, a result or a model.
    table
        "transitions" or "model"; by default transitions of a run, and the model of others.
    delta
        Level of the intervals of a model; by default that of the strategy.
    """
    table = ("transitions" if source.has_log else "model") if table is None else table
    _checks.choice("table", table, TABLES)
    return model_table(source, delta) if table == "model" else transitions(source)


def transitions(source: Source) -> Table:
    """Return the transitions of a run in order; they are read from the log while the table is written."""
    _ = source.run  # an error now, not in the middle
    texts = source.observations
    schema = TRANSITIONS if texts is not None else pa.schema([f for f in TRANSITIONS if f.name not in TEXTS])
    return Table(schema, _batches(source, schema, texts), source.metadata, texts)


def flags_of(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[np.bool_]]:
    """Return the flags of events [n] by name."""
    return {name: (columns["flags"] & bit) > 0 for name, bit in FLAGS.items()}


def _batches(source: Source, schema: pa.Schema, texts: list[str] | None) -> Iterator[Any]:
    names = None if texts is None else Numbered(texts)
    for columns in _regrouped(source.batches(), ROWS if names is None else names.rows):
        arrays = {name: pa.array(column) for name, column in (columns | flags_of(columns)).items()}
        if names is not None:
            arrays |= {text: names.take(columns[number]) for text, number in NUMBERED.items()}
        yield pa.record_batch([arrays[name] for name in schema.names], schema=schema)


def _regrouped(parts: Iterator[dict[str, NDArray[Any]]], rows: int) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield the same rows in batches of `rows`: those of a log have a second's worth, few or many."""
    held: list[dict[str, NDArray[Any]]] = []
    length = 0
    for part in parts:
        held.append(part)
        length += len(part["flags"])
        if length >= rows:
            joined = {name: np.concatenate([one[name] for one in held]) for name in part}
            whole = length - length % rows
            for begin in range(0, whole, rows):
                yield {name: column[begin : begin + rows] for name, column in joined.items()}
            held, length = [{name: column[whole:] for name, column in joined.items()}], length - whole
    if length:
        yield {name: np.concatenate([one[name] for one in held]) for name in held[0]}


class Numbered:
    """Texts by number.

    Attributes
    ----------
    rows
        Rows of a batch whose texts have a bounded size.
    """

    def __init__(self, texts: list[str]) -> None:
        self._texts = pa.array(texts, pa.large_string())
        longest = max((len(text.encode("utf-8", "replace")) for text in texts), default=1)
        self.rows = max(1, min(ROWS, _TEXT_BYTES // max(1, longest)))

    def take(self, numbers: NDArray[Any]) -> Any:
        """Return the texts of numbers [n]; null for negative ones."""
        return self._texts.take(pa.array(numbers, mask=numbers < 0)).cast(pa.string())


def model_table(source: Source, delta: float | None = None) -> Table:
    """Return the transitions that were seen, their counts, and the sets of the family "kl" at level delta."""
    delta = source.delta if delta is None else _checks.open_unit("delta", delta)
    columns = model_columns(source, delta)
    arrays = {name: pa.array(column) for name, column in columns.items()}
    texts = source.model_observations
    if texts is not None:
        names = Numbered(texts)
        arrays |= {text: names.take(columns[number]) for text, number in NUMBERED.items()}
    whole = pa.table(arrays)
    return Table(whole.schema, whole.to_batches(ROWS), {**source.metadata, "delta": delta, "sets": "kl"}, texts)


def model_columns(source: Source, delta: float) -> dict[str, NDArray[Any]]:
    """Return the columns of a model [n], sorted by state, action and next state; resets come last."""
    model = source.model
    rows = np.flatnonzero((model.visits > 0) & ~model.certain)
    ptr, succ, count, _ = model.stored(rows)
    row = np.repeat(rows, np.diff(ptr))
    seen = np.flatnonzero(count)
    seen = seen[np.lexsort((succ[seen], row[seen]))]
    row, count, following = row[seen], count[seen], succ[seen].astype(np.int64)
    lower, upper = _intervals(source, delta, rows, row, following)
    reset = model.rows.state[row] == model.states.reset
    kinds = np.array([model.states.kind(i) for i in range(len(model.states))])
    labels = np.where(np.isin(kinds, ("final", "crash")), kinds, "") if len(kinds) else kinds
    columns = {
        "state": np.where(reset, -1, model.rows.state[row]),
        "action": np.where(reset, -1, model.rows.action[row]),
        "next_state": following,
        "count": count,
        "p_hat": count / model.visits[row],
        "lower": lower,
        "upper": upper,
        "reset": reset,
        "label": labels[following],
    }
    last = np.argsort(reset, kind="stable")
    return {name: column[last] for name, column in columns.items()}


def _intervals(
    source: Source, delta: float, rows: NDArray[np.int64], row: NDArray[np.int64], succ: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the intervals of the transitions (row, succ) [n]."""
    if not rows.size:
        return np.empty(0), np.empty(0)
    sets, states = KL(delta).intervals(source.model, rows), source.model.rows.num_states
    all_codes = np.repeat(rows, np.diff(sets.ptr)) * states + sets.succ
    order = np.argsort(all_codes, kind="stable")
    place = order[np.searchsorted(all_codes, row * states + succ, sorter=order)]
    return sets.lower[place], sets.upper[place]


def write_parquet(source: Source, file: Path, *, table: str | None = None, delta: float | None = None) -> None:
    """Write a Parquet file; the schema's metadata has a JSON object with the key "gosprl"."""
    with file.open("wb") as sink:
        to_parquet(table_of(source, table, delta), sink)


def write_csv(source: Source, file: Path, *, table: str | None = None, delta: float | None = None) -> None:
    """Write a csv file: UTF-8, one line of names, truth values as true and false."""
    with file.open("wb") as sink:
        to_csv(table_of(source, table, delta), sink)


def to_parquet(table: Table, sink: BinaryIO) -> None:
    """Write a table as Parquet, with checksums of pages."""
    schema = table.schema.with_metadata({METADATA: json.dumps(table.metadata).encode()})
    with pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True) as writer:
        for batch in table.batches:
            writer.write_batch(batch.cast(schema))


def to_csv(table: Table, sink: BinaryIO) -> None:
    """Write a table as csv; texts that a spreadsheet would read as formulas are escaped."""
    with pyarrow.csv.CSVWriter(sink, table.schema) as writer:
        for batch in table.batches:
            columns = [
                escaped(column) if pa.types.is_string(field.type) else column
                for field, column in zip(table.schema, batch.columns, strict=True)
            ]
            writer.write_batch(pa.record_batch(columns, schema=table.schema))
