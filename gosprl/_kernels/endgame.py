"""The last samples with known dynamics: the best collector, level by level of what is missing."""

from gosprl._kernels._jit import jit
from gosprl.collecting.rules import NO_ROW


@jit
def level_after(level, row, item, size, stride):
    """Return the level after a sample of a row: lower if the row is an item of which something is missing."""
    i = item[row]
    if i >= 0 and level // stride[i] % size[i] > 0:
        return level - stride[i]
    return level


@jit
def best_sample(mdp, enabled, cost, item, size, stride, values, level, s):
    """Return (the row of s with the least expected cost to level 0, this cost); NO_ROW if all rows stay for ever.

    Staying in the same state and level is solved for: c + p v = v gives v = c / (1 - p).
    """
    row_ptr, ptr, succ, prob = mdp
    best, least = NO_ROW, 0.0
    for row in range(row_ptr[s], row_ptr[s + 1]):
        if not enabled[row]:
            continue
        after = level_after(level, row, item, size, stride)
        total, stays = cost[row], 0.0
        for k in range(ptr[row], ptr[row + 1]):
            if after == level and succ[k] == s:
                stays += prob[k]
            else:
                total += prob[k] * values[after, succ[k]]
        if stays >= 1.0 - 1e-12:
            continue
        total /= 1.0 - stays
        if best == NO_ROW or total < least:
            best, least = row, total
    return best, least


@jit
def solve_levels(mdp, enabled, cost, item, size, stride, values, policy, precision, sweeps):
    """Write the least expected costs [levels, S] and their rows; return whether all levels converged.

    `mdp` is (row_ptr, ptr, succ, prob). Level 0 costs nothing. Values of a level begin at the largest of a level below,
    which they cannot be less than, and rise. Sweeps go up and down the states in turns.
    """
    levels, S = values.shape
    for level in range(1, levels):
        for s in range(S):
            least = 0.0
            for i in range(len(size)):
                if level // stride[i] % size[i] > 0:
                    least = max(least, values[level - stride[i], s])
            values[level, s] = least
        change, sweep = precision + 1.0, 0
        while change > precision:
            if sweep == sweeps:
                return False
            change = 0.0
            for k in range(S):
                s = k if sweep % 2 == 0 else S - 1 - k
                row, value = best_sample(mdp, enabled, cost, item, size, stride, values, level, s)
                if row == NO_ROW:
                    return False
                change = max(change, value - values[level, s])
                values[level, s] = value
                policy[level, s] = row
            sweep += 1
    return True
