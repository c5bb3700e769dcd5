"""What a manifest may pass on: what a function or a strategy declares, of the types declared; and sizes it may claim.

A manifest may come from a stranger. Its settings become arguments of functions that also take paths, objects and
programs from their callers; from a manifest they take values only. Its numbers become sizes of arrays, so they are
compared with what the directory holds.
"""

import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from gosprl.collecting.surroundings import Surroundings
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.runs.files import Damaged
from gosprl.runs.manifests import MANIFEST, TABLE
from gosprl.sets import Confidence
from gosprl.strategies import STRATEGIES, Strategy, options_of

if TYPE_CHECKING:
    from gosprl.runs.opened import OpenRun

OF_CALLERS = ("system", "seed", "max_steps", "progress")  # parameters that no manifest decides
MOST_STATES = 2**21  # that a manifest may claim, and pairs
MOST_PAIRS = 2**23
FEW = 8  # states that a model begins with where they are discovered
SIZES = ("states", "actions", "branching", "rows", "columns")  # settings of domains
FOR_EACH = 64  # more of them for each event, name and transition of the data that the directory has

Hints = Mapping[str, Any]


@cache
def of_strategies() -> Hints:
    """Return the options of all strategies, and the types that they declare."""
    found: dict[str, Any] = {}
    for name, kind in STRATEGIES.items():
        hints = get_type_hints(kind)
        for option in options_of(name):
            found[option] = Union[found[option], hints[option]] if option in found else hints[option]  # noqa: UP007
    return found


@cache
def of_application(application: Any) -> Hints:
    """Return what an application may be given by a manifest, and the types that it declares."""
    function = inspect.unwrap(application)
    hints, parameters = get_type_hints(function), inspect.signature(function).parameters
    rest = {name for name, part in parameters.items() if part.kind == inspect.Parameter.VAR_KEYWORD}
    own = parameters.keys() - rest - set(OF_CALLERS)
    around = {part.name: part.type for part in fields(Surroundings)}
    return {**of_strategies(), "strategy": str | Strategy, **around, **{name: hints[name] for name in own}}


def check_declared(values: Mapping[str, Any], hints: Hints, where: str) -> None:
    """Raise `InputError` unless all values are declared, and of their types."""
    for name, value in values.items():
        if name not in hints:
            raise InputError(f"{MANIFEST}: {where}: expected only what is declared, got {name!r:.40}: {value!r:.50}")
        if not _is(hints[name], value):
            raise InputError(f"{MANIFEST}: {where}: {name}: expected the type declared, got {value!r:.60}")


def _is(hint: Any, value: Any) -> bool:
    """Whether a value is of a type; what is neither text nor an object of ours has to be numbers."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if complex in parts:  # an array, or what NumPy makes one of: text is none
        parts = (Any, *(NoneType for part in parts if part is NoneType))
    return any(_is_one(part, value) for part in parts)


def _is_one(kind: Any, value: Any) -> bool:
    if kind is float:
        return type(value) in (int, float)
    if kind in (int, bool, str, NoneType):
        return type(value) is kind
    if isinstance(kind, type) and kind.__module__.startswith("gosprl."):
        return isinstance(value, kind)
    if kind is Any and (value is None or isinstance(value, (TabularMDP, Confidence))):
        return True
    return _is_numbers(value)


def _is_numbers(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_numbers(part) for part in value)
    return type(value) in (bool, int, float) or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")


def check_claims(run: "OpenRun") -> None:
    """Raise `Damaged` if a manifest claims more states or pairs than a run with this log and these data can need."""
    system, names = run.manifest["system"], run.names
    kept = 0 if run.data is None else len(run.data.counts["pair"]) + len(run.data.counts["states"])
    room = FOR_EACH * (run.contents.rows + len(names.keys) + len(names.actions) + kept)
    states, pairs = system["states"] or names.num_states, 0
    if not run.is_table:
        pairs = max(states, FEW) * (system["actions"] or len(names.actions))
    elif not system["stored"] and system["source"] is not None:
        said = _size_of_domain(system["source"])
        states, pairs = max(states, said[0]), said[1]
    for what, number, most in (("states", states, MOST_STATES + room), ("pairs", pairs, MOST_PAIRS + room)):
        if number > most:
            raise Damaged(
                MANIFEST,
                None,
                f"speaks of {number} {what}, and there are {run.contents.rows} events: expected at most {most} of a "
                "run whose system is not given; give it: system=...",
            )


def _size_of_domain(source: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many states, and how many pairs or transitions, the settings of a domain ask for."""
    settings = source.get("settings", {})
    wrong = [name for name, value in settings.items() if type(value) not in (bool, int, float, str)]
    if wrong:
        raise Damaged(MANIFEST, None, f"system: {wrong[0]} cannot be {settings[wrong[0]]!r:.60}")
    digits = re.search(r"[0-9]{0,20}$", str(source.get("env", "")))
    sizes = {name: abs(value) for name, value in settings.items() if name in SIZES and type(value) is int}
    named = int(digits[0]) if digits and digits[0] else 1
    states = max(named, sizes.get("states", 1), sizes.get("rows", 1) * sizes.get("columns", 1))
    return states, max(states, math.prod(sizes.values()))


def check_size(states: int, actions: int, transitions: int) -> None:
    """Raise `InputError` if a stored table claims sizes that its transitions do not need."""
    if not (0 < states <= transitions and actions > 0 and states * actions <= MOST_PAIRS + FOR_EACH * transitions):
        raise InputError(
            f"{TABLE}: expected sizes that fit {transitions} transitions, got {states} states and {actions} actions"
        )
