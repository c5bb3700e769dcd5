"""0-UCRL (section "Experiments" and the appendix "Leveraging UCRL"): UCRL2B with only the uncertainty of a reward.

The reward of a pair is ([N(s, a) - b(s, a)]^+)^(-1/2), the order of the uncertainty of a reward seen N - b times. The
paper does not define [x]^+; here it is max(1, x), as its N^+: under-sampled pairs have reward 1, others less and less.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.need import Need
from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.rivals.optimistic import Optimistic, gaps


@dataclass(frozen=True)
class ZeroUCRL(Optimistic):
    """UCRL2B with reward max(1, N - b)^(-1/2).

    Parameters
    ----------
    delta, confidence, scale, linear_scale, precision_power
        Confidence sets and precision of the plans, as in `Optimistic`.
    """

    def reward(self, model: EmpiricalModel, need: Need, t: int) -> NDArray[np.float64]:
        """Return max(1, N - b)^(-1/2) of each row [R]."""
        return np.asarray(np.maximum(1, -gaps(model, need)) ** -0.5)
