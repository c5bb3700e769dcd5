"""The practical plan: often near the fluid limit, without a guarantee (`gosprl.strategies.guarded` adds one).

The walk follows shortest paths to under-sampled states, planned in sets that are scaled to a small part of their width.
It takes needed samples wherever it is, and chooses among goals by the prices of the fluid program.

1. In an under-sampled state, take the needed action with the fewest visits, so that all actions are known early. By the
   duals of the program (`gosprl.planning.fluid`), any needed sample is as good as any other, to first order: it has to
   be taken at some time. Only steps without a needed sample cost anything.
2. In a state whose need is met, walk to an unmet state. The nearest goal first, as in Algorithm 1, would leave all far
   goals for the end. So goals have prices (`gosprl.strategies.prices`) in addition to the steps of the path.
3. Plan again when the need of a state is met, when a count has doubled, or in states that the last plan does not cover.

Where there are no prices, paths are planned around the current state only (`gosprl.planning.focus`), in wider sets: to
test a row again costs little, to misjudge it a lot. If a plan in narrow sets predicted the next needed sample much
earlier than now, what was seen by chance misled it: the sets are wide again until that sample is there.

In such sets, unseen successors are a shortcut to the goal from everywhere. With few samples that is expensive to
refute. While the learnt prior leads (`gosprl.planning.prior`), paths are planned with what it expects instead. Then
prices count in proportion to the optimism: at one sample a pair there are none. Where the prior predicted the next
needed sample much earlier than now, it is wrong, and paths are planned in the sets until there is one.

Near ties. By the program, many rows are equally good, to first order. They are not: a walk that always takes the best
of them, by estimates, finishes some goals early, and makes long ways to the few others in the end. The flow of the
program takes all of them in proportion. So among rows that are nearly as good as the best one, the walk takes the row
with the most visits left in the flow, and compares them again after a part of these.

With known dynamics nothing is learnt: paths and prices are those of the true dynamics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.collecting.need import Need
from gosprl.errors import InputError
from gosprl.guarantee import Guarantee
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.endgame import Endgame
from gosprl.planning.prior import Prior
from gosprl.planning.workspace import Workspace
from gosprl.sets import KL, Intervals
from gosprl.strategies.base import UNLIMITED, Attempt, GivenUp, Planner, Strategy
from gosprl.strategies.gosprl import Gosprl, GosprlPlanner
from gosprl.strategies.knowledge import take_knowledge
from gosprl.strategies.prices import FLUID_STATES, Prices
from gosprl.strategies.reach import Reach

PATIENCE = 10  # times the steps that the prior predicts to the next needed sample
DISTANCE_PRECISION, DISTANCES_AGAIN = 0.05, 1.05  # of expected steps; growth of the counts after which they are new
SOON = 3  # times the steps that a plan in the narrowest sets predicts
NARROW = {False: 0.01, True: 0.001}  # scale of the sets, by whether goals have prices
KNOWN = {False: 0.1, True: 0.05}  # the same if successors are known
CLOSE = 0.1  # expected steps that a row which the program asks for may be behind the best one
SHARE = 0.25  # of the visits that it asks for, after which rows are compared again


class NarrowKL(KL):
    """Narrow sets for planning, with more unseen mass for rows whose successors are mostly new.

    The Good-Turing estimate of the probability of a new successor is the number of successors seen once, divided by the
    visits. Here this number is reduced by two, so that a few kinds of rare events do not count, and the mass is spread
    over all unseen states instead of given to the best one.
    """

    def intervals(self, model: EmpiricalModel, rows: NDArray[np.int64] | None = None) -> Intervals:
        """Return the sets of `rows` [n] in this order; None: of all R rows."""
        sets = super().intervals(model, rows)
        if model.closed:
            return sets
        ptr, _, count, _ = model.stored(rows)
        visits = model.visits if rows is None else model.visits[rows]
        number = np.diff(ptr)
        row = np.repeat(np.arange(len(number)), number)
        new = np.maximum(np.bincount(row[count == 1], minlength=len(number)) - 2, 0) / np.maximum(visits, 1)
        lower = sets.lower * np.repeat(1 - new, number)
        each = np.maximum(sets.each, new / np.maximum(model.rows.num_states - number, 1))
        return Intervals(ptr, sets.succ, lower, sets.upper, each, np.maximum(sets.total, new))


@dataclass(frozen=True)
class Practical(Strategy):
    """Walk and sample by a nearly greedy plan; no guarantee.

    Parameters
    ----------
    delta, scale
        Level and width multiplier of the `kl` sets that paths are planned with; scale None: 0.01, and 0.001 as
        soon as goals have prices; where successors are known 0.1 and 0.05.
    successors
        Candidates for the next states, as in `EmpiricalModel.restrict`.
    dynamics
        The true `TabularMDP`: plan with known dynamics, nothing is learnt.
    reach
        Give up each state whose optimistic distance, in unscaled sets of level delta, exceeds it.
    fluid
        Whether to price goals by the fluid program; None: if that is small (`gosprl.strategies.prices`), or the
        dynamics are known.
    prior
        Whether to plan with the learnt prior where it leads.
    """

    delta: float = 0.1
    scale: float | None = None
    successors: Any = field(default=None, repr=False)
    dynamics: TabularMDP | None = None
    reach: float | None = None
    fluid: bool | None = None
    prior: bool = True

    def __post_init__(self) -> None:
        _checks.open_unit("delta", self.delta)
        if self.scale is not None:
            _checks.positive("scale", self.scale)
        self.paths()
        self.certified()
        if self.fluid is not None and not isinstance(self.fluid, bool):
            raise InputError(f"fluid: expected True, False or None (True), got {self.fluid!r}")
        if not isinstance(self.prior, bool):
            raise InputError(f"prior: expected True or False, got {self.prior!r}")

    def paths(self, priced: bool = True) -> Gosprl:
        """Return the options of the shortest paths that the walk takes, to goals with prices or without."""
        if self.dynamics is not None:
            return Gosprl(dynamics=self.dynamics, successors=self.successors, duplicate_start=False)
        usual = (NARROW if self.successors is None else KNOWN)[priced]
        sets = NarrowKL(self.delta, self.scale or usual)
        return Gosprl(confidence=sets, successors=self.successors, duplicate_start=False)

    def certified(self) -> Gosprl:
        """Return the options, with unscaled sets, by which states are beyond `reach`."""
        return Gosprl(self.delta, successors=self.successors, dynamics=self.dynamics, reach=self.reach)

    def begin(self, model: EmpiricalModel, need: Need, rng: np.random.Generator) -> "PracticalPlanner":
        """Make the planner of a run."""
        take_knowledge(model, self.dynamics, self.successors)
        reach = None if self.reach is None else Reach(self.reach, self.certified().family(), model, need)
        return PracticalPlanner(self, model.returned, need, rng, reach)


class PracticalPlanner(Planner):
    """The practical plan in one run.

    Parameters
    ----------
    reach
        Decides which states are given up; None: no states are.
    """

    def __init__(
        self,
        options: Practical,
        model: EmpiricalModel,
        need: Need,
        rng: np.random.Generator,
        reach: Reach | None,
    ) -> None:
        from gosprl import _kernels

        self.options, self.model, self.need = options, model, need
        self._under_sampled = _kernels.under_sampled_row
        self._prices = Prices(model, need, options.fluid, options.dynamics)
        self._narrow = False  # whether the sets are those of plans with prices
        self._paths = GosprlPlanner(options.paths(self._narrow), model, need, rng)
        self._reach = reach
        self._prior = Prior(model) if self._may_have_prior() else None
        self._endgame = None if options.dynamics is None else Endgame(model, need, options.dynamics)
        self._plan: Attempt | None = None
        self._new_arrays()
        self._collected, self._since, self._predicted = -1, 0, 0.0  # see `_waited`
        self._made = (0, 0, 0)  # mark of the model, unmet states and version of the need at the last plan

    def _new_arrays(self) -> None:
        S, R = self.model.rows.num_states, len(self.model.rows)
        self._no_goals, self._no_visits = np.zeros(S, dtype=bool), np.zeros(R, dtype=np.int64)
        self._limit, self._limited = np.ones(R, dtype=np.int64), 0  # see `_limits`; the model's mark when it was called
        self._cost, self._used = np.ones(0), -1  # see `_costs`; states in use when it was called
        self._distances: Workspace | None = None  # see `expected_steps`
        self._distances_to, self._distances_at, self._steps = (-1, 0, 0), 0, np.ones(0)
        # used without a plan: the attempt ends in states whose need is met
        self._sampling = Attempt(np.full(S, -1), self._no_goals, np.full(R, UNLIMITED), UNLIMITED, sample=True)

    def _may_have_prior(self) -> bool:
        return self.options.prior and self.options.dynamics is None and Prior.is_possible(self.model)

    def resize(self) -> None:
        """Make arrays anew, and plan again."""
        self._prior = None if self._prior is None else self._prior.resized()
        self._plan = None
        self._prices.resize()
        self._new_arrays()
        self._paths.resize()
        if self._reach is not None:
            self._reach.resize()

    def remember(self) -> dict[str, Any]:
        """Return numbers of work and what was given up; paths and prices are planned anew."""
        return {
            "programs": self._prices.programs,
            "warned": self._prices.warned,
            "paths": self._paths.remember(),
            "reach": None if self._reach is None else self._reach.remember(),
            "prior": None if self._prior is None else self._prior.remember(),
        }

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on after the planner that remembered this."""
        self._prices.programs, self._prices.warned = memory["programs"], memory["warned"]
        self._paths.recall(memory["paths"])
        if self._reach is not None:
            self._reach.recall(memory["reach"])
        if self._prior is not None:
            self._prior.recall(memory["prior"])

    def place_walkers(self, states: Sequence[int]) -> None:
        """Take in where all walkers of a fleet are: the program of prices begins there."""
        self._prices.walkers = states

    def expected_steps(self) -> NDArray[np.float64] | None:
        """Return the expected steps from each state to the next needed sample [S], in the scaled sets, without prices.

        None where plans for all states take too long.
        """
        model, need = self.model, self.need
        if model.rows.num_states > FLUID_STATES:
            return None
        goals_now = (need.unmet_states, need.version, len(need.settled))
        if goals_now != self._distances_to or model.mark() > DISTANCES_AGAIN * self._distances_at:
            if self._distances is None:
                self._distances = Workspace(model, self.options.paths().family())
            self._distances_to, self._distances_at = goals_now, model.mark()
            goals = need.unmet_items > 0
            steps = self._distances.plan(goals, self._costs(), DISTANCE_PRECISION, -1)[1]
            self._steps = np.where(goals, 0.0, steps)  # the plan's are those of coming back to a goal
        return self._steps

    @property
    def serves_all(self) -> bool:
        """Whether there is a plan, and nothing is given up on the way."""
        return self._plan is not None and self._reach is None

    @property
    def may_give_up(self) -> bool:
        """True with `reach`, or if the paths' sets may have no path to a goal."""
        return self._reach is not None or self._paths.may_give_up

    @property
    def guarantee(self) -> Guarantee:
        """There is none, unless the dynamics are known."""
        known = self.options.dynamics is not None
        return Guarantee(known=True) if known else Guarantee.heuristic(f"scale {self.options.scale or NARROW[False]:g}")

    @property
    def work(self) -> dict[str, float]:
        """The work of planning the paths, and the number of programs solved."""
        paths = self._paths.work
        plans = paths["plans"] + (0 if self._prior is None else self._prior.plans)
        return {**paths, "plans": plans, "programs": self._prices.programs}

    @property
    def given_up(self) -> dict[int, str]:
        """States given up so far, and the test that decided it."""
        return self._paths.given_up

    def attempt(self, s: int, t: int) -> Attempt | GivenUp:
        """Sample here if a sample is needed here, otherwise walk to an under-sampled state."""
        if self._reach is not None:
            self._reach.examine(s, t, self._paths.new_rows())
            if self.need.met:
                return GivenUp(self.need.waived)
        if self._plan is not None and self._is_stale(self._plan):
            self._plan = None
        if (last := self._last_samples()) is not None:
            return self._walk(last, t)
        if self._can_sample(s):
            return self._walk(self._plan or self._sampling, t)
        row = -1 if self._plan is None else int(self._plan.policy[s])
        if row < 0 or not self.model.enabled[row]:  # or it was planned before it was known what s offers
            planned = self._new_plan(s, t)
            if isinstance(planned, GivenUp):
                return planned
            self._plan = Attempt(planned.policy, self._no_goals, planned.limit, planned.horizon, sample=True)
            self._made = (self.model.mark(), self.need.unmet_states, self.need.version)
        assert self._plan is not None
        return self._walk(self._plan, t)

    def _last_samples(self) -> Attempt | None:
        """Return the way to the next sample in the best order of the last ones; None: too much is missing for that."""
        if self._endgame is None or len(self._prices.walkers) > 1 or (found := self._endgame.policy()) is None:
            return None
        if self._reach is not None and self._endgame.farthest > self._reach.limit:
            return None
        policy, missing = found
        limit = np.full(len(self.model.rows), UNLIMITED)
        limit[missing] = self.model.visits[missing]
        return Attempt(policy, self._no_goals, limit, UNLIMITED)

    def _new_plan(self, s: int, t: int) -> Attempt | GivenUp:
        reach, expected = self._reach, self._expected_plan(s, t)
        planned, value = expected or self._optimistic_plan(s, t)
        if reach is None or isinstance(planned, GivenUp) or value <= reach.limit:
            return planned
        # unscaled sets are wider, so their distances are shorter: certify only if these paths are too long
        if expected is not None and self._optimistic_plan(s, t)[1] <= reach.limit:
            return planned
        return GivenUp(self.need.waived) if reach.all_beyond(s, t) else planned

    def _optimistic_plan(self, s: int, t: int) -> tuple[Attempt | GivenUp, float]:
        """Return (a plan in the scaled sets, its value)."""
        narrow = self._prices.used and (self.model.closed or not self._waited(t, SOON))
        if narrow != self._narrow:
            self._change_width()
        self._paths.prices = self._prices.at(s, t, self._paths.unseen)
        self._paths.restart()
        planned = self._paths.attempt(s, t)
        if isinstance(planned, Attempt):
            if narrow:
                self._predicted = max(self._predicted, self._paths.value)
            planned = self._along_the_flow(planned)
        return planned, self._paths.value

    def _along_the_flow(self, planned: Attempt) -> Attempt:
        """Return the plan with the rows that the program asks for, where they are nearly as good."""
        from gosprl import _kernels

        left, plan, model = self._prices.visits_left(), self._paths.space.solution, self.model
        if left is None or plan is None or self._paths.focus is not None:
            return planned
        limit = planned.limit.copy()
        _kernels.follow_flow(model.rows.ptr, plan.q, CLOSE, left, model.visits, SHARE, planned.policy, limit)
        return replace(planned, limit=limit)

    def _change_width(self) -> None:
        """Plan in narrower or wider sets from now on."""
        self._narrow, options = not self._narrow, self.options
        if options.dynamics is None and options.scale is None:
            memory = self._paths.remember()
            self._paths = GosprlPlanner(options.paths(self._narrow), self.model, self.need, self._paths.rng)
            self._paths.recall(memory)

    def _expected_plan(self, s: int, t: int) -> tuple[Attempt, float] | None:
        """Return (a plan with the learnt prior, its value); None if the prior does not lead, or has no path."""
        prior, need = self._prior, self.need
        if prior is None or need.missing == 0:
            return None
        prior.update(need)
        if not prior.leads() or self._waited(t, PATIENCE):
            return None
        optimism, prices = prior.optimism, None
        potential = self._prices.at(s, t, prior.unseen) if optimism > 0 else None
        if potential is not None:
            goals = need.unmet_items > 0
            goals[prior.spare(need)] |= prior.spare(need) >= 0
            prices = optimism * (potential - potential[goals].min())
        policy, value = prior.plan(s, need, self._costs(), prices, optimism)
        if policy[s] < 0:
            return None
        self._predicted = max(self._predicted, value)
        # looking for goals that nobody saw, every visit changes what is expected
        return Attempt(policy, self._no_goals, self._no_visits if prior.hidden else self._limits(), UNLIMITED), value

    def _waited(self, t: int, times: int) -> bool:
        """Whether the next needed sample takes so many times the steps predicted: then what predicted it is wrong."""
        if self.need.collected != self._collected:
            self._collected, self._since, self._predicted = self.need.collected, t, 0.0
        return t - self._since > times * (self._predicted + 1)

    def _limits(self) -> NDArray[np.int64]:
        """Return the visits [R] at which a plan made now is stale: one more than there are, or twice as many."""
        rows = self.model.changed(self._limited)
        self._limited, N = self.model.mark(), self.model.visits[rows]
        self._limit[rows] = N + np.maximum(N, 1)
        return self._limit

    def _costs(self) -> NDArray[np.float64]:
        """Return the cost of each row [R]; it changes only when a state is discovered."""
        if self._used != self.model.states.used:
            self._cost, self._used = self.model.costs(ending=1.0), self.model.states.used
        return self._cost

    @staticmethod
    def _walk(attempt: Attempt, t: int) -> Attempt:
        """Limit an attempt to a tenth of the steps so far, so that a changing requirement is evaluated in time."""
        return replace(attempt, horizon=max(10, t // 10))

    def _is_stale(self, plan: Attempt) -> bool:
        """Whether a state was met, the need changed, or a count exceeded its limit since the plan was made."""
        mark, unmet, version = self._made
        if (unmet, version) != (self.need.unmet_states, self.need.version):
            return True
        rows = self.model.changed(mark)
        return bool(np.any(self.model.visits[rows] > plan.limit[rows]))

    def _can_sample(self, s: int) -> bool:
        begin, end = int(self.model.rows.ptr[s]), int(self.model.rows.ptr[s + 1])
        return bool(self._under_sampled(begin, end, self.model.counts.visits, self.need.pair) >= 0)
