"""Optimistic average rewards: relative value iteration."""

import math

import numpy as np

from gosprl._kernels._jit import jit
from gosprl._kernels.constants import CONVERGED, OUT_OF_SWEEPS
from gosprl._kernels.operator import accumulate, frozen_room, new_frozen, rank_states, sweep


@jit
def sweep_relative(frozen, n, v, order, prefix, damping, out):
    """Apply a frozen policy to v, all states at once, and move v that part of the way; the span of the change."""
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


@jit(nogil=True)
def average(sets, cost, usable, v, evaluations, damping, precision, limit, q):
    """Iterate v until the span of L v - v is at most `precision`: then both its ends are that close to the least gain.

    Relative value iteration, where L has no goals: each application is followed by up to `evaluations` sweeps of the
    policy it found, while these narrow the span. Only a part `damping` of each step is made, so that no policy is
    periodic. Returns (status, sweeps, lower end, upper end); q [R] are the rows' values for v, if it converged. Begun
    again after `limit` sweeps, it goes on.
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
