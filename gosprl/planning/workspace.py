"""The confidence sets of one system in the planner's layout; only rows whose counts changed are recomputed."""

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosprl.mdp.rows import Rows
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.checks import checked, is_ours
from gosprl.planning.solution import METHODS, Solution, solve
from gosprl.sets.intervals import Confidence, Intervals
from gosprl.sets.known import Known

if TYPE_CHECKING:
    from gosprl._kernels import Sets

WRITTEN = ("begin", "end", "succ", "lower", "upper", "each", "total", "slack")  # the fields that `refresh` overwrites
FORGET = 10_000  # after this many refreshes without a plan, the next plan treats all rows as changed
_NO_ROWS = np.empty(0, dtype=np.int64)


class Workspace:
    """The sets of one system, and the last plan made from them."""

    def __init__(self, system: EmpiricalModel | TabularMDP, family: Confidence) -> None:
        self.system, self.family = system, family
        source: Any = system
        self.sets = as_sets(system.rows, family.intervals(source), family)
        self.known = isinstance(family, Known)
        self._ours = is_ours(family)  # then `refresh` does not check its sets
        self._mark = 0 if isinstance(system, TabularMDP) else system.mark()
        self._room: NDArray[np.int64] | None = None  # [R] end of a row's slots; None before the first refresh
        self._used = np.array([len(self.sets.succ)])
        self._since: list[NDArray[np.int64]] = []  # rows refreshed since the last plan
        self.solution: Solution | None = None
        self.plans, self.applied = 0, 0  # plans made, and an upper bound on the rows applied for them

    def plan(
        self,
        goal: NDArray[np.bool_],
        cost: NDArray[np.float64],
        precision: float,
        key: int,
        goal_costs: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Plan with the current counts, starting from the last solution: (rows [S], cost from each state [S]).

        Parameters
        ----------
        goal, cost
            [S] the goals, [R] positive costs.
        precision
            Sup-norm residual |L v - v| to reach.
        key
            Breaks ties at random; -1: the first row.
        goal_costs
            [S] the cost of ending at each goal, at least 0; None: 0.
        """
        self.refresh(self.stale())
        stale = np.concatenate([_NO_ROWS, *self._since]) if len(self._since) < FORGET else None
        enabled = None if isinstance(self.system, TabularMDP) else self.system.enabled
        evaluations = METHODS["modified-policy-iteration"]
        self.solution = solution = solve(
            *(self.sets, cost, goal, self.solution, evaluations),
            precision=precision,
            enabled=enabled,
            stale=stale,
            goal_costs=goal_costs,
            allow_rounding=True,
        )
        self._since.clear()  # only now: after a plan that fails, the old solution stays, and these rows with it
        self.plans += 1
        self.applied += solution.sweeps * len(cost)
        policy, start_cost = solution.greedy(self.system, key)
        return policy, start_cost / (1 + solution.fall_ratio)

    def fork(self) -> "Workspace":
        """Return a copy that can be refreshed without changing this one."""
        other = copy(self)
        other.sets, other._used = self.sets._replace(**_copies(self.sets)), self._used.copy()
        other._room = None if self._room is None else self._room.copy()
        other._since = self._since.copy()
        return other

    def stale(self) -> NDArray[np.int64]:
        """Return the rows whose counts changed since the sets were made."""
        if self.known or isinstance(self.system, TabularMDP):
            return _NO_ROWS
        return self.system.changed(self._mark)

    def refresh(self, rows: NDArray[np.int64]) -> None:
        """Recompute the sets of `rows` [n], which must be those of `stale`."""
        from gosprl import _kernels

        if rows.size == 0:
            return
        if self._room is None:  # the first refresh: the family may still own the arrays
            self.sets = self.sets._replace(**_copies(self.sets))
            self._room = self.sets.end.copy()
        model: Any = self.system
        part = self.family.intervals(model, rows)
        if not self._ours:
            part = checked(part, model.rows, rows, self.family)[0]
        self._mark = model.mark()
        if len(self._since) < FORGET:
            self._since.append(rows)
        done = 0
        while True:
            done = _kernels.replace_rows(
                *(self.sets, self._room, self._used, rows, part.ptr),
                *(part.succ, part.lower, part.upper, part.each, part.total, done),
            )
            if done == len(rows):
                return
            extra = max(len(self.sets.succ), 4 * int(part.ptr[-1]) + 64)
            pools = (self.sets.succ, self.sets.lower, self.sets.upper)
            succ, lower, upper = (np.concatenate([pool, np.zeros(extra, dtype=pool.dtype)]) for pool in pools)
            self.sets = self.sets._replace(succ=succ, lower=lower, upper=upper)


def _copies(sets: Any) -> dict[str, NDArray[Any]]:
    return {name: part.copy() for name, part in sets._asdict().items() if name in WRITTEN}


def as_sets(rows: Rows, intervals: Intervals, family: Confidence | None = None) -> "Sets":
    """Check the intervals of a family and return them in the layout of the kernels."""
    from gosprl._kernels import Sets

    part, slack, any_slack = checked(intervals, rows, family=family)
    succ, lower, upper = part.succ, part.lower, part.upper
    if any_slack:  # the planner sorts within rows, and must not do so in the family's arrays
        succ, lower, upper = succ.copy(), lower.copy(), upper.copy()
    return Sets(rows.ptr, part.ptr[:-1].copy(), part.ptr[1:].copy(), succ, lower, upper, part.each, part.total, slack)
