"""GOSPRL: Algorithm 1 of the paper, its variants, and GOSPRL-L (appendix "Beyond the Communicating Setting").

An attempt k, started in state s at time t_k:

1. The goals G_k are the under-sampled states, N < b for some pair or the state (`gosprl.goals` has the variants).
2. Plan the optimistic shortest path to G_k to a precision of 1 / (2 t_k). If s is itself a goal it is duplicated: the
   attempt starts in its non-goal copy, so at least one step is made.
3. Walk until a goal is reached or nu(s, a) > max(U(s, a), 1), where U = N at the start of the attempt, samples at goals
   included (the printed pseudo-code forgets those), and nu are the visits of this attempt.
4. At a goal, one sample of the under-sampled action with the largest gap b - N, ties at random. If none is left there
   (an adaptive need may shrink) it is skipped; with a need per state, the next attempt's first step is the sample.

GOSPRL-L stops when what is needed is too far away, by either of two tests:

    optimistic distance   the optimistic number of steps from the current state to the goals exceeds L. Under the
                          confidence sets' event the true one does too: at level delta these goals are beyond L.
    paper's threshold     the steps so far exceed alpha (j L + L^{3/2} S^2 A) in the j-th episode (the j-th needed
                          sample). The theorem gives no alpha nor its logarithms, so this test certifies nothing. (The
                          paper prints j before both terms; its lemma needs it before the first only.)
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.confidence import FAMILIES, Confidence, Known
from gosprl.errors import InputError
from gosprl.goals import GOALS, History, Select
from gosprl.mdp import TabularMDP
from gosprl.model import EmpiricalModel
from gosprl.planner import Workspace, row_costs
from gosprl.record import UNLIMITED
from gosprl.requirements import Requirement
from gosprl.strategies.base import Attempt, GivenUp

KNOWN_PRECISION = (
    1e-7  # known dynamics are planned exactly: ties that a coarser plan would hide are worth 25 % of the steps
)


@dataclass
class Gosprl:
    """Head for under-sampled states by optimistic shortest paths.

    delta, confidence, scale
        Level, family (`"kl"`, `"bernstein"` or an object) and width multiplier of the confidence sets.
    goals
        `"all"`, `"least-sampled"`, `"easiest"`, `"random"`, or a function as in `gosprl.goals`.
    costs
        Costs in [1, c_max]: an array [S] or [S, A], or a callable (model) -> such an array. By default 1.
    dynamics
        The true `TabularMDP`: plan with known dynamics instead of confidence sets.
    successors
        Which next states are possible at all, as in `EmpiricalModel.restrict`: the sets are much smaller then.
    reach, reach_constant
        L of GOSPRL-L, and alpha of the paper's threshold (None: only the test that certifies).
    precision
        Of the plans; by default 1 / (2 t), and 1e-7 with known dynamics.
    duplicate_start, random_ties
        False: sample an under-sampled state where an attempt would start; take the first of equally good actions.
    """

    delta: float = 0.1
    confidence: str | Confidence | None = None
    scale: float = 1.0
    goals: str | Select = "all"
    costs: ArrayLike | Callable[[EmpiricalModel], ArrayLike] | None = None
    dynamics: TabularMDP | None = None
    successors: Any = field(default=None, repr=False)
    reach: float | None = None
    reach_constant: float | None = 1.0
    precision: float | None = None
    duplicate_start: bool = True
    random_ties: bool = True

    _family: Confidence = field(init=False, repr=False)
    _select: Select = field(init=False, repr=False)
    _work: Workspace | None = field(init=False, repr=False, default=None)
    _history: History | None = field(init=False, repr=False, default=None)
    lost: dict[int, str] = field(init=False, repr=False, default_factory=dict)  # states given up, and by which test
    _single: Attempt = field(init=False, repr=False)
    _stepped: int = field(init=False, repr=False, default=0)  # the state whose entry in it is set
    _heading: NDArray[np.bool_] | None = field(
        init=False, repr=False, default=None
    )  # goals of the walk that just ended

    def __post_init__(self) -> None:
        _checks.open_unit("delta", self.delta)
        _checks.positive("scale", self.scale)
        for name in ("reach", "reach_constant", "precision"):
            if getattr(self, name) is not None:
                _checks.positive(name, getattr(self, name))
        self._select = self.goals if callable(self.goals) else _checks.choice("goals", self.goals, GOALS)
        if self.dynamics is not None:
            if self.confidence is not None:
                raise InputError("dynamics, confidence: known dynamics need no confidence sets; give one of the two")
            if self.successors is not None:
                raise InputError("dynamics, successors: known dynamics say what is possible; give one of the two")
            if not isinstance(self.dynamics, TabularMDP):
                raise InputError(f"dynamics: expected a TabularMDP, got {type(self.dynamics).__name__}")
            self._family = Known(self.dynamics)
        elif self.confidence is None or isinstance(self.confidence, str):
            family = _checks.choice("confidence", "kl" if self.confidence is None else self.confidence, FAMILIES)
            self._family = family(self.delta, self.scale)
        elif hasattr(self.confidence, "intervals") and not isinstance(self.confidence, type):
            self._family = self.confidence
        else:
            raise InputError(f"confidence: expected {sorted(FAMILIES)} or an object with intervals()")

    @property
    def guarantee(self) -> str:
        if self.dynamics is not None:
            return "known dynamics"
        if not isinstance(self.confidence, str) and self.confidence is not None:
            return f"that of {type(self.confidence).__name__}"
        return f"delta={self.delta:g}" if self.scale >= 1 else f"heuristic: scale {self.scale:g}"

    def restart(self) -> None:
        self._heading = None

    def attempt(
        self, model: EmpiricalModel, need: Requirement, s: int, t: int, rng: np.random.Generator
    ) -> Attempt | GivenUp:
        if self._work is None or self._work.system is not model:
            self._begin(model)
        came_to = self._heading is not None and bool(self._heading[s])
        self._score(came_to)
        self._heading = None
        at_goal = came_to or not self.duplicate_start
        if at_goal and (row := _largest_gap(need, model, s, rng)) >= 0:
            return self._one_step(s, row)
        while True:
            under, remaining = _under_sampled(need, model)
            under[list(self.lost)] = False
            if not under.any():
                return GivenUp(self.lost)
            goals = self._select(under, self._remember(model, remaining), rng)
            rows, leave = self._plan(model, goals, t, rng, self.costs)
            lost, test = self._out_of_reach(model, need, goals, under, leave, s, t, rng)
            if not test:
                break
            if lost[s]:  # too far once it is left: take at least what can be had here and now
                row = _largest_gap(need, model, s, rng)
                return self._one_step(s, row if row >= 0 else int(model.rows.ptr[s]))
            self.lost.update(dict.fromkeys(np.flatnonzero(lost).tolist(), test))
        self._heading = goals
        N = model.visits
        return Attempt(rows, goals, N + np.maximum(N, 1), UNLIMITED)

    def _begin(self, model: EmpiricalModel) -> None:
        """Nothing is known of a model not seen before."""
        if self.dynamics is not None and not self.dynamics.rows.same(model.rows):
            raise InputError("dynamics: expected the same states and actions as the system's")
        if self.successors is not None:
            model.restrict(self.successors)
        self._work = Workspace(model, self._family)
        self._history, self._heading = None, None
        self.lost, self._stepped = {}, 0
        S, R = model.num_states, len(model.rows)
        self._single = Attempt(np.full(S, -1), np.zeros(S, dtype=bool), np.full(R, UNLIMITED), 1)

    def _one_step(self, s: int, row: int) -> Attempt:
        """Take one row, whatever comes: always the same attempt but for one entry, so that it costs nothing to make."""
        self._single.policy[self._stepped] = -1
        self._single.policy[s] = row
        self._stepped = s
        return self._single

    def _plan(
        self, model: EmpiricalModel, goals: NDArray[np.bool_], t: int, rng: np.random.Generator, costs: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        assert self._work is not None
        given: Any = costs(model) if callable(costs) else costs
        cost = row_costs(given, model.rows)
        if given is not None and cost.min() < 1:
            raise InputError(f"costs: expected costs in [1, c_max], got {cost.min()}")
        uniforms = rng.random(model.num_states) if self.random_ties else np.zeros(model.num_states)
        usual = KNOWN_PRECISION if self.dynamics is not None else 1 / (2 * t)
        return self._work.plan(goals, cost, self.precision or usual, uniforms)

    def _remember(self, model: EmpiricalModel, remaining: NDArray[np.int64]) -> History:
        visits = np.add.reduceat(model.visits, model.rows.ptr[:-1])
        if self._history is None:
            self._history = History(visits, remaining)
        self._history.visits, self._history.remaining = visits, remaining
        return self._history

    def _score(self, came_to: bool) -> None:
        """Whether the walk that just ended reached the single goal it had."""
        if self._history is not None and self._heading is not None and self._heading.sum() == 1:
            self._history.tried[self._heading] += 1
            self._history.succeeded[self._heading] += came_to

    def _out_of_reach(
        self,
        model: EmpiricalModel,
        need: Requirement,
        goals: NDArray[np.bool_],
        under: NDArray[np.bool_],
        leave: NDArray[np.float64],
        s: int,
        t: int,
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.bool_], str]:
        """States to give up, and the test that says so; "" if none does."""
        if leave[s] == np.inf:
            return goals, "no path, whatever the dynamics in the sets"
        if self.reach is None:
            return goals, ""
        L = float(self.reach)
        if leave[s] > L and not goals[s]:  # a goal that is being left is 0 steps away
            if self.costs is not None:
                _, leave = self._plan(model, goals, t, rng, None)  # reach counts steps, whatever they cost
            if leave[s] > L:
                return goals, f"optimistic distance {leave[s]:.4g} > L = {L:g}"
        if self.reach_constant is not None:
            visits = np.add.reduceat(model.visits, model.rows.ptr[:-1])
            j = 1 + np.minimum(model.visits, need.pair).sum() + np.minimum(visits, need.state).sum()
            bound = self.reach_constant * (j * L + L**1.5 * model.num_states**2 * model.num_actions)
            if t - 1 > bound:
                return under, f"paper's threshold: {t - 1} steps > {bound:.4g}"
        return goals, ""


def _under_sampled(need: Requirement, model: EmpiricalModel) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """[S] whether something is missing there, and how many samples."""
    first = model.rows.ptr[:-1]
    remaining = np.add.reduceat(np.maximum(need.pair - model.visits, 0), first)
    if need.state.any():
        remaining = remaining + np.maximum(need.state - np.add.reduceat(model.visits, first), 0)
    return remaining > 0, remaining


def _largest_gap(need: Requirement, model: EmpiricalModel, s: int, rng: np.random.Generator) -> int:
    """The row of state s with the largest positive gap, ties at random; -1 if there is none."""
    begin, end = model.rows.ptr[s], model.rows.ptr[s + 1]
    gaps = need.pair[begin:end] - model.visits[begin:end]
    largest = gaps.max()
    if largest <= 0:
        return -1
    best = np.flatnonzero(gaps == largest)
    return int(begin + best[int(rng.random() * len(best))])
