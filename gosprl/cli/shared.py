"""Shared by the verbs of the command line: reading arguments, showing a run, exit statuses.

Exit status: 0 everything asked for was reached, 1 stopped before, 2 usage or input error, 70 internal error, 130 after
Ctrl-C.
"""

import functools
import json
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import numpy as np
import typer
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, ProgressColumn, TextColumn
from rich.table import Table

import gosprl

P = ParamSpec("P")

MAX_WIDTH = 10_000  # characters of a table's line

out = Console()
err = Console(stderr=True)

Env = Annotated[str, typer.Argument(help="A domain (see `gosprl domains`) or the id of a Gymnasium environment.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of ENV, such as states=6.")
]
Seed = Annotated[int | None, typer.Option(help="Seed of all random numbers.")]
MaxSteps = Annotated[int | None, typer.Option(help="Stop after this many steps.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


def exits(command: Callable[P, None]) -> Callable[P, None]:
    """Return the command with its exceptions turned into the documented exit statuses."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except gosprl.InputError as error:
            print_error(error)
            raise typer.Exit(2) from None
        except typer.Exit:
            raise
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except Exception:
            traceback.print_exc()
            err.print("[bold red]internal error:[/] this is a bug in gosprl; please report it with the traceback above")
            raise typer.Exit(70) from None

    return wrapped


def print_table(table: Table) -> None:
    """Print a table of numbers at its natural width: a narrow terminal breaks its lines, but no digit is cut off."""
    width = out.measure(table, options=out.options.update(width=MAX_WIDTH)).maximum
    Console(width=max(width, out.width)).print(table)


def print_error(error: Exception) -> None:
    """Print an error in one line on stderr."""
    err.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)


def environment(name: str, settings: list[str] | None) -> Any:
    """Return one of our domains or a Gymnasium environment by name, with parameters KEY=VALUE."""
    parameters = dict(_setting(text) for text in settings or [])
    family = name.rstrip("0123456789")
    if name in gosprl.envs.names() or family in gosprl.envs.names():
        return gosprl.envs.make(name, **parameters)
    import gymnasium

    try:
        return gymnasium.make(name, **parameters)
    except Exception as error:
        known = ", ".join(gosprl.envs.names())
        raise gosprl.InputError(
            f"env: {name!r} is not one of our domains ({known}), and Gymnasium cannot make it: {error}"
        ) from None


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise gosprl.InputError(f"set: expected KEY=VALUE, got {text!r}")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


def samples(text: str) -> Any:
    """Return the need given by --need: a number, or the array in a file."""
    if text.endswith(".npy"):
        return array("need", Path(text))
    try:
        return int(text)
    except ValueError:
        raise gosprl.InputError(f"need: expected a whole number or an .npy file, got {text!r}") from None


def array(name: str, file: Path) -> NDArray[Any]:
    """Return the array in an .npy file, given by the option `name`."""
    try:
        loaded = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise gosprl.InputError(f"{name}: {file} is not an array that NumPy can read: {error}") from error
    if isinstance(loaded, np.ndarray):
        return loaded
    with loaded:
        raise gosprl.InputError(f"{name}: expected an .npy file with one array, got {file} with {list(loaded)}")


@contextmanager
def live(*columns: ProgressColumn, total: float | None = None) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """Show a live line if stderr is a terminal: the columns, then steps and plans; `total` is 1 for a bar."""
    if not err.is_terminal:
        yield None
        return
    with Progress(*columns, TextColumn("{task.fields[numbers]}"), console=err, transient=True) as progress:
        task = progress.add_task("", total=total, numbers="")

        def show(status: dict[str, Any]) -> None:
            numbers = f"{status['steps']:,} steps, {status['attempts']:,} plans, {status['rate']:,.0f} steps/s"
            progress.update(task, completed=status["met"], numbers=numbers)

        yield show


def facts(env: str, rows: list[tuple[str, str]]) -> Table:
    """Return a table of names and values, without those that have no value."""
    table = Table(title=escape(env), box=SIMPLE_HEAD, show_header=False)
    for name, value in rows:
        if value:
            table.add_row(escape(name), escape(value))
    return table


def summary(env: str, result: gosprl.Result) -> Table:
    """Return a table of the outcome of a collection."""
    missing = int((result.unmet["needed"] - result.unmet["have"]).sum())
    return facts(
        env,
        [
            ("met", f"{'yes' if result.met else 'no'}: {result.states} states, {result.pairs} pairs"),
            ("missing", f"{missing:,} samples" if missing else ""),
            ("given up", ", ".join(map(str, list(result.unreachable)[:10]))),
            ("why", next(iter(result.unreachable.values()), "")),
            ("stop", result.stop),
            ("steps", f"{result.steps:,}"),
            ("plans", f"{result.attempts:,}"),
            ("resets", f"{result.resets:,}" if result.resets else ""),
            ("guarantee", str(result.guarantee)),
            ("limit", result.closeness),
        ],
    )
