"""The paper's small chains, and two noisy domains for model estimation.

`riverswim` and `toy3` are defined in the paper, which uses no rewards; `riverswim` has the usual rewards of the
literature. `noisy_riverswim` and `wheel` are our own definitions: the paper takes these domains from Tarbouriech et al.
(2020), whose definitions were not available, so only the names and sizes are the paper's.
"""

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.mdp.parts import check_size
from gosprl.mdp.tabular import TabularMDP

NOISY_PERIOD = 6  # in noisy_riverswim, the states 2, 2 + 6, 2 + 12, ... are noisy
NOISY_FIRST = 2

Parts = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def riverswim(states: int = 6) -> TabularMDP:
    """Build RiverSwim: a chain in which moving down is easy and moving up is hard. The start is 0.

    Action 0 (left) moves one state down with probability 1; in state 0 it stays. Action 1 (right) moves as follows:

    - state 0: stays with probability 0.4, moves up with 0.6;
    - the last state: moves down with 0.4, stays with 0.6;
    - other states: moves down with 0.05, stays with 0.6, moves up with 0.35.

    The paper uses no rewards. Here they are the usual ones of the literature, without noise: 0.005 for left in state 0,
    1 for right in the last state, 0 elsewhere.

    Parameters
    ----------
    states
        S, at least 2.
    """
    states = _checks.whole("states", states, 2)
    check_size("states", 4 * states)
    rewards = np.zeros((states, 2))
    rewards[0, 0], rewards[-1, 1] = 0.005, 1.0
    return TabularMDP(_river(states), rewards=rewards, states=states, actions=2, name=f"riverswim{states}")


def noisy_riverswim(states: int = 36) -> TabularMDP:
    """Build a RiverSwim in which every sixth state (2, 8, 14, ...) sends both actions to a uniform next state.

    The start is 0. This is our own definition. The MDP is communicating.

    Parameters
    ----------
    states
        S, at least 3.
    """
    states = _checks.whole("states", states, NOISY_FIRST + 1)
    check_size("states", 4 * states + 2 * states * (states // NOISY_PERIOD))
    river = _river(states)
    calm = river[0] % NOISY_PERIOD != NOISY_FIRST
    noisy = np.arange(NOISY_FIRST, states, NOISY_PERIOD)
    s, a, s_next = (part.ravel() for part in np.meshgrid(noisy, np.arange(2), np.arange(states), indexing="ij"))
    uniform = (s, a, s_next, np.full(len(s), 1 / states))
    s, a, s_next, p = (np.append(old[calm], new) for old, new in zip(river, uniform, strict=True))
    return TabularMDP((s, a, s_next, p), states=states, actions=2, name=f"noisy_riverswim{states}")


def wheel(states: int = 30) -> TabularMDP:
    """Build a wheel: a hub, state 0, and a rim, states 1 .. S - 1. The start is the hub.

    At the hub, action 0 (spin) leads to a uniform rim state and action 1 to rim state 1. On the rim, action 0 moves to
    the next rim state (from the last one to state 1) with probability 0.9 and else stays; action 1 returns to the hub
    with probability 0.9 and else stays. This is our own definition. The MDP is communicating.

    Parameters
    ----------
    states
        S, at least 2.
    """
    states = _checks.whole("states", states, 2)
    check_size("states", 5 * states)
    rim = np.arange(1, states)
    clockwise = rim % (states - 1) + 1
    one = np.ones(states - 1)
    blocks = [
        (0 * rim, 0 * rim, rim, one / (states - 1)),
        (np.array([0]), np.array([1]), np.array([1]), np.array([1.0])),
        (rim, 0 * rim, clockwise, 0.9 * one),
        (rim, 0 * rim, rim, 0.1 * one),
        (rim, 0 * rim + 1, 0 * rim, 0.9 * one),
        (rim, 0 * rim + 1, rim, 0.1 * one),
    ]
    s, a, s_next, p = (np.concatenate(column) for column in zip(*blocks, strict=True))
    return TabularMDP((s, a, s_next, p), states=states, actions=2, name=f"wheel{states}")


def toy3(nu: float = 0.1) -> TabularMDP:
    """Build the three-state toy of the paper, whose diameter grows as 1 / nu. The start is 0.

    Four pairs exist. State 0 has one action: to state 1 with probability nu, else to state 2. State 1 has one action:
    to state 0. State 2 has two: action 0 leads to state 1 with probability nu, else to state 0; action 1 stays. Every
    step towards state 1 succeeds with probability nu, so reaching it takes 1 / nu expected steps.

    Parameters
    ----------
    nu
        In (0, 1).
    """
    nu = _checks.open_unit("nu", nu)
    s = [0, 0, 1, 2, 2, 2]
    a = [0, 0, 0, 0, 0, 1]
    s_next = [1, 2, 0, 1, 0, 2]
    p = [nu, 1 - nu, 1, nu, 1 - nu, 1]
    return TabularMDP((s, a, s_next, p), name="toy3" if nu == 0.1 else f"toy3(nu={nu:g})")


def _river(states: int) -> Parts:
    """Return the sparse parts of RiverSwim; impossible moves are included with probability zero."""
    s = np.arange(states)
    first, last = s == 0, s == states - 1
    up = np.where(first, 0.6, np.where(last, 0.0, 0.35))
    down = np.where(first, 0.0, np.where(last, 0.4, 0.05))
    stay = np.where(first, 0.4, 0.6)
    below, above = np.maximum(s - 1, 0), np.minimum(s + 1, states - 1)
    return (
        np.tile(s, 4),
        np.repeat([0, 1, 1, 1], states),
        np.concatenate([below, below, s, above]),
        np.concatenate([np.ones(states), down, stay, up]),
    )
