"""Zero-RMax: R-max without rewards (Brafman and Tennenholtz 2002; Jin et al. 2020; discussed in the appendix).

A state is known when its need is met. A known state has reward 0; an unknown state has reward 1 and ends the search. So
the values are E[gamma^tau] in the empirical model, with tau the steps to an unknown state. In an unknown state, the
needed action with the fewest visits is taken. A plan is kept until a state becomes known, or a count has doubled.

This is an adaptation: R-max's number m of visits is the need, there are no episodes of fixed length, and estimates use
all visits, not the first m. gamma is the user's guess of the distances; the method does not know D. An untried pair of
a known state (one that needs nothing) may lead anywhere. With small needs the empirical model is often wrong, and may
have no path to an unknown state, so that R-max alone would make no progress. Then m was too small. For this attempt,
states with an action tried less than 1, 3, 7, ... times are unknown as well: the first number that gives a path.

Discounting is planned as a shortest path: every step ends in an unknown state with probability 1 - gamma. The sets
below contain exactly this; nature is optimistic and gives the free mass to a goal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.collecting.need import Need
from gosprl.guarantee import Guarantee
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.exact import first_least
from gosprl.planning.workspace import Workspace
from gosprl.sets.intervals import Confidence, Intervals
from gosprl.strategies.base import UNLIMITED, Attempt, Planner, Strategy

PRECISION = 1e-6  # of plans, in steps
WITHIN_REACH = 1e-5  # least E[gamma^tau] for which there counts as a path; PRECISION allows an error of a tenth of it


@dataclass(frozen=True)
class Discounted(Confidence):
    """Sets with gamma p_hat and the rest of the mass anywhere; all distributions for a pair never visited."""

    gamma: float

    def intervals(self, model: EmpiricalModel, rows: NDArray[np.int64] | None = None) -> Intervals:
        """Return the sets of `rows` [n] in this order; None: of all R rows."""
        ptr, succ, count, _ = model.stored(rows)
        visits = model.visits if rows is None else model.visits[rows]
        lower = self.gamma * count / np.repeat(np.maximum(1, visits), np.diff(ptr))
        free = np.where(visits > 0, 1 - self.gamma, 1.0)
        return Intervals(ptr, succ, lower, np.minimum(lower + np.repeat(free, np.diff(ptr)), 1), free, free)


@dataclass(frozen=True)
class ZeroRMax(Strategy):
    """Walk to unknown states, by discounted plans in the empirical model.

    Parameters
    ----------
    gamma
        The discount, in (0, 1): unknown states much more than 1 / (1 - gamma) steps away have almost no weight.
    """

    gamma: float = 0.99

    def __post_init__(self) -> None:
        _checks.open_unit("gamma", self.gamma)

    def begin(self, model: EmpiricalModel, need: Need, rng: np.random.Generator) -> "ZeroRMaxPlanner":
        """Make the planner of a run."""
        return ZeroRMaxPlanner(self, model, need, rng)


class ZeroRMaxPlanner(Planner):
    """Zero-RMax in one run."""

    may_give_up = False

    def __init__(self, options: ZeroRMax, model: EmpiricalModel, need: Need, rng: np.random.Generator) -> None:
        self.gamma, self.model, self.need, self.rng = options.gamma, model, need, rng
        self.space = Workspace(model, Discounted(options.gamma))

    def resize(self) -> None:
        """Make the sets anew."""
        plans = self.space.plans
        self.space = Workspace(self.model, self.space.family)
        self.space.plans = plans

    @property
    def guarantee(self) -> Guarantee:
        """There is none."""
        return Guarantee.none("a reward-free adaptation of R-max")

    @property
    def work(self) -> dict[str, float]:
        """Number of plans, all of them for all states."""
        return {"plans": self.space.plans, "full": self.space.plans}

    def remember(self) -> dict[str, Any]:
        """Return the number of plans."""
        return {"plans": self.space.plans}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on counting."""
        self.space.plans = memory["plans"]

    def attempt(self, s: int, t: int) -> Attempt:
        """Walk to an unknown state."""
        model, key, visits = self.model, int(self.rng.random() * 2**32), self.model.visits
        fewest = first_least(np.where(model.enabled, visits, np.inf), model.rows.ptr)
        m, near = 0, False
        while not near:
            tried_less = visits[fewest] < m
            unknown = (self.need.unmet_items > 0) | tried_less
            policy, steps = self.space.plan(unknown, np.ones(len(visits)), PRECISION, key)
            near, m = bool(unknown[s] or (1 - self.gamma) * steps[s] < 1 - WITHIN_REACH), 2 * m + 1
        limit = visits + np.maximum(visits, 1) - 1
        limit[fewest[tried_less]] = visits[fewest[tried_less]]
        policy = np.where(tried_less, fewest, policy)
        return Attempt(policy, np.zeros(model.rows.num_states, dtype=bool), limit, UNLIMITED, sample=True)
