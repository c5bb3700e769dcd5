"""What collecting costs at least, and the paper's bounds, for known dynamics and a fixed requirement b.

    diameter_bound      B D, with B = sum of b
    ssp_diameter_bound  sum_s b(s) D_s, with b(s) = sum_a b(s, a)
    fluid_limit         a lower bound on E[steps] of any collector, however adaptive
    exact_optimum       the least E[steps] itself, on tiny problems

The first two are orders of magnitude from the paper's analysis, not bounds on single runs: with an attempt of at least
one step a sample, greedy collection takes at most sum_s b(s) (D_s + 1) steps on average if it samples an under-sampled
state at once, and sum_s b(s) (D_s + 2) as Algorithm 1 is printed.

The fluid limit is the value of a linear program over expected visits (`gosprl.planning.fluid`).

`need` is a whole number (for every existing pair), an array [S] (per state, any action) or an array [S, A] (per pair).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.collecting.requirements import split
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning import fluid

EXACT_LIMIT = 100_000  # augmented states that exact_optimum takes on


def diameter_bound(mdp: TabularMDP, need: ArrayLike) -> float:
    """B D; inf if something is needed and the MDP is not communicating."""
    pair, state = split(need, mdp.rows)
    B = float(pair.sum(dtype=float) + state.sum(dtype=float))
    return B * mdp.diameter() if B else 0.0


def ssp_diameter_bound(mdp: TabularMDP, need: ArrayLike) -> float:
    """sum_s b(s) D_s; inf if a needed state cannot be reached surely from some other."""
    pair, state = split(need, mdp.rows)
    b = np.bincount(mdp.rows.state, weights=pair, minlength=mdp.num_states) + state
    return float(b[b > 0] @ mdp.ssp_diameters()[b > 0])


def fluid_limit(mdp: TabularMDP, need: ArrayLike, *, start: ArrayLike | None = None) -> float:
    """Lower bound on the expected steps of any collector.

    inf where the need cannot be met surely, as far as simple conditions show (`_can_meet`, and that the program has a
    solution); a finite value is no proof that it can.

    start
        The starting state, or its law [S]; by default `mdp.start`.
    """
    return limit_of_mdp(mdp, *split(need, mdp.rows), start)


def limit_of_mdp(mdp: TabularMDP, pair: NDArray[np.int64], state: NDArray[np.int64], start: ArrayLike | None) -> float:
    """`fluid_limit` for a need per row [R] and per state [S]."""
    law = _start_law(mdp, start)
    if not _can_meet(mdp, law, pair, state):
        return np.inf
    try:
        return fluid.solve(mdp.rows, mdp.ptr, mdp.succ, mdp.prob, np.ones(len(mdp.rows)), pair, state, law).value
    except fluid.Infeasible:
        return np.inf


def limit_of_model(model: EmpiricalModel, pair: NDArray[np.int64], state: NDArray[np.int64], start: int) -> float:
    """The same as if the frequencies seen were the dynamics, and rows never visited led wherever that helps most.

    An estimate, not a bound: for the need as it is and few samples a pair, it may be above or below the true limit.
    Resets cost nothing.
    """
    unvisited = ((model.visits == 0) & model.enabled).astype(float)
    try:
        return fluid.solve_model(model, pair, state, start, unvisited).value
    except fluid.Infeasible:
        return np.inf


def exact_optimum(mdp: TabularMDP, need: ArrayLike) -> float:
    """The least expected steps to meet the need from `mdp.start`, inf if it cannot be met surely.

    A shortest path over the states augmented by what is still needed. Their number grows as the product of all b + 1:
    at most EXACT_LIMIT of them are taken on.
    """
    from gosprl.planning.ssp import plan

    pair, state = split(need, mdp.rows)
    rows, states = np.flatnonzero(pair), np.flatnonzero(state)
    if rows.size + states.size == 0:
        return 0.0
    sizes = np.append(pair[rows], state[states]) + 1
    S = mdp.num_states
    levels = 1
    for size in sizes:
        levels *= int(size)
    if levels * S > EXACT_LIMIT:
        raise InputError(
            f"need: the exact optimum is for tiny problems, at most {EXACT_LIMIT} augmented states; "
            f"this one has {levels} x {S}; fluid_limit gives a lower bound at any size"
        )
    stride = np.append(1, np.cumprod(sizes))[:-1]
    # [levels, item]: taken off the level by a sample of that item, nothing where it is needed no more
    step = stride * (np.arange(levels)[:, None] // stride % sizes > 0)
    down = np.zeros((levels, len(mdp.rows)), dtype=np.int64)
    down[:, rows] += step[:, : len(rows)]
    for i, s in enumerate(states):
        down[:, mdp.rows.ptr[s] : mdp.rows.ptr[s + 1]] += step[:, len(rows) + i, None]
    row = np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    level = np.arange(levels)[:, None]
    entries = np.broadcast_arrays(
        level * S + mdp.rows.state[row], mdp.rows.action[row], (level - down[:, row]) * S + mdp.succ, mdp.prob
    )
    parts = (entries[0].ravel(), entries[1].ravel(), entries[2].ravel(), entries[3].ravel())
    augmented = TabularMDP(parts, states=levels * S, actions=mdp.num_actions)
    values = plan(augmented, goals=np.arange(S), precision=1e-9).values
    return float(values[(levels - 1) * S + mdp.start])


def _start_law(mdp: TabularMDP, start: ArrayLike | None) -> NDArray[np.float64]:
    given = np.asarray(mdp.start) if start is None else _checks.floats("start", start)
    S = mdp.num_states
    if given.ndim == 0:
        law = np.zeros(S)
        law[_checks.integers("start", given, 0, S, "a state")] = 1.0
        return law
    law = given.copy()
    if law.shape != (S,) or not np.all(law >= 0) or abs(law.sum() - 1) > 1e-6:
        raise InputError(f"start: expected a state or a law [S] = ({S},) that sums to one, got {start!r}")
    law /= law.sum()
    return law


def _can_meet(mdp: TabularMDP, law: NDArray[np.float64], pair: NDArray[np.int64], state: NDArray[np.int64]) -> bool:
    """Necessary conditions for meeting the need surely, which the program, happy with a circulation anywhere, misses.

    The start must surely reach each needed state. Of any two needed items one is sampled first; then the other must
    still be surely reachable, whatever the sample led to. An item needed twice must be so after itself.
    """
    from gosprl.planning.ssp import surely_reaching

    if mdp.is_communicating():
        return True
    rows, states = np.flatnonzero(pair), np.flatnonzero(state)
    where = np.append(mdp.rows.state[rows], states)  # the state of each item
    reaching = {int(s): surely_reaching(mdp, s) for s in np.unique(where)}
    if not all(np.all(reached[law > 0]) for reached in reaching.values()):
        return False
    after = np.empty((len(where), len(where)), dtype=bool)  # [i, j]: j surely reachable after a sample of i
    for j, target in enumerate(where):
        by_row = np.logical_and.reduceat(reaching[int(target)][mdp.succ], mdp.ptr[:-1])
        by_state = np.logical_or.reduceat(by_row, mdp.rows.ptr[:-1])
        after[:, j] = np.append(by_row[rows], by_state[states])
    twice = np.append(pair[rows], state[states]) > 1
    return bool(np.all(after | after.T | np.eye(len(where), dtype=bool)) and np.all(np.diag(after)[twice]))
