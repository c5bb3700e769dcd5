"""Lower bounds on the steps of collectors, and the paper's bounds, for known dynamics and a fixed need b.

    diameter_bound      B D, with B = sum of b
    ssp_diameter_bound  sum_s b(s) D_s, with b(s) = sum_a b(s, a)
    fluid_limit         a lower bound on E[steps] of any collector, adaptive ones included
    exact_optimum       the minimal E[steps], for tiny problems

The first two are orders of magnitude from the paper's analysis, not bounds on single runs. Every attempt makes at least
one step, so greedy collection takes at most sum_s b(s) (D_s + 1) expected steps if it samples an under-sampled state as
soon as it is there, and sum_s b(s) (D_s + 2) with Algorithm 1 as printed.

The fluid limit is the value of a linear program over expected visits (`gosprl.planning.fluid`).

`need` is a whole number (for every existing pair), an array [S] (per state, any action) or an array [S, A] (per pair).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.collecting.requirements import split
from gosprl.errors import GosprlError, InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning import fluid
from gosprl.theory._remaining import augmented, count_levels, lowered

MAX_AUGMENTED = 100_000  # augmented states up to which exact_optimum computes


def diameter_bound(mdp: TabularMDP, need: ArrayLike) -> float:
    """Return B D, with B the sum of the need; inf if something is needed and the MDP is not communicating.

    Parameters
    ----------
    mdp
        The MDP.
    need
        See the head of this module.
    """
    pair, state = split(need, mdp.rows)
    B = float(pair.sum(dtype=float) + state.sum(dtype=float))
    return B * mdp.diameter() if B else 0.0


def ssp_diameter_bound(mdp: TabularMDP, need: ArrayLike) -> float:
    """Return sum_s b(s) D_s; inf if a needed state cannot be reached from some other state with probability 1.

    Parameters
    ----------
    mdp
        The MDP.
    need
        See the head of this module.
    """
    pair, state = split(need, mdp.rows)
    b = np.bincount(mdp.rows.state, weights=pair, minlength=mdp.num_states) + state
    return float(b[b > 0] @ mdp.ssp_diameters()[b > 0])


def fluid_limit(mdp: TabularMDP, need: ArrayLike, *, start: ArrayLike | None = None) -> float:
    """Return a lower bound on the expected steps of any collector.

    Parameters
    ----------
    mdp
        The MDP.
    need
        See the head of this module.
    start
        The starting state, or its law [S]; by default `mdp.start`.

    Returns
    -------
    float
        The bound. inf if simple necessary conditions show that the need cannot be met with probability 1; a finite
        value does not prove that it can.
    """
    return limit_of_mdp(mdp, *split(need, mdp.rows), start)


def limit_of_mdp(mdp: TabularMDP, pair: NDArray[np.int64], state: NDArray[np.int64], start: ArrayLike | None) -> float:
    """Return the `fluid_limit` for a need per row [R] and per state [S]."""
    return _limit_from(mdp, pair, state, _start_law(mdp, start))


def limit_of_walks(
    mdp: TabularMDP, pair: NDArray[np.int64], state: NDArray[np.int64], begun: NDArray[np.float64]
) -> float:
    """Return the same for several walks, of which `begun` [S] begin in each state (see `walks_begun`)."""
    return _limit_from(mdp, pair, state, begun)


def _limit_from(mdp: TabularMDP, pair: NDArray[np.int64], state: NDArray[np.int64], law: NDArray[np.float64]) -> float:
    one_walk = law.sum() < 1.5
    if one_walk and not _can_meet(mdp, law, pair, state):
        return np.inf
    try:
        return fluid.solve(mdp.rows, mdp.ptr, mdp.succ, mdp.prob, np.ones(len(mdp.rows)), pair, state, law).value
    except fluid.Infeasible:
        return np.inf


def limit_of_walks_in(
    truth: TabularMDP | None,
    model: EmpiricalModel,
    pair: NDArray[np.int64],
    state: NDArray[np.int64],
    start: int,
    before: NDArray[np.int64] | None = None,
) -> tuple[float | None, str]:
    """Return the fluid limit of a need for the walks that a model counts, and what it is the limit of.

    Parameters
    ----------
    truth
        The true dynamics; None: they are those of the model.
    pair, state
        The need per row [R] and per state [S] of the model.
    start, before
        As for `walks_begun`.

    Returns
    -------
    (None, "none: " and why) if the program cannot be solved.
    """
    begun = walks_begun(model, start, before)
    try:
        if truth is None:
            return limit_of_model(model, pair, state, begun), "the learnt model, an estimate"
        S = truth.num_states
        return limit_of_walks(truth, pair[: len(truth.rows)], state[:S], begun[:S]), "the true dynamics"
    except GosprlError as error:
        return None, f"none: {error}"


def limit_of_model(
    model: EmpiricalModel, pair: NDArray[np.int64], state: NDArray[np.int64], begun: int | NDArray[np.float64]
) -> float:
    """Return the fluid limit of the empirical frequencies, where rows never visited lead to the best state.

    An estimate, not a bound: with few samples per pair it may be above or below the fluid limit of the true dynamics.
    Resets after endings cost nothing, chosen ones cost `reset_cost`. What is known without a visit is no best case: all
    resets have one law, that of the reset's row, wherever they are chosen.

    Parameters
    ----------
    begun
        The state in which one walk begins, or how many begin in each state [S] (`walks_begun`).
    """
    unvisited = ((model.visits == 0) & model.enabled & ~model.certain).astype(float)
    try:
        return fluid.solve_model(model, pair, state, begun, unvisited).value
    except fluid.Infeasible:
        return np.inf


def walks_begun(model: EmpiricalModel, start: int, before: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """Return how many walks began in each state [S], less those that ended there; at least the first one.

    A walk begins at the start, after a truncation, with another walker, and where the user says so; it ends where it is
    when that happens. Neither is a transition, so the counts tell: what left a state more often than it was reached was
    begun there. An initial reset is a visit of the reset's row, so where there is one, walks begin at the reset.

    Parameters
    ----------
    start
        The state that the first walk began in.
    before
        [S] `model.surplus()` of what was counted before these walks.
    """
    net = model.surplus()
    if before is not None:
        net[: len(before)] -= before
    begun = np.maximum(net, 0).astype(float)
    reset = model.states.reset
    first = reset if reset >= 0 and model.visits[model.rows.ptr[reset]] > 0 else start
    begun[first] = max(begun[first], 1.0)
    return begun


def exact_optimum(mdp: TabularMDP, need: ArrayLike) -> float:
    """Return the minimal expected steps to meet the need from `mdp.start`.

    A shortest path over states augmented by the remaining need. Their number grows as the product of all b + 1.

    Parameters
    ----------
    mdp
        The MDP.
    need
        See the head of this module.

    Returns
    -------
    float
        inf if the need cannot be met with probability 1.

    Raises
    ------
    InputError
        There are more than 100,000 augmented states.
    """
    from gosprl.planning.ssp import plan

    pair, state = split(need, mdp.rows)
    S, levels = mdp.num_states, count_levels(pair, state)
    if levels == 1:
        return 0.0
    if levels * S > MAX_AUGMENTED:
        raise InputError(
            f"need: expected a tiny problem, of at most {MAX_AUGMENTED} augmented states, got {levels} x {S}; "
            "fluid_limit gives a lower bound at any size"
        )
    row = np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    origin, used, target, prob = augmented(mdp.rows, row, mdp.succ, mdp.prob, lowered(pair, state, mdp.rows))
    parts = (origin, mdp.rows.action[used], target, prob)
    problem = TabularMDP(parts, states=levels * S, actions=mdp.num_actions)
    values = plan(problem, goals=np.arange(S), precision=1e-9).values
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
    """Return whether necessary conditions for meeting the need with probability 1 hold.

    The program alone cannot show this, as circulations far from the start satisfy it. "Reach" means with probability 1:
    the start must reach each needed state. Of any two needed items one is sampled first; the other must be reached from
    every successor of that sample. An item that is needed twice must be reached again after a sample of it.
    """
    from gosprl.planning.ssp import surely_reaching

    if mdp.is_communicating():
        return True
    rows, states = np.flatnonzero(pair), np.flatnonzero(state)
    where = np.append(mdp.rows.state[rows], states)  # the state of each item
    reaching = {int(s): surely_reaching(mdp, s) for s in np.unique(where)}
    if not all(np.all(reached[law > 0]) for reached in reaching.values()):
        return False
    after = np.empty((len(where), len(where)), dtype=bool)  # [i, j]: j is reached after a sample of i
    for j, target in enumerate(where):
        by_row = np.logical_and.reduceat(reaching[int(target)][mdp.succ], mdp.ptr[:-1])
        by_state = np.logical_or.reduceat(by_row, mdp.rows.ptr[:-1])
        after[:, j] = np.append(by_row[rows], by_state[states])
    twice = np.append(pair[rows], state[states]) > 1
    return bool(np.all(after | after.T | np.eye(len(where), dtype=bool)) and np.all(np.diag(after)[twice]))
