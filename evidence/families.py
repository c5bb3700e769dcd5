"""Families of MDPs with a seed: mazes, queues, trees, garnets, and any system with other numbers."""

import numpy as np

import gosprl

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left


def maze(n, seed, slip=0.1, openings=5):
    """n x n cells, a random spanning tree of ways and n n // openings more; a move slips to a uniform direction."""
    rng = np.random.default_rng(seed)
    cells = [(i, j) for i in range(n) for j in range(n)]

    def beside(cell, move):
        other = (cell[0] + move[0], cell[1] + move[1])
        return other if other in visited or other in unvisited else None

    visited, unvisited, ways, path = {(0, 0)}, set(cells[1:]), set(), [(0, 0)]
    while path:
        new = [other for move in MOVES if (other := beside(path[-1], move)) in unvisited]
        if not new:
            path.pop()
            continue
        other = new[rng.integers(len(new))]
        ways |= {(path[-1], other), (other, path[-1])}
        unvisited.remove(other)
        visited.add(other)
        path.append(other)
    for _ in range(n * n // openings):
        cell = cells[rng.integers(len(cells))]
        other = beside(cell, MOVES[rng.integers(4)])
        if other is not None:
            ways |= {(cell, other), (other, cell)}
    parts = []
    for s, cell in enumerate(cells):
        arrivals = [beside(cell, move) for move in MOVES]
        targets = [s if (cell, other) not in ways else other[0] * n + other[1] for other in arrivals]
        for a in range(4):
            chance = dict.fromkeys(targets, 0.0)
            chance[targets[a]] += 1 - slip
            for target in targets:
                chance[target] += slip / 4
            parts += [(s, a, target, p) for target, p in chance.items()]
    s, a, s_next, p = map(np.array, zip(*parts, strict=True))
    return gosprl.TabularMDP((s, a, s_next, p), states=n * n, actions=4)


def queues(n, arrivals=(0.3, 0.4), service=0.8):
    """Two queues of length 0 .. n - 1: serve the first, the second or none."""
    P = np.zeros((n * n, 3, n * n))
    for first, second, a, x, y, served in np.ndindex(n, n, 3, 2, 2, 2):
        chance = 1.0
        for p, happens in ((arrivals[0], x), (arrivals[1], y), (service, served)):
            chance *= p if happens else 1 - p
        lengths = np.clip([first - (a == 0) * served + x, second - (a == 1) * served + y], 0, n - 1)
        P[first * n + second, a, lengths[0] * n + lengths[1]] += chance
    return gosprl.TabularMDP(P)


def tree(depth, branching, aim=0.9):
    """From the root down to a leaf, mostly where one aims; leaves lead back to the root."""
    S = sum(branching**k for k in range(depth + 1))
    P = np.zeros((S, branching, S))
    for s, a in np.ndindex(S, branching):
        below = s * branching + 1
        if below >= S:
            P[s, a, 0] = 1
        else:
            P[s, a, below : below + branching] = (1 - aim) / branching
            P[s, a, below + a] += aim
    return gosprl.TabularMDP(P)


def garnet(states, branching, seed):
    """A random MDP with four actions."""
    return gosprl.envs.make("garnet", states=states, actions=4, branching=branching, seed=seed)


def shuffled(mdp, seed):
    """The same system with other numbers for its states but the first and, in each state, for its actions."""
    rng, rows = np.random.default_rng(seed), mdp.rows
    P = np.zeros((rows.num_states, rows.num_actions, rows.num_states))
    row = np.repeat(np.arange(len(rows)), np.diff(mdp.ptr))
    np.add.at(P, (rows.state[row], rows.action[row], mdp.succ), mdp.prob)
    order = np.append(0, 1 + rng.permutation(len(P) - 1))
    P = P[order][:, :, order]
    return gosprl.TabularMDP(np.stack([each[rng.permutation(len(each))] for each in P]))


def few_states(mdp, seed=9, number=50):
    """A need: `number` samples of every pair of a twentieth of the states, at least two."""
    rows = mdp.rows
    need = np.zeros((rows.num_states, rows.num_actions), dtype=np.int64)
    chosen = np.random.default_rng(seed).choice(rows.num_states, max(2, rows.num_states // 20), replace=False)
    need[chosen] = number
    return need
