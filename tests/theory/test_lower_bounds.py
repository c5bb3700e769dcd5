"""Lower bounds: closed forms, exact probabilities, and the conditions of each bound."""

import math

import numpy as np
import pytest
from oracles import Points
from random_mdps import random_mdp
from scipy.stats import nbinom

import gosprl
from evidence.lower_bounds import within
from gosprl import InputError, TabularMDP, exact_optimum, theory
from gosprl.envs import make
from gosprl.envs.lower_bounds import (
    epsilon_wheel,
    farthest_pair,
    hard_to_learn,
    one_state_modification,
    two_state_chain,
)


@pytest.mark.parametrize(("q", "need", "bound"), [(0.5, 5, 10), (0.25, 6, 18), (0.01, 100, 5100)])
def test_bound_of_the_chain(q, need, bound):
    assert theory.lower_bound_two_state_chain(q, need) == pytest.approx(bound)
    assert need * two_state_chain(q).diameter() / 2 + need == pytest.approx(bound)


@pytest.mark.parametrize("q", [0.999, 0.9, 0.7, 0.5, 0.3, 0.1, 0.03, 0.01, 0.001])
@pytest.mark.parametrize("need", [5, 6, 7, 8, 10, 20, 100])
def test_the_chain_keeps_its_bound_from_either_state_and_with_the_last_step_or_without(q, need):
    """P(T_B >= B D / 2 + B) exactly: the crossings (one less from y) take a negative binomial number of tries."""
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
    """Exact probability of the policy that is most likely to be early, for few and for many samples.

    More than half of the runs take less than five times the bound, so the test would detect such a bound.
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
    """D N_t - v(s_t) - t is a supermartingale under every action, and its next value is in an interval of length D."""
    changed, (_, s_bar) = one_state_modification(mdp), farthest_pair(mdp)
    points = Points.from_dense(changed.dense())
    v, D = points.optimum([s_bar]), mdp.diameter()
    assert v.max() == pytest.approx(D)
    sampled = D * (points.state == s_bar)
    assert np.all(sampled + v[points.state] - points.P @ v - 1 <= 1e-9 * D)


@pytest.mark.parametrize(("states", "actions", "diameter", "need"), [(2, 2, 2, 4), (3, 2, 4, 10), (4, 3, 7.5, 12)])
def test_first_term_of_the_bound_of_learning(states, actions, diameter, need):
    """It is the expected steps with known dynamics; the second term is below the cost of never learning."""
    bound = theory.lower_bound_hard_to_learn(states, actions, diameter, need)
    price = diameter * math.sqrt((states - 1) * actions * need) / 1024
    mdp = hard_to_learn(states, actions, diameter, need)
    wanted = np.append(np.zeros(states - 1, dtype=int), need)
    assert exact_optimum(mdp, wanted) == pytest.approx(bound - price, rel=1e-8)
    P = mdp.dense().mean(axis=1)[:-1, :-1]
    blind = np.linalg.solve(np.eye(states - 1) - P, np.ones(states - 1))  # uniform actions: steps to s_bar
    assert bound < need * (blind.mean() + 1)


def test_with_one_action_the_bound_of_learning_would_be_wrong():
    """Hence the condition: there is nothing to learn, and (D + 1) B expected steps are sufficient."""
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
