"""Coordinates of states: of a map, given by the user, or observations that are two numbers."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import InputError
from gosprl.report.findings import Findings

WALL = "#"
EXPECTED = "an array [S, 2], a mapping from observations to pairs of numbers, or a function of the observation"


class Places(NamedTuple):
    """Where states are: x to the right and y downwards [S], nan where that is not known; and the cells of walls."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    walls: list[tuple[int, int]]  # (x, y)
    is_grid: bool  # whether coordinates are whole numbers, one state in a cell

    @property
    def known(self) -> NDArray[np.bool_]:
        """[S] whether a state has coordinates."""
        return np.isfinite(self.x) & np.isfinite(self.y)


def places_of(findings: Findings, coordinates: Any = None) -> Places | None:
    """Return the coordinates of the live states; None if there are none.

    Parameters
    ----------
    findings
        What is shown.
    coordinates
        As given by the user: an array [S, 2], a mapping from observations, or a function of the observation that
        returns two numbers, or None; first to the right, then downwards.

    Raises
    ------
    InputError
        They are something else, or of no state.
    """
    if coordinates is not None:
        return _checked(_given(findings, coordinates))
    if findings.map is not None:
        return _of_map(findings.map, len(findings.counts))
    found = [_two_numbers(observation) for observation in _observations(findings)]
    if len(found) < 2 or any(point is None for point in found):
        return None
    return _placed(np.array(found, dtype=np.float64))


def _of_map(lines: tuple[str, ...], states: int) -> Places | None:
    """Return the cells of a map, whose states are all that are no walls, in reading order."""
    cells = [(x, y, character) for y, line in enumerate(lines) for x, character in enumerate(line)]
    free = np.array([(x, y) for x, y, character in cells if character != WALL], dtype=np.float64)
    if len(free) != states:
        return None
    walls = [(x, y) for x, y, character in cells if character == WALL]
    return Places(free[:, 0], free[:, 1], walls, True)


def _given(findings: Findings, coordinates: Any) -> NDArray[np.float64]:
    if callable(coordinates):
        return _each(findings, coordinates)
    if isinstance(coordinates, Mapping):
        return _each(findings, lambda observation: coordinates.get(observation))
    try:
        array = np.asarray(coordinates, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"coordinates: expected {EXPECTED}, got {coordinates!r:.60}") from None
    if array.shape != (len(findings.counts), 2):
        raise InputError(
            f"coordinates: expected an array [S, 2] with S = {len(findings.counts)} states, got {array.shape}"
        )
    return array


def _each(findings: Findings, function: Callable[[Any], Any]) -> NDArray[np.float64]:
    """Return the coordinates of each state from a function of its observation."""
    out = np.full((len(findings.counts), 2), np.nan)
    for s, observation in enumerate(_observations(findings)):
        point = function(observation)
        if point is None:
            continue
        try:
            out[s] = [float(part) for part in point]
        except (TypeError, ValueError):
            raise InputError(
                f"coordinates: expected two numbers for the observation {observation!r:.60}, got {point!r:.60}"
            ) from None
    return out


def _observations(findings: Findings) -> list[Any]:
    states = [] if findings.model is None else findings.model.states
    return [states[s] for s in range(min(len(states), len(findings.counts)))]


def _two_numbers(observation: Any) -> tuple[float, float] | None:
    """Return an observation that is two finite numbers."""
    is_pair = isinstance(observation, tuple | list | np.ndarray) and len(observation) == 2
    if not is_pair or not all(
        isinstance(part, int | float | np.number) and not isinstance(part, bool) for part in observation
    ):
        return None
    x, y = (float(part) for part in observation)
    return (x, y) if np.isfinite([x, y]).all() else None


def _checked(points: NDArray[np.float64]) -> Places:
    if not np.isfinite(points).all(axis=1).any():
        raise InputError("coordinates: expected finite numbers of at least one state, got none")
    return _placed(points)


def _placed(points: NDArray[np.float64]) -> Places:
    """Return places; on a grid if all are whole numbers, and no two states are in one cell."""
    is_known = np.isfinite(points[:, 0]) & np.isfinite(points[:, 1])
    known = points[is_known]
    whole = bool(np.all(known == np.rint(known)) and np.abs(known).max(initial=0) < 1e6)
    alone = len(np.unique(known, axis=0)) == len(known)
    points = np.where(is_known[:, None], points, np.nan)
    return Places(points[:, 0], points[:, 1], [], whole and alone)
