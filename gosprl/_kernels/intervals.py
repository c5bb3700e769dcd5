"""Ends of confidence intervals from Kullback-Leibler divergences (see `gosprl.sets.intervals`)."""

import math

from gosprl._kernels._jit import jit


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

    first
        Number of the visit at which each known successor first appeared, increasing; 0: unknown, and the bounds that
        use it are skipped.
    """
    known = len(first)
    least = math.inf
    choose = 0.0
    for i in range(1, known + 1):
        choose += math.log((S - i + 1) / i)
        if i == known:
            last = n
        elif first[i] > 0:
            last = first[i] - 1
        else:
            continue
        union = math.log(i * (i + 1.0))
        least = min(least, (choose + union + log_a) / last)
        if first[i - 1] > 0 and last > first[i - 1]:
            least = min(least, (union + log_b) / (last - first[i - 1]))
    return -math.expm1(-scale * least)


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
def kl_means(total, visits, budget, lower, upper):
    """Fill the ends of {q : n kl(total/n, q) <= budget}, for means of n numbers in [0, 1]; [0, 1] if n = 0."""
    for i in range(len(visits)):
        n = visits[i]
        lower[i], upper[i] = 0.0, 1.0
        if n > 0:
            k = min(max(total[i], 0.0), float(n))
            upper[i] = kl_upper(k, float(n), budget[i])
            lower[i] = 1.0 - kl_upper(n - k, float(n), budget[i])
