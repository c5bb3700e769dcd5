"""Costs of the shortest paths, to avoid states (appendix "Algorithmic Variants", cost-shaping).

Costs are in [1, c_max], so the bound of the guarantee grows at most by a factor c_max. Fixed costs are arrays [S] or
[S, A]. Visit-driven costs grow with the share x(s) of the steps spent in a state, relative to the share b(s) / B that
is needed there. They are the gradients of two distances between these shares,

    square   phi_1(x) = x - b(s) / B
    kl       phi_2(x) = log(x) + 1 - log(b(s) / B)

clipped as 1 + weight * phi to [1, c_max]. phi_1 is of the order of 1 / S, so its weight is S times larger.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel


@dataclass(frozen=True)
class VisitDriven:
    """Costs [S] that penalise states with more visits than they need."""

    need: NDArray[np.int64]  # [S] b(s)
    gradient: str = "kl"  # or "square"
    c_max: float = 10.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        _checks.choice("gradient", self.gradient, {"kl": None, "square": None})
        _checks.positive("weight", self.weight)
        if _checks.positive("c_max", self.c_max) < 1:
            raise InputError(f"c_max: expected a number >= 1, got {self.c_max}")

    def __call__(self, model: EmpiricalModel) -> NDArray[np.float64]:
        """Return the costs [S] for the visits so far."""
        S = model.rows.num_states
        visits = np.bincount(model.rows.state, weights=model.visits, minlength=S)
        x = visits / max(1.0, visits.sum())
        target = np.asarray(self.need, dtype=float) / max(1, int(np.sum(self.need)))
        if self.gradient == "square":
            phi = S * (x - target)
        else:
            # log 0 = -inf is clipped: a state never visited has no penalty, one that needs nothing the largest
            with np.errstate(divide="ignore", invalid="ignore"):
                phi = np.log(x) + 1 - np.log(target)
            phi[x == 0] = -np.inf
        costs: NDArray[np.float64] = np.clip(1 + self.weight * phi, 1, self.c_max)
        return costs
