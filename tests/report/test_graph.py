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


def test_endings_have_their_kind_and_states_that_are_neither_seen_nor_needed_are_left_out():
    graph, result = graph_and_result("FrozenLake-v1", 3)
    assert graph.kind.count("ending") == len(result.model.states.finals)
    assert graph.unseen == (result.counts.sum(axis=1) == 0).sum() > 0
    assert f"{graph.unseen} states never seen" in network(graph, str).notes[0]


def test_states_that_are_needed_and_were_not_reached_are_below():
    P = np.zeros((4, 1, 4))
    P[0, 0, 1] = P[1, 0, 0] = P[2, 0, 0] = P[3, 0, 3] = 1
    graph, _ = graph_and_result(gosprl.TabularMDP(P))
    assert graph.kind == ["start", "", "missing", "missing"]
    assert graph.y[2:].min() > graph.y[:2].max()


def test_a_line_that_would_pass_through_a_point_is_bent():
    P = np.zeros((3, 1, 3))
    P[0, 0, 2] = P[2, 0, 1] = P[1, 0, 0] = 1
    result = gosprl.collect(gosprl.TabularMDP(P), 1, seed=0)
    found = of_result(result)
    graph = graph_of(found, places_of(found, [(0, 0), (1, 0), (2, 0)]))
    chart = network(graph, str, [""] * len(graph.begin))
    points = [row for layer in chart.layers[:-2] for row in layer["data"]["values"]]
    assert max(abs(row["y"]) for row in points if row["x"] == 0.5) > 0.02  # around the state in the middle
    heads = chart.layers[-2]["data"]["values"]
    assert [head["y"] == 0 for head in heads] == [
        set(ends) != {0, 2} for ends in zip(graph.begin, graph.end, strict=True)
    ]


def test_many_states_on_a_map_are_drawn_in_its_squares():
    graph, result = graph_and_result(gridworld.open_grid(40, 60), 1, places=True, strategy="random", max_steps=3_000)
    assert graph.members.sum() == 2_400
    assert graph.missing.sum() == result.missing
    assert {"start", "missing"} <= set(graph.kind)
    assert graph.members.max() <= 25  # 150 squares, whose sides are at most 5 cells


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
