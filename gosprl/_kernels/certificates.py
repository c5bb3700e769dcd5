"""What sets prove: the largest error of an average over the next state."""

import math

import numpy as np

from gosprl._kernels._jit import jit
from gosprl._kernels.arrays import sort_by


@jit
def largest_move(up, down, extra):
    """The most mass that p can have more than p_hat in some entries, and less in others: an entry gains or loses.

    All choices are tried; `extra` is what entries that are not stored can gain.
    """
    n, largest = len(up), 0.0
    for gaining in range(1 << n):
        more, less = extra, 0.0
        for j in range(n):
            if gaining >> j & 1:
                more += up[j]
            else:
                less += down[j]
        largest = max(largest, min(more, less))
    return largest


@jit
def largest_split_move(up, down, extra):
    """A bound on the same that takes a sort: one entry may do both, each in part.

    Those gain that have the most to gain for what they have to lose, until both sides have the same.
    """
    n = len(up)
    share, more, less = np.zeros(n), extra, 0.0
    for j in range(n):
        if up[j] > 0:
            share[j] = up[j] / (up[j] + down[j])
        less += down[j]
    order = np.arange(n)
    sort_by(-share, order)
    for j in order:
        if more >= less or up[j] <= 0:
            break
        part = min(1.0, (less - more) / (up[j] + down[j]))
        more += part * up[j]
        less -= part * down[j]
    return min(more, less)


@jit
def largest_moves(ptr, up, down, extra, few, out):
    """Fill what mass can move in each row: exact in rows of up to `few` entries, a bound in longer ones."""
    for r in range(len(extra)):
        row = slice(ptr[r], ptr[r + 1])
        if ptr[r + 1] - ptr[r] <= few:
            out[r] = largest_move(up[row], down[row], extra[r])
        else:
            out[r] = largest_split_move(up[row], down[row], extra[r])


@jit
def dearest(weight, room, mass):
    """The most that `mass` can weigh, spread over slots with so much room each; what finds no room weighs nothing."""
    sum_ = 0.0
    order = np.arange(len(weight))
    sort_by(-weight, order)
    for j in order:
        if weight[j] <= 0 or mass <= 0:
            break
        take = min(room[j], mass)
        sum_ += take * weight[j]
        mass -= take
    return sum_


@jit
def lipschitz_errors(ptr, succ, count, up, down, extra, D, part, far_to, far_from, hubs, over, under):
    """How far row averages of a function can be off whose differences are at most distances: V(i) - V(j) <= D[i, j].

    For each row, `over` bounds (p - p_hat) V and `under` bounds (p_hat - p) V, for all p between p_hat - `down` and
    p_hat + `up` on the stored successors, with `extra` mass at most on others. All mass that moves is taken to move by
    way of one of the row's successors, the best of the `hubs` most frequent. Two bounds on what that weighs: no more
    mass arrives than leaves; and an entry gains or loses, whichever weighs more. `part` [S]: which states have
    distances, and may be that one. `far_to`, `far_from` [S]: the largest distance to and from each state.
    """
    for r in range(len(extra)):
        begin, end = ptr[r], ptr[r + 1]
        n = end - begin
        more, less = extra[r], 0.0
        for j in range(begin, end):
            more += up[j]
            less += down[j]
        mass = min(more, less)
        weight, room = np.empty(n + 1), np.empty(n + 1)
        over[r] = under[r] = math.inf
        for j in range(n):
            weight[j] = -count[begin + j]
        order = np.arange(n)
        sort_by(weight, order)
        for h in order[:hubs]:
            k = succ[begin + h]
            if not part[k]:
                continue
            for sign in range(2):
                weight[n] = far_to[k] if sign == 0 else far_from[k]
                room[n] = extra[r]
                one = extra[r] * weight[n]
                for j in range(n):
                    i = succ[begin + j]
                    there, back = (D[i, k], D[k, i]) if sign == 0 else (D[k, i], D[i, k])
                    one += max(up[begin + j] * there, down[begin + j] * back)
                    weight[j], room[j] = there, up[begin + j]
                both = dearest(weight, room, mass)
                for j in range(n):
                    i = succ[begin + j]
                    weight[j], room[j] = D[k, i] if sign == 0 else D[i, k], down[begin + j]
                both += dearest(weight[:n], room[:n], mass)
                if sign == 0:
                    over[r] = min(over[r], one, both)
                else:
                    under[r] = min(under[r], one, both)


@jit
def average_errors(ptr, succ, up, down, extra, V, highest, out):
    """The most that p V can exceed p_hat V, over the same p; `highest` is the largest V of all states."""
    for r in range(len(extra)):
        begin, n = ptr[r], ptr[r + 1] - ptr[r]
        value, room = np.empty(n + 1), np.empty(n + 1)
        value[n], room[n] = highest, extra[r]
        for j in range(n):
            value[j], room[j] = V[succ[begin + j]], up[begin + j]
        best, worst = np.arange(n + 1), np.arange(n)
        sort_by(-value, best)
        sort_by(value, worst)
        out[r], i, j, given, taken = 0.0, 0, 0, 0.0, 0.0
        while i <= n and j < n and value[best[i]] > value[worst[j]]:  # from the worst to the best, while that gains
            move = min(room[best[i]] - given, down[begin + worst[j]] - taken)
            out[r] += move * (value[best[i]] - value[worst[j]])
            given += move
            taken += move
            if given >= room[best[i]]:
                i, given = i + 1, 0.0
            else:
                j, taken = j + 1, 0.0
