"""Orders of magnitude: the formulas by hand."""

import numpy as np
import pytest

from gosprl import InputError, TabularMDP, theory
from gosprl.envs import make
from gosprl.envs.lower_bounds import (
    epsilon_wheel,
    two_state_chain,
)


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
    """For TREASURE, as the paper says; the refined bound is below the other up to its lower-order term."""
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
    one_way = TabularMDP([[[0, 0.5, 0.5]], [[0, 1, 0]], [[0, 1, 0]]])
    with pytest.raises(InputError, match=r"^mdp: expected a communicating MDP .* got diameter inf of mdp"):
        theory.Orders(one_way)
