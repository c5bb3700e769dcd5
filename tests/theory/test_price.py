"""The price of not knowing: closed forms, all policies of tiny problems, plain recursions, and walks of collectors."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import gosprl
from evidence.price import doors
from gosprl import InputError, TabularMDP, exact_optimum, fluid_limit
from gosprl.theory import bayes_price, minimax_price
from gosprl.theory._candidates import as_candidates

EXACT = 1e-8  # relative: certified shortest paths
STEP = np.ones((2, 1, 2)) / 2


def arms(*chances):
    """Action a leads from 0 to 1 with probability chances[a]; all actions lead back."""
    P = np.zeros((2, len(chances), 2))
    P[0] = [(1 - p, p) for p in chances]
    P[1, :, 0] = 1
    return TabularMDP(P)


def missing_of(mdp, need):
    """The needed items as ((state, action or None), number), for a need [S] or [S, A]."""
    need = np.asarray(need)
    if need.ndim == 1:
        return tuple(((s, None), int(b)) for s, b in enumerate(need) if b)
    return tuple(((int(s), int(a)), int(need[s, a])) for s, a in np.argwhere(need))


def after(missing, s, a):
    left = (((item, b - (item in ((s, a), (s, None))))) for item, b in missing)
    return tuple((item, b) for item, b in left if b > 0)


def all_policies(Ps, s, missing, depth, alive):
    """The steps [K] of every policy (a tree over what can be observed) that ends within `depth` steps.

    Deterministic candidates `Ps`, of which those in `alive` are possible; entries of the others are 0.
    """
    if not missing:
        return {(0,) * len(Ps)}
    if depth == 0:
        return set()
    found = set()
    for a in range(Ps[0].shape[1]):
        groups = {}
        for k in alive:
            groups.setdefault(int(Ps[k][s, a].argmax()), []).append(k)
        branches = [all_policies(Ps, t, after(missing, s, a), depth - 1, ks) for t, ks in groups.items()]
        for chosen in itertools.product(*branches):
            total = np.sum(chosen, axis=0)
            total[alive] += 1
            found.add(tuple(int(x) for x in total))
    return found


def game_value(prices):
    """min over mixtures of the rows of `prices` [n, K] of the largest mean, by its own linear program."""
    n, K = prices.shape
    A_ub, bounds = np.hstack([prices.T, -np.ones((K, 1))]), [(0, 1)] * n + [(None, None)]
    return linprog([0] * n + [1], A_ub=A_ub, b_ub=[0] * K, A_eq=[[1] * n + [0]], b_eq=[1], bounds=bounds).fun


def horizon_value(Ps, s, missing, depth, weight, known=None):
    """The least mean of min(steps, depth), by recursion over unnormalised posteriors `weight` [K]."""
    known = {} if known is None else known
    key = s, missing, depth, np.round(weight, 15).tobytes()
    if not missing or depth == 0 or not weight.any():
        return 0.0
    if key not in known:
        values = []
        for a in range(Ps.shape[2]):
            laws = ((t, weight * Ps[:, s, a, t]) for t in range(Ps.shape[1]))
            values.append(sum(horizon_value(Ps, t, after(missing, s, a), depth - 1, w, known) for t, w in laws))
        known[key] = weight.sum() + min(values)
    return known[key]


def uniform_steps(mdp, need):
    """The expected steps of a uniform walk, by a dense linear solve over (state, missing)."""
    P = mdp.dense()
    nodes, todo, rows = {}, [(mdp.start, missing_of(mdp, need))], []
    while todo:
        node = todo.pop()
        if node in nodes or not node[1]:
            continue
        nodes[node] = len(nodes)
        law = [
            ((t, after(node[1], node[0], a)), P[node[0], a, t] / P.shape[1])
            for a, t in np.ndindex(P.shape[1:])
            if P[node[0], a, t]
        ]
        rows.append(law)
        todo += [target for target, _ in law]
    M = np.eye(len(nodes))
    for i, law in enumerate(rows):
        for target, p in law:
            if target[1]:
                M[i, nodes[target]] -= p
    return np.linalg.solve(M, np.ones(len(nodes)))[0]


@st.composite
def sets_of_mdps(draw):
    """Two or three MDPs of two or three states; first actions form a ring; coarse probabilities, often 0 or 1."""
    S, A, K = draw(st.integers(2, 3)), draw(st.integers(1, 2)), draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    mdps = []
    for _ in range(K):
        w = rng.integers(0, 4, (S, A, S)) * (rng.random((S, A, S)) < 0.4)
        w[np.arange(S), 0, np.roll(np.arange(S), -1)] += 1
        w[~w.any(axis=2), 0] = 1
        mdps.append(TabularMDP(w / w.sum(axis=2, keepdims=True)))
    need = rng.integers(0, 2, (S, A))
    need[S - 1, 0] = 1
    return mdps, need, rng.dirichlet(np.ones(K))


# Closed forms


@pytest.mark.parametrize("actions", [1, 2, 3, 5])
def test_doors_are_tried_one_by_one(actions):
    """The door is found at try (A + 1) / 2 on average, whatever the order; by symmetry no prior is worse."""
    found, worst = bayes_price(doors(actions), [0, 1]), minimax_price(doors(actions), [0, 1])
    expected = (actions + 1) / 2 + 1
    assert (found.lower, found.upper) == pytest.approx((expected, expected), rel=EXACT)
    assert found.known == pytest.approx(2)
    assert found.ratio == pytest.approx((expected / 2, expected / 2), rel=EXACT)
    assert sorted(found.steps) == pytest.approx(np.arange(actions) + 2)
    assert worst.lower <= expected / 2 * (1 + EXACT)
    assert expected / 2 <= worst.upper * (1 + EXACT)
    assert worst.upper <= worst.lower * 1.001


def test_doors_with_a_prior_are_tried_in_its_order():
    prior = [0.1, 0.6, 0.3]
    found = bayes_price(doors(3), [0, 1], prior=prior)
    assert found.lower == pytest.approx(1 + 0.6 * 1 + 0.3 * 2 + 0.1 * 3, rel=EXACT)
    assert found.steps == pytest.approx([4, 2, 3])


def test_two_arms_take_turns():
    """A failure on one arm makes the other more likely; a failure on each changes nothing.

    Tries when the first is right: x = 1 + (1 - p) (1 + (1 - q) x), when it is wrong: y = 1 + (1 - q) (1 + (1 - p) y).
    """
    p, q = 0.8, 0.1
    both = (1 - p) * (1 - q)
    tries = ((1 + 1 - p) / (1 - both) + (1 + 1 - q) / (1 - both)) / 2
    found = bayes_price([arms(p, q), arms(q, p)], [0, 1], tolerance=1e-6)
    assert found.lower <= (tries + 1) * (1 + EXACT)
    assert found.upper == pytest.approx(tries + 1, rel=2e-6)
    assert found.lower == pytest.approx(tries + 1, rel=2e-6)
    assert found.known == pytest.approx(1 / p + 1)


def test_nothing_to_learn_costs_nothing():
    """One candidate, the same one twice, or candidates with the same best policy."""
    river = gosprl.envs.make("riverswim3")
    best = exact_optimum(river, 1)
    for candidates in ([river], [river] * 3):
        found = bayes_price(candidates, 1)
        assert (found.known, found.lower, found.upper) == pytest.approx((best,) * 3, rel=EXACT)
        assert minimax_price(candidates, 1).upper == pytest.approx(1, rel=1e-3)
    found = bayes_price([arms(0.9, 0.2), arms(0.5, 0.2)], [0, 2])
    assert found.ratio == pytest.approx((1, 1), rel=1e-3)


def test_a_mistake_that_cannot_be_undone():
    """One of two actions leads to the goal, the other to a trap: without known dynamics nobody gets there surely."""
    ways = [([0, 0, 1, 2], [0, 1, 0, 0], [1 + k, 2 - k, 1, 2], np.ones(4)) for k in range(2)]
    found = bayes_price([TabularMDP(parts) for parts in ways], [0, 1, 0])
    assert (found.known, found.lower, found.upper) == (pytest.approx(2), np.inf, np.inf)
    assert minimax_price([TabularMDP(parts) for parts in ways], [0, 1, 0]).lower == np.inf


# All policies


@pytest.mark.parametrize("seed", range(6))
def test_best_of_all_policies(seed):
    rng = np.random.default_rng(seed)
    Ps = []
    while len(Ps) < 3:
        P = np.eye(2)[rng.integers(0, 2, (2, 2))]
        if TabularMDP(P).is_communicating():
            Ps.append(P)
    need = [[1, 0], [1, 1]]
    mdps = [TabularMDP(P) for P in Ps]
    policies = np.array(sorted(all_policies(Ps, 0, missing_of(mdps[0], need), 7, [0, 1, 2])))
    for prior in (np.full(3, 1 / 3), rng.dirichlet(np.ones(3))):
        found = bayes_price(mdps, need, prior=prior)
        assert (found.lower, found.upper) == pytest.approx(((policies @ prior).min(),) * 2, rel=EXACT)
        assert prior @ found.steps == pytest.approx(found.upper)
        assert np.any(np.all(np.isclose(policies, found.steps), axis=1))
    for relative in (True, False):
        worst = minimax_price(mdps, need, relative=relative)
        value = game_value(policies / worst.optima if relative else policies)
        assert worst.lower <= value * (1 + EXACT)
        assert value <= worst.upper * (1 + EXACT)
        assert worst.upper <= worst.lower * (1 + 1e-3)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.8, 0.2]])
def test_a_long_horizon(prior):
    """Where 40 steps are almost always enough, cutting off there changes little."""
    mdps, need = [arms(0.8, 0.3), arms(0.4, 0.6)], [0, 2]
    cut = horizon_value(np.array([mdp.dense() for mdp in mdps]), 0, missing_of(mdps[0], need), 40, np.array(prior))
    found = bayes_price(mdps, need, prior=prior, tolerance=1e-5)
    assert cut <= found.upper * (1 + EXACT)
    assert (found.lower, found.upper) == pytest.approx((cut, cut), rel=2e-5)
    assert found.lower > found.known * 1.01


def test_fixed_policies_are_evaluated():
    """A uniform walk, beside a dense linear solve; and a policy that never opens the door."""
    mdps, need = [arms(0.8, 0.3), arms(0.4, 0.6), *doors(2)], [[1, 0], [0, 2]]
    family = as_candidates(mdps, need, None)
    uniform, first = np.full(family.down.shape, 0.5), np.tile([1.0, 0.0], (len(family.down), 2))
    expected = [uniform_steps(mdp, need) for mdp in mdps]
    assert family.steps_of(uniform)[:, -1, 0] == pytest.approx(expected, rel=EXACT)
    assert family.steps_of(first)[:, -1, 0].tolist() == [np.inf] * 4  # (1, 1) is never taken
    family = as_candidates(mdps, [0, 1], None)
    assert family.steps_of(first[:2])[:, -1, 0] == pytest.approx([1 / 0.8 + 1, 1 / 0.4 + 1, 2, np.inf], rel=EXACT)


# Random sets of candidates


@given(sets_of_mdps())
@settings(max_examples=15, deadline=None)
def test_bounds_are_in_order(problem):
    """fluid <= known <= lower <= upper <= a uniform walk, and the steps up to a horizon are below the upper bound."""
    mdps, need, prior = problem
    optima = np.array([exact_optimum(mdp, need) for mdp in mdps])
    found = bayes_price(mdps, need, prior=prior, tolerance=0.01)
    assert found.optima == pytest.approx(optima, rel=EXACT)
    assert found.known == pytest.approx(prior @ optima, rel=EXACT)
    assert all(fluid_limit(mdp, need) <= best * (1 + 1e-7) for mdp, best in zip(mdps, optima, strict=True))
    assert found.known <= found.lower * (1 + EXACT)
    assert found.lower <= found.upper * (1 + EXACT)
    assert found.upper <= found.lower * 1.01
    assert found.lower <= prior @ [uniform_steps(mdp, need) for mdp in mdps] * (1 + EXACT)
    assert np.all(found.steps >= optima * (1 - 1e-6))
    assert prior @ found.steps == pytest.approx(found.upper, rel=1e-5)
    Ps = np.array([mdp.dense() for mdp in mdps])
    assert horizon_value(Ps, 0, missing_of(mdps[0], need), 4, prior) <= found.upper * (1 + EXACT)


@given(sets_of_mdps())
@settings(max_examples=6, deadline=None)
def test_a_small_graph_has_wider_bounds(problem):
    mdps, need, prior = problem
    tight = bayes_price(mdps, need, prior=prior, tolerance=1e-3)
    for max_nodes in (1, 30):
        wide = bayes_price(mdps, need, prior=prior, max_nodes=max_nodes)
        assert wide.lower <= tight.upper * (1 + EXACT)
        assert tight.lower <= wide.upper * (1 + EXACT)


@given(sets_of_mdps())
@settings(max_examples=4, deadline=None)
def test_no_prior_is_worse_than_the_least_favourable(problem):
    mdps, need, prior = problem
    worst = minimax_price(mdps, need, tolerance=0.02)
    weight = prior / worst.optima
    some = bayes_price(mdps, need, prior=weight / weight.sum(), tolerance=0.01)
    assert 1 - EXACT <= worst.lower <= worst.upper * (1 + EXACT)
    assert some.lower * weight.sum() <= worst.upper * (1 + EXACT)
    least = worst.prior / worst.optima
    again = bayes_price(mdps, need, prior=least / least.sum(), tolerance=0.005)
    assert again.upper * least.sum() >= worst.lower * (1 - EXACT)


# Collectors that walk


def walked(mdp, need, strategy, seed):
    return gosprl.collect(mdp, need, strategy=strategy, seed=seed).steps


@pytest.mark.parametrize("strategy", ["guarded", "practical", "random"])
@pytest.mark.parametrize(("mdps", "need"), [(list(doors(3)), [0, 1]), ([arms(0.8, 0.1), arms(0.1, 0.8)], [0, 2])])
def test_collectors_do_not_beat_the_bound(mdps, need, strategy):
    """Mean of 30 runs in each candidate; false-alarm rate below 1e-6 each. A bound twice as large is rejected."""
    steps = np.array([[walked(mdp, need, strategy, 30 * k + i) for i in range(30)] for k, mdp in enumerate(mdps)])
    mean, error = steps.mean(), steps.std(axis=1, ddof=1).max() / steps.size**0.5
    assert bayes_price(mdps, need).lower <= mean + 5 * error
    assert 2 * bayes_price(mdps, need).lower > mean + 5 * error


# Needs and arguments


def test_no_need_costs_nothing():
    for need in (0, [0, 0], [[0, 0], [0, 0]]):
        found, worst = bayes_price(doors(2), need), minimax_price(doors(2), need)
        assert (found.known, found.lower, found.upper, found.ratio) == (0, 0, 0, (1, 1))
        assert (worst.lower, worst.upper) == (1, 1)
        assert minimax_price(doors(2), need, relative=False).upper == 0


def test_candidates_of_prior_zero_do_not_matter():
    never = TabularMDP(np.tile([1.0, 0.0], (2, 2, 1)))
    found = bayes_price([*doors(2), never], [0, 1], prior=[0.5, 0.5, 0])
    assert found.lower == pytest.approx(2.5)
    assert np.isnan(found.steps).tolist() == np.isnan(found.optima).tolist() == [False, False, True]


def test_the_start_may_be_given():
    assert bayes_price(doors(2), [0, 1], start=1).lower == pytest.approx(1)
    apart = [TabularMDP(mdp.dense(), k) for k, mdp in enumerate(doors(2))]
    assert bayes_price(apart, [0, 1], start=0).lower == pytest.approx(2.5)
    with pytest.raises(InputError, match=r"^start: the candidates start in 0 and 1; say where with start="):
        bayes_price(apart, [0, 1])


@pytest.mark.parametrize("price", [bayes_price, minimax_price])
@pytest.mark.parametrize(
    ("candidates", "need", "options", "message"),
    [
        ([], 1, {}, r"^candidates: expected at least one TabularMDP, got none"),
        (arms(0.5), 1, {}, r"^candidates: expected a list of TabularMDPs, got TabularMDP"),
        ([arms(0.5), STEP], 1, {}, r"^candidates: expected TabularMDPs, got ndarray at index 1"),
        (
            [arms(0.5), arms(0.5, 0.1)],
            1,
            {},
            r"^candidates: expected the same actions in the same states, got .*index 1",
        ),
        ([arms(0.5)], [1, 2, 3], {}, r"^need: expected a number"),
        ([arms(0.5)], -1, {}, r"^need: expected numbers of samples"),
        ([arms(0.5)], 1, {"start": 2}, r"^start: expected a state in 0..1, got 2"),
        ([arms(0.5)], 1, {"tolerance": 0}, r"^tolerance: expected a positive finite number"),
        ([arms(0.5)], 1, {"max_nodes": 0}, r"^max_nodes: expected a whole number >= 1"),
        ([arms(0.5)], 1, {"max_nodes": 10**9}, r"^max_nodes: expected at most 30000000 with 1 candidates"),
        ([arms(0.5), arms(0)], 1, {}, r"^need: .* can be met with probability 1 .*not so in candidate 1, from state 0"),
        (
            [arms(0.5)],
            10**4,
            {},
            r"at most 3000000 transitions, got 100020001 remaining needs x 3 transitions of 1 cand",
        ),
    ],
)
def test_arguments_are_checked(price, candidates, need, options, message):
    with pytest.raises(InputError, match=message):
        price(candidates, need, **options)


@pytest.mark.parametrize("prior", [[0.5, 0.6], [1.0], [1.5, -0.5], [[0.5, 0.5]], [np.nan, 1], "half"])
def test_priors_are_checked(prior):
    with pytest.raises(InputError, match=r"^prior: expected"):
        bayes_price(doors(2), [0, 1], prior=prior)


def test_rounds_are_checked():
    with pytest.raises(InputError, match=r"^max_rounds: expected a whole number >= 1"):
        minimax_price(doors(2), [0, 1], max_rounds=0)
