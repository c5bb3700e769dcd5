"""The charts of a page, as Vega-Lite specifications; `drawing` makes pictures of them. `maps` and `network` have more.

None has more than some thousand marks, however many states there are: what is more is put into bins or left out, and
the caption says so. Marks have no labels for screen readers one by one; the figure has a description, and the numbers
are in the tables of the page.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.report.colours import FAINT, GRID, INK, LIMIT, LINE, MISSING, POINT
from gosprl.report.text import isolated, number, percent

WIDTH = 720  # of static pictures
HEIGHT = 240
MOST_POINTS = 400  # of a curve
MOST_BARS = 24  # above, values are points by rank
WITH_TIPS = 150  # points of a curve that answer to the pointer
BAR = 24  # pixels of a bar
NARROW = 345  # pixels that a legend has on a phone
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Namer = Callable[[int], str]
Json = dict[str, Any]

_TEXT = {"labelColor": FAINT, "titleColor": FAINT, "titleFontWeight": "normal", "labelFontSize": 12}
CONFIG: Json = {
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        **_TEXT,
        "titleFontSize": 12,
        "gridColor": GRID,
        "domainColor": GRID,
        "tickColor": GRID,
        "tickCount": 5,
        "labelOverlap": True,
    },
    "legend": {
        **_TEXT,
        "orient": "bottom",
        "symbolType": "square",
        "symbolSize": 160,
        "symbolStrokeWidth": 0,
        "columns": 4,
        "title": None,
    },
}
BARE = {"domain": False, "ticks": False}  # an axis of labels alone


@dataclass(frozen=True)
class Chart:
    """A picture: what it shows in words, and how it is drawn.

    Attributes
    ----------
    layers
        Of the specification.
    description
        For readers who do not see it.
    height
        In pixels.
    aspect
        Height over width, where it matters: the height then follows from the width.
    below
        Pixels for the legend, which are added to such a height.
    widest
        The largest width in pixels.
    notes
        What is not drawn.
    has_frames
        Whether red frames mark what is missing.
    """

    layers: list[Json]
    description: str
    height: float = HEIGHT
    aspect: float | None = None
    below: float = 0
    widest: float = WIDTH
    notes: list[str] = field(default_factory=list)
    has_frames: bool = False

    def spec(self, width: float = WIDTH) -> Json:
        """Return the specification; the page replaces the width by its own."""
        width = min(width, self.widest)
        return {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "width": width,
            "height": self.height if self.aspect is None else round(self.aspect * width + self.below),
            "padding": 4,
            "autosize": {"type": "fit", "contains": "padding"},
            "config": CONFIG,
            "layer": self.layers,
        }


def layer(rows: Sequence[Json], kind: str, look: Json, **encoding: Any) -> Json:
    """Return one layer of a chart: a mark of this kind and look for each row."""
    return {"data": {"values": rows}, "mark": {"type": kind, "aria": False, **look}, "encoding": encoding}


def measure(name: str, title: str | None = None, **more: Any) -> Json:
    """Return the channel of a number."""
    return {"field": name, "type": "quantitative", "title": title, **more}


def labels(name: str) -> Json:
    """Return the channel of names along the left side, in the order of the rows."""
    return {"field": name, "type": "nominal", "sort": None, "title": None, "axis": {**BARE, "labelLimit": 150}}


def colours(name: str, of: dict[str, str], room: float = NARROW, **legend: Any) -> Json:
    """Return the channel of a colour by name; the legend has as many columns as there is room for, in pixels."""
    return {
        "field": name,
        "type": "nominal",
        "scale": {"domain": list(of), "range": list(of.values())},
        "sort": None,
        "legend": {"columns": legend_columns(of, room), **legend},
    }


def legend_columns(names: Iterable[str], room: float = NARROW) -> int:
    """Return how many columns of these names fit."""
    longest = max(map(len, names), default=0)
    return int(np.clip(min(room, NARROW) // (26 + 6.4 * longest), 1, 4))


def legend_height(names: Collection[str], room: float = NARROW) -> float:
    """Return the pixels that a legend of these names takes."""
    return 16.0 + 16.0 * -(-len(names) // legend_columns(names, room))


def tips(*entries: tuple[str, ...]) -> list[Json]:
    """Return what the pointer shows: (field, title) or (field, title, format) each."""
    return [dict(zip(("field", "title", "format"), entry, strict=False)) for entry in entries]


def unique(names: Iterable[str]) -> list[str]:
    """Return names for an axis: equal ones differ in characters that take no room, or they would be one bar."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, -1) + 1
        found.append(name + "\u200b" * seen[name])
    return found


def spread(n: int, most: int) -> list[int]:
    """Return at most `most` of the numbers below n, evenly spread, with both ends."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64)).tolist() if n else []


def coverage(curve: NDArray[np.void], steps: int, limit: float | None) -> Chart:
    """Return the proportion of states met over the steps, beside the limit."""
    curve = settled(curve)
    begin = float(curve["proportion"][0]) if curve["step"][0] == 0 else 0.0
    step = np.concatenate([[0], curve["step"], [steps]]).astype(float)
    met = np.concatenate([[begin], curve["proportion"], curve["proportion"][-1:]])
    rows = [{"x": step[i], "y": round(float(met[i]), 4)} for i in spread(len(step), MOST_POINTS)]
    x = measure("x", "steps", axis={"grid": False, "format": ",d"})
    y = measure("y", "states met", scale={"domain": [0, 1]}, axis={"format": ".0%", **BARE})
    shown = tips(("x", "steps", ",d"), ("y", "states met", ".1%"))
    points = [rows[i] for i in spread(len(rows), WITH_TIPS)]
    layers = [
        layer(rows, "line", {"interpolate": "step-after", "color": LINE, "strokeWidth": 2}, x=x, y=y),
        layer(points, "point", {"opacity": 0, "size": 120}, x=x, y=y, tooltip=shown),
    ]
    words = f"The proportion of states met over {number(steps)} steps, which ends at {percent(float(met[-1]))}."
    notes = []
    if limit is not None and 0 < limit < np.inf:
        words += f" The limit is {number(round(limit))} steps."
        if limit <= 4 * max(steps, 1):
            layers += _limit(limit, max(steps, limit))
        else:
            notes.append(f"The limit, {number(round(limit))} steps, is far to the right of what is drawn.")
    return Chart(layers, words, notes=notes)


def settled(curve: NDArray[np.void]) -> NDArray[np.void]:
    """Return a curve with one value a step, the last one: while needs are set up, there may be several."""
    last: NDArray[np.void] = curve[np.append(np.diff(curve["step"]) > 0, True)]
    return last


def _limit(limit: float, end: float) -> list[Json]:
    """Return a line with its name above the chart, where the curve is not."""
    rows = [{"x": limit, "label": f"limit {limit:,.0f}"}]
    text = {"align": "right" if limit > 0.8 * end else "center", "dx": 8 if limit > 0.8 * end else 0, "dy": -6}
    text["baseline"] = "bottom"
    return [
        layer(rows, "rule", {"color": LIMIT, "strokeDash": [5, 4], "strokeWidth": 1.5}, x=measure("x")),
        layer(
            rows,
            "text",
            {**text, "color": LIMIT, "fontSize": 12},
            x=measure("x"),
            y={"value": 0},
            text={"field": "label"},
        ),
    ]


def profile(values: Floats, lacking: Bools, names: Namer, what: str, of: str = "states") -> Chart:
    """Return values in decreasing order: a few with their names, many as points by rank.

    Parameters
    ----------
    values
        [n], those that are not finite are left out.
    lacking
        [n] whether an entry is marked as missing.
    names
        Entry -> text.
    what, of
        The values in a word or two, and the entries in the plural.
    """
    finite = np.flatnonzero(np.isfinite(values))
    order = finite[np.argsort(-values[finite], kind="stable")].tolist()
    rows: list[Json] = [
        {
            "x": i + 1,
            "v": float(values[order[i]]),
            "s": isolated(names(order[i])),
            "k": "missing" if lacking[order[i]] else what,
        }
        for i in spread(len(order), MOST_POINTS)
    ]
    if len(order) <= MOST_BARS:
        return bars(rows, what, of[:-1])
    shown = tips(("s", of[:-1]), ("v", what, ",.4~g"), ("x", "rank", ",d"))
    x = measure("x", f"{of}, in decreasing order", axis={"grid": False, "format": ",d"})
    y = measure("v", what, axis={**BARE, "format": _ticks(rows)})
    look = {"opacity": 1, "size": 36}
    words = f"The {what} of {len(order):,} {of} in decreasing order, from {number(rows[0]['v'])} to "
    words += f"{number(rows[-1]['v'])}."
    notes = [f"{len(rows):,} of {len(order):,} {of} are drawn, evenly spread."] if len(rows) < len(order) else []
    return Chart([layer(rows, "circle", look, x=x, y=y, color=_marked(rows, what), tooltip=shown)], words, notes=notes)


def _ticks(rows: Sequence[Json]) -> str:
    """Return the format of an axis: whole numbers with commas, others with some digits."""
    largest = max((abs(entry["v"]) for entry in rows), default=0)
    return ".3~g" if largest < 1000 else ",.0f" if largest < 1e9 else ".1e"


def _marked(rows: Sequence[Json], what: str) -> Json:
    """Return the colours of values, and of those where samples are missing."""
    channel = colours("k", {what: POINT, "missing": MISSING})
    return channel if any(entry["k"] == "missing" for entry in rows) else {**channel, "legend": None}


def bars(rows: list[Json], what: str, of: str) -> Chart:
    """Return horizontal bars: `s` is the name, `v` the value, `k` is `what` or "missing"."""
    named = [{**entry, "s": name} for entry, name in zip(rows, unique(row["s"] for row in rows), strict=True)]
    x = measure("v", what, axis={"format": _ticks(rows)}, **_with_room(rows))
    shown = tips(("s", of), ("v", what, ",.4~g"))
    layers = [layer(named, "bar", {}, y=labels("s"), x=x, color=_marked(rows, what), tooltip=shown)]
    for kind, colour in ((what, FAINT), ("missing", MISSING)):
        texts = [{**row, "t": _at_end(row)} for row in named if row["k"] == kind]
        look = {"align": "left", "dx": 5, "color": colour, "fontSize": 11, "tooltip": None}
        if texts and all(row["v"] >= 0 for row in rows):
            layers.append(layer(texts, "text", look, y=labels("s"), x=x, text={"field": "t"}))
    return Chart(layers, f"The {what} of each {of}, as bars.", height=64 + BAR * len(rows))


def _at_end(row: Json) -> str:
    """Return what stands at the end of a bar; where nothing was collected, it is all that is seen of the bar."""
    return number(row["v"], 3) + (", samples missing" if row["k"] == "missing" else "")


def _with_room(rows: Sequence[Json]) -> Json:
    """Return the scale of bars that start at 0, with room for the texts at their ends."""
    largest = max((row["v"] for row in rows), default=0)
    if largest <= 0 or largest > 1e300 or any(row["v"] < 0 for row in rows):
        return {}
    more = max(1.15 if row["k"] != "missing" else min(1.5, 1.15 + 0.4 * row["v"] / largest) for row in rows)
    return {"scale": {"domain": [0, more * largest]}}


def intervals(rows: list[Json], what: str, of: str) -> Chart:
    """Return values with their intervals, a line each: `s` is the name, `v` the value, `lo` and `hi` the ends."""
    named = [{**entry, "s": name} for entry, name in zip(rows, unique(row["s"] for row in rows), strict=True)]
    shown = tips(("s", of), ("v", what, ".4~g"), ("lo", "at least", ".4~g"), ("hi", "at most", ".4~g"))
    x = {"scale": {"zero": False}, "axis": {"grid": True}}
    ends = {"x": measure("lo", what, **x), "x2": {"field": "hi"}}
    layers = [
        layer(named, "rule", {"color": LINE, "strokeWidth": 3}, y=labels("s"), **ends, tooltip=shown),
        layer(
            named,
            "circle",
            {"color": INK, "size": 60, "opacity": 1},
            y=labels("s"),
            x=measure("v", what, **x),
            tooltip=shown,
        ),
    ]
    return Chart(layers, f"The {what} of each of {len(rows)} {of}s, with intervals.", height=44 + BAR * len(rows))
