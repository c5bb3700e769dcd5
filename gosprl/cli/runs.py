"""The verbs for runs on disk: resume, verify, show, repair."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.markup import escape
from rich.progress import BarColumn, TextColumn

import gosprl
from gosprl.cli import completing
from gosprl.cli.answers import Request, end_failed, report
from gosprl.cli.collect import (
    Confidence,
    Delta,
    Goals,
    LinearScale,
    Planning,
    Reach,
    Scale,
    end,
    print_result,
    strategy_options,
)
from gosprl.cli.fleets import Workers, copies, fleet
from gosprl.cli.outputs import SyncSeconds, SyncSteps
from gosprl.cli.pages import ReportFile, check_report, write_page
from gosprl.cli.shared import AsJson, ErrorLog, err, exits, facts, live, made, out, print_error, print_json, samples

if TYPE_CHECKING:
    from gosprl.runs.opened import OpenRun

PANEL = "Runs on disk"
NOT_ALL_KNOWN = 3  # exit status of `verify` where nothing is wrong, but not all can be known
LISTED = {"learn_policy": ("policy", "lower", "upper")}  # what the verbs of applications print for every state

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a run.")]


def register(app: typer.Typer) -> None:
    """Add these verbs to the command line."""
    for verb in (resume, verify, show, repair):
        app.command(rich_help_panel=PANEL)(exits(verb))


def resume(
    directory: Directory,
    need: Annotated[
        str | None,
        typer.Option(help="Samples of every pair, in total: a number, or an .npy file. By default as before."),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="Another strategy, as in `gosprl collect`. By default as before.", autocompletion=completing.strategies
        ),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="Stop after this many steps, counted from the beginning of the run.")
    ] = None,
    confidence: Confidence = None,
    scale: Scale = None,
    linear_scale: LinearScale = None,
    delta: Delta = None,
    goals: Goals = None,
    reach: Reach = None,
    planning: Planning = None,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Make the environment, or start the program, that the run names without asking."),
    ] = False,
    sync_steps: SyncSteps = None,
    sync_seconds: SyncSeconds = None,
    workers: Workers = None,
    log: ErrorLog = None,
    page: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a run that was interrupted, or ask for more of the same system.

    Our domains go on bit for bit, as if the run had never been interrupted. A Gymnasium environment or a program that
    cannot restore its state begins a new trajectory; every sample counts. Before one is made or started, it is named,
    and you are asked: a run that somebody else made is data, and what it names may be anything. The run of a fleet goes
    on with as many copies as before, or --workers; they are reset, and what was in flight is unknown. Exit status 0 if
    the need was met, 1 if the run stopped before, 2 if it is no run, is damaged, or an argument is wrong.

    Example: `gosprl resume runs/lake`

    Example: `gosprl resume runs/lake --need 20 --yes`

    Example: `gosprl resume runs/lake --workers 8`

    Example: `gosprl resume runs/policy --report policy.html`, which shows the answer of an application
    """
    check_report(page)
    run = _opened(directory)
    changes = strategy_options(confidence, scale, linear_scale, delta, goals, reach, planning)
    changes |= {"need": None if need is None else samples(need), "strategy": strategy, "max_steps": max_steps}
    synced = {"sync_steps": sync_steps, "sync_seconds": sync_seconds}
    changes |= {name: value for name, value in synced.items() if value is not None}
    changes |= fleet(workers)
    of_fleet = "fleet" in run.manifest["legs"][-1] or workers is not None
    with _system(run, yes, log) as (name, system):
        walked = copies(system, {"workers": workers or ""} if of_fleet else {})
        _go_on(run, name, walked, changes, as_json, page)


def _opened(directory: Path) -> "OpenRun":
    from gosprl.runs.checking import check_undamaged
    from gosprl.runs.files import Damaged
    from gosprl.runs.opened import OpenRun

    try:
        run = OpenRun.read(directory)
    except Damaged as error:
        raise gosprl.InputError(f"run: {directory} is damaged: {error}; gosprl verify says more") from None
    check_undamaged(run)
    return run


def _go_on(
    run: "OpenRun", name: str, system: Any, changes: dict[str, Any], as_json: bool, page: Path | None
) -> NoReturn:
    application = run.manifest["legs"][-1]["application"]
    met = TextColumn("{task.percentage:3.0f} % of {task.fields[states]} met")
    request = Request(name, system, None, 0.0, "", None, None, False, as_json)
    try:
        with live(BarColumn(), met, total=1.0) as bar:
            answer = gosprl.resume(run.path, system=system, progress=bar, **changes)
    except gosprl.CollectionError as error:
        if application is not None:
            end_failed(request, error)
        print_error(error)
        print_result(name, system, error.result, as_json)
        end(error.result, isinstance(error.__cause__, gosprl.InputError))
    if page is not None:
        write_page(page, run.directory if application is None else answer)
    if application is not None:
        report(request, answer, listed=LISTED.get(application["name"], ()))
    print_result(name, system, answer, as_json)
    end(answer)


@contextmanager
def _system(run: "OpenRun", yes: bool, log: Path | None) -> Iterator[tuple[str, Any]]:
    """Yield the name and the system that a run walks; what is not ours is made only if the user agrees."""
    from gosprl.runs.resuming import table_of

    source = run.manifest["system"]["source"]
    if log is not None and (source is None or "process" not in source):
        raise gosprl.InputError("log: only for a run of a program")
    if run.is_table:
        mdp = table_of(run)
        yield (mdp.name if source is None else source["env"]), mdp
    elif source is None:
        raise gosprl.InputError(
            f"run: {run.directory} walks {run.manifest['system']['name']!r}, which was made in Python; go on there: "
            "gosprl.resume(directory, system=...)"
        )
    elif "process" in source:
        yield from _program(source, yes, log)
    else:
        yield _environment(source, yes)


def _program(source: dict[str, Any], yes: bool, log: Path | None) -> Iterator[tuple[str, Any]]:
    import shlex

    from gosprl.systems.process import TIMEOUT, Process

    command, seconds = shlex.join(source["process"]), source.get("timeout", TIMEOUT)
    _ask(f"start the program: {command}", yes)
    try:
        system = Process(source["process"], start_timeout=seconds, reset_timeout=seconds, step_timeout=seconds, log=log)
    except gosprl.InputError:
        raise
    except gosprl.GosprlError as error:
        raise gosprl.InputError(str(error)) from None
    with system:
        yield command, system


def _environment(source: dict[str, Any], yes: bool) -> tuple[str, Any]:
    name, settings = source["env"], source.get("settings", {})
    module, colon, _ = name.partition(":")
    arguments = "".join(f", {key}={value!r}" for key, value in settings.items())
    imports = f", which imports the module {module!r}" if colon else ""
    _ask(f"call gymnasium.make({name!r}{arguments}){imports}", yes)
    return name, made(name, settings)


def _ask(what: str, yes: bool) -> None:
    """Say what is about to be done, and ask; `InputError` if the answer is no, or nobody can answer."""
    from gosprl.printing import printable

    err.print(f"about to {escape(printable(what))}", highlight=False, soft_wrap=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise gosprl.InputError(
            "yes: nobody can be asked without a terminal; give --yes if you trust what the run names"
        )
    if not typer.confirm("The run names it. Do you trust it?", err=True):
        raise gosprl.InputError("nothing was made, and the run was not changed")


def verify(directory: Directory, as_json: AsJson = False) -> None:
    """Check a run, which may come from anybody: files, events, counts, guarantee and certificate.

    The run is made again from its log, with its settings and its seed; the steps of our domains are simulated again.
    Nothing that the run names is imported, made or started, and nothing is written. Exit status 0 if everything is
    confirmed; 1 if something is damaged or wrong (file and batch are named); 2 if it is no run; 3 if nothing is wrong,
    but not all can be known: the run is unfinished, or needs something that only its author has.

    Example: `gosprl verify runs/lake`
    """
    from gosprl.runs import verify as check

    found = check(directory)
    if as_json:
        checks = [{"name": one.name, "ok": one.ok, "text": one.text} for one in found.checks]
        print_json({"directory": str(directory), "ok": found.ok, "verdict": found.verdict, "checks": checks})
    else:
        out.print(escape(repr(found)), highlight=False, soft_wrap=True)
    raise typer.Exit(0 if found.ok else 1 if found.damaged else NOT_ALL_KNOWN)


def show(directory: Directory, as_json: AsJson = False) -> None:
    """Show what a run is, how far it is, what is missing, its model, and what it takes on disk.

    Works while the run is being written, and on a damaged one: then what comes before the damage is shown. Exit status
    0, 1 if something is damaged, 2 if it is no run.

    Example: `gosprl show runs/lake --json`
    """
    from gosprl.runs import show as look

    found = look(directory)
    if as_json:
        print_json({"directory": str(directory), **found.facts, "problems": list(found.problems)})
    else:
        out.print(facts(str(directory), found.lines()))
    raise typer.Exit(1 if found.problems else 0)


def repair(
    directory: Directory,
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A new directory for the copy.")],
    as_json: AsJson = False,
) -> None:
    """Copy what can be trusted of a damaged run, from its beginning, to a new directory.

    The damaged run is not touched. The copy has every batch before the first damage, can be verified and resumed, and
    has no certificate. Exit status 0 if there is such a copy, 1 if the manifest is damaged, too (then the log is
    copied alone), 2 if it is no run, or TARGET exists.

    Example: `gosprl repair runs/lake runs/lake-repaired`
    """
    from gosprl.runs import repair as mend

    done = mend(directory, target)
    if as_json:
        print_json({"target": str(target), "events": done.events, "complete": done.complete, "notes": list(done.notes)})
    else:
        out.print(escape(repr(done)), highlight=False, soft_wrap=True)
    raise typer.Exit(0 if done.complete else 1)
