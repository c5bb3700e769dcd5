"""The base of the rivals: episodes of an average-reward policy, optimistic in the same confidence sets as GOSPRL.

An episode, as in UCRL2B: set rewards from the current counts and need, plan for the largest optimistic gain to a
precision of 1 / t of the rewards' range, and follow the policy until the visits of some pair in the episode reach
max(1, N), with N its visits before. (UCRL2 uses 1 / sqrt(t), `precision_power` 0.5. When few pairs are still needed,
the gains themselves are as small as that, so the rivals get more precise plans.) A rival defines only the rewards, and
may end episodes sooner.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.collecting.need import Need
from gosprl.guarantee import Guarantee
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.average import AveragePlanner
from gosprl.sets import Confidence, as_family
from gosprl.strategies.base import UNLIMITED, Attempt, Planner, Strategy


@dataclass(frozen=True)
class Optimistic(Strategy):
    """Episodes of the policy with the largest optimistic gain.

    Parameters
    ----------
    delta, confidence, scale
        Level, family (`"kl"`, `"bernstein"` or a `Confidence`) and width multiplier of the confidence sets.
    linear_scale
        Of `"bernstein"`: multiplier of the term that decreases as 1 / N; None: `scale`, for the whole radius.
    precision_power
        Plans are precise to t^-precision_power of the rewards' range: 1 by default, 0.5 in UCRL2.
    """

    delta: float = 0.1
    confidence: str | Confidence = "kl"
    scale: float = 1.0
    linear_scale: float | None = field(default=None, kw_only=True)
    precision_power: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        _checks.open_unit("delta", self.delta)
        _checks.positive("scale", self.scale)
        _checks.positive("precision_power", self.precision_power)
        self.family()

    def family(self) -> Confidence:
        """Return the confidence sets that episodes plan with."""
        return as_family(self.confidence, self.delta, self.scale, self.linear_scale)

    @abstractmethod
    def reward(self, model: EmpiricalModel, need: Need, t: int) -> NDArray[np.float64]:
        """Return the rewards [R] of an episode that starts at time t."""

    def limit(self, model: EmpiricalModel, need: Need, t: int) -> NDArray[np.int64]:
        """Return the visits [R] beyond which an episode that starts at time t ends."""
        N = model.visits
        return np.asarray(N + np.maximum(N, 1) - 1)

    def horizon(self, t: int) -> int:
        """Return the largest number of steps of an episode that starts at time t."""
        return UNLIMITED

    def begin(self, model: EmpiricalModel, need: Need, rng: np.random.Generator) -> "OptimisticPlanner":
        """Make the planner of a run."""
        return OptimisticPlanner(self, model, need, rng)


class OptimisticPlanner(Planner):
    """A rival in one run."""

    may_give_up = False

    def __init__(self, options: Optimistic, model: EmpiricalModel, need: Need, rng: np.random.Generator) -> None:
        self.options, self.model, self.need, self.rng = options, model, need, rng
        self.planner = AveragePlanner(model, options.family())

    def resize(self) -> None:
        """Make the sets anew."""
        plans, sweeps = self.planner.plans, self.planner.sweeps
        self.planner = AveragePlanner(self.model, self.planner.work.family)
        self.planner.plans, self.planner.sweeps = plans, sweeps

    @property
    def guarantee(self) -> Guarantee:
        """There is none."""
        return Guarantee.none(f"the heuristic {type(self.options).__name__}")

    @property
    def work(self) -> dict[str, float]:
        """Numbers of plans, all of them for all states, and of sweeps."""
        return {"plans": self.planner.plans, "full": self.planner.plans, "sweeps": self.planner.sweeps}

    def remember(self) -> dict[str, Any]:
        """Return the numbers of plans and of sweeps."""
        return {"plans": self.planner.plans, "sweeps": self.planner.sweeps}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on counting."""
        self.planner.plans, self.planner.sweeps = memory["plans"], memory["sweeps"]

    def attempt(self, s: int, t: int) -> Attempt:
        """Plan an episode."""
        options, model, need = self.options, self.model, self.need
        t = 1 + int(model.visits.sum())  # includes earlier data and resets, so that frequencies sum to one
        reward = options.reward(model, need, t)
        spread = float(np.ptp(reward[model.enabled]))
        precision = (spread or 1.0) / t**options.precision_power  # if all rewards are the same, so are all gains
        plan = self.planner.plan(reward, precision, int(self.rng.random() * 2**32))
        no_goals = np.zeros(model.rows.num_states, dtype=bool)
        return Attempt(plan.rows, no_goals, options.limit(model, need, t), options.horizon(t))


def gaps(model: EmpiricalModel, need: Need) -> NDArray[np.int64]:
    """Return the missing samples of each row [R]; negative if there are more than needed.

    This is b(s, a) - N(s, a) if only the pair has a need, b(s) - N(s) if only the state has one, the larger of both if
    both have, and -N(s, a) if none has.
    """
    state_of = model.rows.state
    pair, state = need.pair - model.visits, (need.state - need.state_visits)[state_of]
    of_state = (need.state[state_of] > 0) & ~model.certain  # a reset is no sample
    return np.asarray(np.where(of_state, np.where(need.pair > 0, np.maximum(pair, state), state), pair))
