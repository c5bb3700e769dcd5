"""The lemma of docs/theory/guarded.md: for all counts, kl's sets lie within Bernstein's.

The first two tests check the lemma's constants with ends from bisection, far beyond the sizes that a model can have in
memory. The last two check the sets that the families compute.
"""

import itertools

import numpy as np
import pytest

import gosprl
from gosprl.sets import KL, Bernstein

ROUNDING = 1e-12
LEVELS = (0.999, 0.5, 0.1, 1e-3, 1e-12)
VISITS = (1, 2, 3, 5, 10, 30, 100, 1000, 10**5, 10**9)
SIZES = np.array(
    [
        (S, A, P)  # states, actions, pairs: from one pair in each state to all S A of them
        for S, A in itertools.product((1.0, 2.0, 3.0, 10.0, 1e3, 1e7), (1.0, 2.0, 3.0, 10.0, 1e3))
        for P in sorted({S, S * (A + 1) // 2, S * A})
    ]
)


def kl(p, q):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0, p * np.log(p / q), 0) + np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0)


def largest(p, bound):
    """Return the largest q >= p with kl(p, q) <= bound, by bisection from below, so that it is never too large."""
    low, high = p + 0 * bound, np.ones_like(p + bound)
    for _ in range(70):
        middle = (low + high) / 2
        inside = kl(p, middle) <= bound
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low


def counts_of(N):
    """Return counts k in 0..N: the first, the last, and some between."""
    few = np.arange(min(N, 10) + 1)
    return np.unique(np.concatenate([few, N - few, (N * np.linspace(0, 1, 9)).astype(np.int64)]))


def budget(S, P, N, delta):
    """Return x of the lemma, the bound on N kl(p_hat, p)."""
    return np.log(4 * S * P / delta) + 0.5 * np.log(np.pi * N + 1)


def logarithm(S, A, N, delta):
    """Return L of the paper's radius."""
    return np.log(2 * S * A * N / delta)


def unseen_end(P, N, delta):
    """Return u of the lemma, the upper end of one successor not seen in N visits."""
    l_0 = np.log(20 * P / delta)
    q = -np.expm1(-l_0 / N)
    return -np.expm1(-(l_0 - np.log(q)) / N)


@pytest.mark.parametrize("N", VISITS)
def test_kl_balls_are_within_the_radius_of_the_lemma(N):
    p, x = counts_of(N) / N, np.geomspace(1, 1e4, 60)[:, None]
    radius = np.sqrt(2 * p * (1 - p) * x / N) + 4 * x / (3 * N)
    above, below = largest(p, x / N) - p, largest(1 - p, x / N) - (1 - p)
    assert np.all(np.maximum(above, below) <= radius + ROUNDING)


@pytest.mark.parametrize("N", VISITS)
@pytest.mark.parametrize("delta", LEVELS)
def test_kl_ends_are_within_bernstein_ends_at_all_sizes(delta, N):
    S, A, P = (column[:, None] for column in SIZES.T)
    p, x, L = counts_of(N)[1:] / N, budget(S, P, N, delta), logarithm(S, A, N, delta)
    radius = 2 * np.sqrt(p * (1 - p) * L / N) + 6 * L / N
    above, below = largest(p, x / N) - p, largest(1 - p, x / N) - (1 - p)
    assert np.all(np.maximum(above, below) <= 0.8 * radius + ROUNDING)
    assert np.all(unseen_end(P, N, delta) <= np.minimum(1, 6 * L / N))


def a_model(S, A, seed, *, closed):
    """Return a model with all numbers of visits in VISITS, and random frequencies of up to four successors per row."""
    rng = np.random.default_rng(seed)
    exists = rng.random((S, A)) < 0.8
    exists[:, 0] = True
    s, a = np.nonzero(exists)
    parts = []
    for row, (state, action) in enumerate(zip(s, a, strict=True)):
        N = (0, *VISITS)[row % (len(VISITS) + 1)]
        number = min(S, int(rng.integers(1, 5)))
        succ = rng.choice(S, number, replace=False)
        count = rng.multinomial(N, rng.dirichlet(np.full(number, 0.3)))
        parts += [(state, action, s_next, n) for s_next, n in zip(succ, count, strict=True)]
    candidates = np.ones((S, S), dtype=bool) if closed else None
    return gosprl.EmpiricalModel.from_counts(*np.array(parts).T, states=S, actions=exists, successors=candidates)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(("S", "A"), [(1, 1), (1, 30), (2, 1), (2, 20), (5, 5), (40, 3), (300, 1)])
def test_kl_sets_are_within_bernstein_sets(S, A, closed):
    model = a_model(S, A, seed=S + A, closed=closed)
    for delta in LEVELS:
        inner, outer = KL(delta).intervals(model), Bernstein(delta).intervals(model)
        np.testing.assert_array_equal(inner.succ, outer.succ)
        assert np.all(inner.upper <= outer.upper + ROUNDING)
        assert np.all(inner.lower >= outer.lower - ROUNDING)
        assert np.all(inner.each <= outer.each + ROUNDING)
        assert np.all(inner.total <= outer.total + ROUNDING)


def test_kl_ends_are_those_of_the_lemma():
    """The code computes the ends for the x and u that the page states."""
    model = a_model(40, 3, seed=0, closed=False)
    S, P = model.num_states, len(model.rows)
    ptr, _, count, _ = model.stored()
    N = np.repeat(model.visits, np.diff(ptr))
    for delta in LEVELS:
        sets, x = KL(delta).intervals(model), budget(S, P, N, delta)
        np.testing.assert_allclose(sets.upper, largest(count / N, x / N), rtol=0, atol=1e-9)
        np.testing.assert_allclose(sets.lower, 1 - largest(1 - count / N, x / N), rtol=0, atol=1e-9)
        visited = model.visits > 0
        np.testing.assert_allclose(sets.each[visited], unseen_end(P, model.visits[visited], delta), rtol=1e-12)
