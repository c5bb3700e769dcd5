"""Problems at the edge of what doubles hold: states that are hardly ever left, goals 1e15 steps away."""

import numpy as np

import gosprl


def random_extremes(rng, known=None):
    """(rows, intervals) of two to four states, each left with a probability of 1 down to 1e-15.

    Known dynamics are sets of one point. Other sets allow some mass more or less, some successors may get nothing, and
    some mass may go to states never seen. Every set holds a distribution exactly, not only up to rounding.
    """
    known = rng.random() < 0.35 if known is None else known
    S, A = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    parts = [_row(rng, s, S, known) for s in range(S) for _ in range(A)]
    length, succ, lower, upper, each, total = zip(*((len(part[0]), *part) for part in parts), strict=True)
    intervals = gosprl.Intervals(
        np.append(0, np.cumsum(length)),
        np.concatenate(succ).astype(np.int32),
        np.concatenate(lower),
        np.concatenate(upper),
        np.array(each),
        np.array(total),
    )
    return gosprl.EmpiricalModel(S, A).rows, intervals


def _row(rng, s, S, known):
    """(successors, lower, upper, each, total)."""
    leaving = 10.0 ** -rng.uniform(0, 15) if rng.random() < 0.7 else 1.0
    others = np.delete(np.arange(S), s)
    succ = rng.choice(others, size=rng.integers(1, S), replace=False)
    p = rng.dirichlet(np.ones(len(succ))) * leaving * rng.uniform(0.1, 1)
    if known:
        stay = 1 - p.sum()
        return np.append(succ, s), np.append(p, stay), np.append(p, stay), 0.0, 0.0
    width = rng.choice([0, 0.1, 1, 3], size=len(succ))
    lower = p * np.maximum(1 - width * rng.random(len(succ)), 0) * (rng.random(len(succ)) < 0.7)
    upper = np.minimum(p * (1 + width), 1)
    each = min(1.0, leaving * 10.0 ** -rng.uniform(0, 3)) if rng.random() < 0.4 else 0.0
    total = min(1.0, each * rng.uniform(0.5, 3))
    stay = max(0.0, 1 - upper.sum() - total - rng.choice([0, 0, 0.3]) * leaving) if rng.random() < 0.85 else 0.0
    return np.append(succ, s), np.append(lower, stay), np.append(upper, 1.0), each, total


def chain(states, up, down):
    """P [S, 1, S] of a walk on a line, one step up or down; the way up takes about (down / up)^states steps."""
    P = np.zeros((states, 1, states))
    for s in range(states):
        P[s, 0, min(s + 1, states - 1)] += up
        P[s, 0, max(s - 1, 0)] += down
        P[s, 0, s] += 1 - up - down
    return P


def counts_of(P, visits, successors=None):
    """A model in which every pair of P [S, A, S] was visited so often, with rounded frequencies."""
    s, a, s_next = np.nonzero(P)
    number = np.maximum(np.round(P[s, a, s_next] * visits), 1).astype(np.int64)
    S, A, _ = P.shape
    return gosprl.EmpiricalModel.from_counts(s, a, s_next, number, states=S, actions=A, successors=successors)
