"""The verbs that write files for other tools: export, convert."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from gosprl.cli.runs import PANEL, Directory
from gosprl.cli.shared import AsJson, exits, out, print_json

Force = Annotated[bool, typer.Option("--force", help="Replace FILE if it exists; a directory is never replaced.")]


def register(app: typer.Typer) -> None:
    """Add these verbs to the command line."""
    for verb in (export, convert):
        app.command(rich_help_panel=PANEL)(exits(verb))


def export(
    directory: Directory,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What is written; its ending says the format.")],
    to: Annotated[
        str | None,
        typer.Option(
            metavar="npz|parquet|csv|minari|dot|graphml|prism|drn|umb", help="The format, instead of FILE's ending."
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="transitions|model",
            help="For csv and parquet: the transitions in order (default), or the model with its intervals.",
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a run as a file that other tools read: see docs/exchange.md for what each format can carry.

    FILE appears when it is complete; nothing is left behind otherwise. The run is not changed. Exit status 0 if FILE
    was written, 1 if it could not be, as on a full disk, 2 if DIR is no run or is damaged, or an argument is wrong.

    Example: `gosprl export runs/lake lake.parquet`

    Example: `gosprl export runs/lake datasets/gosprl/lake-v0 --to minari`
    """
    from gosprl.exchange import export as write

    options = {} if table is None else {"table": table}
    write(directory, file, to, force=force, **options)
    _report(file, as_json, {"directory": str(directory)})


def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="A", help="A table (.csv, .parquet, .npz), or known dynamics (.drn, .umb, PRISM's .tra)."
        ),
    ],
    file: Annotated[Path, typer.Argument(metavar="B", help="What is written; its ending says the format.")],
    to: Annotated[
        str | None,
        typer.Option(metavar="csv|parquet|npz|drn|umb|prism", help="The format, instead of B's ending."),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a table of transitions, or known dynamics, in another format.

    Tables are csv, parquet and npz files: A needs the columns state, action and next_state, and may have the others of
    docs/exchange.md. Known dynamics are DRN and UMB files and PRISM's explicit files (a directory, or its .tra file);
    they are also written in PRISM's language. Values and order stay as they are. There is no way from a table to
    graphs, Minari data sets or model checkers' files: these need a run (`gosprl export`). Exit status 0 if B was
    written, 1 if it could not be, as on a full disk, 2 if an argument or a value in A is wrong.

    Example: `gosprl convert transitions.csv transitions.parquet`

    Example: `gosprl convert model.drn model --to prism`
    """
    from gosprl.exchange import convert as write

    write(source, file, to, force=force)
    _report(file, as_json, {"source": str(source)})


def _report(file: Path, as_json: bool, origin: dict[str, Any]) -> None:
    size = sum(part.stat().st_size for part in file.rglob("*") if part.is_file()) if file.is_dir() else 0
    size = size or file.stat().st_size
    if as_json:
        print_json({**origin, "file": str(file), "bytes": size})
    else:
        out.print(escape(f"wrote {file}: {size:,} bytes"), highlight=False, soft_wrap=True)
