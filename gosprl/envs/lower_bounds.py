"""The MDPs of the paper's appendix "Lower Bound", where collecting b(s) samples takes of order sum_s b(s) D_s steps.

two_state_chain, epsilon_wheel    first construction: sum_s (b(s) (D_s - 1) / 2 + b(s)) steps
one_state_modification            second: any MDP, changed at one state, takes (B - 1) D / 2 steps
hard_to_learn                     third: learning adds D_s sqrt((S - 1) A B) / 1024 steps

The bounds themselves, with their conditions, are in `gosprl.theory.lower_bounds`.
"""

import numpy as np
from numpy.typing import ArrayLike

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.parts import check_size
from gosprl.mdp.tabular import TabularMDP

TIE = 1e-9  # hitting times within this relative difference count as equal: they are computed in floating point


def two_state_chain(q: float) -> TabularMDP:
    """Build the Markov chain M_q on x = 0 and y = 1, with one action and diameter 1 / q. The start is x.

    x leads to y with probability q and else stays; y leads to x.

    Parameters
    ----------
    q
        In (0, 1]. The paper has q < 1; with q = 1 the chain alternates.
    """
    q = 1.0 if q == 1 else _checks.open_unit("q", q)
    return TabularMDP(([0, 0, 1], [0, 0, 0], [1, 0, 0], [q, 1 - q, 1.0]), name=f"two_state_chain(q={q:g})")


def epsilon_wheel(epsilons: ArrayLike) -> TabularMDP:
    """Build a wheel of a center (state 0, the start) and S rim states (1 .. S), with A = S actions.

    At the center, action i - 1 leads to rim state i with probability epsilons[i - 1] and else stays. On the rim, every
    action leads to the center. With at least two rim states, D_i = 1 / epsilon_i + 1.

    Parameters
    ----------
    epsilons
        Probabilities [S], one for each rim state, in (0, 1).
    """
    eps = np.asarray(epsilons)
    if eps.ndim != 1 or eps.size == 0 or eps.dtype.kind not in "iuf":
        raise InputError(f"epsilons: expected an array [S] of numbers, one for each rim state, got {epsilons!r}")
    wrong = np.flatnonzero(~((eps > 0) & (eps < 1)))
    if wrong.size:
        raise InputError(
            f"epsilons: expected numbers strictly between 0 and 1, got {eps[wrong[0]]} at index {wrong[0]}"
        )
    count = len(eps)
    check_size("epsilons", count * (count + 2))
    action = np.arange(count)
    rim, any_action = (part.ravel() for part in np.meshgrid(action + 1, action, indexing="ij"))
    center = np.zeros(count, dtype=np.int64)
    parts = (
        np.concatenate([center, center, rim]),
        np.concatenate([action, action, any_action]),
        np.concatenate([action + 1, center, 0 * rim]),
        np.concatenate([eps, 1 - eps, np.ones(len(rim))]),
    )
    return TabularMDP(parts, states=count + 1, actions=count, name=f"epsilon_wheel({count} epsilons)")


def farthest_pair(mdp: TabularMDP) -> tuple[int, int]:
    """Return the first pair of states (s_low, s_bar), in order, with D_{s_low, s_bar} = D."""
    if not isinstance(mdp, TabularMDP):
        raise InputError(f"mdp: expected a TabularMDP, got {type(mdp).__name__}")
    if mdp.num_states < 2:
        raise InputError("mdp: expected at least two states, got one")
    times = mdp.hitting_times()
    np.fill_diagonal(times, 0.0)
    if not np.all(np.isfinite(times)):
        s, s_next = np.argwhere(~np.isfinite(times))[0]
        raise InputError(
            f"mdp: expected a communicating MDP, whose diameter is finite; in {mdp.name}, "
            f"no policy leads from state {s} to state {s_next} with probability 1"
        )
    s_low, s_bar = (int(i) for i in np.argwhere(times >= times.max() * (1 - TIE))[0])
    return s_low, s_bar


def one_state_modification(mdp: TabularMDP) -> TabularMDP:
    """Change an MDP at one state: every action of s_bar leads to s_low, where (s_low, s_bar) is its `farthest_pair`.

    If B samples are needed at s_bar, each but the first takes at least D expected steps.

    The change does not affect the hitting times to s_bar, so D_{s_bar} = D, which is all that the paper's proof uses.
    The paper says that "the diameter is not affected". This is true of many MDPs, such as RiverSwim, but not of all:
    the times from s_bar to other states may grow, for instance by one on an `epsilon_wheel` of three equal epsilons.

    Parameters
    ----------
    mdp
        A communicating MDP with at least two states.

    Returns
    -------
    TabularMDP
        The changed MDP; its name contains s_bar and s_low.
    """
    s_low, s_bar = farthest_pair(mdp)
    entry_row = np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    s, a = mdp.rows.state[entry_row], mdp.rows.action[entry_row]
    kept = s != s_bar
    changed = mdp.rows.action[mdp.rows.ptr[s_bar] : mdp.rows.ptr[s_bar + 1]]
    parts = (
        np.append(s[kept], np.full(len(changed), s_bar)),
        np.append(a[kept], changed),
        np.append(mdp.succ[kept], np.full(len(changed), s_low)),
        np.append(mdp.prob[kept], np.ones(len(changed))),
    )
    return TabularMDP(
        parts,
        mdp.start,
        rewards=None if mdp.rewards is None else mdp.rows.to_dense(mdp.rewards),
        noise=mdp.noise,
        states=mdp.num_states,
        actions=mdp.num_actions,
        name=f"one_state_modification({mdp.name}: {s_bar} -> {s_low})",
        map=mdp.map,
    )


def hard_to_learn(
    states: int, actions: int, diameter: float, need: int, special: ArrayLike | None = None
) -> TabularMDP:
    """Build an MDP in which one action of each state leads to s_bar slightly more often than the others.

    All samples are needed at s_bar, which is state S - 1. In state s < S - 1, action `special[s]` leads to s_bar with
    probability 1 / D, every other action with (1 - nu) / D; else they stay. Every action of s_bar leads to a uniform
    other state. The start is 0 (the paper names no start).

    nu = sqrt((S - 1) A / B) / 64 with B = `need`. The paper prints sqrt((S - 1) A B) / 64, which exceeds one for large
    B.

    Parameters
    ----------
    states, actions
        S >= 2 and A.
    diameter
        D >= 1, the SSP-diameter of s_bar. The diameter of the MDP is (S - 1)(D + 1) if S >= 3.
    need
        B, the samples needed at s_bar; the theorem requires B >= S A.
    special
        The special action of each state but the last [S - 1], or one for all; by default 0.
    """
    states, actions = _checks.whole("states", states, 2), _checks.whole("actions", actions, 1)
    if _checks.positive("diameter", diameter) < 1:
        raise InputError(f"diameter: expected a number >= 1, the steps from any state to another, got {diameter!r}")
    need = _checks.whole("need", need, 1)
    if need < states * actions:
        raise InputError(f"need: expected at least states * actions = {states * actions} samples, got {need}")
    check_size("states, actions", 3 * states * actions)
    s_bar = states - 1
    best = _checks.integers("special", 0 if special is None else special, 0, actions, "actions")
    if best.shape not in ((), (s_bar,)):
        raise InputError(f"special: expected one action for each state but the last, [{s_bar}], got shape {best.shape}")

    nu = np.sqrt(s_bar * actions / need) / 64
    arrive = np.full((s_bar, actions), (1 - nu) / diameter)
    arrive[np.arange(s_bar), best] = 1 / diameter
    s, a = (part.ravel() for part in np.indices(arrive.shape))
    last = np.full(len(s), s_bar)
    parts = (
        np.concatenate([s, s, last]),
        np.concatenate([a, a, a]),
        np.concatenate([last, s, s]),
        np.concatenate([arrive.ravel(), 1 - arrive.ravel(), np.full(len(s), 1 / s_bar)]),
    )
    name = f"hard_to_learn(states={states}, actions={actions}, diameter={diameter:g}, need={need})"
    return TabularMDP(parts, states=states, actions=actions, name=name)
