"""Hitting times of a known MDP: one shortest-path problem per goal, solved to a certified relative error.

Doubles can certify 1e-9 while times stay below about a million waits; beyond, `PrecisionError` is raised.
"""

import numpy as np
from numpy.typing import NDArray

from gosprl.confidence import Intervals
from gosprl.errors import PrecisionError
from gosprl.mdp import TabularMDP
from gosprl.planner import METHODS, as_sets, solve

RELATIVE_ERROR = 1e-9


def hitting_times(mdp: TabularMDP) -> NDArray[np.float64]:
    """[S, S] D_{ss'}, within a relative error of 1e-9 by the certificate of `gosprl.planner`; inf where unreachable."""
    intervals, cost = _without_waiting(mdp)
    sets = as_sets(mdp.rows, intervals)
    D = np.zeros((mdp.num_states, mdp.num_states))
    evaluations = METHODS["modified-policy-iteration"]
    for s in range(mdp.num_states):
        goal = np.arange(mdp.num_states) == s
        # v / (1 + rho) <= D <= v / (1 - sigma) with rho + sigma below the ratio asked for
        solution = solve(sets, cost, goal, None, evaluations, ratio=RELATIVE_ERROR)
        D[:, s] = np.where(solution.alive, solution.v, np.inf)
    return D


def _without_waiting(mdp: TabularMDP) -> tuple[Intervals, NDArray[np.float64]]:
    """The same shortest paths without self-loops: leaving a state costs the expected wait, 1 / (1 - p(s|s,a)).

    Waiting is what makes iterations slow and residuals blind: with p(s|s,a) = 1 - q a wrong value of order 1/q moves by
    q only. Actions that never leave stay as they are.
    """
    row = np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    loop = mdp.succ == mdp.rows.state[row]
    leaving = np.bincount(row, weights=np.where(loop, 0.0, mdp.prob), minlength=len(mdp.rows))
    keep = ~loop | (leaving[row] == 0)
    scale = np.where(leaving == 0, 1.0, leaving)
    if scale.min() < 1e-300:
        raise PrecisionError(f"an action leaves its state with probability {scale.min():g}: no double holds such times")
    prob = mdp.prob[keep] / scale[row[keep]]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(row[keep], minlength=len(mdp.rows)))])
    zeros = np.zeros(len(mdp.rows))
    return Intervals(ptr, mdp.succ[keep], prob, prob, zeros, zeros), 1 / scale
