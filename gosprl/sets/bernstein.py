"""The paper's empirical Bernstein sets (formulas in `gosprl.sets.intervals`)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks

if TYPE_CHECKING:
    from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.intervals import Intervals, _Family, may_grow, row_logarithms, unlimited, with_certain
from gosprl.sets.unknown import last_first, unknown_of

# of delta, where the number of states is unknown: upper ends, lower ends, the cap on all unseen successors
SHARES = (0.25, 0.25, 0.5)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bernstein(_Family):
    """The paper's empirical Bernstein sets.

    Parameters
    ----------
    delta
        The level.
    scale
        Width multiplier; below 1 there is no guarantee.
    linear_scale
        Multiplier of the term 6 L / N and of the caps on unseen successors, which decrease as 1 / N; None: `scale`,
        which then multiplies the whole radius. A logarithm multiplied by x is scale = sqrt(x), linear_scale = x.
    """

    linear_scale: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.linear_scale is not None:
            _checks.positive("linear_scale", self.linear_scale)

    @property
    def linear(self) -> float:
        """The multiplier of terms that decrease as 1 / N."""
        return self.scale if self.linear_scale is None else self.linear_scale

    @property
    def narrowed(self) -> str:
        """The multipliers, if one of them is below 1; otherwise an empty string."""
        if self.linear_scale is None or min(self.scale, self.linear_scale) >= 1:
            return super().narrowed
        return f"scale {self.scale:g}, linear scale {self.linear_scale:g}"

    def intervals(self, model: "EmpiricalModel", rows: NDArray[np.int64] | None = None) -> Intervals:
        """Return the sets of `rows` [n] in this order; None: of all R rows."""
        if unlimited(model):
            return with_certain(model, rows, self._unlimited(model, rows))
        ptr, succ, count, _ = model.stored(rows)
        visits = model.visits if rows is None else model.visits[rows]
        unknown = unknown_of(model, rows)
        places = visits if unknown is None else visits + unknown
        outcomes = model.num_outcomes or 0  # 0: a closed model, which has candidates instead
        N = np.maximum(1.0, places)  # floats, since S A N can exceed the range of int64
        if model.closed:
            L = 0.5 * np.log(5 * model.num_candidates / self.delta) + np.log(N)
        else:
            L = np.log(2 * outcomes * model.num_actions * N / self.delta)
        length = np.diff(ptr)
        n = np.repeat(N, length)
        p_hat = count / n
        each = self.linear * 6 * L / N
        radius = self.scale * 2 * np.sqrt(p_hat * (1 - p_hat) * np.repeat(L, length) / n)
        radius += np.repeat(each, length)
        lower, upper = np.maximum(p_hat - radius, 0), np.minimum(p_hat + radius, 1)
        if unknown is not None:
            most = p_hat + np.repeat(unknown, length) / n
            radius = self.scale * 2 * np.sqrt(most * (1 - most) * np.repeat(L, length) / n) + np.repeat(each, length)
            upper = np.minimum(most + radius, 1)
            hidden = unknown / N
            each = each + hidden + self.scale * 2 * np.sqrt(hidden * (1 - hidden) * L / N)
        if model.closed:
            upper[np.repeat(places == 0, length)] = 1
            lower[np.repeat(length == 1, length)] = upper[np.repeat(length == 1, length)] = 1
            zeros = np.zeros(len(N))
            return Intervals(ptr, succ, lower, upper, zeros, zeros)
        each, total = np.where(places == 0, 1, np.minimum(each, 1)), np.ones(len(N))
        if may_grow(model):
            total = np.minimum((outcomes - length) * each, 1)
            each = total.copy()
        return with_certain(model, rows, Intervals(ptr, succ, lower, upper, each, total))

    def _unlimited(self, model: "EmpiricalModel", rows: NDArray[np.int64] | None) -> Intervals:
        """Return the sets of rows whose number of possible successors is unknown."""
        from gosprl import _kernels

        ptr, succ, count, first = model.stored(rows)
        visits = np.array(model.visits if rows is None else model.visits[rows])
        length, log_row = np.diff(ptr), row_logarithms(model, rows)
        unknown = unknown_of(model, rows)
        if unknown is not None:
            visits += unknown
        log_upper, log_lower, log_cap = self._logarithms()
        log_5_d = math.log(5) + np.repeat(log_row, length)
        n = np.repeat(np.maximum(visits, 1).astype(np.float64), length)
        seen = np.maximum(count, 1).astype(np.float64)  # a certain row may have a successor never seen
        if unknown is not None:
            seen = seen + np.repeat(unknown, length)
        _, upper = self._ends(seen, n, (log_5_d + log_upper + 3 * np.log(n) - np.log(seen)) / 2)
        since = np.where(first > 0, n - first, 0.0)
        some = since > 0
        place = np.arange(len(succ)) - np.repeat(ptr[:-1], length) + 1.0
        L = (log_5_d + log_lower + np.log(place * (place + 1)) + 2 * np.log(np.maximum(since, 1))) / 2
        lower = np.zeros(len(succ))
        lower[some], _ = self._ends(seen[some] - 1, since[some], L[some])
        # by chance the later visits alone may have a lower end above the upper one; the frequency keeps the set
        lower = np.minimum(lower, seen / n)
        total = np.empty(len(visits))
        _kernels.unseen_caps(ptr, first, visits, 0, log_row, math.inf, log_cap, float(self.linear), total)
        if unknown is not None:
            some = unknown > 0
            lower[np.repeat(some, length)] = 0.0  # the visits since a first appearance are not known
            until = last_first(model, rows, ptr, first, visits)
            one = self.end_of_one(np.maximum(visits, 1.0), log_row)
            for i in np.flatnonzero(some).tolist():
                row = (int(length[i]), int(unknown[i]), int(visits[i]), int(until[i]))
                cap = log_row[i] + log_cap
                total[i] = _kernels.unknown_total(*row, 0, float(one[i]), math.inf, cap, float(self.linear))
        return Intervals(ptr, succ, lower, upper, total.copy(), total)

    def end_of_one(self, n: Floats, log_row: Floats) -> Floats:
        """Return the upper ends of successors seen once at n places, where the number of states is unknown."""
        return self._ends(np.ones(len(n)), n, (math.log(5) + log_row + self._logarithms()[0] + 3 * np.log(n)) / 2)[1]

    @property
    def log_cap(self) -> float:
        """log(1 / share of delta) of the cap on all unseen successors, where the number of states is unknown."""
        return self._logarithms()[2]

    def _logarithms(self) -> tuple[float, float, float]:
        upper, lower, cap = (-math.log(share * self.delta) for share in SHARES)
        return upper, lower, cap

    def _ends(self, k: Floats, n: Floats, L: Floats) -> tuple[Floats, Floats]:
        """Return the ends of the printed radius around k / n."""
        p_hat = k / n
        root, linear = 2 * np.sqrt(p_hat * (1 - p_hat) * L / n), 6 * L / n
        # with one factor, multiply once: the same bits as ever
        both = self.linear_scale is not None
        radius = self.scale * root + self.linear * linear if both else self.scale * (root + linear)
        return np.maximum(p_hat - radius, 0), np.minimum(p_hat + radius, 1)
