"""Gridworlds against rows by hand, a cell-by-cell implementation, and another implementation's diameters."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from gosprl.envs import gridworld as maps
from gosprl.envs.gridworld import gridworld, open_grid
from gosprl.errors import InputError

DOMAINS = json.loads((Path(__file__).parents[1] / "data" / "domains.json").read_text())["domains"]
PRESETS = {
    "four_room43": (maps.four_room43, maps.FOUR_ROOM43),
    "corridor24": (maps.corridor24, maps.CORRIDOR24),
    "room20": (maps.room20, maps.ROOM20),
    "cliff48": (maps.cliff48, maps.CLIFF48),
    "trap10": (maps.trap10, maps.TRAP10),
}

# States: 0 the start, 1 below it, 2 the terminal; east of the start is a wall. With slip 0.3, 0.7 goes where intended.
TINY = ["S#", ".T"]
TINY_STAY = [
    [[1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0.9, 0.1, 0.0], [0.9, 0.1, 0.0]],
    [[0.1, 0.2, 0.7], [0.1, 0.8, 0.1], [0.1, 0.8, 0.1], [0.7, 0.2, 0.1]],
    [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
]


def cell_by_cell(lines, walls, slip):
    """Return the probabilities [S, 4, S], one cell at a time."""
    cells = [(i, j) for i, line in enumerate(lines) for j, c in enumerate(line) if c != "#"]
    start = next(n for n, (i, j) in enumerate(cells) if lines[i][j] == "S")
    probability = np.zeros((len(cells), 4, len(cells)))
    moves = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    for s, (i, j) in enumerate(cells):
        for a, (di, dj) in enumerate(moves):
            inside = 0 <= i + di < len(lines) and 0 <= j + dj < len(lines[0])
            if lines[i][j] in "Tx":
                probability[s, a, start] = 1
            elif walls == "stay" and inside and lines[i + di][j + dj] == "#":
                probability[s, a, s] = 1
            else:
                for d, (ei, ej) in enumerate(moves):
                    there = (i + ei, j + ej)
                    probability[s, a, cells.index(there) if there in cells else s] += 1 - slip if d == a else slip / 3
    return probability


def test_tiny_map_when_walls_stay():
    mdp = gridworld(TINY, slip=0.3)
    assert (mdp.num_states, mdp.num_actions, len(mdp.rows), mdp.start) == (3, 4, 12, 0)
    assert mdp.map == ("S#", ".T")
    np.testing.assert_allclose(mdp.dense(), TINY_STAY, atol=1e-12)


def test_tiny_map_when_walls_reflect():
    expected = np.array(TINY_STAY)
    expected[0, 0] = [0.9, 0.1, 0.0]  # towards the wall: 0.7 + 0.1 + 0.1 stay, the slip downwards leaves
    np.testing.assert_allclose(gridworld(TINY, walls="reflect", slip=0.3).dense(), expected, atol=1e-12)


def test_a_trap_is_an_ordinary_state_and_a_cliff_resets():
    np.testing.assert_allclose(gridworld("SX").dense(), gridworld("S.").dense())
    np.testing.assert_allclose(gridworld("S.x").dense()[2], [[1, 0, 0]] * 4)


@pytest.mark.parametrize("walls", ["stay", "reflect"])
@pytest.mark.parametrize("name", PRESETS)
def test_presets_cell_by_cell(name, walls):
    build, lines = PRESETS[name]
    mdp = build(walls=walls)
    assert mdp.map == lines
    np.testing.assert_allclose(mdp.dense(), cell_by_cell(lines, walls, 0.1), atol=1e-12)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_against_another_implementation(name):
    mdp, known = PRESETS[name][0](), DOMAINS[name]
    assert (mdp.num_states, mdp.num_actions, mdp.start) == (known["states"], known["actions"], known["start"])
    np.testing.assert_allclose(mdp.ssp_diameters(), known["D_s"], atol=1e-6)


@pytest.mark.parametrize("name", PRESETS)
def test_the_diameter_is_the_same_under_both_readings_of_walls(name):
    assert PRESETS[name][0](walls="reflect").diameter() == pytest.approx(DOMAINS[name]["D"], abs=1e-6)


@pytest.mark.parametrize(
    ("name", "all_at_the_worst", "each_its_own"), [("corridor24", 24375.6, 13695.2), ("four_room43", 27399.7, 19048.3)]
)
def test_table_1_of_the_paper(name, all_at_the_worst, each_its_own):
    diameters = PRESETS[name][0]().ssp_diameters()
    # The paper cuts where it should round: it prints 24375.6 for 24375.67.
    assert len(diameters) * 4 * 10 * diameters.max() == pytest.approx(all_at_the_worst, abs=0.1)
    assert 4 * 10 * diameters.sum() == pytest.approx(each_its_own, abs=0.05)


def test_one_string_may_be_indented():
    drawn = gridworld(
        """
        S#
        .T
        """
    )
    assert drawn.map == ("S#", ".T")


def test_no_slip():
    mdp = gridworld("S.", slip=0)
    np.testing.assert_array_equal(mdp.dense(), [[[0, 1], [1, 0], [1, 0], [1, 0]], [[0, 1], [0, 1], [1, 0], [0, 1]]])
    assert len(mdp.prob) == 8


def test_open_grid():
    mdp = open_grid(3, 4)
    assert (mdp.num_states, mdp.num_actions, mdp.start) == (12, 4, 0)
    assert mdp.map == ("S...", "....", "....")
    np.testing.assert_allclose(mdp.dense(), cell_by_cell(mdp.map, "stay", 0.1), atol=1e-12)


def test_a_large_open_grid():
    mdp = open_grid(300, 200)
    assert mdp.num_states == 60_000
    states, probabilities = mdp.p(10_050, 1)  # row 50, column 50, Down
    assert states.tolist() == [9_850, 10_049, 10_051, 10_250]
    np.testing.assert_allclose(probabilities, [0.1 / 3, 0.1 / 3, 0.1 / 3, 0.9])


def test_blocks_do_not_show(monkeypatch):
    whole = gridworld(maps.FOUR_ROOM43)
    monkeypatch.setattr(maps, "BLOCK", 5)
    pieced = gridworld(maps.FOUR_ROOM43)
    assert pieced.rows.same(whole.rows)
    for name in ("ptr", "succ", "prob"):
        np.testing.assert_array_equal(getattr(pieced, name), getattr(whole, name))


def test_building_takes_little_more_memory_than_the_result():
    tracemalloc.start()
    mdp = open_grid(300, 300)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    held = sum(array.nbytes for array in (mdp.rows.ptr, mdp.rows.action, mdp.ptr, mdp.succ, mdp.prob))
    assert peak < 2 * held + 50e6  # 50 MB for the blocks


@pytest.mark.parametrize(
    ("drawing", "message"),
    [
        ([], r"^map: .*got an empty map"),
        ("", r"^map: .*got an empty map"),
        ([""], r"^map: .*got an empty map"),
        (["S..", ".."], r"^map: expected lines of one length, line 1 has 3 characters and line 2 has 2"),
        (["...", "###"], r"^map: expected exactly one start 'S', got 0$"),
        (["S..", ".S."], r"^map: expected exactly one start 'S', got 2, at line 1, column 1, at line 2, column 2"),
        (["S..", ".o."], r"^map: expected the characters S T x # \. X, got 'o' at line 2, column 2"),
        (["S é"], r"^map: .*got ' ' at line 1, column 2"),
        ([1, 2], r"^map: expected a list of strings, or one string with newlines, got \[1, 2\]"),
        (7, r"^map: expected a list of strings, or one string with newlines, got 7"),
    ],
)
def test_bad_maps(drawing, message):
    with pytest.raises(InputError, match=message):
        gridworld(drawing)


@pytest.mark.parametrize("slip", [1, 1.0, -0.1, float("nan"), "0.1", True])
def test_bad_slips(slip):
    with pytest.raises(InputError, match=r"^slip: expected a number in \[0, 1\), got"):
        gridworld(TINY, slip=slip)


def test_unknown_walls():
    with pytest.raises(InputError, match=r"^walls: 'bounce' is not known; known are reflect, stay"):
        gridworld(TINY, walls="bounce")


def test_bad_sizes_of_an_open_grid():
    with pytest.raises(InputError, match=r"^rows: "):
        open_grid(0, 3)
    with pytest.raises(InputError, match=r"^columns: "):
        open_grid(3, 1.5)
