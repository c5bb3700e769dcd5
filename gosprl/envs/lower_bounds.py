"""The MDPs of the paper's appendix "Lower Bound": collecting b(s) samples takes of order sum_s b(s) D_s steps.

two_state_chain, epsilon_wheel    first construction: any b needs sum_s b(s) (D_s - 1) / 2 + b(s) steps
one_state_modification            second: a change at one state of any MDP makes it a worst case, (B - 1) D / 2 steps
hard_to_learn                     third: adds the price of learning, D_s sqrt((S - 1) A B) / 1024
"""

import numpy as np
from numpy.typing import ArrayLike

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.parts import check_size
from gosprl.mdp.tabular import TabularMDP

TIE = 1e-9  # hitting times this close, relatively, count as equal: they are solved for in floating point


def two_state_chain(q: float) -> TabularMDP:
    """The Markov chain M_q: from x = 0 to y = 1 with probability q, else stay; from y to x surely. Start x.

    One action. Its diameter is 1 / q. The paper has q < 1; q = 1, which alternates, is allowed here.
    """
    q = 1.0 if q == 1 else _checks.open_unit("q", q)
    return TabularMDP(([0, 0, 1], [0, 0, 0], [1, 0, 0], [q, 1 - q, 1.0]), name=f"two_state_chain(q={q:g})")


def epsilon_wheel(epsilons: ArrayLike) -> TabularMDP:
    """A center s_0 (state 0, the start) and one rim state for each epsilon (states 1 .. S), with A = S actions.

    At the center, action i - 1 leads to rim state i with epsilons[i - 1] and else stays. On the rim every action leads
    to the center surely. With two rim states or more, D_i = 1 / epsilon_i + 1.
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
    """(s_low, s_bar) with D_{s_low, s_bar} = D, the first such pair in order."""
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
            f"no policy leads surely from state {s} to state {s_next}"
        )
    s_low, s_bar = (int(i) for i in np.argwhere(times >= times.max() * (1 - TIE))[0])
    return s_low, s_bar


def one_state_modification(mdp: TabularMDP) -> TabularMDP:
    """`mdp` changed at one state: every action of s_bar leads to s_low, where (s_low, s_bar) is its `farthest_pair`.

    With all of B samples needed at s_bar, each but the first takes D steps or more on average. The name of the result
    says which states they are.

    The change leaves the hitting times to s_bar as they are, and with them D_{s_bar} = D, which is all that the paper's
    proof uses. That "the diameter is not affected", as the paper says, is true of many MDPs (RiverSwim, say) but not of
    all: the times from s_bar to other states may grow, for instance by one on an `epsilon_wheel` of three equal
    epsilons.
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
    """All `need` samples are wanted at s_bar (state S - 1); in each other state one action leads there a little better.

    In state s < S - 1, action `special[s]` (by default 0) leads to s_bar with 1 / D, every other one with (1 - nu) / D;
    else they stay. Every action of s_bar leads to one of the other states, uniformly. Here D is `diameter`: the
    SSP-diameter of s_bar, not the diameter of the MDP, which is (S - 1)(D + 1) when S >= 3.

    nu = sqrt((S - 1) A / B) / 64, B = `need`: the paper prints sqrt((S - 1) A B) / 64, which exceeds one for large
    B. The theorem asks for B >= S A. Start 0 (the paper names no start).
    """
    states, actions = _checks.whole("states", states, 2), _checks.whole("actions", actions, 1)
    if _checks.positive("diameter", diameter) < 1:
        raise InputError(f"diameter: expected a number >= 1, the steps from any state to another, got {diameter!r}")
    need = _checks.whole("need", need, 1)
    if need < states * actions:
        raise InputError(f"need: the bound asks for at least states * actions = {states * actions}, got {need}")
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
