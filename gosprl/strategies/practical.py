"""The practical plan: near the fluid limit, without a promise (`gosprl.strategies.guarded` gives it one).

Walk by shortest paths to under-sampled states in sets a few hundredths as wide as those that hold, sample whatever is
needed wherever the walk comes, and choose among goals by what the fluid program says they are worth.

1. In an under-sampled state, sample: of the actions still needed the one with the fewest visits, so that all are known
   early. By the program's duals (`gosprl.planning.fluid`) any needed sample is as good as any other, to first order: it
   has to be taken some time. What can be lost is lost on steps that nobody asked for.
2. In a state that has all it needs, walk to one that does not. Nearest first, as in Algorithm 1, uses up what is near
   and leaves what is far for the end. The program's potential v says by how much being in a state is worth more than
   being in another, given all that is still to be collected; so ending at a goal g costs v(g) - min v, on top of the
   steps there. Where the program circulates far from the walk, the potential is flat, and the way is the shortest.
3. Plan anew when a state got all it needs, when a count has doubled, or where the last plan did not look.

The program is solved for the counts as they are, with what each row's set leaves to unseen successors going where the
program likes, and again after some of the steps that it foresees. Up to FLUID_STATES states; beyond, by shortest
paths alone, planned where the walk is (`gosprl.planning.focus`).
"""

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.record import UNLIMITED
from gosprl.errors import GosprlError, InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.fluid import Flow, solve_model
from gosprl.sets.intervals import Intervals
from gosprl.sets.kl import KL
from gosprl.strategies.base import Attempt, GivenUp
from gosprl.strategies.gosprl import Gosprl

if TYPE_CHECKING:
    from gosprl._kernels import Ledger

FLUID_STATES = 500
AGAIN, OFTEN, STEPS = 0.2, 0.03, 150  # when the program is solved again: see `_price`
PSEUDO = 0.1  # samples of every candidate that a row is taken to have, where successors are known


class Sliver(KL):
    """Narrow sets for planning; where every sample brings another successor, more of them are expected.

    Of the next sample's chance to bring a new one, the number of successors seen once over the visits is the usual
    estimate (Good and Turing). Two of them less are taken here, so that rare events of few kinds do not count; and that
    mass is spread over all states, not given to the best.
    """

    def intervals(self, model: EmpiricalModel, rows: NDArray[np.int64] | None = None) -> Intervals:
        sets = super().intervals(model, rows)
        if model.closed:
            return sets
        ptr, _, count, _ = model.stored(rows)
        visits = model.visits if rows is None else model.visits[rows]
        number = np.diff(ptr)
        row = np.repeat(np.arange(len(number)), number)
        new = np.maximum(np.bincount(row[count == 1], minlength=len(number)) - 2, 0) / np.maximum(visits, 1)
        lower = sets.lower * np.repeat(1 - new, number)
        each = np.maximum(sets.each, new / np.maximum(model.num_states - number, 1))
        return Intervals(ptr, sets.succ, lower, sets.upper, each, np.maximum(sets.total, new))


@dataclass
class Practical:
    """Walk and sample by a nearly greedy plan; no guarantee.

    delta, scale
        Level and width multiplier of the `kl` sets.
    successors
        Which next states are possible at all, as in `EmpiricalModel.restrict`.
    fluid
        Whether to price goals by the fluid program; by default up to 500 states.
    """

    delta: float = 0.1
    scale: float = 0.01
    successors: Any = field(default=None, repr=False)
    fluid: bool | None = None

    programs: int = field(init=False, repr=False, default=0)  # solved so far
    _paths: Gosprl = field(init=False, repr=False)
    _need: "Ledger | None" = field(init=False, repr=False, default=None)  # of the run that it is in
    _plan: Attempt | None = field(init=False, repr=False, default=None)
    _made: tuple[int, int, int] = field(init=False, repr=False, default=(0, 0, 0))  # when it was: see `_is_stale`
    _sampling: Attempt = field(init=False, repr=False)  # without a plan: hand back in states that have all they need
    _no_goals: NDArray[np.bool_] = field(init=False, repr=False)
    _priced: tuple[float, float] = field(init=False, repr=False, default=(-np.inf, np.inf))  # see `_price`
    _basis: Any = field(init=False, repr=False, default=None)
    _failed: bool = field(init=False, repr=False, default=False)

    def __post_init__(self) -> None:
        self._paths = Gosprl(
            confidence=Sliver(self.delta, self.scale), successors=self.successors, duplicate_start=False
        )
        if self.fluid not in (None, True, False):
            raise InputError(f"fluid: expected True, False or None (up to {FLUID_STATES} states), got {self.fluid!r}")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_basis": None}  # the solver's own, which cannot be pickled

    @property
    def guarantee(self) -> str:
        return f"heuristic: scale {self.scale:g}"

    @property
    def work(self) -> dict[str, int]:
        return {**self._paths.work, "programs": self.programs}

    @property
    def lost(self) -> dict[int, str]:
        return self._paths.lost

    def restart(self) -> None:
        """A plan is for wherever the walk is."""

    def attempt(
        self, model: EmpiricalModel, need: "Ledger", s: int, t: int, rng: np.random.Generator
    ) -> Attempt | GivenUp:
        if self._need is not need:  # another run, maybe on the same model
            self._begin(model, need)
        if self._plan is not None and self._is_stale(model, need, self._plan):
            self._plan = None
        if self._can_sample(model, need, s):
            return self._walk(self._plan or self._sampling, t)
        if self._plan is None or self._plan.policy[s] < 0:
            self._price(model, need, s, t)
            self._paths.restart()
            planned = self._paths.attempt(model, need, s, t, rng)
            if isinstance(planned, GivenUp):
                return planned
            self._plan = Attempt(planned.policy, self._no_goals, planned.limit, planned.horizon, sample=True)
            self._made = (model.mark(), int(need.scalars[0]), int(need.scalars[3]))
        return self._walk(self._plan, t)

    @staticmethod
    def _walk(attempt: Attempt, t: int) -> Attempt:
        """For a tenth of the steps made so far, so that a need that changes is asked in time."""
        return replace(attempt, horizon=max(10, t // 10))

    def _begin(self, model: EmpiricalModel, need: "Ledger") -> None:
        if self.successors is not None:
            model.restrict(self.successors)
        S, R = model.num_states, len(model.rows)
        self._need, self._plan, self._basis, self._failed = need, None, None, False
        self._no_goals, self._priced = np.zeros(S, dtype=bool), (-np.inf, np.inf)
        self._paths.prices, self.programs = None, 0
        self._sampling = Attempt(np.full(S, -1), self._no_goals, np.full(R, UNLIMITED), UNLIMITED, sample=True)

    def _is_stale(self, model: EmpiricalModel, need: "Ledger", plan: Attempt) -> bool:
        """Whether a state was met, the need changed, or a count exceeded its limit since the plan was made."""
        mark, unmet, version = self._made
        if (unmet, version) != (int(need.scalars[0]), int(need.scalars[3])):
            return True
        rows = model.changed(mark)
        return bool(np.any(model.visits[rows] > plan.limit[rows]))

    @staticmethod
    def _can_sample(model: EmpiricalModel, need: "Ledger", s: int) -> bool:
        from gosprl import _kernels

        return bool(_kernels.fewest_visits(model.rows.ptr, model._counts.visits, need.pair, s) >= 0)

    def _price(self, model: EmpiricalModel, need: "Ledger", s: int, t: int) -> None:
        """Solve the program again, if its time has come or more is missing than it knew of.

        That is after a fifth of the steps that it foresees, or 150 if that is less, or at least three in a hundred.
        """
        again, missing = self._priced
        use = model.num_states <= FLUID_STATES if self.fluid is None else self.fluid
        if not use or (t < again and need.scalars[1] <= missing):
            return
        try:
            flow = self._solve(model, need, s)
        except GosprlError as error:
            if not self._failed:
                warnings.warn(f"goals are taken nearest first for now: {error}", stacklevel=2)
            self._failed, self._basis, self._paths.prices = True, None, None
            self._priced = (t + AGAIN * float(need.scalars[1]), np.inf)
            return
        self.programs += 1
        self._paths.prices, self._basis = flow.potential, flow.basis
        wait = max(OFTEN * flow.value, min(AGAIN * flow.value, STEPS))
        self._priced = (t + wait, (1 + AGAIN) * float(need.scalars[1]))

    def _solve(self, model: EmpiricalModel, need: "Ledger", s: int) -> Flow:
        pair = np.where(model.enabled, np.maximum(need.pair - model.visits, 0), 0)
        state = np.maximum(need.state - need.visits, 0)
        if model.closed:
            return solve_model(model, pair, state, s, None, PSEUDO, self._basis)
        escape = np.where(model.enabled, self._paths.unseen(model), 0.0)
        return solve_model(model, pair, state, s, escape, basis=self._basis)
