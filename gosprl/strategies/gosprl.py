"""GOSPRL: Algorithm 1 of the paper, its variants, and GOSPRL-L (appendix "Beyond the Communicating Setting").

An attempt k, started in state s at time t_k:

1. The goals G_k are the under-sampled states, N < b for some pair or the state (variants: `gosprl.strategies.goals`).
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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.collecting.record import UNLIMITED
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.focus import Focus
from gosprl.planning.ssp import row_costs
from gosprl.planning.workspace import Workspace
from gosprl.sets.bernstein import Bernstein
from gosprl.sets.families import as_family
from gosprl.sets.intervals import Confidence
from gosprl.sets.kl import KL
from gosprl.sets.known import Known
from gosprl.strategies.base import Attempt, GivenUp
from gosprl.strategies.goals import GOALS, History, Select, every

if TYPE_CHECKING:
    from gosprl._kernels import Ledger

KNOWN_PRECISION = (
    1e-7  # known dynamics are planned exactly: ties that a coarser plan would hide are worth 25 % of the steps
)


@dataclass
class Gosprl:
    """Head for under-sampled states by optimistic shortest paths.

    delta, confidence, scale
        Level, family (`"kl"`, `"bernstein"` or an object) and width multiplier of the confidence sets.
    goals
        `"all"`, `"least-sampled"`, `"easiest"`, `"random"`, or a function as in `gosprl.strategies.goals`.
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
    planning
        `"focused"`: plan where the attempt will walk (`gosprl.planning.focus`), if goals are `"all"`, costs fixed, the
        sets ours and known dynamics communicating; `"full"`: plan for all states each time, as Algorithm 1 is printed.
    duplicate_start, random_ties
        False: sample an under-sampled state where an attempt would start; of actions that are equally good, also by
        what was seen of them, take the first.
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
    planning: str = "focused"
    duplicate_start: bool = True
    random_ties: bool = True

    value: float = field(init=False, repr=False, default=0.0)  # cost of the last plan from where it began
    prices: NDArray[np.float64] | None = field(init=False, repr=False, default=None)  # [S] of ending there; full plans
    lost: dict[int, str] = field(init=False, repr=False, default_factory=dict)  # states given up, and by which test
    _family: Confidence = field(init=False, repr=False)
    _select: Select = field(init=False, repr=False)
    _work: Workspace | None = field(init=False, repr=False, default=None)
    _focus: Focus | None = field(init=False, repr=False, default=None)
    _cost: NDArray[np.float64] = field(init=False, repr=False)
    _history: History = field(init=False, repr=False)
    _under: NDArray[np.bool_] = field(init=False, repr=False)  # [S] under-sampled and not given up
    _limit: NDArray[np.int64] = field(init=False, repr=False)  # [R] visits at which an attempt ends
    _usual: bool = field(init=False, repr=False, default=False)  # whether those were the goals last time
    _count: int = field(init=False, repr=False, default=0)  # states in `_under`
    _seen: tuple[int, int] = field(init=False, repr=False, default=(0, 0))  # of the model and of the need
    _single: Attempt = field(init=False, repr=False)
    _plans: int = field(init=False, repr=False, default=0)
    _stepped: int = field(init=False, repr=False, default=0)  # the state whose entry in it is set
    _heading: NDArray[np.bool_] | None = field(init=False, repr=False, default=None)  # goals of the walk that ended
    _followed: NDArray[np.int64] | None = field(init=False, repr=False, default=None)  # its policy, if it may be left

    def __post_init__(self) -> None:
        _checks.open_unit("delta", self.delta)
        _checks.positive("scale", self.scale)
        for name in ("reach", "reach_constant", "precision"):
            if getattr(self, name) is not None:
                _checks.positive(name, getattr(self, name))
        _checks.choice("planning", self.planning, {"focused": None, "full": None})
        self._select = self.goals if callable(self.goals) else _checks.choice("goals", self.goals, GOALS)
        if self.dynamics is not None:
            if self.confidence is not None:
                raise InputError("dynamics, confidence: known dynamics need no confidence sets; give one of the two")
            if self.successors is not None:
                raise InputError("dynamics, successors: known dynamics say what is possible; give one of the two")
            if not isinstance(self.dynamics, TabularMDP):
                raise InputError(f"dynamics: expected a TabularMDP, got {type(self.dynamics).__name__}")
            self._family = Known(self.dynamics)
        else:
            self._family = as_family(self.confidence, self.delta, self.scale)

    @property
    def guarantee(self) -> str:
        if self.dynamics is not None:
            return "known dynamics"
        if not isinstance(self.confidence, str) and self.confidence is not None:
            return f"that of {type(self.confidence).__name__}"
        given = "" if self.successors is None else ", given the successors"
        return f"delta={self.delta:g}{given}" if self.scale >= 1 else f"heuristic: scale {self.scale:g}"

    @property
    def work(self) -> dict[str, int]:
        """What planning took: plans, of them for all states, walks that left their region, rows applied."""
        focus, full = self._focus, self._work
        return {
            "plans": self._plans,
            "median rows": 0 if focus is None else focus.median_rows,
            "rows": (0 if focus is None else focus.applied) + (0 if full is None else full.applied),
            "full": 0 if full is None else full.plans,
            "leavings": 0 if focus is None else focus.left,
        }

    def restart(self) -> None:
        self._heading, self._followed = None, None

    def attempt(
        self, model: EmpiricalModel, need: "Ledger", s: int, t: int, rng: np.random.Generator
    ) -> Attempt | GivenUp:
        if self._work is None or self._work.system is not model or self._history.visits is not need.visits:
            self._begin(model, need)
        came_to = self._heading is not None and bool(self._heading[s])
        self._score(s, came_to)
        self.restart()
        at_goal = came_to or not self.duplicate_start
        if at_goal and (row := _largest_gap(need, model, s, rng)) >= 0:
            return self._one_step(s, row)
        while True:
            rows, dropped = self._look(model, need)
            if self._count == 0:
                return GivenUp(self.lost)
            goals = self._select(self._under, self._history, rng)
            usual, self._usual = self._usual, goals is self._under
            if not (usual and self._usual):
                dropped = None
            policy, goals, leave = self._plan(model, goals, rows, dropped, s, t, rng)
            lost, test = self._out_of_reach(model, need, goals, leave, s, t)
            if not test:
                break
            if lost[s]:  # too far once it is left: take at least what can be had here and now
                row = _largest_gap(need, model, s, rng)
                return self._one_step(s, row if row >= 0 else int(model.rows.ptr[s]))
            self.lost.update(dict.fromkeys(np.flatnonzero(lost).tolist(), test))
            self._seen = (self._seen[0], -1)
        self._heading, self.value = goals, leave
        self._plans += 1
        return Attempt(policy, goals, self._limit, UNLIMITED)

    def unseen(self, model: EmpiricalModel) -> NDArray[np.float64]:
        """[R] the mass that each row's set leaves to successors never seen, for the counts as they are."""
        if self._work is None or self._work.system is not model:
            return np.ones(len(model.rows))
        self._work.refresh(self._work.stale())
        unseen: NDArray[np.float64] = np.minimum(self._work.sets.total, self._work.sets.slack)
        return unseen

    def _begin(self, model: EmpiricalModel, need: "Ledger") -> None:
        """Nothing is known of a model not seen before, nor of what another run needs of the same."""
        if self.dynamics is not None and not self.dynamics.rows.same(model.rows):
            raise InputError("dynamics: expected the same states and actions as the system's")
        if self.successors is not None:
            model.restrict(self.successors)
        S, R = model.num_states, len(model.rows)
        self._work = Workspace(model, self._family)
        self._cost = self._costs(model)
        ours = isinstance(self._family, (Bernstein, KL, Known))  # sets on the successors that the model has
        focused = self.planning == "focused" and ours and self._select is every and not callable(self.costs)
        if focused and self.dynamics is not None:
            focused = self.dynamics.is_communicating()  # a trap, however unlikely, is none of a region's business
        self._focus = Focus(self._work, self._cost) if focused else None
        self._history = History(need.visits, need.missing)
        self._under, self._count, self._usual = np.zeros(S, dtype=bool), 0, False
        self._seen = (model.mark(), -1)
        self._limit = model.visits + np.maximum(model.visits, 1)
        self.restart()
        self.lost, self._stepped, self._plans = {}, 0, 0
        self._single = Attempt(np.full(S, -1), np.zeros(S, dtype=bool), np.full(R, UNLIMITED), 1)

    def _look(self, model: EmpiricalModel, need: "Ledger") -> tuple[NDArray[np.int64], list[int] | None]:
        """Bring up to date what depends on the counts: the rows that changed, and the states that are met now.

        None instead of the latter if the need itself is another, and all may be different.
        """
        mark, version = self._seen
        rows = model.changed(mark)
        N = model.visits[rows]
        self._limit[rows] = N + np.maximum(N, 1)
        self._seen = (model.mark(), int(need.scalars[3]))
        if version != self._seen[1]:
            self._under[:] = need.unmet > 0
            self._under[list(self.lost)] = False
            self._count = int(self._under.sum())
            return rows, None
        met = [s for s in set(need.row_state[rows].tolist()) if self._under[s] and not need.unmet[s]]
        self._under[met] = False
        self._count -= len(met)
        return rows, met

    def _one_step(self, s: int, row: int) -> Attempt:
        """Take one row, whatever comes: always the same attempt but for one entry, so that it costs nothing to make."""
        self._single.policy[self._stepped] = -1
        self._single.policy[s] = row
        self._stepped = s
        return self._single

    def _costs(self, model: EmpiricalModel) -> NDArray[np.float64]:
        given: Any = self.costs(model) if callable(self.costs) else self.costs
        cost = row_costs(given, model.rows)
        if given is not None and cost.min() < 1:
            raise InputError(f"costs: expected costs in [1, c_max], got {cost.min()}")
        return cost

    def _plan(
        self,
        model: EmpiricalModel,
        goals: NDArray[np.bool_],
        rows: NDArray[np.int64],
        dropped: list[int] | None,
        s: int,
        t: int,
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_], float]:
        """(policy, goals, cost from s): focused if that will do, for all states otherwise."""
        assert self._work is not None
        if callable(self.costs):
            self._cost = self._costs(model)
        key = int(rng.random() * 2**32) if self.random_ties else -1
        precision = self.precision or (KNOWN_PRECISION if self.dynamics is not None else 1 / (2 * t))
        if self.prices is not None:
            self._focus = None  # it would have to be told of every change
            policy, values = self._work.plan(goals, self._cost, precision, key, self.prices - self.prices[goals].min())
            return policy, goals, float(values[s])
        if self._focus is not None:
            focused = self._focus.attempt(goals, rows, dropped, s, precision, key)
            if focused is not None:
                policy, leave = focused
                self._followed = policy
                return policy, self._focus.goal, leave
        policy, values = self._work.plan(goals, self._cost, precision, key)
        if self._focus is not None and not self._focus.adopt():
            self._focus = None  # some states cannot reach the goals: only full plans notice
        return policy, goals, float(values[s])

    def _score(self, s: int, came_to: bool) -> None:
        """How the walk that just ended went: to the single goal it had, out of the region that it was planned for."""
        if self._followed is not None and self._focus is not None:
            if self._followed[s] < 0 and not came_to:
                self._focus.left += 1
            else:
                self._focus.stayed += 1
        elif self._heading is not None and self._heading.sum() == 1:
            self._history.tried[self._heading] += 1
            self._history.succeeded[self._heading] += came_to

    def _out_of_reach(
        self,
        model: EmpiricalModel,
        need: "Ledger",
        goals: NDArray[np.bool_],
        leave: float,
        s: int,
        t: int,
    ) -> tuple[NDArray[np.bool_], str]:
        """States to give up, and the test that says so; "" if none does."""
        if leave == np.inf:
            return goals, "no path, whatever the dynamics in the sets"
        if self.reach is None:
            return goals, ""
        L = float(self.reach)
        if leave > L and not goals[s]:  # a goal that is being left is 0 steps away
            if self.costs is not None:  # reach counts steps, whatever they cost
                assert self._work is not None
                precision = self.precision or 1 / (2 * t)
                leave = float(self._work.plan(goals, np.ones(len(model.rows)), precision, -1)[1][s])
            if leave > L:
                return goals, f"optimistic distance {leave:.4g} > L = {L:g}"
        if self.reach_constant is not None:
            j = 1 + np.minimum(model.visits, need.pair).sum() + np.minimum(need.visits, need.state).sum()
            bound = self.reach_constant * (j * L + L**1.5 * model.num_states**2 * model.num_actions)
            if t - 1 > bound:
                return self._under, f"paper's threshold: {t - 1} steps > {bound:.4g}"
        return goals, ""


def _largest_gap(need: "Ledger", model: EmpiricalModel, s: int, rng: np.random.Generator) -> int:
    """The row of state s with the largest positive gap, ties at random; -1 if there is none."""
    begin, end = int(model.rows.ptr[s]), int(model.rows.ptr[s + 1])
    gaps = (need.pair[begin:end] - model._counts.visits[begin:end]).tolist()  # few: lists are faster than arrays
    largest = max(gaps)
    if largest <= 0:
        return -1
    best = [row for row, gap in enumerate(gaps, begin) if gap == largest]
    return best[int(rng.random() * len(best))]
