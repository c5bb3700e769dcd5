"""Options of the verbs that keep a run on disk, and where it comes from."""

from pathlib import Path
from typing import Annotated, Any

import typer

import gosprl

KEEPING = "A run on disk"
OutDir = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Keep everything in this directory (docs/runs.md), so that nothing is lost: `gosprl resume DIR` goes on "
        "after a crash. If DIR is a run with the same settings, it goes on.",
        rich_help_panel=KEEPING,
    ),
]
SyncSteps = Annotated[
    int | None, typer.Option(help="Steps after which all is on disk (default 100000).", rich_help_panel=KEEPING)
]
SyncSeconds = Annotated[
    float | None, typer.Option(help="Seconds after which all is on disk (default 1).", rich_help_panel=KEEPING)
]


def kept(
    directory: Path | None,
    source: dict[str, Any] | None,
    sync_steps: int | None = None,
    sync_seconds: float | None = None,
) -> dict[str, Any]:
    """Return the argument `out` of a collection, if a run is to be kept.

    Parameters
    ----------
    directory
        As given by --out; None: nothing is kept.
    source
        What makes the system again; None: its table is stored.
    sync_steps, sync_seconds
        As given.
    """
    given: dict[str, Any] = {"sync_steps": sync_steps, "sync_seconds": sync_seconds}
    given = {name: value for name, value in given.items() if value is not None}
    if directory is None:
        if given:
            raise gosprl.InputError(f"{next(iter(given))}: only with --out DIR")
        return {}
    if directory.suffix == ".npz":
        raise gosprl.InputError(
            f"out: expected a directory to keep the run in, got {directory}; to save the answer as arrays, use --save "
            f"{directory}"
        )
    from gosprl.runs import Out

    return {"out": Out(directory, source=source, **given)}


def made_by(env: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the source of an environment that was made by its name."""
    return {"env": env, "settings": parameters}
