"""What the worst dynamics in a model's sets do, and what policies cost in known ones: dense, for a handful of states.

Sets are those of single rows, so nature's best answer to a policy is found by policy iteration over the rows' vertices.
"""

import itertools

import numpy as np
from oracles import Points, Problem, vertices


def corners(model, family):
    """The vertices [K, S] of each row's set."""
    problem = Problem.from_intervals(model.rows, family.intervals(model), [])
    parts = zip(problem.seen, problem.lower, problem.upper, problem.total, strict=True)
    return [vertices(*part) for part in parts]


def as_rows(P, rows):
    """P [S, A, S] as [R, S]."""
    return P[rows.state, rows.action]


def cost_of(P, cost, policy, goal):
    """[S] what a policy [S] of rows costs until the goal, for P [R, S], cost [R]; inf where it may never arrive."""
    policy = np.where(np.arange(len(policy)) == goal, 0, policy)
    taken = Points(np.arange(len(policy)), P[policy], cost[policy], policy)
    return taken.evaluate(np.arange(len(policy)), [goal], taken.surely_reaching([goal])[0])


def least_cost(state, P, cost, goal):
    """[S] the least cost of going to the goal, for rows of the given states [R] with P [R, S]."""
    return Points(state, P, cost, np.arange(len(cost))).optimum([goal])


def least_in_sets(state, sets, cost, goal):
    """[S] the same for the best dynamics in the sets, given by their corners."""
    row = np.repeat(np.arange(len(sets)), [len(corner) for corner in sets])
    return least_cost(state[row], np.vstack(sets), cost[row], goal)


def most_of(sets, cost, policy, goal):
    """[S] what a policy [S] of rows costs until the goal under the worst dynamics in the sets; inf if that is too much.

    Nature changes what gains by more than rounding, until nothing does.
    """
    chosen = [0] * len(policy)
    while True:
        P = np.array([sets[r][k] for r, k in zip(policy, chosen, strict=True)])
        states = np.arange(len(policy))
        v = cost_of(P, cost[policy], states, goal)
        if not np.all(v < 1e6):
            return np.full(len(policy), np.inf)
        better = [int(np.argmax(sets[r] @ v)) for r in policy]
        gain = np.array([sets[r][k] @ v for r, k in zip(policy, better, strict=True)]) - P @ v
        gains = (gain > 1e-9 * v.max()) & (states != goal)
        if not gains.any():
            return v
        chosen = [new if gains[s] else old for s, old, new in zip(states, chosen, better, strict=True)]


def most_times(state, sets, goal):
    """[S] the steps to the goal of the best policy under the worst dynamics in the sets, inf if that is too many."""
    S, ones = sets[0].shape[1], np.ones(len(sets))
    v = np.zeros(S)
    for _ in range(1_000_000):
        q = 1 + np.array([(corner @ v).max() for corner in sets])
        new = np.full(S, np.inf)
        np.minimum.at(new, state, q)
        new[goal] = 0
        if new.max() > 1e4:
            return np.full(S, np.inf)
        if np.abs(new - v).max() < 1e-4:  # near enough for a policy; what that is worth is solved for
            rows = [np.flatnonzero(state == s) for s in range(S)]
            return most_of(sets, ones, np.array([r[np.argmin(q[r])] for r in rows]), goal)
        v = new
    raise AssertionError("value iteration did not end")


def all_policies(rows):
    """Every deterministic policy, as rows [S]."""
    choices = [range(rows.ptr[s], rows.ptr[s + 1]) for s in range(rows.num_states)]
    return [np.array(policy) for policy in itertools.product(*choices)]
