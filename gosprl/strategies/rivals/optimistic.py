"""What the rivals share: episodes of an average-reward policy, optimistic in the same confidence sets as GOSPRL.

An episode, as in UCRL2B: set rewards from the counts and the need as they are, plan for the largest optimistic gain to
a precision of 1 / t of the rewards' range, and follow the policy until some pair's visits in the episode reach
max(1, N), N those before it. (UCRL2 asks for 1 / sqrt(t); with few needed pairs left the gains themselves are as small
as that, so the rivals are given the better plans.) A rival says only what is rewarded, and may end episodes sooner.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.collecting.record import UNLIMITED
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.average import AveragePlanner
from gosprl.sets.families import as_family
from gosprl.sets.intervals import Confidence
from gosprl.strategies.base import Attempt

if TYPE_CHECKING:
    from gosprl._kernels import Ledger


@dataclass
class Optimistic(ABC):
    """Episodes of the policy with the largest optimistic gain.

    delta, confidence, scale
        Level, family (`"kl"`, `"bernstein"` or an object) and width multiplier of the confidence sets.
    """

    delta: float = 0.1
    confidence: str | Confidence | None = None
    scale: float = 1.0

    _family: Confidence = field(init=False, repr=False)
    _planner: AveragePlanner | None = field(init=False, repr=False, default=None)
    _need: "Ledger | None" = field(init=False, repr=False, default=None)  # of the run that it is in

    def __post_init__(self) -> None:
        _checks.open_unit("delta", self.delta)
        _checks.positive("scale", self.scale)
        self._family = as_family(self.confidence, self.delta, self.scale)

    @property
    def guarantee(self) -> str:
        return f"none: the heuristic {type(self).__name__}"

    @property
    def work(self) -> dict[str, int]:
        """What planning took: plans, all of them for all states, and sweeps."""
        if self._planner is None:
            return {"plans": 0, "full": 0, "sweeps": 0}
        return {"plans": self._planner.plans, "full": self._planner.plans, "sweeps": self._planner.sweeps}

    @abstractmethod
    def reward(self, model: EmpiricalModel, need: "Ledger", t: int) -> NDArray[np.float64]:
        """[R] what to maximise the average of, at time t."""

    def limit(self, model: EmpiricalModel, need: "Ledger", t: int) -> NDArray[np.int64]:
        """[R] visits beyond which an episode begun at time t ends."""
        N = model.visits
        return np.asarray(N + np.maximum(N, 1) - 1)

    def horizon(self, t: int) -> int:
        """Steps after which it ends."""
        return UNLIMITED

    def attempt(self, model: EmpiricalModel, need: "Ledger", s: int, t: int, rng: np.random.Generator) -> Attempt:
        if self._planner is None or self._need is not need:  # another run, maybe on the same model
            self._planner, self._need = AveragePlanner(model, self._family), need
        t = 1 + int(model.visits.sum())  # with what was there before, and resets: frequencies add up to one
        reward = self.reward(model, need, t)
        spread = float(np.ptp(reward[model.enabled]))
        precision = (spread or 1.0) / t  # if all rewards are the same, so are all gains
        plan = self._planner.plan(reward, precision, int(rng.random() * 2**32))
        no_goals = np.zeros(model.num_states, dtype=bool)
        return Attempt(plan.rows, no_goals, self.limit(model, need, t), self.horizon(t))


def gaps(model: EmpiricalModel, need: "Ledger") -> NDArray[np.int64]:
    """[R] samples that a row can still bring, negative where there are more than needed.

    The gap b(s, a) - N(s, a) of the pair or, where only the state has a need, b(s) - N(s); the larger one of both, and
    with no need at all -N(s, a).
    """
    pair, state = need.pair - model.visits, (need.state - need.visits)[need.row_state]
    of_state = need.state[need.row_state] > 0
    return np.asarray(np.where(of_state, np.where(need.pair > 0, np.maximum(pair, state), state), pair))
