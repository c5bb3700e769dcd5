"""Samples and answers as arrays in a file."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

import gosprl
from gosprl.cli.shared import plain


def transitions(model: gosprl.EmpiricalModel) -> dict[str, Any]:
    """Return the transitions counted, and what state indices stand for."""
    return observations(model) | dict(zip(("s", "a", "s_next", "count"), model.transitions(), strict=True))


def observations(model: gosprl.EmpiricalModel) -> dict[str, Any]:
    """Return what state indices stand for, where they are not the states of a table.

    `observations` has one entry for each index, null for the reset; `final` has the indices of endings.
    """
    if model.resets == "never" and not model.growing:
        return {}
    return {"observations": [plain(observation) for observation in model.states], "final": model.states.finals}


def check_file(file: Path | None, force: bool) -> None:
    """Raise `InputError` before a run if what it brings could not be written to the file."""
    if file is None:
        return
    if file.suffix != ".npz":
        raise gosprl.InputError(f"save: expected the name of an .npz file, got {file}")
    if file.exists() and not force:
        raise gosprl.InputError(
            f"save: expected a new file, but {file} exists; give another name, or --force to overwrite it"
        )
    if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise gosprl.InputError(f"save: {file} cannot be written; check that its directory exists and is writable")


def save(file: Path, output: dict[str, Any], *, force: bool) -> None:
    """Write what is in a JSON object as arrays."""
    if "observations" in output:  # as text, since they may be anything
        output = output | {"observations": [json.dumps(observation) for observation in output["observations"]]}
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in output.items() if value is not None}
    try:
        with file.open("wb" if force else "xb") as opened:
            np.savez(opened, **arrays)
    except OSError as error:
        raise gosprl.InputError(f"save: {file} could not be written: {error}") from None
