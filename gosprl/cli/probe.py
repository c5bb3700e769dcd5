"""The verb `gosprl probe`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.progress import SpinnerColumn, TextColumn
from rich.table import Table

import gosprl
from gosprl.cli.shared import (
    INTERRUPTED,
    PROGRAMS,
    AsJson,
    EnvOrProcess,
    ErrorLog,
    Horizon,
    MaxStates,
    ProcessOption,
    ResetCost,
    Resets,
    Seed,
    Settings,
    Timeout,
    Unseen,
    declared,
    live,
    opened,
    out,
    patience,
    print_json,
    samples,
)
from gosprl.printing import brief


def probe(
    env: EnvOrProcess = None,
    need: Annotated[str, typer.Option(help="The need that the forecast is for, as in `gosprl collect`.")] = "10",
    max_steps: Annotated[int, typer.Option(help="Walk no more steps than this.")] = 100_000,
    seconds: Annotated[float, typer.Option(help="Walk no longer than this.")] = 60.0,
    seed: Seed = None,
    delta: Annotated[float, typer.Option(help="Level of the bounds on what was not seen.")] = 0.1,
    level: Annotated[
        float, typer.Option(help="Probability that the test for aliasing raises a false alarm, at most.")
    ] = 0.01,
    settings: Settings = None,
    resets: Resets = None,
    reset_cost: ResetCost = None,
    horizon: Horizon = None,
    max_states: MaxStates = None,
    unseen: Unseen = None,
    process: ProcessOption = None,
    timeout: Timeout = None,
    log: ErrorLog = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Only check that the program keeps to the protocol: every line that does not is listed.",
            rich_help_panel=PROGRAMS,
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Walk ENV for a while, say what it is, and what collecting from it would take.

    One line each: states and pairs, and what may be hidden; how random steps are; how episodes end and begin; rewards;
    masks; whether the same state behaves differently by history; traps; time a step. Then the forecast: steps and time
    of `gosprl collect` with the same need and options. Each line says how it is known: *proved* at a level, *seen* in
    this walk, or *estimated*.

    The walk is that of `gosprl collect`: a small system is collected whole, for a larger one the rest is estimated.
    Exit status 0 after a walk, 1 if ENV failed on the way (the first line says how) or, with --strict, if a line of the
    program breaks the protocol, 2 if an argument is wrong.

    Example: `gosprl probe FrozenLake-v1 --seed 0`

    Example: `gosprl probe Blackjack-v1 --need 5 --max-steps 20000 --json`

    Example: `gosprl probe --process "./simulator --fast" --strict`
    """
    if strict:
        if process is None or env is not None:
            raise gosprl.InputError("strict: expected a program to check, --process COMMAND, and no ENV")
        _check(process, seed, timeout, log, as_json)
    options = declared(resets, reset_cost, horizon, max_states, unseen)
    limits: dict[str, Any] = {"max_steps": max_steps, "max_seconds": seconds, "delta": delta, "level": level}
    with (
        opened(env, settings, process, timeout, log) as (name, system),
        live(SpinnerColumn(), TextColumn("probing")) as bar,
    ):
        found = gosprl.probe(system, need=samples(need), seed=seed, progress=bar, **limits, **options)
    if as_json:
        print_json(_object(name, found))
    else:
        out.print(_table(name, found))
    if found.stop == "interrupted":
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(1 if found.failure else 0)


def _check(process: str, seed: int | None, timeout: float | None, log: Path | None, as_json: bool) -> NoReturn:
    """Check a program by the rules of the protocol, and exit."""
    from gosprl.systems.conformance import check_program
    from gosprl.systems.process import words

    report = check_program(words(process), seed=seed or 0, timeout=patience(timeout), log=log)
    made = {"steps": report.steps, "resets": report.resets, "starts": report.starts}
    if as_json:
        print_json(
            {"process": process, "conforms": report.conforms, **made, "findings": list(map(asdict, report.findings))}
        )
    else:
        for finding in report.findings:
            kind = "[bold red]violation[/]" if finding.violation else "worth knowing"
            out.print(f"{kind}: {escape(str(finding))}", highlight=False, soft_wrap=True)
        verdict = "keeps to the protocol" if report.conforms else "breaks the protocol"
        numbers = ", ".join(f"{n:,} {name}" for name, n in made.items())
        out.print(f"{escape(process)} {verdict} ({numbers})", highlight=False, soft_wrap=True)
    raise typer.Exit(0 if report.conforms else 1)


def _object(env: str, found: gosprl.Probe) -> dict[str, Any]:
    """Return everything that was found, by name."""
    own = {"env": env, "states": found.states, "pairs": found.pairs, "unseen": found.unseen}
    entries: dict[str, Any] = own | asdict(found)
    entries["size"]["growing"] = found.size.growing
    entries["endings"]["time_limit"] = found.endings.time_limit
    entries["aliasing"] |= {"found": found.aliasing.found, "rewards_found": found.aliasing.rewards_found}
    entries["classes"]["communicating"] = found.classes.communicating
    entries["verdicts"] = [verdict._asdict() for verdict in found.verdicts]
    return entries


def _table(env: str, found: gosprl.Probe) -> Table:
    """Return the verdicts as a table."""
    title = f"{env}: {found.steps:,} steps in {found.seconds:.1f} s"
    caption = (
        "seen: in this walk. estimated: nothing is promised. proved: "
        f"with probability {1 - found.delta:g} at least, if the system is Markov; "
        f"of history: a false alarm has a probability of {found.aliasing.level:g} at most."
    )
    table = Table(title=escape(title), box=SIMPLE_HEAD, caption=caption, caption_justify="left")
    for column in ("", "finding", "known"):
        table.add_column(column)
    for verdict in found.verdicts:
        table.add_row(*(escape(brief(text)) for text in (verdict.about, verdict.text, verdict.known)))
    return table
