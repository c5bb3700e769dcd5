"""Gridworlds from ASCII maps.

The states are the cells that are not walls, in reading order. The actions are Right, Down, Left, Up, in this order. An
action moves in its own direction with probability 1 - slip, and in each of the three others with slip / 3. A move out
of the map or into a wall has no effect: the agent stays.

    S  the start (exactly one)         #  a wall, not a state          X  a trap: an ordinary state, marked for costs
    T  a terminal tile, x  a cliff: states whose four actions all lead to the start                .  a free cell

The paper says of walls that "if the action leads against the wall, the agent stays in the current position with
probability 1", which can be read in two ways:

    walls="stay"     an action whose own direction leads into a wall does not slip: it stays with probability 1. The
                     border of the map is not a wall: towards it, an action slips. This is the default, as it fits the
                     paper's numbers best.
    walls="reflect"  the action slips as usual; a move against a wall or the border, in whichever direction, stays.

The dynamics are the paper's. Its drawings of the maps were not available: FOUR_ROOM43 and CORRIDOR24 are reconstructed
from the numbers of the paper's Table 1, and reproduce them; ROOM20, CLIFF48 and TRAP10 are our own, with the paper's
number of states.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.parts import Parts
from gosprl.mdp.tabular import TabularMDP

STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0))  # (rows, columns) by which Right, Down, Left, Up move

START, WALL = "S", "#"
RESETS = "Tx"
CHARACTERS = START + RESETS + WALL + ".X"

FOUR_ROOM43 = (
    "T...#...S",
    "....#....",
    "###......",
    "....#.###",
    "....#....",
    "T...#...T",
)
CORRIDOR24 = (
    "####T####T",
    "T.........",
    "#########.",
    "#########.",
    "..S.......",
)
ROOM20 = (
    "S.#..",
    ".....",
    "#.#.#",
    ".....",
    "..#.T",
)
CLIFF48 = (
    "............",
    "............",
    "............",
    "SxxxxxxxxxxT",
)
TRAP10 = (
    "S.XT",
    ".##.",
    "....",
)

BLOCK = 16384  # states whose transitions are built at once
CELL_BYTES = 400  # peak memory per cell while a gridworld is built

_WALL, _OUTSIDE = -1, -2  # numbers of cells that are not states


def gridworld(map: str | Sequence[str], walls: str = "stay", slip: float = 0.1, name: str = "gridworld") -> TabularMDP:
    """Build the gridworld of an ASCII map; the head of this module explains characters, actions and walls.

    Parameters
    ----------
    map
        A list of lines, or one string with newlines. In a string, white space around lines is ignored, so that it can
        be indented like the code around it.
    walls
        `"stay"` or `"reflect"`.
    slip
        In [0, 1): the probability that an action does not move in its own direction.
    name
        For display.

    Raises
    ------
    InputError
        The map has lines of different lengths, unknown characters, or not exactly one start; or an option is invalid.
    """
    lines = _lines(map)
    cells = _cells(lines)
    no_slip_at_walls = _checks.choice("walls", walls, {"stay": True, "reflect": False})
    slip = _checked_slip(slip)

    row, column = np.nonzero(cells != ord(WALL))
    number = np.full(cells.shape, _WALL)
    number[row, column] = np.arange(len(row))
    start = int(number[cells == ord(START)][0])
    padded = np.pad(number, 1, constant_values=_OUTSIDE)
    resets = np.isin(cells[row, column], [ord(character) for character in RESETS])
    p = np.where(np.eye(4, dtype=bool), 1 - slip, slip / 3)  # [action, direction of the move]

    def block(here: NDArray[np.int64]) -> Parts:
        """Return the sparse parts of some states."""
        i, j = row[here] + 1, column[here] + 1
        target = np.stack([padded[i + down, j + right] for down, right in STEPS], axis=1)  # [states, direction]
        landed = np.where(target >= 0, target, here[:, None])
        s_next = np.repeat(landed[:, None, :], 4, axis=1)  # [states, action, direction of the move]
        if no_slip_at_walls:
            k, a = np.nonzero(target == _WALL)
            s_next[k, a] = here[k, None]
        s_next[resets[here]] = start
        n = len(here)
        return np.repeat(here, 16), np.tile(np.repeat(np.arange(4), 4), n), s_next.ravel(), np.tile(p.ravel(), n)

    blocks = (block(np.arange(i, min(i + BLOCK, len(row)))) for i in range(0, len(row), BLOCK))
    return TabularMDP(blocks, start, states=len(row), actions=4, name=name, map=lines)


def open_grid(rows: int, columns: int, slip: float = 0.1) -> TabularMDP:
    """Build a rectangle without walls or terminal tiles; the start is at the top left.

    Parameters
    ----------
    rows, columns
        Its size.
    slip
        As in `gridworld`.
    """
    rows, columns = _checks.whole("rows", rows, 1), _checks.whole("columns", columns, 1)
    _check_size("rows, columns", rows, columns)
    lines = [START + "." * (columns - 1), *["." * columns] * (rows - 1)]
    slipping = "" if slip == 0.1 else f", slip={slip}"
    return gridworld(lines, slip=slip, name=f"open_grid(rows={rows}, columns={columns}{slipping})")


def four_room43(walls: str = "stay") -> TabularMDP:
    """Build the 4-room gridworld of the paper's Table 1 (reconstructed map); `walls` as in `gridworld`."""
    return _preset("four_room43", FOUR_ROOM43, walls)


def corridor24(walls: str = "stay") -> TabularMDP:
    """Build the corridor gridworld of the paper's Table 1 (reconstructed map); `walls` as in `gridworld`.

    The map is a tree, so other drawings have the same numbers.
    """
    return _preset("corridor24", CORRIDOR24, walls)


def room20(walls: str = "stay") -> TabularMDP:
    """Build the 4-room symmetric gridworld with 20 states (our own map); `walls` as in `gridworld`."""
    return _preset("room20", ROOM20, walls)


def cliff48(walls: str = "stay") -> TabularMDP:
    """Build a gridworld with 48 states and a cliff that leads to the start (our own map); `walls` as in `gridworld`."""
    return _preset("cliff48", CLIFF48, walls)


def trap10(walls: str = "stay") -> TabularMDP:
    """Build a gridworld with 10 states (our own map); `walls` as in `gridworld`.

    State 2 is the trap: an ordinary state, which experiments give a cost.
    """
    return _preset("trap10", TRAP10, walls)


def _preset(name: str, lines: Sequence[str], walls: str) -> TabularMDP:
    return gridworld(lines, walls, name=name if walls == "stay" else f"{name}(walls={walls})")


def _lines(drawing: str | Sequence[str]) -> list[str]:
    if isinstance(drawing, str):
        return [line.strip() for line in drawing.strip().splitlines()]
    if not isinstance(drawing, Sequence) or not all(isinstance(line, str) for line in drawing):
        raise InputError(f"map: expected a list of strings, or one string with newlines, got {drawing!r}")
    return list(drawing)


def _cells(lines: Sequence[str]) -> NDArray[np.uint8]:
    """Check a map; return the codes of its characters [rows, columns]."""
    if not lines or not lines[0]:
        raise InputError("map: expected at least one line with at least one cell, got an empty map")
    width = len(lines[0])
    for i, line in enumerate(lines):
        if len(line) != width:
            raise InputError(
                f"map: expected lines of one length, line 1 has {width} characters and line {i + 1} has {len(line)}"
            )
    _check_size("map", len(lines), width)
    cells = np.frombuffer("".join(lines).encode("ascii", "replace"), dtype=np.uint8).reshape(len(lines), width)
    strange = np.argwhere(~np.isin(cells, [ord(character) for character in CHARACTERS]))
    if strange.size:
        row, column = strange[0]
        raise InputError(
            f"map: expected the characters {' '.join(CHARACTERS)}, "
            f"got {lines[row][column]!r} at line {row + 1}, column {column + 1}"
        )
    starts = np.argwhere(cells == ord(START)) + 1
    if len(starts) != 1:
        places = "".join(f", at line {row}, column {column}" for row, column in starts[:2])
        raise InputError(f"map: expected exactly one start '{START}', got {len(starts)}{places}")
    return cells


def _check_size(argument: str, rows: int, columns: int) -> None:
    _checks.memory(f"{argument}: {rows} x {columns} cells", CELL_BYTES * rows * columns, "try a smaller map")


def _checked_slip(slip: float) -> float:
    if slip == 0:  # allowed, unlike 1
        return 0.0
    try:
        return _checks.open_unit("slip", slip)
    except InputError:
        raise InputError(f"slip: expected a number in [0, 1), got {slip!r}") from None
