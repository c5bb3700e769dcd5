"""Which states can reach the goals, and shortest paths to them in the graph of possible transitions."""

import math

import numpy as np

from gosprl._kernels._jit import jit
from gosprl._kernels.constants import FAR
from gosprl._kernels.sets import has_slack, is_open, stays_alive


@jit(allocates=True)
def search_back(sets, goal, alive, usable, reached, queue):
    """Mark the states that can reach a goal with positive probability by usable rows. Returns their number.

    Breadth-first search backwards from the goals; `queue` [S] is overwritten. An open row leads to every state that it
    has not seen, so these edges are not stored: whenever the queue is empty, all open rows are tested again.
    """
    S = len(goal)
    n = 0
    for s in range(S):
        reached[s] = goal[s]
        if goal[s]:
            queue[n] = s
            n += 1
    done = 0
    pred_ptr = np.zeros(1, dtype=np.int64)
    pred = np.zeros(0, dtype=np.int32)
    while True:
        before = n
        for s in range(S):  # an open row reaches s if some reached state is unseen from the row
            if alive[s] and not reached[s]:
                for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
                    if usable[r] and is_open(sets, r):
                        seen = 0
                        for j in range(sets.begin[r], sets.end[r]):
                            seen += reached[sets.succ[j]]
                        if n > seen:
                            reached[s] = True
                            queue[n] = s
                            n += 1
                            break
        if n == before and done == n:
            return n
        if len(pred_ptr) == 1:
            pred_ptr, pred = predecessors(sets, alive, usable, reached)
        while done < n:
            x = queue[done]
            done += 1
            for i in range(pred_ptr[x], pred_ptr[x + 1]):
                s = pred[i]
                if not reached[s]:
                    reached[s] = True
                    queue[n] = s
                    n += 1


@jit(allocates=True)
def predecessors(sets, alive, usable, reached):
    """(ptr, pred): for each state, the alive and not yet reached states with a usable row that can lead there."""
    S = len(alive)
    ptr = np.zeros(S + 2, dtype=np.int64)
    pred = np.zeros(0, dtype=np.int32)
    for fill in range(2):  # first count, then fill
        for s in range(S):
            if alive[s] and not reached[s]:
                for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
                    if usable[r]:
                        for j in range(sets.begin[r], sets.end[r]):
                            if sets.lower[j] > 0 or (has_slack(sets, r) and sets.upper[j] > 0):
                                x = sets.succ[j]
                                if fill:
                                    pred[ptr[x + 1]] = s
                                    ptr[x + 1] += 1
                                else:
                                    ptr[x + 2] += 1
        if not fill:
            for x in range(S):
                ptr[x + 2] += ptr[x + 1]
            pred = np.empty(ptr[S + 1], dtype=np.int32)
    return ptr, pred


@jit(nogil=True, allocates=True)
def reach(sets, goal, alive, usable):
    """Fill `alive`: the states from which usable rows reach a goal with probability 1 for some dynamics in the sets.

    That is the largest set X such that every state of X reaches a goal with positive probability by rows whose sets
    contain a distribution on X. Rows that do not are removed from `usable`. The rows of a goal are those of its
    non-goal copy: the state in which a plan that starts at the goal begins.
    """
    S = len(goal)
    for s in range(S):
        alive[s] = True
    n_alive = S
    reached = np.zeros(S, dtype=np.bool_)
    queue = np.empty(S, dtype=np.int64)
    while True:
        n = search_back(sets, goal, alive, usable, reached, queue)
        if n == n_alive:
            return
        n_alive = n
        for s in range(S):
            alive[s] = reached[s]
        for r in range(len(usable)):
            usable[r] = usable[r] and stays_alive(sets, r, alive, n_alive)


@jit(nogil=True, allocates=True)
def reversed_edges(sets, cost, usable):
    """(ptr [S + 1], states, weights): the graph with an edge from each possible successor back to its state.

    The weight is cost / upper, the expected cost of repeating the row until that successor occurs, if its probability
    is the largest in the set.
    """
    S = len(sets.row_ptr) - 1
    ptr = np.zeros(S + 2, dtype=np.int64)
    state = np.empty(0, dtype=np.int32)
    weight = np.empty(0)
    for fill in range(2):  # first count, then fill
        for s in range(S):
            for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
                if usable[r]:
                    for j in range(sets.begin[r], sets.end[r]):
                        x = sets.succ[j]
                        if sets.upper[j] > 0 and x != s:
                            if fill:
                                state[ptr[x + 1]] = s
                                weight[ptr[x + 1]] = min(cost[r] / sets.upper[j], FAR)
                                ptr[x + 1] += 1
                            else:
                                ptr[x + 2] += 1
        if not fill:
            for x in range(S):
                ptr[x + 2] += ptr[x + 1]
            state = np.empty(ptr[S + 1], dtype=np.int32)
            weight = np.empty(ptr[S + 1])
    return ptr[: S + 1], state, weight


@jit(nogil=True, allocates=True)
def lightest_paths(ptr, state, weight, dist):
    """Lower dist [S] to dist[x] + (weight of the lightest path from x), minimised over x: Dijkstra's algorithm.

    All x with finite dist are sources. `place` is the position of a state in the heap, -1 before and S after it was
    there.
    """
    S = len(dist)
    heap = np.empty(S, dtype=np.int64)
    place = np.full(S, -1, dtype=np.int64)
    n = 0
    for s in range(S):
        if dist[s] < math.inf:
            heap[n] = s
            n += 1
            sift_up(heap, place, dist, n - 1)
    while n > 0:
        x = heap[0]
        n -= 1
        if n > 0:
            heap[0] = heap[n]
            sift_down(heap, place, dist, n)
        place[x] = S
        for i in range(ptr[x], ptr[x + 1]):
            s = state[i]
            if place[s] < S and dist[x] + weight[i] < dist[s]:
                dist[s] = dist[x] + weight[i]
                if place[s] < 0:
                    heap[n] = s
                    place[s] = n
                    n += 1
                sift_up(heap, place, dist, place[s])


@jit(nogil=True)
def sift_up(heap, place, dist, i):
    """Restore the order of the heap after the distance of its entry i decreased."""
    s = heap[i]
    while i > 0 and dist[heap[(i - 1) // 2]] > dist[s]:
        heap[i] = heap[(i - 1) // 2]
        place[heap[i]] = i
        i = (i - 1) // 2
    heap[i] = s
    place[s] = i


@jit(nogil=True)
def sift_down(heap, place, dist, n):
    """Restore the order of a heap of n entries after its first one was replaced."""
    s, i = heap[0], 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and dist[heap[child + 1]] < dist[heap[child]]:
            child += 1
        if dist[heap[child]] >= dist[s]:
            break
        heap[i] = heap[child]
        place[heap[i]] = i
        i = child
    heap[i] = s
    place[s] = i


@jit(nogil=True, allocates=True)
def head_start(sets, cost, goal, usable, v):
    """Fill initial values: the lightest path to a goal in the graph of `reversed_edges`, with edges to unseen goals.

    The order of the states by these values is nearly that of the solution, and in-place sweeps converge fast in it.
    """
    n_goals = 0
    for s in range(len(goal)):
        n_goals += goal[s]
        v[s] = 0.0 if goal[s] else math.inf
    for s in range(len(goal)):
        if not goal[s]:
            for r in range(sets.row_ptr[s], sets.row_ptr[s + 1]):
                if usable[r] and is_open(sets, r):
                    v[s] = min(v[s], cost[r] / min(sets.total[r], sets.slack[r], sets.each[r] * n_goals))
    ptr, state, weight = reversed_edges(sets, cost, usable)
    lightest_paths(ptr, state, weight, v)
