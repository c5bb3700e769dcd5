"""Estimate the mean reward of every state-action pair: how often each field yields gold, by digging here and there.

Prints heat maps of a gridworld, the darker the more: the true means, those learnt, and the samples of each cell, fewer
where the yield is nearly sure; then what the means are certified to be off by at most, and what they are off by.
"""

import sys

import numpy as np

import gosprl

SHADES = " ░▒▓█"
ROWS, COLUMNS = 6, 12


def heat(values):
    """Lines of a heat map of values in [0, 1], one for each state."""
    shade = np.round(np.asarray(values) * (len(SHADES) - 1)).astype(int).reshape(ROWS, COLUMNS)
    return ["│" + "".join(2 * SHADES[x] for x in row) + "│" for row in shade]


def gold(rows, columns):
    """[S] two hills of gold."""
    i, j = np.divmod(np.arange(rows * columns), columns)
    hills = [np.exp(-((i - y) ** 2) / 3 - (j - x) ** 2 / 8) for y, x in ((1.5, 2.5), (4, 9))]
    return np.maximum(*hills)


def main(seed=0, epsilon=0.15):
    means = gold(ROWS, COLUMNS)
    field = gosprl.envs.make("open_grid", rows=ROWS, columns=COLUMNS).with_rewards(means, noise="bernoulli")
    estimate = gosprl.applications.estimate_rewards(field, epsilon, seed=seed)
    print(f"{estimate}\n")

    samples = estimate.collected.counts.sum(axis=1)
    titles = ["true means", "learnt", f"samples, {samples.min()} to {samples.max()} a cell"]
    print("".join(f"   {title:<{2 * COLUMNS + 2}}" for title in titles).rstrip())
    pictures = [heat(means), heat(estimate.rewards.mean(axis=1)), heat(samples / samples.max())]
    for parts in zip(*pictures, strict=True):
        print("   " + "   ".join(parts))

    error = np.abs(estimate.rewards - means[:, None])
    within = np.sum(error <= estimate.radius)
    print(f"\n   {'certified: off by at most':<28}{estimate.radius.max():.3f}")
    print(f"   {'in truth, at worst':<28}{error.max():.3f}")
    print(f"   {'means within their radius':<28}{within} of {error.size}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
