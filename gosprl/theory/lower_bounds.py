"""Appendix "Lower Bound": steps that collecting takes at least, on the families of `gosprl.envs.lower_bounds`.

A sample of a state is an action taken there, as everywhere in this library: steps to collect include the one that
leaves the state of the last sample.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from gosprl import _checks
from gosprl.envs.lower_bounds import epsilon_wheel
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.theory._inputs import _diameter


def lower_bound_two_state_chain(q: float, need: int) -> float:
    """B / (2 q) + B = B D / 2 + B: with probability at least 1/2, B = `need` samples of y take so many steps or more.

    On `two_state_chain(q)`, whose diameter is D = 1 / q, from either state, for B >= 5. The steps are those of the
    crossings from x, a negative binomial number of tries, and one more for each sample: the T_B of the paper, in whose
    proof each success takes two steps. The claim also holds if T_B is the time of arriving in y, one step less.
    """
    return _checks.whole("need", need, 5) * (0.5 / _checks.open_unit("q", q) + 1)


def lower_bound_epsilon_wheel(epsilons: ArrayLike, need: ArrayLike) -> float:
    """sum_s (b(s) (D_s - 1) / 2 + b(s)): with probability at least 1/2, the samples take so many steps or more.

    On `epsilon_wheel(epsilons)` from the center, for b = `need` [S] samples of the S rim states, each b(s) at least
    6 log(2 S). Here D_s - 1 = 1 / epsilon_s, the steps from the center.
    """
    S = epsilon_wheel(epsilons).num_states - 1  # which checks them
    b = _checks.integers("need", need, 0, None, "numbers of samples")
    if b.shape != (S,):
        raise InputError(f"need: expected samples of each rim state, [S] = ({S},), got shape {b.shape}")
    least = 6 * math.log(2 * S)
    few = np.flatnonzero(b < least)
    if few.size:
        raise InputError(
            f"need: the bound asks for at least 6 log(2 S) = {least:.4g} samples of each of S = {S} rim states, "
            f"got {b[few[0]]} at index {few[0]}"
        )
    return float(b @ (0.5 / np.asarray(epsilons, dtype=float) + 1))


def lower_bound_one_state_modification(mdp: TabularMDP, need: int) -> float:
    """(B - 1) D / 2: with probability at least 1/2, B = `need` samples of s_bar take more steps than that.

    On `one_state_modification(mdp)`, from any start, whatever the collector knows and does; s_bar is the second of
    `farthest_pair(mdp)`. D is the diameter of `mdp`, and D_{s_bar} of the changed MDP.

    The paper's lemma is for B above some threshold that depends on the collector and is not computed. B >= 1 + D log 2
    is enough for all collectors: let v be the hitting times to s_bar, at most D, and N_t the samples of it in t steps.
    Then D N_t - v(s_t) - t does not grow on average, and given the past its next value lies in an interval of length D.
    From 0 or less it comes to (B - 1) D - T at the time T of the last sample, which is (B - 1) D / 2 or more if
    T <= (B - 1) D / 2: with probability at most exp(-(B - 1) / D), by Hoeffding's inequality for supermartingales.
    """
    B, D = _checks.whole("need", need, 1), _diameter(mdp)
    least = 1 + D * math.log(2)
    if least > B:
        raise InputError(f"need: the bound asks for at least 1 + D log 2 = {least:.4g} samples, D = {D:.4g}, got {B}")
    return (B - 1) * D / 2


def lower_bound_hard_to_learn(states: int, actions: int, diameter: float, need: int) -> float:
    """(D + 1) B + D sqrt((S - 1) A B) / 1024: B = `need` samples of s_bar take so many steps or more in expectation.

    On `hard_to_learn(states, actions, diameter, need, special)` for a learner that does not know the special actions,
    if these are drawn uniformly: no bound for given ones, which a learner may happen to try first. The first term is
    what the samples take in expectation, from a state other than s_bar, if the special actions are known; the second
    is the price of learning.

    From a theorem of Cohen et al. (2020); the paper asks for B >= S A. Here A >= 2 and D >= 2 are asked as well: with
    one action there is nothing to learn, and with D = 1, where special actions never fail, every other action need fail
    but once, so that the bound is wrong for large B.
    """
    S, A = _checks.whole("states", states, 2), _checks.whole("actions", actions, 2)
    D, B = _checks.positive("diameter", diameter), _checks.whole("need", need, 1)
    if D < 2:
        raise InputError(f"diameter: the bound asks for at least 2 steps from any state to s_bar, got {diameter!r}")
    if B < S * A:
        raise InputError(f"need: the bound asks for at least states * actions = {S * A}, got {B}")
    return (D + 1) * B + D * math.sqrt((S - 1) * A * B) / 1024
