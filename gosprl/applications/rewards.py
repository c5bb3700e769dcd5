"""Active exploration (appendix "Reward estimation"): the mean reward of every pair to within epsilon.

More samples of a pair are asked for exactly while its interval (`gosprl.sets.certificates.mean_intervals`) is too wide.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gosprl import _checks
from gosprl.applications.common import Answer, Floats, Ints, Rule, Walk, dense
from gosprl.applications.modest import more_samples
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.certificates import mean_intervals
from gosprl.sets.intervals import Confidence


class Certified(Rule):
    """More samples of a row exactly while its mean reward may be off by more than epsilon."""

    def __init__(self, model: EmpiricalModel, all_states: bool, epsilon: float, delta: float, scale: float) -> None:
        super().__init__(model, all_states)
        self.epsilon, self.delta, self.scale = epsilon, delta, scale

    def demand(self, model: EmpiricalModel, rows: Ints) -> Ints:
        return more_samples(model.visits[rows], self.errors(model, rows)[1] / self.epsilon)

    def errors(self, model: EmpiricalModel, rows: Ints) -> tuple[Floats, Floats]:
        """(mean reward [n], how far it may be off [n]) of `rows`; 1/2 and 1/2 where nothing was seen."""
        visits, total, squares = model.visits[rows], model.reward_sum[rows], model.reward_sq[rows]
        lower, upper = mean_intervals(visits, total, squares, self.delta, self.scale, len(model.rows))
        mean = np.where(visits > 0, total / np.maximum(visits, 1), 0.5)
        return mean, np.maximum(upper - mean, mean - lower)


@dataclass(frozen=True, eq=False, repr=False)
class RewardEstimate(Answer):
    """Mean rewards and how far they may be off."""

    rewards: Floats  # [S, A] nan where there is no such pair
    radius: Floats  # [S, A]
    epsilon: float

    def lines(self) -> list[tuple[str, str]]:
        known = self.radius[~np.isnan(self.radius)]
        if not known.size:
            return [("radius", "nothing was visited")]
        best = np.unravel_index(np.nanargmax(self.rewards), self.rewards.shape)
        return [
            ("largest", f"{self.rewards[best]:.4g} at state {best[0]}, action {best[1]}"),
            ("radius", f"{known.max():.4g} at worst, {np.mean(known <= self.epsilon):.0%} within {self.epsilon:g}"),
        ]


def estimate_rewards(
    system: Any,
    epsilon: float,
    *,
    delta: float = 0.1,
    confidence: str | Confidence = "kl",
    seed: int | None = None,
    max_steps: int | None = None,
    progress: Any = None,
    **options: Any,
) -> RewardEstimate:
    """Estimate the mean reward of every pair to within `epsilon`, with probability at least 1 - delta.

    Rewards must be in [0, 1]. `confidence` are the sets by which the collector walks; other options are its as well.
    """
    walk = Walk(delta, confidence, seed, max_steps, progress, options)
    epsilon, scale = _checks.positive("epsilon", epsilon), walk.scale
    rule, result = walk.run(
        system, lambda model, all_states: Certified(model, all_states, epsilon, delta, scale), rewards=True
    )
    mean, radius = rule.errors(result.model, np.arange(len(result.model.rows)))
    unknown = ~rule.counting
    mean[unknown] = radius[unknown] = np.nan
    return RewardEstimate(
        rewards=dense(result.model, mean),
        radius=dense(result.model, radius),
        epsilon=epsilon,
        collected=result,
        guarantee=walk.at(delta).about("every mean reward is within its radius"),
    )
