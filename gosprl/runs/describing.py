"""Settings of a run as JSON, and back: what was needed, by which strategy, of which system.

A value that JSON cannot express, such as a function, is described by `{"given": "..."}`: it has to be given again when
the run is resumed. Nothing that is read here is executed.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gosprl import _checks, strategies
from gosprl.collecting.requirements import ByObservation, Discovered, Fixed, Requirement, scattered
from gosprl.collecting.thorough import Thorough
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.runs.declared import check_declared, check_size, of_strategies
from gosprl.runs.keys import key_of, text_of
from gosprl.runs.manifests import DTYPE
from gosprl.sets import KL, Bernstein
from gosprl.strategies import Strategy

FAMILIES = {"KL": KL, "Bernstein": Bernstein}
GIVEN, SYSTEM = "given", "the system"


def is_given(description: Any) -> bool:
    """Whether something could not be described, so that it has to be given again."""
    return isinstance(description, dict) and set(description) == {GIVEN}


def described(value: Any, system: Any = None) -> Any:
    """Return the value of an option as JSON; `system` is what is walked, to which an option may refer."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": str(value)}
    if isinstance(value, (np.ndarray, np.generic)) and np.asarray(value).dtype.kind in "biuf":
        return {"array": described_list(np.asarray(value).tolist()), "dtype": np.asarray(value).dtype.str}
    if isinstance(value, (list, tuple)):
        return [described(part, system) for part in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {"dict": {name: described(part, system) for name, part in value.items()}}
    if isinstance(value, Strategy):
        return {"strategy": strategy_described(value, system)}
    if isinstance(value, TabularMDP):
        return {"table": SYSTEM if value is system else digest_of(value)}
    if type(value) in FAMILIES.values() and is_dataclass(value):
        return {type(value).__name__: {part.name: described(getattr(value, part.name)) for part in fields(value)}}
    if isinstance(value, Path):
        return str(value)
    return {GIVEN: _name_of(value)}


def described_list(value: Any) -> Any:
    """Return nested lists of numbers, with text in the place of those that are not finite."""
    if isinstance(value, list):
        return [described_list(part) for part in value]
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def restored(description: Any, name: str, system: Any = None) -> Any:
    """Return the value that was described; an `InputError` that names the argument if it must be given again."""
    if isinstance(description, list):
        return [restored(part, name, system) for part in description]
    if not isinstance(description, dict):
        return description
    if is_given(description):
        raise InputError(
            f"{name}: the run was made with {description[GIVEN]}, which cannot be stored; give it again to "
            f"gosprl.resume(..., {name}=...)"
        )
    try:
        return _restored(description, name, system)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: expected a description of a value, got {description!r:.80}: {error}") from None


def _restored(description: dict[str, Any], name: str, system: Any) -> Any:
    kind, value = next(iter(description.items()), ("", None))
    if kind == "number" and value in ("inf", "-inf", "nan"):
        return float(value)
    if kind == "dict" and isinstance(value, dict):
        return {part: restored(one, name, system) for part, one in value.items()}
    if "array" in description and isinstance(description.get("dtype"), str):
        return _array(description["array"], description["dtype"], name)
    if kind == "table" and isinstance(system, TabularMDP) and value in (SYSTEM, digest_of(system)):
        return system
    if kind == "strategy":
        return strategy_restored(value, system, {})
    if kind in FAMILIES and isinstance(value, dict):
        return FAMILIES[kind](**{part: restored(one, name) for part, one in value.items()})
    raise InputError(f"{name}: expected a description of a value, got {description!r:.80}; give it again")


def _array(numbers: Any, dtype: str, name: str) -> Any:
    if not DTYPE.fullmatch(dtype):
        raise InputError(f"{name}: expected numbers, got dtype {dtype!r:.20}")
    try:
        return np.array(numbers, dtype=np.dtype(dtype))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name}: expected numbers, got {numbers!r:.80}") from None


def _name_of(value: Any) -> str:
    kind = type(value)
    own = getattr(value, "__qualname__", None)
    return f"{kind.__name__} {own}" if isinstance(own, str) else f"an object of type {kind.__qualname__}"


def strategy_described(strategy: Strategy, system: Any) -> dict[str, Any]:
    """Return the name of a strategy and its options."""
    for name, kind in strategies.STRATEGIES.items():
        if type(strategy) is kind and is_dataclass(strategy):
            options = {part.name: getattr(strategy, part.name) for part in fields(strategy)}
            return {"name": name, "options": {part: described(one, system) for part, one in options.items()}}
    return {GIVEN: _name_of(strategy)}


def strategy_restored(description: Any, system: Any, given: Mapping[str, Any]) -> Strategy:
    """Return the strategy that was described, with options that are given again."""
    if is_given(description):
        restored(description, "strategy")
    if not isinstance(description, dict) or not isinstance(description.get("options"), dict):
        raise InputError(f"strategy: expected its name and its options, got {description!r:.80}")
    stored = {name: restored(one, name, system) for name, one in description["options"].items() if name not in given}
    _checks.choice("strategy", description.get("name"), strategies.STRATEGIES)
    check_declared(stored, of_strategies(), f"strategy {description['name']}: options")
    return strategies.make(description["name"], {**stored, **given})


def need_described(need: Requirement, model: EmpiricalModel) -> Any:
    """Return what is needed: by pair and state, of everything discovered, or by observation."""
    if isinstance(need, Thorough):
        return need_described(need.asked, model)  # `unseen` is a setting of its own
    if type(need) is Discovered:
        return {"of each discovered": need.samples}
    if type(need) is ByObservation:
        return {"by key": [[text_of(key), _by_action(wanted)] for key, wanted in need.need.items()]}
    if type(need) is not Fixed:
        return {GIVEN: _name_of(need)}
    known = model.known_rows
    rows = model.rows.places(known)
    pair, state = need.pair[rows], need.state[: known.num_states]
    if len(pair) and not state.any() and pair.min() == pair.max():
        return {"of each pair": int(pair[0])}
    return {"pairs": pair.tolist(), "states": state.tolist()}


def need_restored(description: Any, model: EmpiricalModel) -> Requirement:
    """Return the requirement that was described, for an empty model."""
    if is_given(description):
        restored(description, "need")
    try:
        return _need_of(description, model)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"need: expected what a run describes, got {description!r:.80}: {error}") from None


def _need_of(description: dict[str, Any], model: EmpiricalModel) -> Requirement:
    known = model.known_rows
    if "of each discovered" in description:
        return Discovered(int(description["of each discovered"]), model)
    if "by key" in description:
        return ByObservation(
            {
                key_of(text): dict(number) if isinstance(number, list) else number
                for text, number in description["by key"]
            },
            model,
        )
    if "of each pair" in description:
        pair = np.full(len(known), int(description["of each pair"]))
        state = np.zeros(known.num_states, dtype=np.int64)
    else:
        pair, state = (np.array(description[name], dtype=np.int64) for name in ("pairs", "states"))
    if pair.shape != (len(known),) or state.shape != (known.num_states,):
        raise InputError(f"need: expected numbers for {len(known)} pairs and {known.num_states} states")
    S = model.rows.num_states
    return Fixed(scattered(pair, model.places(), len(model.rows)), scattered(state, np.arange(len(state)), S))


def _by_action(wanted: Any) -> Any:
    return [[int(a), int(n)] for a, n in wanted.items()] if isinstance(wanted, Mapping) else int(wanted)


def digest_of(mdp: TabularMDP) -> str:
    """Return a SHA-256 over everything that decides how a table is walked."""
    digest = hashlib.sha256(f"{mdp.num_states} {mdp.num_actions} {mdp.start} {mdp.noise}".encode())
    parts = (mdp.rows.ptr, mdp.rows.action, mdp.ptr, mdp.succ, mdp.prob, mdp.rewards)
    for part in parts:
        digest.update(b"none" if part is None else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def table_described(mdp: TabularMDP) -> dict[str, Any]:
    """Return a table as JSON: its transitions, one entry for each, and the mean rewards of its pairs."""
    row = np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    return {
        "states": mdp.num_states,
        "actions": mdp.num_actions,
        "start": mdp.start,
        "noise": mdp.noise,
        "name": mdp.name,
        "map": None if mdp.map is None else list(mdp.map),
        "state": mdp.rows.state[row].tolist(),
        "action": mdp.rows.action[row].tolist(),
        "next_state": mdp.succ.tolist(),
        "probability": mdp.prob.tolist(),
        "rewards": None if mdp.rewards is None else mdp.rewards.tolist(),
    }


def table_restored(table: Mapping[str, Any]) -> TabularMDP:
    """Return the table that was described."""
    try:
        parts = (*(np.array(table[name], dtype=np.int64) for name in ("state", "action", "next_state")),)
        size = {"states": int(table["states"]), "actions": int(table["actions"])}
        start, noise, name = int(table["start"]), table["noise"], str(table["name"])
        probability = np.array(table["probability"], dtype=np.float64)
        rewards = None if table["rewards"] is None else np.array(table["rewards"], dtype=np.float64)
        drawn = None if table["map"] is None else [str(line) for line in table["map"]]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"system.json: expected a table of transitions: {error!r:.80}") from None
    check_size(size["states"], size["actions"], len(parts[0]))
    mdp = TabularMDP((*parts, probability), start, noise=noise, name=name, map=drawn, **size)
    if rewards is not None:
        if rewards.shape != (len(mdp.rows),):
            raise InputError(f"system.json: expected {len(mdp.rows)} rewards, got {rewards.shape}")
        mdp = mdp.with_rewards(mdp.rows.to_dense(rewards), noise)
    return mdp
