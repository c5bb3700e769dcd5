"""Figures of how the steps grow with a size: mean steps, and mean steps as multiples of the fluid limit."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gosprl.experiments import figures, stats
from gosprl.experiments.algorithms import ALGORITHMS
from gosprl.experiments.sweep import Case, Experiment, Results, fluid_limit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIMIT: Any = {"color": "black", "linewidth": 0.8, "linestyle": (0, (1, 1))}
POINTS: Any = {"marker": "o", "markersize": 3, "elinewidth": 0.8, "capsize": 2, "linewidth": 1.0}
Groups = Sequence[Sequence[Case]]  # the cases of each size


def draw(experiment: Experiment, results: Results, x: Sequence[float], groups: Groups, label: str) -> "Figure":
    """Draw mean steps against x, with a straight line fitted to GOSPRL's means.

    Parameters
    ----------
    experiment, results
        The experiment and its runs.
    x
        The sizes.
    groups
        The cases of each size.
    label
        Of the horizontal axis.
    """
    with figures.style():
        figure, (left, right) = figures.blank(1, 2, 2.7)
        limits = np.array([np.mean([fluid_limit(case) for case in group]) for group in groups])
        left.plot(x, limits, **LIMIT)
        right.axhline(1, **LIMIT)
        for i, name in enumerate(experiment.algorithms):
            if all(results.get((case.name, name)) for group in groups for case in group):
                samples = [[results.steps(case.name, name) for case in group] for group in groups]
                aside = np.array(x) * (0.97 + 0.03 * i)  # shifted, so that intervals do not hide each other
                _means(left, name, x, samples, np.ones(len(x)))
                _means(right, name, aside, samples, limits)
                _cases(left, name, x, samples, [[1.0] * len(group) for group in groups])
                _cases(right, name, aside, samples, [[fluid_limit(case) for case in group] for group in groups])
        fitted = _line(left, results, x, groups)
        left.set(xlabel=label, ylabel="mean steps", xlim=(0, None), ylim=(0, None))
        right.set(xlabel=label, ylabel="mean steps / fluid limit", xscale="log")
        right.set_xticks(x, [f"{each:g}" for each in x])
        right.minorticks_off()
        figures.thousands(left.yaxis)
        handles = [figures.line(name) for name in experiment.algorithms]
        return figures.finish(figure, [*handles, *fitted, figures.mark("", "fluid limit", **LIMIT)])


def _means(axis: "Axes", name: str, x: Any, samples: Sequence[Sequence[Any]], unit: figures.Floats) -> None:
    """Draw the mean of each group's means, with its interval."""
    look, means = ALGORITHMS[name], [stats.mean_of_cases(sample) for sample in samples]
    value, low, high = (np.array([getattr(mean, end) for mean in means]) / unit for end in ("value", "low", "high"))
    axis.errorbar(x, value, (value - low, high - value), color=look.color, linestyle=look.line, **POINTS)


def _cases(axis: "Axes", name: str, x: Any, samples: Sequence[Sequence[Any]], units: Sequence[Sequence[float]]) -> None:
    """Draw a pale dot for each case, where a size has several."""
    for at_x, sample, unit in zip(x, samples, units, strict=True):
        if len(sample) > 1:
            means = [case.mean() / each for case, each in zip(sample, unit, strict=True)]
            axis.plot([at_x] * len(means), means, ".", color=ALGORITHMS[name].color, markersize=3, alpha=0.4)


def _line(axis: "Axes", results: Results, x: Sequence[float], groups: Groups) -> list[Any]:
    """Draw the straight line; return its legend entry."""
    if not all(results.get((case.name, "gosprl")) for group in groups for case in group):
        return []
    look: Any = {"color": ALGORITHMS["gosprl"].color, "linewidth": 0.6, "linestyle": "-"}
    fit = stats.line(x, [np.mean([results.steps(case.name, "gosprl").mean() for case in group]) for group in groups])
    axis.plot([0, max(x)], [fit.intercept, fit.intercept + fit.slope * max(x)], **look)
    return [figures.mark("", "GOSPRL, line fitted", **look)]
