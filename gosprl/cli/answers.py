"""Run an application, print its answer or a JSON object, save it, and exit with the documented status."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.progress import SpinnerColumn, TextColumn
from rich.table import Table

import gosprl
from gosprl import applications
from gosprl.cli.fleets import copies
from gosprl.cli.pages import check_report, write_answer
from gosprl.cli.saving import check_file, observations, save, transitions
from gosprl.cli.shared import INTERRUPTED, facts, live, out, outcome, print_error, print_json, summary
from gosprl.printing import brief

NAME = 80  # characters of the name of a state in a table
LISTED = 50  # the largest number of states whose policy is printed


@dataclass(frozen=True)
class Request:
    """The options that all verbs share: the system, how to collect, and how to print and save the answer."""

    env: str
    system: Any
    seed: int | None
    delta: float
    confidence: str
    max_steps: int | None
    save: Path | None
    force: bool
    as_json: bool
    declared: dict[str, Any] = field(default_factory=dict)  # what the environment is like: resets, horizon and so on
    kept: dict[str, Any] = field(default_factory=dict)  # `out`, if the run is kept on disk
    page: Path | None = None  # the file of --report


def run(
    doing: str,
    request: Request,
    application: Callable[..., Any],
    options: dict[str, Any],
    more: Callable[[Any], dict[str, Any]] = lambda answer: {},
    listed: tuple[str, ...] = (),
) -> NoReturn:
    """Run an application, print and save its answer, and exit.

    Parameters
    ----------
    doing
        A word for the progress line.
    request
        The options that all verbs share.
    application
        The function of `gosprl.applications`.
    options
        Its own options.
    more
        Returns further entries of the output, beside the answer's own fields.
    listed
        The entries to print for every state, `policy` first.

    Raises
    ------
    typer.Exit
        0: the answer is complete, 1: stopped before, 2: input error, 130: interrupted.
    """
    check_file(request.save, request.force)
    check_report(request.page)
    walk = {key: getattr(request, key) for key in ("seed", "delta", "confidence", "max_steps")}
    try:
        with live(SpinnerColumn(), TextColumn(doing)) as bar:
            system = copies(request.system, request.declared)
            answer = application(system, progress=bar, **walk, **request.declared, **request.kept, **options)
    except gosprl.CollectionError as error:
        end_failed(request, error)
    write_answer(request.page, answer, request.env)
    report(request, answer, more, listed)


def report(
    request: Request,
    answer: Any,
    more: Callable[[Any], dict[str, Any]] = lambda answer: {},
    listed: tuple[str, ...] = (),
) -> NoReturn:
    """Print and save an answer, and exit; as `run`."""
    output = outcome(request.env, answer.collected) | {"guarantee": str(answer.guarantee)} | _answered(answer)
    shown, wrong = [facts(request.env, [*answer.lines(), *answer.ending()])], False
    try:
        output |= more(answer)
        shown += [_per_state(output, listed, answer.collected.model)] if listed else []
    except gosprl.InputError as error:  # known only now: of a goal that was not discovered
        print_error(error)
        wrong = True
    _print_and_save(request, output, shown)
    raise typer.Exit(2 if wrong else INTERRUPTED if answer.stop == "interrupted" else 0 if answer.reached else 1)


def end_failed(request: Request, error: gosprl.CollectionError) -> NoReturn:
    """Print and save the samples collected before the run failed, and exit."""
    print_error(error)
    result = error.result
    output = outcome(request.env, result) | {"error": str(error)} | transitions(result.model)
    _print_and_save(request, output, [summary(request.env, result)])
    raise typer.Exit(2 if isinstance(error.__cause__, gosprl.InputError) else 1)


def _answered(answer: applications.Answer) -> dict[str, Any]:
    """Return the fields of an answer; a model is replaced by its transitions."""
    output: dict[str, Any] = observations(answer.collected.model)
    for part in fields(answer):
        value = getattr(answer, part.name)
        if isinstance(value, gosprl.EmpiricalModel):
            output |= transitions(value)
        elif part.name not in ("collected", "guarantee") and not part.name.startswith("_"):
            output[part.name] = value
    return output


def _per_state(output: dict[str, Any], listed: tuple[str, ...], model: gosprl.EmpiricalModel) -> Table:
    """Return a table of the `listed` entries of every state with a policy, at most LISTED states."""
    states = np.flatnonzero(output["policy"] >= 0)
    omitted = len(states) - LISTED
    caption = f"and {omitted:,} more states: --json and --save have all" if omitted > 0 else None
    table = Table(box=SIMPLE_HEAD, caption=caption)
    for title in ("state", *("action" if name == "policy" else name for name in listed)):
        table.add_column(title, justify="right")
    for s in states[:LISTED].tolist():
        table.add_row(escape(brief(model.states.name(s), NAME)), *(f"{output[name][s]:.4g}" for name in listed))
    return table


def _print_and_save(request: Request, output: dict[str, Any], shown: list[Table]) -> None:
    if request.as_json:
        print_json(output)
    else:
        out.print(*shown, sep="")
    if request.save is not None:
        save(request.save, output, force=request.force)
