"""A requirement of your own that adapts: as many samples of a pair as the standard error of its mean reward takes.

A `Requirement` looks at the counts before every attempt and says how many samples are needed in total. Prints for every
pair the samples and the standard error, and the steps beside those of the same number of samples everywhere.
"""

import sys

import numpy as np

import gosprl

FIRST = 20  # samples of every pair, to estimate how much its reward varies


class Precise(gosprl.Requirement):
    """Samples of every pair until the standard error of its mean reward is at most `error`."""

    def __init__(self, mdp, error):
        self.error = error
        self.pair = np.full(len(mdp.rows), FIRST)
        self.state = np.zeros(mdp.num_states, dtype=np.int64)  # nothing is needed of a state with any action

    def update(self, model, rows):
        variance = standard_errors(model)[rows] ** 2 * model.visits[rows]
        self.pair[rows] = np.maximum(FIRST, np.ceil(variance / self.error**2))
        return rows  # those whose need may have changed


def standard_errors(model):
    """[R] standard deviation of the rewards over the square root of their number."""
    n = np.maximum(model.visits, 1)
    mean = model.reward_sum / n
    return np.sqrt(np.maximum(model.reward_sq / n - mean**2, 0) / n)


def main(seed=0, error=0.05):
    means = np.random.default_rng(seed).choice([0, 0.05, 0.5, 1], (6, 2))
    river = gosprl.envs.make("riverswim6").with_rewards(means, noise="bernoulli")
    result = gosprl.collect(river, Precise(river, error), seed=seed)
    model, off = result.model, standard_errors(result.model)
    print(f"A standard error of at most {error:g} for every pair took {result.steps:,} steps, stop: {result.stop}\n")
    print("   state  action     mean   learnt   samples   standard error")
    for row, (s, a) in enumerate(zip(model.rows.state, model.rows.action, strict=True)):
        learnt, n = model.reward_sum[row] / model.visits[row], model.visits[row]
        print(f"   {s:>5}  {('left', 'right')[a]:<7}{means[s, a]:>8.2f}{learnt:>9.3f}{n:>10,}{off[row]:>17.4f}")
    worst = int(np.ceil(0.25 / error**2))  # the largest variance of a reward in [0, 1] is 1/4
    fixed = gosprl.collect(river, worst, seed=seed)
    print(f"\n   {worst} samples of every pair, which would do whatever the rewards are: {fixed.steps:,} steps")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
