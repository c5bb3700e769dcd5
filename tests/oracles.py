"""Answers computed in ways that share nothing with the package: linear programs, vertices, policies, graph search.

Everything here is dense and meant for a handful of states. A row's set of plausible distributions is

    {p : lower <= p <= upper where seen, 0 <= p <= each elsewhere, sum of p where unseen <= total, sum of p = 1}.

Its minimum of an expectation is attained at a vertex. So an optimistic shortest path is the ordinary shortest path in
the MDP whose actions are the vertices of all rows (`Points`), which policy iteration with linear solves settles.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import linprog

import gosprl

SUPPORT = 1e-13  # vertices are found by subtraction: below this a probability is rounding


class Given(gosprl.Confidence):
    """A confidence object that says what it is told, and remembers for which rows it was asked."""

    def __init__(self, intervals):
        self.all = intervals
        self.asked = []

    def intervals(self, model, rows=None):
        self.asked.append(None if rows is None else sorted(int(r) for r in rows))
        if rows is None:
            return self.all
        pieces = [np.arange(self.all.ptr[r], self.all.ptr[r + 1]) for r in rows]
        slot = np.concatenate(pieces).astype(int)
        ptr = np.cumsum([0] + [len(piece) for piece in pieces])
        parts = (part[slot] for part in (self.all.succ, self.all.lower, self.all.upper))
        return gosprl.Intervals(ptr, *parts, self.all.each[rows], self.all.total[rows])


@dataclass
class Problem:
    """An optimistic shortest-path problem with everything spelled out; rows are the existing pairs, in order."""

    exists: np.ndarray  # [S, A] bool
    seen: np.ndarray  # [R, S] bool
    lower: np.ndarray  # [R, S]
    upper: np.ndarray  # [R, S] the ends of seen successors, `each` elsewhere
    each: np.ndarray  # [R]
    total: np.ndarray  # [R]
    costs: np.ndarray  # [S, A]
    goals: list[int]

    @property
    def row_state(self):
        return np.nonzero(self.exists)[0]

    @property
    def row_cost(self):
        return self.costs[self.exists]

    @classmethod
    def from_intervals(cls, rows, intervals, goals, costs=None):
        """From the package's rows and sets."""
        S, A, R = rows.num_states, rows.num_actions, len(rows)
        exists, seen = np.zeros((S, A), dtype=bool), np.zeros((R, S), dtype=bool)
        exists[rows.state, rows.action] = True
        lower, upper = np.zeros((R, S)), np.repeat(intervals.each[:, None], S, axis=1)
        row = np.repeat(np.arange(R), np.diff(intervals.ptr))
        seen[row, intervals.succ] = True
        lower[row, intervals.succ], upper[row, intervals.succ] = intervals.lower, intervals.upper
        costs = np.ones((S, A)) if costs is None else costs
        return cls(exists, seen, lower, upper, intervals.each, intervals.total, costs, list(goals))

    def dense(self, per_row):
        """An array [R, S] as [S, A, S], zeros where the action does not exist."""
        full = np.zeros((*self.exists.shape, len(self.exists)))
        full[self.exists] = per_row
        return full

    def model(self):
        """An empirical model with these rows; what it counted does not matter."""
        return gosprl.EmpiricalModel(len(self.exists), self.exists)

    def intervals(self):
        """The sets as the package wants them; the successors of a row stand in random order."""
        order = [np.random.default_rng(0).permutation(np.flatnonzero(row)) for row in self.seen]
        ptr = np.cumsum([0] + [len(piece) for piece in order])
        row, succ = np.repeat(np.arange(len(order)), np.diff(ptr)), np.concatenate(order).astype(np.int32)
        return gosprl.Intervals(ptr, succ, self.lower[row, succ], self.upper[row, succ], self.each, self.total)

    def points(self):
        """The MDP whose actions are the vertices of the rows."""
        corners = [vertices(*parts) for parts in zip(self.seen, self.lower, self.upper, self.total, strict=True)]
        row = np.repeat(np.arange(len(corners)), [len(c) for c in corners])
        return Points(self.row_state[row], np.vstack(corners), self.row_cost[row], row)

    def optimum(self):
        """The optimum if all states can reach a goal, for problems with too many vertices: nature answers by programs.

        Policy iteration from the answer to "any goal is better than any other state", which reaches the goals.
        """
        v = np.where(np.isin(np.arange(len(self.exists)), self.goals), 0.0, 1.0)
        while True:
            rows = zip(self.seen, self.lower, self.upper, self.total, strict=True)
            answers = np.array([least_expectation(v, *row)[1] for row in rows])
            points = Points(self.row_state, answers, self.row_cost, np.arange(len(answers)))
            better = points.optimum(self.goals)
            if better == pytest.approx(v, rel=1e-12):
                return better
            v = better

    def plan(self, **options):
        confidence = Given(self.intervals())
        return gosprl.plan(self.model(), self.goals, costs=self.costs, confidence=confidence, **options)


def random_set(rng, S, caps=True, closed=0.2, shares=(0, 0.3, 0.6, 1)):
    """(seen, lower, upper, each, total) of a random non-empty set: around a random distribution, often tightly.

    About one of `shares` of the states is seen; `closed` is how often nothing but what was seen is possible.
    """
    seen = rng.random(S) < rng.choice(shares)
    p = rng.dirichlet(np.full(S, rng.choice([0.3, 1])))
    if seen.any() and rng.random() < max(0.5, closed):  # as after counting: nothing on what was not seen
        p = np.where(seen, p, 0) / p[seen].sum()
    width = rng.choice([0, 0.05, 0.3, 1], size=S) * rng.random(S)
    lower = np.where(seen, np.maximum(p - width * rng.random(S), 0), 0)
    upper = np.minimum(p + width, 1)
    unseen = p[~seen]
    each = min(1, unseen.max(initial=0) + rng.choice([0, 0.05, 1]) * rng.random())
    total = min(1, unseen.sum() + rng.choice([0, 0.1, 1]) * rng.random()) if caps else 1.0
    if seen.any() and unseen.sum() == 0 and rng.random() < closed:
        each, total = (0.0, total) if rng.random() < 0.5 or not caps else (each, 0.0)
    if not seen.any():  # `total` below one would leave nothing
        total = 1.0
        each = max(each, 1 / S)
    return seen, lower, np.where(seen, upper, each), each, total


def random_problem(rng, S=None, A=None, goals=None, **options):
    """A random problem: sets of all kinds, action sets that depend on the state, costs, one or more goals.

    `options` are those of `random_set`.
    """
    S = int(rng.integers(2, 6)) if S is None else S
    A = int(rng.integers(1, 4)) if A is None else A
    exists = rng.random((S, A)) < 0.7
    exists[np.arange(S), rng.integers(A, size=S)] = True
    sets = [random_set(rng, S, **options) for _ in range(exists.sum())]
    seen, lower, upper, each, total = (np.array(part) for part in zip(*sets, strict=True))
    costs = rng.choice([np.ones((S, A)), rng.uniform(0.2, 5, (S, A))])
    if goals is None:
        goals = sorted(rng.choice(S, size=rng.integers(1, max(2, S - 1)), replace=False).tolist())
    return Problem(exists, seen, lower, upper, each, total, costs, goals)


def random_dynamics(rng, S, A, successors=3):
    """Random sparse P [S, A, S]; some actions do not exist."""
    P = np.zeros((S, A, S))
    for s, a in itertools.product(range(S), range(A)):
        if a == 0 or rng.random() < 0.7:
            support = rng.choice(S, size=rng.integers(1, min(S, successors) + 1), replace=False)
            P[s, a, support] = rng.dirichlet(np.ones(len(support)))
    return P


def least_expectation(v, seen, lower, upper, total):
    """Least expectation of v over a row's set, and who attains it, by a linear program.

    States with v = inf are forbidden; the least is inf if that leaves nothing.
    """
    allowed = np.isfinite(v)
    if np.any(lower[~allowed] > 0):
        return np.inf, None
    result = linprog(
        np.where(allowed, v, 0),
        A_ub=(~seen)[None].astype(float),
        b_ub=[total],
        A_eq=np.ones((1, len(v))),
        b_eq=[1],
        bounds=np.column_stack([lower, np.where(allowed, upper, 0)]),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status in (0, 2), result.message
    return (result.fun, result.x) if result.status == 0 else (np.inf, None)


def vertices(seen, lower, upper, total):
    """The vertices [K, S] of a row's set.

    At a vertex all coordinates but one stand at an end, that one being settled by the sum; or all but two, of which a
    seen and an unseen one are settled by the sum and by the cap.
    """
    S = len(seen)
    corners = []
    for free in range(S):
        others = np.delete(np.arange(S), free)
        for choice in itertools.product(*((lower[s], upper[s]) for s in others)):
            p = np.empty(S)
            p[others] = choice
            p[free] = 1 - sum(choice)
            corners.append(p)
    for x, y in itertools.product(np.flatnonzero(seen), np.flatnonzero(~seen)):
        others = np.delete(np.arange(S), [x, y])
        for choice in itertools.product(*((lower[s], upper[s]) for s in others)):
            p = np.zeros(S)
            p[others] = choice
            p[x] = 1 - total - p[seen].sum()
            p[y] = total - p[~seen].sum()
            corners.append(p)
    p = np.array(corners)
    inside = np.all((p >= lower - SUPPORT) & (p <= upper + SUPPORT), axis=1)
    inside &= p[:, ~seen].sum(axis=1) <= total + SUPPORT
    p = np.where(p < SUPPORT, 0, p)[inside]
    return np.unique(p, axis=0)


@dataclass
class Points:
    """An MDP as a plain list of K state-action pairs with known dynamics."""

    state: np.ndarray  # [K]
    P: np.ndarray  # [K, S]
    cost: np.ndarray  # [K]
    row: np.ndarray  # [K] which row of the problem it belongs to

    @classmethod
    def from_dense(cls, P, costs=None):
        """From P [S, A, S], where rows of zeros do not exist."""
        s, a = np.nonzero(P.sum(axis=2))
        cost = np.ones(len(s)) if costs is None else np.broadcast_to(costs, P.shape[:2])[s, a]
        return cls(s, P[s, a], cost, np.arange(len(s)))

    def of_rows(self, rows):
        """The points of some rows only."""
        taken = np.isin(self.row, rows)
        return Points(self.state[taken], self.P[taken], self.cost[taken], self.row[taken])

    def q(self, v):
        """[K] cost + P v, inf where a state with v = inf can be met."""
        finite = np.isfinite(v)
        return np.where(self.P[:, ~finite].any(axis=1), np.inf, self.cost + self.P[:, finite] @ v[finite])

    def apply(self, v, goals):
        """One application of the operator: the least q of each state, 0 at goals."""
        out = np.full(len(v), np.inf)
        np.minimum.at(out, self.state, self.q(v))
        out[goals] = 0
        return out

    def value_iteration(self, goals, steps):
        """`steps` applications of the operator to 0."""
        v = np.zeros(self.P.shape[1])
        for _ in range(steps):
            v = self.apply(v, goals)
        return v

    def surely_reaching(self, goals):
        """[S] whether some policy reaches a goal with probability one, and a policy [S] of points that does.

        Textbook search: drop the states that cannot reach a goal, then the points that can meet a dropped state, and so
        on. The policy steps closer to the goals with positive probability wherever it is.
        """
        S = self.P.shape[1]
        inside = set(range(S))
        while True:
            policy = np.full(S, -1)
            reached = set(goals)
            grown = True
            while grown:
                grown = False
                for k, s in enumerate(self.state):
                    support = set(np.flatnonzero(self.P[k]).tolist())
                    if s not in reached and s in inside and support <= inside and support & reached:
                        reached.add(int(s))
                        policy[s] = k
                        grown = True
            if reached == inside:
                return np.isin(np.arange(S), sorted(inside)), policy
            inside = reached

    def evaluate(self, policy, goals, alive):
        """[S] cost of a policy [S] of points that reaches a goal from all alive states."""
        move = alive.copy()
        move[goals] = False
        v = np.where(alive, 0.0, np.inf)
        P = self.P[policy[move]][:, move]
        v[move] = np.linalg.solve(np.eye(len(P)) - P, self.cost[policy[move]])
        return v

    def optimum(self, goals):
        """[S] least expected cost of reaching a goal, by policy iteration from a proper policy; inf where none is."""
        alive, policy = self.surely_reaching(goals)
        while True:
            v = self.evaluate(policy, goals, alive)
            q = self.q(v)
            better = False
            for s in np.flatnonzero(alive & (policy >= 0)):
                mine = np.flatnonzero(self.state == s)
                k = mine[np.argmin(q[mine])]
                if q[k] < q[policy[s]] - 1e-12 * max(1, v[s]):
                    policy[s] = k
                    better = True
            if not better:
                return v

    def best_of_all_policies(self, goals):
        """[S] the same by trying every policy; only for very few of them."""
        S = self.P.shape[1]
        choices = [np.flatnonzero(self.state == s) if s not in goals else [-1] for s in range(S)]
        best = np.full(S, np.inf)
        for policy in itertools.product(*choices):
            taken = np.isin(np.arange(len(self.state)), policy)
            alone = Points(self.state[taken], self.P[taken], self.cost[taken], self.row[taken])
            alive, own = alone.surely_reaching(goals)
            best = np.minimum(best, alone.evaluate(own, goals, alive))
        best[goals] = 0
        return best


def first_step(points, v, goals):
    """[S] least q of every state, goals included: what leaving costs."""
    out = np.full(len(v), np.inf)
    np.minimum.at(out, points.state, points.q(np.where(np.isin(np.arange(len(v)), goals), 0, v)))
    return out


def least_values(intervals, cost, v):
    """[R] cost + least expectation of v over each row's set, for sets as the package has them.

    Dense and plain: state after state, in increasing order of value, takes what it can of what is left.
    """
    R, S = len(intervals.each), len(v)
    row = np.repeat(np.arange(R), np.diff(intervals.ptr))
    seen, lower, upper = np.zeros((R, S), dtype=bool), np.zeros((R, S)), np.repeat(intervals.each[:, None], S, axis=1)
    seen[row, intervals.succ] = True
    lower[row, intervals.succ], upper[row, intervals.succ] = intervals.lower, intervals.upper
    rest, purse = 1 - lower.sum(axis=1), intervals.total.copy()
    q = cost + lower @ v
    for s in np.argsort(v):
        room = np.minimum(upper[:, s] - lower[:, s], np.where(seen[:, s], 1, purse))
        amount = np.clip(room, 0, np.maximum(rest, 0))
        q += amount * v[s]
        rest -= amount
        purse -= np.where(seen[:, s], 0, amount)
    return q
