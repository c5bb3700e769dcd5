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

Where states are discovered on the way (proofs: docs/theory/growing.md), S above is the number of possible outcomes and
P that of pairs, if `max_states` bounds them. Otherwise a row of the i-th state discovered, one of its A rows, has the
level d = delta / (A i (i + 1)), and

    kl          N kl(p_hat, p) <= log(1 / d_1) + log(1 / p) + 1/2 log(pi N + 1), for all seen successors at once
    bernstein   upper ends: the printed radius with L = 1/2 log(5 N^2 / (d_1 p_hat)). Lower ends: the same with
                L = 1/2 log(5 n^2 j (j + 1) / d_2) for the j-th successor to appear and the n visits since then.
    both        the cap on all unseen successors by the visits since the last one appeared ((b) of `unseen_cap`)

As long as states may be undiscovered, one unseen successor gets as much as all of them: `each` is `total`. Rows whose
outcome is known (`EmpiricalModel.certain`) are sets of one point.

For each family, at scale 1, the true dynamics are in the sets at all times with probability at least 1 - delta. `scale`
multiplies Bernstein's radius (alpha_p in the paper's experiments) and kl's logarithms; below 1 there is no guarantee.
Bernstein's `linear_scale`, if given, multiplies what decreases as 1 / N in the place of `scale`.
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
        The true dynamics are in the sets at all times with probability at least 1 - delta; None: no such statement, so
        that nothing that rests on these sets has a level.
    scale
        Multiplier of the width; below 1 there is no guarantee.
    """

    delta: float | None = None
    scale: float = 1.0

    @property
    def narrowed(self) -> str:
        """The width multiplier as text, if it is below 1, so that there is no guarantee; otherwise an empty string."""
        return f"scale {self.scale:g}" if self.scale < 1 else ""

    @property
    def no_promise(self) -> str:
        """Why nothing that rests on these sets has a level; an empty string if it has: `delta`."""
        return self.narrowed or ("" if self.delta is not None else f"{type(self).__name__} states no level of its sets")

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


def unlimited(model: "EmpiricalModel") -> bool:
    """Whether nothing bounds the number of successors: neither their number nor candidates are known."""
    return model.num_outcomes is None and not model.closed


def may_grow(model: "EmpiricalModel") -> bool:
    """Whether rows may have successors that are not discovered yet."""
    return not model.closed and (model.num_outcomes is None or model.num_outcomes > model.rows.num_states)


def row_logarithms(model: "EmpiricalModel", rows: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """[n] log(A_s i (i + 1)) for the rows of the i-th state discovered, A_s the number of its rows.

    What delta is divided by, so that the levels of all rows sum to delta at most, however many will be discovered.
    """
    state = model.rows.state if rows is None else model.rows.state[rows]
    i = np.maximum(model.rank[state], 1).astype(np.float64)  # a final state has no rank: its row is certain
    logs: NDArray[np.float64] = np.log((model.rows.ptr[state + 1] - model.rows.ptr[state]) * i * (i + 1))
    return logs


def with_certain(model: "EmpiricalModel", rows: NDArray[np.int64] | None, sets: Intervals) -> Intervals:
    """Return the sets, after reducing those of rows with a known outcome to one point, in place."""
    certain = model.certain if rows is None else model.certain[rows]
    if certain.any():
        entries = np.repeat(certain, np.diff(sets.ptr))
        sets.lower[entries] = sets.upper[entries] = 1.0
        sets.each[certain] = sets.total[certain] = 0.0
    return sets


@dataclass(frozen=True)
class _Family(Confidence):
    """Base of the families with parameters `delta` and `scale`."""

    delta: float = 0.1
    scale: float = 1.0

    def __post_init__(self) -> None:
        _checks.open_unit("delta", self.delta)
        _checks.positive("scale", self.scale)
