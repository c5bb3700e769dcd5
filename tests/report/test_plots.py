"""Pictures with matplotlib: they have the data of the results, and say what they cannot draw."""

import sys

import numpy as np
import pytest

import gosprl
from gosprl.errors import InputError
from gosprl.report import plot


@pytest.fixture(scope="module")
def rivers():
    return [gosprl.collect("riverswim6", 5, seed=seed) for seed in range(4)]


def rendered(figure):
    figure.canvas.draw()
    return figure.axes


def test_coverage_ends_where_the_result_does_beside_the_limit(rivers):
    [axes] = rendered(rivers[0].plot())
    curve, limit = axes.lines
    assert (curve.get_xdata()[-1], curve.get_ydata()[-1]) == (rivers[0].steps, 1.0)
    assert curve.get_ydata()[1:-1].tolist() == rivers[0].curve["proportion"].tolist()
    assert limit.get_xdata()[0] == pytest.approx(rivers[0].limit)


def test_of_many_states_no_limit_is_solved_for(monkeypatch):
    """It would take minutes."""
    grid = gosprl.envs.make("open_grid", rows=50, columns=50)
    result = gosprl.collect(grid, 1, strategy="random", seed=0, max_steps=100)
    monkeypatch.setattr(gosprl.Result, "limit", property(lambda result: pytest.fail("solved for")))
    assert len(rendered(result.plot())[0].lines) == 1


def test_states_that_were_never_seen_are_not_drawn():
    """FrozenLake has 16 observations, of which 11 can be seen alive; its holes and its goal end the episode."""
    result = gosprl.collect("FrozenLake-v1", 3, seed=0)
    [points] = rendered(result.plot("visits"))[0].lines
    assert sorted(points.get_ydata()) == sorted(visits for visits in result.counts.sum(axis=1) if visits)


def test_several_results_are_a_mean_with_its_interval(rivers):
    [axes] = rendered(plot({"first $ones": rivers[:2], "all": rivers}))
    first, every, _ = axes.lines
    times = every.get_xdata()
    for line, runs in ((first, rivers[:2]), (every, rivers)):
        at = line.get_xdata()
        expected = [
            np.mean([max(run.curve["proportion"][run.curve["step"] <= t], default=0.0) for run in runs]) for t in at
        ]
        assert line.get_ydata() == pytest.approx(expected)
    assert times[-1] == max(run.steps for run in rivers)
    low, high = np.inf, -np.inf
    for band in axes.collections:
        low, high = min(low, band.get_datalim(axes.transData).y0), max(high, band.get_datalim(axes.transData).y1)
    assert 0 <= low < 1
    assert high == pytest.approx(1)
    assert axes.get_legend().get_texts()[0].get_text() == "first $ones (2 runs, 95 % interval)"


def test_visits_are_drawn_on_the_map_at_coordinates_or_in_order(rivers):
    rooms = gosprl.collect("four_room43", 2, seed=0, max_steps=60)
    axes, _ = rendered(rooms.plot("visits"))
    cells = axes.images[0].get_array()
    assert cells.sum() == rooms.counts.sum()
    assert (~cells.mask).sum() == 43
    missing = np.unique(rooms.unmet["state"]).size
    assert len(axes.lines[0].get_xdata()) == missing > 0
    axes, _ = rendered(rivers[0].plot("visits", coordinates=np.random.default_rng(0).random((6, 2))))
    assert sorted(axes.collections[0].get_array()) == sorted(rivers[0].counts.sum(axis=1))
    [axes] = rendered(rivers[0].plot("visits"))
    assert axes.lines[0].get_ydata().tolist() == sorted(rivers[0].counts.sum(axis=1), reverse=True)


def test_the_graph_has_a_point_for_each_state_and_a_line_for_each_transition(rivers):
    [axes] = rendered(rivers[0].plot("graph"))
    lines, *points = axes.collections
    s, _, s_next, _ = rivers[0].model.transitions()
    assert len(lines.get_segments()) == len({(a, b) for a, b in zip(s, s_next, strict=True) if a != b})
    assert sum(len(kind.get_offsets()) for kind in points) == 6
    assert "start" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_given_axes_are_used(rivers):
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert rivers[0].plot(ax=left) is rivers[0].plot("graph", ax=right) is figure
    assert left.lines
    assert right.collections


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        (3, {}, "got int"),
        ([], {}, "at least one result"),
        ({}, {}, "at least one result"),
        ("river", {"kind": "pie"}, "coverage"),
        ("both", {"kind": "graph"}, "kind='coverage' draws several"),
    ],
)
def test_what_cannot_be_drawn(source, options, said, rivers):
    given = {"river": rivers[0], "both": rivers[:2]}.get(source, source) if isinstance(source, str) else source
    with pytest.raises(InputError, match=said):
        plot(given, **options)


def test_without_matplotlib_the_way_out_is_named(rivers, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'gosprl\[plot\]'"):
        rivers[0].plot()
