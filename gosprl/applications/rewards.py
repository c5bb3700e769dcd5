"""Active exploration (appendix "Reward estimation"): the mean reward of every pair to within epsilon.

A pair is sampled until its confidence interval (`gosprl.sets.certificates.mean_intervals`) is narrow enough.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gosprl import _checks
from gosprl.applications.common import Answer, Floats, Ints, Rule, Walk, dense, kept_on_disk, listed, streams_of
from gosprl.applications.modest import more_samples
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.certificates import mean_intervals
from gosprl.sets.intervals import Confidence
from gosprl.sets.unknown import unknown_of


class CertifiedRewards(Rule):
    """Samples of a row until the error of its mean reward cannot exceed epsilon."""

    def __init__(self, model: EmpiricalModel, all_states: bool, epsilon: float, delta: float, scale: float) -> None:
        super().__init__(model, all_states)
        self.epsilon, self.delta, self.scale = epsilon, delta, scale

    def demand(self, model: EmpiricalModel, rows: Ints) -> Ints:
        """Return the samples needed in total of each of `rows`."""
        return more_samples(model.visits[rows], self.errors(model, rows)[1] / self.epsilon)

    def errors(self, model: EmpiricalModel, rows: Ints) -> tuple[Floats, Floats]:
        """Return the mean reward [n] of `rows` and its largest possible error [n]; both 1/2 if never visited."""
        visits, total, squares = model.visits[rows], model.reward_sum[rows], model.reward_sq[rows]
        streams, unknown = streams_of(model, rows), unknown_of(model, rows)
        lower, upper = mean_intervals(visits, total, squares, self.delta, self.scale, streams, unknown)
        mean = np.where(visits > 0, total / np.maximum(visits, 1), 0.5)
        return mean, np.maximum(upper - mean, mean - lower)


@dataclass(frozen=True, eq=False, repr=False)
class RewardEstimate(Answer):
    """Mean rewards, with bounds on their errors.

    Attributes
    ----------
    rewards
        [S, A] mean rewards of the samples; nan where the pair does not exist or its state was not discovered.
    radius
        [S, A] the true mean is at most this far from `rewards`; nan as there.
    epsilon
        As given.
    """

    rewards: Floats
    radius: Floats
    epsilon: float

    def lines(self) -> list[tuple[str, str]]:
        """Return the largest reward and the largest error, as (name, value)."""
        known = self.radius[~np.isnan(self.radius)]
        if not known.size:
            return [("radius", "nothing was visited")]
        s, a = np.unravel_index(np.nanargmax(self.rewards), self.rewards.shape)
        where = f"{listed(np.array([s]), self.collected.model)}, action {a}"
        return [
            ("largest", f"{self.rewards[s, a]:.4g} at {where}"),
            ("radius", f"{known.max():.4g} at worst, {np.mean(known <= self.epsilon):.0%} within {self.epsilon:g}"),
        ]


@kept_on_disk
def estimate_rewards(
    system: Any,
    epsilon: float,
    *,
    delta: float = 0.1,
    confidence: str | Confidence = "kl",
    seed: int | None = None,
    max_steps: int | None = None,
    progress: bool | Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> RewardEstimate:
    """Estimate the mean reward of every pair to within `epsilon`, with probability at least 1 - delta.

    Parameters
    ----------
    system
        A communicating `TabularMDP`, a Gymnasium environment or a `gosprl.systems.System`.
        Rewards must be in [0, 1].
    epsilon
        The largest error allowed.
    delta
        Level of the answer.
    confidence
        Family (`"kl"`, `"bernstein"` or a `Confidence`) of the confidence sets that the strategy plans with.
    seed
        Seed of all random numbers.
    max_steps
        Stop after this many steps; the answer says what is proved by then.
    progress
        True for a line on stderr, or a callable that takes a dict, as in `gosprl.collect`.
    **options
        Further arguments of `gosprl.collect`: `strategy` and its options; `key`, `actions`, `resets`, `reset_cost`,
        `horizon`, `max_states`, `unseen` and `out`.

    Returns
    -------
    A `RewardEstimate`. Its guarantee: at level delta, every mean reward is within its radius; if states are discovered
    on the way, of the states discovered.

    Raises
    ------
    InputError
        An argument is wrong; no step was made.
    CollectionError
        The system or the strategy failed, or a reward was not in [0, 1]; `error.result` has everything collected.

    Examples
    --------
    >>> import gosprl
    >>> answer = gosprl.applications.estimate_rewards(gosprl.envs.make("riverswim6"), 0.3, seed=0)
    >>> answer.rewards[5].tolist(), bool(answer.radius.max() <= 0.3)
    ([0.0, 1.0], True)
    """
    walk = Walk(delta, confidence, seed, max_steps, progress, options)
    epsilon, scale = _checks.positive("epsilon", epsilon), walk.scale
    run = walk.run(
        system, lambda model, all_states: CertifiedRewards(model, all_states, epsilon, delta, scale), rewards=True
    )
    mean, radius = run.rule.errors(run.model, np.arange(len(run.model.rows)))
    unknown = ~run.rule.counting
    mean[unknown] = radius[unknown] = np.nan
    return RewardEstimate(
        rewards=dense(run.model, mean),
        radius=dense(run.model, radius),
        epsilon=epsilon,
        collected=run.result,
        guarantee=run.qualified(walk.at(delta).about("every mean reward is within its radius")),
    )
