"""Shortest paths in rational arithmetic: what doubles stand for exactly, for a handful of states.

A row's distribution is what it says of other states; the probability to stay is what is missing to one. So the
optimum is defined, and computed here without rounding, however close to one that probability is.
"""

from fractions import Fraction


def optimum(rows, intervals, goals, costs=None):
    """[S] the least expected cost of reaching a goal, nature helping, as fractions; None where no goal is reached.

    Policy iteration in the MDP whose actions are nature's greedy answers, from a policy that reaches the goals.
    """
    S, R = rows.num_states, len(rows)
    cost = [Fraction(1)] * R if costs is None else [Fraction(float(c)) for c in costs]
    sets = [row_of(intervals, r) for r in range(R)]
    found, policy = _towards(rows, sets, goals)
    inner = [s for s in found if s not in goals]
    usable = [r for r in range(R) if rows.state[r] in inner and least_mean(sets[r], _order(found, S)) is not None]
    while True:
        v = _value(policy, cost, inner, S)
        for g in goals:
            v[g] = Fraction(0)
        better = False
        for r in usable:
            s = int(rows.state[r])
            p = least_mean(sets[r], v)
            if cost[r] + drift(p, v, s) < cost[policy[s][0]] + drift(policy[s][1], v, s):
                policy[s], better = (r, p), True
        if not better:
            return v


def row_of(intervals, r):
    """(lower, upper {state: Fraction}, each, total) of one row."""
    slots = range(int(intervals.ptr[r]), int(intervals.ptr[r + 1]))
    lower = {int(intervals.succ[j]): Fraction(float(intervals.lower[j])) for j in slots}
    upper = {int(intervals.succ[j]): Fraction(float(intervals.upper[j])) for j in slots}
    return lower, upper, Fraction(float(intervals.each[r])), Fraction(float(intervals.total[r]))


def least_mean(row, v):
    """The distribution {state: mass} with the least mean of v, which avoids states with v = None; None if none does."""
    lower, upper, each, total = row
    if any(v[x] is None and mass > 0 for x, mass in lower.items()):
        return None
    rest, purse = 1 - sum(lower.values()), total
    p = dict(lower)
    for x in sorted((x for x in range(len(v)) if v[x] is not None), key=lambda x: v[x]):
        room = upper[x] - lower[x] if x in lower else min(each, purse)
        amount = max(Fraction(0), min(room, rest))
        rest -= amount
        if x not in lower:
            purse -= amount
        p[x] = p.get(x, Fraction(0)) + amount
    return p if rest < Fraction(1, 10**9) else None  # of rows that sum to one up to rounding, the rest stays


def drift(p, v, s):
    """p v - v(s)."""
    return sum(mass * (v[x] - v[s]) for x, mass in p.items() if mass > 0)


def _order(found, S):
    """[S] the place in which a state was found, None if it was not."""
    return [found.index(s) if s in found else None for s in range(S)]


def _towards(rows, sets, goals):
    """(states that can reach a goal surely, {state: (row, distribution)} that comes closer with positive mass)."""
    S = rows.num_states
    allowed = list(range(S))
    while True:
        found, policy, grown = list(goals), {}, True
        while grown:
            grown = False
            v = [found.index(s) if s in found else S if s in allowed else None for s in range(S)]
            for r in range(len(rows)):
                s = int(rows.state[r])
                p = least_mean(sets[r], v) if s in allowed and s not in found else None
                if p is not None and any(p.get(x, 0) > 0 for x in found):
                    found.append(s)
                    policy[s], grown = (r, p), True
                    break
        if sorted(found) == sorted(allowed):
            return found, policy
        allowed = found


def _value(policy, cost, inner, S):
    """[S] the value of a policy at the inner states, None elsewhere: elimination, without a subtraction of equals."""
    number = {s: i for i, s in enumerate(inner)}
    n = len(inner)
    A = [[Fraction(0)] * (n + 1) for _ in range(n)]
    for s, i in number.items():
        r, p = policy[s]
        A[i][n] = cost[r]
        for x, mass in p.items():
            if x != s:
                A[i][i] += mass
                if x in number:
                    A[i][number[x]] -= mass
    for i in range(n):
        pivot = next(k for k in range(i, n) if A[k][i] != 0)
        A[i], A[pivot] = A[pivot], A[i]
        A[i] = [x / A[i][i] for x in A[i]]
        for k in range(n):
            if k != i and A[k][i] != 0:
                A[k] = [x - A[k][i] * y for x, y in zip(A[k], A[i], strict=True)]
    v = [None] * S
    for s, i in number.items():
        v[s] = A[i][n]
    return v
