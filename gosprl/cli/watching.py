"""The verb `watch`: a live view of a run."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar

from gosprl.cli.runs import PANEL, Directory
from gosprl.cli.shared import exits, facts, out, print_json

if TYPE_CHECKING:
    from gosprl.watching import Look

WIDTH = 60  # of the bar

POLITE = 19  # added to the process's nice value: the run that is watched comes first, even if all cores are busy


def register(app: typer.Typer) -> None:
    """Add this verb to the command line."""
    app.command(rich_help_panel=PANEL)(exits(watch))


def watch(
    directory: Directory,
    every: Annotated[float, typer.Option(help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a look, a line each.")] = False,
) -> None:
    """Watch a run that another process, or another machine, is making.

    Shows the proportion met, the rate, a forecast of the steps and the time left with its interval, the pairs that lack
    most samples, and the walkers of a fleet. Everything is read from the files of the run, and nothing is written. Ends
    when the run ends, or when nobody writes to it any more. Exit status 0 if it was met, 1 if it stopped before or is
    damaged, 2 if DIR is no run, 130 after Ctrl-C.

    Example: `gosprl watch runs/lake`

    Example: `gosprl watch runs/lake --json --every 10`
    """
    from gosprl.watching import watch as looks

    if hasattr(os, "nice"):
        os.nice(POLITE)
    is_met = False
    with _shown(directory, as_json) as show:
        for look in looks(directory, every):
            show(look)
            is_met = look.facts["met"] == 1.0 or look.facts["stop"] in ("met", "found")
            if once:
                raise typer.Exit(0)
    raise typer.Exit(0 if is_met else 1)


@contextmanager
def _shown(directory: Path, as_json: bool) -> "Iterator[Callable[[Look], None]]":
    """Show looks: as lines of JSON, as one view that is written over, or one below the other."""
    if as_json:
        yield lambda look: print_json(look.facts)
        return
    if not out.is_terminal:
        yield lambda look: out.print(_view(directory, look))
        return
    with Live(console=out, auto_refresh=False) as live:
        yield lambda look: live.update(_view(directory, look), refresh=True)


def _view(directory: Path, look: "Look") -> RenderableType:
    table = facts(str(directory), look.lines())
    if look.facts["met"] is None or not out.is_terminal:
        return table
    return Group(table, ProgressBar(total=1.0, completed=look.facts["met"], width=WIDTH))
