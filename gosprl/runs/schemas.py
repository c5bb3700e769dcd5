"""The columns of the log and of the names, as Arrow schemas; and what may stand in them."""

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gosprl.errors import InputError
from gosprl.runs.files import MIB

KINDS = ("state", "action", "offer")
BATCH_ROWS = 2**20
LOG = pa.schema(
    [
        pa.field("walker", pa.uint16(), nullable=False),
        pa.field("order", pa.int32(), nullable=False),
        pa.field("state", pa.int32(), nullable=False),
        pa.field("action", pa.int32(), nullable=False),
        pa.field("next_state", pa.int32(), nullable=False),
        pa.field("reward", pa.float64(), nullable=False),
        pa.field("flags", pa.uint8(), nullable=False),
    ]
)
NAMES = pa.schema(
    [
        pa.field("event", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("index", pa.int64(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("observation", pa.string(), nullable=False),
        pa.field("actions", pa.list_(pa.field("item", pa.int32(), nullable=False))),
    ]
)
DTYPES = {field.name: np.dtype(field.type.to_pandas_dtype()) for field in LOG}
PREFIXES = {schema: schema.serialize().to_pybytes() for schema in (LOG, NAMES)}  # what a stream begins with
_OPTIONAL = ("walker", "order")
_NAMES_WRITTEN = 32 * MIB  # of texts and lists in a batch of names that is written: less, as other columns take room
_NAMES_ROWS = 2**16


class Name(NamedTuple):
    """A row of ``states.arrow``; `event` is the number of rows of the log before it, `key` a text of `keys.text_of`."""

    event: int
    kind: str
    index: int  # type: ignore[assignment]  # hides the method of tuples
    key: str
    observation: str
    actions: tuple[int, ...] | None


def checked_columns(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return all columns with their types."""
    unknown = columns.keys() - DTYPES.keys()
    missing = DTYPES.keys() - columns.keys() - set(_OPTIONAL)
    if unknown or missing:
        raise InputError(f"columns: expected {', '.join(DTYPES)}, got {', '.join(columns)}")
    rows = len(columns["state"])
    return {name: _checked_column(name, columns.get(name), rows) for name in DTYPES}


def _checked_column(name: str, values: NDArray[Any] | None, rows: int) -> NDArray[Any]:
    dtype = DTYPES[name]
    if values is None:
        return np.zeros(rows, dtype)
    values = np.asarray(values)
    if values.shape != (rows,):
        raise InputError(f"columns: {name} has shape {values.shape}, expected {(rows,)}")
    if values.dtype == dtype:
        return values
    try:
        with np.errstate(all="ignore"):
            cast = values.astype(dtype)
        same = np.array_equal(cast, values, equal_nan=dtype.kind == "f")
    except (TypeError, ValueError, OverflowError):
        same = False
    if not same:
        raise InputError(f"columns: {name} has values that {dtype} does not hold")
    return cast


def checked_name(name: Name) -> Name:
    """Return a name that Arrow holds."""
    try:
        actions = None if name.actions is None else tuple([operator.index(action) for action in name.actions])
        name = name._replace(event=operator.index(name.event), index=operator.index(name.index), actions=actions)
        fits = max(abs(name.event), abs(name.index)) < 2**63 and max(map(abs, actions or ()), default=0) < 2**31
        room = _room(name)
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"names: {name!r:.200} cannot be stored ({error})") from None
    if name.kind not in KINDS or not fits or room > _NAMES_WRITTEN:
        raise InputError(
            f"names: expected a kind among {', '.join(KINDS)}, an event and an index of 64 bits, actions of 32 bits "
            f"and at most {_NAMES_WRITTEN} bytes, got {name!r:.200}"
        )
    return name


def _room(name: Name) -> int:
    """Return how many bytes the texts and the list of a name take."""
    return len(name.key.encode()) + len(name.observation.encode()) + 4 * len(name.actions or ())


def groups(names: list[Name]) -> Iterator[list[Name]]:
    """Return the names in groups that make batches of bounded size."""
    group: list[Name] = []
    size = 0
    for name in names:
        room = _room(name)
        if group and (size + room > _NAMES_WRITTEN or len(group) == _NAMES_ROWS):
            yield group
            group, size = [], 0
        group.append(name)
        size += room
    if group:
        yield group
