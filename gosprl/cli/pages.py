"""The option `--report`: a page that shows the run."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

import gosprl
from gosprl.cli.shared import err

ReportFile = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Write a page that shows the run: an .html file (docs/report.md)."),
]


def check_report(file: Path | None) -> None:
    """Raise `InputError` before a run if its page could not be written."""
    if file is not None:
        from gosprl.report.writing import check_file

        check_file(file)


def write_report(file: Path | None, result: gosprl.Result, kept_in: Path | None, name: str) -> None:
    """Write the page of a collection: from its directory if it was kept, otherwise from the result."""
    if file is None:
        return
    if kept_in is None:
        write_page(file, result, title=name, command=_command_line())
    else:
        write_page(file, kept_in)


def write_answer(file: Path | None, answer: gosprl.applications.Answer, name: str) -> None:
    """Write the page of an application's answer."""
    if file is not None:
        write_page(file, answer, title=name, command=_command_line())


def _command_line() -> str:
    return shlex.join(["gosprl", *sys.argv[1:]])


def write_page(file: Path, source: Any, **options: Any) -> None:
    """Write the page of a run, a result or an answer, and say where it is."""
    from gosprl.report.writing import report

    say_written(report(source, file, **options))


def say_written(file: Path) -> None:
    """Say where a page is."""
    err.print(f"written: {escape(str(file))}", highlight=False, soft_wrap=True)
