"""The verb `gosprl collect`."""

from typing import Annotated, Any, NoReturn

import typer
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, TextColumn
from rich.table import Table
from rich.text import Text

import gosprl
from gosprl.cli import completing
from gosprl.cli.fleets import Deterministic, Late, Lease, Lost, Thrift, Workers, copies, fleet
from gosprl.cli.outputs import OutDir, SyncSeconds, SyncSteps, kept, made_by
from gosprl.cli.pages import ReportFile, check_report, write_report
from gosprl.cli.shared import (
    INTERRUPTED,
    AsJson,
    Data,
    DataOrder,
    EnvOrProcess,
    ErrorLog,
    Horizon,
    MaxStates,
    MaxSteps,
    NeedUnknown,
    ProcessOption,
    ResetCost,
    Resets,
    Seed,
    Settings,
    Timeout,
    Unseen,
    begun_with,
    declared,
    live,
    opened,
    out,
    outcome,
    parameters,
    patience,
    print_error,
    print_json,
    samples,
    summary,
)

Confidence = Annotated[str | None, typer.Option(help="Family of the confidence sets: kl (default) or bernstein.")]
Scale = Annotated[
    float | None,
    typer.Option(help="Width multiplier of the sets of gosprl, practical and the rivals; below 1 no guarantee."),
]
LinearScale = Annotated[
    float | None,
    typer.Option(
        help="With --confidence bernstein: multiplier of the radius' term that decreases as 1/N. Then --scale is "
        "that of the square root only; by default it multiplies both."
    ),
]
Delta = Annotated[float | None, typer.Option(help="Largest probability that the guarantee fails (default 0.1).")]
Goals = Annotated[
    str | None,
    typer.Option(help="The states that gosprl heads for: all (default), all-always, least-sampled, easiest or random."),
]
Reach = Annotated[
    float | None, typer.Option(help="Give up each state that is certified to be more than this many steps away.")
]
Planning = Annotated[
    str | None,
    typer.Option(help="gosprl plans for the states on its way (focused, default) or for all states (full)."),
]


def collect(
    env: EnvOrProcess = None,
    need: Annotated[
        str,
        typer.Option(
            help="Samples of every pair: a number, an .npy file with an array [S] or [S, A], or a .csv or .parquet "
            "file with the columns observation, action and number."
        ),
    ] = "1",
    need_unknown: NeedUnknown = None,
    strategy: Annotated[
        str,
        typer.Option(
            help="guarded, gosprl (Algorithm 1 of the paper), practical, random; or a rival: "
            "zero_one_ucrl, zero_ucrl, maxent, weighted_maxent, min_frequency, zero_rmax. "
            "The options below, up to --known, are the strategy's: one that it does not have is an error.",
            autocompletion=completing.strategies,
        ),
    ] = "guarded",
    seed: Seed = None,
    max_steps: MaxSteps = None,
    confidence: Confidence = None,
    scale: Scale = None,
    linear_scale: LinearScale = None,
    delta: Delta = None,
    goals: Goals = None,
    reach: Reach = None,
    planning: Planning = None,
    known: Annotated[
        bool, typer.Option("--known", help="Plan with the true dynamics; nothing is learnt (our domains only).")
    ] = False,
    settings: Settings = None,
    resets: Resets = None,
    reset_cost: ResetCost = None,
    horizon: Horizon = None,
    max_states: MaxStates = None,
    unseen: Unseen = None,
    data: Data = None,
    data_order: DataOrder = None,
    process: ProcessOption = None,
    timeout: Timeout = None,
    log: ErrorLog = None,
    workers: Workers = None,
    late: Late = None,
    lost: Lost = None,
    thrift: Thrift = None,
    deterministic: Deterministic = None,
    lease: Lease = None,
    report: ReportFile = None,
    keep_in: OutDir = None,
    sync_steps: SyncSteps = None,
    sync_seconds: SyncSeconds = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare with the fluid limit and a random walk (our domains only).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Collect samples of every state-action pair, in as few steps as possible.

    Steps through ENV until every pair has been sampled NEED times; in a Gymnasium environment, every action of every
    state discovered: then "met" speaks of these states only, and `unseen` says what may have been missed. Exit status 0
    if the need was met, 1 if the run stopped before, 2 if an argument is wrong.

    Example: `gosprl collect four_room43 --need 10 --seed 0`

    Example: `gosprl collect FrozenLake-v1 --need 20 --seed 0 --json`

    Example: `gosprl collect Blackjack-v1 --need 3 --resets anytime --seed 0`

    Example: `gosprl collect --process "./simulator --fast" --need 20 --seed 0`

    Example: `gosprl collect FrozenLake-v1 --need 20 --seed 0 --workers 2`

    Example: `gosprl collect FrozenLake-v1 --need 20 --seed 0 --report lake.html`

    Example: `gosprl collect FrozenLake-v1 --need 20 --seed 0 --out runs/lake`, after a crash `gosprl resume runs/lake`

    Example: `gosprl collect FrozenLake-v1 --need 30 --seed 1 --data runs/lake`
    """
    check_report(report)
    options = strategy_options(confidence, scale, linear_scale, delta, goals, reach, planning)
    options |= declared(resets, reset_cost, horizon, max_states, unseen) | begun_with(data, data_order)
    if need_unknown is not None:
        options["need_unknown"] = need_unknown
    options |= fleet(workers, late, lost, thrift, deterministic, lease)
    options |= kept(keep_in, _source(env, settings, process, timeout), sync_steps, sync_seconds)
    with opened(env, settings, process, timeout, log) as (name, system):
        if known and not isinstance(system, gosprl.TabularMDP):
            raise gosprl.InputError("known: expected one of our domains; the dynamics of other systems are not known")
        if known and confidence is not None:
            raise gosprl.InputError("known, confidence: known dynamics need no confidence sets; give one of the two")
        if compare and (as_json or not isinstance(system, gosprl.TabularMDP)):
            raise gosprl.InputError("compare: expected one of our domains, and no --json")
        if compare and (data or need.endswith((".csv", ".parquet"))):
            raise gosprl.InputError("compare: expected no --data, and a need that is a number or an .npy file")
        if known:
            options["dynamics"] = system
        options |= {"strategy": strategy, "seed": seed, "max_steps": max_steps}
        result, wrong = _collected(copies(system, options), samples(need, tables=True), options)
    print_result(name, system, result, as_json)
    write_report(report, result, keep_in, name)
    if compare:
        _compare(system, samples(need), result, seed)
    end(result, wrong)


def strategy_options(
    confidence: str | None,
    scale: float | None,
    linear_scale: float | None,
    delta: float | None,
    goals: str | None,
    reach: float | None,
    planning: str | None,
) -> dict[str, Any]:
    """Return the options of a strategy that were given."""
    given = {
        "confidence": confidence,
        "scale": scale,
        "linear_scale": linear_scale,
        "delta": delta,
        "goals": goals,
        "reach": reach,
        "planning": planning,
    }
    return {name: value for name, value in given.items() if value is not None}


def _source(
    env: str | None, settings: list[str] | None, process: str | None, timeout: float | None
) -> dict[str, Any] | None:
    """Return what makes the system again."""
    if env is not None:
        return made_by(env, parameters(settings))
    if process is None:
        return None
    from gosprl.systems.process import words

    return {"process": words(process), "timeout": patience(timeout)}


def print_result(name: str, system: Any, result: gosprl.Result, as_json: bool) -> None:
    """Print the outcome of a collection: a JSON object, or a table and the map of a domain that has one."""
    if as_json:
        known_limit = {"limit": result.limit, "limit_of": result.limit_of} if result.closeness else {}
        print_json(outcome(name, result) | known_limit)
        return
    out.print(summary(name, result))
    if isinstance(system, gosprl.TabularMDP) and system.map is not None:
        out.print(_heat_map(system.map, result.counts.sum(axis=1)), soft_wrap=True)


def end(result: gosprl.Result, wrong: bool = False) -> NoReturn:
    """Exit with the status of a collection; `wrong`: it failed because an argument is wrong."""
    if result.stop == "interrupted":
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(2 if wrong else 0 if result.met else 1)


def _collected(system: Any, need: Any, options: dict[str, Any]) -> tuple[gosprl.Result, bool]:
    """Return the result of a run, and whether it failed because an argument is wrong."""
    try:
        with live(BarColumn(), TextColumn("{task.percentage:3.0f} % of {task.fields[states]} met"), total=1.0) as bar:
            return gosprl.collect(system, need, progress=bar, **options), False
    except gosprl.CollectionError as error:
        print_error(error)
        return error.result, isinstance(error.__cause__, gosprl.InputError)


def _heat_map(lines: tuple[str, ...], visits: Any) -> Text:
    """Return the map with the visits of each state, shaded."""
    width = len(str(visits.max())) + 1
    text = Text("visits\n")
    state = 0
    for line in lines:
        for character in line:
            if character == "#":
                text.append("#" * width, style="dim")
                continue
            heat = int(255 * (visits[state] / max(1, visits.max())) ** 0.5)
            colour = "rgb(255,255,255)" if heat < 170 else "rgb(0,0,0)"
            text.append(f"{visits[state]:>{width}}", style=f"{colour} on rgb({heat},{heat // 2},{64 - heat // 4})")
            state += 1
        text.append("\n")
    return text


def _compare(mdp: gosprl.TabularMDP, need: Any, result: gosprl.Result, seed: int | None) -> None:
    """Print the steps of the run beside the fluid limit and the steps of a random walk."""
    limit = gosprl.fluid_limit(mdp, need)
    table = Table(title="steps to meet the need", box=SIMPLE_HEAD)
    for title in ("", "steps", "x fluid limit"):
        table.add_column(title, justify="left" if not title else "right")
    walk = gosprl.collect(mdp, need, strategy="random", seed=seed, max_steps=1000 * max(1, result.steps))
    rows = (("fluid limit: lower bound on the expected steps", limit), ("this run", float(result.steps)))
    for name, steps in (*rows, ("random walk" + ("" if walk.met else " (stopped)"), float(walk.steps))):
        table.add_row(name, f"{steps:,.0f}", f"{steps / limit:.2f}" if limit > 0 else "-")
    out.print(table)
