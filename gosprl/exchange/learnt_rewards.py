"""Rewards of a learnt model: steps, costs, and the means seen with their intervals."""

from typing import Any

import numpy as np

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.exchange.interval import Ends, Floats, same
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.intervals import Confidence, row_logarithms, unlimited
from gosprl.sets.unknown import unknown_of

SLACK = 1e-9  # by which sums of rewards may contradict their range, from rounding


def rewards_of(
    model: EmpiricalModel, family: Confidence, reward_range: tuple[float, float], more: int
) -> dict[str, Ends]:
    """Return the reward structures of a learnt model.

    Parameters
    ----------
    model
        The counts.
    family
        The confidence sets, whose level the intervals of rewards have.
    reward_range
        The range of the rewards.
    more
        Rows after those of the model, which earn and cost nothing.
    """

    def padded(values: Floats) -> Floats:
        return np.append(values, np.zeros(more))

    step = ~(model.certain | model.terminal[model.rows.state])
    rewards = {"steps": same(padded(step.astype(float)))}
    if model.resets == "anytime":
        rewards["cost"] = same(padded(model.costs()))
    if not np.any(model.reward_sq):
        return rewards
    mean = np.where(step, model.reward_sum / np.maximum(1, model.visits), 0.0)
    ends = _ends(model, family, reward_range)
    if ends is None:
        rewards["reward"] = same(padded(mean))
        return rewards
    low, high = (np.where(step, end, 0.0) for end in ends)
    seen = model.visits > 0  # where the mean may miss its interval by rounding
    low, high = np.where(seen, np.minimum(low, mean), low), np.where(seen, np.maximum(high, mean), high)
    rewards["reward"] = padded(low), padded(mean), padded(high)
    return rewards


def _ends(model: EmpiricalModel, family: Confidence, reward_range: tuple[float, float]) -> tuple[Floats, Floats] | None:
    """Return intervals for the mean rewards [R] at the level of the family; None without a level, or out of range."""
    from gosprl.sets.certificates import mean_intervals

    low, high = (_checks.number("reward_range", end) for end in reward_range)
    if not low < high:
        raise InputError(f"reward_range: expected (low, high) with low < high, got {reward_range!r:.80}")
    total, squares, visits = model.reward_sum, model.reward_sq, model.visits
    inside = (low + high) * total - squares - low * high * visits  # sum of (r - low) (high - r)
    if family.delta is None or np.any(inside < -SLACK * (1 + squares + visits)):
        return None
    width = high - low
    scaled = (total - low * visits) / width
    scaled_squares = (squares - 2 * low * total + low**2 * visits) / width**2
    streams: Any = np.exp(row_logarithms(model)) if unlimited(model) else model.num_pairs_bound or len(visits)
    ends = mean_intervals(
        *(visits, np.clip(scaled, 0, visits), np.maximum(scaled_squares, 0), family.delta, family.scale, streams),
        unknown_of(model, None),
    )
    return low + width * ends[0], low + width * ends[1]
