"""Policy iteration with sparse linear solves, for goals so far away that sweeps converge too slowly.

A policy here is the controller's row in each state and, if the dynamics are only known to be in a set, the distribution
that nature chooses (`gosprl.planning.nature`). Each policy is evaluated by a linear solve, so the number of iterations
does not depend on the distance to the goals: it is that of policy iteration in the MDP whose actions are the vertices
of all sets.

Method. The first policy is known to reach the goals. In each iteration nature chooses distributions for the policy's
value, and the controller changes its row where another row is better by more than rounding errors. Both can only
decrease the value, so every later policy reaches the goals as well.

Stopping rule. No row improves on the value. The last answer of nature is returned, for the certificate of the caller.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import PrecisionError
from gosprl.planning.nature import Answer, Floats, Ints, respond, spread, sums

if TYPE_CHECKING:
    from gosprl._kernels import Sets

IMPROVEMENT = 1e-12  # least improvement, relative to the cost of a step, for which an action is changed
MAX_POLICIES = 1000
MAX_TRANSITIONS = 5_000_000  # of one policy, including unseen successors: with more, a linear solve takes too long
STAYS = 1e-6  # if the probability to leave a state is below this, 1 - p(s|s, a) has lost too many digits


class TooLarge(PrecisionError):
    """A policy has too many transitions for a linear solve."""


@dataclass(frozen=True, eq=False)
class Solved:
    """The result of policy iteration."""

    rows: Ints  # [S] the rows that attain the optimum; undefined for goals and for states that cannot reach one
    answer: Answer  # the distributions that nature chooses for the values


def policy_iteration(
    sets: "Sets",
    cost: Floats,
    goal: NDArray[np.bool_],
    alive: NDArray[np.bool_],
    usable: NDArray[np.bool_],
    v: Floats,
) -> Solved:
    """Compute the optimum at the alive non-goal states and write it to v.

    Parameters
    ----------
    sets
        The kernels' view of the confidence sets (`gosprl.planning.workspace.as_sets`).
    cost
        [R] positive costs.
    goal, alive, usable
        [S], [S], [R]: the goals, the states that can reach them with probability 1, and the rows that stay among these
        states, as `gosprl._kernels.reach` computes them.
    v
        [S] at goals the cost of ending there, at least 0; at other states a first guess, used if its greedy policy
        reaches the goals.

    Raises
    ------
    PrecisionError
        If the goals are reached too rarely for doubles.
    TooLarge
        If a policy has more than MAX_TRANSITIONS.
    """
    inner = np.flatnonzero(alive & ~goal)
    policy, answer = _first_policy(sets, cost, goal, alive, usable, v)
    for _ in range(MAX_POLICIES if inner.size else 0):
        v[inner] = _value(answer, cost, inner, policy[inner], v)
        answer = respond(sets, cost, v, alive, usable)
        best = first_least(answer.excess, sets.row_ptr)
        rows = best[inner]
        rounding = answer.error[rows] + 2 * answer.resolution[rows]
        better = inner[answer.excess[rows] < -(rounding + IMPROVEMENT * cost[rows])]
        if better.size == 0:
            break
        policy[better] = best[better]
    return Solved(policy, answer)


def policy_value(sets: "Sets", cost: Floats, inner: Ints, rows: Ints, v: Floats) -> Floats:
    """Return the value [n] of a policy in n inner states, for known dynamics (sets of one distribution).

    Solves v = c + P v, where the policy takes `rows` [n] at the states `inner` [n]; at other states v [S] is given.
    """
    source, slot = spread(sets.begin[rows], sets.end[rows] - sets.begin[rows])
    target, prob = sets.succ[slot], sets.lower[slot]
    own = target == inner[source]
    stay = np.bincount(source[own], weights=prob[own], minlength=len(inner))
    leaving = np.bincount(source[~own], weights=prob[~own], minlength=len(inner))
    diagonal = np.where(leaving < STAYS, leaving, 1 - stay)
    return _solve(source[~own], target[~own], prob[~own], diagonal, cost[rows], inner, v)[0]


def _value(answer: Answer, cost: Floats, inner: Ints, rows: Ints, v: Floats) -> Floats:
    """Return the value [n] of `rows` [n] at the states `inner` [n] under nature's `answer`; one step of refinement."""
    if answer.ptr[rows + 1].sum() - answer.ptr[rows].sum() + answer.full[rows].sum() > MAX_TRANSITIONS:
        raise TooLarge(f"a policy has more than {MAX_TRANSITIONS} transitions, too many for a linear solve")
    source, target, prob = answer.transitions(rows)
    leaving = answer.leaving[rows]
    value, factors = _solve(source, target, prob, leaving, cost[rows], inner, v)
    values = v.copy()
    values[inner] = value
    moves = np.bincount(source, weights=prob * (values[target] - value[source]), minlength=len(inner))
    refined: Floats = value + factors.solve((cost[rows] + moves) / np.where(leaving < STAYS, leaving, 1.0))
    if not np.all(refined >= 0):
        raise PrecisionError("some goals are reached too rarely for doubles: the equations have no positive solution")
    return refined


def _solve(
    source: Ints, target: NDArray[np.integer[Any]], prob: Floats, diagonal: Floats, cost: Floats, inner: Ints, v: Floats
) -> tuple[Floats, Any]:
    """Return (values [n], factors) of a policy that moves from inner[source] to `target` with probabilities `prob`.

    `diagonal` [n] is 1 - p(s|s, a). Where it is below STAYS, the equation of the state is divided by it.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    n = len(inner)
    number = np.full(len(v), -1)
    number[inner] = np.arange(n)
    to = number[target]
    inside = to >= 0
    scale = np.where(diagonal < STAYS, diagonal, 1.0)
    if not np.all(scale > 0):
        raise PrecisionError("some goals are reached too rarely for doubles: a state is never left")
    ends = prob[~inside] * v[target[~inside]]
    right = cost + np.bincount(source[~inside], weights=ends, minlength=n)
    entries = np.concatenate([-prob[inside] / scale[source[inside]], diagonal / scale])
    places = (np.append(source[inside], np.arange(n)), np.append(to[inside], np.arange(n)))
    try:
        factors = splu(coo_array((entries, places), shape=(n, n)).tocsc())
        value: Floats = factors.solve(right / scale)
    except RuntimeError as error:  # singular: the probabilities that lead to the goals are lost in rounding
        raise PrecisionError(f"some goals are reached too rarely for doubles: {error}") from None
    except MemoryError:  # however few transitions there are, elimination may bring many more
        raise TooLarge(f"the factors of a policy's equations over {n} states do not fit into memory") from None
    if not np.all(np.isfinite(value)):
        raise PrecisionError("some goals are reached too rarely for doubles: values overflow")
    return value, factors


def _first_policy(
    sets: "Sets",
    cost: Floats,
    goal: NDArray[np.bool_],
    alive: NDArray[np.bool_],
    usable: NDArray[np.bool_],
    v: Floats,
) -> tuple[Ints, Answer]:
    """Return a policy that reaches the goals: (rows [S], nature's answer).

    It is the greedy policy of v, if the certificate shows that it reaches the goals. Otherwise a backward search from
    the goals numbers the states: each has a row that can lead to a state with a smaller number. Nature takes these
    numbers as values, and the controller takes the rows with the least cost per probability of a smaller number.
    """
    from gosprl import _kernels

    answer = respond(sets, cost, v, alive, usable)
    policy = first_least(answer.excess, sets.row_ptr)
    rows = policy[alive & ~goal]
    if np.all(answer.excess[rows] + answer.error[rows] < (1 - 1e-6) * cost[rows]):
        return policy, answer
    S, R = len(goal), len(cost)
    order, place = np.zeros(S, dtype=np.int64), np.full(S, float(S))
    reached = _kernels.search_back(sets, goal, alive, usable, np.zeros(S, dtype=bool), order)
    place[order[:reached]] = np.arange(reached)
    answer = respond(sets, cost, place, alive, usable)
    rank, own = answer.rank[answer.succ], answer.rank[answer.state]
    row, before = np.repeat(np.arange(R), np.diff(answer.ptr)), np.minimum(answer.full, own)
    mass = sums(row, answer.weight * (rank < own[row]), R) + np.where(answer.full < own, answer.part, 0.0)
    mass += answer.each * (before - sums(row, rank < before[row], R))
    price = np.full(R, np.inf)
    with np.errstate(over="ignore"):  # a mass so small that the price overflows: inf
        np.divide(cost, mass, out=price, where=mass > 0)
    return first_least(price, sets.row_ptr), answer


def first_least(per_row: Floats, row_ptr: Ints) -> Ints:
    """Return the first row of each state with its least value of `per_row` [R], as [S]; `row_ptr` is [S + 1]."""
    least = np.repeat(np.minimum.reduceat(per_row, row_ptr[:-1]), np.diff(row_ptr))
    candidates = np.where(per_row == least, np.arange(len(per_row)), len(per_row))
    return np.minimum.reduceat(candidates, row_ptr[:-1])
