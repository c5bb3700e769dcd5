"""Appendix "Lower Bound": lower bounds on the steps to collect samples, on the families of `gosprl.envs.lower_bounds`.

In this library, a sample of a state is an action taken there. So the steps include the action taken in the state of the
last sample.
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
    """Return B / (2 q) + B = B D / 2 + B, for B samples of y on `two_state_chain(q)`.

    With probability at least 1/2, collecting takes at least that many steps, from either state. D = 1 / q is the
    diameter. The steps consist of a negative binomial number of tries to move from x to y, and one step for each
    sample: the T_B of the paper, in whose proof each success takes two steps. The claim also holds if T_B is the time
    of arrival in y, one step less.

    Parameters
    ----------
    q
        In (0, 1).
    need
        B >= 5.
    """
    return _checks.whole("need", need, 5) * (0.5 / _checks.open_unit("q", q) + 1)


def lower_bound_epsilon_wheel(epsilons: ArrayLike, need: ArrayLike) -> float:
    """Return sum_s (b(s) (D_s - 1) / 2 + b(s)), for b(s) samples of each rim state on `epsilon_wheel(epsilons)`.

    With probability at least 1/2, collecting takes at least that many steps from the center. D_s - 1 = 1 / epsilon_s is
    the expected number of steps from the center.

    Parameters
    ----------
    epsilons
        Probabilities [S], one for each rim state.
    need
        b [S], each at least 6 log(2 S).
    """
    S = epsilon_wheel(epsilons).num_states - 1  # building it checks the epsilons
    b = _checks.integers("need", need, 0, None, "numbers of samples")
    if b.shape != (S,):
        raise InputError(f"need: expected samples of each rim state, [S] = ({S},), got shape {b.shape}")
    least = 6 * math.log(2 * S)
    few = np.flatnonzero(b < least)
    if few.size:
        raise InputError(
            f"need: expected at least 6 log(2 S) = {least:.4g} samples of each of the S = {S} rim states, "
            f"got {b[few[0]]} at index {few[0]}"
        )
    return float(b @ (0.5 / np.asarray(epsilons, dtype=float) + 1))


def lower_bound_one_state_modification(mdp: TabularMDP, need: int) -> float:
    """Return (B - 1) D / 2, for B samples of s_bar on `one_state_modification(mdp)`.

    With probability at least 1/2, every collector takes more steps than that, from any start and with any knowledge.
    s_bar is the second state of `farthest_pair(mdp)`; D is the diameter of `mdp`, and D_{s_bar} of the changed MDP.

    The paper's lemma holds for B above a threshold that depends on the collector and is not given. B >= 1 + D log 2 is
    sufficient for all collectors. Proof: let v <= D be the hitting times to s_bar, and N_t the samples of s_bar in t
    steps. Then X_t = D N_t - v(s_t) - t is a supermartingale, and given the past X_{t+1} is in an interval of length
    D. X_0 <= 0, and at the time T of the last sample X = (B - 1) D - T, which is at least (B - 1) D / 2 if
    T <= (B - 1) D / 2. By Hoeffding's inequality for supermartingales, this has probability at most
    exp(-(B - 1) / D) <= 1/2.

    Parameters
    ----------
    mdp
        A communicating MDP with at least two states.
    need
        B >= 1 + D log 2.
    """
    B, D = _checks.whole("need", need, 1), _diameter(mdp)
    least = 1 + D * math.log(2)
    if least > B:
        raise InputError(f"need: expected at least 1 + D log 2 = {least:.4g} samples, with D = {D:.4g}, got {B}")
    return (B - 1) * D / 2


def lower_bound_hard_to_learn(states: int, actions: int, diameter: float, need: int) -> float:
    """Return (D + 1) B + D sqrt((S - 1) A B) / 1024, for B samples of s_bar on `hard_to_learn(..., special)`.

    A learner that does not know the special actions takes at least that many expected steps, if these actions are drawn
    uniformly. (For given special actions there is no such bound: a learner may try them first by chance.) The first
    term is the expected steps, from a state other than s_bar, if the special actions are known. The second term is the
    cost of learning.

    From a theorem of Rosenberg et al. (2020). The paper requires B >= S A. Here A >= 2 and D >= 2 are required as well:
    with one action there is nothing to learn; with D = 1 special actions never fail, so one failure of any other action
    reveals it, and the bound is wrong for large B.

    Parameters
    ----------
    states, actions, diameter, need
        S, A, D and B, as in `hard_to_learn`.
    """
    S, A = _checks.whole("states", states, 2), _checks.whole("actions", actions, 2)
    D, B = _checks.positive("diameter", diameter), _checks.whole("need", need, 1)
    if D < 2:
        raise InputError(f"diameter: expected at least 2 steps from any state to s_bar, got {diameter!r}")
    if B < S * A:
        raise InputError(f"need: expected at least states * actions = {S * A} samples, got {B}")
    return (D + 1) * B + D * math.sqrt((S - 1) * A * B) / 1024
