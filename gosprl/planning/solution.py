"""Solve one optimistic shortest-path problem: search, iterate, certify (see `gosprl.planning.ssp`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import PrecisionError
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.exact import policy_iteration

METHODS: Mapping[str, int] = {"modified-policy-iteration": 100, "value-iteration": 0}  # sweeps a policy
MAX_SWEEPS = 10_000_000
SLOW = 5000  # sweeps after which known dynamics are solved by policy iteration with linear solves instead
MANY = 5000  # states from which on a search for lightest paths pays even if unseen successors make all ways short
WORK_PER_CALL = 200_000_000  # row visits between two chances to hear Ctrl-C, about ten seconds


@dataclass(frozen=True, eq=False)
class Solution:
    """Where an iteration stopped."""

    cost: NDArray[np.float64]  # [R]
    goal: NDArray[np.bool_]  # [S]
    v: NDArray[np.float64]  # [S] before division by 1 + fall_ratio
    alive: NDArray[np.bool_]  # [S] a goal can be reached surely
    usable: NDArray[np.bool_]  # [R] rows that can be kept among the alive
    q: NDArray[np.float64]  # [R] Q for v, or a lower bound if far from best; goals' rows are their non-goal copies'
    sweeps: int
    residual: float  # of v / (1 + fall_ratio)
    rise_ratio: float  # sigma
    fall_ratio: float  # rho

    def greedy(self, system: EmpiricalModel | TabularMDP, key: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(rows [S], their least q [S]), ties broken at random by `key` (-1: the first); -1 and inf without a way."""
        from gosprl import _kernels

        rows, leave = np.empty(len(self.v), dtype=np.int64), np.empty(len(self.v))
        tie = _kernels.TIE * min(1.0, float(self.cost.min()))
        _kernels.greedy(system.rows.ptr, self.q, self.alive, tie, key, seen_of(system), self.v, leave, rows)
        return rows, leave

    @property
    def gap(self) -> float:
        if self.rise_ratio >= 1:
            return np.inf
        return float((1 + self.fall_ratio) / (1 - self.rise_ratio) - 1)


def solve(
    sets: Any,
    cost: NDArray[np.float64],
    goal: NDArray[np.bool_],
    warm: Solution | NDArray[np.float64] | None,
    evaluations: int,
    *,
    precision: float = np.inf,
    ratio: float = np.inf,
    enabled: NDArray[np.bool_] | None = None,
    stale: NDArray[np.int64] | None = None,
    search: bool = True,
    between: Callable[[], None] | None = None,
    worth: NDArray[np.float64] | None = None,
) -> Solution:
    """Search which states can reach a goal, then iterate, cold or from another solution or values, to what is asked.

    `stale` are the rows whose sets are not those of the warm solution, None if all may be others. Without `search`
    every state is taken to reach a goal surely. `worth` [S], at least 0, is what it costs to end at each goal, by
    default nothing. `between` is called before each piece of the work, at most some seconds
    apart, and may raise to end it.
    """
    from gosprl import _kernels

    alive = np.ones(len(goal), dtype=bool)
    usable = np.ones(len(cost), dtype=bool) if enabled is None else enabled.copy()
    if search:
        _kernels.reach(sets, goal, alive, usable)
    q, old = np.full(len(cost), -np.inf), np.zeros(len(goal))
    started = True
    if warm is None and evaluations > 0 and (len(goal) > MANY or not sets.total.any()):
        v = np.empty(len(goal))
        _kernels.head_start(sets, cost, goal, usable, v)
    elif warm is None:
        v, started = np.zeros(len(goal)), False
    elif not isinstance(warm, Solution):
        v = warm.copy()
    else:
        v, old = warm.v.copy(), warm.v.copy()
        v[~warm.alive] = 0.0
        if stale is not None and np.array_equal(warm.usable, usable) and np.array_equal(warm.cost, cost):
            q = warm.q.copy()
            left = np.flatnonzero(warm.goal)  # goals no more: begin with the values of their non-goal copies
            v[left] = np.minimum.reduceat(q, sets.row_ptr[:-1])[left]
            q[stale] = -np.inf
    v[goal] = 0.0 if worth is None else worth[goal]
    v[~alive] = _kernels.DEAD
    chunk = max(1, min(SLOW, WORK_PER_CALL // (len(cost) + len(sets.succ))))
    exact_tried = False
    sweeps, status = 0, _kernels.OUT_OF_SWEEPS
    while status == _kernels.OUT_OF_SWEEPS and sweeps < MAX_SWEEPS:
        if between is not None:
            between()
        status, more, residual, rise_ratio, fall_ratio = _kernels.solve(
            sets, cost, goal, alive, usable, v, started, evaluations, precision, ratio, chunk, q, old
        )
        started = True
        sweeps += more
        slow = status == _kernels.ROUNDED or (status == _kernels.OUT_OF_SWEEPS and sweeps >= SLOW)
        if slow and evaluations > 0 and not exact_tried:
            exact_tried = True  # once is enough: what is left is rounding
            if not np.any(sets.slack > _kernels.TINY):
                policy_iteration(sets, cost, goal, alive, usable, v)
                status = _kernels.OUT_OF_SWEEPS
    if status != _kernels.CONVERGED:
        why = "rounding allows no better" if status == _kernels.ROUNDED else f"stopped after {sweeps} sweeps"
        asked = f"precision={precision}" if np.isfinite(precision) else f"a relative error of {ratio}"
        size = v[alive].max()
        raise PrecisionError(f"{asked} was not reached, only {residual:.3g} with values up to {size:.6g}: {why}")
    return Solution(cost, goal, v, alive, usable, q, sweeps, residual, rise_ratio, fall_ratio)


def seen_of(system: EmpiricalModel | TabularMDP) -> Any:
    """What was seen, for the breaking of ties; of known dynamics nothing."""
    from gosprl._kernels import Seen

    mean = np.empty(system.num_actions)
    if isinstance(system, TabularMDP):
        none = np.zeros(len(system.rows), dtype=np.int64)
        return Seen(none, none, none, np.zeros(0, dtype=np.int32), none, mean)
    counts = system._counts
    return Seen(counts.visits, counts.start, counts.length, counts.succ, counts.number, mean)
