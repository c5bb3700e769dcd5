"""What confidence sets prove about an estimate: of the model, of averages over the next state, of mean rewards.

Whoever collects until these are small enough has a guarantee at the level of the sets, at whatever time it stops: the
sets hold at all times at once.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.intervals import Confidence

NORMS = {"l1": 2.0, "max": 1.0}  # the largest distance that two distributions can have
FEW = 10  # successors of a row up to which all choices of those that gain are tried
HUBS = 8  # successors of a row tried as the one by way of which mass moves

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Slack:
    """By how much plausible dynamics may differ from the frequencies seen, entry by entry, for some rows.

    A p is plausible if p_hat - down <= p <= p_hat + up on the stored successors and the others have `each` at most,
    all of them together `extra`.
    """

    visits: NDArray[np.int64]  # [n]
    ptr: NDArray[np.int64]  # [n + 1]
    succ: NDArray[np.int32]  # [nnz]
    count: NDArray[np.int64]  # [nnz]
    up: Floats  # [nnz]
    down: Floats  # [nnz]
    each: Floats  # [n]
    extra: Floats  # [n]

    @property
    def row(self) -> NDArray[np.int64]:
        """[nnz] which of the rows an entry belongs to."""
        return np.repeat(np.arange(len(self.visits)), np.diff(self.ptr))


def slack(model: EmpiricalModel, family: Confidence, rows: NDArray[np.int64]) -> Slack:
    """Return the slack of the given rows [n]; those never visited allow everything, whatever p_hat is taken to be."""
    sets = family.intervals(model, rows)
    ptr, succ, count, _ = model.stored(rows)
    if not (np.array_equal(sets.ptr, ptr) and np.array_equal(sets.succ, succ)):
        raise InputError(
            f"confidence: expected intervals on the successors that the model stores, in their order, as those of KL "
            f"and Bernstein; those of {type(family).__name__} are on others"
        )
    visits = model.visits[rows]
    p_hat = count / np.repeat(np.maximum(visits, 1), np.diff(ptr))
    extra = sets.total
    if model.num_outcomes is not None:
        extra = np.minimum(extra, (model.num_outcomes - np.diff(ptr)) * sets.each)
    return Slack(
        visits=visits,
        ptr=ptr,
        succ=succ,
        count=count,
        up=np.maximum(sets.upper - p_hat, 0),
        down=np.maximum(p_hat - sets.lower, 0),
        each=sets.each,
        extra=extra,
    )


def model_errors(slack: Slack, norm: str) -> Floats:
    """[n] the largest |p - p_hat| over plausible p, in the l1 norm or entry by entry.

    Exact, for each row's set; in the l1 norm of rows with many successors (`FEW`) a little more.
    """
    from gosprl import _kernels

    row, n = slack.row, len(slack.visits)
    if norm == "l1":  # what some entries gain, others lose
        error = np.empty(n)
        _kernels.largest_moves(slack.ptr, slack.up, slack.down, slack.extra, FEW, error)
        return np.where(slack.visits == 0, NORMS[norm], 2 * error)
    more = np.bincount(row, weights=slack.up, minlength=n) + slack.extra
    less = np.bincount(row, weights=slack.down, minlength=n)
    error = np.minimum(np.minimum(slack.each, slack.extra), less)
    gains = np.minimum(slack.up, less[row] - slack.down)
    losses = np.minimum(slack.down, more[row] - slack.up)
    np.maximum.at(error, row, np.maximum(gains, losses))
    return np.where(slack.visits == 0, NORMS[norm], error)


def lipschitz_errors(slack: Slack, D: Floats) -> tuple[Floats, Floats]:
    """Bounds [n] on (p - p_hat) V and on (p_hat - p) V, over plausible p and all V with V(i) - V(j) <= D[i, j].

    D [S, S] are distances, inf where a state is not part of the problem, to itself too: no mass is taken to go there.
    Rows never visited have inf.
    """
    from gosprl import _kernels

    finite = np.ascontiguousarray(np.where(np.isfinite(D), D, 0.0))
    over, under = np.empty((2, len(slack.visits)))
    _kernels.lipschitz_errors(
        *(slack.ptr, slack.succ, slack.count, slack.up, slack.down, slack.extra),
        *(finite, np.isfinite(np.diag(D)), finite.max(axis=0), finite.max(axis=1), HUBS, over, under),
    )
    over[slack.visits == 0] = under[slack.visits == 0] = np.inf
    return over, under


def average_errors(slack: Slack, V: Floats) -> tuple[Floats, Floats]:
    """Bounds [n] on how far p V can be above p_hat V, and below it, over plausible p; V [S].

    Exact but for mass on successors not stored, all of which is taken to go where V is largest, or least.
    """
    from gosprl import _kernels

    above, below = np.empty((2, len(slack.visits)))
    for sign, out in ((1.0, above), (-1.0, below)):
        parts = (slack.ptr, slack.succ, slack.up, slack.down, slack.extra, sign * V, float((sign * V).max()), out)
        _kernels.average_errors(*parts)
        out[slack.visits == 0] = V.max() - V.min()
    return above, below


def mean_intervals(
    visits: NDArray[np.int64],
    total: Floats,
    squares: Floats,
    delta: float,
    scale: float = 1.0,
    streams: int | None = None,
) -> tuple[Floats, Floats]:
    """(lower [n], upper [n]): the means of n streams of numbers in [0, 1], from their sums and sums of squares.

    All hold at all times at once with probability 1 - delta at least. The narrower of two, each at delta / 2:

    kl          N kl(mean, m) <= log(2 n / delta) + 1/2 log(pi N + 1). For numbers in [0, 1] as for zeros and ones:
                (q/m)^x ((1-q)/(1-m))^(1-x) is convex in x, so its mean is at most 1, and a mixture over q of products
                of these is a supermartingale.
    bernstein   sqrt(2 V L / N) + 7 L / (3 (N - 1)), L = log(8 n N (N - 1) / delta), V the sample variance (Maurer and
                Pontil 2009, for every N): far narrower where rewards hardly vary.

    `scale` multiplies the logarithms; below 1 nothing is promised. `streams` is n if only some of the n are given.
    """
    from gosprl import _kernels

    n = len(visits) if streams is None else streams
    N = visits.astype(np.float64)
    lower, upper = np.empty((2, len(visits)))
    budget = scale * (math.log(2 * n / delta) + 0.5 * np.log(math.pi * N + 1))
    _kernels.kl_means(np.array(total, dtype=np.float64), np.array(visits), budget, lower, upper)
    some = np.flatnonzero(visits > 1)
    N = N[some]
    mean = total[some] / N
    variance = np.maximum(squares[some] - N * mean**2, 0) / (N - 1)
    L = scale * np.log(8 * n * N * (N - 1) / delta)
    radius = np.sqrt(2 * variance * L / N) + 7 * L / (3 * (N - 1))
    lower[some] = np.maximum(lower[some], mean - radius)
    upper[some] = np.minimum(upper[some], mean + radius)
    return lower, upper
