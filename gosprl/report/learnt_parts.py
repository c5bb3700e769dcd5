"""The parts of a page about what was learnt: the system as a graph, hitting times, rewards."""

import numpy as np

from gosprl.report import charts, learnt
from gosprl.report.charts import Chart
from gosprl.report.findings import Findings
from gosprl.report.graph import ARROWS, Graph
from gosprl.report.maps import Values, heat
from gosprl.report.network import network
from gosprl.report.parts import FEW, LISTED, Figure, everything_in
from gosprl.report.places import Places
from gosprl.report.tables import folded, paragraph, table
from gosprl.report.text import isolated, number, plural

AWAY = "steps from the start"


def system(found: Findings, graph: Graph | None, figure: Figure) -> str:
    """Return the graph of the learnt system, and its frequencies with their confidence intervals."""
    if graph is None:
        return ""
    few = graph.has_arrows
    seen, total = learnt.transitions(found, 4 * ARROWS if few else LISTED)
    caption = "The states and the transitions seen between them; thicker lines are more frequent."
    if few and len(graph.begin):
        caption += " At an arrow head, the pointer shows the frequency of each action with its confidence interval."
    rows = [
        (found.name(t.state), found.action(t.action), found.name(t.next_state), number(t.seen), t.interval)
        for t in seen[:LISTED]
    ]
    titles = ("state", "action", "next state", "seen", f"frequency [interval at delta = {found.delta:g}]")
    listed = table("The most frequent transitions", titles, rows, total - len(rows), everything_in(found))
    note = "All intervals hold at once, at all times, at this level; unseen next states have mass of their own."
    return figure(network(graph, found.name, _said(found, graph, seen) if few else None), caption) + folded(
        "Table: frequencies and their intervals", paragraph(note, "note") + listed if listed else ""
    )


def _said(found: Findings, graph: Graph, seen: list[learnt.Transition]) -> list[str]:
    """Return what is known of each line: its ends, and the frequency of each action with its interval."""
    by_ends: dict[tuple[int, int], list[str]] = {}
    for t in seen:
        by_ends.setdefault((t.state, t.next_state), []).append(f"action {found.action(t.action)}: {t.interval}")
    said = []
    for ends in zip(graph.state[graph.begin].tolist(), graph.state[graph.end].tolist(), strict=True):
        line = " → ".join(isolated(found.name(s, 24)) for s in ends)
        said.append(": ".join([line, *(["; ".join(by_ends[ends])] if ends in by_ends else [])]))
    return said


def times(found: Findings, places: Places | None, figure: Figure) -> str:
    """Return the expected steps from the start to each state."""
    steps = learnt.hitting_times(found)
    if steps is None:
        if found.model is None or found.start is None or not found.steps:
            return ""
        return paragraph(f"Not computed above {learnt.MOST_TIMES:,} states.")
    caption = "Expected steps from the start to each state, by the fastest policy, for the frequencies seen."
    if unknown := int((~np.isfinite(steps) & found.shown).sum()):
        caption += f" To {plural(unknown, 'state')} the samples have no way."
    order = [s for s in np.argsort(-np.where(np.isfinite(steps), steps, -1.0), kind="stable") if found.shown[s]][:FEW]
    rows = [(found.name(int(s)), number(float(steps[s]))) for s in order]
    listed = table("The states that are farthest away", ("state", "steps"), rows, int(found.shown.sum()) - len(rows))
    return figure(_times_chart(found, places, steps), caption) + folded("Table: the farthest states", listed)


def _times_chart(found: Findings, places: Places | None, steps: learnt.Floats) -> Chart:
    steps = np.where(found.shown, steps, np.nan)
    if places is not None and places.known.all():
        return heat(Values(steps, np.isinf(steps), found.name, AWAY, found.start), places)
    return charts.profile(steps, np.zeros(len(steps), dtype=bool), found.name, AWAY)


def rewards(found: Findings, figure: Figure) -> str:
    """Return the mean reward of each pair."""
    known = learnt.rewards(found)
    if known is None:
        return ""
    if not known.mean.any() and not known.deviation.any():
        return paragraph("All rewards were 0.")
    order = np.argsort(-np.nan_to_num(known.mean, nan=-np.inf, posinf=np.inf, neginf=-np.inf), kind="stable")
    rows = [
        (
            found.name(int(known.state[i])),
            found.action(int(known.action[i])),
            number(float(known.mean[i])),
            number(float(known.deviation[i])),
            number(int(known.visits[i])),
        )
        for i in order[:FEW]
    ]
    titles = ("state", "action", "mean", "standard deviation", "samples")
    listed = table(
        "The pairs with the largest mean rewards", titles, rows, len(order) - len(rows), everything_in(found)
    )
    return _rewards_chart(found, known, figure) + folded("Table: the largest rewards", listed)


def _rewards_chart(found: Findings, known: learnt.Rewards, figure: Figure) -> str:
    if not np.isfinite(known.mean).any():
        return paragraph("No mean reward is finite.")

    def pair(i: int) -> str:
        return f"{found.name(int(known.state[i]), 24)}, action {found.action(int(known.action[i]))}"

    chart = charts.profile(known.mean, np.zeros(len(known.mean), dtype=bool), pair, "mean reward", "pairs")
    return figure(chart, "Mean reward of each pair, in decreasing order.")
