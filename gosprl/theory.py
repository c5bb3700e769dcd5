"""The paper's theory as code: its bounds as numbers, on MDPs small enough to look at.

    lower_bound_...            steps that collecting takes at least, on the families of `gosprl.envs.lower_bounds`
    finite_horizon_example     why a state that nobody reaches within H steps may matter all the same
    reach_within               the largest probability to be there within H steps

A sample of a state is an action taken there, as everywhere in this library: steps to collect include the one that
leaves the state of the last sample.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.envs.lower_bounds import epsilon_wheel
from gosprl.errors import InputError
from gosprl.mdp import TabularMDP, check_size

# Appendix "Lower Bound"


def lower_bound_two_state_chain(q: float, need: int) -> float:
    """B / (2 q) + B = B D / 2 + B: with probability at least 1/2, B = `need` samples of y take so many steps or more.

    On `two_state_chain(q)`, whose diameter is D = 1 / q, from either state, for B >= 5. The steps are those of the
    crossings from x, a negative binomial number of tries, and one more for each sample: the T_B of the paper, in whose
    proof each success takes two steps. The claim also holds if T_B is the time of arriving in y, one step less.
    """
    return _checks.whole("need", need, 5) * (0.5 / _checks.open_unit("q", q) + 1)


def lower_bound_epsilon_wheel(epsilons: ArrayLike, need: ArrayLike) -> float:
    """sum_s b(s) (D_s - 1) / 2 + b(s): with probability at least 1/2, the samples take so many steps or more.

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

    On `one_state_modification(mdp)`, from any start, whatever the collector knows and does. D is the diameter of `mdp`,
    and D_{s_bar} of the changed MDP.

    The paper's lemma is for B above some threshold that depends on the collector and is not computed. B >= 1 + D log 2
    is enough for all collectors: let v be the hitting times to s_bar, at most D, and N_t the samples of it before step
    t. Then D N_t - v(s_t) - t falls on average at every step, by what lies, given the past, in an interval of length D.
    From 0 or less it must come to (B - 1) D - T at the time T of the last sample, to at least (B - 1) D / 2 if
    T <= (B - 1) D / 2: with probability at most exp(-(B - 1) / D), by Hoeffding's inequality.
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

    The paper asks for B >= S A. It must also be that A >= 2 and D >= 2, say: with one action there is nothing to learn,
    and with D = 1, where the special action never fails, each other action need fail but once.
    """
    S, A = _checks.whole("states", states, 2), _checks.whole("actions", actions, 2)
    D, B = _checks.positive("diameter", diameter), _checks.whole("need", need, 1)
    if D < 2:
        raise InputError(f"diameter: the bound asks for at least 2 steps from any state to s_bar, got {diameter!r}")
    if B < S * A:
        raise InputError(f"need: the bound asks for at least states * actions = {S * A}, got {B}")
    return (D + 1) * B + D * math.sqrt((S - 1) * A * B) / 1024


# Appendix "Reward-Free Exploration in Finite-Horizon MDPs vs. Cost-Free Exploration in Goal-Conditioned RL"


def finite_horizon_example(horizon: int) -> TabularMDP:
    """x leads to z in H steps or to y in H + 1 steps, by a fair coin; y leads to z, and z back to x, in one step.

    x, y, z are the states 0, 1, 2, then come those on the way to z and those on the way to y. One action, start x.
    Within H = `horizon` steps nobody is ever in y: for goals of so many steps its dynamics do not matter. Yet half of
    all ways from x to z lead through it.
    """
    H = _checks.whole("horizon", horizon, 1)
    check_size("horizon", 2 * H + 3)
    x, y, z = 0, 1, 2
    to_z = [*range(3, H + 2), z]  # the states after x, H of them
    to_y = [*range(H + 2, 2 * H + 2), y]  # H + 1 of them
    s = [x, x, *to_z[:-1], *to_y[:-1], y, z]
    s_next = [to_z[0], to_y[0], *to_z[1:], *to_y[1:], z, x]
    p = np.ones(len(s))
    p[:2] = 0.5
    return TabularMDP((s, np.zeros(len(s), dtype=int), s_next, p), name=f"finite_horizon_example(horizon={H})")


def reach_within(mdp: TabularMDP, goals: ArrayLike, horizon: int) -> NDArray[np.float64]:
    """[S] the largest probability, over all policies, to be in one of `goals` after at most `horizon` steps.

    Backward induction: with no step left it is 1 at the goals and 0 elsewhere, with one more the best of the actions.
    The best policy may depend on the steps left.
    """
    goal = np.zeros(_mdp(mdp).num_states, dtype=bool)
    goal[_checks.integers("goals", goals, 0, mdp.num_states, "states")] = True
    v = goal.astype(float)
    for _ in range(_checks.whole("horizon", horizon, 0)):
        of_row = np.add.reduceat(mdp.prob * v[mdp.succ], mdp.ptr[:-1])
        v = np.where(goal, 1.0, np.maximum.reduceat(of_row, mdp.rows.ptr[:-1]))
    return v


def _mdp(mdp: TabularMDP) -> TabularMDP:
    if not isinstance(mdp, TabularMDP):
        raise InputError(f"mdp: expected a TabularMDP, got {type(mdp).__name__}")
    return mdp


def _diameter(mdp: TabularMDP) -> float:
    """D of an MDP that has one: the bounds are for communicating MDPs of two states or more."""
    D = _mdp(mdp).diameter()
    if not 0 < D < np.inf:
        raise InputError(f"mdp: expected a communicating MDP of at least two states, got diameter {D} of {mdp.name}")
    return D
