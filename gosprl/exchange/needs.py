"""Needs from tables: a row for each state or pair, with the number of samples.

| column | what it holds |
|---|---|
| `observation`, or `state` | the observation, in text as JSON; or the number of a state, of systems that number them |
| `action` | the index or the value of an action; blank: any action of the state will do. May be left out |
| `number`, or `samples` | the samples needed, in total |
"""

import os
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from gosprl import _checks
from gosprl.collecting.requirements import ANY, ByObservation, Fixed, Requirement, of_mapping
from gosprl.errors import GosprlError, InputError
from gosprl.exchange.columns import list_of
from gosprl.exchange.csv_files import csv_parts
from gosprl.exchange.decoding import Allowance
from gosprl.exchange.incoming.tables import frame_parts
from gosprl.exchange.meanings import meanings
from gosprl.exchange.parquet_files import parquet_parts
from gosprl.model.empirical import EmpiricalModel
from gosprl.systems.base import System

UNKNOWN = {"error": None, "wait": None}
EXPECTED = "expected the columns observation (or state), action (blank: any) and number (or samples)"
MOST = 10**7  # rows
ROWS = 65_536  # of a batch
TEXTS = dict.fromkeys(("observation", "state", "action", "number", "samples"), pa.large_string())


def need_of_table(need: Any, unknown: str, system: System, model: EmpiricalModel) -> Requirement:
    """Return the requirement of a table.

    Parameters
    ----------
    need
        A data frame, or the path of a .csv or .parquet file.
    unknown
        What to do with observations that are not known yet: "error", or "wait" until they are discovered.
    system
        What will be walked: it says what observations and actions stand for.
    model
        What is known of it so far.

    Raises
    ------
    InputError
        Something is wrong with the table; the error names the row, counted from 1, and the column.
    """
    _checks.choice("need_unknown", unknown, UNKNOWN)
    name, parts, size = _opened(need)
    allowance = Allowance(f"need: {name}", size)
    found: dict[Hashable, dict[Any, int]] = {}
    first = 0
    try:
        for part in parts:
            for row, entry in enumerate(_entries(part, name), first + 1):
                _add(found, entry, f"need: {name}, row {row}", unknown, system, model, allowance)
            first += part.num_rows
            if first > MOST:
                raise InputError(f"need: {name}: expected at most {MOST} rows")
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise InputError(f"need: {name} cannot be read after row {first}: {str(error).splitlines()[0]:.300}") from None
    if not found:
        raise InputError(f"need: {name} has no rows")
    if not model.all_actions:
        model.widen(len(model.actions))
    return ByObservation(found, model) if model.growing else Fixed(*of_mapping(found, model))


def _opened(need: Any) -> tuple[str, Iterator[Any], int | None]:
    """Return the name of a table, its parts, and the bytes of a file."""
    if not isinstance(need, str | os.PathLike):
        return f"the {type(need).__name__}", frame_parts(need, "need"), None
    path = Path(need)
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(
            f"need: expected a .csv or .parquet file, a data frame, a number or an array, got {need!r:.80}"
        )
    if not path.is_file():
        raise InputError(f"need: there is no file {path}")
    size = path.stat().st_size
    if path.suffix.lower() == ".parquet":
        return str(path), parquet_parts(path, ROWS, "need", lambda names: _columns(names, str(path))), size
    return str(path), csv_parts(path, TEXTS, "need", lambda names: _columns(names, str(path))), size


def _entries(part: Any, name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a part, after checking its columns."""
    given = _columns(part.schema.names, name)
    for values in zip(*(list_of(part.column(column)) for column in given), strict=True):
        yield dict(zip(given, values, strict=True))


def _columns(names: list[str], name: str) -> list[str]:
    """Return the columns that are read, after checking them all."""
    given = [column for column in names if not column.startswith("__index_level_")]
    foreign = [column for column in given if column not in ("observation", "state", "action", "number", "samples")]
    states, numbers = set(given) & {"observation", "state"}, set(given) & {"number", "samples"}
    if foreign:
        raise InputError(f"need: {name}: column {foreign[0]!r:.60} is not known; {EXPECTED}")
    if not states or len(numbers) != 1 or len(set(given)) < len(given):
        raise InputError(f"need: {name}: got the columns {given!r:.200}; {EXPECTED}, each once")
    return given


def _add(
    found: dict[Hashable, dict[Any, int]],
    entry: dict[str, Any],
    where: str,
    unknown: str,
    system: System,
    model: EmpiricalModel,
    allowance: Allowance,
) -> None:
    """Add one row."""
    column = "number" if "number" in entry else "samples"
    samples = _whole(entry[column], f"{where}, column {column}", "a number of samples")
    key = _key(entry, where, system, model)
    if not model.states.fixed and unknown == "error" and model.states.live(key) < 0:
        shown = entry.get("observation")
        raise InputError(
            f"{where}, column observation: {shown!r:.60} is not known before the run; to wait until it is discovered, "
            'give need_unknown="wait" (--need-unknown wait)'
        )
    action = _action(entry.get("action"), f"{where}, column action", system, model)
    if key not in found:
        allowance.text(len(entry["observation"]) if isinstance(entry.get("observation"), str) else 0)
        allowance.state()
    of_state = found.setdefault(key, {})
    if action in of_state:
        raise InputError(f"{where}: the same observation and action as in a row before")
    of_state[action] = samples


def _whole(value: Any, where: str, what: str) -> int:
    """Return a whole number >= 0; text and floats may hold one."""
    number = value
    if isinstance(value, str):
        try:
            number = int(value)
        except ValueError:
            number = None
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**63:
        shown = "nothing" if value is None else f"{value!r:.60}"
        raise InputError(f"{where}: expected {what}, a whole number >= 0, got {shown}")
    return number


def _key(entry: dict[str, Any], where: str, system: System, model: EmpiricalModel) -> Hashable:
    fixed = model.states.fixed
    column = "observation" if "observation" in entry else "state"
    value, where = entry[column], f"{where}, column {column}"
    if value is None or value != value:
        raise InputError(f"{where}: expected {'an observation' if column == 'observation' else 'a state'}, got nothing")
    if column == "state":
        if not fixed:
            raise InputError(f"{where}: states have no numbers, since they are discovered; give the column observation")
        number = _whole(value, where, "the number of a state")
        if number >= fixed:
            raise InputError(f"{where}: expected a state in 0..{fixed - 1}, got {number}")
        return number
    keys, last = [], None
    for option in meanings(value):
        try:
            key: Any = system.key_of(option)
            keys.append(_checks.index("observation", key, fixed, "a state") if fixed else key)
        except GosprlError as error:
            last = last or error
    if not keys:
        raise InputError(f"{where}: {last}")
    return next((key for key in keys if not fixed and model.states.live(key) >= 0), keys[0])


def _action(value: Any, where: str, system: System, model: EmpiricalModel) -> Any:
    """Return the index of an action; `ANY` if there is none."""
    if value is None or value != value:
        return ANY
    count = model.num_actions - (model.resets == "anytime")
    wrong: Any = None
    if isinstance(value, float) and value.is_integer():  # a column of whole numbers with gaps
        value = int(value)
    for option in meanings(value):
        if type(option) is int and model.all_actions:
            if 0 <= option < count:
                return option
            wrong = f"expected the index of an action, 0..{count - 1}, got {value!r:.60}"
            continue
        try:
            return system.action_index(option)
        except GosprlError as error:
            wrong = wrong or error
    raise InputError(f"{where}: {wrong}")
