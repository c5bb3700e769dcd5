"""Options of the verbs that let many copies of a system collect."""

from typing import Annotated, Any

import typer

import gosprl

FLEET = "Many copies at once"
Workers = Annotated[
    str | None,
    typer.Option(
        metavar="N|threads:N|ray|ADDRESS",
        help="Let N copies of ENV collect, each in a process of its own; threads:N in threads, for systems that "
        "release Python's lock; ray or ray://HOST:PORT on a Ray cluster (docs/fleet.md).",
        rich_help_panel=FLEET,
    ),
]
Late = Annotated[
    str | None,
    typer.Option(
        metavar="TIMES|TIME|never",
        help="Count no more on an outcome after TIMES the mean duration of a step (default 20), or after a TIME such "
        "as 5s or 300ms.",
        rich_help_panel=FLEET,
    ),
]
Lost = Annotated[
    str | None,
    typer.Option(
        metavar="unknown|state|independent",
        help="What becomes of a sample whose copy is lost or late. unknown (default): confidence sets allow for every "
        "outcome. state: it counts as a crash. independent: it is left out, right only if the loss has nothing to do "
        "with the outcome.",
        rich_help_panel=FLEET,
    ),
]
Thrift = Annotated[
    float | None,
    typer.Option(
        help="Let no copy begin a trip of more expected steps than this while another one moves: fewer steps in all, "
        "and a longer run.",
        rich_help_panel=FLEET,
    ),
]
Deterministic = Annotated[
    int | None,
    typer.Option(
        metavar="D",
        help="Make the run independent of time: reports are taken in the order of their orders, D orders later.",
        rich_help_panel=FLEET,
    ),
]
Lease = Annotated[
    int | None,
    typer.Option(
        metavar="STEPS",
        help="Let a copy make up to STEPS steps, 1 (default) to 4, before it waits for the learner: for steps of about "
        "a millisecond.",
        rich_help_panel=FLEET,
    ),
]


def fleet(
    workers: str | None,
    late: str | None = None,
    lost: str | None = None,
    thrift: float | None = None,
    deterministic: int | None = None,
    lease: int | None = None,
) -> dict[str, Any]:
    """Return the options of a fleet that were given."""
    given = {
        "workers": _number_or_text(workers),
        "late": _number_or_text(late),
        "lost": lost,
        "thrift": thrift,
        "deterministic": deterministic,
        "lease": lease,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if given.get("late") == "never":
        given["late"] = None
    return given


def copies(system: Any, options: dict[str, Any]) -> Any:
    """Return what walkers make their copies of: with workers, an environment is made anew by its id."""
    if options.get("workers") is None or isinstance(system, (gosprl.TabularMDP, gosprl.systems.System)):
        return system
    from gosprl.systems.named import Named

    return Named(system.spec.id, dict(system.spec.kwargs))


def _number_or_text(text: str | None) -> int | float | str | None:
    for kind in (int, float):
        try:
            return None if text is None else kind(text)
        except ValueError:
            continue
    return text
