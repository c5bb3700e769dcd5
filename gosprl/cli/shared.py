"""Shared by the verbs of the command line: reading arguments, showing a run, exit statuses.

Exit status: 0 everything asked for was reached, 1 stopped before, 2 usage or input error, 70 internal error, 130 after
Ctrl-C, 143 after SIGTERM. Of `verify`: 0 confirmed, 1 damaged, 3 neither.
"""

import functools
import json
import math
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import numpy as np
import typer
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.progress import Progress, ProgressColumn, TextColumn
from rich.table import Table

import gosprl
from gosprl import _checks
from gosprl.cli import completing
from gosprl.cli.console import Terminal
from gosprl.printing import brief, lines_printable
from gosprl.progress import LogLines, fleet_of, states_of

P = ParamSpec("P")

INTERRUPTED, TERMINATED = 130, 143  # exit statuses after Ctrl-C and after SIGTERM

MAX_WIDTH = 10_000  # characters of a table's line

out = Terminal()
err = Terminal(stderr=True)

ENV = "A domain (see `gosprl domains`) or the id of a Gymnasium environment."
Env = Annotated[str, typer.Argument(help=ENV, autocompletion=completing.environments)]
EnvOrProcess = Annotated[str | None, typer.Argument(metavar="[ENV]", help=ENV, autocompletion=completing.environments)]
PROGRAMS = "Programs in other languages"
ProcessOption = Annotated[
    str | None,
    typer.Option(
        "--process",
        metavar="COMMAND",
        help="Instead of ENV: a program that speaks the line protocol (docs/protocol.md), with its arguments. No shell "
        "reads them.",
        rich_help_panel=PROGRAMS,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(help="Seconds in which the program must answer (default 30).", rich_help_panel=PROGRAMS),
]
ErrorLog = Annotated[
    Path | None,
    typer.Option("--log", metavar="FILE", help="Append the program's standard error.", rich_help_panel=PROGRAMS),
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of ENV, such as states=6.")
]
Seed = Annotated[int | None, typer.Option(help="Seed of all random numbers.")]
MaxSteps = Annotated[int | None, typer.Option(help="Stop after this many steps.")]
EPISODES = "Environments that are not tables"
Resets = Annotated[
    str | None,
    typer.Option(
        metavar="terminal|never|anytime",
        help="When ENV is reset. terminal (default): only when an episode ended. never: an ending is an error. "
        "anytime: a reset is an action of every state, and plans use it where that is shorter.",
        rich_help_panel=EPISODES,
    ),
]
ResetCost = Annotated[
    float | None,
    typer.Option(
        help="What a reset costs with --resets anytime, in steps (default 1): the larger, the fewer resets.",
        rich_help_panel=EPISODES,
    ),
]
Horizon = Annotated[int | None, typer.Option(help="Cut episodes off after this many steps.", rich_help_panel=EPISODES)]
MaxStates = Annotated[
    int | None,
    typer.Option(
        help="A bound on the number of observations, if their space has none. It makes confidence sets a little "
        "smaller; a run that discovers more fails.",
        rich_help_panel=EPISODES,
    ),
]
Unseen = Annotated[
    float | None,
    typer.Option(
        help="Go on until, at level delta, no pair discovered, nor the start, leads to anything never seen with a "
        "larger probability than this. Without it, a run ends when the states discovered have their samples.",
        rich_help_panel=EPISODES,
    ),
]
DATA = "Samples that are there already"
Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="FILE",
        help="Begin with samples: the directory of a run, a .parquet, .csv or .npz file, or the id of a Minari data "
        "set (docs/exchange_data.md). May be given several times: they are taken in order.",
        rich_help_panel=DATA,
    ),
]
DataOrder = Annotated[
    str | None,
    typer.Option(
        metavar="collected|unknown",
        help="Needed unless --data are runs. collected: the samples of each pair are in the order in which they were "
        "drawn, and none was left out because of its outcome. unknown: only the latter; confidence sets are wider.",
        rich_help_panel=DATA,
    ),
]
NeedUnknown = Annotated[
    str | None,
    typer.Option(
        metavar="error|wait",
        help="Observations in a table of needs that are not known yet: an error (default), or wait until they are "
        "discovered.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


def declared(
    resets: str | None, reset_cost: float | None, horizon: int | None, max_states: int | None, unseen: float | None
) -> dict[str, Any]:
    """Return the options that declare what an environment is like, without those that were not given."""
    given = {
        "resets": resets,
        "reset_cost": reset_cost,
        "horizon": horizon,
        "max_states": max_states,
        "unseen": unseen,
    }
    return {name: value for name, value in given.items() if value is not None}


def begun_with(data: list[str] | None, data_order: str | None) -> dict[str, Any]:
    """Return the options for samples that are there already, without those that were not given."""
    given = {"data": data or None, "data_order": data_order}
    return {name: value for name, value in given.items() if value is not None}


def exits(command: Callable[P, None]) -> Callable[P, None]:
    """Return the command with its exceptions turned into the documented exit statuses."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except gosprl.InputError as error:
            print_error(error)
            raise typer.Exit(2) from None
        except (typer.Exit, BrokenPipeError):  # Typer ends quietly if nobody reads any more: gosprl ... | head
            raise
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if isinstance(error, gosprl.GosprlError) and not isinstance(error, gosprl.PrecisionError):
                print_error(error)  # the world is at fault, such as a full disk
                raise typer.Exit(1) from None
            sys.stderr.write(lines_printable(traceback.format_exc()))
            err.print("[bold red]internal error:[/] this is a bug in gosprl; please report it with the traceback above")
            raise typer.Exit(70) from None

    return wrapped


def print_table(table: Table) -> None:
    """Print a table of numbers at its natural width: a narrow terminal breaks its lines, but no digit is cut off."""
    width = out.measure(table, options=out.options.update(width=MAX_WIDTH)).maximum
    Terminal(width=max(width, out.width)).print(table)


def print_error(error: Exception) -> None:
    """Print an error in one line on stderr."""
    err.print(f"[bold red]error:[/] {escape(brief(str(error), MAX_WIDTH))}", highlight=False, soft_wrap=True)


@contextmanager
def opened(
    env: str | None, settings: list[str] | None, process: str | None, timeout: float | None, log: Path | None
) -> Iterator[tuple[str, Any]]:
    """Yield the name and the system that ENV or --process stand for; afterwards a program is ended."""
    if (env is None) == (process is None):
        raise gosprl.InputError("env, process: expected either ENV or --process COMMAND")
    if env is not None:
        if timeout is not None or log is not None:
            raise gosprl.InputError("timeout, log: only with --process")
        yield env, environment(env, settings)
        return
    if settings:
        raise gosprl.InputError("set: only with ENV; arguments of a program stand in its command")
    from gosprl.systems.process import Process

    assert process is not None
    seconds = patience(timeout)
    try:
        system = Process(process, start_timeout=seconds, reset_timeout=seconds, step_timeout=seconds, log=log)
    except gosprl.GosprlError as error:
        raise gosprl.InputError(str(error)) from None
    with system:
        yield process, system


def patience(timeout: float | None) -> float:
    """Return the seconds that --timeout gives a program to answer in."""
    from gosprl.systems.process import TIMEOUT

    return TIMEOUT if timeout is None else _checks.positive("timeout", timeout)


def parameters(settings: list[str] | None) -> dict[str, Any]:
    """Return the parameters KEY=VALUE given by --set."""
    return dict(_setting(text) for text in settings or [])


def environment(name: str, settings: list[str] | None) -> Any:
    """Return one of our domains or a Gymnasium environment by name, with parameters KEY=VALUE."""
    return made(name, parameters(settings))


def made(name: str, parameters: dict[str, Any]) -> Any:
    """Return one of our domains or a Gymnasium environment by name, with its parameters."""
    from gosprl.systems.named import Named

    return Named(name, parameters)()


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise gosprl.InputError(f"set: expected KEY=VALUE, got {text!r}")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


def samples(text: str, tables: bool = False) -> Any:
    """Return the need given by --need: a number, the array in a file, or the path of a table, if those are taken."""
    if text.endswith(".npy"):
        return array("need", Path(text))
    if tables and text.endswith((".csv", ".parquet")):
        return Path(text)
    try:
        return int(text)
    except ValueError:
        files = "an .npy, .csv or .parquet file" if tables else "an .npy file"
        raise gosprl.InputError(f"need: expected a whole number or {files}, got {text!r}") from None


def array(name: str, file: Path) -> NDArray[Any]:
    """Return the array in an .npy file, given by the option `name`."""
    try:
        loaded = np.load(file, mmap_mode="r", allow_pickle=False)  # what a header claims is not allocated
    except (OSError, ValueError, EOFError) as error:
        raise gosprl.InputError(f"{name}: {file} is not an array that NumPy can read: {error}") from error
    if isinstance(loaded, np.ndarray):
        return np.array(loaded)
    with loaded:
        raise gosprl.InputError(f"{name}: expected an .npy file with one array, got {file} with {list(loaded)}")


@contextmanager
def live(*columns: ProgressColumn, total: float | None = None) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Show a live line if stderr is a terminal: the columns, then steps and plans; `total` is 1 for a bar.

    Elsewhere, as in the background, a run that takes long writes a line a minute.

    Columns can show the field `states`: the number of those known or discovered. The warning that "met" may say little
    is left out: what the command prints says it.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="met for the .* states discovered")
        with _live(*columns, total=total) as show:
            yield show


@contextmanager
def _live(*columns: ProgressColumn, total: float | None) -> Iterator[Callable[[dict[str, Any]], None]]:
    if not err.is_terminal:
        yield LogLines()
        return
    with Progress(*columns, TextColumn("{task.fields[numbers]}"), console=err, transient=True) as progress:
        task = progress.add_task("", total=total, numbers="", states="the states")

        def show(status: dict[str, Any]) -> None:
            numbers = f"{status['steps']:,} steps, {status['attempts']:,} plans, {status['rate']:,.0f} steps/s"
            numbers += fleet_of(status)
            progress.update(task, completed=status["met"], numbers=numbers, states=states_of(status))

        yield show


def facts(env: str, rows: list[tuple[str, str]]) -> Table:
    """Return a table of names and values, without those that have no value."""
    table = Table(title=escape(brief(env)), box=SIMPLE_HEAD, show_header=False)
    for name, value in rows:
        if value:
            table.add_row(*(escape(lines_printable(brief(text))) for text in (name, value)))
    return table


def summary(env: str, result: gosprl.Result) -> Table:
    """Return a table of the outcome of a collection."""
    return facts(
        env,
        [
            ("met", f"{'yes' if result.met else 'no'}: {result.about}"),
            ("missing", f"{result.missing:,} samples" if result.missing else ""),
            ("given up", ", ".join(result.named(s) for s in list(result.unreachable)[:10])),
            ("why", next(iter(result.unreachable.values()), "")),
            ("stop", result.stop),
            ("steps", f"{result.steps:,}"),
            ("plans", f"{result.attempts:,}"),
            ("resets", f"{result.resets:,}" if result.resets else ""),
            ("crashes", f"{result.crashes:,}" if result.crashes else ""),
            ("lost", result.losses),
            ("guarantee", str(result.guarantee)),
            ("unseen", result.hidden if result.of_discovered else ""),
            ("limit", result.closeness),
        ],
    )


def outcome(env: str, result: gosprl.Result) -> dict[str, Any]:
    """Return the entries of a JSON object that all verbs have, for the outcome of a collection."""
    keys = (
        "met",
        "steps",
        "attempts",
        "stop",
        "states",
        "pairs",
        "of_discovered",
        "seed",
        "resets",
        "crashes",
        "unseen",
    )
    lost = {} if result.fleet is None else {"lost": result.fleet["lost"]}
    return {"env": env, **{key: getattr(result, key) for key in keys}, **lost, "guarantee": str(result.guarantee)}


def print_json(output: dict[str, Any]) -> None:
    """Print one JSON object: null for inf and nan, lists for arrays, text for what JSON has no word for."""
    print(json.dumps(plain(output), allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value that JSON can represent."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
