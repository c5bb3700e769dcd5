"""GOSPRL: Algorithm 1 of the paper, its variants, and GOSPRL-L (appendix "Beyond the Communicating Setting").

An attempt k, started in state s at time t_k:

1. The goals G_k are the under-sampled states, N < b for some pair or the state (variants: `gosprl.strategies.goals`).
2. Plan the optimistic shortest path to G_k to a precision of 1 / (2 t_k). If s is itself a goal it is duplicated: the
   attempt starts in its non-goal copy, so at least one step is made.
3. Walk until a goal is reached or nu(s, a) > max(U(s, a), 1), where U = N at the start of the attempt, samples at goals
   included (the printed pseudo-code omits those), and nu are the visits of this attempt.
4. At a goal, take one sample of the under-sampled action with the largest gap b - N, ties at random. If there is no
   such action any more (an adaptive need may decrease), skip this. With a need per state, the first step of the next
   attempt is the sample.

GOSPRL-L gives up needed states that are too far away: see `gosprl.strategies.reach`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.collecting.need import Need
from gosprl.errors import InputError
from gosprl.guarantee import Guarantee
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.focus import Focus
from gosprl.planning.ssp import row_costs
from gosprl.planning.workspace import Workspace
from gosprl.sets import KL, Bernstein, Confidence, Known
from gosprl.strategies.base import UNLIMITED, Attempt, GivenUp, Planner, Strategy
from gosprl.strategies.goals import GOALS, History, Select, every, every_from_the_start, selected
from gosprl.strategies.knowledge import KNOWN_PRECISION, family_of, take_knowledge
from gosprl.strategies.reach import NO_PATH, THRESHOLD, Reach, exceeds_threshold

FULL_STATES = 500  # up to so many, plans with prices are for all states


@dataclass(frozen=True)
class Gosprl(Strategy):
    """Head for under-sampled states by optimistic shortest paths: Algorithm 1 of the paper.

    Parameters
    ----------
    delta, confidence, scale
        Level, family (`"kl"`, `"bernstein"` or a `Confidence`) and width multiplier of the confidence sets.
    linear_scale
        Of `"bernstein"`: multiplier of the term that decreases as 1 / N; None: `scale`, for the whole radius.
    goals
        `"all"`, `"all-always"`, `"least-sampled"`, `"easiest"`, `"random"`, or a function as in
        `gosprl.strategies.goals`.
    costs
        Costs in [1, c_max]: an array [S] or [S, A], or a callable (model) -> such an array; None: 1.
    dynamics
        The true `TabularMDP`: plan with known dynamics instead of confidence sets.
    successors
        Candidates for the next states, as in `EmpiricalModel.restrict`; the sets are much smaller with them.
    reach
        L of GOSPRL-L: give up each state whose optimistic distance exceeds it; the others are collected.
    reach_constant
        alpha of the paper's threshold; None: that test, which certifies nothing, is not used.
    precision
        Precision of the plans; None: 1 / (2 t), and 1e-7 with known dynamics.
    planning
        `"focused"`: plan where the attempt will walk (`gosprl.planning.focus`), if goals are `"all"` or `"all-always"`,
        costs fixed, the sets those of this library and known dynamics communicating; `"full"`: plan for all states each
        time, as Algorithm 1 is printed.
    duplicate_start
        False: if an attempt would start in an under-sampled state, sample there instead.
    random_ties
        False: of actions that are equally good, also by the observed frequencies, take the first.
    """

    delta: float = 0.1
    confidence: str | Confidence = "kl"
    scale: float = 1.0
    goals: str | Select = "all"
    costs: ArrayLike | Callable[[EmpiricalModel], ArrayLike] | None = None
    dynamics: TabularMDP | None = None
    successors: Any = field(default=None, repr=False)
    reach: float | None = None
    reach_constant: float | None = None
    precision: float | None = None
    planning: str = "focused"
    duplicate_start: bool = True
    random_ties: bool = True
    linear_scale: float | None = None

    def __post_init__(self) -> None:
        _checks.open_unit("delta", self.delta)
        _checks.positive("scale", self.scale)
        for name, value in (
            ("reach", self.reach),
            ("reach_constant", self.reach_constant),
            ("precision", self.precision),
        ):
            if value is not None:
                _checks.positive(name, value)
        if self.reach_constant is not None and self.reach is None:
            raise InputError("reach_constant: only with reach=, the L of the paper's threshold")
        _checks.choice("planning", self.planning, {"focused": None, "full": None})
        if not callable(self.goals):
            _checks.choice("goals", self.goals, GOALS)
        self.family()

    def family(self) -> Confidence:
        """Return the confidence sets that attempts plan with."""
        return family_of(self.dynamics, self.successors, self.confidence, self.delta, self.scale, self.linear_scale)

    def begin(self, model: EmpiricalModel, need: Need, rng: np.random.Generator) -> "GosprlPlanner":
        """Make the planner of a run."""
        take_knowledge(model, self.dynamics, self.successors)
        return GosprlPlanner(self, model, need, rng)


class GosprlPlanner(Planner):
    """Algorithm 1 in one run.

    Attributes
    ----------
    family
        The confidence sets that attempts plan with.
    value
        Expected cost of the last plan from its start.
    prices
        [S] cost of ending at each goal, in addition to the path; set by callers that choose among goals. Then plans
        are for all states, if there are at most FULL_STATES.
    focus
        Plans regions; None before the first plan, and if plans are for all states.
    reach
        Decides which states are beyond `options.reach`; None: no states are.
    """

    def __init__(self, options: Gosprl, model: EmpiricalModel, need: Need, rng: np.random.Generator) -> None:
        self.options, self.model, self.need, self.rng = options, model, need, rng
        self.family = options.family()
        self.reach = None if options.reach is None else Reach(options.reach, self.family, model, need)
        self.value = 0.0
        self.prices: NDArray[np.float64] | None = None
        self.focus: Focus | None = None
        self._space: Workspace | None = None  # made for the first plan, since not every run needs one
        self._select = options.goals if callable(options.goals) else GOALS[options.goals]
        self._history = History(need.state_visits, need.missing_samples)
        self._given_up: dict[int, str] = {}
        self._threshold_fired = False  # whether the paper's threshold gave states up
        self._earlier = dict.fromkeys(("rows", "full", "leavings"), 0)  # work before the arrays were made anew
        self._count = 0  # number of states in `_under`
        self._goals_were_all = False  # whether all states of `_under` were the goals of the last plan
        self._single_at = 0  # the state whose entry in `_single` is set
        self._plans = 0
        self._ended, self._reached = 0, 0  # walks that ended, and those of them that reached a goal
        self._rows_told = 0  # rows applied at the last call of `new_rows`
        self._heading: NDArray[np.bool_] | None = None  # goals of the attempt that ended
        self._followed: NDArray[np.int64] | None = None  # its policy, if that is for a region only

    @property
    def space(self) -> Workspace:
        """The confidence sets, for the counts at the last plan."""
        if self._space is None:
            model = self.model
            S, R = model.rows.num_states, len(model.rows)
            self._cost, self._used = self._costs(), model.states.used
            self._space = Workspace(model, self.family)
            self.focus = Focus(self._space, self._cost) if self._can_focus() else None
            self._under = np.zeros(S, dtype=bool)  # [S] under-sampled and not given up
            self._seen = (model.mark(), -1)  # versions of the model and of the need when `_under` was updated
            returned = model.returned.visits
            self._limit = returned + np.maximum(returned, 1)  # [R] visits at which an attempt ends
            self._limited, self._settled = model.returned.mark(), len(self.need.settled)  # see `_update_goals`
            self._single = Attempt(np.full(S, -1), np.zeros(S, dtype=bool), np.full(R, UNLIMITED), 1)
        return self._space

    @property
    def may_give_up(self) -> bool:
        """False only with open sets of this library, which have a path to every state, and without `reach`."""
        opened = isinstance(self.family, (Bernstein, KL)) and not self.model.closed
        return self.options.reach is not None or not opened

    @property
    def guarantee(self) -> Guarantee:
        """The level of the sets, and its assumptions."""
        options = self.options
        if self._threshold_fired:
            return Guarantee.heuristic("stopped by the paper's threshold, whose constant is not known")
        if options.dynamics is not None:
            return Guarantee(known=True)
        if not isinstance(options.confidence, str) and self.family.delta is not None:
            return Guarantee(why=f"that of {type(options.confidence).__name__}")
        if self.family.no_promise:
            return Guarantee.heuristic(self.family.no_promise)
        return Guarantee(options.delta, given=() if options.successors is None else ("the successors",))

    @property
    def given_up(self) -> dict[int, str]:
        """States given up so far, and the test that decided it."""
        return self._given_up

    @property
    def _applied(self) -> int:
        """Rows applied so far."""
        focus, full = self.focus, self._space
        return self._earlier["rows"] + (0 if focus is None else focus.applied) + (0 if full is None else full.applied)

    def new_rows(self) -> int:
        """Return the number of rows applied by plans since the last call."""
        before, self._rows_told = self._rows_told, self._applied
        return self._rows_told - before

    @property
    def work(self) -> dict[str, float]:
        """Numbers of plans, of full plans, of rows applied, and of walks: left their region, ended, reached a goal."""
        focus, full, earlier = self.focus, self._space, self._earlier
        return {
            "plans": self._plans,
            "median rows": 0 if focus is None else focus.median_rows,
            "rows": self._applied,
            "full": earlier["full"] + (0 if full is None else full.plans),
            "leavings": earlier["leavings"] + (0 if focus is None else focus.left),
            "ended": self._ended,
            "reached": self._reached,
        }

    def resize(self) -> None:
        """Make arrays anew; what they were made of is in the model."""
        work, history = self.work, self._history
        self._earlier = {name: int(work[name]) for name in self._earlier}
        self._space, self.focus, self.prices = None, None, None
        self._history = History(self.need.state_visits, self.need.missing_samples)
        self._history.tried[: len(history.tried)] = history.tried
        self._history.succeeded[: len(history.succeeded)] = history.succeeded
        self._goals_were_all, self._single_at = False, 0
        if self.reach is not None:
            self.reach.resize()
        self.restart()

    def remember(self) -> dict[str, Any]:
        """Return what was given up, the tries of single goals, and numbers of work; plans are made anew."""
        work, history = self.work, self._history
        single = bool(history.tried.any())
        return {
            "given up": [[s, why] for s, why in self._given_up.items()],
            "threshold fired": self._threshold_fired,
            "tried": history.tried.tolist() if single else [],
            "succeeded": history.succeeded.tolist() if single else [],
            "plans": self._plans,
            "walks": [self._ended, self._reached],
            "rows told": self._rows_told,
            "earlier": {name: int(work[name]) for name in self._earlier},
            "reach": None if self.reach is None else self.reach.remember(),
        }

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on after the planner that remembered this."""
        self._given_up = {int(s): why for s, why in memory["given up"]}
        self._threshold_fired = memory["threshold fired"]
        tried = len(memory["tried"])
        self._history.tried[:tried], self._history.succeeded[:tried] = memory["tried"], memory["succeeded"]
        self._plans, self._rows_told = memory["plans"], memory["rows told"]
        self._ended, self._reached = memory.get("walks", (0, 0))  # checkpoints of earlier versions have none
        self._earlier = dict(memory["earlier"])
        if self.reach is not None:
            self.reach.recall(memory["reach"])

    def restart(self) -> None:
        """Forget the attempt that ended."""
        self._heading, self._followed = None, None

    def attempt(self, s: int, t: int) -> Attempt | GivenUp:
        """Sample at a goal that was reached, otherwise walk to one."""
        space = self.space
        reached = self._heading is not None and bool(self._heading[s])
        self._score(s, reached)
        self.restart()
        if (reached or not self.options.duplicate_start) and (row := self._largest_gap(s)) >= 0:
            return self._one_step(s, row)
        if self.reach is not None:
            self.reach.examine(s, t, self.new_rows())
        while True:
            planned = self._plan_for_goals(space, s, t)
            if planned is None:
                return GivenUp({**self.need.waived, **self._given_up})
            policy, goals, cost = planned
            if self._gave_up(goals, cost, s, t):
                continue
            out, test = self._out_of_reach(goals, cost, t)
            if not test:
                break
            if out[s]:  # s itself would be given up: take a sample while the walk is here
                row = self._largest_gap(s)
                return self._one_step(s, row if row >= 0 else int(self.model.rows.ptr[s]))
            self._threshold_fired |= test.startswith(THRESHOLD)
            self._given_up.update(dict.fromkeys(np.flatnonzero(out).tolist(), test))
            self._seen = (self._seen[0], -1)
        self._heading, self.value = goals, cost
        self._plans += 1
        return Attempt(policy, goals, self._limit, UNLIMITED)

    def distance(self, s: int, t: int, at: int) -> float:
        """Return the optimistic cost from s to the goals, for a walk that is in state `at`; inf without a path to them.

        Nothing is given up; the attempt that ended is forgotten.
        """
        self._score(at, self._heading is not None and bool(self._heading[at]))
        planned = self._plan_for_goals(self.space, s, t)
        self.restart()
        if planned is None:
            return np.inf
        return 0.0 if planned[1][s] else planned[2]

    def unseen(self) -> NDArray[np.float64]:
        """Return the largest mass of unseen successors in each row's set [R], for the current counts.

        Before the first plan it is 1.
        """
        if self._space is None:
            return np.ones(len(self.model.rows))
        self.space.refresh(self.space.stale())
        unseen: NDArray[np.float64] = np.minimum(self.space.sets.total, self.space.sets.slack)
        return unseen

    def _can_focus(self) -> bool:
        """Whether plans may be for a region only: see `gosprl.planning.focus`."""
        options = self.options
        ours = isinstance(self.family, (Bernstein, KL, Known))  # these have sets on the stored successors
        can = options.planning == "focused" and ours and not callable(options.costs)
        all_goals = self._select in (every, every_from_the_start)
        # planning in a region cannot detect traps outside of it
        return can and all_goals and (options.dynamics is None or options.dynamics.is_communicating())

    def _plan_for_goals(
        self, space: Workspace, s: int, t: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_], float] | None:
        """Return (policy [S], goals [S], cost from s) for the goals as they are now; None if there are none."""
        rows, dropped = self._update_goals()
        if self._count == 0:
            return None
        goals = selected(self._select, self._under, self._history, self.rng)
        were_all, self._goals_were_all = self._goals_were_all, goals is self._under
        return self._plan(space, goals, rows, dropped if were_all and self._goals_were_all else None, s, t)

    def _update_goals(self) -> tuple[NDArray[np.int64], list[int] | None]:
        """Update `_under` and `_limit` for the current counts: (rows that changed, states that are met now).

        The second is None if the requirement changed: then any state may have changed.
        """
        need, (mark, version), returned = self.need, self._seen, self.model.returned
        rows = self.model.changed(mark)
        counted = rows if returned is self.model else returned.changed(self._limited)
        N = returned.visits[counted]
        self._limit[counted] = N + np.maximum(N, 1)
        self._seen, self._limited = (self.model.mark(), need.version), returned.mark()
        settled, self._settled = need.settled[self._settled :], len(need.settled)
        if version != self._seen[1]:
            self._under[:] = need.unmet_items > 0
            self._under[list(self._given_up)] = False
            self._count = int(self._under.sum())
            return rows, None
        state, unmet = self.model.rows.state, need.unmet_items
        met = [s for s in {*state[rows].tolist(), *settled} if self._under[s] and not unmet[s]]
        self._under[met] = False
        self._count -= len(met)
        return rows, met

    def _one_step(self, s: int, row: int) -> Attempt:
        """Return an attempt of one step by `row`; the same arrays are reused each time, so it costs O(1)."""
        self._single.policy[self._single_at] = -1
        self._single.policy[s] = row
        self._single_at = s
        return self._single

    def _costs(self) -> NDArray[np.float64]:
        costs = self.options.costs
        given: Any = costs(self.model) if callable(costs) else costs
        if callable(costs) and given is None:
            S, A = self.model.rows.num_states, self.model.num_actions
            raise InputError(f"costs: expected [S] = ({S},) or [S, A] = ({S}, {A}), got None")
        model = self.model
        if given is None:
            return model.costs(ending=1.0)
        if model.growing:
            raise InputError("costs: expected None where states are discovered on the way: they have no numbers yet")
        cost = row_costs(given, model.known_rows)
        if cost.min() < 1:
            raise InputError(f"costs: expected costs in [1, c_max], got {cost.min()}")
        return model.costs(ending=1.0, known=cost)

    def _precision(self, t: int) -> float:
        known = self.options.dynamics is not None
        return self.options.precision or (KNOWN_PRECISION if known else 1 / (2 * t))

    def _plan(
        self,
        space: Workspace,
        goals: NDArray[np.bool_],
        rows: NDArray[np.int64],
        dropped: list[int] | None,
        s: int,
        t: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_], float]:
        """Return (policy [S], goals [S], cost from s), by a focused plan if possible, else by a full one."""
        if callable(self.options.costs):
            self._cost = self._costs()
        elif self._used != self.model.states.used:
            self._cost[:] = self._costs()  # in place, for those that share it; costs only increase by a discovery
        self._used = self.model.states.used
        key = int(self.rng.random() * 2**32) if self.options.random_ties else -1
        precision = self._precision(t)
        prices = self.prices
        if prices is not None and len(goals) <= FULL_STATES:
            self.focus = None  # it is not told of later changes, so it cannot be used again
        if self.focus is not None:
            focused = self.focus.attempt(goals, rows, dropped, s, precision, key, prices)
            if focused is not None:
                policy, cost = focused
                self._followed = policy
                return policy, self.focus.goal, cost
        goal_costs = None if prices is None else prices - prices[goals].min()
        if self.focus is not None:
            goal_costs = self.focus.prices
        policy, values = space.plan(goals, self._cost, precision, key, goal_costs)
        if self.focus is not None and not self.focus.adopt():
            self.focus = None  # some states cannot reach the goals, which only full plans detect
        return policy, goals, float(values[s])

    def _score(self, s: int, reached: bool) -> None:
        """Count whether the walk that ended reached a goal, whether it left its region, and reached its single goal."""
        if self._heading is not None:
            self._ended += 1
            self._reached += reached
        if self._followed is not None and self.focus is not None:
            if self._followed[s] < 0 and not reached:
                self.focus.left += 1
            else:
                self.focus.stayed += 1
        elif self._heading is not None and self._heading.sum() == 1:
            self._history.tried[self._heading] += 1
            self._history.succeeded[self._heading] += reached

    def _gave_up(self, goals: NDArray[np.bool_], cost: float, s: int, t: int) -> bool:
        """Give up `goals` [S], to which a plan costs `cost` from s, if they are beyond `reach`; whether they are."""
        reach = self.reach
        # a goal in which the walk is now is 0 steps away
        if reach is None or not reach.limit < cost < np.inf or goals[s]:
            return False
        if self.options.costs is not None or self.prices is not None:  # `reach` is a number of steps, not a cost
            cost = float(reach.distances(goals, t)[s])
        if cost <= reach.limit:
            return False
        reach.give_up(np.flatnonzero(goals), cost, s, t)
        return True

    def _out_of_reach(self, goals: NDArray[np.bool_], cost: float, t: int) -> tuple[NDArray[np.bool_], str]:
        """Return the states to give up by the other tests [S], and the one that decided it; "" if there are none."""
        if cost == np.inf:
            return goals, NO_PATH
        options = self.options
        if options.reach is None or options.reach_constant is None:
            return goals, ""
        return self._under, exceeds_threshold(options.reach, options.reach_constant, self.model, self.need, t)

    def _largest_gap(self, s: int) -> int:
        """Return the row of state s with the largest positive gap b - N, ties at random; -1 if there is none."""
        begin, end = int(self.model.rows.ptr[s]), int(self.model.rows.ptr[s + 1])
        visits = self.model.returned.counts.visits[begin:end]
        gaps = (self.need.pair[begin:end] - visits).tolist()  # few: lists are faster
        largest = max(gaps)
        if largest <= 0:
            return -1
        best = [row for row, gap in enumerate(gaps, begin) if gap == largest]
        return best[int(self.rng.random() * len(best))]
