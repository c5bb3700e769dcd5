"""The style of figures, and the parts that several of them share.

Figures are made without pyplot: no window, no backend, no state between them. matplotlib is imported when something is
drawn, so that the command line starts fast. An algorithm has the colour and line style of `ALGORITHMS`.
"""

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import InputError
from gosprl.experiments import stats
from gosprl.experiments.algorithms import ALGORITHMS, GREY
from gosprl.experiments.sweep import Case, Experiment, Results, Run, fluid_limit

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXACT = GREY  # colour of numbers that are computed without runs
WIDTH, COLUMN = 6.75, 3.6  # inches: the width of a page, and about half of it
TIMES = 300  # points of a mean curve
STYLE: Any = {
    "font.family": "DejaVu Sans",  # part of matplotlib, so the same on all machines
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.4,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.3,
    "figure.dpi": 150,  # also used for the layout, as the width of text depends on the resolution
    "savefig.dpi": 150,
    "pdf.fonttype": 42,  # searchable text
    "svg.hashsalt": "gosprl",  # the same names of parts in the same figure
}
Floats = NDArray[np.float64]
Row = tuple[stats.Estimate | float | None, str, float | None, bool]  # ours, colour, paper's, whether runs were stopped


def check_matplotlib(extra: str = "experiments") -> None:
    """Raise `InputError` if matplotlib is missing, before runs are made that could not be drawn."""
    if find_spec("matplotlib") is None:
        raise InputError(f"pictures need matplotlib, which is not installed: pip install 'gosprl[{extra}]'")


def style() -> AbstractContextManager[None]:
    """Return a context in which figures have the style of this module."""
    import matplotlib

    return matplotlib.rc_context(STYLE)


def blank(rows: int, columns: int, height: float, width: float = WIDTH) -> "tuple[Figure, list[Axes]]":
    """Return a figure and its axes, row by row; sizes in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def finish(figure: "Figure", handles: "Sequence[Artist]" = (), columns: int = 5) -> "Figure":
    """Add one legend below all axes, and compute the layout while the style is active."""
    if handles:
        figure.legend(handles=list(handles), loc="outside lower center", ncols=min(columns, len(handles)))
    figure.draw_without_rendering()
    return figure


def titled(figure: "Figure", title: str) -> "Figure":
    """Add a title above all axes: the width of the sets, which an image that is copied must say."""
    with style():
        figure.suptitle(title, fontsize=STYLE["axes.titlesize"])
        figure.draw_without_rendering()
    return figure


def image(figure: "Figure", kind: str, shows: str = "") -> bytes:
    """Return a figure as a PNG, PDF or SVG file without a date, so that the same runs give the same bytes.

    Parameters
    ----------
    shows
        What a PNG shows, as text within the file: whether it is up to date can be told from it.
    """
    omitted = {"png": ["Software"], "pdf": ["CreationDate", "Creator", "Producer"], "svg": ["Date", "Creator"]}[kind]
    said: dict[str, str | None] = dict.fromkeys(omitted)
    if shows and kind == "png":
        said["Shows"] = shows
    file = io.BytesIO()
    with style():
        figure.savefig(file, format=kind, metadata=said)
    return file.getvalue()


def at(curve: Floats, times: Floats) -> Floats:
    """Return the values [T] of a piecewise constant curve [n, 2] at some times; before its first point, the first."""
    place = np.searchsorted(curve[:, 0], times, side="right") - 1
    return np.asarray(curve[np.maximum(place, 0), 1])


def sampled(runs: Sequence[Run], times: Floats) -> Floats:
    """Return the curves of some runs at some times [runs, T]."""
    return np.stack([at(run.curve, times) for run in runs])


def mean_curve(axis: "Axes", algorithm: str, runs: Sequence[Run], times: Floats, *, steps: bool = True) -> Floats:
    """Draw the mean over the runs with its 95 % band; return the mean [T].

    With `steps`, the curve is constant between the times.
    """
    curves, look = sampled(runs, times), ALGORITHMS[algorithm]
    mean: Floats = curves.mean(axis=0)
    low, high = stats.band(curves)
    axis.fill_between(times, low, high, step="post" if steps else None, color=look.color, alpha=0.2, linewidth=0)
    axis.plot(times, mean, drawstyle="steps-post" if steps else "default", color=look.color, linestyle=look.line)
    return mean


def proportions(
    experiment: Experiment, results: Results, rows: int, columns: int, height: float, width: float = WIDTH
) -> "Figure":
    """Draw P_t of every algorithm, one panel for each case, with a line at 1 and the fluid limit on it."""
    with style():
        figure, axes = blank(rows, columns, height, width)
        stopped = False
        for axis, case in zip(axes, experiment.cases, strict=False):
            stopped |= _proportion_panel(axis, case, experiment.algorithms, results)
        for axis in axes[len(experiment.cases) :]:
            axis.remove()
        for i, axis in enumerate(axes[: len(experiment.cases)]):
            axis.set_ylabel("proportion met, $P_t$" if i % columns == 0 else "")
            axis.tick_params(labelleft=i % columns == 0)
        handles = [line(name) for name in experiment.algorithms]
        handles.append(mark("v", "fluid limit"))
        if stopped:
            handles.append(mark("x", "stopped at max_steps"))
        return finish(figure, handles, 4 if width == WIDTH else 2)


def _proportion_panel(axis: "Axes", case: Case, algorithms: Sequence[str], results: Results) -> bool:
    """Draw one case; return whether a run was stopped."""
    limit, stopped = fluid_limit(case), False
    present = [(name, results[case.name, name]) for name in algorithms if results.get((case.name, name))]
    every = [run for _, runs in present for run in runs]
    first = min((run.curve[1, 0] for run in every if len(run.curve) > 1), default=1.0)
    for name, runs in present:
        end = max(run.steps for run in runs)
        times = np.geomspace(min(first / 1.5, end), end, TIMES)
        mean = mean_curve(axis, name, runs, times)
        if any_stopped(runs):
            stopped = True
            axis.plot(end, mean[-1], "x", color=ALGORITHMS[name].color, markersize=5, clip_on=False, zorder=4)
    axis.axhline(1, color="black", linewidth=0.7)
    axis.plot(limit, 1.025, "v", color="black", markersize=5, zorder=4, clip_on=False)
    axis.text(0.015, 1.015, "success", transform=axis.get_yaxis_transform(), fontsize=7, va="bottom")
    axis.set(title=case.title, xlabel="steps $t$", ylim=(0, 1.1), yticks=np.linspace(0, 1, 5))
    axis.set_xscale("log")
    return stopped


def any_stopped(runs: Sequence[Run]) -> bool:
    """Return whether a run was stopped before its need was met."""
    return not all(run.met for run in runs)


def thousands(axis: Any) -> None:
    """Set few tick labels, in the form 12,000."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def dots(axis: "Axes", rows: Sequence[Row], *, log: bool = True) -> None:
    """Draw one line for each quantity, the first on top: our number with its interval, and the printed one, if any."""
    for y, (ours, color, printed, stopped) in enumerate(rows):
        if isinstance(ours, stats.Estimate):
            axis.plot([ours.low, ours.high], [y, y], color=color, linewidth=1.3)
            axis.plot(ours.value, y, ">" if stopped else "o", color=color, markersize=5.5 if stopped else 4.5)
        elif ours is not None:
            axis.plot(ours, y, "|", color=color, markersize=9, markeredgewidth=1.6)
        if printed is not None:
            axis.plot(printed, y, "D", color="black", markerfacecolor="none", markersize=7, markeredgewidth=0.8)
    axis.set_ylim(len(rows) - 0.4, -0.6)
    if log:
        axis.set_xscale("log")
        plain_decades(axis.xaxis)
    axis.grid(axis="y", linewidth=0.4, alpha=0.35)
    axis.tick_params(axis="y", length=0)


def dot_legend(exact: bool = True, stopped: bool = False) -> "list[Artist]":
    """Return the legend of `dots`."""
    computed = mark("|", "ours, computed exactly", markersize=9, markeredgewidth=1.6, color=EXACT)
    return [
        mark("o", "ours, mean and 95 % interval", markersize=4.5),
        *([mark(">", "runs stopped: at least", markersize=5.5, color=EXACT)] if stopped else []),
        *([computed] if exact else []),
        mark("D", "printed in the paper", markerfacecolor="none", markersize=7, markeredgewidth=0.8),
    ]


def box(axis: "Axes", x: float, steps: Floats, color: str) -> None:
    """Draw a boxplot: quartiles, whiskers to the farthest run within 1.5 quartile distances, all runs as points."""
    line = {"color": color, "linewidth": 0.8}
    axis.boxplot(
        [steps],
        positions=[x],
        widths=0.2,
        showfliers=False,
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": color, "alpha": 0.25, "edgecolor": color, "linewidth": 0.8},
        whiskerprops=line,
        capprops=line,
        medianprops={**line, "linewidth": 1.4},
    )
    aside = np.linspace(-0.08, 0.08, len(steps)) if len(steps) > 1 else np.zeros(1)
    axis.plot(x + aside, steps, ".", color=color, markersize=3, alpha=0.6, markeredgewidth=0)


def line(algorithm: str) -> "Artist":
    """Return the legend entry of an algorithm."""
    from matplotlib.lines import Line2D

    look = ALGORITHMS[algorithm]
    return Line2D([], [], color=look.color, linestyle=look.line, label=look.label)


def mark(marker: str, label: str, **look: Any) -> "Artist":
    """Return the legend entry of a marker."""
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], **{"color": "black", "linestyle": "none", "marker": marker, "markersize": 5, **look}, label=label
    )


def box_entry(algorithm: str) -> "Artist":
    """Return the legend entry of an algorithm's boxes."""
    from matplotlib.patches import Patch

    look = ALGORITHMS[algorithm]
    return Patch(facecolor=(look.color, 0.25), edgecolor=look.color, linewidth=0.8, label=look.label)


def plain_decades(axis: Any) -> None:
    """Set the tick labels of a logarithmic axis in the form 0.1 and 2,000, not as powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if x >= 1 else f"{x:g}"))
    axis.set_minor_formatter(NullFormatter())
