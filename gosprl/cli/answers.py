"""From an application to the terminal: walk, print the answer or the JSON object, save it, exit."""

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.progress import SpinnerColumn, TextColumn
from rich.table import Table

import gosprl
from gosprl import applications
from gosprl.cli.shared import facts, live, out, print_error, summary

LISTED = 50  # states of a policy that are printed


@dataclass(frozen=True)
class Asked:
    """Where to walk, how, and what to do with the answer: what all verbs have."""

    env: str
    system: Any
    seed: int | None
    delta: float
    confidence: str
    max_steps: int | None
    save: Path | None
    force: bool
    as_json: bool


def run(
    doing: str,
    asked: Asked,
    application: Callable[..., Any],
    options: dict[str, Any],
    more: Callable[[Any], dict[str, Any]] = lambda answer: {},
    listed: tuple[str, ...] = (),
) -> NoReturn:
    """Walk, print and save what came of it, and exit with the status that says whether that was all.

    more
        What to tell beside the answer's own fields.
    listed
        Which of the things told to print for every state: `policy` first.
    """
    _check_out(asked)
    walk = {key: getattr(asked, key) for key in ("seed", "delta", "confidence", "max_steps")}
    try:
        with live(SpinnerColumn(), TextColumn(doing)) as bar:
            answer = application(asked.system, progress=bar, **walk, **options)
    except gosprl.CollectionError as error:
        _end_failed(asked, error)
    told = _ending(asked, answer, answer.collected.seed) | _answered(answer) | more(answer)
    shown = [facts(asked.env, [*answer.lines(), *answer.ending()]), *([_per_state(told, listed)] if listed else [])]
    _print_and_save(asked, told, shown)
    raise typer.Exit(130 if answer.stop == "interrupted" else 0 if answer.reached else 1)


def _end_failed(asked: Asked, error: gosprl.CollectionError) -> NoReturn:
    """There is no answer, but what was collected before the run failed."""
    print_error(error)
    result = error.result
    told = _ending(asked, result, result.seed) | {"error": str(error)} | _transitions(result.model)
    _print_and_save(asked, told, [summary(asked.env, result)])
    raise typer.Exit(2 if isinstance(error.__cause__, gosprl.InputError) else 1)


def _ending(asked: Asked, ended: applications.Answer | gosprl.Result, seed: int | None) -> dict[str, Any]:
    told = {"env": asked.env, "steps": ended.steps, "stop": ended.stop, "guarantee": str(ended.guarantee)}
    return {**told, "seed": seed}


def _answered(answer: applications.Answer) -> dict[str, Any]:
    """The fields of an answer; a model is told as its transitions."""
    told: dict[str, Any] = {}
    for field in fields(answer):
        value = getattr(answer, field.name)
        if isinstance(value, gosprl.EmpiricalModel):
            told |= _transitions(value)
        elif field.name not in ("collected", "guarantee") and not field.name.startswith("_"):
            told[field.name] = value
    return told


def _transitions(model: gosprl.EmpiricalModel) -> dict[str, Any]:
    return dict(zip(("s", "a", "s_next", "count"), model.transitions(), strict=True))


def _plain(value: Any) -> Any:
    """As JSON has it: lists, and null for what is no number."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _per_state(told: dict[str, Any], listed: tuple[str, ...]) -> Table:
    """Of every state with a policy, or the first of them, what is `listed`."""
    states = np.flatnonzero(told["policy"] >= 0)
    left = len(states) - LISTED
    caption = f"and {left:,} states more: --json and --out have all" if left > 0 else None
    table = Table(box=SIMPLE_HEAD, caption=caption)
    for title in ("state", *("action" if name == "policy" else name for name in listed)):
        table.add_column(title, justify="right")
    for s in states[:LISTED].tolist():
        table.add_row(str(s), *(f"{told[name][s]:.4g}" for name in listed))
    return table


def _check_out(asked: Asked) -> None:
    """Refuse, before any work, a file that could not be written after it."""
    file = asked.save
    if file is None:
        return
    if file.suffix != ".npz":
        raise gosprl.InputError(f"out: expected the name of an .npz file, got {file}")
    if file.exists() and not asked.force:
        raise gosprl.InputError(f"out: {file} exists; another name, or --force to overwrite it")
    if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise gosprl.InputError(f"out: {file} cannot be written; is its directory there, and yours?")


def _print_and_save(asked: Asked, told: dict[str, Any], shown: list[Table]) -> None:
    if asked.as_json:
        print(json.dumps(_plain(told), allow_nan=False))
    else:
        out.print(*shown, sep="")
    if asked.save is None:
        return
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in told.items() if value is not None}
    try:
        with asked.save.open("wb" if asked.force else "xb") as file:
            np.savez(file, **arrays)
    except OSError as error:
        raise gosprl.InputError(f"out: {asked.save} could not be written: {error}") from None
