"""0/1-UCRL (section "Experiments" and the appendix "Leveraging UCRL"): UCRL2B that earns 1 for what is under-sampled.

Rewards are 1 for under-sampled pairs (for all pairs of an under-sampled state, where states have needs) and 0 for
others. They are those of the beginning of the episode, as UCRL2B has it: a policy is followed until a count doubles,
even if the pair that it was after has all it needs by then. The paper does not say otherwise; `renew` does.
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

    delta, confidence, scale
        Level, family (`"kl"`, `"bernstein"` or an object) and width multiplier of the confidence sets.
    renew
        End an episode also when a pair has all it needs: the rewards are never stale, at the price of more plans.
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
        """Return the visits [R] beyond which an episode ends; with `renew`, also when a pair has all it needs."""
        limit, gap = super().limit(model, need, t), gaps(model, need)
        return np.where(gap > 0, np.minimum(limit, model.visits + gap - 1), limit) if self.renew else limit
