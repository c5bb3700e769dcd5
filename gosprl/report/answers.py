"""Pages of applications: what was asked, the answer with its bounds, and where the samples went."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gosprl.applications.best import BestState
from gosprl.applications.common import Answer
from gosprl.applications.diameter import DiameterEstimate
from gosprl.applications.goal_free import Explored
from gosprl.applications.modest import ModelEstimate
from gosprl.applications.policy import LearntPolicy
from gosprl.applications.rewards import RewardEstimate
from gosprl.applications.treasure import Treasure
from gosprl.report import charts
from gosprl.report.findings import Findings, of_result
from gosprl.report.parts import LISTED, Figure, Section
from gosprl.report.tables import facts, folded, table
from gosprl.report.text import isolated, number

DRAWN = 40  # entries of a chart with intervals
KINDS: dict[type[Answer], str] = {  # what was asked, in words
    LearntPolicy: "a policy whose discounted value is near the best",
    RewardEstimate: "the mean reward of each pair",
    ModelEstimate: "the transition probabilities of each pair",
    DiameterEstimate: "bounds on the diameter: the expected steps between the two states farthest apart",
    BestState: "the state with the largest mean reward",
    Treasure: "a reward above the threshold, or the pair with the largest mean reward if there is no threshold",
    Explored: "near-optimal policies for any goal and any costs, without another step",
}


def answered(answer: Answer, command: str = "") -> tuple[Findings, Callable[[Figure], list[Section]]]:
    """Return what is shown of the collection, and a function that returns the parts about the answer."""
    found = of_result(answer.collected, command=command)
    said = [": ".join(part for part in line if part) for line in answer.lines()[:1]]
    if not found.pairs:  # the need is met, and so 0, at the end: not what was asked
        found = replace(found, asked=[("need", "computed during the run, from the samples")])
    found = replace(found, asked=[*(("answer", text) for text in said), *found.asked])
    return found, lambda figure: [Section("The answer", _answer(answer, found, figure))]


def _answer(answer: Answer, found: Findings, figure: Figure) -> str:
    lines = [("asked", KINDS.get(type(answer), type(answer).__name__))]
    lines += [(name or "·", text) for name, text in answer.lines()]
    lines.append(("promised", str(answer.guarantee)))
    return facts(lines) + _bounds(answer, found, figure)


def _bounds(answer: Answer, found: Findings, figure: Figure) -> str:
    """Return the answer state by state or pair by pair, with its bounds."""
    if isinstance(answer, LearntPolicy):
        return _policy(answer, found, figure)
    if isinstance(answer, RewardEstimate):
        return _pairs(found, figure, answer.rewards, answer.radius, "mean reward")
    if isinstance(answer, ModelEstimate):
        return _errors(found, figure, answer.eta, "error of the model")
    if isinstance(answer, DiameterEstimate):
        return _errors(found, figure, answer.errors, "error of the model")
    if isinstance(answer, BestState):
        return _best(answer, found)
    return ""


def _policy(answer: LearntPolicy, found: Findings, figure: Figure) -> str:
    known = np.flatnonzero(answer.policy >= 0)
    order = known[np.argsort(-(answer.upper - answer.lower)[known], kind="stable")]
    rows = [
        (
            found.name(int(s)),
            found.action(int(answer.policy[s])),
            number(float(answer.value[s])),
            number(float(answer.lower[s])),
            number(float(answer.upper[s])),
        )
        for s in order[:LISTED]
    ]
    titles = ("state", "action", "value", "lower bound", "upper bound of the best")
    listed = table("The policy", titles, rows, len(order) - len(rows), "; answer.policy has all")
    points = [(int(s), float(answer.value[s]), float(answer.lower[s]), float(answer.upper[s])) for s in order[:DRAWN]]
    caption = "Value of the policy: from a lower bound on it to an upper bound on the best, widest first."
    return _intervals(points, found, figure, "value", caption) + folded("Table: the policy", listed)


def _intervals(
    points: list[tuple[int, float, float, float]], found: Findings, figure: Figure, what: str, caption: str
) -> str:
    """Return a chart of (state, value, low, high), of those that are finite."""
    rows = [
        {"s": isolated(found.name(s, 20)), "v": v, "lo": low, "hi": high}
        for s, v, low, high in points
        if np.isfinite([v, low, high]).all()
    ]
    return figure(charts.intervals(rows, what, "state"), caption) if rows else ""


def _pairs(found: Findings, figure: Figure, values: Any, radius: Any, what: str) -> str:
    s, a = np.nonzero(np.isfinite(values) & np.isfinite(radius))
    order = np.argsort(-values[s, a], kind="stable")
    s, a = s[order], a[order]
    rows = [
        (found.name(int(i)), found.action(int(j)), number(float(values[i, j])), number(float(radius[i, j])))
        for i, j in zip(s[:LISTED], a[:LISTED], strict=True)
    ]
    listed = table("Pairs", ("state", "action", what, "at most off by"), rows, len(s) - len(rows))
    points = [
        {
            "s": f"{isolated(found.name(int(i), 16))}, {isolated(found.action(int(j)), 16)}",
            "v": float(values[i, j]),
            "lo": float(values[i, j] - radius[i, j]),
            "hi": float(values[i, j] + radius[i, j]),
        }
        for i, j in zip(s[:DRAWN], a[:DRAWN], strict=True)
    ]
    if not points:
        return ""
    caption = f"The largest {what}s with their intervals."
    return figure(charts.intervals(points, what, "pair"), caption) + folded("Table: pairs", listed)


def _errors(found: Findings, figure: Figure, errors: Any, what: str) -> str:
    s, a = np.nonzero(np.isfinite(errors))
    if not s.size:
        return ""
    values = errors[s, a]
    chart = charts.profile(
        values,
        np.zeros(len(values), dtype=bool),
        lambda i: f"{found.name(int(s[i]), 24)}, action {found.action(int(a[i]))}",
        what,
        "pairs",
    )
    order = np.argsort(-values, kind="stable")[:LISTED]
    rows = [(found.name(int(s[i])), found.action(int(a[i])), number(float(values[i]))) for i in order]
    listed = table("The largest errors", ("state", "action", what), rows, len(values) - len(rows))
    return figure(chart, f"A bound on the {what}, of each pair.") + folded("Table: the largest errors", listed)


def _best(answer: BestState, found: Findings) -> str:
    order = np.argsort(-answer.rewards, kind="stable")[:LISTED]
    still = set(answer.candidates.tolist())
    rows = [
        (
            found.name(int(s)),
            number(float(answer.rewards[s])),
            number(int(answer.pulls[s])),
            "yes" if int(s) in still else "no",
        )
        for s in order
        if np.isfinite(answer.rewards[s])
    ]
    return folded(
        "Table: states",
        table("States by mean reward", ("state", "mean reward", "visits", "may be the best"), rows),
        True,
    )
