"""Graphs of small models: networkx, GraphML and Graphviz's dot.

Nodes are the states of the model: `kind` ("live", "final", "crash", "reset"), `observation` and `label` (texts). Edges
are the transitions that were seen: `action` (-1 for a reset), `action_name`, `count`, `p_hat`. The reset is a node of
its own, whose edges are the law of the start.
"""

import json
from pathlib import Path
from typing import Any

from gosprl.errors import InputError
from gosprl.exchange.exporting import needs
from gosprl.exchange.sources import Source
from gosprl.printing import printable

MOST_EDGES = 20_000
_SHAPES = {"live": "ellipse", "final": "doublecircle", "crash": "octagon", "reset": "point"}


def graph(source: Any) -> Any:
    """Return the model of a run, a result or a model as a `networkx.MultiDiGraph`.

    Parameters
    ----------
    source
        As in `gosprl.exchange.export`.
    """
    return _network(source if isinstance(source, Source) else Source(source), MOST_EDGES)


def write_graphml(source: Source, file: Path, *, most_edges: int = MOST_EDGES) -> None:
    """Write GraphML, by networkx."""
    network = _network(source, most_edges)
    import networkx

    networkx.write_graphml(network, file)


def write_dot(source: Source, file: Path, *, most_edges: int = MOST_EDGES) -> None:
    """Write a file for Graphviz; numbers have all their digits, labels of edges are rounded."""
    lines = ["digraph model {"]
    for state, node in nodes(source):
        shown = {**node, "shape": _SHAPES[node["kind"]]}
        lines.append(f"  {state} [{_attributes(shown)}];")
    for s, s_next, edge in edges(source, most_edges):
        action = "reset" if edge["action"] < 0 else edge["action_name"]
        shown = {**edge, "label": f"{action}: {edge['p_hat']:.3g}"}
        lines.append(f"  {s} -> {s_next} [{_attributes(shown)}];")
    file.write_text("\n".join([*lines, "}", ""]), encoding="utf-8")


def nodes(source: Source) -> list[tuple[int, dict[str, Any]]]:
    """Return the states in use with their attributes."""
    states, texts = source.model.states, source.model_observations
    found = []
    for i in range(len(states)):
        kind = states.kind(i)
        text = "" if kind in ("reset", "crash") else str(states.key(i)) if texts is None else printable(texts[i])
        label = kind if kind in ("reset", "crash") else f"{text} (final)" if kind == "final" else text
        found.append((i, {"kind": kind, "observation": text, "label": label}))
    return found


def edges(source: Source, most: int) -> list[tuple[int, int, dict[str, Any]]]:
    """Return the transitions seen, (state, next state, attributes); resets have action -1."""
    model = source.model
    s, a, s_next, count = model.transitions()
    starts, times = model.starts()
    if len(s) + len(starts) > most:
        raise InputError(
            f"source: a graph of at most {most:,} edges is written, this one has {len(s) + len(starts):,}; use parquet "
            'with table="model", or give most_edges='
        )
    visits = model.visits[model.rows.index(s, a)].tolist() if len(s) else []
    found = [
        (i, j, {"action": k, "action_name": printable(str(model.actions[k])), "count": n, "p_hat": n / total})
        for i, k, j, n, total in zip(s.tolist(), a.tolist(), s_next.tolist(), count.tolist(), visits, strict=True)
    ]
    total = int(times.sum())
    found += [
        (model.states.reset, i, {"action": -1, "action_name": "reset", "count": n, "p_hat": n / total})
        for i, n in zip(starts.tolist(), times.tolist(), strict=True)
    ]
    return found


def _network(source: Source, most: int) -> Any:
    try:
        import networkx
    except ImportError as error:
        raise needs("graphml", error) from None
    network = networkx.MultiDiGraph(**{"gosprl": json.dumps(source.metadata)})
    network.add_nodes_from(nodes(source))
    network.add_edges_from(edges(source, most))
    return network


def _attributes(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_quoted(value)}" for name, value in values.items())


def _quoted(value: Any) -> str:
    text = repr(value) if isinstance(value, float) else str(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
