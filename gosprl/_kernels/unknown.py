"""Ends and caps of rows with unknown places: what holds for every outcome there (docs/theory/fleet.md)."""

import math

from gosprl._kernels._jit import jit
from gosprl._kernels.intervals import kl_upper, weighted_kl_ends


@jit
def hidden_cap(known, m, n, until, S, log_a, log_b, scale):
    """Return a cap on the mass of what was not seen at any place, the m unknown ones included.

    Between known and known + m successors were seen at all n places, and none of them appeared first after place
    `until`: the bounds (a) and (b) of `unseen_cap`, for the worst of these numbers.
    """
    worst = -math.inf
    choose = 0.0
    for i in range(1, known + m + 1):
        if S > 0:
            if i > S:
                break
            choose += math.log((S - i + 1) / i)
        if i >= known:
            worst = max(worst, choose + math.log(i * (i + 1.0)))
    least = (worst + log_a) / n if S > 0 else math.inf
    if n > until:
        most = known + m
        least = min(least, (math.log(most * (most + 1.0)) + log_b) / (n - until))
    return -math.expm1(-scale * least)


@jit
def unknown_total(known, m, n, until, S, one, log_a, log_b, scale):
    """Return a cap on the mass of all successors not seen at a known place; m of n places are unknown, m >= 1.

    Successors at unknown places have, together, at most m times the upper end `one` of a successor seen once: the end
    for c of n is at most c times that for 1 of n. The rest is what `hidden_cap` says.
    """
    if known == 0:
        return 1.0
    return min(1.0, m * one + hidden_cap(known, m, n, until, S, log_a, log_b, scale))


@jit
def unknown_intervals(
    ptr, count, visits, unknown, until, S, closed, log_row, log_kl, log_a, log_b, scale, lower, upper, each, total
):
    """Overwrite the kl ends and caps of the rows with unknown places; the others stay as they are.

    S
        The number of possible successors; 0: not known, and seen ones have the weighted ends.
    until
        [n] no successor appeared first after this place; the last unknown place is not after it either.
    log_row
        [n] added to all other logarithms.
    """
    for r in range(len(visits)):
        m = unknown[r]
        begin, end = ptr[r], ptr[r + 1]
        if m == 0 or (closed and end - begin == 1):
            continue
        n = visits[r] + m
        budget = scale * (log_row[r] + log_kl + 0.5 * math.log(math.pi * n + 1))
        weight = min(scale, 1.0) if S == 0 and not closed else 0.0
        for j in range(begin, end):
            k = count[j]
            if weight > 0:
                lower[j] = weighted_kl_ends(float(k), float(n), budget, weight)[0] if k > 0 else 0.0
                upper[j] = weighted_kl_ends(float(k + m), float(n), budget, weight)[1]
            else:
                lower[j] = 1.0 - kl_upper(float(n - k), float(n), budget)
                upper[j] = kl_upper(float(k + m), float(n), budget)
        if closed:
            continue
        one = weighted_kl_ends(1.0, float(n), budget, weight)[1] if weight > 0 else kl_upper(1.0, float(n), budget)
        known = end - begin if visits[r] > 0 else visits[r]  # of an open row, every stored successor was seen
        total[r] = unknown_total(known, m, n, until[r], S, one, log_row[r] + log_a, log_row[r] + log_b, scale)
        each[r] = total[r] if weight > 0 else min(kl_upper(float(m), float(n), budget), total[r])
