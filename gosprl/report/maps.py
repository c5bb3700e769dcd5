"""Values of states, drawn where the states are: a cell or a point for each, or squares that stand for several."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.report.charts import (
    WIDTH,
    Bools,
    Chart,
    Floats,
    Json,
    Namer,
    colours,
    layer,
    legend_height,
    measure,
    tips,
)
from gosprl.report.colours import EDGE, HEAT, INK, MISSING, PAPER, WALL
from gosprl.report.places import Places
from gosprl.report.text import isolated, number

MOST_CELLS = 1_600  # of a map
WITH_NUMBERS = 130  # cells up to which each shows its number
SQUARES = 40  # along the longer side of a map in squares
TALLEST = 620  # pixels
CELL = 56  # pixels of a cell of a small map
FEW_FRAMES = 1 / 3  # of the squares: more red frames would hide what they frame
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Values:
    """What is drawn.

    Attributes
    ----------
    of
        [S], nan or inf where there is none.
    lacking
        [S] whether a state is marked as missing.
    name
        State -> text.
    what
        The values in a word or two.
    start
        A state that is marked.
    """

    of: Floats
    lacking: Bools
    name: Namer
    what: str
    start: int | None = None


def heat(values: Values, places: Places) -> Chart:
    """Return values of states, drawn where they are."""
    known = np.flatnonzero(places.known)
    x, y = places.x[known], places.y[known]
    if not places.is_grid:
        return _points(values, places, known) if len(known) <= MOST_CELLS else _bins(values, known, _squares(x, y))
    area = (np.ptp(x) + 1) * (np.ptp(y) + 1)
    if len(known) > MOST_CELLS or area > SQUARES * MOST_CELLS:
        side = float(np.ceil(max(np.sqrt(area / MOST_CELLS), 1.0)))
        return _bins(values, known, _squares(x, y, side))
    return _cells(values, places, known)


def _squares(x: Floats, y: Floats, side: float | None = None) -> tuple[Ints, Ints]:
    """Return the column and the row of the square that each point is in."""
    side = side or max(np.ptp(x), np.ptp(y)) / SQUARES or 1.0
    return ((x - x.min()) // side).astype(np.int64), ((y - y.min()) // side).astype(np.int64)


def classes(values: Floats) -> tuple[Ints, list[str]]:
    """Return the class of each value [n], 0 for none and for what is unknown, and what the classes are."""
    there = np.isfinite(values) & (values > 0)
    positive = values[there]
    found = np.zeros(len(values), dtype=np.int64)
    if not positive.size:
        return found, ["0"]
    low, high = float(positive.min()), float(positive.max())
    skewed = high > 20 * low and float(np.median(positive)) < high / 4
    ends = np.geomspace(low, high, len(HEAT)) if skewed else np.linspace(low, high, len(HEAT))
    inner = _between(ends, bool(np.all(positive == np.rint(positive))))
    found[there] = 1 + np.searchsorted(inner, positive, side="right")
    spans = [f"{number(a, 3)} to {number(b, 3)}" for a, b in pairwise([low, *inner, high])]
    return found, ["0", *([number(low)] if low == high else spans)]


def _between(edges: Floats, whole: bool) -> list[float]:
    """Return the bounds between classes, with as few digits as tell them apart."""
    low, *_, high = edges.tolist()
    if whole:
        return np.unique(np.rint(edges))[1:-1].tolist()  # type: ignore[no-any-return]
    for digits in (2, 3):
        short = [float(f"{edge:.{digits}g}") for edge in edges[1:-1]]
        if all(a < b for a, b in pairwise([low, *short, high])):
            return short
    return np.unique(edges)[1:-1].tolist()  # type: ignore[no-any-return]


def _shades(found: Ints, labels: list[str], room: float) -> tuple[Json, float]:
    """Return the colours of classes, and the height of the legend, which has those that occur."""
    used = np.unique(found).tolist()
    shade = {labels[k]: HEAT[round(k * (len(HEAT) - 1) / max(1, len(labels) - 1))] for k in used}
    return colours("c", shade, room, direction="horizontal"), legend_height(shade, room)


def _box(wide: int, high: int) -> dict[str, Json]:
    """Return the channels of cells, without axes; the first row is at the top."""
    x = measure("x", axis=None, scale={"domain": [0, wide], "nice": False})
    y = measure("y", axis=None, scale={"domain": [high, 0], "nice": False})
    return {"x": x, "x2": {"field": "x2"}, "y": y, "y2": {"field": "y2"}}


def _cell(x: int, y: int) -> Json:
    return {"x": x, "y": y, "x2": x + 1, "y2": y + 1}


def _width(wide: int, high: int) -> float:
    """Return the largest width of a map: small maps stay small."""
    return min(WIDTH, max(240, CELL * wide), TALLEST * wide / high)


def _cells(values: Values, places: Places, known: Ints) -> Chart:
    """Return one cell for each state."""
    across = np.append(places.x[known], [wall[0] for wall in places.walls])
    down = np.append(places.y[known], [wall[1] for wall in places.walls])
    left, top = int(across.min()), int(down.min())
    wide, high = int(np.ptp(across)) + 1, int(np.ptp(down)) + 1
    found, labels = classes(values.of[known])
    rows: list[Json] = [
        {
            **_cell(int(places.x[s]) - left, int(places.y[s]) - top),
            "c": labels[found[i]],
            "s": isolated(values.name(s)),
            "v": number(round(float(values.of[s]), 1)),
        }
        for i, s in enumerate(known.tolist())
    ]
    box, shown = _box(wide, high), tips(("s", "state"), ("v", values.what))
    look = {"stroke": PAPER, "strokeWidth": 1}
    walls = [_cell(x - left, y - top) for x, y in places.walls]
    layers = [layer(walls, "rect", {**look, "color": WALL}, **box)] if walls else []
    widest = _width(wide, high)
    shades, below = _shades(found, labels, widest)
    layers.append(layer(rows, "rect", look, **box, color=shades, tooltip=shown))
    layers += _framed([rows[i] for i in np.flatnonzero(values.lacking[known])], 2.5, box)
    if len(rows) <= WITH_NUMBERS:
        texts = [("S " if s == values.start else "") + _compact(float(values.of[s])) for s in known.tolist()]
        layers += _written(rows, texts, found > len(labels) * 0.6, box)
    ends = values.of[known]
    words = f"A map of {len(rows):,} states, shaded by {values.what}, from {number(float(np.nanmin(ends)))} to "
    words += f"{number(float(np.nanmax(ends)))}." + " Red frames: samples are missing." * bool(
        values.lacking[known].any()
    )
    framed = bool(values.lacking[known].any())
    return Chart(layers, words, aspect=high / wide, below=below, widest=widest, has_frames=framed)


def _written(rows: list[Json], texts: list[str], dark: Bools, box: dict[str, Json]) -> list[Json]:
    """Return texts in the middle of cells, light on dark ones."""
    layers = []
    for here, colour in ((~dark, INK), (dark, PAPER)):
        chosen = [
            {"x": rows[i]["x"] + 0.5, "y": rows[i]["y"] + 0.5, "t": texts[i]} for i in np.flatnonzero(here).tolist()
        ]
        look = {"color": colour, "fontSize": 11, "tooltip": None}
        layers.append(layer(chosen, "text", look, x=box["x"], y=box["y"], text={"field": "t"}))
    return layers


def _framed(rows: list[Json], width: float, encoding: Json) -> list[Json]:
    """Return frames around what lacks samples; the pointer finds the cells below them."""
    look = {"filled": False, "stroke": MISSING, "strokeWidth": width, "tooltip": None}
    corners = [{name: row[name] for name in ("x", "y", "x2", "y2")} for row in rows]
    return [layer(corners, "rect", look, **encoding)] if rows else []


def _compact(value: float) -> str:
    """Return a number that fits into a cell."""
    if not np.isfinite(value):
        return "" if np.isnan(value) else "∞"
    if abs(value) >= 10_000:
        return f"{value:.0e}" if abs(value) >= 1e9 else f"{value / 1e6:.1f}M" if value >= 1e6 else f"{value / 1e3:.0f}k"
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def _bins(values: Values, known: Ints, at: tuple[Ints, Ints]) -> Chart:
    """Return squares that each stand for several states."""
    column, row = at
    wide, high = int(column.max()) + 1, int(row.max()) + 1
    square, place, size = np.unique(row * wide + column, return_inverse=True, return_counts=True)
    mean = np.bincount(place, weights=np.nan_to_num(values.of[known], posinf=0.0)) / size
    lack = np.bincount(place, weights=values.lacking[known])
    found, labels = classes(mean)
    rows: list[Json] = [
        {
            **_cell(int(c % wide), int(c // wide)),
            "c": labels[found[i]],
            "n": int(size[i]),
            "v": number(round(float(mean[i]), 1)),
            "lack": int(lack[i]),
        }
        for i, c in enumerate(square.tolist())
    ]
    shown = tips(("n", "states", ",d"), ("v", f"{values.what}, mean"), ("lack", "states with missing samples", ",d"))
    box: dict[str, Any] = {**_box(wide, high), "tooltip": shown}
    widest = _width(wide, high)
    shades, below = _shades(found, labels, widest)
    lacking = [row for row in rows if row["lack"]]
    layers = [layer(rows, "rect", {}, **box, color=shades)]
    notes = [f"Each square stands for up to {int(size.max()):,} states and shows their mean."]
    framed = 0 < len(lacking) <= FEW_FRAMES * len(rows)
    if framed:
        layers += _framed(lacking, 1.5, _box(wide, high))
    elif lacking:
        notes.append(f"In {len(lacking):,} of {len(rows):,} squares samples are missing; they have no frames.")
    words = f"A map of {len(known):,} states in {len(rows):,} squares, shaded by the mean of {values.what}."
    sizes = {"aspect": high / wide, "below": below, "widest": widest}
    return Chart(layers, words, notes=notes, has_frames=framed, **sizes)


def _points(values: Values, places: Places, known: Ints) -> Chart:
    """Return one point for each state."""
    found, labels = classes(values.of[known])
    rows = [
        {
            "x": float(places.x[s]),
            "y": float(places.y[s]),
            "c": labels[found[i]],
            "s": isolated(values.name(s)),
            "v": number(round(float(values.of[s]), 1)),
            "lack": bool(values.lacking[s]),
        }
        for i, s in enumerate(known.tolist())
    ]
    x = measure("x", scale={"zero": False})
    y = measure("y", scale={"zero": False, "reverse": True})
    at: dict[str, Any] = {"x": x, "y": y, "tooltip": tips(("s", "state"), ("v", values.what))}
    size = 200 if len(rows) <= 150 else 60
    look = {"size": size, "opacity": 1, "stroke": EDGE, "strokeWidth": 0.5}
    shades, _ = _shades(found, labels, WIDTH)
    layers = [layer(rows, "circle", look, **at, color=shades)]
    if marked := [entry for entry in rows if entry["lack"]]:
        ring = {"size": size, "filled": False, "color": MISSING, "strokeWidth": 2}
        layers.append(layer(marked, "point", ring, **at))
    words = f"{len(rows):,} states at their coordinates, shaded by {values.what}."
    return Chart(layers, words, height=420, has_frames=bool(marked))
