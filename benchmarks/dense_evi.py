"""The rival: extended value iteration on dense arrays [S, A, S], jitted and plain, as existing solvers do it.

One sort of the states a sweep, then for every pair a walk along all S states in increasing value. The same operators,
starts (v = 0) and stopping rules as `gosprl.plan(method="value-iteration")` and `gosprl.planning.average`. The
pair's step stands in both in full: as a function of its own it would make the rival slower.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def dense_evi(lower, upper, goal, precision):
    """Values, policy and sweeps of the optimistic shortest path with unit costs; lower, upper [S, A, S]."""
    S, A, _ = lower.shape
    v = np.zeros(S)
    out = np.zeros(S)
    policy = np.zeros(S, dtype=np.int64)
    sweeps = 0
    while True:
        order = np.argsort(v)
        residual = 0.0
        for s in range(S):
            if goal[s]:
                continue
            best = np.inf
            for a in range(A):
                rest = 1.0
                q = 1.0
                for x in range(S):
                    rest -= lower[s, a, x]
                    q += lower[s, a, x] * v[x]
                for i in range(S):
                    x = order[i]
                    amount = min(upper[s, a, x] - lower[s, a, x], rest)
                    q += amount * v[x]
                    rest -= amount
                    if rest <= 1e-14:
                        break
                if q < best:
                    best = q
                    policy[s] = a
            out[s] = best
            residual = max(residual, abs(best - v[s]))
        sweeps += 1
        if residual <= precision:
            return v, policy, sweeps
        v, out = out, v


@njit(cache=True)
def dense_gain(lower, upper, reward, damping, precision):
    """(low, high, sweeps): the largest optimistic average of `reward` [S, A], to within `precision`; as UCRL has it."""
    S, A, _ = lower.shape
    v = np.zeros(S)  # of costs 1 - reward
    change = np.zeros(S)
    sweeps = 0
    while True:
        order = np.argsort(v)
        for s in range(S):
            best = np.inf
            for a in range(A):
                rest = 1.0
                q = 1.0 - reward[s, a]
                for x in range(S):
                    rest -= lower[s, a, x]
                    q += lower[s, a, x] * v[x]
                for i in range(S):
                    x = order[i]
                    amount = min(upper[s, a, x] - lower[s, a, x], rest)
                    q += amount * v[x]
                    rest -= amount
                    if rest <= 1e-14:
                        break
                best = min(best, q)
            change[s] = best - v[s]
        sweeps += 1
        low, high = change.min(), change.max()
        if high - low <= precision:
            return 1 - high, 1 - low, sweeps
        v += damping * (change - low)
