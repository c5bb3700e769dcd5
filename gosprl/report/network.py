"""The learnt system as a chart of points and lines."""

from typing import Any

import numpy as np

from gosprl.report.charts import Chart, Json, Namer, colours, layer, measure, tips
from gosprl.report.colours import EDGE, ENDING, FAINT, MISSING, PAPER, POINT, START, WALL
from gosprl.report.graph import Graph
from gosprl.report.text import isolated

KINDS = {  # what is special about a point: (in words, colour)
    "start": ("start", START),
    "missing": ("samples missing", MISSING),
    "ending": ("an episode ended", ENDING),
    "unvisited": ("not visited", WALL),
    "": ("state", POINT),
}
MARGIN = 0.03
ALONG = 0.66  # where on a line its head is: those of the two directions do not cover each other


def network(graph: Graph, name: Namer, said: list[str] | None = None) -> Chart:
    """Return the learnt system as points and lines.

    Parameters
    ----------
    graph
        Points and lines.
    name
        State -> text.
    said
        What the pointer shows of each line, at its head; None: lines have no heads.
    """
    x, y, aspect = _scales(graph)
    layers = _lines(graph, x, y)
    if said is not None:
        layers.append(_heads(graph, x, y, said))
    layers.append(_points(graph, name, x, y))
    n = len(graph.x)
    drawn = f"{int(graph.members.sum()):,} states in {n:,} groups" if graph.grouped else f"{n:,} states"
    words = f"A graph of {drawn} and {len(graph.begin):,} kinds of transitions."
    return Chart(layers, words, aspect=aspect + 0.06, notes=_notes(graph))


def _notes(graph: Graph) -> list[str]:
    notes = []
    if graph.grouped:
        notes.append(
            f"{int(graph.members.sum()):,} states are drawn as {len(graph.x):,} groups of near states; "
            "a larger point is a larger group."
        )
    if graph.left_out:
        notes.append(f"{graph.left_out:,} rarer transitions are not drawn.")
    return notes


def _scales(graph: Graph) -> tuple[Json, Json, float]:
    """Return both channels and the aspect; the scale is the same in both directions."""
    wide, high = max(float(graph.x.max()), 0.05), max(float(graph.y.max()), 0.05)
    aspect = (high + 2 * MARGIN) / (wide + 2 * MARGIN)
    x = measure("x", axis=None, scale={"domain": [-MARGIN, wide + MARGIN], "nice": False})
    y = measure("y", axis=None, scale={"domain": [high + MARGIN, -MARGIN], "nice": False})
    return x, y, min(1.1, max(0.12, aspect))


def _points(graph: Graph, name: Namer, x: Json, y: Json) -> Json:
    rows = [
        {
            "x": round(float(graph.x[i]), 4),
            "y": round(float(graph.y[i]), 4),
            "k": KINDS[graph.kind[i]][0],
            "s": isolated(name(int(graph.state[i])))
            + (f" and {graph.members[i] - 1:,} more" if graph.members[i] > 1 else ""),
            "v": int(graph.visits[i]),
            "m": int(graph.missing[i]),
            "n": int(graph.members[i]),
        }
        for i in range(len(graph.x))
    ]
    present = set(graph.kind)
    kinds = colours("k", {word: at for kind, (word, at) in KINDS.items() if kind in present}, symbolType="circle")
    shown = tips(("s", "states" if graph.grouped else "state"), ("v", "visits", ",d"), ("m", "samples missing", ",d"))
    encoding: dict[str, Any] = {"x": x, "y": y, "tooltip": shown, "color": kinds}
    look: Json = {"opacity": 1, "stroke": PAPER, "strokeWidth": 1}
    if graph.grouped:
        encoding["size"] = measure("n", scale={"range": [30, 500]}, legend=None)
    else:
        look["size"] = 190 if len(rows) <= 60 else 80 if len(rows) <= 300 else 26
    return layer(rows, "circle", look, **encoding)


def _lines(graph: Graph, x: Json, y: Json) -> list[Json]:
    """Return the transitions as three paths, by how frequent they are: a mark for each would make the page heavy."""
    if not len(graph.begin):
        return []
    level = np.minimum((np.argsort(np.argsort(-graph.count)) * 3) // max(1, len(graph.count)), 2)
    layers = []
    for k, width in ((2, 0.6), (1, 1.0), (0, 1.8)):
        points: list[Json] = []
        for i in np.flatnonzero(level == k).tolist():
            for p in (int(graph.begin[i]), int(graph.end[i])):
                points.append({"x": round(float(graph.x[p]), 3), "y": round(float(graph.y[p]), 3)})
            points.append({"x": None})
        if points:
            look = {"color": EDGE, "strokeWidth": width, "tooltip": None, "invalid": "break-paths-show-path-domains"}
            layers.append(layer(points, "line", look, x=x, y=y, order={"value": None}))
    return layers


def _heads(graph: Graph, x: Json, y: Json, said: list[str]) -> Json:
    """Return heads that show the direction of lines, and say what is known of them."""
    begin, end = graph.begin, graph.end
    across, down = graph.x[end] - graph.x[begin], graph.y[end] - graph.y[begin]
    rows = [
        {
            "x": round(float(graph.x[begin[i]] + ALONG * across[i]), 4),
            "y": round(float(graph.y[begin[i]] + ALONG * down[i]), 4),
            "d": round(float(np.degrees(np.arctan2(down[i], across[i]))) + 90, 1),
            "n": int(graph.count[i]),
            "e": said[i],
        }
        for i in range(len(begin))
    ]
    look = {"shape": "triangle", "filled": True, "size": 46, "color": FAINT, "opacity": 1}
    shown = tips(("e", "transition"), ("n", "seen", ",d"))
    angle = {"field": "d", "type": "quantitative", "scale": None}
    return layer(rows, "point", look, x=x, y=y, angle=angle, tooltip=shown)
