"""Hitting times of a known MDP: one shortest-path problem per goal, solved to a certified relative error.

The iteration for a goal starts from the lightest paths of the graph whose edges have the weight c(s, a) / p(s'|s, a),
the cost of repeating the action until it leads to s'. This gives nearly the right order of the states, and in-place
sweeps converge fast in that order. Goals share only data that is read, so threads solve them in parallel, and the
result does not depend on the number of threads.

Doubles can certify a relative error of 1e-9 for times below about a million waits; for longer ones `PrecisionError` is
raised.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.errors import PrecisionError
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.solution import METHODS, solve
from gosprl.planning.workspace import as_sets
from gosprl.progress import GoalProgress
from gosprl.sets.intervals import Confidence, Intervals

RELATIVE_ERROR = 1e-9
OPTIMISTIC_ERROR = 1e-6  # of optimistic times, where the sets add a much larger error

Column = NDArray[np.float64]  # [S] D_{ss'} of one goal s'


def hitting_times(
    mdp: TabularMDP, workers: int | None = None, progress: Any = None, cost: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return D_{ss'} [S, S], certified to a relative error of 1e-9 (see `gosprl.planning.ssp`); inf if unreachable.

    With `cost` [R], positive, the least expected costs instead of steps.
    """
    S = mdp.num_states
    D = np.empty((S, S))  # [s', s]

    def store(i: int, column: Column) -> None:
        D[i] = column

    _for_each_goal(mdp, np.arange(S), store, workers, progress, cost)
    return D.T


def ssp_diameters(
    mdp: TabularMDP, goals: NDArray[np.int64], workers: int | None = None, progress: Any = None
) -> NDArray[np.float64]:
    """Return D_{s'} of `goals` [n], as [n], in O(S + transitions) memory."""
    diameters = np.empty(len(goals))

    def store(i: int, column: Column) -> None:
        diameters[i] = column.max()

    _for_each_goal(mdp, goals, store, workers, progress)
    return diameters


def _for_each_goal(
    mdp: TabularMDP,
    goals: NDArray[np.int64],
    store: Callable[[int, Column], None],
    workers: int | None,
    progress: Any,
    cost: NDArray[np.float64] | None = None,
) -> None:
    """Call store(i, hitting times to goals[i]) for every i, from several threads in parallel."""
    workers = _cores() if workers is None else _checks.whole("workers", workers, 1)
    times = _to_a_goal(mdp, cost)
    stopped = threading.Event()

    def between() -> None:
        if stopped.is_set():
            raise CancelledError

    def work(i: int) -> None:
        between()
        store(i, times(int(goals[i]), between))

    pool = ThreadPoolExecutor(workers)
    with GoalProgress(progress, len(goals)) as report:
        try:
            for done in [pool.submit(work, i) for i in range(len(goals))]:
                done.result()
                report.one_more()
        finally:  # after an error or Ctrl-C, stop the running threads and do not wait for them
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _cores() -> int:
    """Return the number of threads that can run in parallel."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _to_a_goal(mdp: TabularMDP, costs: NDArray[np.float64] | None) -> Callable[[int, Callable[[], None]], Column]:
    """Return the function that solves for one goal; the data that all goals share is computed here."""
    from gosprl import _kernels

    intervals, cost = _without_waiting(mdp)
    if costs is not None:
        cost *= costs
    # slack that is only rounding is set to 0: the planner sorts rows with slack, and threads must not write
    sets = as_sets(mdp.rows, intervals)._replace(slack=np.zeros(len(cost)))
    back = _kernels.reversed_edges(sets, cost, np.ones(len(cost), dtype=bool))
    search = not mdp.is_communicating()
    evaluations = METHODS["modified-policy-iteration"]

    def times(s: int, between: Callable[[], None]) -> Column:
        goal = np.zeros(mdp.num_states, dtype=bool)
        goal[s] = True
        v = np.where(goal, 0.0, np.inf)
        _kernels.lightest_paths(back[0], back[1], back[2], v)
        v = np.minimum(v, _kernels.FAR)
        # v / (1 + rho) <= D <= v / (1 - sigma) with rho + sigma <= ratio
        solution = solve(sets, cost, goal, v, evaluations, ratio=RELATIVE_ERROR, search=search, between=between)
        return np.where(solution.alive, solution.v, np.inf)

    return times


def _without_waiting(mdp: TabularMDP) -> tuple[Intervals, NDArray[np.float64]]:
    """Return an equivalent problem without self-loops: leaving a state costs the expected wait, 1 / (1 - p(s|s,a)).

    Self-loops make iterations slow and hide errors from the residual: with p(s|s,a) = 1 - q, an error of order 1/q
    changes by q only. Actions that never leave their state are not changed.
    """
    row = np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    loop = mdp.succ == mdp.rows.state[row]
    leaving = np.bincount(row, weights=np.where(loop, 0.0, mdp.prob), minlength=len(mdp.rows))
    keep = ~loop | (leaving[row] == 0)
    scale = np.where(leaving == 0, 1.0, leaving)
    if scale.min() < 1e-300:
        raise PrecisionError(f"an action leaves its state with probability {scale.min():g}: times overflow doubles")
    prob = mdp.prob[keep] / scale[row[keep]]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(row[keep], minlength=len(mdp.rows)))])
    zeros = np.zeros(len(mdp.rows))
    return Intervals(ptr, mdp.succ[keep], prob, prob, zeros, zeros), 1 / scale


def optimistic_times(
    model: EmpiricalModel, family: Confidence, warm: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return optimistic times from s to s' [n, n]: those of the best dynamics in the sets, at most the true ones.

    The states are those of the model's loop (`gosprl.model.loop`): live states, then final ones. A state that is not
    discovered is taken to be as good as the goal. All goals share the sets. The iteration for each goal starts from its
    column of `warm` [n, n]: the times of an earlier call, or of the observed frequencies.
    """
    from gosprl.model.loop import Loop

    loop = Loop(model)
    n = loop.num_states
    rows, intervals = loop.sets(family)
    sets = as_sets(rows, intervals)
    cost = np.append(loop.cost, np.ones(len(rows) - len(loop.cost)))
    times = np.empty((n, n))
    for g in range(n):
        goal = np.arange(rows.num_states) >= n
        goal[g] = True
        start = None
        if warm is not None and len(warm) == n:  # not if states were discovered since
            start = np.zeros(rows.num_states)
            start[:n] = np.where(np.isfinite(warm[:, g]), warm[:, g], 0.0)
        solution = solve(*(sets, cost, goal, start, METHODS["modified-policy-iteration"]), ratio=OPTIMISTIC_ERROR)
        times[:, g] = np.where(solution.alive, solution.v / (1 + solution.fall_ratio), np.inf)[:n]
    return times
