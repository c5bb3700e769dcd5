"""Optimistic average rewards: relative value iteration (see `gosprl.planning.average`)."""

import math

import numpy as np

from gosprl._kernels._jit import jit
from gosprl._kernels.constants import CONVERGED, OUT_OF_SWEEPS
from gosprl._kernels.operator import accumulate, frozen_room, new_frozen, rank_states, sweep


@jit
def sweep_relative(frozen, n, v, order, prefix, damping, out):
    """Apply a frozen policy to v, all states at once; make a part `damping` of the step. Returns the step's span."""
    state, cost, each, full, part, ptr, succ, weight, _ = frozen
    low, high = math.inf, -math.inf
    for i in range(n):
        value = cost[i] + each[i] * prefix[full[i]]
        if part[i] > 0:
            value += part[i] * v[order[full[i]]]
        for j in range(ptr[i], ptr[i + 1]):
            value += weight[j] * v[succ[j]]
        out[state[i]] = value - v[state[i]]
        low, high = min(low, out[state[i]]), max(high, out[state[i]])
    for s in range(len(v)):
        v[s] += damping * (out[s] - low)
    return high - low


@jit(nogil=True, allocates=True)
def average(sets, cost, usable, v, evaluations, damping, precision, limit, q):
    """Iterate v until the span of L v - v is at most `precision`: min and max of L v - v then enclose the least gain.

    Relative value iteration with the operator L of `sweep`, without goals. Each application is followed by sweeps of
    the greedy policy, at most `evaluations`, until the span of their steps is a tenth of that of L v - v. Of each step
    only a part `damping` is made, so that no policy is periodic.

    Returns (status, sweeps, min(Lv - v), max(Lv - v)). If it converged, q [R] are the values of the rows for v. After
    `limit` sweeps it stops with OUT_OF_SWEEPS; another call continues from v.
    """
    S = len(v)
    order, rank = np.arange(S), np.arange(S)
    prefix = np.zeros(S + 1)
    out = np.empty(S)
    best = np.full(S, -1, dtype=np.int64)
    nothing = np.zeros(S, dtype=np.bool_)
    room, longest = frozen_room(sets, order, S)
    frozen = new_frozen(S, room, longest)
    sweeps = 0
    while True:
        least = math.inf
        for s in range(S):
            least = min(least, v[s])
        for s in range(S):
            v[s] -= least
        rank_states(v, order, rank)
        accumulate(v, order, S, prefix)
        kept = sweep(sets, cost, usable, nothing, v, order, S, order, rank, prefix, S, best, q, -math.inf, out, frozen)[
            4
        ]
        sweeps += 1
        low, high = math.inf, -math.inf
        for s in range(S):
            low, high = min(low, out[s] - v[s]), max(high, out[s] - v[s])
        if high - low <= precision:
            return CONVERGED, sweeps, low, high
        for s in range(S):
            v[s] += damping * (out[s] - v[s] - low)
        if sweeps >= limit:
            return OUT_OF_SWEEPS, sweeps, low, high
        for _ in range(min(evaluations, limit - sweeps)):
            accumulate(v, order, S, prefix)
            sweeps += 1
            if sweep_relative(frozen, kept, v, order, prefix, damping, out) <= 0.1 * max(high - low, precision):
                break
