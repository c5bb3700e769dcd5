"""The verb `reproduce`: the paper's figures and tables from runs that are kept; `gosprl.experiments` does the work."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from gosprl.cli.shared import err, exits, out

if TYPE_CHECKING:
    from gosprl.experiments.page import Report

PANEL = "The paper's experiments"
LISTED = 10  # failures of an experiment that are printed; the page has all
WINDOW = 3600.0  # seconds over which the speed is averaged: runs differ much


def register(app: typer.Typer) -> None:
    """Make this verb known to the command line."""
    app.command(rich_help_panel=PANEL)(exits(reproduce))


def reproduce(
    names: Annotated[list[str], typer.Argument(metavar="NAME|all", help="Experiments, or all of them.")],
    runs: Annotated[
        int | None,
        typer.Option(help="Runs of each algorithm in each case.", show_default="30; with --quick 2"),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes; the results do not depend on it.", show_default="one a core")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where runs, figures, tables and the page go.")
    ] = Path("reproduction"),
    quick: Annotated[
        bool, typer.Option("--quick", help="A look within minutes: few cases, short runs. Needs a DIR of its own.")
    ] = False,
) -> None:
    """Reproduce the paper's figures and tables, and say of each claim whether it was confirmed.

    Every run is kept in DIR as soon as it is made, and never made again: after Ctrl-C or a crash the same command goes
    on, and with more --runs only the new ones are made. At the end DIR/NAME has figure.png, figure.pdf, summary.csv
    (means and quantiles) and runs.csv (one row a run), and DIR/index.html is a page with all that DIR has. The same
    command gives the same files.

    NAME is one of

    - `table-dynamics`: steps with known dynamics, beside the bounds B·D and Σ b(s)·D_s
    - `table-costs`: steps and visits of a trap, without and with a cost that keeps away from it
    - `fig-treasure`, `fig-treasure-more`: states that have all they need, over time
    - `fig-garnet`: steps on random systems with random needs
    - `fig-modest`: error of the estimated model, over time
    - `fig-diameter`, `fig-states`: steps as the diameter, the number of states grows
    - `fig-aggregation`: all goals at once, or one at a time

    Exit status 0 if all was made and drawn, 1 if a run or a figure failed (the same command tries it again), 2 if DIR
    or an option cannot be used, 130 after Ctrl-C.

    Example: `gosprl reproduce fig-garnet --quick --out look`

    Example: `gosprl reproduce all --runs 30 --out reproduction`
    """
    from gosprl.experiments import reproduce as engine
    from gosprl.experiments import store

    before = store.counts(folder)
    try:
        with _shown() as progress:
            reports = engine.reproduce(names, out=folder, runs=runs, workers=workers, quick=quick, progress=progress)
    except KeyboardInterrupt:
        stored = sum(store.counts(folder).values())
        err.print(f"interrupted: {stored:,} runs are stored in {escape(str(folder))}; the same command continues")
        raise typer.Exit(130) from None
    for report in reports:
        _print_failed(report)
    out.print(_table(reports, before, store.counts(folder)))
    page = folder / "index.html"
    if page.exists():
        out.print(f"page: {escape(str(page))}", soft_wrap=True, highlight=False)
    raise typer.Exit(1 if any(report.failed for report in reports) else 0)


@contextmanager
def _shown() -> Iterator[Callable[[int, int, str], None]]:
    """Progress: a bar over all runs on a terminal, elsewhere a line every tenth of them."""
    if not err.is_terminal:
        yield _lines()
        return
    times = (TimeElapsedColumn(), TextColumn("gone,"), TimeRemainingColumn(), TextColumn("left"))
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("runs,"), *times, TextColumn("{task.description}"))
    with Progress(*columns, console=err, transient=True, speed_estimate_period=WINDOW) as bar:
        task = bar.add_task("", visible=False)

        def show(done: int, total: int, name: str) -> None:
            if name:
                bar.update(task, completed=done, description=escape(name))
            else:
                bar.reset(task, completed=done, total=total, visible=True)

        yield show


def _lines() -> Callable[[int, int, str], None]:
    begin, shown = time.monotonic(), -1

    def show(done: int, total: int, name: str) -> None:
        nonlocal shown
        tenth = 10 * done // max(1, total)
        if tenth > shown:
            shown = tenth
            seconds = time.monotonic() - begin
            err.print(f"{done:,} of {total:,} runs, {seconds:.0f} s", highlight=False)

    return show


def _print_failed(report: "Report") -> None:
    name = report.experiment.name
    for line in report.failed[:LISTED]:
        err.print(f"[bold red]failed:[/] {escape(f'{name}: {line}')}", highlight=False, soft_wrap=True)
    if len(report.failed) > LISTED:
        err.print(f"{name}: and {len(report.failed) - LISTED:,} more failures", highlight=False)


def _table(reports: "list[Report]", before: dict[str, int], after: dict[str, int]) -> Table:
    """What was made, and how the paper's claims fared."""
    from gosprl.experiments.claims import VERDICTS

    table = Table(box=SIMPLE_HEAD)
    table.add_column("experiment", no_wrap=True)
    for title in ("runs made now", "stored", *VERDICTS):
        table.add_column(title, justify="right")
    for report in reports:
        name = report.experiment.name
        stored = after.get(name, 0)
        made = stored - before.get(name, 0)
        table.add_row(name, f"{made:,}", f"{stored:,}", *_verdicts(report, VERDICTS))
    return table


def _verdicts(report: "Report", words: Sequence[str]) -> list[str]:
    """How many claims came to each verdict; nothing, where the analysis failed."""
    try:
        found = Counter(verdict.verdict for verdict in report.verdicts)
    except Exception:  # which the report already says
        return ["-"] * len(words)
    return [str(found[word]) for word in words]
