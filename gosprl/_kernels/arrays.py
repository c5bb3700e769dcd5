"""NumPy operations written as loops, which compile in a fraction of the time."""

import numpy as np

from gosprl._kernels._jit import jit


@jit
def count(mask):
    """Return the number of entries of a mask that are set."""
    n = 0
    for i in range(len(mask)):
        n += mask[i]
    return n


@jit(allocates=True)
def members(mask):
    """Return the indices of the entries that are set, increasing."""
    out = np.empty(count(mask), dtype=np.int64)
    n = 0
    for i in range(len(mask)):
        if mask[i]:
            out[n] = i
            n += 1
    return out


@jit
def copy_to(out, source):
    """Copy `source` to `out`, of the same length."""
    for i in range(len(out)):
        out[i] = source[i]


@jit(allocates=True)
def sort_by(keys, order):
    """Sort the indices `order` by their keys, increasing; indices with equal keys keep their order.

    Merge sort: sorted runs of doubling width are merged from one array into another and back.
    """
    n = len(order)
    source, target = order, np.empty(n, dtype=np.int64)
    width, swapped = 1, False
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            i, j = begin, middle
            for k in range(begin, end):
                if j == end or (i < middle and keys[source[i]] <= keys[source[j]]):
                    target[k] = source[i]
                    i += 1
                else:
                    target[k] = source[j]
                    j += 1
        source, target, swapped = target, source, not swapped
        width *= 2
    if swapped:
        for i in range(n):
            order[i] = source[i]
