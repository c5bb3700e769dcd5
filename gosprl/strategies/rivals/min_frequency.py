"""MinFrequency: maximise the least frequency F(lambda) = min lambda(s, a) ("Leveraging MaxEnt" in the appendix).

F is concave but not smooth, so the paper refers to mirror descent (Cheung 2019, section 5) instead of Frank-Wolfe:
F(lambda) = min over theta in the simplex of <theta, lambda>, and theta is updated by exponential weights, so that the
pairs with the most visits have the least weight:

    theta(s, a) ~ exp(-eta N(s, a)).

Each episode follows the policy with the largest optimistic average of theta, until a count doubles or a component of
log theta has changed by more than Q.

Choices that the paper does not make. Needs: F is the least lambda / b, so that a pair with twice the need is visited
twice as often; N above is measured in units of the pair's need over the mean need, and pairs that need nothing have no
reward. The need of a state is one item, which samples of all its pairs serve. eta = sqrt(K log(1 + K) / t) for K items:
about the rate with the least regret of exponential weights, if each step costs one item 1, each with probability about
1 / K.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.collecting.need import Need
from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.rivals.optimistic import Optimistic


@dataclass(frozen=True)
class MinFrequency(Optimistic):
    """Mirror descent on the least frequency.

    Parameters
    ----------
    delta, confidence, scale, linear_scale, precision_power
        Confidence sets and precision of the plans, as in `Optimistic`.
    rate
        Multiplier of eta.
    drift
        Q: the largest change of a component of log theta in an episode.
    """

    rate: float = 1.0
    drift: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.positive("rate", self.rate)
        _checks.positive("drift", self.drift)

    def reward(self, model: EmpiricalModel, need: Need, t: int) -> NDArray[np.float64]:
        """Return the sum of theta over the items that each row serves, relative to the largest theta [R]."""
        pair, state, mean = need.pair > 0, need.state > 0, self._mean(need)
        by_pair = np.where(pair, model.visits / np.where(pair, need.pair, 1), np.inf) * mean
        by_state = np.where(state, need.state_visits / np.where(state, need.state, 1), np.inf) * mean
        least = min(by_pair.min(), by_state.min())
        eta = self._eta(need, t)
        return np.asarray(np.exp(-eta * (by_pair - least)) + np.exp(-eta * (by_state - least))[model.rows.state])

    def limit(self, model: EmpiricalModel, need: Need, t: int) -> NDArray[np.int64]:
        """Return the visits [R] beyond which an episode ends: a count doubled, or log theta changed by Q."""
        least = np.where(need.pair > 0, need.pair, np.inf)
        needed = np.minimum(least, np.where(need.state > 0, need.state, np.inf)[model.rows.state])
        allowed = np.minimum(self.drift / self._eta(need, t) * needed / self._mean(need), 2.0**53)
        return np.minimum(super().limit(model, need, t), model.visits + allowed.astype(np.int64))

    def _eta(self, need: Need, t: int) -> float:
        items = int((need.pair > 0).sum() + (need.state > 0).sum())
        return self.rate * float(np.sqrt(max(1, items) * np.log(1 + items) / t))

    @staticmethod
    def _mean(need: Need) -> float:
        """Return the mean need of an item."""
        needs = np.concatenate([need.pair[need.pair > 0], need.state[need.state > 0]])
        return float(needs.mean()) if needs.size else 1.0
