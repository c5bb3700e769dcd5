"""Policy iteration with sparse linear solves, for known dynamics in which goals are too far away for sweeps.

Each policy is evaluated exactly, so the number of iterations does not depend on how long the way to the goals is. The
planner's certificate judges the result like any other.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import PrecisionError

if TYPE_CHECKING:
    from gosprl._kernels import Sets

IMPROVEMENT = 1e-12  # relative gain below which an action is not worth a change: it may be rounding
MAX_POLICIES = 1000


def policy_iteration(
    sets: "Sets",
    cost: NDArray[np.float64],
    goal: NDArray[np.bool_],
    alive: NDArray[np.bool_],
    usable: NDArray[np.bool_],
    v: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Overwrite v at the alive non-goal states by their optimum, for sets of one point each; the rows [S] that have it.

    What stands in the rows of other states means nothing.
    """
    inner = np.flatnonzero(alive & ~goal)
    policy = _attractor(sets, goal, usable)
    for _ in range(MAX_POLICIES if inner.size else 0):
        v[inner] = policy_value(sets, cost, inner, policy[inner], v)
        q = np.where(usable, cost + np.add.reduceat(sets.lower * v[sets.succ], sets.begin), np.inf)
        best = first_least(q, sets.row_ptr)
        better = inner[q[best[inner]] < v[inner] * (1 - IMPROVEMENT)]
        if better.size == 0:
            break
        policy[better] = best[better]
    return policy


def policy_value(
    sets: "Sets",
    cost: NDArray[np.float64],
    inner: NDArray[np.int64],
    rows: NDArray[np.int64],
    v: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Solve v = c + P v on the inner states, for the policy that takes `rows` there; elsewhere v is as given."""
    from scipy.sparse import coo_array, eye_array
    from scipy.sparse.linalg import splu

    length = sets.end[rows] - sets.begin[rows]
    slot = np.repeat(sets.begin[rows] - np.cumsum(length) + length, length) + np.arange(length.sum())
    number = np.full(len(v), -1)
    number[inner] = np.arange(len(inner))
    source, target = np.repeat(np.arange(len(inner)), length), number[sets.succ[slot]]
    stays = target >= 0
    shape = (len(inner), len(inner))
    prob = sets.lower[slot]
    P = coo_array((prob[stays], (source[stays], target[stays])), shape=shape)
    ends = prob[~stays] * v[sets.succ[slot][~stays]]
    right = cost[rows] + np.bincount(source[~stays], weights=ends, minlength=len(inner))
    try:
        value: NDArray[np.float64] = splu((eye_array(len(inner)) - P).tocsc()).solve(right)
    except RuntimeError as error:  # what leads to the goals is lost in 1 - p
        raise PrecisionError(f"some goals are reached too rarely for doubles: {error}") from None
    return value


def _attractor(sets: "Sets", goal: NDArray[np.bool_], usable: NDArray[np.bool_]) -> NDArray[np.int64]:
    """[S] rows that may each come one step closer to the goals, and so reach them surely."""
    from gosprl import _kernels

    ptr, state, weight = _kernels.reversed_edges(sets, np.ones(len(usable)), usable)
    hops = np.where(goal, 0.0, np.inf)
    _kernels.lightest_paths(ptr, state, np.ones_like(weight), hops)
    closest = np.where(usable, np.minimum.reduceat(hops[sets.succ], sets.begin), np.inf)
    return first_least(closest, sets.row_ptr)


def first_least(per_row: NDArray[np.float64], row_ptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """[S] the first row of each state where `per_row` is least."""
    least = np.repeat(np.minimum.reduceat(per_row, row_ptr[:-1]), np.diff(row_ptr))
    candidates = np.where(per_row == least, np.arange(len(per_row)), len(per_row))
    return np.minimum.reduceat(candidates, row_ptr[:-1])
