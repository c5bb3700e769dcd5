"""Optimistic stochastic shortest paths (appendix "Efficient Computation of Optimistic SSP Policy").

Problem. Reach a set of goals at the least expected cost, where controller and nature both minimise: nature picks each
row's distribution from its confidence set B(s, a).

    (L v)(s) = min_a { c(s, a) + min_{p in B(s, a)} sum_s' p(s') v(s') }   off the goals,   v = 0 at the goals

Methods. `"value-iteration"` is the paper's: v <- L v from v = 0 until |Lv - v| <= precision. The default,
`"modified-policy-iteration"`, follows each application of L by sweeps of the greedy policy (the controller's rows and
nature's distributions, as sparse affine maps), in place and in the order of the values. Both apply L in time
proportional to the stored transitions: the states are sorted once, and a run of unseen successors takes one subtraction
of prefix sums. The default starts from the lightest paths to the goals or, if unseen successors may be goals, from the
probability to reach a goal in one step. It skips rows that cannot be the best ones: L is monotone and changes by no
more than v does, so Q(v') >= Q(v) - max(v - v').

Certificate. For any finite v, 0 at the goals, let rho = max over rows of (v - Q)/c and sigma = max over greedy rows of
(Q - v)/c, both at least 0, with Q(s, a) the braces above. Then w = v / (1 + rho) satisfies w <= L w, so it is at most
the optimum; and if sigma < 1, the greedy policy of v reaches the goals and costs at most v / (1 - sigma). The last
application of L measures both ratios. So the returned values w never exceed the optimistic optimum, however v was
computed (warm starts, sweeps in place, extrapolation). The policy is the greedy policy of v.

Stopping rule. |L w - w| <= precision in the sup norm, for the returned w = v / (1 + rho).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.rows import Rows
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.solution import METHODS, Solution, solve
from gosprl.planning.workspace import Workspace, as_sets
from gosprl.sets.families import as_family
from gosprl.sets.intervals import Confidence
from gosprl.sets.known import Known


@dataclass(frozen=True, eq=False)
class Plan:
    """An optimistic shortest-path plan; `values <= optimum <= (1 + gap) * values`."""

    values: NDArray[np.float64]  # [S] 0 at goals, inf where no goal can be reached with probability 1
    policy: NDArray[np.int64]  # [S] actions; at a goal, of its non-goal copy; -1 where `values` is inf
    rows: NDArray[np.int64]  # [S] the same as row numbers
    start_cost: NDArray[np.float64]  # [S] cost of the plan from each state: `values`; at a goal, of its non-goal copy
    sweeps: int  # passes over the states, of L or of one policy
    gap: float
    residual: float  # upper bound on |L v - v|, sup norm
    workspace: Workspace = field(repr=False)  # the sets, for `warm=`
    solution: Solution = field(repr=False)  # the iteration's final values, for `warm=`

    def _repr_html_(self) -> str:
        from gosprl.report.notebook import of_plan

        return of_plan(self)


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
    """Plan a shortest path to any of `goals`, optimistically if the dynamics are only estimated.

    Parameters
    ----------
    system
        Counts (an `EmpiricalModel`), or known dynamics (a `TabularMDP`).
    goals
        Indices of the goal states, or a bool mask [S].
    costs
        Positive costs per state [S] or per pair [S, A]; None: 1.
    confidence
        `"kl"` (the default), `"bernstein"`, or a `gosprl.Confidence` object; only with counts.
    scale, delta
        Of a named family: width multiplier (default 1, no guarantee below) and confidence level (default 0.1).
    precision
        Sup-norm residual |L v - v| to reach.
    method
        `"modified-policy-iteration"`, or the paper's `"value-iteration"`.
    warm
        An earlier plan over the same states, with any goals, costs or counts, to start from; the result stays
        optimistic.
    rng
        Breaks ties. Actions within 1e-6 of the best are compared by the observed frequencies; among those still equal,
        one is drawn at random, or the first is taken if `rng` is None.

    Raises
    ------
    InputError
        An argument is invalid.
    PrecisionError
        The precision was not reached.
    """
    family = _family(system, confidence, scale, delta)
    goal = _goal_mask(goals, system.rows.num_states)
    cost = row_costs(costs, system.rows)
    precision = _checks.positive("precision", precision)
    evaluations = _checks.choice("method", method, METHODS)
    key = -1 if rng is None else int(np.random.default_rng(rng).integers(2**32))
    work, known, stale = _warm_start(system, family, warm)
    enabled = system.enabled if isinstance(system, EmpiricalModel) else None
    solution = solve(work.sets, cost, goal, known, evaluations, precision=precision, enabled=enabled, stale=stale)
    rows, start_cost = solution.greedy(system, key)
    policy, values = system.rows.action[rows], solution.v / (1 + solution.fall_ratio)
    policy[rows < 0] = -1
    values[~solution.alive] = np.inf
    start_cost /= 1 + solution.fall_ratio
    np.copyto(start_cost, values, where=~goal)
    return Plan(
        values=values,
        policy=policy,
        rows=rows,
        start_cost=start_cost,
        sweeps=solution.sweeps,
        gap=solution.certificate.gap,
        residual=solution.certificate.residual,
        workspace=work,
        solution=solution,
    )


def surely_reaching(mdp: TabularMDP, goals: ArrayLike) -> NDArray[np.bool_]:
    """Return for each state whether some policy reaches a goal with probability 1, [S]; by graph search."""
    from gosprl import _kernels

    alive, usable = np.empty(mdp.num_states, dtype=bool), np.ones(len(mdp.rows), dtype=bool)
    _kernels.reach(as_sets(mdp.rows, Known(mdp).intervals()), _goal_mask(goals, mdp.num_states), alive, usable)
    return alive


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
    """Return (sets, solution, changed rows (None: any)) to start from, taken from `warm` where possible."""
    if warm is None:
        return Workspace(system, family), None, None
    if not isinstance(warm, Plan) or len(warm.values) != system.rows.num_states:
        raise InputError(f"warm: expected a Plan over the same {system.rows.num_states} states, got {warm!r:.80}")
    work = warm.workspace
    if work.system is not system or not (work.family is family or work.family == family):
        return Workspace(system, family), warm.solution, None
    rows = work.stale()
    if rows.size:
        work = work.fork()
        work.refresh(rows)
    return work, warm.solution, rows


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
    """Return costs [R] from costs [S] or [S, A]; their values are not checked."""
    given = _checks.floats("costs", costs)
    S, A = rows.num_states, rows.num_actions
    if given.shape == (S,):
        return given[rows.state]
    if given.shape == (S, A):
        return given[rows.state, rows.action]
    raise InputError(f"costs: expected [S] = ({S},) or [S, A] = ({S}, {A}), got shape {given.shape}")


def row_costs(costs: ArrayLike | None, rows: Rows) -> NDArray[np.float64]:
    """Return positive costs [R] from costs [S] or [S, A]; None: 1."""
    if costs is None:
        return np.ones(len(rows))
    cost = costs_by_row(costs, rows)
    bad = np.flatnonzero(~(np.isfinite(cost) & (cost > 0)))
    if bad.size:
        raise InputError(f"costs: expected positive finite costs, got {cost[bad[0]]} at (s, a) = {rows.pair(bad[0])}")
    return np.ascontiguousarray(cost)
