"""Optimistic stochastic shortest paths (appendix "Efficient Computation of Optimistic SSP Policy").

Problem. Reach a set of goals at the least expected cost, where controller and nature both minimise: nature picks each
row's distribution from its confidence set B(s, a).

    (L v)(s) = min_a { c(s, a) + min_{p in B(s, a)} sum_s' p(s') v(s') }   off the goals,   v = 0 at the goals

Methods. `"value-iteration"` is the paper's: v <- L v from v = 0 until |Lv - v| <= precision. The default,
`"modified-policy-iteration"`, follows each application of L by sweeps of the policy it found (the controller's rows and
nature's distributions, as sparse affine maps), in place and in the order of the values. Both apply L in time
proportional to the stored transitions: the states are sorted once, and runs of unseen successors cost one subtraction
of prefix sums. The fast one begins at rough values from a search for the lightest paths or, where unseen goals may be
anywhere, from the chance to hit one at once; and it does not apply a row again whose value cannot have fallen to the
best: L is monotone and moves by no more than v does, so Q(v') >= Q(v) - max(v - v').

Certificate. For any finite v, 0 at the goals, let rho = max over rows of (v - Q)/c and sigma = max over greedy rows of
(Q - v)/c, both at least 0, with Q(s, a) the braces above. Then w = v / (1 + rho) satisfies w <= L w, so it is at most
the optimum; and if sigma < 1, the greedy policy of v reaches the goals and costs at most v / (1 - sigma). The last
application of L measures both. So whatever the iteration did (warm starts, sweeps in place, extrapolation), the
returned values w never exceed the optimistic optimum; the policy is the greedy one of v.

Stopping rule. |L w - w| <= precision in the sup norm, for the returned w = v / (1 + rho).
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.confidence import Confidence, Intervals, Known, as_family
from gosprl.errors import InputError, PrecisionError
from gosprl.exact import policy_iteration
from gosprl.mdp import TabularMDP
from gosprl.model import EmpiricalModel
from gosprl.rows import Rows

METHODS: Mapping[str, int] = {"modified-policy-iteration": 100, "value-iteration": 0}  # sweeps a policy
MAX_SWEEPS = 10_000_000
SLOW = 5000  # sweeps after which known dynamics are solved by policy iteration with linear solves instead
WRITTEN = ("begin", "end", "succ", "lower", "upper", "each", "total", "slack")  # what a workspace overwrites
FORGET = 10_000  # refreshes after which nothing is known of the rows' values any more
MANY = 5000  # states from which on a search for lightest paths pays even if unseen successors make all ways short
WORK_PER_CALL = 200_000_000  # row visits between two chances to hear Ctrl-C, about ten seconds

_NOTHING = np.empty(0, dtype=np.int64)


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
    _work: "Workspace" = field(repr=False)  # the sets it was made from
    _solution: "Solution" = field(repr=False)


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
        Actions within 1e-6 of the best are told apart by what was seen of them; what is still equal is decided by this
        at random, or without it for the first.
    """
    family = _family(system, confidence, scale, delta)
    goal = _goal_mask(goals, system.num_states)
    cost = row_costs(costs, system.rows)
    precision = _checks.positive("precision", precision)
    evaluations = _checks.choice("method", method, METHODS)
    key = -1 if rng is None else int(np.random.default_rng(rng).integers(2**32))
    work, known, stale = _warm_start(system, family, warm)
    enabled = system.enabled if isinstance(system, EmpiricalModel) else None
    solution = solve(work.sets, cost, goal, known, evaluations, precision=precision, enabled=enabled, stale=stale)
    rows, leave = solution.greedy(system, key)
    policy, values = system.rows.action[rows], solution.v / (1 + solution.fall_ratio)
    policy[rows < 0] = -1
    values[~solution.alive] = np.inf
    leave /= 1 + solution.fall_ratio
    np.copyto(leave, values, where=~goal)
    return Plan(
        values=values,
        policy=policy,
        rows=rows,
        leave=leave,
        sweeps=solution.sweeps,
        gap=solution.gap,
        residual=solution.residual,
        _work=work,
        _solution=solution,
    )


class Workspace:
    """The sets of one system, updated row by row."""

    def __init__(self, system: EmpiricalModel | TabularMDP, family: Confidence) -> None:
        self.system, self.family = system, family
        source: Any = system
        self.sets = as_sets(system.rows, family.intervals(source))
        self.known = isinstance(family, Known)
        self._mark = 0 if isinstance(system, TabularMDP) else system.mark()
        self._room: NDArray[np.int64] | None = None  # [R] where a row's slots end, once rows were replaced
        self._used = np.array([len(self.sets.succ)])
        self._since: list[NDArray[np.int64]] = []  # rows refreshed since the last plan
        self.solution: Solution | None = None
        self.plans, self.applied = 0, 0  # plans made, and rows applied for them at most

    def plan(
        self,
        goal: NDArray[np.bool_],
        cost: NDArray[np.float64],
        precision: float,
        key: int,
        worth: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(rows [S], cost of the plan from each state [S]) for the counts as they are now, warm from the last time."""
        self.refresh(self.stale())
        stale = np.concatenate([_NOTHING, *self._since]) if len(self._since) < FORGET else None
        enabled = None if isinstance(self.system, TabularMDP) else self.system.enabled
        evaluations = METHODS["modified-policy-iteration"]
        self.solution = solution = solve(
            *(self.sets, cost, goal, self.solution, evaluations),
            precision=precision,
            enabled=enabled,
            stale=stale,
            worth=worth,
        )
        self._since.clear()  # not before: a plan that fails leaves the old solution
        self.plans += 1
        self.applied += solution.sweeps * len(cost)
        policy, leave = solution.greedy(self.system, key)
        return policy, leave / (1 + solution.fall_ratio)

    def fork(self) -> "Workspace":
        """A copy that can be refreshed without changing this one."""
        other = copy(self)
        other.sets, other._used = self.sets._replace(**_copies(self.sets)), self._used.copy()
        other._room = None if self._room is None else self._room.copy()
        other._since = self._since.copy()
        return other

    def stale(self) -> NDArray[np.int64]:
        """The rows whose counts changed since the sets were made."""
        if self.known or isinstance(self.system, TabularMDP):
            return _NOTHING
        return self.system.changed(self._mark)

    def refresh(self, rows: NDArray[np.int64]) -> None:
        """Take in the rows whose counts changed: those of `stale`."""
        from gosprl import _kernels

        if rows.size == 0:
            return
        if self._room is None:  # the arrays may be the family's own
            self.sets = self.sets._replace(**_copies(self.sets))
            self._room = self.sets.end.copy()
        if len(self._since) < FORGET:
            self._since.append(rows)
        model: Any = self.system
        self._mark = model.mark()
        part = self.family.intervals(model, rows)
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
    return {name: getattr(sets, name).copy() for name in WRITTEN}


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
    lower, upper = _floats(intervals.lower), _floats(intervals.upper)
    each, total, slack = _floats(intervals.each), _floats(intervals.total), np.empty(R)
    ptr = np.ascontiguousarray(intervals.ptr, dtype=np.int64)
    succ = np.ascontiguousarray(intervals.succ, dtype=np.int32)
    if not (ptr[0] == 0 and ptr[-1] == len(succ) == len(lower) == len(upper)):
        raise InputError(f"intervals: expected ptr from 0 to the number of stored successors, {len(succ)}, got {ptr}")
    wrong, empty, any_slack = _kernels.check_rows(ptr, succ, lower, upper, each, total, S, slack)
    if wrong >= 0:
        piece = slice(ptr[wrong], ptr[wrong + 1])
        raise InputError(f"intervals: expected successors in 0..{S - 1} in row {wrong}, got {succ[piece]} at {piece}")
    if empty >= 0:
        piece = slice(ptr[empty], ptr[empty + 1])
        raise InputError(
            f"intervals: the set of (s, a) = {rows.pair(empty)} holds no distribution: lower {lower[piece]}, "
            f"upper {upper[piece]}, each {each[empty]}, total {total[empty]}"
        )
    if any_slack:  # the planner will sort within rows: not in the caller's arrays
        succ, lower, upper = succ.copy(), lower.copy(), upper.copy()
    return _kernels.Sets(rows.ptr, ptr[:-1].copy(), ptr[1:].copy(), succ, lower, upper, each, total, slack)


def _floats(part: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.ascontiguousarray(part, dtype=np.float64)


def _family(system: Any, confidence: Any, scale: float | None, delta: float | None) -> Confidence:
    if isinstance(system, TabularMDP):
        if confidence is not None or scale is not None or delta is not None:
            raise InputError("confidence, scale, delta: not with a TabularMDP, whose dynamics are known")
        return Known(system)
    if not isinstance(system, EmpiricalModel):
        raise InputError(f"system: expected an EmpiricalModel or a TabularMDP, got {type(system).__name__}")
    if not (confidence is None or isinstance(confidence, str)) and (scale is not None or delta is not None):
        raise InputError("scale, delta: only with a named family; give them to the confidence object itself")
    return as_family(confidence, 0.1 if delta is None else delta, 1.0 if scale is None else scale)


def _warm_start(
    system: EmpiricalModel | TabularMDP, family: Confidence, warm: Plan | None
) -> tuple[Workspace, Solution | None, NDArray[np.int64] | None]:
    """The sets, those of `warm` where nothing changed since, its solution, and the rows that changed (None: any)."""
    if warm is None:
        return Workspace(system, family), None, None
    if not isinstance(warm, Plan) or len(warm.values) != system.num_states:
        raise InputError(f"warm: expected a Plan over the same {system.num_states} states, got {warm!r:.80}")
    work = warm._work
    if work.system is not system or not (work.family is family or work.family == family):
        return Workspace(system, family), warm._solution, None
    rows = work.stale()
    if rows.size:
        work = work.fork()
        work.refresh(rows)
    return work, warm._solution, rows


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


def costs_by_row(costs: ArrayLike, rows: Rows) -> NDArray[np.float64]:
    """[R] from costs [S] or [S, A], whatever they are."""
    given = _checks.floats("costs", costs)
    S, A = rows.num_states, rows.num_actions
    if given.shape == (S,):
        return given[rows.state]
    if given.shape == (S, A):
        return given[rows.state, rows.action]
    raise InputError(f"costs: expected [S] = ({S},) or [S, A] = ({S}, {A}), got shape {given.shape}")


def row_costs(costs: ArrayLike | None, rows: Rows) -> NDArray[np.float64]:
    if costs is None:
        return np.ones(len(rows))
    cost = costs_by_row(costs, rows)
    bad = np.flatnonzero(~(np.isfinite(cost) & (cost > 0)))
    if bad.size:
        raise InputError(f"costs: expected positive finite costs, got {cost[bad[0]]} at (s, a) = {rows.pair(bad[0])}")
    return np.ascontiguousarray(cost)
