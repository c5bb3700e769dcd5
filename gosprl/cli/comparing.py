"""The verb `compare`: several strategies on one system."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

import gosprl
from gosprl.cli import completing
from gosprl.cli.reproduce import shown
from gosprl.cli.shared import (
    AsJson,
    Env,
    Horizon,
    MaxStates,
    ResetCost,
    Resets,
    Settings,
    declared,
    err,
    exits,
    out,
    parameters,
    print_json,
    print_table,
    samples,
)


def register(app: typer.Typer) -> None:
    """Add this verb to the command line."""
    app.command()(exits(compare))


def compare(
    env: Env,
    strategies: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME,...",
            help="What is compared; the others with the first one.",
            autocompletion=completing.several,
        ),
    ] = "guarded,gosprl,random",
    need: Annotated[str, typer.Option(help="Samples of every pair: a number, or an .npy file.")] = "10",
    runs: Annotated[int, typer.Option(help="Runs of each strategy, with seeds 0, 1, 2, ...")] = 20,
    max_steps: Annotated[
        int | None,
        typer.Option(
            help="Stop every run there. By default, all but the first strategy are stopped at 10 times its steps."
        ),
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
        Path | None,
        typer.Option("--out", metavar="DIR", help="Keep finished runs there: the same command goes on."),
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one row a run to a .csv file.")] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the comparison: a .png, .pdf or .svg file.")
    ] = None,
    settings: Settings = None,
    resets: Resets = None,
    reset_cost: ResetCost = None,
    horizon: Horizon = None,
    max_states: MaxStates = None,
    as_json: AsJson = False,
) -> None:
    """Compare strategies on ENV: the steps that each takes to meet the need, with 95 % intervals.

    Every strategy makes runs with the same seeds, on all cores. Runs that are stopped before the need is met are
    counted and marked: the mean is then a lower bound. Exit status 0 if all runs were made, 1 if one failed, 2 if an
    argument is wrong, 130 after Ctrl-C; with --out the same command goes on.

    Example: `gosprl compare four_room43 --strategies guarded,gosprl,random --need 2 --runs 4`

    Example: `gosprl compare riverswim6 --need 10 --runs 20 --csv runs.csv --picture runs.png`
    """
    from gosprl.comparing import compare as compared
    from gosprl.experiments.figures import check_matplotlib
    from gosprl.systems.named import Named

    _check_file("csv", csv, (".csv",))
    _check_file("picture", picture, (".png", ".pdf", ".svg"))
    if picture is not None:
        check_matplotlib("plot")
    options = declared(resets, reset_cost, horizon, max_states, None)
    options |= {"max_steps": max_steps, "workers": workers, "out": folder}
    system = Named(env, parameters(settings))
    with shown() as progress:
        comparison = compared(system, strategies, samples(need), runs, progress=progress, **options)
    for file in (csv, picture):
        if file is not None:
            comparison.write(file)
            err.print(f"written: {escape(str(file))}", highlight=False, soft_wrap=True)
    if as_json:
        return print_json({"env": env, "limit": comparison.limit, "runs": comparison.rows})
    print_table(_table(comparison))
    if any(line.stopped for line in comparison.summary):
        out.print("at least: runs were stopped before the need was met", highlight=False)


def _check_file(option: str, file: Path | None, endings: tuple[str, ...]) -> None:
    """Raise `InputError` before the runs are made if the file could not be written."""
    if file is not None and file.suffix.lower() not in endings:
        raise gosprl.InputError(f"{option}: expected a name that ends with {' or '.join(endings)}, got {file.name!r}")


def _table(comparison: "gosprl.comparing.Comparison") -> Table:
    from gosprl.comparing.comparison import COLUMNS

    table = Table(title=escape(comparison.title), box=SIMPLE_HEAD)
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "strategy" else "right", no_wrap=True)
    for line in comparison.summary:
        table.add_row(*map(escape, line.cells()))
    return table
