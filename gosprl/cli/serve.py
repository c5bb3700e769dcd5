"""The verb `gosprl serve`."""

import signal
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

import gosprl
from gosprl import strategies
from gosprl.cli import completing
from gosprl.cli.fleets import Late, Lost, fleet
from gosprl.cli.saving import check_file, save, transitions
from gosprl.cli.shared import (
    INTERRUPTED,
    TERMINATED,
    AsJson,
    Horizon,
    MaxStates,
    MaxSteps,
    ResetCost,
    Resets,
    Seed,
    Unseen,
    declared,
    err,
    out,
    outcome,
    print_json,
    samples,
    summary,
)
from gosprl.systems.protocol import action_values


def serve(
    need: Annotated[str, typer.Option(help="Samples of every action of every state discovered.")] = "1",
    actions: Annotated[
        str | None,
        typer.Option(help="The number of actions, or their names: left,right. Without it, the client says so (hello)."),
    ] = None,
    socket: Annotated[
        str | None,
        typer.Option(
            metavar="127.0.0.1:PORT|PATH",
            help="Listen there for clients: a port of this machine (0: any), or the path of a socket that only its "
            "owner may use. Without it, the client is on standard input and output.",
        ),
    ] = None,
    speak: Annotated[
        float, typer.Option(help="With --socket: seconds in which a client must have said its first line.")
    ] = 10.0,
    strategy: Annotated[
        str, typer.Option(help="As in `gosprl collect`.", autocompletion=completing.strategies)
    ] = "guarded",
    seed: Seed = None,
    max_steps: MaxSteps = None,
    delta: Annotated[
        float | None, typer.Option(help="Largest probability that the guarantee fails (default 0.1).")
    ] = None,
    reach: Annotated[
        float | None, typer.Option(help="Give up states that are certified to be more than this many steps away.")
    ] = None,
    resets: Resets = None,
    reset_cost: ResetCost = None,
    horizon: Horizon = None,
    max_states: MaxStates = None,
    unseen: Unseen = None,
    late: Late = None,
    lost: Lost = None,
    save_to: Annotated[
        Path | None, typer.Option("--save", metavar="FILE.npz", help="Save what was collected, however it ended.")
    ] = None,
    keep_in: Annotated[Path | None, typer.Option("--out", hidden=True)] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.npz if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell a program that owns the loop which actions to take, until the need is met.

    The program sends lines of JSON: what it observes (`ask`), and what an action led to (`tell`); see docs/protocol.md.
    Several copies of the system collect for one need if each has a name (`walker`), in one client or in many. What was
    collected outlives a client that disconnects; Ctrl-C and SIGTERM end the server and keep everything. Exit status 0
    if the need was met, 1 if the clients left before, 2 if an argument is wrong.

    Example: `gosprl serve --need 10 --actions 4 --socket 127.0.0.1:7000 --save samples.npz`
    """
    if keep_in is not None:
        raise gosprl.InputError(f"out: serve keeps no run on disk; to save what was collected, use --save {keep_in}")
    check_file(save_to, force)
    from gosprl.serving import Server, serve_pipe, serve_socket

    given = {"delta": delta, "reach": reach}
    chosen = strategies.make(strategy, {name: value for name, value in given.items() if value is not None})
    around = declared(resets, reset_cost, horizon, max_states, unseen)
    wanted, of_walkers = samples(need), fleet(None, late, lost)
    when_late = {name: of_walkers.pop(name) for name in ("late",) if name in of_walkers}

    def make(count: int) -> gosprl.Collector:
        return gosprl.Collector(None, count, wanted, strategy=chosen, seed=seed, **around, **of_walkers)

    make(1)  # what is wrong with the options is known now, not when a client has come
    server = Server(make, None if actions is None else _values(actions), max_steps, **when_late)
    try:
        heard = serve_pipe(server) if socket is None else serve_socket(server, socket, _say, speak)
    except gosprl.InputError:  # the address is wrong: nobody was served
        raise
    except BaseException:
        _report(server.result(), socket is not None, as_json, save_to, force)
        raise
    met = _report(server.result(), socket is not None, as_json, save_to, force)
    if heard:
        raise typer.Exit(TERMINATED if heard == signal.SIGTERM else INTERRUPTED)
    raise typer.Exit(0 if met else 1)


def _say(address: str) -> None:
    err.print(f"listening on {escape(address)}", highlight=False, soft_wrap=True)


def _report(result: gosprl.Result | None, on_socket: bool, as_json: bool, file: Path | None, force: bool) -> bool:
    """Print and save what was collected; whether the need was met. Standard output may be the client's."""
    if result is None or not result.states:
        err.print("no client asked what to do; nothing was collected")
        return False
    output: dict[str, Any] = outcome("serve", result)
    if as_json and on_socket:
        print_json(output)
    else:
        (out if on_socket else err).print(summary("serve", result))
    if file is not None:
        save(file, output | transitions(result.model), force=force)
    return result.met


def _values(text: str) -> Any:
    try:
        given: Any = int(text)
    except ValueError:
        given = text.split(",")
        if "" in given:
            raise gosprl.InputError(
                f"actions: expected a number, or different names with commas between, got {text!r:.80}"
            ) from None
    try:
        return action_values(given)
    except gosprl.GosprlError as error:
        raise gosprl.InputError(str(error)) from None
