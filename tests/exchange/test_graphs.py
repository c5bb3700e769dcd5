"""Graphs of models: networkx reads back the transitions."""

import re

import networkx
import pytest

from gosprl.errors import InputError
from gosprl.exchange import export
from gosprl.exchange.graphs import graph


def expected_edges(model):
    for s, a, s_next, count in zip(*(part.tolist() for part in model.transitions()), strict=True):
        succ, p_hat = model.p_hat(s, a)
        yield s, s_next, a, count, p_hat[succ.tolist().index(s_next)]
    starts, times = model.starts()
    for s, count in zip(starts.tolist(), times.tolist(), strict=True):
        yield model.states.reset, s, -1, count, count / times.sum()


def test_networkx_reads_the_same_model(kept, tmp_path):
    run, result = kept
    export(run, tmp_path / "model.graphml")
    for network in (networkx.read_graphml(tmp_path / "model.graphml", node_type=int), graph(result)):
        states = result.model.states
        assert {n: data["kind"] for n, data in network.nodes(data=True)} == {
            s: states.kind(s) for s in range(len(states))
        }
        found = sorted((u, v, e["action"], e["count"], e["p_hat"]) for u, v, e in network.edges(data=True))
        assert found == sorted(expected_edges(result.model))
        for s, data in network.nodes(data=True):
            if data["kind"] == "live" and states.fixed:
                assert data["observation"] == str(states[s])
            elif data["kind"] == "live":
                assert data["observation"] == f'"{states[s]}"'


def test_dot_has_all_nodes_and_edges(kept, tmp_path):
    run, result = kept
    export(run, tmp_path / "model.dot")
    text = (tmp_path / "model.dot").read_text()
    edge = re.compile(
        r'^  (\d+) -> (\d+) \[action="(-?\d+)", action_name="[^"]*", count="(\d+)", p_hat="([^"]*)"', re.M
    )
    found = [(int(u), int(v), int(a), int(n), float(p)) for u, v, a, n, p in edge.findall(text)]
    assert found == list(expected_edges(result.model))
    assert len(re.findall(r"^  \d+ \[", text, re.M)) == len(result.model.states)
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize("ending", ["dot", "graphml"])
def test_large_models_are_refused(river_run, tmp_path, ending):
    with pytest.raises(InputError, match="at most 5 edges"):
        export(river_run, tmp_path / f"model.{ending}", most_edges=5)
    assert not list(tmp_path.iterdir())
