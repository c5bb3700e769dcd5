"""Solve one optimistic shortest-path problem (see `gosprl.planning.ssp`).

1. Search which states can reach a goal surely.
2. Iterate, compiled, until the residual is as small as asked for.
3. If that takes many sweeps, or rounding keeps it from the end: policy iteration with linear solves
   (`gosprl.planning.exact`), once. What sweeps then cannot improve is rounding.
4. Certify (`gosprl.planning.certificate`). What cannot be certified raises `PrecisionError`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import PrecisionError
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.certificate import COARSE, NEGLIGIBLE, RESOLVED, Certificate, certify, roundoff
from gosprl.planning.exact import TooLarge, policy_iteration
from gosprl.planning.nature import UNIT, Answer, Floats, Ints, respond

METHODS: Mapping[str, int] = {"modified-policy-iteration": 100, "value-iteration": 0}  # sweeps a policy
MAX_SWEEPS = 10_000_000
SLOW = 5000  # sweeps after which policies are evaluated by linear solves instead
MANY = 5000  # states from which on a search for lightest paths pays even if unseen successors make all ways short
WORK_PER_CALL = 200_000_000  # row visits between two chances to hear Ctrl-C, about ten seconds
MAX_WORK = 20 * WORK_PER_CALL  # row visits where linear solves are out of the question; but 100,000 sweeps in any case

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Solution:
    """Where an iteration stopped."""

    cost: Floats  # [R]
    goal: Mask  # [S]
    v: Floats  # [S] before division by 1 + fall_ratio
    alive: Mask  # [S] a goal can be reached surely
    usable: Mask  # [R] rows that can be kept among the alive
    q: Floats  # [R] Q for v, or a lower bound if far from best; goals' rows are their non-goal copies'
    sweeps: int
    certificate: Certificate

    @property
    def fall_ratio(self) -> float:
        """rho: v / (1 + rho) is at most the optimum."""
        return self.certificate.fall_ratio

    def greedy(self, system: EmpiricalModel | TabularMDP, key: int) -> tuple[Ints, Floats]:
        """(rows [S], their least q [S]), ties broken at random by `key` (-1: the first); -1 and inf without a way."""
        from gosprl import _kernels

        rows, leave = np.empty(len(self.v), dtype=np.int64), np.empty(len(self.v))
        tie = _kernels.TIE * min(1.0, float(self.cost.min()))
        _kernels.greedy(system.rows.ptr, self.q, self.alive, tie, key, seen_of(system), self.v, leave, rows)
        return rows, leave


@dataclass(frozen=True, eq=False)
class _Problem:
    """One problem, and how exactly it is to be solved."""

    sets: Any
    cost: Floats  # [R]
    goal: Mask  # [S]
    alive: Mask  # [S]
    usable: Mask  # [R]
    precision: float
    ratio: float
    allow_rounding: bool

    def met_by(self, found: Certificate) -> bool:
        """Whether a certificate with rounding counted in is as good as asked for, or as doubles allow."""
        if found.meets(self.precision, self.ratio):
            return True
        return (
            self.allow_rounding and found.gap <= COARSE and found.meets(self.precision + found.resolution, self.ratio)
        )

    def confirmed(self, v: Floats, q: Floats, sweeps: int, measured: Certificate) -> Solution | None:
        """Return the solution that sweeps found; None if rounding does not allow to trust what they measured."""
        highest = float(v[self.alive].max())
        down, up = roundoff(self.sets, self.cost, highest)
        if down <= NEGLIGIBLE:
            if self.precision < UNIT * highest and not self.allow_rounding:  # less than doubles of this size are apart
                return None
            certificate = Certificate(measured.residual, measured.rise_ratio + up, measured.fall_ratio)
            return self.solution(v, q, sweeps, certificate)
        answer = respond(self.sets, self.cost, v, self.alive, self.usable)
        found = certify(answer, self.cost, self.goal, self.sets.row_ptr)
        if not self.met_by(found):
            if not np.isfinite(self.ratio):
                return None
            found = Certificate(measured.residual, measured.rise_ratio + up, measured.fall_ratio + down)
            return self.solution(v, q, sweeps, found)  # sweeps to a ratio count rounding in themselves
        if down <= RESOLVED and found.fall_ratio <= measured.fall_ratio + NEGLIGIBLE:
            more = float(self.cost.max()) * max(0.0, measured.fall_ratio - found.fall_ratio)
            found = replace(found, residual=found.residual + more, fall_ratio=measured.fall_ratio)
            return self.solution(v, q, sweeps, found)
        return self.solution(v, self.row_values(v, answer), sweeps, found)

    def exact(self, v: Floats, answer: Answer, sweeps: int) -> Solution | None:
        """Return the solution that linear solves found, if it is as good as asked for."""
        certificate = certify(answer, self.cost, self.goal, self.sets.row_ptr)
        if not self.met_by(certificate):
            return None
        return self.solution(v, self.row_values(v, answer), sweeps, certificate)

    def solution(self, v: Floats, q: Floats, sweeps: int, certificate: Certificate) -> Solution:
        return Solution(self.cost, self.goal, v, self.alive, self.usable, q, sweeps, certificate)

    def row_values(self, v: Floats, answer: Answer) -> Floats:
        """[R] q = v + excess, where rows that are not ties stay apart even if doubles do not hold the difference."""
        from gosprl import _kernels

        excess, at = answer.excess, v[answer.state]
        q: Floats = at + excess
        ptr = self.sets.row_ptr
        least = np.repeat(np.minimum.reduceat(q, ptr[:-1]), np.diff(ptr))
        lowest = np.repeat(np.minimum.reduceat(excess, ptr[:-1]), np.diff(ptr))
        tie = _kernels.TIE * min(1.0, float(self.cost.min()))
        apart = np.isfinite(excess) & (excess > lowest + tie) & (q <= least + tie)
        q[apart] = np.nextafter(least[apart] + tie, np.inf)
        return q


def solve(
    sets: Any,
    cost: Floats,
    goal: Mask,
    warm: Solution | Floats | None,
    evaluations: int,
    *,
    precision: float = np.inf,
    ratio: float = np.inf,
    enabled: Mask | None = None,
    stale: Ints | None = None,
    search: bool = True,
    between: Callable[[], None] | None = None,
    goal_costs: Floats | None = None,
    allow_rounding: bool = False,
) -> Solution:
    """Solve to a residual of `precision` and ratios whose sum is at most `ratio`.

    Parameters
    ----------
    sets
        The kernels' view of the confidence sets (`gosprl.planning.workspace.as_sets`).
    cost, goal
        [R] positive costs, [S] which states are goals.
    warm
        Where to begin: an earlier solution, values [S], or None.
    evaluations
        Sweeps of a policy at most, one of METHODS.
    enabled
        [R] the rows that may be taken; by default all.
    stale
        The rows whose sets are not those of the warm solution; None if all may be others.
    search
        False: every state is taken to reach a goal surely.
    between
        Called before each piece of the work, at most some seconds apart; may raise to end it.
    goal_costs
        [S] what it costs to end at each goal, at least 0; by default nothing.
    allow_rounding
        Accept values that are too large for doubles to hold that residual, if their gap is at most COARSE.

    Raises
    ------
    PrecisionError
        If that is not reached.
    """
    from gosprl import _kernels

    alive = np.ones(len(goal), dtype=bool)
    usable = np.ones(len(cost), dtype=bool) if enabled is None else enabled.copy()
    if search:
        _kernels.reach(sets, goal, alive, usable)
    v, q, old, started = _start(sets, cost, goal, usable, warm, evaluations, stale)
    v[goal] = 0.0 if goal_costs is None else goal_costs[goal]
    v[~alive] = _kernels.DEAD
    problem = _Problem(sets, cost, goal, alive, usable, precision, ratio, allow_rounding)
    size = len(cost) + len(sets.succ)
    chunk = max(1, min(SLOW, WORK_PER_CALL // size))
    sweeps = 0

    def sweep_until(limit: int) -> tuple[int, Certificate]:
        """Sweep on until it converges, rounding stops it, or so many sweeps were made in all."""
        nonlocal sweeps, started
        status = _kernels.OUT_OF_SWEEPS
        while status == _kernels.OUT_OF_SWEEPS and sweeps < limit:
            if between is not None:
                between()
            status, more, *measured = _kernels.solve(
                sets, cost, goal, alive, usable, v, started, evaluations, precision, ratio, chunk, q, old
            )
            started = True
            sweeps += more
        return status, Certificate(*measured)

    status, measured = sweep_until(SLOW if evaluations > 0 else MAX_SWEEPS)
    solution = problem.confirmed(v, q, sweeps, measured) if status == _kernels.CONVERGED else None
    if solution is None and evaluations > 0:
        exact, answer = v.copy(), None
        try:
            answer = policy_iteration(sets, cost, goal, alive, usable, exact).answer
        except TooLarge:
            if status == _kernels.OUT_OF_SWEEPS:
                status, measured = sweep_until(min(MAX_SWEEPS, max(100_000, MAX_WORK // size)))
        else:
            if roundoff(sets, cost, float(exact[alive].max()))[0] > NEGLIGIBLE:
                solution = problem.exact(exact, answer, sweeps)
            if solution is None:
                v[:] = exact
                status, measured = sweep_until(sweeps + chunk)
        if solution is None and status == _kernels.CONVERGED:
            solution = problem.confirmed(v, q, sweeps, measured)
        if solution is None and answer is not None:
            solution = problem.exact(exact, answer, sweeps)
            measured, status = certify(answer, cost, goal, sets.row_ptr), _kernels.ROUNDED
    if solution is None:
        raise _not_reached(problem, v, sweeps, status, measured)
    return solution


def _start(
    sets: Any,
    cost: Floats,
    goal: Mask,
    usable: Mask,
    warm: Solution | Floats | None,
    evaluations: int,
    stale: Ints | None,
) -> tuple[Floats, Floats, Floats, bool]:
    """Where to begin: (v [S], lower bounds q [R] on the rows' values for `old` [S], `old`, whether v says anything)."""
    from gosprl import _kernels

    q, old = np.full(len(cost), -np.inf), np.zeros(len(goal))
    if warm is None and evaluations > 0 and (len(goal) > MANY or not sets.total.any()):
        v = np.empty(len(goal))
        _kernels.head_start(sets, cost, goal, usable, v)
        return v, q, old, True
    if warm is None:
        return np.zeros(len(goal)), q, old, False
    if not isinstance(warm, Solution):
        return warm.copy(), q, old, True
    v, old = warm.v.copy(), warm.v.copy()
    v[~warm.alive] = 0.0
    if stale is not None and np.array_equal(warm.usable, usable) and np.array_equal(warm.cost, cost):
        q = warm.q.copy()
        left = np.flatnonzero(warm.goal)  # goals no more: begin with the values of their non-goal copies
        v[left] = np.minimum.reduceat(q, sets.row_ptr[:-1])[left]
        q[stale] = -np.inf
    return v, q, old, True


def _not_reached(problem: _Problem, v: Floats, sweeps: int, status: int, measured: Certificate) -> PrecisionError:
    """Return the error that says what was not reached, why, and what can be."""
    from gosprl import _kernels

    by_residual = bool(np.isfinite(problem.precision))
    asked = f"precision={problem.precision}" if by_residual else f"a relative error of {problem.ratio}"
    why = "rounding allows no better"
    if status == _kernels.OUT_OF_SWEEPS:
        why = f"stopped after {sweeps} sweeps"
    elif by_residual and measured.gap < COARSE:
        why += f"; precision={2 * measured.residual:.1g} can be reached"
    elif by_residual:
        why += f"; doubles cannot tell such values to {COARSE:g} of themselves: add goals that are nearer to all states"
    size = v[problem.alive].max()
    return PrecisionError(f"{asked} was not reached, only {measured.residual:.3g} with values up to {size:.6g}: {why}")


def seen_of(system: EmpiricalModel | TabularMDP) -> Any:
    """Return what was seen, for the breaking of ties; of known dynamics nothing."""
    from gosprl._kernels import Seen

    mean = np.empty(system.num_actions)
    if isinstance(system, TabularMDP):
        none = np.zeros(len(system.rows), dtype=np.int64)
        return Seen(none, none, none, np.zeros(0, dtype=np.int32), none, mean)
    counts = system._counts
    return Seen(counts.visits, counts.start, counts.length, counts.succ, counts.number, mean)
