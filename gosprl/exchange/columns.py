"""Columns of transitions: their names, their types, and what their values stand for.

A table of transitions has one row for each sample, or for each kind of sample if it has the column `count`:

| columns | what they hold |
|---|---|
| `observation`, `next_observation` | observations; text is JSON, or the observation itself if it is none |
| `s`, `s_next` | numbers where the system numbers its states, observations elsewhere |
| `state`, `next_state` | numbers of states, for systems that number them |
| `action`, `a`; `action_value` | whole numbers are indices, anything else is a value; always values |
| `reward` | finite numbers; 0 by default |
| `count` | how often; the order is not known then |
| `reset`, `terminated`, `truncated`, `crash`, `unknown`, `late`; or `flags` | as in the log of a run (docs/runs.md) |
| `walker`, `order` | as there; `order` has to be 0 |
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gosprl.errors import GosprlError, InputError
from gosprl.exchange.decoding import check_text
from gosprl.model.content import Content

NUMBER, SHOWN, OBSERVATION, TEXT, KEY, RAW, INDEX, VALUE = (
    "number",  # of a state, by a system that numbers them
    "shown",  # a number where the system numbers its states, else an observation
    "observation",
    "text",  # of an observation or an action value
    "key",  # what stands for an observation inside
    "raw",  # an observation as the system returns it, before `key=`
    "index",  # of an action
    "value",  # of an action
)
STATES = {"observation": OBSERVATION, "s": SHOWN, "state": NUMBER}  # the first that is there is read
NEXT = {"next_observation": OBSERVATION, "s_next": SHOWN, "next_state": NUMBER}
ACTIONS = {"action_value": VALUE, "a": INDEX, "action": INDEX}
FLAGS = ("reset", "terminated", "truncated", "crash", "unknown", "late")  # bits 1, 2, 4, ... of `flags`
OTHERS = ("reward", "count", "flags", "walker", "order", *FLAGS)
KNOWN = (*STATES, *NEXT, *ACTIONS, *OTHERS)
EXPECTED = (
    "expected the columns (state, action, next_state), (observation, action, next_observation) or (s, a, s_next), and "
    f"perhaps {', '.join(OTHERS)}"
)


OF_MODEL = {"p_hat", "lower", "upper"}  # columns of an exported model
UNCOUNTED = {  # flags of rows that cannot be counted, and why
    "unknown": (
        "the outcome of this sample is not known, so it cannot be counted. Leave out such rows only if they were lost "
        "for a reason that has nothing to do with the outcome"
    ),
    "late": (
        "this row stands where its outcome came back, and samples are counted in the order in which they were drawn. "
        "Move it to where it was drawn, and leave out the column"
    ),
}


def of_model(source: str) -> InputError:
    """Return the error for a file that has a model in the place of transitions."""
    return InputError(
        f"data: {source}: expected transitions, got an exported model: frequencies and intervals, which say nothing of "
        "the order of samples and of rewards. Give the run or the result that it was made of, or export transitions"
    )


class Values(NamedTuple):
    """The values of a column."""

    codes: NDArray[np.int64]  # [n] places in `values`, -1 for none; without `values`, the values themselves
    values: Sequence[Any] | None
    form: str
    name: str  # of the column


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of a source."""

    source: str
    first: int  # number of rows before them
    state: Values
    action: Values
    next_state: Values
    reward: NDArray[np.float64]
    flags: Mapping[str, NDArray[np.bool_]]
    walker: NDArray[np.int64]
    count: NDArray[np.int64] | None = None
    elsewhere: NDArray[np.bool_] | None = None  # resets that began another trajectory, where that is known
    resets_told: bool = True  # whether the source says where resets were

    def wrong(self, row: int, column: str, what: str) -> InputError:
        """Return the error for a row of the batch."""
        return InputError(f"data: {self.source}, row {self.first + row + 1}, column {column}: {what}")


def roles(names: Iterable[str], source: str) -> dict[str, str]:
    """Return the column that each role is read from; `InputError` if one is missing, or not known."""
    given = [name for name in names if not name.startswith("__index_level_")]  # pandas' own
    if OF_MODEL.issubset(given):
        raise of_model(source)
    foreign = [name for name in given if name not in KNOWN]
    if foreign:
        raise InputError(f"data: {source}: column {foreign[0]!r:.60} is not known; {EXPECTED}; leave out others")
    if len(set(given)) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise InputError(f"data: {source}: column {twice!r} is there twice")
    found = {name: name for name in OTHERS if name in given}
    for role, choices in (("state", STATES), ("action", ACTIONS), ("next_state", NEXT)):
        name = next((name for name in choices if name in given), None)
        if name is None:
            raise InputError(f"data: {source}: no column {' or '.join(choices)}, got {given!r:.200}; {EXPECTED}")
        found[role] = name
    if list(STATES).index(found["state"]) != list(NEXT).index(found["next_state"]):
        raise InputError(
            f"data: {source}: the columns {found['state']} and {found['next_state']} do not belong together; {EXPECTED}"
        )
    return found


def batch_of(columns: Mapping[str, Any], source: str, first: int) -> Batch:
    """Return rows of a table, after checking their types.

    Parameters
    ----------
    columns
        Name -> NumPy array or Arrow array, all [n].
    source
        The name of the source, for errors.
    first
        The number of rows before them.
    """
    place = roles(columns, source)
    n = len(columns[place["state"]])
    for name, column in columns.items():
        if len(column) != n:
            raise InputError(
                f"data: {source}: columns of different lengths: {place['state']} {n}, {name} {len(column)}"
            )
    at = _At(source, first)
    flags = _flags(columns, n, at)
    order = _integers(columns["order"], "order", at) if "order" in columns else np.zeros(n, dtype=np.int64)
    check_countable(flags, order, source, first)
    count = None
    if "count" in columns:
        count = _integers(columns["count"], "count", at)
        if (count < 0).any():
            row = int(np.argmax(count < 0))
            at.fail(row, "count", f"expected a whole number >= 0, got {count[row]}")
    return Batch(
        source=source,
        first=first,
        state=_values(columns[place["state"]], STATES[place["state"]], place["state"], at),
        action=_values(columns[place["action"]], ACTIONS[place["action"]], place["action"], at),
        next_state=_values(columns[place["next_state"]], NEXT[place["next_state"]], place["next_state"], at),
        reward=_rewards(columns["reward"], flags["reset"], at) if "reward" in columns else np.zeros(n),
        flags=flags,
        walker=_integers(columns["walker"], "walker", at) if "walker" in columns else np.zeros(n, dtype=np.int64),
        count=count,
        resets_told="reset" in columns or "flags" in columns,
    )


def check_countable(flags: Mapping[str, NDArray[np.bool_]], order: NDArray[np.int64], source: str, first: int) -> None:
    """Raise `InputError` for rows [n] that cannot be counted where they stand; `first` rows are before them."""
    at = _At(source, first)
    for name, why in UNCOUNTED.items():
        if flags[name].any():
            at.fail(int(np.argmax(flags[name])), name, f"expected false, got true: {why}")
    if order.any():
        row = int(np.flatnonzero(order)[0])
        what = "sort the rows by row number + order, the order in which samples were drawn, and leave out the column"
        at.fail(row, "order", f"expected 0, as rows are counted in their order, got {order[row]}; {what}")


class _At(NamedTuple):
    source: str
    first: int

    def fail(self, row: int, column: str, what: str) -> None:
        raise InputError(f"data: {self.source}, row {self.first + row + 1}, column {column}: {what}")


def _flags(columns: Mapping[str, Any], n: int, at: _At) -> dict[str, NDArray[np.bool_]]:
    bits = np.zeros(n, dtype=np.int64)
    if "flags" in columns:
        bits = _integers(columns["flags"], "flags", at)
        outside = (bits < 0) | (bits >= 1 << len(FLAGS))
        if outside.any():
            row = int(np.argmax(outside))
            at.fail(row, "flags", f"expected bits below {1 << len(FLAGS)}, got {bits[row]}")
    found = {name: (bits & 1 << i) > 0 for i, name in enumerate(FLAGS)}
    for name in FLAGS:
        if name in columns:
            values = _integers(columns[name], name, at, truths=True)
            if ((values != 0) & (values != 1)).any():
                row = int(np.argmax((values != 0) & (values != 1)))
                at.fail(row, name, f"expected true or false, got {values[row]}")
            found[name] = found[name] | (values == 1)
    both = found["reset"] & (found["terminated"] | found["truncated"] | found["crash"])
    if both.any():
        at.fail(int(np.argmax(both)), "reset", "a reset is a row of its own, and ends no episode")
    return found


def plain_column(column: Any) -> NDArray[Any] | list[Any]:
    """Return a column as an array of numbers, or as a list if it has other values or gaps."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not isinstance(column, pa.Array):
        return column if isinstance(column, list) else np.asarray(column)
    kind = column.type
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if number and column.null_count == 0:
        numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return numbers
    return list_of(column)


def list_of(column: Any) -> list[Any]:
    """Return the values of an Arrow array; a text by number that occurs often is one object."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        return list(column.to_pylist())
    values = column.dictionary.to_pylist()
    return [None if code is None else values[code] for code in column.indices.to_pylist()]


def _integers(column: Any, name: str, at: _At, truths: bool = False) -> NDArray[np.int64]:
    """Return whole numbers [n]; with `truths`, also bools."""
    array = plain_column(column)
    if isinstance(array, np.ndarray) and array.ndim == 1:
        if array.dtype.kind == "i" or (array.dtype.kind == "b" and truths):
            return array.astype(np.int64)
        if array.dtype.kind == "u":
            if array.max(initial=0) >= 2**63:
                at.fail(int(np.argmax(array)), name, f"expected a number below 2^63, got {array.max()}")
            return array.astype(np.int64)
        if array.dtype.kind == "f":
            wrong = ~((np.abs(array) < 2.0**53) & (array == np.floor(array)))
            if wrong.any():
                row = int(np.argmax(wrong))
                at.fail(row, name, f"expected a whole number, got {array[row]}")
            return array.astype(np.int64)
    for row, value in enumerate(array):
        allowed = (int, np.integer, bool) if truths else (int, np.integer)
        if not isinstance(value, allowed) or (isinstance(value, bool) and not truths):
            wanted = "true or false" if truths else "a whole number"
            at.fail(row, name, f"expected {wanted}, got {_shown(value)}")
    return np.array(list(array), dtype=np.int64)


def _rewards(column: Any, reset: NDArray[np.bool_], at: _At) -> NDArray[np.float64]:
    array = plain_column(column)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf" or array.ndim != 1:
        numbers = np.zeros(len(array))
        for row, value in enumerate(array):
            if value is None and reset[row]:
                continue
            if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
                at.fail(row, "reward", f"expected a finite number, got {_shown(value)}")
            numbers[row] = value
        array = numbers
    reward = np.where(reset, 0.0, array.astype(np.float64))
    if not np.isfinite(reward).all():
        row = int(np.argmin(np.isfinite(reward)))
        at.fail(row, "reward", f"expected a finite number, got {reward[row]}")
    return reward


def _values(column: Any, form: str, name: str, at: _At) -> Values:
    """Return the values of a column of states or actions; each different one is stored once."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.Array):
        numbered = pa.types.is_dictionary(column.type)
        kind = column.type.value_type if numbered else column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            texts = column if numbered else column.cast(pa.large_string()).dictionary_encode()
            return _of_text(texts, form, name, at)
        if numbered and pa.types.is_primitive(kind):
            column = column.dictionary_decode()
    array = plain_column(column)
    if isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "iu":
        return _of_whole(_integers(array, name, at), form, name)
    if form in (NUMBER, INDEX):
        array, found = _gaps_filled(array), None
        if form == NUMBER or not _any_text(array):
            found = _integers(array, name, at)
            return Values(found, None, form, name)
    if isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind == "f" and form in (SHOWN, INDEX):
        return _of_whole(_integers(array, name, at), form, name)
    codes, values = coded(list(array), name, at)
    return Values(codes, values, VALUE if form == INDEX else form, name)


def _of_whole(whole: NDArray[np.int64], form: str, name: str) -> Values:
    if form in (NUMBER, INDEX):
        return Values(whole, None, form, name)
    values, codes = np.unique(whole, return_inverse=True)
    return Values(codes.astype(np.int64).ravel(), values.tolist(), form, name)


def _of_text(column: Any, form: str, name: str, at: _At) -> Values:
    """Return the values of texts, which are numbers and a dictionary; only those that occur are made."""
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    used, codes = np.unique(codes, return_inverse=True)
    codes = codes.ravel()
    texts = column.dictionary.take(pa.array(used, mask=used < 0))
    if form == NUMBER:
        row = int(np.argmax(used[codes] >= 0)) if len(codes) else 0
        got = texts[codes[row]].as_py() if len(codes) else None
        at.fail(
            row,
            name,
            f"expected the number of a state, got {_shown(got)}; observations as text "
            "belong in the columns observation and next_observation",
        )
    check_text(f"data: {at.source}, column {name}", pc.max(pc.utf8_length(texts)).as_py() or 0)
    values = texts.to_pylist()
    nothing = np.array([not value for value in values], dtype=bool)  # nothing is written as nothing
    codes = np.where(nothing[codes], -1, codes) if len(codes) else codes
    return Values(codes, values, form if form == SHOWN else TEXT, name)


def _gaps_filled(array: Any) -> Any:
    """Return a column with -1 in the place of None and nan."""
    if isinstance(array, np.ndarray) and array.dtype.kind == "f":
        return np.where(np.isnan(array), -1, array)
    if isinstance(array, list) or array.dtype.kind == "O":
        return [-1 if value is None or value != value else value for value in array]
    return array


def _any_text(array: Any) -> bool:
    if isinstance(array, np.ndarray):
        return array.ndim > 1 or array.dtype.kind not in "iufb"
    return any(isinstance(value, str | bytes | tuple | list | dict) for value in array)


def coded(items: Sequence[Any], name: str, at: Any) -> tuple[NDArray[np.int64], list[Any]]:
    """Return the place of each item among the different ones, -1 for None; and these."""
    freeze = Content().freeze
    places: dict[Hashable, int] = {}
    values: list[Any] = []
    codes = np.empty(len(items), dtype=np.int64)
    for row, item in enumerate(items):
        if item is None:
            codes[row] = -1
            continue
        try:
            key = freeze(item)
        except GosprlError as error:
            at.fail(row, name, str(error))
        place = places.setdefault(key, len(values))
        if place == len(values):
            values.append(item)
        codes[row] = place
    return codes, values


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"{value!r:.60} ({type(value).__name__})"
