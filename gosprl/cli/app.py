"""The command line: all verbs in one application."""

import signal
import sys
import threading
import warnings
from collections.abc import Callable
from io import TextIOWrapper
from types import FrameType
from typing import Annotated, Any

import typer

import gosprl
from gosprl.cli import applications as cli_applications
from gosprl.cli import collect, domains, probe, serve
from gosprl.cli import comparing as cli_comparing
from gosprl.cli import exporting as cli_exporting
from gosprl.cli import reporting as cli_reporting
from gosprl.cli import reproduce as cli_reproduce
from gosprl.cli import runs as cli_runs
from gosprl.cli import watching as cli_watching
from gosprl.cli.shared import INTERRUPTED, TERMINATED, exits
from gosprl.printing import lines_printable
from gosprl.progress import raise_interrupt

AGAIN = 0.05  # seconds after which an interrupt that was lost is said again

app = typer.Typer(
    name="gosprl",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Collect samples of every state-action pair of a system that can only be stepped through, in few steps.\n\n"
    "Example: `gosprl collect four_room43 --need 10 --seed 0`",
)


FIRST = """\
gosprl walks a system that you can only step through, until every state-action pair has its samples.

What to do first:

  gosprl collect four_room43 --need 10 --seed 0                    collect from a gridworld of ours
  gosprl probe FrozenLake-v1 --seed 0                              what is your environment like?
  gosprl collect FrozenLake-v1 --need 20 --seed 0 --out runs/lake  collect from it, and keep every sample
  gosprl show runs/lake                                            look at what was kept

Then: gosprl --help lists all verbs, gosprl collect --help the options of one, with examples;
gosprl --install-completion lets your shell complete them."""


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Print the version if asked for, and what to do first if nothing is."""
    if version:
        print(gosprl.__version__)
    elif context.invoked_subcommand is None:
        print(FIRST)


app.command()(exits(collect.collect))
app.command()(exits(probe.probe))
app.command()(exits(domains.domains))
app.command()(exits(serve.serve))
cli_comparing.register(app)
cli_runs.register(app)
cli_watching.register(app)
cli_reporting.register(app)
cli_exporting.register(app)
cli_applications.register(app)
cli_reproduce.register(app)


def main() -> None:
    """Run the `gosprl` command. SIGTERM does what Ctrl-C does, but with an exit status of its own."""
    terminated = False

    def terminate(number: int, frame: FrameType | None) -> None:
        nonlocal terminated
        terminated = True
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.raise_signal(signal.SIGINT)
        else:  # as in the background of a shell: Ctrl-C is not heard, but this is
            raise_interrupt()

    if isinstance(sys.stdout, TextIOWrapper):  # a character that the terminal cannot show must not end a run
        sys.stdout.reconfigure(errors="backslashreplace")
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminate)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: raise_interrupt())
    usual = warnings.formatwarning
    warnings.formatwarning = lambda *said, **more: lines_printable(usual(*said, **more))
    sys.unraisablehook = _said_again(sys.unraisablehook)
    try:
        app()
    except SystemExit as end:
        sys.exit(TERMINATED if terminated and end.code == INTERRUPTED else end.code)


def _said_again(usual: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a hook for exceptions that Python ignores, as in destructors: an interrupt is said again later."""

    def hook(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            usual(lost)
            return
        number = signal.SIGTERM if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else signal.SIGINT
        again = threading.Timer(AGAIN, signal.pthread_kill, (threading.main_thread().ident, number))
        again.daemon = True
        again.start()

    return hook
