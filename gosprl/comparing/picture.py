"""The picture of a comparison: the steps of all runs on the left, the proportion met over time on the right."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gosprl.experiments import stats
from gosprl.experiments.algorithms import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from gosprl.experiments.figures import TIMES, blank, finish, mark, plain_decades, sampled, style
from gosprl.experiments.sweep import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gosprl.comparing.comparison import Comparison, Line

COLOURS = (BLACK, VERMILION, BLUE, GREEN, ORANGE, PURPLE, SKY, YELLOW, GREY)
STYLES: Sequence[Any] = ("-", "--", "-.", ":")
ROW = 0.32  # inches of a strategy
LONGEST = 28  # characters of a label


def draw(comparison: "Comparison") -> "Figure":
    """Draw a comparison."""
    with style():
        figure, (left, right) = blank(1, 2, max(2.6, 1.3 + ROW * len(comparison.runs)))
        looks = [(COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)]) for i in range(len(comparison.runs))]
        for y, (line, look) in enumerate(zip(comparison.summary, looks, strict=True)):
            _dots(left, y, comparison.runs[line.strategy], line, look[0])
            _curve(right, comparison.runs[line.strategy], *look)
        _axes(left, right, comparison)
        left.set_title(f"{comparison.system[:LONGEST]}: steps of each run, and their mean", loc="left")
        right.set_title("mean proportion of states met", loc="left")
        handles = [mark("o", "mean, 95 % interval", markersize=4.5)]
        if np.isfinite(comparison.limit):
            handles.append(mark("|", "fluid limit", markersize=9, color=GREY))
        if any(line.stopped for line in comparison.summary):
            handles.append(mark(">", "stopped before it was met"))
        return finish(figure, handles)


def _dots(axis: "Axes", y: int, runs: list[Run], line: "Line", color: str) -> None:
    aside = np.linspace(-0.22, 0.22, len(runs)) if len(runs) > 1 else np.zeros(1)
    for met, shape in ((True, "o"), (False, ">")):
        chosen = [i for i, run in enumerate(runs) if run.met == met]
        look: dict[str, Any] = {"color": color, "markersize": 2.5 if met else 4, "alpha": 0.45, "markeredgewidth": 0}
        axis.plot([runs[i].steps for i in chosen], y + aside[chosen], shape, **look)
    axis.plot([line.steps.low, line.steps.high], [y, y], color=color, linewidth=1.6, zorder=3)
    axis.plot(line.steps.value, y, ">" if line.stopped else "o", color=color, markersize=5, zorder=4)


def _curve(axis: "Axes", runs: list[Run], color: str, line: Any) -> None:
    end = max(run.steps for run in runs)
    first = min((run.curve[1, 0] for run in runs if len(run.curve) > 1), default=1.0)
    times = np.geomspace(max(1.0, min(first / 1.5, end)), max(1.0, end), TIMES)
    curves = sampled(runs, times)
    low, high = stats.band(curves)
    axis.fill_between(times, low, high, step="post", color=color, alpha=0.15, linewidth=0)
    axis.plot(times, curves.mean(axis=0), drawstyle="steps-post", color=color, linestyle=line)


def _axes(left: "Axes", right: "Axes", comparison: "Comparison") -> None:
    if np.isfinite(comparison.limit):
        left.axvline(comparison.limit, color=GREY, linewidth=1, zorder=0)
        right.axvline(comparison.limit, color=GREY, linewidth=1, zorder=0)
    labels = [label if len(label) <= LONGEST else f"{label[: LONGEST - 3]}..." for label in comparison.runs]
    left.set_yticks(range(len(labels)), labels, parse_math=False)
    left.set_ylim(len(labels) - 0.4, -0.6)
    left.tick_params(axis="y", length=0)
    left.set(xscale="log", xlabel="steps")
    right.set(xscale="log", xlabel="steps", ylim=(0, 1.05), yticks=np.linspace(0, 1, 5))
    plain_decades(left.xaxis)
    plain_decades(right.xaxis)
