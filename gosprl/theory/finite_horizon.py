"""Appendix "Reward-Free Exploration in Finite-Horizon MDPs vs. Cost-Free Exploration in Goal-Conditioned RL"."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.mdp.parts import check_size
from gosprl.mdp.tabular import TabularMDP
from gosprl.theory._inputs import _mdp


def finite_horizon_example(horizon: int) -> TabularMDP:
    """Build an MDP in which a state that cannot be reached within H steps still matters for reaching a goal.

    With equal probability, x leads to z in H steps or to y in H + 1 steps. y leads to z, and z to x, in one step. So y
    is never visited within H steps, and its dynamics do not matter for exploration with that horizon. But half of all
    paths from x to z lead through y.

    x, y, z are the states 0, 1, 2; then follow the states on the way to z, and those on the way to y. There is one
    action, and the start is x.

    Parameters
    ----------
    horizon
        H.
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
    """Return the largest probability, over all policies, to reach a goal within a number of steps.

    Computed by backward induction; the best policy may depend on the number of remaining steps.

    Parameters
    ----------
    mdp
        The MDP.
    goals
        States.
    horizon
        The number of steps.

    Returns
    -------
    NDArray[np.float64]
        From each state [S].
    """
    goal = np.zeros(_mdp(mdp).num_states, dtype=bool)
    goal[_checks.integers("goals", goals, 0, mdp.num_states, "states")] = True
    v = goal.astype(float)
    for _ in range(_checks.whole("horizon", horizon, 0)):
        of_row = np.add.reduceat(mdp.prob * v[mdp.succ], mdp.ptr[:-1])
        v = np.where(goal, 1.0, np.maximum.reduceat(of_row, mdp.rows.ptr[:-1]))
    return v
