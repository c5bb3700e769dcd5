"""Ends of confidence intervals from Kullback-Leibler divergences (see `gosprl.sets.intervals`)."""

import math

import numpy as np

from gosprl._kernels._jit import jit

MANY = 2**62  # more visits than any row will have


@jit
def kl_upper(k, n, budget):
    """Return the upper end of {q : n kl(k/n, q) <= budget}; k and n are floats.

    Newton's method for a convex increasing function, from a point at or above the root (the smaller of two upper
    bounds): the iterates decrease and stay at or above the root, so the interval is never too narrow.
    """
    x = budget / n
    if k == 0:
        return -math.expm1(-x)
    if k == n:
        return 1.0
    p = k / n
    if x < 1e-12:  # too little for the logarithms: what follows from kl(p, q) >= (q - p)^2 / (2 q (1 - p)) for q > p
        y = x * (1 - p)
        return min(p + y + math.sqrt(y * (y + 2 * p)), 1.0)
    entropy = p * math.log(p) + (1 - p) * math.log(1 - p)
    q = min(p + math.sqrt(x / 2), 1 - math.exp((entropy - x) / (1 - p)))
    if q <= p:
        return p
    for _ in range(60):
        if q >= 1:
            return 1.0
        excess = entropy - p * math.log(q) - (1 - p) * math.log(1 - q) - x
        step = excess * q * (1 - q) / (q - p)
        if step <= 1e-15:
            break
        q -= step
        if q <= p:
            return p
    return q


@jit
def unseen_end(n, log_one, scale):
    """Return a bound on the probability of each successor not yet seen in n visits; log_one = L = log(P / delta_0).

    sum_x p(x) 1{x not seen} / (1 - p(x))^n is a martingale of mean 1, so with probability 1 - delta_0 / P it stays
    below P / delta_0. Then n log(1 / (1 - p(x))) < L + log(1 / p(x)) for each unseen x: with the weight p(x) there is
    log(1 / p(x)) where a union bound over all states has log S. So either p(x) <= q = 1 - exp(-L / n), or the right
    side is at most L + log(1 / q) and p(x) <= 1 - exp(-(L + log(1 / q)) / n), which is at least q.
    """
    q = -math.expm1(-log_one / n)
    return -math.expm1(-scale * (log_one - math.log(q)) / n)


@jit
def unseen_cap(first, n, S, log_a, log_b, scale):
    """Return a cap on the mass of all successors not yet seen in n visits: the least of the bounds at earlier visits.

    While i successors are known, the mass of the others is at most 1 - exp(-x) with
    (a) x = [log C(S, i) + log(i (i + 1)) + log(P / delta_a)] / visits,   log_a = log(P / delta_a),
    (b) x = [log(i (i + 1)) + log(P / delta_b)] / visits since the i-th appeared,   log_b = log(P / delta_b).
    The unseen mass never increases, so all these bounds hold after n visits.

    S
        The number of possible successors; 0: unknown, and (a) is left out.
    first
        Number of the visit at which each known successor first appeared, increasing; -m: at visit m or before, so that
        it is m at most in (b); 0: unknown. The bounds that need more than that are skipped.
    """
    known = len(first)
    least = math.inf
    choose = 0.0
    for i in range(1, known + 1):
        if S > 0:
            choose += math.log((S - i + 1) / i)
        if i == known:
            last = n
        elif first[i] > 0:
            last = first[i] - 1
        else:
            continue
        union = math.log(i * (i + 1.0))
        if S > 0:
            least = min(least, (choose + union + log_a) / last)
        if first[i - 1] != 0 and last > abs(first[i - 1]):
            least = min(least, (union + log_b) / (last - abs(first[i - 1])))
    return -math.expm1(-scale * least)


@jit
def unseen_caps(ptr, first, visits, S, log_row, log_a, log_b, scale, total):
    """Fill `unseen_cap` of rows with levels of their own: log_row is added to log_a and log_b."""
    for r in range(len(visits)):
        a, b = log_row[r] + log_a, log_row[r] + log_b
        total[r] = unseen_cap(first[ptr[r] : ptr[r + 1]], visits[r], S, a, b, scale)


@jit(allocates=True)
def visits_for_cap(ptr, first, visits, S, log_row, log_a, log_b, scale, x, out):
    """Fill the visits at which `unseen_cap` is x at most, if no other successor appears; 0 < x < 1.

    A row never visited is taken to see its first successor at its first visit. The division gives the number up to
    rounding; the cap itself, as it will be computed, then decides.
    """
    only = np.ones(1, dtype=np.int64)
    target = -math.log1p(-x) / scale
    for r in range(len(visits)):
        seen = first[ptr[r] : ptr[r + 1]] if visits[r] > 0 else only
        known, least = len(seen), max(visits[r], 1)
        a, b = log_row[r] + log_a, log_row[r] + log_b
        if visits[r] > 0 and unseen_cap(seen, least, S, a, b, scale) <= x:
            out[r] = visits[r]
            continue
        union = math.log(known * (known + 1.0))
        need = math.inf
        if S > 0:
            choose = 0.0
            for i in range(1, known + 1):
                choose += math.log((S - i + 1) / i)
            need = (choose + union + a) / target
        if seen[known - 1] != 0:
            need = min(need, abs(seen[known - 1]) + (union + b) / target)
        if not need < MANY:  # so small an x, or no order of appearance to go by
            out[r] = np.int64(MANY)
            continue
        n = max(least, np.int64(math.ceil(need)) - 2)
        while n < MANY and unseen_cap(seen, n, S, a, b, scale) > x:
            n += 1 + (n >> 50)
        out[r] = n


@jit
def kl_end(table, k, n, log_kl, scale):
    """Return `kl_upper` with the budget of n visits, tabulated for small n.

    table [n, k] is filled on demand; a negative entry is not computed yet.
    """
    if n < len(table) and table[n, k] >= 0:
        return table[n, k]
    end = kl_upper(float(k), float(n), scale * (log_kl + 0.5 * math.log(math.pi * n + 1)))
    if n < len(table):
        table[n, k] = end
    return end


@jit
def kl_intervals(
    ptr, count, first, visits, S, closed, log_kl, log_one, log_a, log_b, scale, table, lower, upper, each, total
):
    """Fill the ends and caps of rows with the given counts; log_kl = log(M / delta_1), M the possible transitions.

    `table` is that of `kl_end` for this log_kl and scale. If `closed`, only the stored successors are possible.
    """
    for r in range(len(visits)):
        n = visits[r]
        each[r] = total[r] = 0.0 if closed else 1.0
        if closed and ptr[r + 1] - ptr[r] == 1:
            lower[ptr[r]] = upper[ptr[r]] = 1.0
        elif n == 0:
            for j in range(ptr[r], ptr[r + 1]):
                lower[j], upper[j] = 0.0, 1.0
        else:
            for j in range(ptr[r], ptr[r + 1]):
                lower[j] = 1.0 - kl_end(table, n - count[j], n, log_kl, scale)
                upper[j] = kl_end(table, count[j], n, log_kl, scale)
            if not closed:
                each[r] = unseen_end(n, log_one, scale)
                total[r] = unseen_cap(first[ptr[r] : ptr[r + 1]], n, S, log_a, log_b, scale)


@jit
def weighted_kl_ends(k, n, budget, weight):
    """Return the two ends of {q : n kl(k/n, q) <= budget + weight log(1/q)}; floats, 0 <= weight <= 1 <= k <= n.

    With h(q) = -j log q - (n - k) log(1 - q), j = k - weight, the condition is h(q) <= a constant: that of a kl ball
    around j/m for m = n - weight visits, so the set is an interval, and these are its exact ends. It contains k/n.
    """
    j, m = k - weight, n - weight
    if m <= 0:
        return 0.0, 1.0
    budget += weight * math.log(n / k) - m * math.log1p(-weight / n)
    if j > 0:
        budget += j * math.log1p(-weight / k)
    return min(1.0 - kl_upper(n - k, m, budget), k / n), max(kl_upper(j, m, budget), k / n)


@jit
def weighted_kl_intervals(ptr, count, visits, log_row, log_kl, scale, lower, upper):
    """Fill the ends of seen successors where the number of states is unknown; log_row + log_kl = log(1 / level).

    Above scale 1 the sets grow with it, but log(1/q) keeps the weight 1, for which there is an interval.
    """
    weight = min(scale, 1.0)
    for r in range(len(visits)):
        n = visits[r]
        budget = scale * (log_row[r] + log_kl + 0.5 * math.log(math.pi * n + 1))
        for j in range(ptr[r], ptr[r + 1]):
            if n == 0:
                lower[j], upper[j] = 0.0, 1.0
            else:
                lower[j], upper[j] = weighted_kl_ends(float(count[j]), float(n), budget, weight)


@jit
def kl_means(total, visits, budget, lower, upper):
    """Fill the ends of {q : n kl(total/n, q) <= budget}, for means of n numbers in [0, 1]; [0, 1] if n = 0."""
    for i in range(len(visits)):
        n = visits[i]
        lower[i], upper[i] = 0.0, 1.0
        if n > 0:
            k = min(max(total[i], 0.0), float(n))
            upper[i] = kl_upper(k, float(n), budget[i])
            lower[i] = 1.0 - kl_upper(n - k, float(n), budget[i])
