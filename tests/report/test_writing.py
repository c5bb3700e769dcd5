"""`report`: what a page contains, how large it is, and what is refused."""

import sys

import numpy as np
import pytest
from pages import page_of

import gosprl
from gosprl.errors import GosprlError, InputError
from gosprl.report import report

PARTS = ["asked-and-promised", "coverage", "visits", "what-is-missing", "the-learnt-system", "hitting-times"]
PARTS += ["rewards", "plans-and-time", "run-it-again"]


def walled():
    """Three states; the second and the third cannot be reached."""
    P = np.zeros((3, 1, 3))
    P[0, 0, 0] = P[1, 0, 0] = P[2, 0, 2] = 1
    return gosprl.TabularMDP(P)


def test_a_page_has_all_parts_with_the_numbers_of_the_result():
    result = gosprl.collect("four_room43", 10, seed=0)
    page = page_of(result)
    assert page.headings == PARTS
    rows = {row[0]: row[1] for row in page.rows if len(row) == 2}
    assert rows["guarantee"] == "delta=0.1"
    assert rows["100%"] == f"{result.steps:,}"
    assert rows["attempts"].startswith(f"{result.attempts:,}")
    assert f"limit {round(result.limit):,}" in page.text
    cells = page.values(1, 1)  # above the walls
    assert sorted(int(cell["v"].replace(",", "")) for cell in cells) == sorted(result.counts.sum(axis=1).tolist())
    assert "Nothing is missing." in page.text


def test_the_limit_and_the_curve_are_those_of_the_result():
    result = gosprl.collect("riverswim6", 10, seed=0)
    page = page_of(result)
    curve = page.values(0)
    assert [(point["x"], point["y"]) for point in curve[1:-1]] == [
        (step, round(proportion, 4)) for step, proportion in result.curve.tolist()
    ]
    assert curve[-1] == {"x": result.steps, "y": 1.0}
    assert page.values(0, 2) == [{"x": result.limit, "label": f"limit {result.limit:,.0f}"}]


def test_a_page_can_be_read_without_scripts():
    page = page_of(gosprl.collect("riverswim6", 10, seed=0))
    pictures = [attributes for attributes in page.attributes("div") if attributes.get("class") == "chart"]
    assert len(pictures) == len(page.charts) == len(page.attributes("svg")) == 5
    assert all(attributes["role"] == "img" and len(attributes["aria-label"]) > 20 for attributes in pictures)
    assert len(page.attributes("path")) > 50  # drawn in the file, not only by scripts
    assert len(page.attributes("caption")) >= 6


def test_what_is_missing_is_listed_with_its_reason():
    result = gosprl.collect(walled(), 5, seed=0)
    page = page_of(result)
    assert ["1", "0", "5", "0", "5", result.unreachable[1]] in page.rows
    assert ["2", result.unreachable[2]] in page.rows
    assert "not met: unreachable" in page.text
    points = page.values(2, -1)
    assert [point["k"] for point in points] == ["start", "samples missing", "samples missing"]


def test_results_with_almost_nothing_in_them():
    alone = gosprl.collect(gosprl.TabularMDP(np.ones((1, 1, 1))), 5, seed=0)
    assert page_of(alone).headings == PARTS
    nothing = gosprl.collect("riverswim6", 0, seed=0)
    assert nothing.steps == 0
    assert "coverage" in page_of(nothing).headings
    begun = gosprl.Collector(actions=2, need=1, seed=0)
    assert "asked-and-promised" in page_of(begun.result()).headings


@pytest.mark.parametrize("steps", [4_000, None])
def test_a_thousand_states_take_two_megabytes_at_most(steps, tmp_path):
    """Also where most states are marked as missing."""
    from gosprl.envs import gridworld

    result = gosprl.collect(gridworld.open_grid(25, 40), 1, strategy="random", seed=0, max_steps=steps)
    file = report(result, tmp_path / "grid.html")
    assert (result.states, result.met) == (1000, steps is None)
    assert 1_000_000 < file.stat().st_size <= 2_000_000


def test_a_million_states_are_one_page_of_the_usual_size(tmp_path):
    states = np.arange(1_000_000)
    ring = gosprl.TabularMDP((states, np.zeros_like(states), (states + 1) % len(states), np.ones(len(states))))
    result = gosprl.collect(ring, 1, strategy="random", seed=0, max_steps=2_000)
    file = report(result, tmp_path / "ring.html")
    assert len(result.unmet) == 998_000
    assert file.stat().st_size <= 2_000_000
    assert "998,000 samples of 998,000 pairs missing" in file.read_text()


def test_endings_are_drawn_at_the_coordinates_of_their_observations():
    result = gosprl.collect("FrozenLake-v1", 3, seed=0)
    page = page_of(result, coordinates=lambda s: (s % 4, s // 4))
    points = page.values(2, -1)
    holes = {(round(point["x"] * 3), round(point["y"] * 3)) for point in points if point["k"] == "an episode ended"}
    assert holes <= {(1, 1), (3, 1), (3, 2), (0, 3), (3, 3)}  # of Gymnasium's map of 4 x 4: SFFF FHFH FFFH HFFG
    assert len({(point["x"], point["y"]) for point in points}) == len(points)  # none is below another


def test_observations_that_are_infinite_are_no_coordinates():
    class Line:
        def reset(self, seed=None, options=None):
            return (0.0, float("inf")), {}

        def step(self, action):
            return (float("-inf"), 1.0), 0.5, False, False, {}

    page = page_of(gosprl.collect(Line(), 2, seed=0, actions=1, max_steps=9))
    assert "in decreasing order" in page.text
    assert any(row[0] == "(0.0, inf)" for row in page.rows)


def test_coordinates_title_and_command_are_shown():
    result = gosprl.collect("riverswim6", 5, seed=0)
    page = page_of(result, coordinates=np.arange(12.0).reshape(6, 2) / 7, title="my system", command="gosprl collect x")
    assert "my system" in page.text
    assert "gosprl collect x" in page.text
    visits = page.values(1)
    assert {point["x"] for point in visits} == {s * 2 / 7 for s in range(6)}


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    result = gosprl.collect("riverswim6", 2, seed=0)
    file = tmp_path / "run.html"
    assert result.report(file) == file
    before = file.read_text()
    result.report(str(file), title="again")
    assert file.read_text() != before
    with pytest.raises(InputError, match=r"ends with \.html"):
        result.report(tmp_path / "run.txt")
    with pytest.raises(InputError, match="existing directory"):
        result.report(tmp_path / "nowhere" / "run.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(GosprlError, match="directory"):
        result.report(tmp_path / "folder.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.html", "run.html"]


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="a Result or an answer of an application, got int"):
        report(3, tmp_path / "x.html")
    with pytest.raises(InputError, match=r"manifest\.json"):
        report(tmp_path, tmp_path / "x.html")
    with pytest.raises(InputError, match=r"manifest\.json"):
        report(tmp_path / "nowhere", tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_the_way_out_is_named(tmp_path, monkeypatch):
    result = gosprl.collect("riverswim6", 1, seed=0)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(InputError, match=r"pip install 'gosprl\[report\]'"):
        result.report(tmp_path / "x.html")
