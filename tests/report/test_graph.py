"""The learnt system as points and lines."""

import numpy as np

import gosprl
from gosprl.envs import gridworld
from gosprl.report.findings import of_result
from gosprl.report.graph import GROUPS, MOST_LINES, graph_of
from gosprl.report.network import network
from gosprl.report.places import places_of


def graph_and_result(system, need=2, places=False, **options):
    result = gosprl.collect(system, need, seed=0, **options)
    found = of_result(result)
    return graph_of(found, places_of(found) if places else None), result


def test_points_and_lines_are_the_states_and_transitions_seen():
    graph, result = graph_and_result("riverswim6", 20)
    s, _, s_next, _ = result.model.transitions()
    between = {(i, j) for i, j in zip(s.tolist(), s_next.tolist(), strict=True) if i != j}
    assert set(zip(graph.begin.tolist(), graph.end.tolist(), strict=True)) == between
    assert graph.visits.tolist() == result.counts.sum(axis=1).tolist()
    assert (graph.kind[result.start], graph.left_out, graph.grouped) == ("start", 0, False)


def test_a_chain_is_drawn_as_a_line():
    graph, _ = graph_and_result("riverswim12", 5)
    order = np.argsort(graph.x)
    assert order.tolist() in (list(range(12)), list(range(12))[::-1])
    assert graph.y.max() < 0.01


def test_states_on_a_map_stay_there():
    graph, _ = graph_and_result(gridworld.open_grid(3, 5), places=True)
    assert graph.x.reshape(3, 5)[0].tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert graph.y.reshape(3, 5)[:, 0].tolist() == [0, 0.25, 0.5]


def test_endings_and_unvisited_states_have_their_kinds_and_are_below():
    graph, result = graph_and_result("FrozenLake-v1", 3)
    unvisited = [i for i, kind in enumerate(graph.kind) if kind == "unvisited"]
    finals = [i for i, kind in enumerate(graph.kind) if kind == "ending"]
    assert unvisited == np.flatnonzero(result.counts.sum(axis=1) == 0).tolist()
    assert len(finals) == len(result.model.states.finals)
    others = np.delete(graph.y, unvisited)
    assert graph.y[unvisited].min() > others.max()


def test_many_states_are_drawn_in_groups():
    graph, result = graph_and_result(gridworld.open_grid(100, 100), 1, strategy="random", max_steps=50_000)
    assert graph.grouped
    assert len(graph.x) <= GROUPS + 1
    assert graph.members.sum() == 10_000
    assert graph.visits.sum() == 50_000
    assert graph.missing.sum() == result.missing
    assert len(graph.begin) <= MOST_LINES
    chart = network(graph, str)
    assert f"10,000 states are drawn as {len(graph.x)} groups" in chart.notes[0]


def test_one_state_is_a_point():
    graph, _ = graph_and_result(gosprl.TabularMDP(np.ones((1, 1, 1))))
    assert (len(graph.x), len(graph.begin)) == (1, 0)
    assert network(graph, str).spec()["height"] > 0
