"""The learnt system as a chart of points and lines."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.report.charts import WIDTH, Chart, Json, Namer, colours, layer, legend_height, measure, tips
from gosprl.report.colours import EDGE, ENDING, FAINT, MISSING, PAPER, POINT, SOME, START, WALL
from gosprl.report.graph import Graph
from gosprl.report.text import isolated, plural

KINDS = {  # what is special about a point: (in words, colour)
    "start": ("start", START),
    "missing": ("samples missing", MISSING),
    "some": ("missing in some states", SOME),
    "ending": ("an episode ended", ENDING),
    "unvisited": ("not visited", WALL),
    "": ("state", POINT),
}
MARGIN = 0.03
ALONG = 0.66  # where on a line its head is: those of the two directions do not cover each other
TALLEST = 520  # pixels
NEAR = 0.012  # a line that comes so near to another point seems to end there
BEND = 0.04  # how far the middle of a bent line is from the straight one
BENT = np.linspace(0, 1, 13)  # where a bent line has points


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
    bent = bends(graph) if said is not None else np.zeros((len(graph.begin), 2))
    layers = _lines(graph, x, y, bent)
    if said is not None:
        layers.append(_heads(graph, x, y, said, bent))
    layers.append(_points(graph, name, x, y))
    n = len(graph.x)
    drawn = f"{int(graph.members.sum()):,} states in {n:,} groups" if graph.grouped else f"{n:,} states"
    words = f"A graph of {drawn} and {len(graph.begin):,} kinds of transitions."
    below = legend_height(_present(graph))
    return Chart(layers, words, aspect=aspect, below=below, widest=min(WIDTH, TALLEST / aspect), notes=_notes(graph))


def _notes(graph: Graph) -> list[str]:
    notes = []
    if graph.grouped:
        notes.append(
            f"{int(graph.members.sum()):,} states are drawn as {len(graph.x):,} groups of near states; "
            "a larger point is a larger group."
        )
    if graph.unseen:
        notes.append(f"{plural(graph.unseen, 'state')} never seen, of which nothing is needed: not drawn.")
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
    kinds = colours("k", _present(graph), symbolType="circle")
    shown = tips(("s", "states" if graph.grouped else "state"), ("v", "visits", ",d"), ("m", "samples missing", ",d"))
    encoding: dict[str, Any] = {"x": x, "y": y, "tooltip": shown, "color": kinds}
    look: Json = {"opacity": 1, "stroke": PAPER, "strokeWidth": 1}
    if graph.grouped:
        encoding["size"] = measure("n", scale={"range": [30, 260]}, legend=None)
    else:
        look["size"] = 190 if len(rows) <= 60 else 80 if len(rows) <= 300 else 26
    return layer(rows, "circle", look, **encoding)


def _present(graph: Graph) -> dict[str, str]:
    """Return the kinds that occur: in words, and their colours."""
    present = set(graph.kind)
    return {word: colour for kind, (word, colour) in KINDS.items() if kind in present}


def bends(graph: Graph) -> NDArray[np.float64]:
    """Return how far the middle of each line is moved [m, 2]: away from points that it would pass through."""
    points = np.stack([graph.x, graph.y], axis=1)
    begin, along = points[graph.begin], points[graph.end] - points[graph.begin]
    length = np.maximum(np.linalg.norm(along, axis=1), 1e-9)
    unit = along / length[:, None]
    aside = np.stack([-unit[:, 1], unit[:, 0]], axis=1)
    moved = np.zeros_like(along)
    for i in range(len(begin)):
        seen = points - begin[i]
        far, off = seen @ unit[i], np.abs(seen @ aside[i])
        if ((off < NEAR) & (far > 2 * NEAR) & (far < length[i] - 2 * NEAR)).any():
            inwards = np.sign((points.mean(axis=0) - begin[i] - along[i] / 2) @ aside[i]) or 1.0
            moved[i] = inwards * min(BEND, 0.2 * length[i]) * aside[i]
    return moved


def on_line(graph: Graph, i: int, bend: NDArray[np.float64], t: Any) -> tuple[Any, Any]:
    """Return the places at t in [0, 1] of line i, a parabola if it is bent."""
    rise = 4 * t * (1 - t)
    x, y = (each[graph.begin[i]] + t * (each[graph.end[i]] - each[graph.begin[i]]) for each in (graph.x, graph.y))
    return x + rise * bend[0], y + rise * bend[1]


def _lines(graph: Graph, x: Json, y: Json, bent: NDArray[np.float64]) -> list[Json]:
    """Return the transitions as three paths, by how frequent they are: a mark for each would make the page heavy."""
    if not len(graph.begin):
        return []
    level = np.minimum((np.argsort(np.argsort(-graph.count)) * 3) // max(1, len(graph.count)), 2)
    layers = []
    for k, width in ((2, 0.6), (1, 1.0), (0, 1.8)):
        points: list[Json] = []
        for i in np.flatnonzero(level == k).tolist():
            across, down = on_line(graph, i, bent[i], BENT if bent[i].any() else BENT[[0, -1]])
            points += [
                {"x": round(a, 3), "y": round(d, 3)} for a, d in zip(across.tolist(), down.tolist(), strict=True)
            ]
            points.append({"x": None})
        if points:
            look = {"color": EDGE, "strokeWidth": width, "tooltip": None, "invalid": "break-paths-show-path-domains"}
            layers.append(layer(points, "line", look, x=x, y=y, order={"value": None}))
    return layers


def _heads(graph: Graph, x: Json, y: Json, said: list[str], bent: NDArray[np.float64]) -> Json:
    """Return heads that show the direction of lines, and say what is known of them."""
    rows = []
    for i in range(len(graph.begin)):
        across, down = on_line(graph, i, bent[i], np.array([ALONG - 0.01, ALONG, ALONG + 0.01]))
        turned = np.degrees(np.arctan2(down[2] - down[0], across[2] - across[0])) + 90
        at = {"x": round(float(across[1]), 4), "y": round(float(down[1]), 4), "d": round(float(turned), 1)}
        rows.append({**at, "n": int(graph.count[i]), "e": said[i]})
    look = {"shape": "triangle", "filled": True, "size": 46, "color": FAINT, "opacity": 1}
    shown = tips(("e", "transition"), ("n", "seen", ",d"))
    angle = {"field": "d", "type": "quantitative", "scale": None}
    return layer(rows, "point", look, x=x, y=y, angle=angle, tooltip=shown)
