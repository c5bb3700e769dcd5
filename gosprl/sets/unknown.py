"""Sets of rows of which some outcomes are unknown: they contain the sets for every outcome that there may have been.

Of n places of a row, m are unknown (`CommittedModel`). On the event that the true distribution is in the set of all n
outcomes, at all times, it is in the set that contains these sets for all completions, however it was decided which
outcomes are lost: by chance, by their value, or by an adversary (docs/theory/fleet.md). Ends increase with the count,
so a successor seen k times lies between the lower end for k of n and the upper end for k + m of n. Nothing of delta is
spent on this: only what holds for all n outcomes is used.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gosprl.model.empirical import EmpiricalModel

Ints = NDArray[np.int64]


def unknown_of(model: "EmpiricalModel", rows: Ints | None) -> Ints | None:
    """Return the unknown places of each of the rows [n]; None if there are none."""
    if not model.unknown.size:
        return None
    unknown = np.array(model.unknown if rows is None else model.unknown[rows])
    return unknown if unknown.any() else None


def last_first(model: "EmpiricalModel", rows: Ints | None, ptr: Ints, first: Ints, places: Ints) -> Ints:
    """Return a place [n] after which no successor appeared first, and which is not before an unknown one.

    Parameters
    ----------
    ptr, first
        As `model.stored(rows)` returns them.
    places
        [n] all places of each row: the answer where the order of appearance is not known.
    """
    until = np.array(model.unknown_until if rows is None else model.unknown_until[rows])
    unknown = model.unknown if rows is None else model.unknown[rows]
    row = np.repeat(np.arange(len(until)), np.diff(ptr))
    # visits are numbered without the unknown places, which may all have been before
    np.maximum.at(until, row, np.where(first > 0, first + unknown[row], np.where(first == 0, places[row], -first)))
    return until


def kl_end_of_one(n: int, S: int, log_kl: float, scale: float) -> float:
    """Return the upper end of a successor seen once at n places; S = 0: their number is not known."""
    from gosprl import _kernels

    budget = scale * (log_kl + 0.5 * math.log(math.pi * n + 1))
    if S > 0:
        return float(_kernels.kl_upper(1.0, float(n), budget))
    return float(_kernels.weighted_kl_ends(1.0, float(n), budget, min(scale, 1.0))[1])


def visits_with_unknown(
    known: int,
    m: int,
    n: int,
    until: int,
    S: int,
    one: Callable[[int], float],
    logs: tuple[float, float],
    scale: float,
    x: float,
) -> int:
    """Return the places at which the cap on unseen mass is x at most, if no more becomes unknown and nothing new shows.

    Parameters
    ----------
    known, m, n, until, S
        As in `_kernels.unknown_total`.
    one
        The upper end of a successor seen once at n places, a function of n.
    logs
        log_a and log_b of the row.
    """
    from gosprl import _kernels

    def cap(n: int) -> float:
        return float(_kernels.unknown_total(known, m, n, until, S, one(n), *logs, scale))

    if cap(n) <= x:
        return n
    below, above = n, max(2 * n, n + 64)
    while cap(above) > x:
        if above > 2**60:
            return 2**60
        below, above = above, 2 * above
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if cap(middle) > x else (below, middle)
    return above
