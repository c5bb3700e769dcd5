"""Optimistic average reward: extended value iteration, as UCRL2B plans (Jaksch et al. 2010; Fruit et al. 2020).

Problem. The largest gain g, the reward of a step in the long run, where controller and nature both maximise: nature
picks each row's distribution from its confidence set B(s, a).

    (L v)(s) = max_a { r(s, a) + max_{p in B(s, a)} sum_s' p(s') v(s') },     g + v = L v

Method. Relative value iteration with the planner's own operator, which minimises: with costs max r + 1 - r, least costs
are largest rewards, and L is applied in time proportional to the stored transitions. Each application is followed by
sweeps of the policy that it found. Only a part of each step is made (DAMPING), which makes every policy aperiodic and
changes neither gains nor which policy is best.

Stopping rule. For any v, min(Lv - v) <= g <= max(Lv - v) if all states have the same gain, as they do in sets that
allow a way from everywhere to everywhere. It stops when these ends are within `precision`; the greedy policy of v then
has, in the optimistic dynamics, a gain that close to g. Begun at the last values.
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
EVALUATIONS = 1000  # sweeps of a policy at most
MAX_SWEEPS = 10_000_000
MAX_WORK = 20 * WORK_PER_CALL  # row visits, for large systems; but 100,000 sweeps in any case


@dataclass(frozen=True, eq=False)
class AveragePlan:
    """A policy of nearly the largest optimistic gain; low <= gain <= high."""

    rows: NDArray[np.int64]  # [S] the row to take
    low: float
    high: float
    values: NDArray[np.float64]  # [S] relative: by how much beginning there is better than in the worst state
    sweeps: int


class AveragePlanner:
    """Plans for one system, each warm from the last, its sets updated row by row."""

    def __init__(self, system: EmpiricalModel | TabularMDP, family: Confidence) -> None:
        self.work = Workspace(system, family)
        self.plans, self.sweeps = 0, 0
        self._v = np.zeros(system.num_states)

    def plan(self, reward: NDArray[np.float64], precision: float, key: int = -1) -> AveragePlan:
        """For rewards [R] and the counts as they are now; ties as in `gosprl.plan`, at random by `key`."""
        from gosprl import _kernels

        work, system = self.work, self.work.system
        work.refresh(work.stale())
        R, S = len(reward), system.num_states
        usable = np.ones(R, dtype=bool) if isinstance(system, TabularMDP) else system.enabled
        most = float(reward[usable].max())
        cost, q, v = np.where(usable, most + 1 - reward, 1.0), np.zeros(R), self._v.copy()
        size = R + len(work.sets.succ)
        chunk, most_sweeps = max(1, WORK_PER_CALL // size), min(MAX_SWEEPS, max(100_000, MAX_WORK // size))
        sweeps, status, low, high = 0, _kernels.OUT_OF_SWEEPS, -np.inf, np.inf
        while status == _kernels.OUT_OF_SWEEPS and sweeps < most_sweeps:  # in pieces, between which Ctrl-C is heard
            status, more, low, high = _kernels.average(
                work.sets, cost, usable, v, EVALUATIONS, DAMPING, precision, min(chunk, most_sweeps - sweeps), q
            )
            sweeps += more
        if status != _kernels.CONVERGED:
            raise PrecisionError(
                f"precision={precision} of the gain was not reached in {sweeps} sweeps, only {high - low:.3g} with "
                f"values up to {v.max():.6g}: rounding allows no better, or some states cannot be reached from others, "
                "whatever the dynamics in the sets, and have another gain"
            )
        self._v = v
        self.plans += 1
        self.sweeps += sweeps
        rows, least = np.empty(S, dtype=np.int64), np.empty(S)
        _kernels.greedy(system.rows.ptr, q, np.ones(S, dtype=bool), _kernels.TIE, key, seen_of(system), v, least, rows)
        return AveragePlan(rows, most + 1 - high, most + 1 - low, v.max() - v, sweeps)
