"""Optimistic stochastic shortest paths (appendix "Efficient Computation of Optimistic SSP Policy").

Problem. Reach a set of goals at the least expected cost, where controller and nature both minimise: nature picks each
row's distribution from its confidence set B(s, a).

    (L v)(s) = min_a { c(s, a) + min_{p in B(s, a)} sum_s' p(s') v(s') }   off the goals,   v = 0 at the goals

Methods. `"value-iteration"` is the paper's: v <- L v from v = 0 until |Lv - v| <= precision. The default,
`"modified-policy-iteration"`, follows each application of L by sweeps of the policy it found (the controller's rows and
nature's order of the states), in place and in the order of the values. Both apply L in time proportional to the stored
transitions: the states are sorted once, and runs of unseen successors cost one subtraction of prefix sums.

Certificate. For any finite v, 0 at the goals, let rho = max over rows of (v - Q)/c and sigma = max over greedy rows of
(Q - v)/c, both at least 0, with Q(s, a) the braces above. Then w = v / (1 + rho) satisfies w <= L w, so it is at most
the optimum; and if sigma < 1, the greedy policy of v reaches the goals and costs at most v / (1 - sigma). The last
application of L measures both. So whatever the iteration did (warm starts, sweeps in place, extrapolation), the
returned values w never exceed the optimistic optimum; the policy is the greedy one of v.

Stopping rule. |L w - w| <= precision in the sup norm, for the returned w = v / (1 + rho).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.confidence import FAMILIES, Confidence, Intervals, Known
from gosprl.errors import InputError, PrecisionError
from gosprl.exact import policy_iteration
from gosprl.mdp import TabularMDP
from gosprl.model import EmpiricalModel
from gosprl.rows import Rows

METHODS: Mapping[str, int] = {"modified-policy-iteration": 100, "value-iteration": 0}  # sweeps a policy
MAX_SWEEPS = 10_000_000
SLOW = 5000  # sweeps after which known dynamics are solved by policy iteration with linear solves instead
WRITTEN = ("succ", "lower", "upper", "each", "total")  # what a workspace overwrites
WORK_PER_CALL = 200_000_000  # row visits between two chances to hear Ctrl-C, about ten seconds


@dataclass(frozen=True, eq=False)
class Plan:
    """An optimistic shortest-path plan; `values <= optimum <= (1 + gap) * values`."""

    values: NDArray[np.float64]  # [S] 0 at goals, inf where no goal can be reached surely
    policy: NDArray[np.int64]  # [S] action; at a goal that of its non-goal copy; -1 where no goal can be reached surely
    rows: NDArray[np.int64]  # [S] the same as rows
    leave: NDArray[np.float64]  # [S] cost of the plan started there: `values`, at a goal that of its non-goal copy
    sweeps: int  # passes over the states, of L or of one policy
    gap: float
    residual: float  # |L v - v| at most this, sup norm
    _basis: "_Basis" = field(repr=False)


@dataclass(frozen=True, eq=False)
class _Basis:
    """What a plan was made from, so that a warm start recomputes only the rows that changed."""

    system: EmpiricalModel | TabularMDP
    confidence: Confidence
    intervals: Intervals
    mark: int


def plan(
    system: EmpiricalModel | TabularMDP,
    goals: ArrayLike,
    *,
    costs: ArrayLike | None = None,
    confidence: str | Confidence | None = None,
    scale: float | None = None,
    delta: float | None = None,
    precision: float = 1e-6,
    method: str = "modified-policy-iteration",
    warm: Plan | None = None,
    rng: np.random.Generator | int | None = None,
) -> Plan:
    """Plan the shortest way to any of `goals`, optimistically if the dynamics are only estimated.

    Parameters
    ----------
    system
        Counts (an `EmpiricalModel`), or known dynamics (a `TabularMDP`).
    goals
        Indices of the goal states, or a bool mask [S].
    costs
        Positive costs per state [S] or per pair [S, A]; by default 1.
    confidence
        `"kl"` (the default), `"bernstein"`, or an object with `intervals(model, rows)`; only with counts.
    scale, delta
        Of a named family: width multiplier (default 1, below it nothing is guaranteed), confidence level (default 0.1).
    precision
        Sup-norm residual |L v - v| to reach.
    method
        `"modified-policy-iteration"`, or the paper's `"value-iteration"`.
    warm
        An earlier plan over the same states, with any goals, costs or counts; speeds up, and keeps optimism.
    rng
        Breaks ties among actions within 1e-6 of the best at random; without it the first of them is taken.
    """
    from gosprl import _kernels

    family = _family(system, confidence, scale, delta)
    goal = _goal_mask(goals, system.num_states)
    cost = row_costs(costs, system.rows)
    precision = _checks.positive("precision", precision)
    evaluations = _checks.choice("method", method, METHODS)
    uniforms = np.zeros(system.num_states) if rng is None else np.random.default_rng(rng).random(system.num_states)
    v = None if warm is None else _warm_values(warm, system.num_states)
    basis = _basis(system, family, warm)
    sets = as_sets(system.rows, basis.intervals)
    enabled = system.enabled if isinstance(system, EmpiricalModel) else None
    solution = solve(sets, cost, goal, v, evaluations, precision=precision, enabled=enabled)
    leave, rows = np.empty(len(goal)), np.empty(len(goal), dtype=np.int64)
    tie = _kernels.TIE * min(1.0, float(cost.min()))
    _kernels.greedy(system.rows.ptr, solution.q, solution.alive, tie, uniforms, leave, rows)
    values = np.where(solution.alive, solution.v / (1 + solution.fall_ratio), np.inf)
    return Plan(
        values=values,
        policy=np.where(rows >= 0, system.rows.action[rows], -1),
        rows=rows,
        leave=np.where(goal, leave / (1 + solution.fall_ratio), values),
        sweeps=solution.sweeps,
        gap=solution.gap,
        residual=solution.residual,
        _basis=basis,
    )


class Workspace:
    """For planning again and again over one model: sets updated row by row, values kept from plan to plan.

    The values kept may be anything, as the certificate makes every solution optimistic again.
    """

    def __init__(self, model: EmpiricalModel, family: Confidence) -> None:
        self.model, self.family = model, family
        self._mark = model.mark()
        sets = as_sets(model.rows, family.intervals(model))
        self.known = isinstance(family, Known)
        if not self.known:  # rows will be overwritten: not in the family's own arrays
            sets = sets._replace(**{name: getattr(sets, name).copy() for name in WRITTEN})
        self._sets = sets
        self._room = sets.end.copy()
        self._used = np.array([len(sets.succ)])
        self._v: NDArray[np.float64] | None = None

    def refresh(self) -> None:
        """Take in the rows whose counts changed."""
        from gosprl import _kernels

        if self.known:
            return
        rows = self.model.changed(self._mark)
        self._mark = self.model.mark()
        part = self.family.intervals(self.model, rows)
        done = 0
        while True:
            done = _kernels.replace_rows(
                *(self._sets, self._room, self._used, rows, part.ptr),
                *(part.succ, part.lower, part.upper, part.each, part.total, done),
            )
            if done == len(rows):
                return
            extra = max(len(self._sets.succ), 4 * int(part.ptr[-1]) + 64)
            pools = (self._sets.succ, self._sets.lower, self._sets.upper)
            succ, lower, upper = (np.concatenate([pool, np.zeros(extra, dtype=pool.dtype)]) for pool in pools)
            self._sets = self._sets._replace(succ=succ, lower=lower, upper=upper)

    def plan(
        self,
        goal: NDArray[np.bool_],
        cost: NDArray[np.float64],
        precision: float,
        uniforms: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(rows [S], cost of the plan from each state [S]): as `Plan.rows` and `Plan.leave`."""
        from gosprl import _kernels

        solution = solve(
            *(self._sets, cost, goal, self._v, METHODS["modified-policy-iteration"]),
            precision=precision,
            enabled=self.model.enabled,
        )
        self._v = np.where(solution.alive, solution.v, 0.0)
        leave, rows = np.empty(len(goal)), np.empty(len(goal), dtype=np.int64)
        tie = _kernels.TIE * min(1.0, float(cost.min()))
        _kernels.greedy(self.model.rows.ptr, solution.q, solution.alive, tie, uniforms, leave, rows)
        return rows, leave / (1 + solution.fall_ratio)


@dataclass(frozen=True, eq=False)
class Solution:
    """Where an iteration stopped."""

    v: NDArray[np.float64]  # [S] before division by 1 + fall_ratio
    alive: NDArray[np.bool_]  # [S] a goal can be reached surely
    q: NDArray[np.float64]  # [R] Q for v, goals' rows being those of their non-goal copies; inf where it cannot be kept
    sweeps: int
    residual: float  # of v / (1 + fall_ratio)
    rise_ratio: float  # sigma
    fall_ratio: float  # rho

    @property
    def gap(self) -> float:
        if self.rise_ratio >= 1:
            return np.inf
        return float((1 + self.fall_ratio) / (1 - self.rise_ratio) - 1)


def solve(
    sets: Any,
    cost: NDArray[np.float64],
    goal: NDArray[np.bool_],
    v: NDArray[np.float64] | None,
    evaluations: int,
    *,
    precision: float = np.inf,
    ratio: float = np.inf,
    enabled: NDArray[np.bool_] | None = None,
    search: bool = True,
    between: Callable[[], None] | None = None,
) -> Solution:
    """Search which states can reach a goal, then iterate, from v (overwritten) or cold, to what is asked.

    Without `search` every state is taken to reach a goal surely. `between` is called before each piece of the work, at
    most some seconds apart, and may raise to end it.
    """
    from gosprl import _kernels

    alive = np.ones(len(goal), dtype=bool)
    usable = np.ones(len(cost), dtype=bool) if enabled is None else enabled.copy()
    if search:
        _kernels.reach(sets, goal, alive, usable)
    warm = v is not None
    v = np.zeros(len(goal)) if v is None else v
    v[goal] = 0.0
    v[~alive] = _kernels.DEAD
    chunk = max(1, min(SLOW, WORK_PER_CALL // (len(cost) + len(sets.succ))))
    exact_tried = False
    q = np.full(len(cost), np.inf)
    sweeps, status = 0, _kernels.OUT_OF_SWEEPS
    while status == _kernels.OUT_OF_SWEEPS and sweeps < MAX_SWEEPS:
        if between is not None:
            between()
        status, more, residual, rise_ratio, fall_ratio = _kernels.solve(
            sets, cost, goal, alive, usable, v, warm, evaluations, precision, ratio, chunk, q
        )
        warm = True
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
    return Solution(v, alive, q, sweeps, residual, rise_ratio, fall_ratio)


def surely_reaching(mdp: TabularMDP, goals: ArrayLike) -> NDArray[np.bool_]:
    """[S] whether some policy reaches one of the goals with probability one from each state; by graph search."""
    from gosprl import _kernels

    alive, usable = np.empty(mdp.num_states, dtype=bool), np.ones(len(mdp.rows), dtype=bool)
    _kernels.reach(as_sets(mdp.rows, Known(mdp).intervals()), _goal_mask(goals, mdp.num_states), alive, usable)
    return alive


def as_sets(rows: Rows, intervals: Intervals) -> Any:
    """The kernels' view of the intervals, after checking that no row's set is empty."""
    from gosprl import _kernels

    S, R = rows.num_states, len(rows)
    if len(intervals.ptr) != R + 1 or len(intervals.each) != R or len(intervals.total) != R:
        raise InputError(f"intervals: expected {R} rows, got {len(intervals.ptr) - 1}")
    slack = np.empty(R)
    lower, upper, each, total = (
        np.ascontiguousarray(part, dtype=np.float64)
        for part in (intervals.lower, intervals.upper, intervals.each, intervals.total)
    )
    ptr = np.ascontiguousarray(intervals.ptr, dtype=np.int64)
    succ = np.ascontiguousarray(intervals.succ, dtype=np.int32)
    if not (ptr[0] == 0 and ptr[-1] == len(succ) == len(lower) == len(upper)):
        raise InputError(f"intervals: expected ptr from 0 to the number of stored successors, {len(succ)}, got {ptr}")
    wrong = _kernels.misplaced_row(ptr, succ, S)
    if wrong >= 0:
        piece = slice(ptr[wrong], ptr[wrong + 1])
        raise InputError(f"intervals: expected successors in 0..{S - 1} in row {wrong}, got {succ[piece]} at {piece}")
    empty = _kernels.infeasible_row(ptr, lower, upper, each, total, S, slack)
    if empty >= 0:
        piece = slice(ptr[empty], ptr[empty + 1])
        raise InputError(
            f"intervals: the set of (s, a) = {rows.pair(empty)} holds no distribution: lower {lower[piece]}, "
            f"upper {upper[piece]}, each {each[empty]}, total {total[empty]}"
        )
    if np.any(slack > _kernels.TINY):  # the planner will sort within rows: not in the caller's arrays
        succ, lower, upper = succ.copy(), lower.copy(), upper.copy()
    return _kernels.Sets(rows.ptr, ptr[:-1].copy(), ptr[1:].copy(), succ, lower, upper, each, total, slack)


def _family(system: Any, confidence: Any, scale: float | None, delta: float | None) -> Confidence:
    if isinstance(system, TabularMDP):
        if confidence is not None or scale is not None or delta is not None:
            raise InputError("confidence, scale, delta: not with a TabularMDP, whose dynamics are known")
        return Known(system)
    if not isinstance(system, EmpiricalModel):
        raise InputError(f"system: expected an EmpiricalModel or a TabularMDP, got {type(system).__name__}")
    if confidence is None or isinstance(confidence, str):
        family = _checks.choice("confidence", "kl" if confidence is None else confidence, FAMILIES)
        return family(0.1 if delta is None else delta, 1.0 if scale is None else scale)
    if isinstance(confidence, type) or not hasattr(confidence, "intervals"):
        raise InputError(f"confidence: expected {sorted(FAMILIES)} or an object with intervals(), got {confidence!r}")
    if scale is not None or delta is not None:
        raise InputError("scale, delta: only with a named family; give them to the confidence object itself")
    checked: Confidence = confidence
    return checked


def _basis(system: EmpiricalModel | TabularMDP, family: Confidence, warm: Plan | None) -> _Basis:
    """The intervals of all rows, taken from `warm` where nothing changed since."""
    mark = system.mark() if isinstance(system, EmpiricalModel) else 0
    old = None if warm is None else warm._basis
    same_family = old is not None and (old.confidence is family or old.confidence == family)
    if old is None or old.system is not system or not same_family or isinstance(system, TabularMDP):
        source: Any = system
        return _Basis(system, family, family.intervals(source), mark)
    rows = system.changed(old.mark)
    if rows.size == 0:
        return old
    return _Basis(system, family, old.intervals.replace(rows, family.intervals(system, rows)), mark)


def _goal_mask(goals: ArrayLike, S: int) -> NDArray[np.bool_]:
    given = np.atleast_1d(np.asarray(goals))
    if given.dtype == bool:
        if given.shape != (S,):
            raise InputError(f"goals: expected indices of states or a mask [S] with S = {S}, got a mask {given.shape}")
        mask = given.copy()
    else:
        mask = np.zeros(S, dtype=bool)
        mask[_checks.integers("goals", given, 0, S, "states")] = True
    if not mask.any():
        raise InputError("goals: expected at least one goal state, got none")
    return mask


def row_costs(costs: ArrayLike | None, rows: Rows) -> NDArray[np.float64]:
    if costs is None:
        return np.ones(len(rows))
    given = _checks.floats("costs", costs)
    S, A = rows.num_states, rows.num_actions
    if given.shape == (S,):
        cost = given[rows.state]
    elif given.shape == (S, A):
        cost = given[rows.state, rows.action]
    else:
        raise InputError(f"costs: expected [S] = ({S},) or [S, A] = ({S}, {A}), got shape {given.shape}")
    bad = np.flatnonzero(~(np.isfinite(cost) & (cost > 0)))
    if bad.size:
        raise InputError(f"costs: expected positive finite costs, got {cost[bad[0]]} at (s, a) = {rows.pair(bad[0])}")
    return np.ascontiguousarray(cost)


def _warm_values(warm: Plan, S: int) -> NDArray[np.float64]:
    if not isinstance(warm, Plan) or len(warm.values) != S:
        raise InputError(f"warm: expected a Plan over the same {S} states, got {warm!r:.80}")
    return np.where(np.isfinite(warm.values), warm.values, 0.0)
