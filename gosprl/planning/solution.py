"""Solve one optimistic shortest-path problem (see `gosprl.planning.ssp`).

1. Search for the states that can reach a goal with probability 1.
2. Iterate in compiled code until the residual is small enough.
3. If that takes many sweeps, or rounding prevents convergence: run policy iteration with linear solves
   (`gosprl.planning.exact`) once. An error that later sweeps cannot reduce is rounding.
4. Certify (`gosprl.planning.certificate`). A solution that cannot be certified raises `PrecisionError`.
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

METHODS: Mapping[str, int] = {"modified-policy-iteration": 100, "value-iteration": 0}  # most sweeps per policy
MAX_SWEEPS = 10_000_000
SLOW = 5000  # after this many sweeps, policies are evaluated by linear solves instead
MANY = 5000  # with more states, first values from lightest paths pay even if unseen successors make all paths short
WORK_PER_CALL = 200_000_000  # row visits per call of a kernel, about ten seconds; Ctrl-C is handled between calls
MAX_WORK = 20 * WORK_PER_CALL  # row visits if linear solves are too large; 100,000 sweeps are always allowed

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Solution:
    """Values with a certificate."""

    cost: Floats  # [R]
    goal: Mask  # [S]
    v: Floats  # [S] before division by 1 + fall_ratio
    alive: Mask  # [S] states that can reach a goal with probability 1
    usable: Mask  # [R] rows whose sets contain a distribution on alive states
    q: Floats  # [R] Q for v, or a lower bound if far from best; at a goal, of the rows of its non-goal copy
    sweeps: int
    certificate: Certificate

    @property
    def fall_ratio(self) -> float:
        """The ratio rho: v / (1 + rho) is at most the optimum."""
        return self.certificate.fall_ratio

    def greedy(self, system: EmpiricalModel | TabularMDP, key: int) -> tuple[Ints, Floats]:
        """Return (greedy rows [S], the least q of each state [S]); -1 and inf where no goal can be reached.

        Ties are broken by the counts, then at random by `key` (-1: the first row).
        """
        from gosprl import _kernels

        rows, least = np.empty(len(self.v), dtype=np.int64), np.empty(len(self.v))
        tie = _kernels.TIE * min(1.0, float(self.cost.min()))
        _kernels.greedy(system.rows.ptr, self.q, self.alive, tie, key, seen_of(system), self.v, least, rows)
        return rows, least


@dataclass(frozen=True, eq=False)
class _Problem:
    """One problem, and the precision to solve it to."""

    sets: Any
    cost: Floats  # [R]
    goal: Mask  # [S]
    alive: Mask  # [S]
    usable: Mask  # [R]
    precision: float
    ratio: float
    allow_rounding: bool

    def met_by(self, proof: Certificate) -> bool:
        """Whether a certificate that includes rounding is as good as required, or as doubles allow."""
        if proof.meets(self.precision, self.ratio):
            return True
        return (
            self.allow_rounding and proof.gap <= COARSE and proof.meets(self.precision + proof.resolution, self.ratio)
        )

    def confirmed(self, v: Floats, q: Floats, sweeps: int, measured: Certificate) -> Solution | None:
        """Return the solution of sweeps; None if rounding errors are too large to trust the ratios they `measured`."""
        highest = float(v[self.alive].max())
        down, up = roundoff(self.sets, self.cost, highest)
        if down <= NEGLIGIBLE:
            if self.precision < UNIT * highest and not self.allow_rounding:  # below the spacing of doubles of this size
                return None
            certificate = Certificate(measured.residual, measured.rise_ratio + up, measured.fall_ratio)
            return self.solution(v, q, sweeps, certificate)
        answer = respond(self.sets, self.cost, v, self.alive, self.usable)
        proof = certify(answer, self.cost, self.goal, self.sets.row_ptr)
        if not self.met_by(proof):
            if not np.isfinite(self.ratio):
                return None
            proof = Certificate(measured.residual, measured.rise_ratio + up, measured.fall_ratio + down)
            return self.solution(v, q, sweeps, proof)  # with a finite ratio, the kernel has included rounding
        if down <= RESOLVED and proof.fall_ratio <= measured.fall_ratio + NEGLIGIBLE:
            more = float(self.cost.max()) * max(0.0, measured.fall_ratio - proof.fall_ratio)
            proof = replace(proof, residual=proof.residual + more, fall_ratio=measured.fall_ratio)
            return self.solution(v, q, sweeps, proof)
        return self.solution(v, self.row_values(v, answer), sweeps, proof)

    def exact(self, v: Floats, answer: Answer, sweeps: int) -> Solution | None:
        """Return the solution of linear solves; None if it is not as good as required."""
        certificate = certify(answer, self.cost, self.goal, self.sets.row_ptr)
        if not self.met_by(certificate):
            return None
        return self.solution(v, self.row_values(v, answer), sweeps, certificate)

    def solution(self, v: Floats, q: Floats, sweeps: int, certificate: Certificate) -> Solution:
        return Solution(self.cost, self.goal, v, self.alive, self.usable, q, sweeps, certificate)

    def row_values(self, v: Floats, answer: Answer) -> Floats:
        """Return q = v + excess, [R]. Rows that are no ties get different q even if doubles cannot hold the excess."""
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
    """Solve until the residual is at most `precision` and the sum of the certificate's ratios at most `ratio`.

    Parameters
    ----------
    sets
        The kernels' view of the confidence sets (`gosprl.planning.workspace.as_sets`).
    cost, goal
        [R] positive costs, [S] which states are goals.
    warm
        Where to start: an earlier solution, values [S], or None.
    evaluations
        Most sweeps per policy: one of the values of METHODS.
    enabled
        [R] the rows that may be taken; None: all.
    stale
        The rows whose sets changed since the warm solution; None: any may have changed.
    search
        False: assume that every state can reach a goal with probability 1.
    between
        Called before each piece of the work, every few seconds; may raise to stop.
    goal_costs
        [S] cost of ending at each goal, at least 0; None: 0.
    allow_rounding
        Accept values too large for doubles to hold that residual, if their gap is at most COARSE.

    Raises
    ------
    PrecisionError
        The precision was not reached.
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
        """Sweep until convergence, until rounding prevents progress, or until `limit` sweeps in total."""
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
    """Return where to start: (v [S], lower bounds q [R] on the rows' values for `old` [S], `old`, whether v is set)."""
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
        former = np.flatnonzero(warm.goal)  # those that are no goals now start from the values of their non-goal copies
        v[former] = np.minimum.reduceat(q, sets.row_ptr[:-1])[former]
        q[stale] = -np.inf
    return v, q, old, True


def _not_reached(problem: _Problem, v: Floats, sweeps: int, status: int, measured: Certificate) -> PrecisionError:
    """Return the error: which precision was not reached, why, and which one can be."""
    from gosprl import _kernels

    by_residual = bool(np.isfinite(problem.precision))
    asked = f"precision={problem.precision}" if by_residual else f"a relative error of {problem.ratio}"
    why = "rounding allows no better"
    if status == _kernels.OUT_OF_SWEEPS:
        why = f"stopped after {sweeps} sweeps"
    elif by_residual and measured.gap < COARSE:
        why += f"; precision={2 * measured.residual:.1g} can be reached"
    elif by_residual:
        why += f"; doubles cannot hold such values to a relative error of {COARSE:g}: add goals that are nearer"
    size = v[problem.alive].max()
    return PrecisionError(f"{asked} was not reached, only {measured.residual:.3g} with values up to {size:.6g}: {why}")


def seen_of(system: EmpiricalModel | TabularMDP) -> Any:
    """Return the counts that break ties; for known dynamics these are empty."""
    from gosprl._kernels import Seen

    mean = np.empty(system.num_actions)
    if isinstance(system, TabularMDP):
        none = np.zeros(len(system.rows), dtype=np.int64)
        return Seen(none, none, none, np.zeros(0, dtype=np.int32), none, mean)
    counts = system._counts
    return Seen(counts.visits, counts.start, counts.length, counts.succ, counts.number, mean)
