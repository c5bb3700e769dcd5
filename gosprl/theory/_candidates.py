"""A finite set of MDPs over the same pairs, one of which is the truth, and what is known of each.

The collector's problem with known dynamics is an MDP over (remaining need, state); the problems of all K candidates are
solved side by side, as one MDP of K separate parts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.collecting.requirements import split
from gosprl.errors import InputError
from gosprl.mdp.rows import Rows
from gosprl.mdp.tabular import TabularMDP
from gosprl.theory._remaining import Floats, Ints, augmented, count_levels, lowered

MAX_TRANSITIONS = 3_000_000  # of the problem of all candidates side by side, about half a GB while it is built
MAX_VALUES = 500_000  # of fixed policies of one kind: how many policies are tried depends on the size of the problem
ROUNDING = 1e-14  # relative error of the mean of a few successors' values, generously
SOFT = 0.1  # a soft policy takes a uniform action so often, and so meets the need in every communicating candidate


class Optima(NamedTuple):
    """Least expected steps with known dynamics, [K, levels, S] each."""

    lower: Floats  # certified bounds, apart by rounding; inf where the need cannot be met with probability 1
    upper: Floats
    rows: Ints  # an optimal policy; -1 where there is none


@dataclass(frozen=True, eq=False)
class Candidates:
    """K MDPs with the same pairs and the same start, and a need.

    Attributes
    ----------
    rows
        The existing pairs (R of them).
    ptr, succ
        The states that row r leads to in some candidate are `succ[ptr[r] : ptr[r + 1]]`; there are E such transitions.
    prob
        [K, E] probabilities.
    start
        The starting state.
    down
        [levels, R], see `gosprl.theory._remaining.lowered`.
    """

    rows: Rows
    ptr: Ints
    succ: Ints
    prob: Floats
    start: int
    down: Ints

    @property
    def row(self) -> Ints:
        """The row of each transition, [E]."""
        return np.repeat(np.arange(len(self.rows)), np.diff(self.ptr))

    def only(self, which: NDArray[np.bool_]) -> "Candidates":
        """Return some of the candidates; `which` is [K]."""
        return Candidates(self.rows, self.ptr, self.succ, self.prob[which], self.start, self.down)

    def known_optima(self) -> "Optima":
        """Return the least expected steps with known dynamics, for each candidate, level and state."""
        from gosprl.planning.ssp import plan

        origin, row, target, prob = self._side_by_side()
        mdp = TabularMDP((origin, self.rows.action[row], target, prob), states=self._size)
        solved = plan(mdp, self._met(), precision=1e-9)
        action = solved.policy.reshape(self._shape)
        number = np.empty((self.rows.num_states, self.rows.num_actions), dtype=np.int64)
        number[self.rows.state, self.rows.action] = np.arange(len(self.rows))
        rows = np.where(action < 0, -1, number[np.arange(self.rows.num_states), action])
        lower = solved.values.reshape(self._shape)
        return Optima(lower, lower * (1 + solved.gap), rows)

    def steps_of(self, weight: Floats) -> Floats:
        """Return an upper bound on the expected steps of a policy in each candidate, [K, levels, S].

        Linear solves, and the certificate of `gosprl.planning.ssp`: if a step leads from v to a mean of at most
        v - 1 + sigma, with sigma < 1, the steps are at most v / (1 - sigma). inf where the policy may fail, or takes so
        long that this cannot be shown in doubles.

        Parameters
        ----------
        weight
            [levels, R] probabilities with which the policy takes each row of the state that it is in.
        """
        from gosprl.planning.ssp import surely_reaching

        origin, row, target, prob = self._side_by_side()
        prob = prob * weight[origin // self.rows.num_states % len(self.down), row]
        used = prob > 0
        parts = (origin[used], 0 * origin[used], target[used], prob[used])
        mdp, met = TabularMDP(parts, states=self._size, actions=1), self._met()
        inner = surely_reaching(mdp, met)
        inner[met] = False
        steps = np.where(inner, _absorption_times(mdp, inner), np.inf)
        steps[met] = 0.0
        return self._certified(mdp, steps, inner)

    def _certified(self, mdp: TabularMDP, steps: Floats, inner: NDArray[np.bool_]) -> Floats:
        """Return steps / (1 - sigma), with one sigma for each candidate, as [K, levels, S]."""
        later = np.add.reduceat(mdp.prob * np.where(np.isfinite(steps), steps, 0.0)[mdp.succ], mdp.ptr[:-1])
        with np.errstate(invalid="ignore"):
            sigma = np.where(inner, 1 + later - steps + ROUNDING * steps, 0.0).reshape(len(self.prob), -1).max(axis=1)
        sure = sigma < 0.5  # not where it is nan: the solve broke down
        factor = np.where(sure, 1 / (1 - np.where(sure, np.maximum(sigma, 0.0), 0.0)), np.inf)
        shaped = steps.reshape(self._shape)
        return np.asarray(np.where(shaped > 0, np.maximum(shaped, 1.0) * factor[:, None, None], 0.0))

    def fixed_policies(self, optimal: Ints) -> Floats:
        """Return the steps of some fixed policies in all candidates, [policies, K, levels, S].

        They are the optimal policies of the first candidates, of all if the problem is small, and the same made soft.

        Parameters
        ----------
        optimal
            [K, levels, S] the optimal row of each candidate, -1 where there is none.
        """
        levels, R = self.down.shape
        number = np.diff(self.rows.ptr)
        uniform = np.broadcast_to(1 / number[self.rows.state], (levels, R))
        steps = []
        for rows in optimal[: max(4, MAX_VALUES // self._size)]:
            first = np.where(rows < 0, self.rows.ptr[:-1], rows)
            hard = np.zeros((levels, R))
            np.put_along_axis(hard, first, 1.0, axis=1)
            steps += [self.steps_of(hard), self.steps_of((1 - SOFT) * hard + SOFT * uniform)]
        return np.array(steps)

    @property
    def _shape(self) -> tuple[int, int, int]:
        return len(self.prob), len(self.down), self.rows.num_states

    @property
    def _size(self) -> int:
        K, levels, S = self._shape
        return K * levels * S

    def _met(self) -> Ints:
        """Return the augmented states of level 0, of all candidates."""
        K, levels, S = self._shape
        return (np.arange(K)[:, None] * levels * S + np.arange(S)).ravel()

    def _side_by_side(self) -> tuple[Ints, Ints, Ints, Floats]:
        """Return the transitions (from, row, to, probability) of all candidates.

        Augmented states are numbered (k * levels + level) * S + s.
        """
        parts = []
        for k, prob in enumerate(self.prob):
            exists = prob > 0
            some = augmented(self.rows, self.row[exists], self.succ[exists], prob[exists], self.down)
            offset = k * len(self.down) * self.rows.num_states
            parts.append((some[0] + offset, some[1], some[2] + offset, some[3]))
        origin, row, target, prob = (np.concatenate(column) for column in zip(*parts, strict=True))
        return origin, row, target, prob


def as_candidates(candidates: Iterable[TabularMDP], need: ArrayLike, start: int | None) -> Candidates:
    """Return the checked candidates with their need."""
    mdps = _checked(candidates)
    rows = mdps[0].rows
    pair, state = split(need, rows)
    begin = _common_start(mdps) if start is None else _checks.index("start", start, rows.num_states, "a state")
    row, succ, prob = _union(mdps)
    levels, transitions = count_levels(pair, state), int(np.count_nonzero(prob))
    if levels * transitions > MAX_TRANSITIONS:
        raise InputError(
            f"need, candidates: expected a tiny problem, of at most {MAX_TRANSITIONS} transitions, "
            f"got {levels} remaining needs x {transitions} transitions of {len(mdps)} candidates; "
            "take fewer candidates, or ask for less: needs of few pairs, or of states instead of pairs"
        )
    ptr = np.searchsorted(row, np.arange(len(rows) + 1))
    return Candidates(rows, ptr, succ, prob, begin, lowered(pair, state, rows))


def as_prior(prior: ArrayLike | None, K: int) -> Floats:
    """Return the prior as weights [K] that sum to one; None: uniform."""
    if prior is None:
        return np.full(K, 1 / K)
    given = _checks.floats("prior", prior)
    if given.shape != (K,) or not np.all(given >= 0) or not abs(given.sum() - 1) <= 1e-6:
        raise InputError(
            f"prior: expected {K} probabilities that sum to one, one for each candidate, got {prior!r:.80}"
        )
    weights: Floats = given / given.sum()
    return weights


def _checked(candidates: Iterable[TabularMDP]) -> list[TabularMDP]:
    if isinstance(candidates, TabularMDP) or not isinstance(candidates, Iterable):
        raise InputError(f"candidates: expected a list of TabularMDPs, got {type(candidates).__name__}")
    mdps = list(candidates)
    if not mdps:
        raise InputError("candidates: expected at least one TabularMDP, got none")
    for k, mdp in enumerate(mdps):
        if not isinstance(mdp, TabularMDP):
            raise InputError(f"candidates: expected TabularMDPs, got {type(mdp).__name__} at index {k}")
        if not mdp.rows.same(mdps[0].rows) or mdp.num_actions != mdps[0].num_actions:
            raise InputError(
                "candidates: expected the same actions in the same states, "
                f"got {mdp!r} at index {k} and {mdps[0]!r} at index 0"
            )
    return mdps


def _common_start(mdps: list[TabularMDP]) -> int:
    starts = sorted({mdp.start for mdp in mdps})
    if len(starts) > 1:
        raise InputError(f"start: the candidates start in {starts[0]} and {starts[1]}; say where with start=")
    return starts[0]


def _union(mdps: list[TabularMDP]) -> tuple[Ints, Ints, Floats]:
    """Return the transitions that exist in some candidate: row [E], next state [E], probabilities [K, E]."""
    S = mdps[0].num_states
    keys = [np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr)) * S + mdp.succ for mdp in mdps]
    every = np.unique(np.concatenate(keys))
    prob = np.zeros((len(mdps), len(every)))
    for k, mdp in enumerate(mdps):
        prob[k, np.searchsorted(every, keys[k])] = mdp.prob
    return every // S, every % S, prob


def _absorption_times(mdp: TabularMDP, inner: NDArray[np.bool_]) -> Floats:
    """Return the expected steps [S] of a chain until it leaves the `inner` states [S]; inf if the solve breaks down."""
    from scipy.sparse import csr_array, eye_array
    from scipy.sparse.linalg import splu

    n = mdp.num_states
    chain = csr_array((mdp.prob, mdp.succ, mdp.ptr), shape=(n, n))[inner][:, inner]
    times = np.full(n, np.inf)
    try:
        solved = splu((eye_array(chain.shape[0]) - chain).tocsc()).solve(np.ones(chain.shape[0]))
    except RuntimeError:  # singular in doubles
        return times
    times[inner] = np.where(solved >= 1, solved, np.inf)
    return times
