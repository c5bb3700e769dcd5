"""Confidence sets on the dynamics: for each row, a set of plausible distributions p(.|s,a), given by intervals.

A successor that was seen has its own interval [lower, upper]. Each unseen successor has probability at most `each`, and
all of them together at most `total`. A family computes such sets from counts:

    bernstein   the paper's, appendix "Efficient Computation of Optimistic SSP Policy": with L = log(2 S A N / delta),
                |p - p_hat| <= 2 sqrt(p_hat (1 - p_hat) L / N) + 6 L / N
    kl          N kl(p_hat, p) <= log(S P / delta_1) + 1/2 log(pi N + 1), P the number of pairs: a two-sided mixture
                martingale in the visits of a pair, so it holds at all times at once. Smaller bounds hold for one
                unseen successor (`_kernels.unseen_end`) and for all of them together (`_kernels.unseen_cap`). The
                last cap matters most for the error of plans, so it gets most of delta (`SHARES`).
    Known       sets that contain only the true distribution

In a closed model the possible successors are known (`gosprl.model.successors`). Each of the M candidates of all pairs
then has its own interval, [0, 1] before the first visit, and no other state has any mass. A single candidate has
probability 1.

    bernstein   L = 1/2 log(5 M N^2 / delta). The radius is Audibert et al.'s for x = 2 L, which one entry exceeds at
                one N with probability at most 3 exp(-2 L): over M entries and all N that sums to less than delta.
                (Printed: over S S A entries, pi^2 delta^2 / (8 A), below delta if A > 1 or delta < 0.8.)
    kl          N kl(p_hat, p) <= log(M / delta) + 1/2 log(pi N + 1): there are no caps, so the ends get all of delta

For each family, at scale 1, the true dynamics are in the sets at all times with probability at least 1 - delta. `scale`
multiplies Bernstein's radius (alpha_p in the paper's experiments) and kl's logarithms; below 1 there is no guarantee.
Every distribution is plausible for a pair that was never visited.
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
    each: NDArray[np.float64]  # [R] cap on the probability of one unseen successor
    total: NDArray[np.float64]  # [R] cap on the probability of all unseen successors together


class Confidence(ABC):
    """Base class of families of confidence sets. A family of your own defines `intervals`.

    Attributes
    ----------
    delta
        The true dynamics are in the sets at all times with probability at least 1 - delta; None: no such statement.
    scale
        Multiplier of the width; below 1 there is no guarantee.
    """

    delta: float | None = None
    scale: float = 1.0

    @abstractmethod
    def intervals(self, model: "EmpiricalModel", rows: NDArray[np.int64] | None = None) -> Intervals:
        """Return the sets of `rows`, in this order.

        Parameters
        ----------
        model
            The counts.
        rows
            [n] int64 rows; None: all R rows.
        """


@dataclass(frozen=True)
class _Family(Confidence):
    """Base of the families with parameters `delta` and `scale`."""

    delta: float = 0.1
    scale: float = 1.0

    def __post_init__(self) -> None:
        _checks.open_unit("delta", self.delta)
        _checks.positive("scale", self.scale)
