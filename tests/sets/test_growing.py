"""Sets without a known number of states (docs/theory/growing.md): the formulas, brute force, and a root finder."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from growing import bounded, sampled, unknown
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import gammaln

import gosprl
from gosprl import _kernels
from gosprl.sets import certificates
from gosprl.sets.bernstein import SHARES
from gosprl.sets.intervals import row_logarithms
from gosprl.sets.kl import UNLIMITED_SHARES
from gosprl.strategies.practical import NarrowKL

families = pytest.mark.parametrize("family", [gosprl.Bernstein, gosprl.KL, NarrowKL])
FIELDS = ("ptr", "succ", "lower", "upper", "each", "total")


def random_model(seed, S=6, A=2, n=400):
    rng = np.random.default_rng(seed)
    exists = rng.random((S, A)) < 0.8
    exists[:, 0] = True
    pairs = np.argwhere(exists)
    s, a = pairs[rng.integers(max(1, len(pairs) - 1), size=n)].T
    s_next = np.minimum(rng.geometric(0.5, size=n) - 1, S - 1)
    return gosprl.EmpiricalModel.from_transitions(s, a, s_next, states=S, actions=exists)


# Ends of seen successors


def weighted_kl(k, n, q, weight):
    """Return n kl(k/n, q) - weight log(1/q), the left side of the condition, for q = exp(x) from its logarithm."""
    p = k / n
    rest = 0.0 if k == n else (n - k) * (math.log(1 - p) - math.log1p(-q))
    return k * (math.log(p) - math.log(q)) + rest + weight * math.log(q)


def ends_by_bracketing(k, n, budget, weight):
    """Return the two q at which the condition holds with equality; the condition holds at k/n, which is between."""

    def excess(q):
        return weighted_kl(k, n, q, weight) - budget

    low, high, p = 0.0, 1.0, k / n
    least = 1e-300
    if excess(least) > 0:
        low = math.exp(brentq(lambda x: excess(math.exp(x)), math.log(least), math.log(p), xtol=1e-14))
    most = 1 - 2.0**-53
    if k < n and excess(most) > 0:
        high = brentq(excess, p, most, xtol=1e-16)
    return low, high


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(0.5, 100), st.sampled_from([0.01, 0.3, 1.0]))
def test_ends_of_seen_successors_against_a_root_finder(n, share, budget, weight):
    k = max(1, round(share * n))
    got = _kernels.weighted_kl_ends(float(k), float(n), budget, weight)
    low, high = ends_by_bracketing(k, n, budget, weight)
    assert got == pytest.approx((low, high), abs=1e-8)
    assert got[0] <= low + 1e-11
    assert got[1] >= high - 1e-11
    assert 0 <= got[0] <= k / n <= got[1] <= 1


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(0.5, 100), st.floats(0, 20), st.floats(0, 1))
def test_ends_grow_with_the_budget_and_cover_those_without_a_weight(n, share, budget, more, weight):
    k = max(1, round(share * n))
    low, high = _kernels.weighted_kl_ends(float(k), float(n), budget, weight)
    wider = _kernels.weighted_kl_ends(float(k), float(n), budget + more, weight)
    assert wider[0] <= low + 1e-11
    assert wider[1] >= high - 1e-11
    plain = 1 - _kernels.kl_upper(float(n - k), float(n), budget), _kernels.kl_upper(float(k), float(n), budget)
    assert low <= plain[0] + 1e-9
    assert high >= plain[1] - 1e-9
    relaxed = _kernels.kl_upper(float(k), float(n), budget + weight * math.log(n / k))  # log(1/q) <= log(1/p_hat) there
    assert high <= relaxed + 1e-9


@settings(deadline=None)
@given(st.integers(1, 10**6), st.floats(0.1, 100))
def test_closed_forms_of_the_ends(n, budget):
    """A successor seen once may have any small probability; one always seen has p^(n - 1) >= exp(-budget) only."""
    low, high = _kernels.weighted_kl_ends(1.0, float(n), budget, 1.0)
    assert low == 0
    if n > 1:  # n log(1/n) .. - (n - 1) log(1 - q) <= budget
        inside = budget + math.log(n) - (n - 1) * math.log1p(-1 / n)
        assert high == pytest.approx(-math.expm1(-inside / (n - 1)), rel=1e-9)
        low, high = _kernels.weighted_kl_ends(float(n), float(n), budget, 1.0)
        assert (low, high) == (pytest.approx(math.exp(-budget / (n - 1)), rel=1e-9), 1)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.integers(0, 4))
def test_the_weighted_sum_of_the_mixtures_is_a_martingale(weights, n):
    """The mean over all sequences of n visits, with the Beta(1/2, 1/2) mixture in rational numbers, is one."""

    def mixture(k):  # prod of (1/2 + i) over the ones and over the zeros, over n!
        parts = [Fraction(2 * i + 1, 2) for i in range(k)] + [Fraction(2 * i + 1, 2) for i in range(n - k)]
        return math.prod(parts, start=Fraction(1)) / math.factorial(n)

    p = [Fraction(w, sum(weights) + 1) for w in weights]  # the rest: successors too many to list, as one
    p.append(1 - sum(p))
    mean = Fraction(0)
    for sequence in itertools.product(range(len(p)), repeat=n):
        value = Fraction(0)
        for x, q in enumerate(p):
            k = sequence.count(x)
            value += q * mixture(k) / (q**k * (1 - q) ** (n - k))
        mean += math.prod((p[x] for x in sequence), start=Fraction(1)) * value
    assert mean == 1


@pytest.mark.parametrize("n", [1, 2, 3, 10, 99, 1000, 10**5])
def test_the_mixture_costs_half_a_logarithm_at_most(n):
    """max_k of the likelihood at k/n over that of the Beta(1/2, 1/2) mixture is at most sqrt(pi n + 1)."""
    k = np.unique(np.linspace(0, n, 2001).astype(np.int64)).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.nan_to_num(k * np.log(k / n)) + np.nan_to_num((n - k) * np.log1p(-k / n))
    mixture = gammaln(k + 0.5) + gammaln(n - k + 0.5) - math.log(math.pi) - gammaln(n + 1)
    assert np.all(best - mixture <= 0.5 * math.log(math.pi * n + 1) + 1e-9)


# Levels


def test_levels_of_all_rows_sum_to_less_than_delta():
    model = unknown(random_model(0), rank=[3, 1, 6, 2, 5, 4])
    logs = row_logarithms(model)
    for row, log in enumerate(logs):
        s, _ = model.rows.pair(row)
        A, i = int(np.diff(model.rows.ptr)[s]), int(model.rank[s])
        assert log == pytest.approx(math.log(A * i * (i + 1)))
    assert np.exp(-logs).sum() == pytest.approx(1 - 1 / 7)
    rows = np.array([5, 0, 3])
    np.testing.assert_array_equal(row_logarithms(model, rows), logs[rows])


@pytest.mark.parametrize(("delta", "scale"), [(0.1, 1.0), (0.02, 0.1), (0.3, 2.0)])
def test_kl_sets_have_the_stated_ends_and_caps(delta, scale):
    model = unknown(random_model(1), rank=[3, 1, 6, 2, 5, 4])
    sets = gosprl.KL(delta, scale).intervals(model)
    ptr, _, count, first = model.stored()
    seen = 0
    for row, N in enumerate(model.visits.tolist()):
        piece, log = np.s_[ptr[row] : ptr[row + 1]], row_logarithms(model)[row]
        if N == 0:
            assert (sets.each[row], sets.total[row]) == (1, 1)
            continue
        budget = scale * (log - math.log(UNLIMITED_SHARES[0] * delta) + 0.5 * math.log(math.pi * N + 1))
        for k, low, high in zip(count[piece].tolist(), sets.lower[piece], sets.upper[piece], strict=True):
            assert (low, high) == pytest.approx(ends_by_bracketing(k, N, budget, min(scale, 1)), abs=1e-9)
            seen += 1
        waits = np.append(first[piece][1:] - 1, N) - first[piece]
        least = min(
            ((math.log(i * (i + 1)) + log - math.log(UNLIMITED_SHARES[1] * delta)) / wait if wait else math.inf)
            for i, wait in enumerate(waits.tolist(), 1)
        )
        assert sets.total[row] == pytest.approx(1 - math.exp(-scale * least), rel=1e-12)
        assert sets.each[row] == sets.total[row]
    assert seen > 20


@pytest.mark.parametrize(("delta", "scale"), [(0.1, 1.0), (0.3, 0.05)])
def test_bernstein_sets_have_the_stated_ends(delta, scale):
    model = unknown(random_model(2, n=30_000), rank=[3, 1, 6, 2, 5, 4])
    sets = gosprl.Bernstein(delta, scale).intervals(model)
    ptr, _, count, first = model.stored()
    up, down, _ = (share * delta for share in SHARES)

    def radius(p, n, L):
        return scale * (2 * math.sqrt(p * (1 - p) * L / n) + 6 * L / n)

    some = 0
    for row, N in enumerate(model.visits.tolist()):
        cases = math.exp(row_logarithms(model)[row])
        for j, slot in enumerate(range(ptr[row], ptr[row + 1]), 1):
            p, n = count[slot] / N, int(N - first[slot])
            upper = min(1, p + radius(p, N, 0.5 * math.log(5 * N**2 * cases / (up * p))))
            lower = 0.0
            if n > 0:
                p_later = (count[slot] - 1) / n
                L = 0.5 * math.log(5 * n**2 * j * (j + 1) * cases / down)
                lower = min(max(0, p_later - radius(p_later, n, L)), p)
            assert (sets.lower[slot], sets.upper[slot]) == pytest.approx((lower, upper), rel=1e-9, abs=1e-12)
            some += lower > 0 and upper < 1
    assert some > 10
    caps = gosprl.KL(delta * SHARES[2] / UNLIMITED_SHARES[1], scale).intervals(model).total
    np.testing.assert_allclose(sets.total, caps, rtol=1e-12)
    np.testing.assert_array_equal(sets.each, sets.total)


# Brute force


def failure_probability(family, p, n, violates):
    """Return the probability that one pair's set is wrong after 1, 2, .. or n visits, over all sequences."""
    failed = 0.0
    stack = [((), 1.0)]
    while stack:
        samples, weight = stack.pop()
        if samples and violates(family.intervals(unknown(sampled(list(samples), states=len(p))), np.array([0])), p):
            failed += weight
        elif len(samples) < n:
            stack += [((*samples, x), weight * q) for x, q in enumerate(p)]
    return failed


def cap_is_wrong(sets, p):
    return 1 - sum(p[x] for x in sets.succ) > sets.total[0] + 1e-12


def end_is_wrong(sets, p):
    entries = zip(sets.succ, sets.lower, sets.upper, strict=True)
    return any(not low - 1e-12 <= p[x] <= high + 1e-12 for x, low, high in entries)


@pytest.mark.parametrize("p", [(0.6, 0.4), (0.5, 0.3, 0.2), (0.75, 0.25), (0.34, 0.33, 0.33)])
@pytest.mark.parametrize("delta", [0.9, 0.5])
def test_exact_failure_probabilities_are_within_the_levels(p, delta):
    """All sequences of visits of a row of the first state, whose level is delta / 2; caps and ends have shares."""
    level, n = delta / 2, 7 if len(p) < 3 else 6
    caps = failure_probability(gosprl.KL(delta), p, n, cap_is_wrong)
    assert caps <= UNLIMITED_SHARES[1] * level
    assert failure_probability(gosprl.KL(delta), p, n, end_is_wrong) <= UNLIMITED_SHARES[0] * level
    assert failure_probability(gosprl.Bernstein(delta), p, n, end_is_wrong) <= (SHARES[0] + SHARES[1]) * level


def test_exact_failure_probabilities_reject_sets_that_are_too_narrow():
    p, level = (0.5, 0.3, 0.2), 0.45
    assert failure_probability(gosprl.KL(0.9, 0.3), p, 6, cap_is_wrong) > UNLIMITED_SHARES[1] * level
    assert failure_probability(gosprl.KL(0.9, 0.2), p, 6, end_is_wrong) > UNLIMITED_SHARES[0] * level


def in_order(model, row):
    """Return samples of a row with the model's counts, in which its successors first appear when they did."""
    _, succ, count, first = model.stored(np.array([row]))
    samples = np.full(count.sum(), succ[0] if len(succ) else 0)
    samples[first - 1] = succ
    rest = np.delete(np.arange(len(samples)), first - 1)
    samples[rest[::-1]] = np.repeat(succ[::-1], count[::-1] - 1)  # late ones last, after they appeared
    return samples.tolist()


# A bound on the number of states; certain rows; what reads the sets


@families
def test_a_bound_counts_as_the_number_of_outcomes(family, monkeypatch):
    """The same as a table with that many states and pairs, but one unseen successor gets as much as all of them."""
    for seed in range(5):
        model = random_model(seed)
        few, exists = bounded(model, 9), np.ones((19, 2), dtype=bool)
        exists[:6] = model.rows.to_dense(np.ones(len(model.rows), dtype=bool))
        table = gosprl.EmpiricalModel.from_counts([], [], [], [], states=19, actions=exists)
        for row in range(len(model.rows)):
            pair = model.rows.pair(row)
            for x in in_order(model, row):
                table.update(*pair, x)
        got = family(0.1).intervals(few)
        with monkeypatch.context() as patch:
            patch.setattr(gosprl.EmpiricalModel, "num_pairs_bound", 19)
            expected = family(0.1).intervals(table, np.arange(len(model.rows)))
        for name in ("ptr", "succ", "lower", "upper"):
            np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))
        if family is gosprl.Bernstein:  # the table says the same of one at a time
            np.testing.assert_array_equal(got.total, np.minimum(1, (19 - np.diff(got.ptr)) * expected.each))
        else:
            np.testing.assert_array_equal(got.total, expected.total)
        np.testing.assert_array_equal(got.each, got.total)
        slack = certificates.slack(few, family(0.1), np.arange(len(model.rows)))
        np.testing.assert_array_equal(slack.extra, got.total)


@families
def test_a_table_has_the_sets_it_always_had(family):
    """To the last bit: through the kernel with the arguments that a table has always given it."""
    for seed in range(20):
        model = random_model(seed, S=1 + seed % 7, n=50 * (seed + 1))
        S, P = model.num_states, len(model.rows)
        assert (model.num_outcomes, model.num_pairs_bound, model.certain.any()) == (S, P, False)
        sets = family(0.1).intervals(model)
        if family is gosprl.KL:
            ptr, succ, count, first = model.stored()
            logs = [math.log(P * S / (0.25 * 0.1)), *(math.log(P / (share * 0.1)) for share in (0.05, 0.05, 0.65))]
            out = *np.empty((2, len(succ))), *np.empty((2, P))
            table = np.full((129, 129), -1.0)
            _kernels.kl_intervals(ptr, count, first, np.array(model.visits), S, False, *logs, 1.0, table, *out)
            for name, expected in zip(FIELDS[2:], out, strict=True):
                np.testing.assert_array_equal(getattr(sets, name), expected)
        if family is gosprl.Bernstein:
            np.testing.assert_array_equal(sets.total, 1)


@families
@pytest.mark.parametrize("kind", ["unknown", "bounded"])
def test_certain_rows_are_one_point_and_some_rows_are_as_among_all(family, kind):
    model = random_model(3, A=1)
    model.update(0, 0, 5)
    model = unknown(model) if kind == "unknown" else bounded(model, 9)
    model.certain = np.arange(6) == 4
    counts = model.counts
    for visits in (int(counts.visits[4]), 0):  # a final state may be planned with before its first reset
        counts.visits[4], counts.length[4] = visits, 1
        counts.number[counts.start[4]] = visits
        sets = family(0.1).intervals(model)
        piece = np.s_[sets.ptr[4] : sets.ptr[5]]
        assert (sets.lower[piece].tolist(), sets.upper[piece].tolist()) == ([1], [1])
        assert sets.each[4] == sets.total[4] == 0
        assert np.all(sets.total[[0, 1]] > 0)
        rows = np.array([5, 4, 0])
        some = family(0.1).intervals(model, rows)
        np.testing.assert_array_equal(some.total, sets.total[rows])
        np.testing.assert_array_equal(some.lower[some.ptr[1] : some.ptr[2]], [1])


@families
@pytest.mark.parametrize("S", [1, 6])
def test_plans_and_certificates_take_the_sets(family, S):
    model = unknown(random_model(4, S=S))
    plan = gosprl.plan(model, [0], confidence=family(0.1))
    assert np.all(np.isfinite(plan.values))
    visited = np.flatnonzero(model.visits > 0)
    slack = certificates.slack(model, family(0.1), visited)
    np.testing.assert_array_equal(slack.extra, family(0.1).intervals(model, visited).total)
    assert np.all(certificates.model_errors(slack, "l1") <= 2)


def test_the_kl_ends_are_within_the_radius_of_the_page():
    """Every member is within sqrt(2 V x / N) + (4 x / 3 + 1) / N of the frequency, x = log(N / level) + ..."""
    for N, level in itertools.product((1, 2, 3, 10, 100, 10**4, 10**7), (0.5, 0.01, 1e-9)):
        k = np.unique(np.geomspace(1, N, 60).astype(np.int64))
        k = np.union1d(k, N + 1 - k)
        plain = -math.log(level) + 0.5 * math.log(math.pi * N + 1)
        ends = np.array([_kernels.weighted_kl_ends(float(i), float(N), plain, 1.0) for i in k])
        p, x = k / N, plain + math.log(N)
        radius = np.sqrt(2 * p * (1 - p) * x / N) + (4 * x / 3 + 1) / N
        assert np.all(np.abs(ends - p[:, None]) <= radius[:, None] + 1e-12)


# Optimism


def test_plans_are_optimistic_if_a_goal_stands_for_the_undiscovered_states():
    """The truth: 0 and 2 lead to either, to the goal 1, or to an undiscovered state, one step from the goal.

    Without that goal the unseen mass has no place, since all discovered states were seen, and the plan is no bound.
    """
    samples, goal, hidden = [0, 2, 1] + [0] * 29 + [2] * 28, 0.17, 0.05
    true_steps = (1 + hidden) / (goal + hidden)
    family = gosprl.KL(0.1)
    plans = []
    for states, goals in ((3, [1]), (4, [1, 3])):
        s = np.repeat([0, 2], len(samples))
        model = gosprl.EmpiricalModel.from_transitions(s, 0 * s, samples + samples, states=states, actions=1)
        model = unknown(model, [1, 3, 2, 4][:states])
        sets = family.intervals(model, np.array([0, 2]))
        truth = np.tile([(1 - goal - hidden) / 2, (1 - goal - hidden) / 2, goal], 2)
        assert np.all((sets.lower <= truth) & (truth <= sets.upper) & (hidden <= sets.total[0]))
        plans.append(gosprl.plan(model, goals, confidence=family).values[0])
    assert plans[1] < true_steps < plans[0]


class Names:
    """Two rooms; the more rooms were seen, the more doors have names."""

    def __init__(self, doors):
        self.doors = doors

    def reset(self, *, seed=None, options=None):
        self.rng = np.random.default_rng(seed)
        return 0, {}

    def step(self, action):
        return int(self.rng.integers(self.doors // 4)), 0.0, False, False, {}


@pytest.mark.parametrize("doors", [8, 12])
def test_levels_are_shared_by_as_many_actions_as_there_is_room_for_at_first(doors):
    def offered(room):
        return [f"door {i}" for i in range(4 * room, 4 * room + 4)]

    names = [f"door {i}" for i in range(doors)]
    result = gosprl.collect(Names(doors), 20, seed=0, max_steps=400, actions=offered)
    assert len(result.model.actions) == doors
    if doors > 8:
        assert result.guarantee.level is None
        assert str(result.guarantee) == (
            "heuristic: 12 actions were named on the way, and levels are those of 8; give actions= the list of all"
        )
    else:
        assert result.guarantee.level == 0.1
    listed = gosprl.collect(Names(doors), 20, seed=0, max_steps=400, actions=names)
    assert listed.guarantee.level == 0.1
