"""Confidence sets on the dynamics: sets of plausible p(.|s,a), one per row, as intervals.

A successor that was seen has an interval [lower, upper] of its own; all others share [0, each], and together they get
at most `total`. A family turns counts into such sets:

    bernstein   the paper's, appendix "Efficient Computation of Optimistic SSP Policy": with L = log(2 S A N / delta),
                |p - p_hat| <= 2 sqrt(p_hat (1 - p_hat) L / N) + 6 L / N
    kl          N kl(p_hat, p) <= log(S P / delta_1) + 1/2 log(pi N + 1), P the number of pairs: a two-sided mixture
                martingale in the visits of a pair, so it holds at all times at once; one successor not yet seen has
                less (`_kernels.unseen_end`), and so have all of them together (`_kernels.unseen_cap`). How far plans
                are from the truth is mostly up to the last cap, so it gets most of delta (`SHARES`).
    Known       the true dynamics as sets of one point

Where the possible successors are known (a closed model, `gosprl.model.successors`), each of the M candidates of all
pairs has an interval of its own, [0, 1] before the first visit, and nothing else gets any mass. A single candidate is
certain.

    bernstein   L = 1/2 log(5 M N^2 / delta). The radius is Audibert et al.'s for x = 2 L, which one entry exceeds at
                one N with probability at most 3 exp(-2 L): over M entries and all N that sums to less than delta.
                (Printed: over S S A entries, pi^2 delta^2 / (8 A), below delta if A > 1 or delta < 0.8.)
    kl          N kl(p_hat, p) <= log(M / delta) + 1/2 log(pi N + 1): no caps, so all of delta goes to the ends

For each family, at scale 1, the true dynamics are in the sets at all times with probability at least 1 - delta. `scale`
multiplies Bernstein's radius (alpha_p in the paper's experiments) and kl's logarithms; below 1 there is no guarantee.
A pair never visited allows everything.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks

if TYPE_CHECKING:
    from gosprl.model.empirical import EmpiricalModel


@dataclass(frozen=True, eq=False)
class Intervals:
    """Sets of plausible distributions, one per row."""

    ptr: NDArray[np.int64]  # [R + 1] the stored successors of row r are ptr[r] : ptr[r + 1], in any order
    succ: NDArray[np.int32]  # [nnz]
    lower: NDArray[np.float64]  # [nnz]
    upper: NDArray[np.float64]  # [nnz]
    each: NDArray[np.float64]  # [R] upper end of one unseen successor
    total: NDArray[np.float64]  # [R] cap on all of them together


class Confidence(ABC):
    """A family of confidence sets; the base class of families of your own. Only `intervals` is needed.

    Attributes
    ----------
    delta
        The true dynamics are in the sets at all times with probability at least 1 - delta; None: not stated.
    scale
        The width multiplier; below 1 nothing is guaranteed.
    """

    delta: float | None = None
    scale: float = 1.0

    @abstractmethod
    def intervals(self, model: "EmpiricalModel", rows: NDArray[np.int64] | None = None) -> Intervals:
        """Return the sets of the given rows (default: all), in their order.

        Parameters
        ----------
        model
            The counts.
        rows
            [n] int64 rows; None for all R.
        """


@dataclass(frozen=True)
class _Family(Confidence):
    """What the families of confidence level `delta` share."""

    delta: float = 0.1
    scale: float = 1.0

    def __post_init__(self) -> None:
        _checks.open_unit("delta", self.delta)
        _checks.positive("scale", self.scale)
