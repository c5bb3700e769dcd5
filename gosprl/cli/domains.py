"""`gosprl domains`: how hard the paper's domains are to sample."""

import json
from typing import Annotated, TypedDict

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

import gosprl
from gosprl.cli.shared import (
    err,
    out,
)

DOMAINS = (
    "riverswim6",
    "riverswim36",
    "corridor24",
    "four_room43",
    "room20",
    "cliff48",
    "trap10",
    "toy3",
    "noisy_riverswim36",
    "wheel30",
)


class Limits(TypedDict):
    """One domain's row of the table; BD and sum_bDs are the paper's bounds, fluid is what no collector can beat."""

    name: str
    states: int
    pairs: int
    D: float
    BD: float
    sum_bDs: float
    fluid: float


def domains(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Domains; by default a tour.")] = None,
    need: Annotated[int, typer.Option(help="Samples wanted of each state-action pair, b(s,a).")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
) -> None:
    """How hard the paper's domains are to sample.

    For each domain: its states and existing state-action pairs; the diameter D; the paper's two bounds on collecting
    NEED samples of every pair, B·D and Σ b(s)·D_s; and the fluid limit, a number of steps that no collector can beat on
    average, however it explores.

    Example: `gosprl domains riverswim12 wheel8 --need 1 --json`
    """
    rows = []
    for name in names or DOMAINS:
        mdp = gosprl.envs.make(name)
        with err.status(name):
            rows.append(_limits(name, mdp, need))
    if as_json:
        print(json.dumps({"need": need, "domains": rows}))
        return
    table = Table(title=f"Collecting b(s,a) = {need} samples of every state-action pair", box=SIMPLE_HEAD)
    for title in ("domain", "states", "pairs", "D", "B·D", "Σ b(s)·D_s", "fluid limit"):
        table.add_column(title, justify="left" if title == "domain" else "right", no_wrap=True)
    for row in rows:
        steps = (f"{x:,.1f}" for x in (row["D"], row["BD"], row["sum_bDs"], row["fluid"]))
        table.add_row(row["name"], str(row["states"]), str(row["pairs"]), *steps)
    out.print(table)


def _limits(name: str, mdp: gosprl.TabularMDP, need: int) -> Limits:
    return Limits(
        name=name,
        states=mdp.num_states,
        pairs=len(mdp.rows),
        D=mdp.diameter(),
        BD=gosprl.diameter_bound(mdp, need),
        sum_bDs=gosprl.ssp_diameter_bound(mdp, need),
        fluid=gosprl.fluid_limit(mdp, need),
    )
