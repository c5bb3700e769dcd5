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
A pair never visited allows everything.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.errors import InputError

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


def unlimited(model: "EmpiricalModel") -> bool:
    """Whether nothing bounds the number of successors: neither their number nor candidates are known."""
    return model.num_outcomes is None and not model.closed


def may_grow(model: "EmpiricalModel") -> bool:
    """Whether rows may have successors that are not discovered yet."""
    return not model.closed and (model.num_outcomes is None or model.num_outcomes > model.num_states)


def row_logarithms(model: "EmpiricalModel", rows: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """[n] log(A_s i (i + 1)) for the rows of the i-th state discovered, A_s the number of its rows.

    What delta is divided by, so that the levels of all rows sum to delta at most, however many will be discovered.
    """
    if model.rank is None:
        raise InputError("rank: expected the order of discovery of the states, where their number is unknown; got None")
    state = model.rows.state if rows is None else model.rows.state[rows]
    i = np.maximum(model.rank[state], 1).astype(np.float64)  # a final state has no rank: its row is certain
    logs: NDArray[np.float64] = np.log((model.rows.ptr[state + 1] - model.rows.ptr[state]) * i * (i + 1))
    return logs


def with_certain(model: "EmpiricalModel", rows: NDArray[np.int64] | None, sets: Intervals) -> Intervals:
    """Return the sets, after reducing those of rows with a known outcome to one point, in place."""
    if model.certain is not None:
        certain = model.certain if rows is None else model.certain[rows]
        if certain.any():
            entries = np.repeat(certain, np.diff(sets.ptr))
            sets.lower[entries] = sets.upper[entries] = 1.0
            sets.each[certain] = sets.total[certain] = 0.0
    return sets


@dataclass(frozen=True)
class _Family(Confidence):
    """What the families of confidence level `delta` share."""

    delta: float = 0.1
    scale: float = 1.0

    def __post_init__(self) -> None:
        _checks.open_unit("delta", self.delta)
        _checks.positive("scale", self.scale)
