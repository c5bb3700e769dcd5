"""Error bounds that follow from confidence sets: for the model, averages over the next state, and mean rewards.

The sets hold at all times at once. So a run may collect until these bounds are small enough: at that time, they hold at
the level of the sets.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.intervals import Confidence

NORMS = {"l1": 2.0, "max": 1.0}  # the largest distance between two distributions
FEW = 10  # up to this number of successors, l1 errors are exact: all subsets of gaining successors are tried
HUBS = 8  # number of successors of a row that are tried as the intermediate state k (`_kernels.lipschitz_errors`)

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Slack:
    """Largest differences between plausible dynamics and observed frequencies, entry by entry, for n rows.

    A p is plausible if p_hat - down <= p <= p_hat + up on the stored successors, every other state has probability at
    most `each`, and all other states together at most `extra`.
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
        """The row of each entry, as an index in 0..n-1: [nnz]."""
        return np.repeat(np.arange(len(self.visits)), np.diff(self.ptr))


def slack(model: EmpiricalModel, family: Confidence, rows: NDArray[np.int64]) -> Slack:
    """Return the slack of `rows` [n]. For a row never visited, every p is plausible; its p_hat is taken to be 0.

    Raises
    ------
    InputError
        The intervals of `family` are not on the stored successors, in their order.
    """
    sets = family.intervals(model, rows)
    ptr, succ, count, _ = model.stored(rows)
    if not (np.array_equal(sets.ptr, ptr) and np.array_equal(sets.succ, succ)):
        raise InputError(
            f"confidence: expected intervals on the successors that the model stores, in the same order (as KL and "
            f"Bernstein give them); {type(family).__name__}.intervals has other successors or another order"
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
    """Return the largest |p - p_hat| over plausible p, [n]; `norm` is "l1" or "max".

    Exact for each row's set, except in the l1 norm for rows with more than `FEW` successors: there an upper bound.
    """
    from gosprl import _kernels

    row, n = slack.row, len(slack.visits)
    if norm == "l1":  # gains and losses are equal: the distance is twice the mass that moves
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
    """Return bounds ([n], [n]) on (p - p_hat) V and (p_hat - p) V, for plausible p and V with V(i) - V(j) <= D[i, j].

    D [S, S] are distances. A state that is not part of the problem has distance inf, also to itself; the bounds assume
    that it gets no mass. The bounds of rows never visited are inf.
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
    """Return bounds ([n], [n]) on p V - p_hat V and p_hat V - p V over plausible p, for V [S].

    Exact for the stored successors; all mass on other successors is assumed to go where V is largest, or least.
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
    streams: int | Floats | None = None,
    unknown: NDArray[np.int64] | None = None,
) -> tuple[Floats, Floats]:
    """Return (lower [n], upper [n]), bounds on the means of n streams of numbers in [0, 1].

    `visits`, `total` and `squares` [n] are the lengths, sums and sums of squares of the streams. With probability at
    least 1 - delta, all intervals hold at all times. Each is the intersection of two intervals of level delta / 2:

    kl          N kl(mean, m) <= log(2 n / delta) + 1/2 log(pi N + 1). This holds for numbers in [0, 1] as for zeros and
                ones: (q/m)^x ((1-q)/(1-m))^(1-x) is convex in x, so its mean is at most 1, and a mixture over q of
                products of these is a supermartingale.
    bernstein   |mean - m| <= sqrt(2 V L / N) + 7 L / (3 (N - 1)), L = log(8 n N (N - 1) / delta), V the sample variance
                (Maurer and Pontil 2009, for every N). It is much narrower if the variance is small.

    `scale` multiplies the logarithms; below 1 there is no guarantee. If the arrays hold only a part of the streams,
    `streams` is the number of all; or [n] numbers whose reciprocals sum to at most 1 over all streams, if their number
    is not known: then stream i has the level delta / streams[i].

    `unknown` [n] numbers more of each stream were drawn and are not known, however it was decided which: each interval
    contains those of all completions (docs/theory/fleet.md). `visits`, `total` and `squares` are those of the others.
    """
    from gosprl import _kernels

    n = np.broadcast_to(np.asarray(len(visits) if streams is None else streams, dtype=np.float64), visits.shape)
    hidden = np.zeros_like(visits) if unknown is None else unknown
    places, least = visits + hidden, np.array(total, dtype=np.float64)
    N, most = places.astype(np.float64), least + hidden
    lower, upper = np.empty((2, len(visits)))
    budget = scale * (np.log(2 * n / delta) + 0.5 * np.log(math.pi * N + 1))
    _kernels.kl_means(least, places, budget, lower, upper)
    if hidden.any():  # a lower end increases with the sum, as an upper one does
        _kernels.kl_means(most, places, budget, np.empty_like(lower), upper)
    some = np.flatnonzero(places > 1)
    N, least, most = N[some], least[some], most[some]
    L = scale * np.log(8 * n[some] * N * (N - 1) / delta)
    radius = np.sqrt(2 * _largest_variance(N, least, squares[some], hidden[some]) * L / N) + 7 * L / (3 * (N - 1))
    lower[some] = np.maximum(lower[some], least / N - radius)
    upper[some] = np.minimum(upper[some], most / N + radius)
    return lower, upper


def _largest_variance(N: Floats, total: Floats, squares: Floats, hidden: NDArray[np.int64]) -> Floats:
    """Return the largest sample variance [n] of N numbers in [0, 1], of which some are `hidden`.

    It is convex in each hidden number, so the largest one has u ones and zeros otherwise; it is concave in u.
    """
    u = np.clip(N / 2 - total, 0, hidden)
    return np.maximum(squares + u - N * ((total + u) / N) ** 2, 0) / (N - 1)
