"""Confidence sets against the printed formulas, evaluated one number at a time, and against a root finder."""

import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
import warmed
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

import gosprl
from gosprl import _kernels
from gosprl.sets.families import FAMILIES

FIELDS = ("ptr", "succ", "lower", "upper", "each", "total")
families = pytest.mark.parametrize("family", [gosprl.Bernstein, gosprl.KL])


def kl_lower(k, n, budget):
    """Lower end of {q : n kl(k/n, q) <= budget}, by symmetry."""
    return 1 - _kernels.kl_upper(n - k, n, budget)


def random_samples(rng, S=5, A=2, n=200):
    """Transitions (s, a, s_next) in order, some pairs never tried, and which pairs exist."""
    exists = rng.random((S, A)) < 0.8
    exists[:, 0] = True
    pairs = np.argwhere(exists)
    tried = pairs[rng.choice(len(pairs), size=max(1, len(pairs) - 2), replace=False)]
    likely = rng.dirichlet(np.full(S, 0.5), size=(S, A))
    s, a = tried[rng.integers(len(tried), size=n)].T
    s_next = np.array([rng.choice(S, p=likely[pair]) for pair in zip(s, a, strict=True)])
    return s, a, s_next, exists


def random_model(rng, **options):
    s, a, s_next, exists = random_samples(rng, **options)
    return gosprl.EmpiricalModel.from_transitions(s, a, s_next, states=len(exists), actions=exists)


def as_dicts(intervals):
    """Each row as {successor: (lower, upper)}, each, total."""
    pieces = [slice(*ends) for ends in zip(intervals.ptr[:-1], intervals.ptr[1:], strict=True)]
    parts = [(intervals.succ[p].tolist(), intervals.lower[p], intervals.upper[p]) for p in pieces]
    seen = [{x: (lo, up) for x, lo, up in zip(*part, strict=True)} for part in parts]
    return list(zip(seen, intervals.each, intervals.total, strict=True))


def assert_same_sets(one, other):
    """The same rows, whatever the order of their successors."""
    assert as_dicts(one) == as_dicts(other)


def kl(p, q):
    """Kullback-Leibler divergence of a coin p from a coin q."""
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def kl_at_distance(p, d):
    """The same from a coin p - d, without loss of digits where d is small."""
    return -p * math.log1p(-d / p) - (1 - p) * math.log1p(d / (1 - p))


def kl_ends(k, n, budget):
    """The two q with n kl(k/n, q) = budget, by bracketing; closed forms where the coin always fell on one side."""

    def low(k):
        if k in (0, n):
            return 0.0 if k == 0 else math.exp(-budget / n)
        p = k / n
        if n * kl(p, p / 2) > budget:  # q is near p: find how near
            return p - brentq(lambda d: n * kl_at_distance(p, d) - budget, 0, p / 2, xtol=1e-18, rtol=1e-15)
        least = max(math.log(p) - (budget / n + math.log(2)) / p, -690)  # there p log(p/q) alone is too much
        return math.exp(brentq(lambda x: n * kl(p, math.exp(x)) - budget, least, math.log(p / 2), xtol=1e-15))

    return low(k), 1 - low(n - k)


# Bernstein


@pytest.mark.parametrize(
    ("delta", "scale", "linear"),
    [(0.1, 1.0, None), (0.01, 0.1, None), (0.5, 0.003, None), (0.1, 0.1, 0.01), (0.1, 0.1, 0.7)],
)
def test_bernstein_is_the_printed_radius(delta, scale, linear):
    model = random_model(np.random.default_rng(1), n=3000)
    S, A = 5, 2
    rows = as_dicts(gosprl.Bernstein(delta, scale, linear).intervals(model))
    linear = scale if linear is None else linear
    tried = 0
    for row, (seen, each, total) in enumerate(rows):
        states, frequencies = model.p_hat(*model.rows.pair(row))
        assert sorted(seen) == states.tolist()
        assert total == 1
        N = int(model.visits[row])
        if N == 0:
            assert each == 1
            continue
        tried += 1
        L = math.log(2 * S * A * N / delta)
        assert each == pytest.approx(min(1, linear * 6 * L / N), rel=1e-12)
        for x, p in zip(states.tolist(), frequencies, strict=True):
            radius = scale * 2 * math.sqrt(p * (1 - p) * L / N) + linear * 6 * L / N
            assert seen[x] == pytest.approx((max(0, p - radius), min(1, p + radius)), rel=1e-12, abs=1e-15)
    assert tried > 4


# KL


@settings(deadline=None)  # the first call may compile
@given(st.integers(1, 10**7), st.floats(0, 1), st.floats(0.1, 200))
def test_kl_ends_against_a_root_finder(n, share, budget):
    """Budgets from 0.1: at scale 1 they are above 3, and far smaller ones drown in the rounding of kl at large n."""
    k = round(share * n)
    low, high = kl_ends(k, n, budget)
    got_low, got_high = kl_lower(k, n, budget), _kernels.kl_upper(k, n, budget)
    assert (got_low, got_high) == pytest.approx((low, high), rel=0, abs=1e-9)
    # rounding may only widen
    assert got_low <= low + 1e-12
    assert got_high >= high - 1e-12
    assert 0 <= got_low <= k / n <= got_high <= 1


@settings(deadline=None)
@given(st.integers(1, 10**6), st.floats(1e-3, 200))
def test_kl_ends_where_all_or_nothing_was_seen(n, budget):
    assert kl_lower(0, n, budget) == 0
    assert _kernels.kl_upper(n, n, budget) == 1
    assert _kernels.kl_upper(0, n, budget) == pytest.approx(-math.expm1(-budget / n), rel=1e-14)
    assert kl_lower(n, n, budget) == pytest.approx(math.exp(-budget / n), rel=0, abs=1e-15)


@settings(deadline=None)
@given(st.integers(10**8, 10**16), st.floats(1e-6, 1 - 1e-6), st.floats(1e-4, 10))
def test_kl_ends_of_very_many_visits_are_not_too_narrow(n, share, budget):
    """Where kl is a rounding error: to second order, the ends are sqrt(2 p (1 - p) budget / n) from p."""
    k = round(share * n)
    p, x = k / n, budget / n
    width = math.sqrt(2 * p * (1 - p) * x)
    low, high = kl_lower(k, n, budget), _kernels.kl_upper(k, n, budget)
    assert (low, high) == pytest.approx((p - width, p + width), rel=0, abs=0.01 * width + 2 * x + 1e-15)


@settings(deadline=None)
@given(st.integers(2, 10**6), st.floats(0, 1), st.floats(1e-3, 100), st.floats(0, 20))
def test_a_larger_budget_gives_a_wider_set(n, share, budget, more):
    k = round(share * n)
    rounding = 1e-14 + 1e-15 / math.sqrt(budget / n)  # of the divergence, over its slope, at least 2 sqrt(budget / n)
    assert kl_lower(k, n, budget + more) <= kl_lower(k, n, budget) + rounding
    assert _kernels.kl_upper(k, n, budget + more) >= _kernels.kl_upper(k, n, budget) - rounding


@pytest.mark.parametrize(("delta", "scale"), [(0.1, 1.0), (0.02, 0.1)])
def test_kl_sets_have_the_stated_budget(delta, scale):
    model = random_model(np.random.default_rng(8), n=1000)
    S, P = 5, 9
    assert len(model.rows) == P  # one action of ten does not exist
    rows = as_dicts(gosprl.KL(delta, scale).intervals(model))
    for row, (seen, each, _) in enumerate(rows):
        N = int(model.visits[row])
        if N == 0:
            continue
        budget = scale * (math.log(S * P / (delta / 4)) + 0.5 * math.log(math.pi * N + 1))
        states, frequencies = model.p_hat(*model.rows.pair(row))
        level = P / (delta / 20)
        least = 1 - level ** (-1 / N)
        assert each == pytest.approx(1 - (level / least) ** (-scale / N), abs=1e-12)
        for x, p in zip(states.tolist(), frequencies, strict=True):
            assert seen[x] == pytest.approx(kl_ends(round(p * N), N, budget), abs=1e-9)


# Unseen successors


@given(st.integers(1, 10**6), st.floats(math.log(20), 40))
def test_one_unseen_successor_gets_what_the_martingale_allows_or_little_more(n, log_level):
    """Which is the p for which p / (1 - p)^n reaches the level, found by bracketing log(1 / (1 - p))."""
    most = (log_level + 60) / n
    root = brentq(lambda x: math.log(-math.expm1(-x)) + n * x - log_level, 1e-20, most, xtol=1e-18, rtol=1e-14)
    exact = -math.expm1(-root)
    end = _kernels.unseen_end(n, log_level, 1.0)
    assert exact * (1 - 1e-12) <= end <= 1
    assert end <= 1.2 * exact


@given(st.integers(1, 10**6), st.floats(math.log(20), 40), st.floats(0, 9), st.floats(1e-3, 1), st.floats(0, 3))
def test_the_end_of_the_unseen_grows_with_the_level_and_the_scale(n, log_level, more, scale, further):
    end = _kernels.unseen_end(n, log_level, scale)
    assert end <= _kernels.unseen_end(n, log_level + more, scale) * (1 + 1e-12)
    assert end <= _kernels.unseen_end(n, log_level, scale + further) * (1 + 1e-12)


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=4), st.integers(0, 3))
def test_the_weighted_waits_of_the_unseen_are_a_martingale(weights, n):
    """The mean over all sequences of n visits, in rational numbers, is one."""
    p = [Fraction(w, sum(weights)) for w in weights]
    mean = Fraction(0)
    for sequence in itertools.product(range(len(p)), repeat=n):
        value = sum(p[x] / (1 - p[x]) ** n for x in range(len(p)) if x not in sequence)
        mean += math.prod(p[x] for x in sequence) * value
    assert mean == 1


def caps_now(S, P, delta, scale, successors):
    """The two bounds on the unseen mass after the given samples of one pair, from the samples alone."""
    n, k = len(successors), len(set(successors))
    tau = next(t for t in range(1, n + 1) if len(set(successors[:t])) == k)
    logs = [math.log(P / (share * delta)) + math.log(k * (k + 1)) for share in (0.05, 0.65)]
    first = 1 - math.exp(-scale * (math.log(math.comb(S, k)) + logs[0]) / n)
    second = 1 - math.exp(-scale * logs[1] / (n - tau)) if n > tau else math.inf
    return first, second


@pytest.mark.parametrize(("delta", "scale"), [(0.1, 1.0), (0.3, 0.05)])
def test_caps_are_the_least_that_was_ever_known(delta, scale):
    """One pair is sampled; the others exist, so that P counts them."""
    S, P = 6, 7
    exists = np.arange(2) < 1 + (np.arange(S)[:, None] == 0)
    fell = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        samples = rng.choice(S, size=60, p=rng.dirichlet(np.full(S, 0.3))).tolist()
        model = gosprl.EmpiricalModel(S, exists)
        least = math.inf
        for t in range(1, 61):
            model.update(0, 1, samples[t - 1])
            now = min(caps_now(S, P, delta, scale, samples[:t]))
            fell += now > least
            least = min(least, now)
            assert gosprl.KL(delta, scale).intervals(model).total[1] == pytest.approx(least, rel=1e-11)
    assert fell > 10  # so that the memory mattered


def test_counts_without_order_know_only_the_cap_of_the_present():
    samples = [0] * 20 + [1, 2]
    first = caps_now(4, 4, 0.1, 1.0, samples)[0]
    model = gosprl.EmpiricalModel.from_counts([0] * 3, [0] * 3, [0, 1, 2], [20, 1, 1], states=4, actions=1)
    assert gosprl.KL(0.1).intervals(model).total[0] == pytest.approx(first, rel=1e-12)
    ordered = gosprl.EmpiricalModel.from_transitions([0] * 22, [0] * 22, samples, states=4, actions=1)
    earlier = min(bound for t in range(1, 23) for bound in caps_now(4, 4, 0.1, 1.0, samples[:t]))
    assert earlier < first  # nothing else for twenty visits says more than three successors in twenty-two
    assert gosprl.KL(0.1).intervals(ordered).total[0] == pytest.approx(earlier, rel=1e-12)


def test_counts_without_order_then_samples():
    """What is learnt after the counts were given is used: the wait since then, and the present."""
    before, after = [0] * 30 + [1] * 10, [2] + [0] * 50
    model = gosprl.EmpiricalModel.from_counts([0, 0], [0, 0], [0, 1], [30, 10], states=4, actions=1)
    model.update([0] * 51, [0] * 51, after)
    at_counts = caps_now(4, 4, 0.1, 1.0, before)[0]
    later = [bound for t in range(1, 52) for bound in caps_now(4, 4, 0.1, 1.0, before + after[:t])]
    assert gosprl.KL(0.1).intervals(model).total[0] == pytest.approx(min(at_counts, *later), rel=1e-12)


# Successors known


def closed_model(rng, S=5, A=2, n=300):
    """A model that knows what is possible: 1 to S candidates a pair, of which the last was never seen.

    Returns it with its possible transitions [R, S]; some pairs were never tried.
    """
    exists = rng.random((S, A)) < 0.8
    exists[:, 0] = True
    R = exists.sum()
    possible = np.array([rng.permutation(S) < size for size in rng.integers(1, S + 1, R)])
    s, a = np.argwhere(exists).T
    row = rng.integers(2, R, size=n)
    likely = [p / p.sum() for p in possible * rng.random((R, S))]
    for p in likely:
        if np.count_nonzero(p) > 1:
            p[np.flatnonzero(p)[-1]] = 0
    s_next = [rng.choice(S, p=likely[r] / likely[r].sum()) for r in row]
    mask = np.zeros((S, A, S), dtype=bool)
    mask[exists] = possible
    options = {"states": S, "actions": exists, "successors": mask}
    return gosprl.EmpiricalModel.from_transitions(s[row], a[row], s_next, **options), possible


def check_closed(family, ends):
    """Every set is one over the candidates, with ends(M, N, count) where there are two or more, and it was visited."""
    kinds = set()
    for seed in range(6):
        model, possible = closed_model(np.random.default_rng(seed))
        M = int(possible.sum())
        for row, (seen, each, total) in enumerate(as_dicts(family.intervals(model))):
            assert (each, total) == (0, 0)
            assert sorted(seen) == np.flatnonzero(possible[row]).tolist()
            N, count = int(model.visits[row]), dict.fromkeys(seen, 0)
            count.update(zip(*(part.tolist() for part in model.p_hat(*model.rows.pair(row))), strict=True))
            kinds.add((len(seen) == 1, N == 0))
            for x, interval in seen.items():
                expected = (1, 1) if len(seen) == 1 else (0, 1) if N == 0 else ends(M, N, round(N * count[x]))
                assert interval == pytest.approx(expected, abs=1e-9)
    assert len(kinds) == 4


@pytest.mark.parametrize(("delta", "scale"), [(0.1, 1.0), (0.02, 0.1)])
def test_kl_sets_over_candidates(delta, scale):
    def ends(M, N, count):
        return kl_ends(count, N, scale * (math.log(M / delta) + 0.5 * math.log(math.pi * N + 1)))

    check_closed(gosprl.KL(delta, scale), ends)


@pytest.mark.parametrize(("delta", "scale"), [(0.1, 1.0), (0.9, 0.1), (0.02, 1e-3)])
def test_bernstein_sets_over_candidates(delta, scale):
    """The level: an entry may leave the set at visit N with probability 3 exp(-2 L), over M entries and all N."""

    def ends(M, N, count):
        L, p = math.log(5 * M * N**2 / delta) / 2, count / N
        radius = scale * (2 * math.sqrt(p * (1 - p) * L / N) + 6 * L / N)
        assert 3 * math.exp(-2 * L) * M * N**2 * math.pi**2 / 6 == pytest.approx(0.98696 * delta, rel=1e-5)
        return max(0, p - radius), min(1, p + radius)

    check_closed(gosprl.Bernstein(delta, scale), ends)


@families
def test_knowing_the_candidates_narrows_what_is_said_of_the_seen(family):
    narrower = 0
    for seed in range(6):
        closed, _ = closed_model(np.random.default_rng(seed), n=5000)
        exists = closed.rows.to_dense(np.ones(len(closed.rows), dtype=bool))
        wide = gosprl.EmpiricalModel.from_counts(*closed.transitions(), states=5, actions=exists)
        pairs = zip(as_dicts(family().intervals(closed)), as_dicts(family().intervals(wide)), strict=True)
        for (inner, *_), (outer, *_) in pairs:
            for x, (low, high) in outer.items():
                lower, upper = inner[x]
                assert lower >= low
                assert upper <= high
                narrower += upper - lower < high - low
    assert narrower > 80


@families
def test_some_rows_of_a_closed_model_are_the_same_as_among_all(family):
    model, _ = closed_model(np.random.default_rng(4))
    everything = as_dicts(family().intervals(model))
    rows = np.random.default_rng(0).permutation(len(model.rows))
    assert as_dicts(family().intervals(model, rows)) == [everything[row] for row in rows]


@pytest.mark.parametrize("closed", [False, True])
def test_ends_from_the_table_are_those_computed(closed, monkeypatch):
    """Asked twice, so that the table is filled and read; for visits below and beyond what it holds; to the last bit."""
    counts = [(n, k) for n in (1, 2, 7, 127, 128, 129, 400) for k in {0, 1, n // 3, n - 1, n}]
    models = []
    for n, k in counts:
        parts = ([0, 0], [0, 0], [0, 1], [k, n - k])
        successors = np.ones((3, 3), dtype=bool) if closed else None
        models.append(gosprl.EmpiricalModel.from_counts(*parts, states=3, actions=1, successors=successors))
    for family in (gosprl.KL(0.1), gosprl.KL(0.1, 0.03), gosprl.KL(0.03)):
        tabulated = [as_dicts(family.intervals(model)) for _ in range(2) for model in models]
        monkeypatch.setattr("gosprl.sets.kl._kl_table", lambda log_kl, scale: np.empty((0, 0)))
        assert tabulated == 2 * [as_dicts(family.intervals(model)) for model in models]
        monkeypatch.undo()
        for (n, k), (row, *_) in zip(counts, tabulated[: len(counts)], strict=True):
            level = math.log(9 / (family.delta if closed else family.delta * 0.25))
            budget = family.scale * (level + 0.5 * math.log(math.pi * n + 1))
            if k:
                ends = kl_lower(k, n, budget), _kernels.kl_upper(k, n, budget)
                assert row[0][0] == ends


HUGE_COUNTS = """
import sys
import warnings

import numpy as np

import gosprl

warnings.simplefilter("error")
family = getattr(gosprl, sys.argv[1])()
for n, many in [(31 * 10**8, 10**9), (2**31, 2**32), (2**61, 2**60), (2**62 - 10**5, 7 * 10**4)]:
    count = np.array([n, many // 7 * 4, many // 7 * 3])
    model = gosprl.EmpiricalModel.from_counts([0, 1, 1], [0, 0, 0], [1, 0, 1], count, states=3, actions=1)
    sets, p_hat = family.intervals(model), [1.0, 4 / 7, 3 / 7]
    assert np.all((sets.lower <= p_hat) & (p_hat <= sets.upper)), sets
    assert np.all(sets.upper - sets.lower < 100 / np.sqrt(count)), sets
    assert abs(gosprl.plan(model, [0], confidence=family).values[1] - 7 / 4) < 100 / np.sqrt(many)
print("done")
"""


@families
def test_numbers_of_visits_whose_squares_are_no_int64(family):
    """In a process of its own: an index that wraps around reads memory that is not there."""
    command = [sys.executable, "-c", HUGE_COUNTS, family.__name__]
    done = warmed.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_families_stay_values():
    """What a family has looked up does not make it another one."""
    one, other = gosprl.KL(0.1, 0.5), gosprl.KL(0.1, 0.5)
    one.intervals(random_model(np.random.default_rng(0)))
    assert one == other
    assert hash(one) == hash(other)
    assert one != gosprl.KL(0.1, 0.6)


# All families


def test_reference_intervals(reference_plans, monkeypatch):
    """The reference gives half of delta to kl's ends, and bounds one unseen successor in another way."""
    monkeypatch.setattr("gosprl.sets.kl.SHARES", (0.5, 0.1, 0.2, 0.2))
    checked = 0
    for instance in reference_plans:
        S, A = instance["states"], instance["actions"]
        counts = np.array(instance["counts"]).reshape(S, A, S)
        s, a, x = np.nonzero(counts)
        model = gosprl.EmpiricalModel.from_counts(s, a, x, counts[s, a, x], states=S, actions=A)
        family = FAMILIES[instance["family"]](instance["delta"], instance["scale"])
        for row, (seen, each, _) in enumerate(as_dicts(family.intervals(model))):
            pair = model.rows.pair(row)
            lower, upper = (np.array(instance[end])[pair] for end in ("lower", "upper"))
            for x in range(S) if instance["family"] == "bernstein" else seen:
                assert seen.get(x, (0, each)) == pytest.approx((lower[x], upper[x]), rel=0, abs=1e-9)
                checked += 1
    assert checked > 500


@families
def test_a_pair_never_visited_allows_everything(family):
    model = gosprl.EmpiricalModel.from_transitions([0], [0], [1], states=3, actions=2)
    rows = as_dicts(family().intervals(model))
    assert rows[1:] == [({}, 1.0, 1.0)] * 5
    assert list(rows[0][0]) == [1]


@families
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-9])
def test_frequencies_are_always_inside(family, scale):
    for seed in range(20):
        model = random_model(np.random.default_rng(seed), n=300)
        for row, (seen, each, total) in enumerate(as_dicts(family(0.1, scale).intervals(model))):
            states, frequencies = model.p_hat(*model.rows.pair(row))
            for x, p in zip(states.tolist(), frequencies, strict=True):
                lower, upper = seen[x]
                assert 0 <= lower <= p <= upper <= 1
            assert 0 < each <= 1
            assert 0 < total <= 1


@families
def test_a_larger_scale_and_a_smaller_delta_give_wider_sets(family):
    model = random_model(np.random.default_rng(3), n=2000)
    chain = [family(0.2, 0.01), family(0.2, 0.3), family(0.2, 1), family(0.02, 1), family(0.02, 7)]
    for inner, outer in itertools.pairwise(chain):
        narrow, wide = inner.intervals(model), outer.intervals(model)
        assert np.all(wide.lower <= narrow.lower)
        assert np.all(wide.upper >= narrow.upper)
        assert np.all(wide.each >= narrow.each)
        assert np.all(wide.total >= narrow.total)
        assert np.any(wide.upper > narrow.upper)


@families
def test_some_rows_are_the_same_as_among_all(family):
    rng = np.random.default_rng(4)
    model = random_model(rng)
    everything = as_dicts(family().intervals(model))
    for rows in (rng.permutation(len(model.rows)), np.array([3]), np.array([], dtype=np.int64)):
        some = family().intervals(model, rows)
        assert as_dicts(some) == [everything[row] for row in rows]


def test_known_dynamics_are_sets_of_one_point():
    mdp = gosprl.envs.make("riverswim6")
    known = gosprl.Known(mdp)
    rows = as_dicts(known.intervals())
    for row, (seen, each, total) in enumerate(rows):
        states, probabilities = mdp.p(*mdp.rows.pair(row))
        assert seen == {int(x): (p, p) for x, p in zip(states, probabilities, strict=True)}
        assert (each, total) == (0, 0)
    assert as_dicts(known.intervals(rows=np.array([7, 2]))) == [rows[7], rows[2]]


def test_known_as_confidence_of_an_empty_model_plans_as_the_mdp_does():
    mdp = gosprl.envs.make("riverswim6")
    model = gosprl.EmpiricalModel(6, 2)
    plan, direct = gosprl.plan(model, [5], confidence=gosprl.Known(mdp)), gosprl.plan(mdp, [5])
    assert np.array_equal(plan.values, direct.values)
    assert np.array_equal(plan.policy, direct.policy)


@families
@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, np.nan, "0.1", None])
def test_delta_is_a_probability(family, delta):
    with pytest.raises(gosprl.InputError, match="delta: expected a number strictly between 0 and 1, got"):
        family(delta)


@families
@pytest.mark.parametrize("scale", [0, -1, np.inf, np.nan, "1", None])
def test_scale_is_positive(family, scale):
    with pytest.raises(gosprl.InputError, match="scale: expected a positive finite number, got"):
        family(0.1, scale)


@pytest.mark.parametrize("linear", [0, -1, np.inf, np.nan, "1"])
def test_linear_scale_is_positive(linear):
    with pytest.raises(gosprl.InputError, match="linear_scale: expected a positive finite number, got"):
        gosprl.Bernstein(0.1, 1.0, linear)


def test_sets_with_a_multiplier_below_1_say_so():
    assert gosprl.Bernstein(0.1, 1.0, 2.0).narrowed == gosprl.KL(0.1).narrowed == ""
    assert gosprl.Bernstein(0.1, 0.1).narrowed == gosprl.KL(0.1, 0.1).narrowed == "scale 0.1"
    assert gosprl.Bernstein(0.1, 2.0, 0.5).narrowed == "scale 2, linear scale 0.5"


# The promise


@families
@pytest.mark.parametrize("delta", [0.1, 0.5])
def test_the_truth_is_in_the_sets_at_all_times(family, delta):
    """60 runs of 400 samples of 6 pairs, looked at every 10 samples: the sets must miss in a share of delta at most.

    The families are far from tight; even misses at the full rate delta would exceed the number allowed here once in a
    million: it is the upper 1e-6 quantile of a binomial.
    """
    from scipy.stats import binom

    runs, missed = 60, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        truth = np.array([rng.dirichlet(np.full(3, rng.choice([0.05, 1]))) for _ in range(6)])
        model = gosprl.EmpiricalModel(3, 2)
        inside = True
        for _ in range(40):
            rows = rng.integers(6, size=10)
            model.update(rows // 2, rows % 2, [rng.choice(3, p=truth[row]) for row in rows])
            for row, (seen, each, total) in enumerate(as_dicts(family(delta).intervals(model))):
                unseen = [p for x, p in enumerate(truth[row]) if x not in seen]
                inside &= all(lower <= truth[row, x] <= upper for x, (lower, upper) in seen.items())
                inside &= max(unseen, default=0) <= each and sum(unseen) <= total + 1e-15
        missed += not inside
    assert missed <= binom.isf(1e-6, runs, delta)
