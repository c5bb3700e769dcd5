"""Certificates against the vertices of the sets, linear programs, root finding, and simulated streams."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Given, least_expectation, random_dynamics, vertices
from scipy.optimize import brentq, linprog
from scipy.special import betaln
from scipy.stats import binom

import gosprl
from gosprl import EmpiricalModel, InputError, Intervals
from gosprl.sets import certificates
from gosprl.sets.certificates import average_errors, lipschitz_errors, mean_intervals, model_errors, slack
from gosprl.sets.known import Known

FALSE_ALARM = 1e-6  # of the tests of coverage
FAMILIES = [gosprl.KL(0.1), gosprl.Bernstein(0.1), gosprl.KL(0.5, 0.1), gosprl.Bernstein(0.01, 0.05)]
ROW = np.array([0])
examples = settings(deadline=None, max_examples=60)  # the first call may compile
seeds = st.integers(0, 2**32 - 1)


def one_row(rng, S=None, closed=None, support=None):
    """(model, p_hat): one state's row is sampled, 1 to 20 000 times, the others never."""
    S = int(rng.integers(1, 6)) if S is None else S
    support = int(rng.integers(1, S + 1)) if support is None else support
    closed = bool(rng.random() < 0.5) if closed is None else closed
    p = np.zeros(S)
    p[rng.permutation(S)[:support]] = rng.dirichlet(np.full(support, rng.choice([0.3, 1, 5])))
    N = int(rng.choice([1, 2, 7, 100, 3000, 20_000]))
    possible = p > 0
    if closed and rng.random() < 0.5:
        possible |= rng.random(S) < 0.5
    model = EmpiricalModel(S, 1, np.tile(possible, (S, 1)) if closed else None)
    s_next = rng.choice(S, p=p, size=N)
    model.update(np.zeros(N, dtype=int), np.zeros(N, dtype=int), s_next)
    return model, np.bincount(s_next, minlength=S) / N


def dense_set(model, family, row=0):
    """(seen, lower, upper, total) of a row's set, as the oracles have it."""
    sets, S = family.intervals(model, np.array([row])), model.num_states
    seen, lower, upper = np.zeros(S, dtype=bool), np.zeros(S), np.full(S, sets.each[0])
    seen[sets.succ], lower[sets.succ], upper[sets.succ] = True, sets.lower, sets.upper
    return seen, lower, upper, sets.total[0]


def corners(model, family):
    """The vertices of the first row's set: where what is convex in p is largest."""
    return vertices(*dense_set(model, family))


def times(rng, S):
    """Hitting times of a random communicating MDP: distances of which one way need not be the other."""
    while True:
        mdp = gosprl.TabularMDP(random_dynamics(rng, S, 2))
        if mdp.is_communicating():
            D = mdp.hitting_times()
            np.fill_diagonal(D, 0)
            for k in range(S):  # to the last digit
                D = np.minimum(D, D[:, [k]] + D[[k]])
            return D


def farthest(p, q, D):
    """The most that (p - q) V can be, V(i) - V(j) <= D[i, j], by a linear program over V."""
    S = len(p)
    pairs = list(itertools.permutations(range(S), 2))
    rows = np.array([np.eye(S)[i] - np.eye(S)[j] for i, j in pairs]).reshape(-1, S)
    bounds = [(0, 0)] + [(None, None)] * (S - 1)
    if not pairs:
        return 0.0
    return -linprog(q - p, A_ub=rows, b_ub=[D[pair] for pair in pairs], bounds=bounds).fun


# The model


@examples
@given(seeds, st.sampled_from(FAMILIES))
def test_model_errors_are_the_largest_in_the_set(seed, family):
    model, p_hat = one_row(np.random.default_rng(seed))
    off = np.abs(corners(model, family) - p_hat)
    seen = slack(model, family, ROW)
    assert model_errors(seen, "l1")[0] == pytest.approx(off.sum(axis=1).max(), abs=1e-11)
    assert model_errors(seen, "max")[0] == pytest.approx(off.max(), abs=1e-11)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_model_errors_are_the_largest_by_linear_programs(family, closed):
    """|x| in the l1 norm is the largest of e x over signs e."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        model, p_hat = one_row(rng, 4, closed)
        row, seen = dense_set(model, family), slack(model, family, ROW)
        signs = [np.array(e) for e in itertools.product([-1.0, 1.0], repeat=4)]
        l1 = max(-least_expectation(-e, *row)[0] - e @ p_hat for e in signs)
        entry = max(-least_expectation(-e, *row)[0] - e @ p_hat for x in np.eye(4) for e in (x, -x))
        assert model_errors(seen, "l1")[0] == pytest.approx(l1, abs=1e-8)
        assert model_errors(seen, "max")[0] == pytest.approx(entry, abs=1e-8)


@examples
@given(seeds, st.sampled_from(FAMILIES))
def test_errors_in_rows_with_many_successors_let_one_of_them_gain_and_lose(seed, family):
    """The bound solves the relaxed program, and is off by no more than what that one has on both sides."""
    model, _ = one_row(np.random.default_rng(seed))
    seen = slack(model, family, ROW)
    exact, n = model_errors(seen, "l1")[0], len(seen.succ)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "FEW", 0)
        bound = model_errors(seen, "l1")[0]
    limits = np.array([[1, *-seen.up], [1, *seen.down]])  # of m, and of the share x with which each gains
    ends = [(0, None)] + [(0, 1)] * n
    relaxed = linprog([-1] + [0] * n, A_ub=limits, b_ub=[seen.extra[0], seen.down.sum()], bounds=ends)
    assert bound == pytest.approx(-2 * relaxed.fun, abs=1e-8)
    both = seen.up * seen.down / np.maximum(seen.up + seen.down, 1e-300)
    assert exact - 1e-12 <= bound <= exact + 2 * both.max() + 1e-12


def test_rows_of_many_successors_take_the_bound():
    rng = np.random.default_rng(0)
    model, p_hat = one_row(rng, 40, closed=False, support=40)
    model.update([0] * 4000, [0] * 4000, np.tile(np.arange(40), 100))
    seen = slack(model, gosprl.KL(0.1), ROW)
    assert len(seen.succ) > certificates.FEW
    p_hat = np.bincount(seen.succ, weights=seen.count, minlength=40) / seen.visits[0]
    error = model_errors(seen, "l1")[0]
    assert 0 < error < 2 * seen.down.sum()
    for _ in range(200):  # whatever is in the set
        p = p_hat.copy()
        order = rng.permutation(40)
        gain, lose = order[:20], order[20:]
        p[gain] += np.where(np.isin(gain, seen.succ), seen.up[np.argsort(seen.succ)][gain], 0)
        moved = p.sum() - 1
        down = seen.down[np.argsort(seen.succ)]
        part = min(1, down[lose].sum() / moved)
        p[gain] -= (1 - part) * (p[gain] - p_hat[gain])
        p[lose] -= down[lose] * part * moved / down[lose].sum()
        assert p.sum() == pytest.approx(1)
        assert np.abs(p - p_hat).sum() <= error + 1e-12


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_never_visited_allow_everything(family, closed):
    candidates = np.ones((3, 3), dtype=bool) if closed else None
    model = EmpiricalModel(3, 2, candidates)
    model.update(0, 0, 1)
    rows = np.array([0, 3])
    D = np.array([[0, 1, 2], [3, 0, 1], [1, 2, 0.0]])
    seen = slack(model, family, rows)
    assert model_errors(seen, "l1")[1] == 2
    assert model_errors(seen, "max")[1] == 1
    for errors in average_errors(seen, np.array([0.5, -1, 3])):
        assert errors[1] == 4
    for errors in lipschitz_errors(seen, D):
        assert errors[1] == np.inf
        assert np.isfinite(errors[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_single_candidate_is_certain_once_it_was_seen(family):
    model = EmpiricalModel(3, 1, lambda s, a: [(s + 1) % 3])
    model.update(0, 0, 1)
    seen = slack(model, family, ROW)
    assert model_errors(seen, "l1")[0] == model_errors(seen, "max")[0] == 0
    assert [errors[0] for errors in average_errors(seen, np.arange(3.0))] == [0, 0]
    assert [errors[0] for errors in lipschitz_errors(seen, 1.0 - np.eye(3))] == [0, 0]


def test_rows_are_those_asked_for_in_their_order():
    rng = np.random.default_rng(0)
    model = EmpiricalModel(4, np.array([[True, True], [True, False], [True, True], [True, True]]))
    pairs = rng.integers(len(model.rows), size=500)
    model.update(model.rows.state[pairs], model.rows.action[pairs], rng.integers(4, size=500))
    family, order, V, D = gosprl.KL(0.1), np.array([4, 0, 6, 2]), rng.normal(size=4), 1.0 - np.eye(4)
    every, some = slack(model, family, np.arange(7)), slack(model, family, order)
    for norm in ("l1", "max"):
        assert model_errors(some, norm).tolist() == model_errors(every, norm)[order].tolist()
    for errors, all_errors in zip(average_errors(some, V), average_errors(every, V), strict=True):
        assert errors.tolist() == all_errors[order].tolist()
    for errors, all_errors in zip(lipschitz_errors(some, D), lipschitz_errors(every, D), strict=True):
        assert errors.tolist() == all_errors[order].tolist()


def test_sets_on_other_successors_are_refused():
    model = EmpiricalModel(3, 1)
    model.update([0, 0, 0], [0, 0, 0], [2, 0, 1])
    stored = gosprl.KL(0.1).intervals(model)
    order = np.argsort(stored.succ)
    parts = (part[order] for part in (stored.succ, stored.lower, stored.upper))
    sorted_ = Given(Intervals(stored.ptr, *parts, stored.each, stored.total))
    mdp = gosprl.TabularMDP(np.full((3, 1, 3), 1 / 3))
    for family, name in ((sorted_, "Given"), (Known(mdp), "Known")):
        with pytest.raises(InputError, match=rf"confidence: expected intervals on the successors.*{name}"):
            slack(model, family, np.arange(3))


# Averages


@examples
@given(seeds, st.sampled_from(FAMILIES))
def test_average_errors_are_the_largest_in_the_set(seed, family):
    """Exact if nothing else is possible, or if all the mass that may go elsewhere can go where V is largest."""
    rng = np.random.default_rng(seed)
    model, p_hat = one_row(rng)
    V = rng.normal(size=model.num_states) * rng.choice([1, 100])
    if rng.random() < 0.2:
        V = np.round(V)  # ties
    off = (corners(model, family) - p_hat) @ V
    seen, _, _, total = dense_set(model, family)
    row = slack(model, family, ROW)
    for errors, sign in zip(average_errors(row, V), (1, -1), strict=True):
        truth, best = (sign * off).max(), (sign * V).max()
        assert errors[0] >= truth - 1e-9
        top = not seen.all() and (sign * V[~seen]).max() == best
        if model.closed or seen.all() or (top and total <= row.each[0]):
            assert errors[0] == pytest.approx(truth, abs=1e-9)
        # all that may go elsewhere goes to one state more, as good as the best
        values, room = np.append(sign * V[row.succ], best), np.append(row.up, row.extra)
        moves = linprog(
            np.concatenate([-values, values[:-1]]),
            A_eq=[[1] * len(values) + [-1] * len(row.succ)],
            b_eq=[0],
            bounds=[(0, x) for x in [*room, *row.down]],
        )
        assert errors[0] == pytest.approx(-moves.fun, abs=1e-7 * np.abs(V).max())


# Functions whose differences are distances


@pytest.mark.parametrize("family", FAMILIES)
def test_lipschitz_errors_are_never_below_the_largest_in_the_set(family):
    rng, reached = np.random.default_rng(5), []
    for _ in range(12):
        model, p_hat = one_row(rng)
        D = times(rng, model.num_states)
        points = corners(model, family)
        over, under = (errors[0] for errors in lipschitz_errors(slack(model, family, ROW), D))
        most, least = max(farthest(p, p_hat, D) for p in points), max(farthest(p_hat, p, D) for p in points)
        assert over >= most - 1e-7
        assert under >= least - 1e-7
        reached += [(most + 1e-12) / (over + 1e-12), (least + 1e-12) / (under + 1e-12)]
    assert np.mean(reached) > 0.6  # and not far above


@examples
@given(seeds, st.sampled_from(FAMILIES), st.integers(1, 12))
def test_lipschitz_errors_bound_every_function_and_every_member(seed, family, S):
    """Functions: distances to a state, their negatives from one, and minima of such."""
    rng = np.random.default_rng(seed)
    model, p_hat = one_row(rng, S)
    D = times(rng, S)
    seen, lower, upper, total = dense_set(model, family)
    over, under = (errors[0] for errors in lipschitz_errors(slack(model, family, ROW), D))
    mixed = [(D + rng.uniform(0, D.max(), S)).min(axis=1) for _ in range(5)]
    for V in [*D.T, *-D, *mixed]:
        assert np.all(V[:, None] - V[None] <= D + 1e-9)
        most = -least_expectation(-V, seen, lower, upper, total)[0] - p_hat @ V
        least = p_hat @ V - least_expectation(V, seen, lower, upper, total)[0]
        assert over >= most - 1e-7 * max(1, D.max())
        assert under >= least - 1e-7 * max(1, D.max())


@examples
@given(seeds, st.sampled_from(FAMILIES), st.floats(0.1, 50), st.floats(0.1, 50))
def test_lipschitz_errors_are_exact_between_two_states(seed, family, there, back):
    model, p_hat = one_row(np.random.default_rng(seed), 2)
    D = np.array([[0, there], [back, 0]])
    over, under = (errors[0] for errors in lipschitz_errors(slack(model, family, ROW), D))
    q = corners(model, family)[:, 0] - p_hat[0]  # what state 0 has more
    gain, loss = max(q.max(), 0), max(-q.min(), 0)
    assert over == pytest.approx(max(gain * there, loss * back), abs=1e-9)
    assert under == pytest.approx(max(loss * there, gain * back), abs=1e-9)


@pytest.mark.parametrize("closed", [False, True])
def test_states_that_are_no_part_of_the_problem_get_nothing_and_bridge_nothing(closed):
    """Nothing moves to such a state, and between the others nothing moves by way of it, which would cost nothing."""
    model = EmpiricalModel(3, 1, np.ones((3, 3), dtype=bool) if closed else None)
    model.update([0] * 9, [0] * 9, [1] * 8 + [0])
    D = np.array([[0, 4, np.inf], [3, 0, np.inf], [np.inf, np.inf, np.inf]])
    family = gosprl.KL(0.1)
    points = corners(model, family)
    points = points[points[:, 2] < 1e-12]
    near, p_hat = D[:2, :2], np.array([1, 8]) / 9
    over, under = (errors[0] for errors in lipschitz_errors(slack(model, family, ROW), D))
    assert np.inf > over >= max(farthest(p, p_hat, near) for p in points[:, :2]) > 0.5
    assert np.inf > under >= max(farthest(p_hat, p, near) for p in points[:, :2]) > 0.5
    if not closed:  # a row that only led there proves nothing
        model.update([1] * 9, [0] * 9, [2] * 9)
        assert [errors[0] for errors in lipschitz_errors(slack(model, family, np.array([1])), D)] == [np.inf] * 2


# Means


def kl(p, q):
    return (p * math.log(p / q) if p else 0) + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0)


def stated(N, total, squares, n, delta, scale):
    """The interval as the inequalities say it, one stream at a time."""
    if N == 0:
        return 0, 1
    mean = total / N
    budget = scale * (math.log(2 * n / delta) + 0.5 * math.log(math.pi * N + 1))
    lower, upper = 0.0, 1.0
    if mean > 0 and N * kl(mean, 1e-300) > budget:
        lower = brentq(lambda q: N * kl(mean, q) - budget, 1e-300, mean, xtol=1e-14)
    if mean < 1 and N * kl(mean, 1 - 1e-15) > budget:
        upper = brentq(lambda q: N * kl(mean, q) - budget, mean, 1 - 1e-15, xtol=1e-14)
    if N > 1:
        variance = max(squares - N * mean**2, 0) / (N - 1)
        L = scale * math.log(8 * n * N * (N - 1) / delta)
        radius = math.sqrt(2 * variance * L / N) + 7 * L / (3 * (N - 1))
        lower, upper = max(lower, mean - radius), min(upper, mean + radius)
    return lower, upper


@examples
@given(
    st.lists(st.tuples(st.integers(0, 3000), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6),
    st.floats(1e-6, 0.999),
    st.sampled_from([1.0, 0.3, 0.01]),
)
def test_means_are_within_what_the_inequalities_say(streams, delta, scale):
    """Streams of N numbers with a given mean, and squares between those of equal numbers and of zeros and ones."""
    visits = np.array([N for N, _, _ in streams])
    total = np.array([N * mean for N, mean, _ in streams])
    squares = np.array([N * (mean**2 + x * (mean - mean**2)) for N, mean, x in streams])
    lower, upper = mean_intervals(visits, total, squares, delta, scale)
    for i in range(len(streams)):
        expected = stated(int(visits[i]), total[i], squares[i], len(streams), delta, scale)
        assert (lower[i], upper[i]) == pytest.approx(expected, abs=2e-8)
        assert 0 <= lower[i] <= upper[i] <= 1
    some = slice(0, None, 2)  # they are as wide if others are left out
    parts = mean_intervals(visits[some], total[some], squares[some], delta, scale, len(streams))
    assert np.array_equal(parts, (lower[some], upper[some]))


@examples
@given(
    st.lists(st.sampled_from([0.0, 0.2, 0.5, 1.0]), max_size=40),
    st.integers(0, 4),
    st.floats(1e-6, 0.5),
    st.sampled_from([1.0, 0.3]),
)
def test_with_unknown_places_the_intervals_of_all_completions_are_inside(known, m, delta, scale):
    """Any reward may be at an unknown place: all choices of five values, and the extremes are where they are said."""
    values = np.array(known)
    given = (np.array([len(values)]), np.array([values.sum()]), np.array([np.sum(values**2)]), delta, scale)
    lower, upper = mean_intervals(*given, 3, np.array([m]))
    for places in itertools.combinations_with_replacement([0.0, 0.1, 0.5, 0.7, 1.0], m):
        full = np.append(values, places)
        sums = np.array([len(full)]), np.array([full.sum()]), np.array([np.sum(full**2)])
        inner = mean_intervals(*sums, delta, scale, 3)
        assert lower[0] <= inner[0][0] + 1e-12
        assert upper[0] >= inner[1][0] - 1e-12


def test_ends_with_unknown_places_are_those_of_the_least_and_of_the_largest_sum():
    """8 ones of 20 known numbers, and 4 unknown: between kl's lower end of 8 of 24 and its upper end of 12 of 24."""
    total = squares = np.array([8.0])
    lower, upper = mean_intervals(np.array([20]), total, squares, 0.1, 1.0, 1, np.array([4]))
    budget = math.log(2 / 0.1) + 0.5 * math.log(24 * math.pi + 1)
    assert lower[0] == pytest.approx(brentq(lambda q: 24 * kl(8 / 24, q) - budget, 1e-9, 8 / 24))
    assert upper[0] == pytest.approx(brentq(lambda q: 24 * kl(12 / 24, q) - budget, 12 / 24, 1 - 1e-9))
    nothing = mean_intervals(np.array([0]), np.zeros(1), np.zeros(1), 0.1, 1.0, 1, np.array([50]))
    assert (nothing[0][0], nothing[1][0]) == (0, 1)


def test_rewards_that_hardly_vary_are_known_well_with_a_few_unknown_ones():
    """By hand, N - 3 halves: at three unknown places, squares of distances from 1 / 2 add up to 3 / 4 at most."""
    N = 10_000
    halves = np.array([0.5 * (N - 3)])
    lower, upper = mean_intervals(np.array([N - 3]), halves, halves / 2, 0.1, 1.0, 1, np.array([3]))
    L = math.log(8 * N * (N - 1) / 0.1)
    radius = math.sqrt(2 * 0.75 / (N - 1) * L / N) + 7 * L / (3 * (N - 1))
    assert lower[0] == pytest.approx(0.5 * (N - 3) / N - radius)
    assert upper[0] == pytest.approx(0.5 * (N - 3) / N + 3 / N + radius)


def test_zeros_and_ones_have_closed_ends():
    lower, upper = mean_intervals(np.array([0, 5, 5]), np.array([0, 0, 5.0]), np.array([0, 0, 5.0]), 0.1)
    budget = math.log(2 * 3 / 0.1) + 0.5 * math.log(5 * math.pi + 1)
    assert lower == pytest.approx([0, 0, math.exp(-budget / 5)])
    assert upper == pytest.approx([1, 1 - math.exp(-budget / 5), 1])


def test_what_hardly_varies_has_a_narrow_interval():
    """By Bernstein's inequality: constants are known to within 7 L / (3 (N - 1))."""
    lower, upper = mean_intervals(np.array([10_000]), np.array([3000.0]), np.array([900.0]), 0.1)
    radius = 7 * math.log(8 * 10_000 * 9999 / 0.1) / (3 * 9999)
    assert (lower[0], upper[0]) == pytest.approx((0.3 - radius, 0.3 + radius))


def test_the_mixture_loses_no_more_than_stated_for_any_sum():
    """log of the best product over the mixture of all, for sums k of N numbers in [0, 1], whole or not."""
    for N in [*range(1, 60), 100, 333, 1000, 10_000, 10**6]:
        k = np.unique(np.concatenate([np.linspace(0, N, 2001), np.geomspace(1e-9, N / 2, 400)]))
        k = np.unique(np.concatenate([k, N - k]))
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.where(k > 0, k * np.log(k / N), 0) + np.where(k < N, (N - k) * np.log1p(-k / N), 0)
        lost = entropy - betaln(k + 0.5, N - k + 0.5) + math.log(math.pi)
        assert lost.max() <= 0.5 * math.log(math.pi * N + 1) + 1e-8
        assert lost.max() >= 0.5 * math.log(math.pi * N + 1) - 0.04  # nor is much given away at the ends


LAWS = {
    "coin": (0.5, lambda rng, shape: (rng.random(shape) < 0.5) * 1.0),
    "rare": (0.05, lambda rng, shape: (rng.random(shape) < 0.05) * 1.0),
    "uniform": (0.5, lambda rng, shape: rng.random(shape)),
    "beta": (0.3 * 0.2, lambda rng, shape: 0.3 * rng.beta(0.5, 2, shape)),
    "constant": (0.7, lambda rng, shape: np.full(shape, 0.7)),
}


def missed(law, scale, runs=1500, length=250, delta=0.2):
    """How many of `runs` streams are out of their interval at some time, each at level delta."""
    mean, draw = LAWS[law]
    rewards = draw(np.random.default_rng(1), (length, runs))
    out = np.zeros(runs, dtype=bool)
    total, squares = np.zeros((2, runs))
    for N, reward in enumerate(rewards, start=1):
        total, squares = total + reward, squares + reward**2
        # all streams have delta together, if it is so many times as large
        lower, upper = mean_intervals(np.full(runs, N), total, squares, delta * runs, scale)
        out |= (mean < lower - 1e-12) | (mean > upper + 1e-12)
    return int(out.sum()), binom.isf(FALSE_ALARM, runs, delta)


@pytest.mark.parametrize("law", LAWS)
def test_means_are_in_their_intervals_at_all_times(law):
    """More streams out of them than a binomial has with probability 1e-6 would refute the level."""
    out, most = missed(law, 1.0)
    assert out <= most


@pytest.mark.parametrize("law", sorted(set(LAWS) - {"constant"}))
def test_narrower_intervals_are_found_out(law):
    out, most = missed(law, 0.01)
    assert out > most
