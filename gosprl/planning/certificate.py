"""Bounds on the optimum from one application of the operator, including rounding errors.

For any finite v, at least 0 at the goals, let Q(s, a) = c(s, a) + min_{p in B(s, a)} p v, and

    rho   = max over rows of (v(s) - Q(s, a)) / c(s, a),            at least 0
    sigma = max over states of (Q - v) / c at the best row,         at least 0

Then w = v / (1 + rho) satisfies w <= L w, so it is at most the optimum; and if sigma < 1, the greedy policy of v
reaches the goals and costs at most v / (1 - sigma). Also |L w - w| <= max(Q - v) + rho max c.

In doubles, the error of Q is some units of roundoff times Q. Where Q / c approaches 1e16, it is as large as c itself.
`roundoff` bounds this error relative to the costs. There are three cases:

    up to NEGLIGIBLE     The ratios are those of the compiled operator. Rounding is added to sigma only, so `values` are
                         at most the optimum times 1 + 1e-9.
    up to RESOLVED       The same, if `gosprl.planning.nature` confirms it, which evaluates Q - v without cancellation.
    above                The ratios are those of `nature`, with its own rounding bound added to both.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gosprl.planning.exact import first_least
from gosprl.planning.nature import UNIT, Answer, Floats, Ints

if TYPE_CHECKING:
    from gosprl._kernels import Sets

NEGLIGIBLE = 1e-9  # rounding of the ratios up to which no second evaluation is made
RESOLVED = 1e-6  # rounding up to which the compiled values of rows can be compared: the tolerance of ties
COARSE = 1e-3  # largest gap of an accepted plan if its values are too large for doubles to hold a small residual


@dataclass(frozen=True)
class Certificate:
    """w = v / (1 + fall_ratio) <= optimum <= v / (1 - rise_ratio), and |L w - w| <= residual."""

    residual: float
    rise_ratio: float  # sigma
    fall_ratio: float  # rho
    resolution: float = 0.0  # the part of the residual that rounding v to doubles can cause

    @property
    def gap(self) -> float:
        """The relative gap: optimum <= (1 + gap) w; inf if there is no upper bound."""
        if self.rise_ratio >= 1:
            return np.inf
        return float((1 + self.fall_ratio) / (1 - self.rise_ratio) * (1 + 4 * UNIT) - 1)

    def meets(self, precision: float, ratio: float) -> bool:
        """Whether the residual is at most `precision` and the sum of the ratios at most `ratio`."""
        return self.residual <= precision and self.rise_ratio + self.fall_ratio <= ratio


def certify(answer: Answer, cost: Floats, goal: NDArray[np.bool_], row_ptr: Ints) -> Certificate:
    """Return the certificate of the values v that `answer` was computed for, including rounding errors."""
    inner = np.isfinite(answer.excess) & ~goal[answer.state]
    if not inner.any():
        return Certificate(0.0, 0.0, 0.0)
    fall_ratio = float(((answer.error - answer.excess)[inner] / cost[inner]).max())
    best = first_least(answer.excess, row_ptr)
    best = best[inner[best]]
    rise = answer.excess[best] + answer.error[best]
    fall_ratio, rise_ratio = max(0.0, fall_ratio), max(0.0, float((rise / cost[best]).max()))
    dearest = float(cost[best].max())  # division by 1 + fall_ratio adds so much of the best rows' costs, no others
    residual = max(0.0, float(rise.max())) + dearest * fall_ratio
    near = inner & (np.abs(answer.excess) <= cost)
    resolution = float((answer.resolution[near] * (1 + dearest / cost[near])).max(initial=0.0))
    return Certificate(residual, rise_ratio, fall_ratio, resolution)


def roundoff(sets: "Sets", cost: Floats, highest: float) -> tuple[float, float]:
    """Return bounds (downwards, upwards) on the error of (Q - v) / c in the compiled operator, for v <= highest.

    Upwards, Q may also be too small because the operator does not distribute mass up to TINY.
    """
    from gosprl import _kernels

    waits, S = highest / float(cost.min()), len(sets.row_ptr) - 1
    terms = 3.0 * S + 8  # upper bound: S stored successors, and sums over runs of unseen ones
    if terms * UNIT * waits > NEGLIGIBLE:
        longest = int((sets.end - sets.begin).max(initial=0))
        shared = sets.each * sets.total > 0
        unseen = min(S, longest + float((sets.total[shared] / sets.each[shared]).max())) if shared.any() else 0
        terms = 2 * longest + 8 + unseen
    return terms * UNIT * waits, (terms * UNIT + _kernels.TINY) * waits
