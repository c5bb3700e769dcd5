"""Ergodic chains: closed forms of laws and gaps, their definitions written out, and exact and simulated visits."""

import math

import numpy as np
import pytest
from random_mdps import random_mdp
from scipy.stats import binom

from gosprl import InputError, PrecisionError, TabularMDP, theory
from gosprl.envs import make
from gosprl.envs.lower_bounds import (
    two_state_chain,
)


def markov_chain(P):
    """A chain as an MDP of one action."""
    return TabularMDP(np.asarray(P)[:, None])


def lazy_ring(states, p):
    """A ring that moves to the next state with probability p, and else stays."""
    return (1 - p) * np.eye(states) + p * np.roll(np.eye(states), 1, axis=1)


def gap_as_defined(P, law, powers):
    """The pseudo-spectral gap as defined: max over k of the gap of (P*)^k P^k, divided by k."""
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
    """The gap is one, and the stationary law is that of a draw."""
    law = np.arange(1, states + 1) / (states * (states + 1) / 2)
    chain = theory.induced_chain(markov_chain(np.tile(law, (states, 1))), np.zeros(states))
    np.testing.assert_allclose(chain.law, law)
    assert chain.reversible
    assert chain.gap == pytest.approx(1)


@pytest.mark.parametrize("states", [3, 4, 8])
@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_a_lazy_ring_is_not_reversible(states, p):
    """(P*)^k P^k has the eigenvalues |1 - p + p e^{2 pi i j / S}|^{2 k}; k = 1 is best, as (1 - r^k) / k decreases."""
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
    """Right with 1/20, left with 9/20, else stay: mu(s) decreases by a factor of 9 from state to state."""
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
    """0 leads to 1, 1 to 2, and 2 to 0 or 1: one step does not contract the distance of laws on 0 and 1."""
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

    From the least likely state, the bound has its square root and a factor 1 / sqrt(mu_min): at most delta / S.
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

    Half of the mean steps to meet the need are too few, and the test must detect this.
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
