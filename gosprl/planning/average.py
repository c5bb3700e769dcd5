"""Optimistic average reward: extended value iteration, as UCRL2B plans (Jaksch et al. 2010; Fruit et al. 2020).

Problem. Find the largest gain g, the long-run average reward per step, where controller and nature both maximise:
nature picks each row's distribution from its confidence set B(s, a).

    (L v)(s) = max_a { r(s, a) + max_{p in B(s, a)} sum_s' p(s') v(s') },     g + v = L v

Method. Relative value iteration with the operator of the shortest-path planner. That operator minimises, so the costs
are max r + 1 - r: least costs are largest rewards. It takes time proportional to the stored transitions. Sweeps of the
greedy policy follow each application. Only a part DAMPING of each step is made: this makes every policy aperiodic and
changes neither the gains nor which policy is best. Each plan starts from the values of the last one.

Stopping rule. If all states have the same gain, then min(Lv - v) <= g <= max(Lv - v) for any v. All gains are the same
if the sets allow a path between any two states. The iteration stops when the two bounds differ by at most `precision`;
in the optimistic dynamics, the gain of the greedy policy of v is then as close to g.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import PrecisionError
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.solution import WORK_PER_CALL, seen_of
from gosprl.planning.workspace import Workspace
from gosprl.sets.intervals import Confidence

DAMPING = 0.9
EVALUATIONS = 1000  # most sweeps of one policy
MAX_SWEEPS = 10_000_000
MAX_WORK = 20 * WORK_PER_CALL  # row visits, a limit for large systems; 100,000 sweeps are always allowed


@dataclass(frozen=True, eq=False)
class AveragePlan:
    """A policy of nearly the largest optimistic gain g; low <= g <= high."""

    rows: NDArray[np.int64]  # [S] the row to take
    low: float
    high: float
    values: NDArray[np.float64]  # [S] advantage of starting in the state, relative to the worst state
    sweeps: int


class AveragePlanner:
    """Plans for one system; each plan starts from the last one, and only sets whose counts changed are recomputed."""

    def __init__(self, system: EmpiricalModel | TabularMDP, family: Confidence) -> None:
        self.work = Workspace(system, family)
        self.plans, self.sweeps = 0, 0
        self._v = np.zeros(system.rows.num_states)

    def plan(self, reward: NDArray[np.float64], precision: float, key: int = -1) -> AveragePlan:
        """Return a plan for rewards [R] and the current counts; ties as in `gosprl.plan`, at random by `key`.

        Raises
        ------
        PrecisionError
            The gain was not bounded to within `precision`.
        """
        from gosprl import _kernels

        work, system = self.work, self.work.system
        work.refresh(work.stale())
        R, S = len(reward), system.rows.num_states
        usable = np.ones(R, dtype=bool) if isinstance(system, TabularMDP) else system.enabled
        most = float(reward[usable].max())
        cost, q, v = np.where(usable, most + 1 - reward, 1.0), np.zeros(R), self._v.copy()
        size = R + len(work.sets.succ)
        chunk, most_sweeps = max(1, WORK_PER_CALL // size), min(MAX_SWEEPS, max(100_000, MAX_WORK // size))
        sweeps, status, low, high = 0, _kernels.OUT_OF_SWEEPS, -np.inf, np.inf
        while status == _kernels.OUT_OF_SWEEPS and sweeps < most_sweeps:  # in pieces, so that Ctrl-C is handled
            status, more, low, high = _kernels.average(
                work.sets, cost, usable, v, EVALUATIONS, DAMPING, precision, min(chunk, most_sweeps - sweeps), q
            )
            sweeps += more
        if status != _kernels.CONVERGED:
            raise PrecisionError(
                f"precision={precision} of the gain was not reached in {sweeps} sweeps, only {high - low:.3g} with "
                f"values up to {v.max():.6g}: rounding allows no better, or some states cannot be reached from others "
                "under any dynamics in the sets, and have another gain"
            )
        self._v = v
        self.plans += 1
        self.sweeps += sweeps
        rows, least = np.empty(S, dtype=np.int64), np.empty(S)
        _kernels.greedy(system.rows.ptr, q, np.ones(S, dtype=bool), _kernels.TIE, key, seen_of(system), v, least, rows)
        return AveragePlan(rows, most + 1 - high, most + 1 - low, v.max() - v, sweeps)
