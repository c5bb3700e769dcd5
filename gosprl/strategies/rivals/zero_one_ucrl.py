"""0/1-UCRL (section "Experiments" and the appendix "Leveraging UCRL"): UCRL2B with reward 1 for under-sampled pairs.

Rewards are 1 for under-sampled pairs (for all pairs of an under-sampled state, if states have needs) and 0 for others.
They are fixed at the start of an episode, as in UCRL2B: a policy is followed until a count doubles, even if the need of
its target pair is met before. The paper does not specify this; `renew` changes it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.need import Need
from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.rivals.optimistic import Optimistic, gaps


@dataclass(frozen=True)
class ZeroOneUCRL(Optimistic):
    """UCRL2B with reward 1 for under-sampled pairs and 0 for others.

    Parameters
    ----------
    delta, confidence, scale, linear_scale, precision_power
        Confidence sets and precision of the plans, as in `Optimistic`.
    renew
        End an episode also when the need of a pair is met: rewards are always current, but there are more plans.
    """

    renew: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.renew not in (True, False):
            raise InputError(f"renew: expected True or False, got {self.renew!r}")

    def reward(self, model: EmpiricalModel, need: Need, t: int) -> NDArray[np.float64]:
        """Return 1 for under-sampled rows, 0 for others [R]."""
        return (gaps(model, need) > 0).astype(float)

    def limit(self, model: EmpiricalModel, need: Need, t: int) -> NDArray[np.int64]:
        """Return the visits [R] beyond which an episode ends; with `renew`, also when the need of a pair is met."""
        limit, gap = super().limit(model, need, t), gaps(model, need)
        return np.where(gap > 0, np.minimum(limit, model.visits + gap - 1), limit) if self.renew else limit
