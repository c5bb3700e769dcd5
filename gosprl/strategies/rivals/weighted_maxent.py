"""WeightedMaxEnt (Tarbouriech et al. 2020): MaxEnt with weights by the uncertainty of each pair's next state.

The objective is - sum_{s,a} V+(s, a) (lambda + mu) log(lambda + mu), with an optimistic estimate of the sum of the
standard deviations of the next state's indicators,

    V+(s, a) = sum_s' min(1/2, sqrt(p_hat (1 - p_hat)) + c),      c = scale sqrt(2 log(2 S A N / delta) / N),

so that pairs with noisy transitions are visited more. c is the confidence bound of an empirical standard deviation
(Maurer and Pontil), with the logarithm and the scale of our Bernstein sets; the constant of the source was not
available. Weights are fixed at the start of an episode; the rest is as in `gosprl.strategies.rivals.maxent`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.need import Need
from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.rivals.maxent import MaxEnt


@dataclass(frozen=True)
class WeightedMaxEnt(MaxEnt):
    """Frank-Wolfe on the entropy of the visits, weighted by the noise of transitions.

    Parameters
    ----------
    delta, confidence, scale, linear_scale, precision_power
        Confidence sets and precision of the plans, as in `Optimistic`.
    mu, drift
        As in `MaxEnt`.
    """

    def reward(self, model: EmpiricalModel, need: Need, t: int) -> NDArray[np.float64]:
        """Return the weighted gradient [R]."""
        return self.weights(model) * super().reward(model, need, t)

    def weights(self, model: EmpiricalModel) -> NDArray[np.float64]:
        """Return the weights V+ [R]."""
        S, ptr, _, count, _ = model.rows.num_states, *model.stored()
        N, length = np.maximum(1, model.visits), np.diff(ptr)
        c = self.scale * np.sqrt(2 * np.log(2.0 * S * model.num_actions * N / self.delta) / N)
        p_hat, row = count / np.repeat(N, length), np.repeat(np.arange(len(N)), length)
        seen = np.minimum(0.5, np.sqrt(p_hat * (1 - p_hat)) + c[row])
        unseen = 0 if model.closed else S - length
        return np.asarray(np.bincount(row, weights=seen, minlength=len(N)) + unseen * np.minimum(0.5, c))
