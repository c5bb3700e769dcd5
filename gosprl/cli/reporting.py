"""The verb `report`: the page of a run."""

from pathlib import Path
from typing import Annotated

import typer

from gosprl.cli.pages import say_written
from gosprl.cli.runs import PANEL, Directory
from gosprl.cli.shared import AsJson, exits, print_json


def register(app: typer.Typer) -> None:
    """Add this verb to the command line."""
    app.command(rich_help_panel=PANEL)(exits(report))


def report(
    directory: Directory,
    file: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The .html file.", show_default="beside DIR, as DIR.html"),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a page that shows a run at a glance: one HTML file that needs no network.

    What was asked and promised, the proportion met over time beside the limit, visits, what is missing and why, the
    learnt system, hitting times, rewards, walkers, the certificate, and the command that runs it again. Works while the
    run is being written, and on a damaged one: then what comes before the damage is shown. Nothing that the run names
    is imported, made or started. A page of that name is replaced. Exit status 0, 1 if something is damaged, 2 if it is
    no run.

    Example: `gosprl report runs/lake`

    Example: `gosprl report runs/lake --out lake.html --open`
    """
    from gosprl.report.writing import check_file, page_of, write

    target = _beside(directory) if file is None else file
    check_file(target)
    page = page_of(directory)
    write(page, target)
    if as_json:
        print_json({"directory": str(directory), "file": str(target), "problems": list(page.problems)})
    else:
        say_written(target)
    if show:
        typer.launch(target.resolve().as_uri())
    raise typer.Exit(1 if page.problems else 0)


def _beside(directory: Path) -> Path:
    """Return DIR.html beside DIR, also if DIR is . or .. and has no name of its own."""
    named = directory if directory.name not in ("", "..") else directory.resolve()
    return named.parent / f"{named.name or 'run'}.html"
