"""What the verbs of the command line share: how they read their arguments, show a run, and end.

Exit status: 0 done (all that was asked for was reached), 1 stopped before, 2 usage or input error, 70 internal error,
130 after Ctrl-C.
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

out = Console()
err = Console(stderr=True)

Env = Annotated[str, typer.Argument(help="A domain (see `gosprl domains`) or the id of a Gymnasium environment.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of ENV, such as states=6.")
]
Seed = Annotated[int | None, typer.Option(help="Fixes everything random.")]
MaxSteps = Annotated[int | None, typer.Option(help="Stop after so many steps.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


def exits(command: Callable[P, None]) -> Callable[P, None]:
    """Turn what a command raises into the documented exit status."""

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
            err.print("[bold red]internal error:[/] this is a defect of gosprl; the lines above say where")
            raise typer.Exit(70) from None

    return wrapped


def print_error(error: Exception) -> None:
    err.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False)


def environment(name: str, settings: list[str] | None) -> Any:
    """One of our domains, or else a Gymnasium environment, with parameters KEY=VALUE."""
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
            f"env: {name!r} is not one of our domains ({known}), nor Gymnasium's: {error}"
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
    """What --need says: a number, or the array in a file."""
    if text.endswith(".npy"):
        return array("need", Path(text))
    try:
        return int(text)
    except ValueError:
        raise gosprl.InputError(f"need: expected a whole number or an .npy file, got {text!r}") from None


def array(name: str, file: Path) -> NDArray[Any]:
    """The array in an .npy file that the option `name` gave."""
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
    """A live line on a terminal, nothing elsewhere: the columns, then steps and plans; `total` is 1 for a bar."""
    if not err.is_terminal:
        yield None
        return
    with Progress(*columns, TextColumn("{task.fields[numbers]}"), console=err, transient=True) as progress:
        task = progress.add_task("", total=total, numbers="")

        def show(status: dict[str, Any]) -> None:
            numbers = f"{status['steps']:,} steps, {status['attempts']:,} plans, {status['rate']:,.0f} steps/s"
            progress.update(task, completed=status["met"], numbers=numbers)

        yield show


def announce_compiling() -> None:
    """Say why nothing happens, if the planner has never been compiled on this machine."""
    if first_run():
        err.print("compiling once, about 30 s", style="dim")


def first_run() -> bool:
    """Whether the planner has never been compiled on this machine."""
    from gosprl import _kernels

    return not any(Path(str(_kernels.solve.stats.cache_path)).glob("*.solve-*.nbi"))


def facts(env: str, rows: list[tuple[str, str]]) -> Table:
    """Names and values, those without a value left out."""
    table = Table(title=escape(env), box=SIMPLE_HEAD, show_header=False)
    for name, value in rows:
        if value:
            table.add_row(escape(name), escape(value))
    return table


def summary(env: str, result: gosprl.Result) -> Table:
    """What a collection brought."""
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
