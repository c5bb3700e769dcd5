"""How many steps are left, as an interval.

What is left is measured twice: now, and when about half of the steps so far were made. The measure W is the number of
missing samples; where the system is well known, and the strategy walks close to the fluid limit, it is the fluid limit
of the missing samples in the learnt model (`gosprl.theory.limits.limit_of_model`). The forecast is F = W(now) x the
steps that a unit of W took since then.

F is wrong by a factor that depends on how well the system is known: by the visits a pair so far. `FACTORS` has
quantiles of the true number over F, from runs on calibration systems: in the middle the median of all; outside, the
10 % and 90 % quantiles of the system where they are farthest out (`python -m evidence.forecast --calibrate --runs 30`).
So on each of these systems the interval contains the truth at `LEVEL` at least. `python -m evidence.forecast` measures
how often it does on systems and seeds that were not used for that. It speaks of the states known now: what is
discovered later, and a need that is computed during the run, are not foreseen.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import GosprlError
from gosprl.model.empirical import EmpiricalModel
from gosprl.theory.limits import limit_of_model

LEVEL = 0.8
MOST_ROWS = 2000  # of a model whose fluid limit is computed
VISITS = (0.5, 1.0, 2.0, 4.0, 8.0)  # a pair: where the classes of `FACTORS` end; the last one is "well known"
WORST = 50.0  # steps a unit of W, at most
NEAR_LIMIT = ("guarded", "practical")  # strategies whose steps are close to the fluid limit
Quantiles = tuple[float, float, float]
FACTORS: dict[str, tuple[Quantiles, ...]] = {  # for each class of visits
    "near": (
        *((0.0796, 1.97, 4.61), (0.0821, 1.95, 6.02), (0.265, 1.76, 9.21)),
        *((0.412, 2.01, 8.0), (0.524, 1.58, 14.1), (0.904, 1.84, 5.09)),
    ),
    "far": (
        *((0.151, 2.09, 6.89), (0.314, 2.63, 11.7), (0.264, 2.41, 10.8)),
        *((0.27, 2.1, 14.1), (0.282, 2.65, 12.2), (0.172, 4.16, 644.0)),
    ),
}
FLUID: Quantiles = (0.592, 1.03, 2.21)  # where the measure is the fluid limit


@dataclass(frozen=True, eq=False)
class Left:
    """What is missing at some time."""

    step: int
    pair: NDArray[np.int64]  # [R] samples of each row
    state: NDArray[np.int64]  # [S] samples of each state, with any action
    at: int  # the state of the walker
    collected: int  # needed samples so far

    @property
    def missing(self) -> int:
        """Samples, in all."""
        return int(self.pair.sum() + self.state.sum())


@dataclass(frozen=True)
class Forecast:
    """Steps that are left: most likely about `steps`, with probability `LEVEL` from `low` to `high`."""

    low: float
    steps: float
    high: float


def forecast(model: EmpiricalModel, now: Left, then: Left, strategy: str) -> Forecast | None:
    """Return the steps that are left; None if nothing was collected since `then`, or nothing can be foreseen.

    Parameters
    ----------
    model
        What was learnt.
    now, then
        What is missing now, and was missing when about half of the steps were made.
    strategy
        The name of the strategy.
    """
    if now.missing == 0:
        return Forecast(0.0, 0.0, 0.0)
    near = strategy in NEAR_LIMIT
    fluid = near and visits_class(model) == len(VISITS) and len(model.rows) <= MOST_ROWS
    F, factors = math.nan, FLUID
    if fluid:
        F = by_limit(model, now, then)
    if not 0 < F < math.inf:
        F, factors = by_count(now, then), FACTORS["near" if near else "far"][visits_class(model)]
    if not 0 < F < math.inf:
        return None
    low, middle, high = (max(1.0, F * factor) for factor in factors)
    return Forecast(low, middle, high)


def by_count(now: Left, then: Left) -> float:
    """Return F where the measure is the number of missing samples; nan if no step was made."""
    return now.missing * _steps_a_unit(now, then, now.collected - then.collected)


def by_limit(model: EmpiricalModel, now: Left, then: Left) -> float:
    """Return F where the measure is the fluid limit; inf or nan if there is none, or states were discovered since."""
    if len(then.pair) != len(now.pair):
        return math.inf
    left, before = (_limit(model, one) for one in (now, then))
    return left * _steps_a_unit(now, then, before - left) if left < math.inf and before < math.inf else math.inf


def visits_class(model: EmpiricalModel) -> int:
    """Return the class of visits a pair."""
    return int(np.searchsorted(VISITS, float(model.visits[model.enabled & ~model.certain].mean()), side="right"))


def _steps_a_unit(now: Left, then: Left, done: float) -> float:
    if now.step <= then.step:
        return math.nan
    return WORST if done <= 0 else min(WORST, max(1.0, (now.step - then.step) / done))


def _limit(model: EmpiricalModel, left: Left) -> float:
    try:
        return limit_of_model(model, left.pair, left.state, left.at)
    except GosprlError:
        return math.inf
