"""Pictures of results with matplotlib, for notebooks and papers: coverage, visits, the learnt system, several results.

The data are those of the page (`findings`, `places`, `graph`); figures are returned, and no window is opened.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from gosprl import _checks
from gosprl.collecting.result import Result
from gosprl.errors import InputError
from gosprl.report.colours import EDGE, LIMIT, LINE, MISSING, POINT, WALL
from gosprl.report.findings import MOST_LIMIT, Findings, of_result
from gosprl.report.graph import graph_of
from gosprl.report.network import BENT, KINDS, bends, on_line
from gosprl.report.places import Places, places_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INSTALL = "pip install 'gosprl[plot]'"
COLOURS = (LINE, "#bc4c00", "#1a7f37", "#8250df", "#57606a", "#bf3989")
TIMES = 300  # points of a mean curve


def plot(source: Any, kind: str = "coverage", *, coordinates: Any = None, ax: "Axes | None" = None) -> "Figure":
    """Draw a result, or several.

    Parameters
    ----------
    source
        A `Result` or the answer of an application; for coverage also a sequence of them, drawn as their mean with the
        95 % interval of that, or a dict from labels to such sequences.
    kind
        "coverage": the proportion of states met over the steps, beside the limit of up to 2,000 states. "visits": of
        each state, where it is; in decreasing order if states have no coordinates. "graph": states, and the transitions
        seen between them.
    coordinates
        As of `gosprl.report.report`.
    ax
        Axes to draw into; by default, those of a new figure.

    Returns
    -------
    A matplotlib figure.

    Raises
    ------
    InputError
        The source or the kind is something else, or ``gosprl[plot]`` is not installed.

    Examples
    --------
    >>> import gosprl
    >>> result = gosprl.collect("riverswim6", need=10, seed=0)
    >>> result.plot().axes[0].get_xlabel()
    'steps'
    """
    draw = _checks.choice("kind", kind, KINDS_OF_PLOTS)
    groups = _groups(source)
    if draw is not _coverage and (len(groups) > 1 or len(next(iter(groups.values()))) > 1):
        raise InputError(f"source: kind={kind!r} expects one result, got several; kind='coverage' draws several")
    with _axes(ax) as axes:
        draw(axes, groups, coordinates)
    figure: Figure = axes.figure.get_figure(root=True)
    return figure


def _groups(source: Any) -> dict[str, list[Result]]:
    """Return the results of each label."""
    if isinstance(source, Mapping):
        groups = {str(label): _results(part) for label, part in source.items()}
    else:
        groups = {"": _results(source)}
    if not groups or not all(groups.values()):
        raise InputError("source: expected at least one result for each label, got none")
    return groups


def _results(source: Any) -> list[Result]:
    found: list[Result] = []
    for one in source if isinstance(source, Sequence) else [source]:
        result = getattr(one, "collected", one)
        if not isinstance(result, Result):
            raise InputError(f"source: expected results or answers of applications, got {type(one).__name__}")
        found.append(result)
    return found


@contextmanager
def _axes(ax: "Axes | None") -> "Iterator[Axes]":
    """Yield axes: those given, or those of a new figure."""
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise InputError(f"plot: needs a package that is not installed ({error}); {INSTALL}") from None
    if ax is not None:
        yield ax
        return
    with rc_context({"axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 110}):
        yield _new_figure().subplots()


def _new_figure() -> "Figure":
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that notebooks show, whether pyplot was imported or not."""

        def _repr_png_(self) -> bytes:
            file = BytesIO()
            self.savefig(file, format="png")
            return file.getvalue()

    return Picture(figsize=(6.4, 3.6), layout="constrained")


def _coverage(axes: "Axes", groups: dict[str, list[Result]], coordinates: Any) -> None:
    from matplotlib.ticker import PercentFormatter

    for i, (label, results) in enumerate(groups.items()):
        _curve(axes, results, COLOURS[i % len(COLOURS)], label)
    every = [result for results in groups.values() for result in results]
    is_small = all(result.model.rows.num_states <= MOST_LIMIT for result in every)
    limits = {None if result.limit is None else round(result.limit, 6) for result in every} if is_small else set()
    limit = limits.pop() if len(limits) == 1 else None
    if limit is not None and 0 < limit < np.inf:
        axes.axvline(limit, color=LIMIT, linestyle="--", linewidth=1, label=f"limit, {limit:,.0f} steps")
    axes.set(xlabel="steps", ylabel="states met", ylim=(0, 1.03))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    if axes.get_legend_handles_labels()[0]:
        for text in axes.legend(frameon=False).get_texts():
            text.set_parse_math(False)  # labels are text, whatever is in them


def _curve(axes: "Axes", results: list[Result], colour: str, label: str) -> None:
    """Draw one curve as it is, or the mean of several with its interval."""
    look: dict[str, Any] = {"color": colour, "linewidth": 1.6, "label": label or None}
    if len(results) == 1:
        steps, met = _points(results[0])
        axes.step(steps, met, where="post", **look)
        return
    from gosprl.experiments import stats

    times = np.linspace(0, max(result.steps for result in results), TIMES)
    curves = np.stack([_at(*_points(result), times) for result in results])
    low, high = stats.band(curves)
    look["label"] = f"{label or 'mean'} ({len(results)} runs, 95 % interval)"
    axes.fill_between(times, low, high, step="post", color=colour, alpha=0.2, linewidth=0)
    axes.step(times, curves.mean(axis=0), where="post", **look)


def _points(result: Result) -> tuple[Any, Any]:
    """Return steps and proportions of a curve, from the beginning to the last step."""
    curve = result.curve
    if not len(curve):
        return np.array([0.0, result.steps]), np.zeros(2)
    begin = curve["proportion"][0] if curve["step"][0] == 0 else 0.0
    steps = np.concatenate([[0], curve["step"], [result.steps]])
    return steps, np.concatenate([[begin], curve["proportion"], curve["proportion"][-1:]])


def _at(steps: Any, met: Any, times: Any) -> Any:
    return met[np.searchsorted(steps, times, side="right") - 1]


def _only(groups: dict[str, list[Result]], coordinates: Any) -> tuple[Findings, Places | None]:
    [[result]] = groups.values()
    found = of_result(result)
    return found, places_of(found, coordinates)


def _visits(axes: "Axes", groups: dict[str, list[Result]], coordinates: Any) -> None:
    found, places = _only(groups, coordinates)
    if places is None:
        _ranked(axes, found)
        return
    visits, known = found.visits, places.known
    lacking = (found.missing > 0) & known
    if places.is_grid:
        drawn = _cells(axes, places, visits)
        axes.plot(places.x[lacking], places.y[lacking], "s", fillstyle="none", color=MISSING, label="samples missing")
    else:
        drawn = axes.scatter(places.x[known], places.y[known], c=visits[known], cmap="Blues", edgecolors=EDGE)
        axes.plot(places.x[lacking], places.y[lacking], "o", fillstyle="none", color=MISSING, label="samples missing")
        axes.invert_yaxis()
    _bare(axes)
    axes.figure.get_figure(root=True).colorbar(drawn, ax=axes, label="visits")
    if lacking.any():
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 0))


def _cells(axes: "Axes", places: Places, visits: Any) -> Any:
    """Draw one cell for each state, and the walls."""
    known = places.known
    x, y = places.x[known].astype(int), places.y[known].astype(int)
    across, down = ([wall[i] for wall in places.walls] for i in (0, 1))
    left, top = min([*x, *across]), min([*y, *down])
    image = np.full((max([*y, *down]) - top + 1, max([*x, *across]) - left + 1), np.nan)
    image[y - top, x - left] = visits[known]
    high, wide = image.shape
    extent = (left - 0.5, left + wide - 0.5, top + high - 0.5, top - 0.5)
    drawn = axes.imshow(image, cmap="Blues", vmin=0, extent=extent)
    if places.walls:
        stone = np.full(image.shape, np.nan)
        stone[np.array(down) - top, np.array(across) - left] = 1
        from matplotlib.colors import ListedColormap

        axes.imshow(stone, cmap=ListedColormap([WALL]), extent=extent)
    return drawn


def _ranked(axes: "Axes", found: Findings) -> None:
    """Draw visits in decreasing order; states that were never seen, and of which nothing is needed, are left out."""
    order = np.argsort(-found.visits, kind="stable")
    order = order[found.shown[order]]
    rank, lacking = np.arange(1, len(order) + 1), found.missing[order] > 0
    for here, colour, label in ((~lacking, POINT, None), (lacking, MISSING, "samples missing")):
        if here.any():
            axes.plot(rank[here], found.visits[order][here], "o", color=colour, markersize=3, label=label)
    axes.set(xlabel="states, in decreasing order", ylabel="visits")
    if lacking.any():
        axes.legend(frameon=False)


def _graph(axes: "Axes", groups: dict[str, list[Result]], coordinates: Any) -> None:
    from matplotlib.collections import LineCollection

    graph = graph_of(*_only(groups, coordinates))
    if graph is None:
        raise InputError("source: expected a result with states, got one without")
    bent = bends(graph) if graph.has_arrows else np.zeros((len(graph.begin), 2))
    lines = [np.stack(on_line(graph, i, bent[i], BENT), axis=1) for i in range(len(graph.begin))]
    widths = 0.4 + 1.6 * np.sqrt(graph.count / max(1, graph.count.max(initial=1)))
    axes.add_collection(LineCollection(lines, colors=EDGE, linewidths=widths.tolist(), zorder=1))
    kinds = np.array(graph.kind)
    size = np.clip(graph.members * 20.0, 30, 300) if graph.grouped else np.full(len(graph.x), 40.0)
    for kind, (label, colour) in KINDS.items():
        if (here := kinds == kind).any():
            axes.scatter(
                graph.x[here], graph.y[here], s=size[here], color=colour, edgecolors="white", label=label, zorder=2
            )
    axes.invert_yaxis()
    _bare(axes)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=len(KINDS), markerscale=0.8)


def _bare(axes: "Axes") -> None:
    """Leave out what coordinates do not need."""
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


KINDS_OF_PLOTS: dict[str, Callable[["Axes", dict[str, list[Result]], Any], None]] = {
    "coverage": _coverage,
    "visits": _visits,
    "graph": _graph,
}
