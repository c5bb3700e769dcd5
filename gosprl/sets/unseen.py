"""How many visits it takes until the successors that a row may still hide are known to be unlikely."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.bernstein import Bernstein
from gosprl.sets.intervals import Confidence, row_logarithms, unlimited
from gosprl.sets.kl import KL
from gosprl.sets.unknown import kl_end_of_one, last_first, unknown_of, visits_with_unknown


def visits_for_unseen(
    model: EmpiricalModel, family: Confidence, rows: NDArray[np.int64], x: float
) -> NDArray[np.int64]:
    """[n] the visits at which each row's cap on its unseen mass is x at most, if no new successor appears until then.

    The least such number: with one visit less, `family.intervals(model, rows).total` is above x. Rows for which it is
    x at most already need no more: their present visits. A row never visited is taken to see one successor only.

    Parameters
    ----------
    model
        The counts.
    family
        A `KL`; or a `Bernstein` where the number of states is unknown, since otherwise it has no such cap.
    rows
        [n] int64.
    x
        Above 0, below 1.

    Raises
    ------
    InputError
        x is out of range, or the family has no cap on the unseen mass.
    """
    from gosprl import _kernels

    if not 0 < x < 1:
        raise InputError(f"unseen: expected a probability above 0 and below 1, got {x!r:.80}")
    visits = np.array(model.visits[rows])
    if model.closed:  # no successor is unknown
        return visits
    if isinstance(family, KL):
        _, _, log_a, log_b = family.logarithms(model)
    elif isinstance(family, Bernstein) and unlimited(model):
        log_a, log_b = math.inf, family.log_cap
    else:
        raise InputError(
            f"unseen: {type(family).__name__} sets have no cap on the mass of unseen successors here; use "
            'confidence="kl"'
        )
    ptr, _, _, first = model.stored(rows)
    log_row = row_logarithms(model, rows) if unlimited(model) else np.zeros(len(rows))
    out = np.empty(len(rows), dtype=np.int64)
    S = 0 if unlimited(model) else model.num_outcomes or 0
    scale = float(family.linear if isinstance(family, Bernstein) else family.scale)
    _kernels.visits_for_cap(ptr, first, visits, S, log_row, log_a, log_b, scale, float(x), out)
    unknown = unknown_of(model, rows)
    if unknown is not None:
        until = last_first(model, rows, ptr, first, visits + unknown)
        for i in np.flatnonzero((unknown > 0) & (visits > 0)).tolist():
            m, logs = int(unknown[i]), (log_row[i] + log_a, log_row[i] + log_b)
            known, places = int(ptr[i + 1] - ptr[i]), int(visits[i]) + m
            one = _end_of_one(family, model, S, float(log_row[i]))
            out[i] = visits_with_unknown(known, m, places, int(until[i]), S, one, logs, scale, x) - m
    return np.where(model.certain[rows], visits, out)


def _end_of_one(family: KL | Bernstein, model: EmpiricalModel, S: int, log_row: float) -> Callable[[int], float]:
    """Return the upper end of a successor seen once, as a function of the row's places."""
    if isinstance(family, Bernstein):
        return lambda n: float(family.end_of_one(np.array([float(n)]), np.array([log_row]))[0])
    log_kl = log_row + family.logarithms(model)[0]
    return lambda n: kl_end_of_one(n, S, log_kl, float(family.scale))
