"""What notebooks show of results, models, plans and answers: short tables, escaped, without style or script."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gosprl.report.tables import Html, facts, paragraph, table
from gosprl.report.text import number

if TYPE_CHECKING:
    from gosprl.mdp.tabular import TabularMDP
    from gosprl.model.empirical import EmpiricalModel
    from gosprl.planning.ssp import Plan

LISTED = 10  # rows of a table


def titled(title: str, entries: Iterable[tuple[str, Any]]) -> Html:
    """Return names and values below a title."""
    return Html(paragraph(title) + facts(entries))


def of_model(model: "EmpiricalModel") -> Html:
    """Return the size of a learnt model, and its pairs with the most samples."""
    is_pair = ~model.certain & ~model.terminal[model.rows.state] & (model.rows.state != model.states.reset)
    rows = np.flatnonzero(is_pair)
    order = rows[np.argsort(-model.visits[rows], kind="stable")]
    cells = [_pair(model, int(row)) for row in order[:LISTED]]
    listed = table("Pairs with the most samples", ("state", "action", "samples", "mean reward"), cells)
    left = len(order) - len(cells)
    return Html(paragraph(repr(model)) + listed + (paragraph(f"{left:,} more pairs") if left else ""))


def _pair(model: "EmpiricalModel", row: int) -> tuple[Any, ...]:
    s, a, visits = int(model.rows.state[row]), int(model.rows.action[row]), int(model.visits[row])
    mean = number(float(model.reward_sum[row]) / visits) if visits else "unknown"
    return model.states[s], model.actions[a], number(visits), mean


def of_table(mdp: "TabularMDP") -> Html:
    """Return what a table of dynamics has; its map if it is a gridworld."""
    entries = [
        ("states", number(mdp.num_states)),
        ("actions", number(mdp.num_actions)),
        ("pairs", number(len(mdp.rows))),
        ("transitions", number(len(mdp.succ))),
        ("start", str(mdp.start)),
        ("rewards", "none" if mdp.rewards is None else f"{number(mdp.rewards.min())} to {number(mdp.rewards.max())}"),
    ]
    return titled(f"TabularMDP: {mdp.name}", entries)


def of_plan(plan: "Plan") -> Html:
    """Return how good a plan is, and what it does in the states that are the farthest from a goal."""
    finite = np.flatnonzero(np.isfinite(plan.values))
    order = finite[np.argsort(-plan.values[finite], kind="stable")][:LISTED]
    entries = [
        ("states", number(len(plan.values))),
        ("goals", number(int((plan.values == 0).sum()))),
        ("cannot reach a goal", number(len(plan.values) - len(finite))),
        ("gap", number(plan.gap)),
        ("sweeps", number(plan.sweeps)),
    ]
    cells = [(number(int(s)), number(int(plan.policy[s])), number(float(plan.values[s]))) for s in order]
    listed = table("The states farthest from a goal", ("state", "action", "value"), cells)
    return Html(titled("Plan: values <= optimum <= (1 + gap) values", entries) + listed)
