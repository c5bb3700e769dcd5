"""Figures of made-up runs: no warnings, nothing hidden, everything labelled."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from experiments import made_up

from gosprl.experiments import figures, stats
from gosprl.experiments.algorithms import ALGORITHMS
from gosprl.experiments.catalogue import EXPERIMENTS
from gosprl.experiments.sweep import Case, Results, Run, quick
from gosprl.experiments.treasure import SOURCES

EACH = pytest.mark.parametrize("name", EXPERIMENTS)


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr(stats, "RESAMPLES", 50)


@cache
def drawn(name, **more):
    """Draw the quick cases, which are fast; for the figure with the most panels, all cases."""
    experiment = EXPERIMENTS[name] if name == "fig-treasure-more" else quick(EXPERIMENTS[name])
    results = made_up.results(experiment, lambda _, name: 500 + 100 * experiment.algorithms.index(name), runs=4, **more)
    return experiment, results, experiment.draw(experiment, results)


def test_a_curve_keeps_its_value_until_it_changes():
    curve = np.array([(0, 0.0), (10, 0.5), (20, 1.0)])
    assert figures.at(curve, np.array([0, 9.9, 10, 15, 20, 99])).tolist() == [0, 0, 0.5, 0.5, 1, 1]


def test_mean_curve_by_hand():
    runs = [
        Run(0, 20, True, None, np.array([(0, 0.0), (10, 0.5), (20, 1.0)])),
        Run(1, 40, False, 40, np.array([(0, 0.0), (30, 0.5)])),
    ]
    axis = figures.blank(1, 1, 2)[1][0]
    mean = figures.mean_curve(axis, "gosprl", runs, np.array([0.0, 10, 20, 30, 40]))
    assert mean.tolist() == [0, 0.25, 0.5, 0.75, 0.75]
    assert axis.lines[0].get_color() == ALGORITHMS["gosprl"].color
    assert axis.lines[0].get_drawstyle() == "steps-post"


@EACH
@pytest.mark.parametrize("stopped", [(), ("guarded", "gosprl-least")], ids=["", "stopped"])
def test_every_axis_is_labelled_and_no_legend_hides_data(name, stopped):
    _, _, figure = drawn(name, stopped=stopped)
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1  # nothing is cut off
    for axis in figure.axes:
        assert axis.get_xlabel()
        assert axis.get_legend() is None
        assert not axis.get_window_extent().overlaps(box)
        assert figure.bbox.x0 <= axis.get_tightbbox().x0 <= axis.get_tightbbox().x1 <= figure.bbox.x1 + 1


@pytest.mark.parametrize("name", ["fig-treasure", "fig-treasure-more", "fig-modest", "fig-aggregation"])
def test_each_algorithm_has_its_own_line_in_the_legend(name):
    experiment, _, figure = drawn(name)
    drawn_ones = [each for each in experiment.algorithms if "treasure" not in name or each not in SOURCES]
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    assert labels >= {ALGORITHMS[each].label for each in drawn_ones}
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 2]
    assert [line.get_color() for line in lines] == [ALGORITHMS[each].color for each in drawn_ones]


def test_the_width_is_written_above_the_figure():
    experiment = EXPERIMENTS["fig-aggregation"]
    for width in experiment.widths:
        figure = figures.titled(experiment.draw(experiment, Results()), width.title)
        assert figure.get_suptitle() == width.title


def test_stopped_runs_are_marked_where_they_end():
    experiment, results, figure = drawn("fig-treasure", stopped=("maxent",))
    end = max(run.steps for run in results[experiment.cases[0].name, "maxent"])
    (mark,) = [line for line in figure.axes[0].lines if line.get_marker() == "x"]
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (end, pytest.approx(0.8))
    assert any("stopped at" in text.get_text() for text in figure.legends[0].get_texts())
    _, _, figure = drawn("fig-treasure")
    assert not any("stopped at" in text.get_text() for text in figure.legends[0].get_texts())


def test_the_line_of_success_is_black_at_one_and_labelled():
    _, _, figure = drawn("fig-aggregation")
    axis = figure.axes[0]
    assert any(line.get_color() == "black" and set(line.get_ydata()) == {1} for line in axis.lines)
    assert "success" in [text.get_text() for text in axis.texts]


def test_printed_numbers_are_marked():
    _, _, figure = drawn("table-costs")
    for axis, numbers in zip(figure.axes, ([253.1, 520.0], [44.6, 4.7]), strict=True):
        marked = [line.get_xdata()[0] for line in axis.lines if line.get_marker() == "D"]
        assert marked == numbers


def test_garnets_of_both_sizes_have_a_panel_each():
    experiment = EXPERIMENTS["fig-garnet"]
    experiment = replace(experiment, cases=(experiment.cases[0], experiment.cases[1], experiment.cases[10]))
    figure = experiment.draw(experiment, made_up.results(experiment, lambda *_: 1000, runs=4, stopped=("random",)))
    titles = [axis.get_title() for axis in figure.axes]
    assert "10" in titles[0]
    assert "50" in titles[1]
    assert all("runs stopped" in title for title in titles)


@EACH
def test_runs_that_are_missing_leave_a_gap_not_an_error(name):
    experiment = quick(EXPERIMENTS[name])
    results = made_up.results(experiment, lambda *_: 500.0, runs=2)
    del results[experiment.cases[0].name, experiment.algorithms[1]]
    assert experiment.draw(experiment, results).axes
    assert experiment.draw(experiment, Results()).axes


@pytest.mark.parametrize(("kind", "begin"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_files_have_no_date(kind, begin):
    one, two = (figures.image(drawn.__wrapped__("fig-aggregation")[2], kind) for _ in range(2))
    assert one == two
    assert one.startswith(begin)
    assert b"Date" not in one


def test_one_run_and_one_change_can_be_drawn():
    experiment = EXPERIMENTS["fig-aggregation"]
    assert isinstance(experiment.cases[0], Case)
    results = Results({("room20", name): [made_up.run(0, 100, states=1)] for name in experiment.algorithms})
    assert experiment.draw(experiment, results).axes
