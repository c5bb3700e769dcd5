"""MaxEnt (Cheung 2019, "Leveraging MaxEnt" in the appendix): walk so that all pairs are visited equally often.

The objective is the entropy of the frequencies lambda(s, a) = N(s, a) / t, smoothed by mu:

    H(lambda) = - sum_{s,a} (lambda + mu) log(lambda + mu),      dH / d lambda(s, a) = - 1 - log(lambda(s, a) + mu)

Online Frank-Wolfe: each episode follows the policy with the largest optimistic average of the gradient at the current
frequencies. An episode ends when a count doubles, or when the gradient changed too much (the "gradient threshold").

Choices that the source does not make, or makes differently. mu: without it the gradient of a pair never visited is
infinite; here it is a hundredth of the frequency 1 / P of uniform visits to P pairs, so that the gradient distinguishes
rare pairs by how rare they are. The threshold: the source adds up the gradient's changes, step by step, and stops at
some Q; here Q bounds the change of each component since the episode began. This bound is known in advance, as numbers
of visits and of steps, so a walk is one compiled call. (The component of a pair visited at every step changes fastest;
that of a pair not visited changes by at most log(t' / t) until time t'.) Smaller mu and Q cost more plans and mostly
save steps (evidence/results/rivals.md).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.collecting.need import Need
from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.rivals.optimistic import Optimistic


@dataclass(frozen=True)
class MaxEnt(Optimistic):
    """Frank-Wolfe on the entropy of the visits; it does not use the need.

    Parameters
    ----------
    delta, confidence, scale, linear_scale, precision_power
        Confidence sets and precision of the plans, as in `Optimistic`.
    mu
        The number added to the frequencies, in units of 1 / (number of pairs).
    drift
        Q: the largest change of a component of the gradient in an episode.
    """

    mu: float = 0.01
    drift: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.positive("mu", self.mu)
        _checks.positive("drift", self.drift)

    def reward(self, model: EmpiricalModel, need: Need, t: int) -> NDArray[np.float64]:
        """Return the gradient [R] of the smoothed entropy."""
        return np.asarray(-1 - np.log(self._smoothed(model, t)))

    def limit(self, model: EmpiricalModel, need: Need, t: int) -> NDArray[np.int64]:
        """Return the limits N + n [R], with n the successive visits that multiply N / t + mu by exp(Q)."""
        N, made = model.visits, max(1, t - 1)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            most = self._smoothed(model, t) * np.exp(self.drift) - self.mu / len(N)
            n = np.where(most < 1, (most * made - N) / (1 - most), np.inf)
        return np.minimum(super().limit(model, need, t), N + np.minimum(n, 2.0**53).astype(np.int64))

    def horizon(self, t: int) -> int:
        """Return the steps h with (t - 1 + h) / (t - 1) = exp(Q): without visits, a frequency falls by this factor."""
        with np.errstate(over="ignore"):
            return int(min(max(1.0, max(1, t - 1) * np.expm1(self.drift)), 2.0**53))

    def _smoothed(self, model: EmpiricalModel, t: int) -> NDArray[np.float64]:
        """Return lambda + mu [R], with lambda the frequencies of the t - 1 visits so far."""
        return np.asarray(model.visits / max(1, t - 1) + self.mu / len(model.rows))
