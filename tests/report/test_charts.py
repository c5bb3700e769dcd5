"""Charts: what is drawn, and what is left out."""

import re

import numpy as np
import pytest

from gosprl.report.charts import MOST_POINTS, bars, coverage, profile, spread, unique
from gosprl.report.drawing import svg
from gosprl.report.maps import Values, classes, heat
from gosprl.report.places import Places

CURVE = [("step", np.int64), ("proportion", np.float64)]


def rows_of(chart, layer=0):
    return chart.layers[layer]["data"]["values"]


def grid(rows, columns):
    y, x = np.divmod(np.arange(rows * columns), columns)
    return Places(x.astype(float), y.astype(float), [], True)


def test_long_curves_keep_their_ends():
    curve = np.zeros(5000, dtype=CURVE)
    curve["step"], curve["proportion"] = np.arange(5000), np.linspace(0, 0.5, 5000)
    points = rows_of(coverage(curve, 6000, None))
    assert len(points) <= MOST_POINTS
    assert (points[0], points[-1]) == ({"x": 0, "y": 0}, {"x": 6000, "y": 0.5})


def test_a_limit_far_away_is_said_and_not_drawn():
    curve = np.array([(0, 0.0), (10, 0.1)], dtype=CURVE)
    far = coverage(curve, 10, 1e6)
    assert (len(far.layers), len(far.notes)) == (2, 1)
    assert len(coverage(curve, 10, 20.0).layers) == 4
    assert len(coverage(curve, 10, np.inf).layers) == 2


def test_values_are_sorted_and_the_infinite_left_out():
    values = np.array([3.0, np.inf, 1.0, np.nan, 2.0])
    chart = profile(values, np.array([0, 0, 1, 0, 0], dtype=bool), str, "visits")
    assert [(row["v"], row["k"]) for row in rows_of(chart)] == [(3, "visits"), (2, "visits"), (1, "missing")]
    many = profile(np.arange(1000.0), np.zeros(1000, dtype=bool), str, "visits")
    assert len(rows_of(many)) == MOST_POINTS
    assert many.notes == ["400 of 1,000 states are drawn, evenly spread."]


def test_equal_names_are_bars_of_their_own():
    assert len(set(unique(["a", "a", "b", "a"]))) == 4
    chart = bars([{"s": "a", "v": 1, "k": "n"}, {"s": "a", "v": 2, "k": "n"}], "n", "state")
    assert len({row["s"] for row in rows_of(chart)}) == 2


def test_spread_has_both_ends():
    assert spread(0, 5) == []
    assert spread(1, 5) == [0]
    assert spread(3, 5) == [0, 1, 2]
    assert spread(100, 3) == [0, 49, 99]


@pytest.mark.parametrize("values", [[0, 1, 5, 9], [0, 1, 10, 10_000], [0.25, 0.5], [7, 7], [0, 0], [np.inf, np.nan, 2]])
def test_every_value_is_in_the_class_that_says_so(values):
    values = np.array(values, dtype=float)
    found, labels = classes(values)
    for value, k in zip(values, found, strict=True):
        if not np.isfinite(value) or value == 0:
            assert labels[k] == "0"
            continue
        low, _, high = labels[k].replace(",", "").partition(" to ")
        assert float(low) * 0.99 <= value <= float(high or low) * 1.01


def test_a_small_map_has_a_cell_for_each_state_and_marks_what_is_missing():
    values = np.arange(6.0)
    chart = heat(Values(values, values == 2, str, "visits", 0), grid(2, 3))
    cells, frames = rows_of(chart, 0), rows_of(chart, 1)
    assert [(cell["x"], cell["y"]) for cell in cells] == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    assert [(frame["x"], frame["y"]) for frame in frames] == [(2, 0)]
    assert {row["t"] for layer in (2, 3) for row in rows_of(chart, layer)} == {"S 0", "1", "2", "3", "4", "5"}


def test_a_large_map_has_squares_with_means():
    values = np.arange(10_000.0)
    chart = heat(Values(values, values < 1, str, "visits"), grid(100, 100))
    squares = rows_of(chart)
    assert sum(square["n"] for square in squares) == 10_000
    first = next(square for square in squares if (square["x"], square["y"]) == (0, 0))
    members = [100 * row + column for row in range(3) for column in range(3)]
    assert (first["n"], first["lack"], float(first["v"])) == (9, 1, np.mean(members))


def test_points_that_are_no_grid_are_points():
    rng = np.random.default_rng(0)
    places = Places(rng.random(50), rng.random(50), [], False)
    chart = heat(Values(np.ones(50), np.zeros(50, dtype=bool), str, "visits"), places)
    assert chart.layers[0]["mark"]["type"] == "circle"
    many = Places(rng.random(3000), np.zeros(3000), [], False)
    chart = heat(Values(np.ones(3000), np.zeros(3000, dtype=bool), str, "visits"), many)
    assert sum(square["n"] for square in rows_of(chart)) == 3000


def test_coordinates_of_pictures_are_short_and_texts_are_as_they_are():
    rows = [{"s": "3.14159265", "v": 1 / 3, "k": "n"}, {"s": "a", "v": 2 / 3, "k": "n"}]
    drawn = svg(bars(rows, "n", "state").spec())
    assert "3.14159265" in drawn
    assert not re.search(r' d="[^"]*\.\d{3}', drawn)
