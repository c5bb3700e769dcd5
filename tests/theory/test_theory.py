"""The theory as code: closed forms, exact probabilities, linear solves, and the definitions written out."""

import math

import numpy as np
import pytest
from oracles import Points
from scipy.stats import binom, nbinom

import gosprl
from evidence.lower_bounds import within
from gosprl import InputError, PrecisionError, TabularMDP, exact_optimum, theory
from gosprl.envs import make
from gosprl.envs.lower_bounds import (
    epsilon_wheel,
    farthest_pair,
    hard_to_learn,
    one_state_modification,
    two_state_chain,
)


def random_mdp(rng, states, actions):
    """A communicating MDP: rows of a few successors, and a ring of first actions."""
    w = rng.random((states, actions, states)) ** 4 * (rng.random((states, actions, states)) < 0.6)
    w[..., 0] += 0.01
    w[np.arange(states), 0, np.roll(np.arange(states), -1)] += 0.05
    return TabularMDP(w / w.sum(axis=2, keepdims=True))


# Lower bounds: numbers and conditions


@pytest.mark.parametrize(("q", "need", "bound"), [(0.5, 5, 10), (0.25, 6, 18), (0.01, 100, 5100)])
def test_bound_of_the_chain(q, need, bound):
    assert theory.lower_bound_two_state_chain(q, need) == pytest.approx(bound)
    assert need * two_state_chain(q).diameter() / 2 + need == pytest.approx(bound)


@pytest.mark.parametrize("q", [0.999, 0.9, 0.7, 0.5, 0.3, 0.1, 0.03, 0.01, 0.001])
@pytest.mark.parametrize("need", [5, 6, 7, 8, 10, 20, 100])
def test_the_chain_keeps_its_bound_from_either_state_and_with_the_last_step_or_without(q, need):
    """P(T_B >= B D / 2 + B), exactly: crossings (one less from y) take a negative binomial number of tries."""
    bound = theory.lower_bound_two_state_chain(q, need)
    for crossings in (need, need - 1):
        for leaving in (need, need - 1):  # steps out of y
            failures = math.ceil(bound * (1 - 1e-12)) - leaving - crossings
            assert nbinom.sf(failures - 1, crossings, q) >= 0.5


def test_bound_of_the_wheel():
    epsilons, need = np.array([0.5, 0.25, 0.1]), np.array([11, 20, 30])
    bound = theory.lower_bound_epsilon_wheel(epsilons, need)
    assert bound == pytest.approx(11 * 2 + 20 * 3 + 30 * 6)
    D = epsilon_wheel(epsilons).ssp_diameters()[1:]
    assert bound == pytest.approx(np.sum(need * (D - 1) / 2 + need))


def test_a_wheel_with_one_rim_state_is_the_chain():
    assert theory.lower_bound_epsilon_wheel([0.2], [9]) == theory.lower_bound_two_state_chain(0.2, 9)


@pytest.mark.parametrize("name", ["toy3", "riverswim6"])
def test_bound_of_a_changed_state(name):
    mdp = make(name)
    assert theory.lower_bound_one_state_modification(mdp, 101) == pytest.approx(50 * mdp.diameter())


def to_be_changed():
    rng = np.random.default_rng(7)
    named = [make("toy3"), make("riverswim6"), two_state_chain(0.1), epsilon_wheel([0.5, 0.5, 0.5])]
    return named + [random_mdp(rng, rng.integers(2, 5), rng.integers(1, 4)) for _ in range(8)]


changed_mdps = pytest.mark.parametrize("mdp", to_be_changed(), ids=lambda mdp: mdp.name)


@changed_mdps
def test_no_policy_is_likely_to_beat_the_bound_of_a_changed_state(mdp):
    """Exactly, for the policy that is most likely to be early, and for few samples as for many.

    Five times the bound is more than half of the runs take, or the claim would say nothing.
    """
    changed, (_, s_bar), D = one_state_modification(mdp), farthest_pair(mdp), mdp.diameter()
    for need in (math.ceil(1 + D * math.log(2)), math.ceil(20 + D)):
        bound = theory.lower_bound_one_state_modification(mdp, need)
        for start in range(mdp.num_states):
            early = within(TabularMDP(changed.dense(), start), s_bar, need, math.floor(bound))
            assert early <= math.exp(-(need - 1) / D) <= 0.5
    assert within(changed, s_bar, need, math.floor(5 * bound)) > 0.5


@changed_mdps
def test_what_the_bound_of_a_changed_state_rests_on(mdp):
    """D N_t - v(s_t) - t falls on average, whatever the action, and its next value lies in an interval of length D."""
    changed, (_, s_bar) = one_state_modification(mdp), farthest_pair(mdp)
    points = Points.from_dense(changed.dense())
    v, D = points.optimum([s_bar]), mdp.diameter()
    assert v.max() == pytest.approx(D)
    sampled = D * (points.state == s_bar)
    assert np.all(sampled + v[points.state] - points.P @ v - 1 <= 1e-9 * D)


@pytest.mark.parametrize(("states", "actions", "diameter", "need"), [(2, 2, 2, 4), (3, 2, 4, 10), (4, 3, 7.5, 12)])
def test_first_term_of_the_bound_of_learning(states, actions, diameter, need):
    """Is what known dynamics take; the second is below what an agent pays that never learns."""
    bound = theory.lower_bound_hard_to_learn(states, actions, diameter, need)
    price = diameter * math.sqrt((states - 1) * actions * need) / 1024
    mdp = hard_to_learn(states, actions, diameter, need)
    wanted = np.append(np.zeros(states - 1, dtype=int), need)
    assert exact_optimum(mdp, wanted) == pytest.approx(bound - price, rel=1e-8)
    P = mdp.dense().mean(axis=1)[:-1, :-1]
    blind = np.linalg.solve(np.eye(states - 1) - P, np.ones(states - 1))  # uniform actions: steps to s_bar
    assert bound < need * (blind.mean() + 1)


def test_with_one_action_the_bound_of_learning_would_be_wrong():
    """Hence the condition: all there is to know is known, and (D + 1) B steps are enough."""
    assert exact_optimum(hard_to_learn(3, 1, 4, 10), [0, 0, 10]) == pytest.approx(50, rel=1e-8)
    with pytest.raises(InputError, match=r"^actions: expected a whole number >= 2, got 1"):
        theory.lower_bound_hard_to_learn(3, 1, 4, 10)


def test_collecting_does_not_beat_the_bound_of_learning():
    """Mean of 40 runs, special actions at random: below the bound by 5 standard errors with probability below 1e-6.

    One and a half times the bound must be rejected.
    """
    S, A, D, need = 3, 2, 4, 24
    bound, rng = theory.lower_bound_hard_to_learn(S, A, D, need), np.random.default_rng(0)
    steps = np.array(
        [
            gosprl.collect(hard_to_learn(S, A, D, need, rng.integers(A, size=S - 1)), [0, 0, need], seed=seed).steps
            for seed in range(40)
        ]
    )
    upper = steps.mean() + 5 * steps.std(ddof=1) / math.sqrt(len(steps))
    assert bound <= upper < 1.5 * bound


@pytest.mark.parametrize(
    ("bound", "arguments", "message"),
    [
        ("two_state_chain", (0.5, 4), r"^need: expected a whole number >= 5, got 4"),
        ("two_state_chain", (1.0, 5), r"^q: expected a number strictly between 0 and 1, got 1.0"),
        ("epsilon_wheel", ([0.5, 1.5], [9, 9]), r"^epsilons: expected numbers strictly between 0 and 1, got 1.5"),
        ("epsilon_wheel", ([0.5, 0.5], [9]), r"^need: expected samples of each rim state, \[S\] = \(2,\), got shape"),
        ("epsilon_wheel", ([0.5, 0.5], [9, 8]), r"^need: .* 6 log\(2 S\) = 8.318 .* S = 2 .* got 8 at index 1"),
        ("epsilon_wheel", ([0.5, 0.5], [9, 9.5]), r"^need: expected whole numbers"),
        ("one_state_modification", (two_state_chain(0.1), 7), r"^need: .* 1 \+ D log 2 = 7.931 .* D = 10, got 7"),
        ("one_state_modification", (two_state_chain(0.1), 8.0), r"^need: expected a whole number >= 1, got 8.0"),
        ("one_state_modification", (TabularMDP([[[1]]]), 9), r"^mdp: expected a communicating MDP of at least two"),
        ("one_state_modification", (TabularMDP([[[0, 1]], [[0, 1]]]), 9), r"^mdp: expected a communicating MDP .* inf"),
        ("one_state_modification", ("toy3", 9), r"^mdp: expected a TabularMDP, got str"),
        ("hard_to_learn", (1, 2, 4, 10), r"^states: expected a whole number >= 2"),
        ("hard_to_learn", (3, 2, 1.5, 10), r"^diameter: expected at least 2 steps .* got 1.5"),
        ("hard_to_learn", (3, 2, np.inf, 10), r"^diameter: expected a positive finite number"),
        ("hard_to_learn", (3, 2, 4, 5), r"^need: expected at least states \* actions = 6 samples, got 5"),
    ],
)
def test_conditions_of_the_lower_bounds(bound, arguments, message):
    with pytest.raises(InputError, match=message):
        getattr(theory, f"lower_bound_{bound}")(*arguments)


# Ergodic chains


def markov_chain(P):
    """A chain as an MDP of one action."""
    return TabularMDP(np.asarray(P)[:, None])


def lazy_ring(states, p):
    """Stays, or goes on to the next state with p."""
    return (1 - p) * np.eye(states) + p * np.roll(np.eye(states), 1, axis=1)


def gap_as_defined(P, law, powers):
    """max over k of the gap of (P*)^k P^k, divided by k."""
    reverse = P.T * law / law[:, None]
    best = 0
    for k in range(1, powers + 1):
        product = np.linalg.matrix_power(reverse, k) @ np.linalg.matrix_power(P, k)
        eigenvalues = np.sort(np.linalg.eigvals(product).real)
        best = max(best, (1 - eigenvalues[-2]) / k)
    return best


@pytest.mark.parametrize("q", [0.9, 0.5, 0.01])
def test_the_two_state_chain_is_reversible(q):
    """Its eigenvalues are 1 and -q."""
    chain = theory.induced_chain(two_state_chain(q), [0, 0])
    np.testing.assert_allclose(chain.law, [1 / (1 + q), q / (1 + q)])
    assert chain.reversible
    assert chain.gap == pytest.approx(1 - q)


@pytest.mark.parametrize("states", [2, 3, 7])
def test_independent_draws(states):
    """The gap is one, the law that of a draw."""
    law = np.arange(1, states + 1) / (states * (states + 1) / 2)
    chain = theory.induced_chain(markov_chain(np.tile(law, (states, 1))), np.zeros(states))
    np.testing.assert_allclose(chain.law, law)
    assert chain.reversible
    assert chain.gap == pytest.approx(1)


@pytest.mark.parametrize("states", [3, 4, 8])
@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_a_lazy_ring_is_not_reversible(states, p):
    """(P*)^k P^k has the eigenvalues |1 - p + p e^{2 pi i j / S}|^{2 k}; k = 1 is best, as (1 - r^k) / k falls."""
    chain = theory.induced_chain(markov_chain(lazy_ring(states, p)), np.zeros(states))
    np.testing.assert_allclose(chain.law, 1 / states)
    assert not chain.reversible
    assert chain.gap == pytest.approx(2 * p * (1 - p) * (1 - math.cos(2 * math.pi / states)))


def test_the_reflected_walk():
    """Left or right by a fair coin, staying at the ends: eigenvalues cos(pi j / S)."""
    S = 6
    P = (np.eye(S, k=1) + np.eye(S, k=-1)) / 2
    P[0, 0] = P[-1, -1] = 0.5
    chain = theory.induced_chain(markov_chain(P), np.zeros(S))
    assert chain.reversible
    assert chain.gap == pytest.approx(1 - math.cos(math.pi / S))


def test_small_stationary_probabilities():
    """Right with 1/20, left with 9/20, else stay: mu(s) falls by a factor of 9 from state to state."""
    S = 30
    P = 0.05 * np.eye(S, k=1) + 0.45 * np.eye(S, k=-1)
    P += np.diag(1 - P.sum(axis=1))
    chain = theory.induced_chain(markov_chain(P), np.zeros(S))
    expected = 9.0 ** -np.arange(S)
    np.testing.assert_allclose(chain.law, expected / expected.sum(), rtol=1e-12)
    assert chain.reversible
    # a birth-death chain of equal steps p, q: the second eigenvalue is 1 - p - q + 2 sqrt(p q) cos(pi / S)
    assert chain.gap == pytest.approx(0.5 - 2 * 0.15 * math.cos(math.pi / S))


def test_a_gap_that_no_single_step_shows():
    """0 to 1 to 2 surely, from there to 0 or 1: one step keeps laws on 0 and 1 as far apart as they are."""
    P = np.array([[0, 1, 0], [0, 0, 1], [0.5, 0.5, 0]])
    chain = theory.induced_chain(markov_chain(P), np.zeros(3))
    np.testing.assert_allclose(chain.law, [0.2, 0.4, 0.4])
    assert gap_as_defined(P, chain.law, 1) == pytest.approx(0, abs=1e-12)
    assert chain.gap == pytest.approx(gap_as_defined(P, chain.law, 100))


def test_laws_and_gaps_of_random_policies():
    rng = np.random.default_rng(4)
    for _ in range(20):
        mdp = random_mdp(rng, rng.integers(2, 6), rng.integers(1, 4))
        policy = rng.dirichlet(np.ones(mdp.num_actions), size=mdp.num_states)
        chain = theory.induced_chain(mdp, policy)
        P = sum(policy[:, [a]] * mdp.dense()[:, a] for a in range(mdp.num_actions))
        np.testing.assert_allclose(chain.P, P)
        np.testing.assert_allclose(np.linalg.matrix_power(P, 100_000)[0], chain.law, atol=1e-9)
        if not chain.reversible:
            assert chain.gap == pytest.approx(gap_as_defined(P, chain.law, 200), rel=1e-6)


def test_actions_are_probabilities_of_one():
    mdp = make("riverswim6")
    actions = [1] * 6
    by_actions, by_law = (theory.induced_chain(mdp, policy) for policy in (actions, np.eye(2)[actions]))
    np.testing.assert_array_equal(by_actions.P, mdp.dense()[np.arange(6), actions])
    np.testing.assert_array_equal(by_actions.P, by_law.P)
    assert by_actions.gap == by_law.gap


def test_a_chain_takes_no_array_of_all_actions_and_one_that_is_too_large_is_refused(monkeypatch):
    mdp = make("riverswim6")
    monkeypatch.setattr("gosprl.mdp.tabular.MAX_DENSE", 36)
    with pytest.raises(InputError, match="at most 36 entries, got 6 x 2 x 6"):
        mdp.dense()
    assert theory.induced_chain(mdp, np.full((6, 2), 0.5)).P.shape == (6, 6)
    monkeypatch.setattr("gosprl.theory.ergodicity.MAX_DENSE", 35)
    with pytest.raises(InputError, match="mdp: expected a chain of at most 35 entries, got 6 x 6"):
        theory.induced_chain(mdp, np.full((6, 2), 0.5))


def test_radius_as_printed():
    """Eq. (ergodic) for the chain of q = 1/2: gamma = 1/2, mu_min = 1/3."""
    chain = theory.induced_chain(two_state_chain(0.5), [0, 0])
    L = math.log(2 / 0.1 * math.sqrt(6))
    radius = math.sqrt(2 * L / (0.5 * 700)) + 20 * L / (0.5 * 700)
    assert theory.visit_radius(chain, 700, 0.1) == pytest.approx(radius)
    np.testing.assert_allclose(theory.visits_at_least(chain, 700, 0.1), 700 * (np.array([2, 1]) / 3 - radius))


def test_radius_of_a_chain_that_is_not_reversible():
    """Bernstein's inequality 2 exp(-x^2 gamma / (8 (t + 1 / gamma) V + 20 x)), V <= 1/4, at x = t radius.

    From the least likely state its square root counts, and 1 / sqrt(mu_min): at most delta / S is left.
    """
    chain = theory.induced_chain(markov_chain(lazy_ring(3, 0.3)), np.zeros(3))
    gamma, delta = chain.gap, 0.05
    for t in (1, 10, 1000, 10**6):
        x = t * theory.visit_radius(chain, t, delta)
        stationary = 2 * math.exp(-(x**2) * gamma / (2 * (t + 1 / gamma) + 20 * x))
        assert math.sqrt(3 * stationary) <= delta / 3


ERGODIC = {
    "two states": (two_state_chain(0.5), [0, 0], [40, 20]),
    "lazy ring": (markov_chain(lazy_ring(4, 0.5)), [0] * 4, [100, 0, 1, 30]),
    "riverswim6": (make("riverswim6"), [[0.5, 0.5]] * 6, [5, 5, 5, 1, 0, 0]),
}
ergodic = pytest.mark.parametrize("name", ERGODIC)


@ergodic
def test_steps_until_met_are_the_least(name):
    mdp, policy, need = ERGODIC[name]
    chain, need = theory.induced_chain(mdp, policy), np.array(need)
    t = theory.steps_until_met(chain, need, 0.1)
    wanted = need > 0
    assert np.all(theory.visits_at_least(chain, t, 0.1)[wanted] >= need[wanted])
    assert np.any(theory.visits_at_least(chain, t - 1, 0.1)[wanted] < need[wanted])


@ergodic
def test_the_need_is_met_by_then(name):
    """200 runs at delta = 0.1: more failures than a binomial has with probability 1e-6 would refute the bound.

    Half as many steps as the need alone takes on average are too few, and must be found so.
    """
    mdp, policy, need = ERGODIC[name]
    chain, runs, delta = theory.induced_chain(mdp, policy), 200, 0.1
    t = theory.steps_until_met(chain, need, delta)
    too_few = int(np.max(need / chain.law) / 2)
    rng, next_law = np.random.default_rng(6), np.cumsum(chain.P, axis=1)
    s, visits, failed = np.full(runs, mdp.start), np.zeros((runs, len(need))), {}
    for step in range(1, t + 1):
        visits[np.arange(runs), s] += 1
        s = np.minimum((rng.random((runs, 1)) >= next_law[s]).sum(axis=1), len(need) - 1)
        if step in (too_few, t):
            failed[step] = int((visits < need).any(axis=1).sum())
    assert binom.sf(failed[t] - 1, runs, delta) >= 1e-6
    assert binom.sf(failed[too_few] - 1, runs, delta) < 1e-6


def test_no_need_takes_no_steps():
    assert theory.steps_until_met(theory.induced_chain(two_state_chain(0.5), [0, 0]), [0, 0], 0.1) == 0


def test_chains_that_hardly_mix_are_refused():
    apart = np.array([[1 - 1e-15, 1e-15], [1e-15, 1 - 1e-15]])
    with pytest.raises(PrecisionError, match=r"^policy: its chain mixes too slowly"):
        theory.induced_chain(markov_chain(apart), [0, 0])


def test_one_state_is_a_chain():
    chain = theory.induced_chain(TabularMDP([[[1]]]), [0])
    assert (chain.law[0], chain.gap, chain.reversible) == (1, 1, True)


RING3 = markov_chain(np.roll(np.eye(3), 1, axis=1))
INTO = TabularMDP([[[0, 0.5, 0.5]], [[0, 1, 0]], [[0, 1, 0]]])


@pytest.mark.parametrize(
    ("mdp", "policy", "message"),
    [
        (RING3, [0] * 3, r"^policy: .* ergodic; .* period is 3: it visits states 0 only every 3 steps"),
        (two_state_chain(1), [0, 0], r"^policy: .* ergodic; .* period is 2: it visits states 0 only every 2 steps"),
        (INTO, [0] * 3, r"^policy: .* ergodic; in mdp it never leads from states 1 to states 0, 2$"),
        (
            make("riverswim6"),
            [0] * 6,
            r"^policy: .* in riverswim6 it never leads from states 0 to states 1, 2, 3, 4, 5$",
        ),
        (make("toy3"), [0, 1, 0], r"^policy: action 1 does not exist in state 1 of toy3"),
        (make("toy3"), [0, 0, 2], r"^policy: expected actions in 0..1, got 2 at index 2"),
        (make("toy3"), [0, 0], r"^policy: expected actions \[S\] = \(3,\) or their probabilities .* got shape \(2,\)"),
        (
            make("toy3"),
            [[1, 0], [1, 0], [0.5, 0.4]],
            r"^policy: expected probabilities .* sum to one .* got \[0.5 0.4\] in 2",
        ),
        (make("toy3"), [[1, 0], [1, 0], [1.5, -0.5]], r"^policy: expected probabilities >= 0"),
        (make("toy3"), 0, r"^policy: expected actions .* got shape \(\)"),
        (make("toy3"), [[1, 0], [1, 0], [np.nan, 1]], r"^policy: expected probabilities >= 0"),
        (make("toy3"), "left", r"^policy: expected numbers"),
        ("toy3", [0], r"^mdp: expected a TabularMDP, got str"),
    ],
)
def test_policies_are_checked(mdp, policy, message):
    with pytest.raises(InputError, match=message):
        theory.induced_chain(mdp, policy)


@pytest.mark.parametrize(
    ("need", "delta", "message"),
    [
        ([1], 0.1, r"^need: expected samples of each state, \[S\] = \(2,\), got shape \(1,\)"),
        ([1, -1], 0.1, r"^need: expected numbers of samples >= 0, got -1"),
        ([1, 1], 1.0, r"^delta: expected a number strictly between 0 and 1"),
    ],
)
def test_needs_of_chains_are_checked(need, delta, message):
    with pytest.raises(InputError, match=message):
        theory.steps_until_met(theory.induced_chain(two_state_chain(0.5), [0, 0]), need, delta)


# Orders of magnitude


def test_formulas_by_hand():
    """The chain of q = 1/4: S = 2, A = 1, D_s = (1, 4), D = 4, Gamma = 2, D^{3/2} S^2 A = 32."""
    order = theory.Orders(two_state_chain(0.25))
    by_hand = [
        (order.burn_in, 32),
        (order.collect([3, 5]), 8 * 4 + 32),
        (order.collect(3), 6 * 4 + 32),
        (order.collect([[1], [2]]), 3 * 4 + 32),
        (order.collect_by_state([3, 5]), (3 * 1 + 1 * 4) + (5 * 4 + 8 * 4)),
        (order.treasure(), 32),
        (order.treasure_by_ucrl(), (1 + 64) * 4),
        (order.treasure_by_maxent(0.5), 64 * 8),  # the other is 16 * 4 * 4
        (order.modest(0.5), 4 * 2 * 2 * 4 + 4 * 4 * 2 + 32),
        (order.robust_modest(0.5), 4 * 2 * 4 + 32),
        (order.goal_free_cost_free(0.5, theta=2), 1024 * 16 * 4 + 256 * 16 * 2 + 256 * 256),  # omega = 1/16
        (order.goal_free_cost_free(0.5, c_min=0.25), 1024 * 4 * 4 + 256 * 4 * 2 + 256 * 16),
        (order.diameter(0.5), 64 * 4 * 4),
        (order.rewards(0.5), 4 * 2 * 4 + 32),
        (order.best_state([0.25, 0.75]), 4 * 2 / 0.25 + 32),
    ]
    np.testing.assert_allclose([got for got, _ in by_hand], [expected for _, expected in by_hand])


def test_formulas_in_more_actions():
    """The wheel of 1/2 and 1/4: S = 3, A = 2, six pairs; D_s = (1, 3, 5), Gamma = 2."""
    order = theory.Orders(epsilon_wheel([0.5, 0.25]))
    assert (order.S, order.A, order.Gamma) == (3, 2, 2)
    np.testing.assert_allclose(order.D_s, [1, 3, 5])
    assert order.treasure() == pytest.approx(5**1.5 * 18)
    assert order.treasure_by_maxent(1 / 6) == pytest.approx(max(25 * 18 * 36, 125 * 216))
    assert order.modest(1) == pytest.approx(5 * 2 * 6 + 5 * 18 + 5**1.5 * 18)
    assert order.best_state([0, 0.5, 1]) == pytest.approx(5 * max(2 / 0.25, 3 / 1) + 5**1.5 * 18)
    assert order.best_state([0.5, 1, 0.9]) == pytest.approx(5 * max(2 / 0.01, 3 / 0.25) + 5**1.5 * 18)


def test_either_error_of_maxent_may_be_the_larger():
    """With D = 1 it is the first: D^2 S^2 A / omega^2 = 16 against 8."""
    assert theory.Orders(two_state_chain(1)).treasure_by_maxent(0.5) == pytest.approx(16)


@pytest.mark.parametrize("name", ["toy3", "riverswim6", "corridor24", "four_room43"])
def test_the_alternatives_are_worse(name):
    """For TREASURE, as the paper says; and the bound by states is below the other but for its lower-order term."""
    order = theory.Orders(make(name))
    assert order.treasure() < order.treasure_by_ucrl()
    assert order.treasure() < order.treasure_by_maxent(1 / len(order.mdp.rows))
    assert order.collect_by_state(10**6) < order.collect(10**6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda order: order.treasure_by_maxent(0.6), r"^omega: expected at most 1 / \(number of pairs\) = 1 / 2"),
        (lambda order: order.treasure_by_maxent(0), r"^omega: expected a positive finite number"),
        (lambda order: order.modest(0), r"^eta: expected a positive finite number"),
        (lambda order: order.robust_modest(np.inf), r"^eta: expected a positive finite number"),
        (lambda order: order.goal_free_cost_free(1.5, theta=2), r"^epsilon: expected a number in \(0, 1\], got 1.5"),
        (lambda order: order.goal_free_cost_free(0.5), r"^theta, c_min: .* not both .* got inf and 0.0"),
        (lambda order: order.goal_free_cost_free(0.5, theta=0.5), r"^theta, c_min: expected theta >= 1"),
        (lambda order: order.goal_free_cost_free(0.5, c_min=2), r"^theta, c_min: expected"),
        (lambda order: order.goal_free_cost_free(0.5, c_min=np.nan), r"^c_min: expected a positive"),
        (lambda order: order.goal_free_cost_free(0.5, theta="2"), r"^theta: expected a positive"),
        (lambda order: order.diameter(-1), r"^epsilon: expected a positive finite number"),
        (lambda order: order.rewards(None), r"^epsilon: expected a positive finite number"),
        (lambda order: order.best_state([1]), r"^means: expected finite mean rewards \[S\] = \(2,\)"),
        (lambda order: order.best_state([1, 1]), r"^means: expected one best state, got several with 1"),
        (lambda order: order.collect([1, 2, 3]), r"^need: expected"),
    ],
)
def test_arguments_of_orders_are_checked(call, message):
    with pytest.raises(InputError, match=message):
        call(theory.Orders(two_state_chain(0.5)))


def test_orders_are_for_communicating_mdps():
    with pytest.raises(InputError, match=r"^mdp: expected a communicating MDP .* got diameter inf of mdp"):
        theory.Orders(INTO)


# A finite horizon


@pytest.mark.parametrize("H", [1, 2, 3, 10])
def test_what_nobody_reaches_within_the_horizon_is_on_half_of_the_ways(H):
    mdp = theory.finite_horizon_example(H)
    x, y, z = 0, 1, 2
    assert (mdp.num_states, mdp.num_actions, mdp.start) == (2 * H + 2, 1, x)
    assert mdp.is_communicating()
    at = [[theory.reach_within(mdp, s, steps)[x] for steps in range(H + 3)] for s in (y, z)]
    assert at[0] == [0] * (H + 1) + [0.5, 0.5]
    assert at[1] == [0] * H + [0.5, 0.5, 1]
    times = mdp.hitting_times()
    assert times[x, z] == pytest.approx(H / 2 + (H + 2) / 2)
    assert times[y, z] == pytest.approx(1)
    without = mdp.dense()
    without[y, 0] = np.eye(2 * H + 2)[y]  # were y a dead end, half of all ways would end there
    assert theory.reach_within(TabularMDP(without), z, 100 * H)[x] == 0.5


@pytest.mark.parametrize("h", [0, 1, 2, 7])
def test_reaching_the_rim_of_a_wheel(h):
    epsilons = np.array([0.5, 0.1])
    v = theory.reach_within(epsilon_wheel(epsilons), 2, h)
    center = 1 - 0.9**h
    np.testing.assert_allclose(v, [center, 1 - 0.9 ** max(h - 1, 0), 1], atol=1e-12)
    first_of_both = theory.reach_within(epsilon_wheel(epsilons), [1, 2], h)
    np.testing.assert_allclose(first_of_both, [1 - 0.5**h, 1, 1])


def test_the_best_way_depends_on_the_steps_left():
    """At once with 0.6, and else never; or surely in two steps."""
    s, a, s_next, p = [0, 0, 0, 1, 2, 3], [0, 0, 1, 0, 0, 0], [2, 3, 1, 2, 2, 3], [0.6, 0.4, 1, 1, 1, 1]
    mdp = TabularMDP((s, a, s_next, p))
    assert [theory.reach_within(mdp, 2, h)[0] for h in range(4)] == [0, 0.6, 1, 1]


def test_reach_within_is_its_recursion():
    rng = np.random.default_rng(2)
    for _ in range(20):
        mdp = random_mdp(rng, rng.integers(2, 6), rng.integers(1, 4))
        P, goals = mdp.dense(), [int(rng.integers(mdp.num_states))]

        def best(s, h, P=P, goals=goals):
            if s in goals or h == 0:
                return float(s in goals)
            return max(sum(p * best(t, h - 1) for t, p in enumerate(row) if p) for row in P[s] if row.any())

        expected = [best(s, 4) for s in range(mdp.num_states)]
        np.testing.assert_allclose(theory.reach_within(mdp, goals, 4), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.finite_horizon_example(0), r"^horizon: expected a whole number >= 1, got 0"),
        (lambda: theory.finite_horizon_example(10**15), r"^horizon: .* needs about"),
        (lambda: theory.reach_within(two_state_chain(0.5), 2, 3), r"^goals: expected states in 0..1, got 2"),
        (lambda: theory.reach_within(two_state_chain(0.5), 1, -1), r"^horizon: expected a whole number >= 0, got -1"),
        (lambda: theory.reach_within("toy3", 1, 1), r"^mdp: expected a TabularMDP, got str"),
    ],
)
def test_horizons_and_goals_are_checked(call, message):
    with pytest.raises(InputError, match=message):
        call()
