"""The verb `reproduce`: the paper's figures and tables, made by `gosprl.experiments`."""

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

from gosprl.cli import completing
from gosprl.cli.shared import err, exits, out, print_table

if TYPE_CHECKING:
    from gosprl.experiments.page import Report

PANEL = "The paper's experiments"
LISTED = 10  # the largest number of failures of an experiment that are printed; the page has all
WINDOW = 3600.0  # seconds over which the speed is averaged: runs have very different lengths


def register(app: typer.Typer) -> None:
    """Add this verb to the command line."""
    app.command(rich_help_panel=PANEL)(exits(reproduce))


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME|all", help="Experiments, or all of them.", autocompletion=completing.experiments),
    ],
    runs: Annotated[
        int | None,
        typer.Option(help="Runs of each algorithm in each case.", show_default="30; with --quick 2"),
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|ray|ADDRESS",
            help="Processes, or the CPUs of a Ray cluster; results do not depend on it.",
            show_default="one per core",
        ),
    ] = None,
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Directory for runs, figures, tables and the page.")
    ] = Path("reproduction"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Few cases and short runs, within minutes. Needs its own DIR.")
    ] = False,
) -> None:
    """Reproduce the paper's figures and tables, and judge its claims.

    Every experiment is made with confidence sets of two widths: the radius times 0.1, as the paper states, and a narrow
    reading that was fitted to its Table 2. Figures and verdicts of both are side by side.

    Every run is stored in DIR when it ends, and is not made again: after Ctrl-C or a crash the same command continues,
    and with more --runs only the new ones are made. At the end DIR/NAME has figure.png, figure-fitted.png, both as
    PDF, summary.csv (means and quantiles) and runs.csv (one row per run), and DIR/index.html shows everything in DIR.
    The same command gives the same files.

    NAME is one of

    - `table-dynamics`: steps with known dynamics, beside the bounds B·D and Σ b(s)·D_s
    - `table-costs`: steps and visits of a trap, without and with a cost of the trap
    - `fig-treasure`, `fig-treasure-more`: the proportion of states whose need is met, over time
    - `fig-garnet`: steps on random systems with random needs
    - `fig-modest`: error of the estimated model, over time
    - `fig-diameter`, `fig-states`: steps against the diameter, and against the number of states
    - `fig-aggregation`: all goals at once, or one at a time
    - `fig-variants`: other goals, and costs driven by the visits

    Exit status 0 if everything was made and drawn, 1 if a run or a figure failed (the same command repeats it), 2 if
    DIR or an option is invalid, 130 after Ctrl-C.

    Example: `gosprl reproduce fig-garnet --quick --out look`

    Example: `gosprl reproduce all --runs 30 --out reproduction`
    """
    from gosprl.experiments import reproduce as engine
    from gosprl.experiments import store

    before = store.counts(folder)
    try:
        with shown() as progress:
            reports = engine.reproduce(names, out=folder, runs=runs, workers=workers, quick=quick, progress=progress)
    except KeyboardInterrupt:
        stored = sum(store.counts(folder).values())
        err.print(f"interrupted: {stored:,} runs are stored in {escape(str(folder))}; the same command continues")
        raise typer.Exit(130) from None
    for report in reports:
        _print_failed(report)
    print_table(_table(reports, before, store.counts(folder)))
    page = folder / "index.html"
    if page.exists():
        out.print(f"page: {escape(str(page))}", soft_wrap=True, highlight=False)
    raise typer.Exit(1 if any(report.failed for report in reports) else 0)


@contextmanager
def shown() -> Iterator[Callable[[int, int, str], None]]:
    """Show the progress: on a terminal a bar over all runs, otherwise a line after every tenth of the runs."""
    if not err.is_terminal:
        yield _lines()
        return
    times = (TimeElapsedColumn(), TextColumn("elapsed,"), TimeRemainingColumn(), TextColumn("left"))
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
    """Return a table of the runs made, and of the verdicts on the paper's claims."""
    from gosprl.experiments.claims import VERDICTS

    table = Table(box=SIMPLE_HEAD, caption="verdicts: with the radius x 0.1 / in the sets fitted to Table 2")
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
    """Return the number of claims with each verdict, at each width; dashes if the analysis failed."""
    try:
        numbers = [Counter(each.verdict for each in report.verdicts(width)) for width in report.experiment.widths]
    except Exception:  # already part of the report
        return ["-"] * len(words)
    return [" / ".join(str(number[word]) for number in numbers) for word in words]
