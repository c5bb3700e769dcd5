"""Time-uniform KL sets with caps on the unseen mass (formulas in `gosprl.sets.intervals`)."""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.intervals import Intervals, _Family, may_grow, row_logarithms, unlimited, with_certain
from gosprl.sets.unknown import last_first, unknown_of

SHARES = (0.25, 0.05, 0.05, 0.65)  # of delta: ends of intervals, one unseen successor, caps (a) and (b) on all unseen
UNLIMITED_SHARES = (0.3, 0.7)  # the same without a bound on the number of states: ends, cap (b)
TABULATED = 128  # up to this number of visits the ends are tabulated, in 133 kB


class KL(_Family):
    """Time-uniform KL sets with caps on the unseen mass."""

    def intervals(self, model: "EmpiricalModel", rows: NDArray[np.int64] | None = None) -> Intervals:
        """Return the sets of `rows` [n] in this order; None: of all R rows."""
        from gosprl import _kernels

        ptr, succ, count, first = model.stored(rows)
        visits = np.array(model.visits if rows is None else model.visits[rows])
        lower, upper = np.empty((2, len(succ)))
        each, total = np.empty((2, len(visits)))
        log_kl, log_one, log_a, log_b = self.logarithms(model)
        scale = float(self.scale)
        if unlimited(model):
            log_row = row_logarithms(model, rows)
            _kernels.weighted_kl_intervals(ptr, count, visits, log_row, log_kl, scale, lower, upper)
            _kernels.unseen_caps(ptr, first, visits, 0, log_row, log_a, log_b, scale, total)
        else:
            _kernels.kl_intervals(
                *(ptr, count, first, visits, model.num_outcomes or 0, model.closed, log_kl, log_one, log_a, log_b),
                *(scale, _kl_table(log_kl, scale), lower, upper, each, total),
            )
        unknown = unknown_of(model, rows)
        if unknown is not None:
            limited = not unlimited(model)
            log_row = np.zeros(len(visits)) if limited else row_logarithms(model, rows)
            until = last_first(model, rows, ptr, first, visits + unknown)
            _kernels.unknown_intervals(
                *(ptr, count, visits, unknown, until, (model.num_outcomes or 0) if limited else 0, model.closed),
                *(log_row, log_kl, log_a, log_b, scale, lower, upper, each, total),
            )
        if may_grow(model):
            each = total.copy()
        return with_certain(model, rows, Intervals(ptr, succ, lower, upper, each, total))

    def logarithms(self, model: "EmpiricalModel") -> tuple[float, float, float, float]:
        """Return log(number of cases / share of delta) of kl's ends, one unseen successor, the caps (a) and (b).

        Where the number of states is unknown, the number of cases is a row's own, and left out (`row_logarithms`);
        only the first and the last are used.
        """
        if unlimited(model):
            log_kl, log_b = (-math.log(share * self.delta) for share in UNLIMITED_SHARES)
            return log_kl, math.inf, math.inf, log_b
        P = model.num_pairs_bound or len(model.rows)  # a closed model may have no bound, and needs none
        M = model.num_candidates if model.closed else P * (model.num_outcomes or 0)
        log_kl = math.log(M / (self.delta if model.closed else SHARES[0] * self.delta))
        log_one, log_a, log_b = (math.log(P / (share * self.delta)) for share in SHARES[1:])
        return log_kl, log_one, log_a, log_b


@lru_cache(maxsize=16)
def _kl_table(log_kl: float, scale: float) -> NDArray[np.float64]:
    """Return the table [n, k] of upper ends for k of n visits, n <= TABULATED, still empty: kernels fill it on demand.

    The two arguments determine its entries, so sets with equal arguments share one table.
    """
    return np.full((TABULATED + 1, TABULATED + 1), -1.0)
