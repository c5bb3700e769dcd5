"""The verb `gosprl domains`: how hard the paper's domains are to sample."""

from typing import Annotated, TypedDict

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

import gosprl
from gosprl.cli.shared import err, print_json, print_table

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


class Bounds(TypedDict):
    """One domain's row of the table."""

    name: str
    states: int
    pairs: int
    D: float
    BD: float  # B D, the paper's first bound
    sum_bDs: float  # sum_s b(s) D_s, the paper's second bound
    fluid: float  # the fluid limit, a lower bound on the expected steps of any collector


def domains(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Domains; by default ten.")] = None,
    need: Annotated[int, typer.Option(help="Samples needed of each state-action pair, b(s,a).")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
) -> None:
    """Show how hard the paper's domains are to sample.

    For each domain: the numbers of states and of existing state-action pairs; the diameter D; the paper's two bounds on
    the steps to collect NEED samples of every pair, B·D and Σ b(s)·D_s; and the fluid limit, a lower bound on the
    expected steps of any collector.

    Example: `gosprl domains riverswim12 wheel8 --need 1 --json`
    """
    rows = []
    for name in names or DOMAINS:
        mdp = gosprl.envs.make(name)
        with err.status(name):
            rows.append(_bounds(name, mdp, need))
    if as_json:
        print_json({"need": need, "domains": rows})
        return
    title = f"Collecting b(s,a) = {need} samples of every state-action pair"
    table = Table(title=title, box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for column in ("domain", "states", "pairs", "D", "B·D", "Σ b(s)·D_s", "fluid limit"):
        table.add_column(column, justify="left" if column == "domain" else "right")
    for row in rows:
        steps = (f"{x:,.1f}" for x in (row["D"], row["BD"], row["sum_bDs"], row["fluid"]))
        table.add_row(row["name"], str(row["states"]), str(row["pairs"]), *steps)
    print_table(table)


def _bounds(name: str, mdp: gosprl.TabularMDP, need: int) -> Bounds:
    return Bounds(
        name=name,
        states=mdp.num_states,
        pairs=len(mdp.rows),
        D=mdp.diameter(),
        BD=gosprl.diameter_bound(mdp, need),
        sum_bDs=gosprl.ssp_diameter_bound(mdp, need),
        fluid=gosprl.fluid_limit(mdp, need),
    )
