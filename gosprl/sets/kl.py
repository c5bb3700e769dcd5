"""Time-uniform KL sets with caps on the unseen mass (formulas in `gosprl.sets.intervals`)."""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.intervals import Intervals, _Family

SHARES = (0.25, 0.05, 0.05, 0.65)  # of delta: ends of intervals, one unseen successor, caps (a) and (b) on all unseen
TABULATED = 128  # up to this number of visits the ends are tabulated, in 133 kB


class KL(_Family):
    """Time-uniform KL sets with caps on the unseen mass."""

    def intervals(self, model: "EmpiricalModel", rows: NDArray[np.int64] | None = None) -> Intervals:
        """Return the sets of `rows` [n] in this order; None: of all R rows."""
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
    """Return the table [n, k] of upper ends for k of n visits, n <= TABULATED, still empty: kernels fill it on demand.

    The two arguments determine its entries, so sets with equal arguments share one table.
    """
    return np.full((TABULATED + 1, TABULATED + 1), -1.0)
