"""The fluid program by a first-order method, and what a potential proves (`gosprl.planning.approximate`)."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl._kernels._jit import jit

SUFFICIENT, NECESSARY, LONG = 0.2, 0.8, 0.36  # when to restart: see `flow_steps`
CALM = 0.5  # part of a change of the weight, on a logarithmic scale, that is made at a restart
HEAVIEST = 100.0  # most and, inverted, least weight in units of that of a cold start


class Network(NamedTuple):
    """min cost x over x >= 0 with B x <= supply and, at states with an extra need, at least as many counted visits.

    (B x)(s) = sum of leave x over the rows of s, minus sum of prob x over the entries that lead to s.
    """

    row_ptr: NDArray[np.int64]  # [n + 1]
    ptr: NDArray[np.int64]  # [m + 1] successors other than the row's own state
    succ: NDArray[np.int32]  # [entries]
    prob: NDArray[np.float64]  # [entries]
    leave: NDArray[np.float64]  # [m] chance to leave the state
    cost: NDArray[np.float64]  # [m]
    counted: NDArray[np.float64]  # [m] 1 if the row counts for the need of its state, else 0
    supply: NDArray[np.float64]  # [n]
    extra: NDArray[np.float64]  # [n] visits that the state needs in addition; at most 0: none
    row_step: NDArray[np.float64]  # [m] step sizes
    state_step: NDArray[np.float64]  # [n]
    extra_step: NDArray[np.float64]  # [n]


class Iterate(NamedTuple):
    """Where the iteration is, where it was restarted, and what the last step led to."""

    x: NDArray[np.float64]  # [m]
    v: NDArray[np.float64]  # [n]
    y: NDArray[np.float64]  # [n] price of a counted visit
    x_from: NDArray[np.float64]
    v_from: NDArray[np.float64]
    y_from: NDArray[np.float64]
    x_to: NDArray[np.float64]
    v_to: NDArray[np.float64]
    y_to: NDArray[np.float64]
    arriving: NDArray[np.float64]  # [n] scratch
    visits: NDArray[np.float64]  # [n] scratch


@jit
def step_sizes(net):
    """Fill the steps of each variable: 1 / the sum of its absolute coefficients (Pock and Chambolle 2011)."""
    row_ptr, ptr, succ, prob, leave, _, counted, _, extra, row_step, state_step, extra_step = net
    for s in range(len(extra)):
        state_step[s] = 0.0
        extra_step[s] = 0.0
    for s in range(len(extra)):
        for r in range(row_ptr[s], row_ptr[s + 1]):
            size = leave[r]
            state_step[s] += leave[r]
            for j in range(ptr[r], ptr[r + 1]):
                size += prob[j]
                state_step[succ[j]] += prob[j]
            if extra[s] > 0:
                size += counted[r]
                extra_step[s] += counted[r]
            row_step[r] = 1 / size if size > 0 else 0.0
    for s in range(len(extra)):
        state_step[s] = 1 / state_step[s] if state_step[s] > 0 else 0.0
        extra_step[s] = 1 / extra_step[s] if extra_step[s] > 0 else 0.0


@jit
def flow_step(net, at, weight, inner):
    """Make one step of the reflected Halpern iteration of the primal-dual method. Returns the squares of its length.

    T is the step of the primal-dual hybrid gradient method, with the step sizes of x divided, and those of v and y
    multiplied, by `weight`. The new iterate is (k + 1)/(k + 2) (2 T z - z) + 1/(k + 2) z_from, k = `inner`.
    """
    row_ptr, ptr, succ, prob, leave, cost, counted, supply, extra, row_step, state_step, extra_step = net
    x, v, y, x_from, v_from, y_from, x_to, v_to, y_to, arriving, visits = at
    new, old = (inner + 1) / (inner + 2), 1 / (inner + 2)
    n = len(v)
    for s in range(n):
        arriving[s] = supply[s]
        visits[s] = 0.0
    rows = states = 0.0
    for s in range(n):
        for r in range(row_ptr[s], row_ptr[s + 1]):
            if row_step[r] == 0:
                continue
            reduced = cost[r] - leave[r] * v[s] - counted[r] * y[s]
            for j in range(ptr[r], ptr[r + 1]):
                reduced += prob[j] * v[succ[j]]
            to = max(0.0, x[r] - row_step[r] / weight * reduced)
            move = to - x[r]
            both = to + move
            if both != 0:
                arriving[s] -= leave[r] * both
                visits[s] += counted[r] * both
                for j in range(ptr[r], ptr[r + 1]):
                    arriving[succ[j]] += prob[j] * both
            rows += move * move / row_step[r]
            x_to[r] = to
            x[r] = new * both + old * x_from[r]
    for s in range(n):
        if state_step[s] > 0:
            to = min(0.0, v[s] + weight * state_step[s] * arriving[s])
            move = to - v[s]
            states += move * move / state_step[s]
            v_to[s] = to
            v[s] = new * (to + move) + old * v_from[s]
        if extra_step[s] > 0:
            to = max(0.0, y[s] + weight * extra_step[s] * (extra[s] - visits[s]))
            move = to - y[s]
            states += move * move / extra_step[s]
            y_to[s] = to
            y[s] = new * (to + move) + old * y_from[s]
    return rows, states


@jit
def restart(net, at, weight):
    """Begin anew at the point that the last step led to. Returns the weight: a mean of the old one and |dv| / |dx|.

    A shift of all of v does not count: it hardly changes anything, goes on for long, and would raise the weight.
    """
    x, v, y, x_from, v_from, y_from, x_to, v_to, y_to, _, _ = at
    rows = states = shift = total = 0.0
    for r in range(len(x)):
        if net.row_step[r] > 0:
            move = x_to[r] - x_from[r]
            rows += move * move / net.row_step[r]
        x[r] = x_to[r]
        x_from[r] = x_to[r]
    for s in range(len(v)):
        if net.state_step[s] > 0:
            move = v_to[s] - v_from[s]
            states += move * move / net.state_step[s]
            shift += move / net.state_step[s]
            total += 1 / net.state_step[s]
        if net.extra_step[s] > 0:
            move = y_to[s] - y_from[s]
            states += move * move / net.extra_step[s]
        v[s] = v_to[s]
        v_from[s] = v_to[s]
        y[s] = y_to[s]
        y_from[s] = y_to[s]
    if total > 0:
        states -= shift * shift / total
    if rows > 0 and states > 0:
        return math.exp(CALM * 0.5 * math.log(states / rows) + (1 - CALM) * math.log(weight))
    return weight


@jit(nogil=True)
def flow_steps(net, at, weight, unit, steps):
    """Make `steps` steps, with restarts. The weight, at first `weight`, stays within a factor HEAVIEST of `unit`.

    With e_k the length of step k since the last restart, in the norm of the method (without its mixed term), restart
    if e_k <= SUFFICIENT e_0, if e_k <= NECESSARY e_0 and e_k > e_{k - 1}, or after LONG of all steps.
    """
    begin = 0
    first = last = math.inf
    for k in range(steps):
        rows, states = flow_step(net, at, weight, k - begin)
        length = math.sqrt(rows * weight + states / weight)
        if k == begin:
            first = length
        made = k + 1 - begin
        shorter = length <= SUFFICIENT * first or (length <= NECESSARY * first and length > last)
        if made > 1 and (shorter or made >= LONG * (k + 1)) and k + 1 < steps:
            weight = min(max(restart(net, at, weight), unit / HEAVIEST), unit * HEAVIEST)
            begin = k + 1
        last = length


@jit
def lower_potential(net, v, hub, free):
    """Lower v where v(s) > (c + p v) / leave for some row of s, in place. Returns the largest change.

    `free`: only by rows that cost nothing. State `hub`, if there is one (else -1), may go to any other for nothing.
    """
    most = 0.0
    for s in range(len(v)):
        least = v[s]
        if s == hub:
            for other in range(len(v)):
                least = min(least, v[other])
        for r in range(net.row_ptr[s], net.row_ptr[s + 1]):
            if net.leave[r] > 0 and not (free and net.cost[r] > 0):
                value = net.cost[r]
                for j in range(net.ptr[r], net.ptr[r + 1]):
                    value += net.prob[j] * v[net.succ[j]]
                least = min(least, value / net.leave[r])
        most = max(most, v[s] - least)
        v[s] = least
    return most


@jit
def slacks(net, v, slack):
    """Fill slack = c + p v - leave v(s) [m]. Returns the largest (leave v(s) - p v) / c, at least 1."""
    most = 1.0
    for s in range(len(v)):
        for r in range(net.row_ptr[s], net.row_ptr[s + 1]):
            value = net.leave[r] * v[s]
            for j in range(net.ptr[r], net.ptr[r + 1]):
                value -= net.prob[j] * v[net.succ[j]]
            slack[r] = net.cost[r] - value
            if net.cost[r] > 0:
                most = max(most, value / net.cost[r])
    return most


@jit
def proven_cost(net, v, slack):
    """Return the bound on the cost by a potential v that no row violates: supply v + extra y, y the least slack."""
    total = 0.0
    for s in range(len(v)):
        total += net.supply[s] * v[s]
        if net.extra[s] > 0:
            least = math.inf
            for r in range(net.row_ptr[s], net.row_ptr[s + 1]):
                if net.counted[r] > 0:
                    least = min(least, max(slack[r], 0.0))
            if least < math.inf:
                total += net.extra[s] * least
    return total


@jit
def shortage(net, x, arriving):
    """Return how far x >= 0 misses the constraints: what leaves states in excess of the supply, and missing visits."""
    total = 0.0
    for s in range(len(arriving)):
        arriving[s] = net.supply[s]
    for s in range(len(arriving)):
        missing = net.extra[s]
        for r in range(net.row_ptr[s], net.row_ptr[s + 1]):
            arriving[s] -= net.leave[r] * x[r]
            missing -= net.counted[r] * x[r]
            for j in range(net.ptr[r], net.ptr[r + 1]):
                arriving[net.succ[j]] += net.prob[j] * x[r]
        total += max(missing, 0.0)
    for s in range(len(arriving)):
        total += max(-arriving[s], 0.0)
    return total
