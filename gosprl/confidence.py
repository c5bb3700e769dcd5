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

Where the possible successors are known (a closed model, `gosprl.successors`), each of the M candidates of all pairs has
an interval of its own, [0, 1] before the first visit, and nothing else gets any mass. A single candidate is certain.

    bernstein   L = 1/2 log(5 M N^2 / delta). The radius is Audibert et al.'s for x = 2 L, which one entry exceeds at
                one N with probability at most 3 exp(-2 L): over M entries and all N that sums to less than delta.
                (Printed: over S S A entries, pi^2 delta^2 / (8 A), below delta if A > 1 or delta < 0.8.)
    kl          N kl(p_hat, p) <= log(M / delta) + 1/2 log(pi N + 1): no caps, so all of delta goes to the ends

For each family, at scale 1, the true dynamics are in the sets at all times with probability at least 1 - delta. `scale`
multiplies Bernstein's radius (alpha_p in the paper's experiments) and kl's logarithms; below 1 there is no guarantee.
A pair never visited allows everything.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp import TabularMDP

if TYPE_CHECKING:
    from gosprl.model import EmpiricalModel

SHARES = (0.25, 0.05, 0.05, 0.65)  # of delta: kl's ends, one unseen successor, the caps (a) and (b) on all of them
TABULATED = 128  # visits up to which kl's ends are looked up, in 67 kB


@dataclass(frozen=True, eq=False)
class Intervals:
    """Sets of plausible distributions, one per row."""

    ptr: NDArray[np.int64]  # [R + 1] the stored successors of row r are ptr[r] : ptr[r + 1], in any order
    succ: NDArray[np.int32]  # [nnz]
    lower: NDArray[np.float64]  # [nnz]
    upper: NDArray[np.float64]  # [nnz]
    each: NDArray[np.float64]  # [R] upper end of one unseen successor
    total: NDArray[np.float64]  # [R] cap on all of them together


class Confidence(Protocol):
    """A family of confidence sets."""

    def intervals(self, model: "EmpiricalModel", rows: NDArray[np.int64] | None = None) -> Intervals:
        """The sets of the given rows (default: all), in their order."""
        ...


@dataclass(frozen=True)
class _Family:
    """What the families of confidence level `delta` share."""

    delta: float = 0.1
    scale: float = 1.0

    def __post_init__(self) -> None:
        _checks.open_unit("delta", self.delta)
        _checks.positive("scale", self.scale)


class Bernstein(_Family):
    """The paper's empirical Bernstein sets."""

    def intervals(self, model: "EmpiricalModel", rows: NDArray[np.int64] | None = None) -> Intervals:
        ptr, succ, count, _ = model.stored(rows)
        visits = model.visits if rows is None else model.visits[rows]
        N = np.maximum(1, visits)
        if model.closed:
            L = 0.5 * np.log(5 * model.num_candidates / self.delta) + np.log(N)
        else:
            L = np.log(2 * model.num_states * model.num_actions * N / self.delta)
        length = np.diff(ptr)
        n = np.repeat(N, length)
        p_hat = count / n
        each = self.scale * 6 * L / N
        radius = self.scale * 2 * np.sqrt(p_hat * (1 - p_hat) * np.repeat(L, length) / n)
        radius += np.repeat(each, length)
        lower, upper = np.maximum(p_hat - radius, 0), np.minimum(p_hat + radius, 1)
        if model.closed:
            upper[np.repeat(visits == 0, length)] = 1
            lower[np.repeat(length == 1, length)] = upper[np.repeat(length == 1, length)] = 1
            zeros = np.zeros(len(N))
            return Intervals(ptr, succ, lower, upper, zeros, zeros)
        each = np.where(visits == 0, 1, np.minimum(each, 1))
        return Intervals(ptr, succ, lower, upper, each, np.ones(len(N)))


class KL(_Family):
    """Time-uniform KL sets with caps on the unseen mass."""

    def intervals(self, model: "EmpiricalModel", rows: NDArray[np.int64] | None = None) -> Intervals:
        from gosprl import _kernels

        ptr, succ, count, first = model.stored(rows)
        visits = np.array(model.visits if rows is None else model.visits[rows])
        S, P = model.num_states, len(model.rows)
        lower, upper = np.empty((2, len(succ)))
        each, total = np.empty((2, len(visits)))
        log_kl = math.log(model.num_candidates / (self.delta if model.closed else SHARES[0] * self.delta))
        log_one, log_a, log_b = (math.log(P / (share * self.delta)) for share in SHARES[1:])
        scale = float(self.scale)
        _kernels.kl_intervals(
            *(ptr, count, first, visits, S, model.closed, log_kl, log_one, log_a, log_b, scale),
            *(_kl_table(log_kl, scale), lower, upper, each, total),
        )
        return Intervals(ptr, succ, lower, upper, each, total)


@lru_cache(maxsize=16)
def _kl_table(log_kl: float, scale: float) -> NDArray[np.float64]:
    """Upper ends for all counts of up to TABULATED visits, filled as they are asked for: these two fix them."""
    return np.full((TABULATED + 1) * (TABULATED + 2) // 2, -1.0)


@dataclass(frozen=True, eq=False)
class Known:
    """The true dynamics: sets of one point each, whatever the model has seen."""

    mdp: TabularMDP

    def intervals(self, model: object = None, rows: NDArray[np.int64] | None = None) -> Intervals:
        mdp = self.mdp
        if rows is None:
            zeros = np.zeros(len(mdp.rows))
            return Intervals(mdp.ptr, mdp.succ, mdp.prob, mdp.prob, zeros, zeros)
        length = np.diff(mdp.ptr)[rows]
        ptr = np.concatenate([[0], np.cumsum(length)])
        slot = np.repeat(mdp.ptr[rows] - ptr[:-1], length) + np.arange(ptr[-1])
        zeros = np.zeros(len(rows))
        return Intervals(ptr, mdp.succ[slot], mdp.prob[slot], mdp.prob[slot], zeros, zeros)


FAMILIES: dict[str, Callable[[float, float], Confidence]] = {"bernstein": Bernstein, "kl": KL}


def as_family(confidence: "str | Confidence | None", delta: float, scale: float) -> Confidence:
    """The named family at this level and width, `kl` by default; or the object given, which has its own."""
    if confidence is None or isinstance(confidence, str):
        return _checks.choice("confidence", "kl" if confidence is None else confidence, FAMILIES)(delta, scale)
    if isinstance(confidence, type) or not hasattr(confidence, "intervals"):
        raise InputError(f"confidence: expected {sorted(FAMILIES)} or an object with intervals(), got {confidence!r}")
    return confidence
