"""Bounds: closed forms, the dual linear program, search over the remaining needs, reference numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import gosprl
from gosprl import PrecisionError, TabularMDP, diameter_bound, exact_optimum, fluid_limit, ssp_diameter_bound
from gosprl.envs import make
from gosprl.envs.lower_bounds import epsilon_wheel, two_state_chain

FORK = TabularMDP(([0, 0, 1, 2], [0, 1, 0, 0], [1, 2, 1, 2], np.ones(4)))  # from 0 to 1 or to 2, which stay
COIN = TabularMDP([[[0, 0.5, 0.5]], [[0, 1, 0]], [[0, 0, 1]]])  # the same by chance
INTO_RING = TabularMDP(([0, 1, 2], [0, 0, 0], [1, 2, 1], np.ones(3)))  # 0, then 1 and 2 in turns
LEAK = TabularMDP([[[0.5, 0.5]], [[0, 1]]])  # 0 stays or falls to 1, which stays
APART = TabularMDP(([0, 1], [0, 0], [0, 1], np.ones(2)))  # two states that stay
LP = 1e-7  # relative: what HiGHS is asked for


# Oracles


def needed_items(mdp, need):
    """Return [(state, action or None for any, number)] of a need given as a number, [S] or [S, A]."""
    need = np.asarray(need)
    if need.ndim == 0:
        return [(*mdp.rows.pair(r), int(need)) for r in range(len(mdp.rows)) if need]
    if need.ndim == 1:
        return [(s, None, int(n)) for s, n in enumerate(need) if n]
    return [(int(s), int(a), int(need[s, a])) for s, a in np.argwhere(need)]


def searched_optimum(mdp, need):
    """Return the minimal expected steps by value iteration over (state, remaining need), in a dictionary."""
    items = needed_items(mdp, need)
    start = (mdp.start, tuple(n for _, _, n in items))
    outcomes, todo = {}, [start]
    while todo:
        node = todo.pop()
        if node in outcomes:
            continue
        s, left = node
        outcomes[node] = []
        if not any(left):
            continue
        for a in mdp.rows.action[mdp.rows.ptr[s] : mdp.rows.ptr[s + 1]]:
            after = tuple(max(0, n - (x == s and b in (None, a))) for n, (x, b, _) in zip(left, items, strict=True))
            law = [((int(t), after), p) for t, p in zip(*mdp.p(s, a), strict=True)]
            outcomes[node].append(law)
            todo += [t for t, _ in law]
    done = {node for node in outcomes if not any(node[1])}
    safe = set(outcomes)  # shrinks to the nodes from which `done` can be reached surely
    while True:
        reached = set(done)
        while True:
            more = {
                node
                for node in safe - reached
                for law in outcomes[node]
                if all(t in safe for t, _ in law) and any(t in reached for t, _ in law)
            }
            if not more:
                break
            reached |= more
        if reached == safe:
            break
        safe = reached
    if start not in safe:
        return np.inf
    v = dict.fromkeys(safe, 0.0)
    ways = {node: [law for law in outcomes[node] if all(t in safe for t, _ in law)] for node in safe - done}
    change = 1.0
    while change > 1e-13 * v[start]:
        change = 0.0
        for node, laws in ways.items():
            new = 1 + min(sum(p * v[t] for t, p in law) for law in laws)
            change = max(change, abs(new - v[node]))
            v[node] = new
    return v[start]


def dual_value(mdp, need, law):
    """The fluid limit by its dual: max b y - law x over x, y >= 0 with y_i - x(s) + sum_s' p(s'|s,a) x(s') <= 1."""
    items = needed_items(mdp, need)
    S, P = mdp.num_states, mdp.dense()
    A_ub = []
    for s, a in (mdp.rows.pair(r) for r in range(len(mdp.rows))):
        A_ub.append(np.append(P[s, a] - np.eye(S)[s], [x == s and b in (None, a) for x, b, _ in items]))
    objective = np.append(law, [-n for _, _, n in items])
    solution = linprog(objective, A_ub=np.array(A_ub), b_ub=np.ones(len(A_ub)))
    assert solution.status in (0, 3)
    return np.inf if solution.status == 3 else -solution.fun


@st.composite
def weights(draw, states=3, actions=2):
    """Draw small whole numbers [S, A, S] to be divided by their sum; a row of zeros is a missing action."""
    S, A = draw(st.integers(1, states)), draw(st.integers(1, actions))
    flat = draw(st.lists(st.sampled_from([0, 0, 1, 3]), min_size=S * A * S, max_size=S * A * S))
    w = np.array(flat).reshape(S, A, S)
    for s in range(S):
        if not w[s].any():
            w[s, 0, draw(st.integers(0, S - 1))] = 1
    return w


def mdp_of(w, start=0):
    return TabularMDP(w / np.maximum(w.sum(axis=2, keepdims=True), 1), start)


def random_needs(rng, mdp):
    """Return a need as a number, one per state, and one per pair."""
    exists = mdp.rows.to_dense(np.ones(len(mdp.rows), dtype=int))
    return [1, rng.integers(0, 4, size=mdp.num_states), rng.integers(0, 3, size=exists.shape) * exists]


def communicating_mdps(count):
    """Random MDPs of two or three states, one or two actions each; a ring of first actions connects them."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        S, A = rng.integers(2, 4), rng.integers(1, 3)
        w = rng.integers(0, 5, size=(S, A, S)) * (rng.random((S, A, S)) < 0.7)
        w[np.arange(S), 0, np.roll(np.arange(S), -1)] += 1
        mdp = mdp_of(w, rng.integers(S))
        yield mdp, random_needs(rng, mdp)


# Reference numbers


def test_reference_domains(reference_domains):
    rounding = 5e-7  # the file's
    for name, known in reference_domains.items():
        mdp = make(name)
        got = [diameter_bound(mdp, 10), ssp_diameter_bound(mdp, 10), *(fluid_limit(mdp, b) for b in (1, 10, 100))]
        expected = [known[key] for key in ("BD_b10", "sum_bDs_b10", "fluid_b1", "fluid_b10", "fluid_b100")]
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=rounding, err_msg=name)


@pytest.mark.parametrize(
    ("name", "BD", "sum_bDs"),
    [
        ("riverswim6", 1766.68, 958.70),
        ("corridor24", 24375.67, 13695.20),
        ("four_room43", 27399.72, 19048.27),
    ],
)
def test_table_1(name, BD, sum_bDs):
    mdp = make(name)
    assert round(diameter_bound(mdp, 10), 2) == BD
    assert round(ssp_diameter_bound(mdp, 10), 2) == sum_bDs


# Closed forms


@pytest.mark.parametrize("q", [1, 0.5, 0.1, 1e-3])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_samples_of_the_far_end_of_a_chain(q, k):
    """Each of the k samples takes 1 / q expected steps from x to y, and one step for the sample."""
    mdp = two_state_chain(q)
    assert exact_optimum(mdp, [0, k]) == pytest.approx(k * (1 / q + 1), rel=1e-8)
    assert fluid_limit(mdp, [0, k]) == pytest.approx(k * (1 / q + 1), rel=LP)
    assert diameter_bound(mdp, [0, k]) == pytest.approx(k / q, rel=1e-9)
    assert ssp_diameter_bound(mdp, [0, k]) == pytest.approx(k / q, rel=1e-9)


@pytest.mark.parametrize("q", [1, 0.5, 0.1])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_samples_of_the_near_end_of_a_chain(q, k):
    """A sample of x leads to y with probability q. In the fluid, q k flows to y, and up to one unit may end there."""
    mdp = two_state_chain(q)
    assert exact_optimum(mdp, [k, 0]) == pytest.approx(k + (k - 1) * q, rel=1e-8)
    assert fluid_limit(mdp, [k, 0]) == pytest.approx(k + max(0, q * k - 1), rel=LP)
    assert ssp_diameter_bound(mdp, [k, 0]) == pytest.approx(k, rel=1e-9)


@pytest.mark.parametrize("q", [1e-6, 1e-9, 1e-12])
def test_limits_of_a_very_slow_chain(q):
    mdp = two_state_chain(q)
    assert fluid_limit(mdp, [0, 3]) == pytest.approx(3 * (1 / q + 1), rel=LP)


@pytest.mark.parametrize("p", [1e-6, 1e-8, 1e-10])
def test_a_rare_shortcut_is_seen_or_refused(p):
    """From 0 to 1 with probability p in every other step, or by way of 3, which takes five times as long.

    The fluid has 1 / p visits of 0, one of 1, and 1 / p - 2 of 2, where it ends.
    """
    s, a, s_next = [0, 0, 2, 0, 3, 3, 1], [0, 0, 0, 1, 0, 0, 0], [1, 2, 0, 3, 1, 3, 0]
    mdp = TabularMDP((s, a, s_next, [p, 1 - p, 1, 1, p / 10, 1 - p / 10, 1]))
    try:
        limit = fluid_limit(mdp, [0, 1, 0, 0])
    except PrecisionError:
        return
    assert limit == pytest.approx(2 / p - 1, rel=LP)


@pytest.mark.parametrize("q", [1e-5, 1e-7])
def test_exact_optimum_of_a_very_slow_chain(q):
    assert exact_optimum(two_state_chain(q), [0, 3]) == pytest.approx(3 * (1 / q + 1), rel=1e-8)


@pytest.mark.parametrize(("length", "k", "start"), [(1, 3, 0), (4, 1, 0), (4, 2, 3), (5, 3, 2)])
def test_rounds_of_a_ring(length, k, start):
    """k samples of every state of a ring take k rounds, from any start."""
    ring = np.arange(length)
    mdp = TabularMDP((ring, 0 * ring, np.roll(ring, -1), np.ones(length)), start)
    assert exact_optimum(mdp, k) == pytest.approx(k * length, rel=1e-8)
    assert fluid_limit(mdp, k) == pytest.approx(k * length, rel=LP)
    assert fluid_limit(mdp, np.full(length, k)) == pytest.approx(k * length, rel=LP)
    assert diameter_bound(mdp, k) == pytest.approx(k * length * (length - 1))


def test_one_sample_on_a_ring_is_the_way_there():
    ring = np.arange(5)
    mdp = TabularMDP((ring, 0 * ring, np.roll(ring, -1), np.ones(5)), 2)
    for s in range(5):
        need = np.eye(5, dtype=int)[s]
        assert exact_optimum(mdp, need) == pytest.approx((s - 2) % 5 + 1, rel=1e-8)
        assert fluid_limit(mdp, need) == pytest.approx((s - 2) % 5 + 1, rel=LP)


def test_a_wheel_pays_every_spoke():
    """k samples of each rim state: k / epsilon steps at the center and k on the rim; the last needs no return."""
    epsilons = np.array([0.5, 0.2, 0.05])
    mdp = epsilon_wheel(epsilons)
    for k in (1, 3):
        expected = np.sum(k / epsilons + k)
        assert exact_optimum(mdp, [0, k, k, k]) == pytest.approx(expected, rel=1e-8)
        assert fluid_limit(mdp, [0, k, k, k]) == pytest.approx(expected, rel=LP)


def test_the_coupon_collector():
    """Every state leads to a uniform one of n: the samples of the others take n / (n - 1) + ... + n / 1 steps."""
    n = 5
    mdp = TabularMDP(np.full((n, 1, n), 1 / n))
    expected = sum(n / missing for missing in range(1, n)) + 1
    assert exact_optimum(mdp, 1) == pytest.approx(expected, rel=1e-8)
    # as a fluid, x visits of each state but the last: x_s = (1 of the start) + T / n - e(s) >= 1
    assert fluid_limit(mdp, 1) == pytest.approx(n, rel=LP)


def test_samples_of_a_pair_are_not_samples_of_its_state():
    """Both actions stay: two samples of (0, 0) and three of (0, 1) take five steps, three of state 0 take three."""
    mdp = TabularMDP(np.ones((1, 2, 1)))
    for limit in (exact_optimum, fluid_limit):
        assert limit(mdp, [[2, 3]]) == pytest.approx(5, rel=LP)
        assert limit(mdp, [3]) == pytest.approx(3, rel=LP)
        assert limit(mdp, 4) == pytest.approx(8, rel=LP)


def test_missing_pairs_are_not_needed():
    """toy3 has four pairs; with nu = 1/2, a sample of (2, 1) costs one step in state 2, the others need travel."""
    mdp = make("toy3", nu=0.5)
    assert diameter_bound(mdp, 3) == pytest.approx(3 * 4 * 4)  # D = D_{12} = 1 + (1 + nu) / (1 - nu)
    assert ssp_diameter_bound(mdp, 3) == pytest.approx(3 * (1.5 + 2 + 2 * 4))
    one_each = mdp.rows.to_dense(np.ones(4, dtype=int))
    for limit in (exact_optimum, fluid_limit):
        assert limit(mdp, 1) == limit(mdp, one_each)


# Start laws


@pytest.mark.parametrize("t", [0, 0.25, 1])
@pytest.mark.parametrize("k", [1, 4])
def test_a_random_start_of_the_chain(t, k):
    """The start is y with probability t: k samples of y take k - t expected crossings."""
    q = 0.2
    mdp = two_state_chain(q)
    assert fluid_limit(mdp, [0, k], start=[1 - t, t]) == pytest.approx(k + (k - t) / q, rel=LP)


def test_a_start_state_is_its_law():
    mdp = make("riverswim6")
    for s in range(6):
        moved = TabularMDP(mdp.dense(), s)
        expected = fluid_limit(moved, 2)
        assert fluid_limit(mdp, 2, start=s) == pytest.approx(expected, rel=LP)
        assert fluid_limit(mdp, 2, start=np.eye(6)[s]) == pytest.approx(expected, rel=LP)
        assert expected == pytest.approx(dual_value(mdp, 2, np.eye(6)[s]), rel=LP)


def test_a_law_a_little_off_is_renormalised():
    mdp = two_state_chain(0.5)
    off = np.array([0.5, 0.5]) * (1 + 9e-7)
    assert fluid_limit(mdp, 3, start=off) == pytest.approx(fluid_limit(mdp, 3, start=[0.5, 0.5]), rel=1e-9)


# Against the oracles


@given(weights(states=5, actions=3), st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_fluid_limit_is_the_value_of_the_dual(w, seed):
    """All states can reach each other here, so all needs can be met."""
    w = w.copy()
    w[:, 0] += 1
    mdp = mdp_of(w)
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(len(w))) * (rng.random(len(w)) < 0.7)
    law = law / law.sum() if law.any() else np.eye(len(w))[0]
    for need in random_needs(rng, mdp):
        assert fluid_limit(mdp, need, start=law) == pytest.approx(dual_value(mdp, need, law), rel=LP)


@given(weights(), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_exact_optimum_is_that_of_a_search(w, seed):
    mdp = mdp_of(w)
    for need in random_needs(np.random.default_rng(seed), mdp):
        optimum = searched_optimum(mdp, need)
        assert exact_optimum(mdp, need) == pytest.approx(optimum, rel=1e-8)
        assert fluid_limit(mdp, need) <= optimum * (1 + LP)


def test_the_limits_are_in_order():
    """fluid <= exact <= sum_s b(s) (D_s + 1) on 50 communicating MDPs, three needs each."""
    strict = 0
    for mdp, needs in communicating_mdps(50):
        D = mdp.ssp_diameters()
        for need in needs:
            b = np.zeros(mdp.num_states)
            for s, _, n in needed_items(mdp, need):
                b[s] += n
            fluid, exact = fluid_limit(mdp, need), exact_optimum(mdp, need)
            assert fluid <= exact * (1 + LP)
            assert exact <= b @ (D + 1) * (1 + 1e-8)
            assert ssp_diameter_bound(mdp, need) == pytest.approx(b @ D)
            assert diameter_bound(mdp, need) == pytest.approx(b.sum() * D.max())
            strict += fluid < 0.99 * exact
    assert strict > 50  # the two are not one and the same


# Needs that cost nothing, and needs that cannot be met


@pytest.mark.parametrize("mdp", [FORK, COIN, INTO_RING, APART, two_state_chain(0.5)])
def test_no_need_costs_nothing(mdp):
    for need in (0, np.zeros(mdp.num_states, dtype=int), np.zeros((mdp.num_states, mdp.num_actions), dtype=int)):
        assert [limit(mdp, need) for limit in (fluid_limit, exact_optimum, diameter_bound, ssp_diameter_bound)] == [
            0
        ] * 4


@pytest.mark.parametrize(
    ("mdp", "need", "exact", "fluid"),
    [
        (APART, [3, 0], 3, 3),
        (APART, [0, 1], np.inf, np.inf),  # a circulation there would do for the program
        (APART, 1, np.inf, np.inf),
        (INTO_RING, [1, 0, 0], 1, 1),
        (INTO_RING, [2, 0, 0], np.inf, np.inf),  # the start is left for good
        (INTO_RING, [1, 2, 2], 5, 5),
        (INTO_RING, [0, 1, 2], 5, 4),  # as a fluid, the start stays and a circulation serves the ring
        (FORK, [1, 3, 0], 4, 4),
        (FORK, [0, 0, 2], 3, 2),
        (FORK, [0, 1, 1], np.inf, np.inf),  # one of the two
        (FORK, [[1, 0], [0, 0], [1, 0]], np.inf, np.inf),
        (FORK, [[1, 1], [0, 0], [0, 0]], np.inf, np.inf),
        (COIN, [1, 0, 0], 1, 1),
        (COIN, [0, 1, 0], np.inf, np.inf),  # by chance only
        (LEAK, [1, 1], 3, 2),
        (LEAK, [2, 0], np.inf, np.inf),  # twice on average, but not surely
    ],
)
def test_needs_that_can_and_cannot_be_met(mdp, need, exact, fluid):
    assert exact_optimum(mdp, need) == pytest.approx(exact, rel=1e-8)
    assert fluid_limit(mdp, need) == pytest.approx(fluid, rel=LP)


def test_every_possible_start_must_be_able_to_meet_the_need():
    assert fluid_limit(APART, [2, 0], start=[1, 0]) == pytest.approx(2)
    assert fluid_limit(APART, [2, 0], start=[0.5, 0.5]) == np.inf
    assert fluid_limit(INTO_RING, [0, 1, 0], start=[0.5, 0.5, 0]) == pytest.approx(1.5)
    assert fluid_limit(INTO_RING, [1, 0, 0], start=[0.5, 0.5, 0]) == np.inf


def test_paper_bounds_without_communication():
    for limit in (diameter_bound, ssp_diameter_bound):
        assert limit(FORK, 1) == np.inf
    assert ssp_diameter_bound(INTO_RING, [0, 2, 1]) == pytest.approx(2 * 1 + 1 * 2)
    assert diameter_bound(INTO_RING, [0, 2, 1]) == np.inf
    assert ssp_diameter_bound(INTO_RING, [1, 0, 0]) == np.inf


# Bad input


@pytest.mark.parametrize("limit", [fluid_limit, exact_optimum, diameter_bound, ssp_diameter_bound])
@pytest.mark.parametrize(
    ("need", "expected"),
    [
        (-1, r"^need: expected numbers of samples"),
        ([1, 0, -1], r"^need: expected numbers of samples.*got -1 at index 2"),
        (1.5, r"^need: expected whole numbers \(numbers of samples\)"),
        ([1, 0, np.nan], r"^need: expected whole numbers \(numbers of samples\)"),
        ("many", r"^need: expected whole numbers \(numbers of samples\)"),
        (None, r"^need: expected whole numbers \(numbers of samples\)"),
        ([1, 1], r"^need: expected a number, \[S\] = \(3,\) or \[S, A\] = \(3, 2\), got shape \(2,\)"),
        (np.ones((2, 3), dtype=int), r"^need: expected a number, .*got shape \(2, 3\)"),
        (np.ones((3, 2, 1), dtype=int), r"^need: expected a number, .*got shape \(3, 2, 1\)"),
        ([[0, 0], [0, 4], [0, 0]], r"^need: action 1 does not exist in state 1, but 4 samples of it are asked for"),
    ],
)
def test_needs_are_checked(limit, need, expected):
    with pytest.raises(gosprl.InputError, match=expected):
        limit(FORK, need)


@pytest.mark.parametrize(
    "start", [3, -1, 0.5, "x", [0.5, 0.5], [[1, 0, 0]], [0.5, 0.5, 0.5], [0.5, 0.4, 0], [1.5, -0.5, 0], [np.nan, 0, 1]]
)
def test_starts_are_checked(start):
    with pytest.raises(gosprl.InputError, match=r"^start: expected"):
        fluid_limit(FORK, 1, start=start)


@pytest.mark.parametrize(("need", "levels"), [([0, 50_000], "50001"), ([300, 300], "90601"), ([[10**9], [10**9]], "")])
def test_exact_optimum_refuses_large_problems(need, levels):
    with pytest.raises(gosprl.InputError, match=rf"^need: .* at most 100000 augmented states, got {levels}"):
        exact_optimum(two_state_chain(0.5), need)


def test_needs_of_many_samples_add_up_without_overflow():
    mdp = two_state_chain(0.5)
    assert diameter_bound(mdp, 2**62) == pytest.approx(2.0**63 * 2)
    assert ssp_diameter_bound(mdp, 2**62) == pytest.approx(2.0**62 * 3)
