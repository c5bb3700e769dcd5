"""Confidence sets of your own: Hoeffding's intervals, which hold for all pairs, next states and times at once.

A `Confidence` turns counts into intervals [lower, upper] for the next states seen, and caps on the others. Prints the
steps of Algorithm 1 with these sets beside the built-in ones, how wide they are, and whether the truth is in them.
"""

import sys
from dataclasses import dataclass

import numpy as np

import gosprl


@dataclass(frozen=True)
class Hoeffding(gosprl.Confidence):
    """|p - p_hat| <= sqrt(log(2 S P N (N + 1) / delta) / (2 N)), with S states, P pairs, N visits.

    One entry at one N exceeds that with probability at most delta / (S P N (N + 1)): over all, these add up to delta.
    """

    delta: float = 0.1

    def intervals(self, model, rows=None):
        ptr, succ, count, _ = model.stored(rows)
        N = model.visits if rows is None else model.visits[rows]
        n = np.maximum(N, 1)
        radius = np.sqrt(np.log(2 * model.num_states * len(model.rows) * n * (n + 1) / self.delta) / (2 * n))
        radius = np.where(N > 0, np.minimum(radius, 1), 1)  # a pair never visited may lead anywhere
        p_hat, off = count / np.repeat(n, np.diff(ptr)), np.repeat(radius, np.diff(ptr))
        lower, upper = np.maximum(p_hat - off, 0), np.minimum(p_hat + off, 1)
        return gosprl.Intervals(ptr, succ, lower, upper, each=radius, total=np.ones(len(n)))


def hold(mdp, sets):
    """Whether the true dynamics are in the sets."""
    for row in range(len(mdp.rows)):
        seen = slice(sets.ptr[row], sets.ptr[row + 1])
        truth = np.zeros(mdp.num_states)
        truth[mdp.succ[mdp.ptr[row] : mdp.ptr[row + 1]]] = mdp.prob[mdp.ptr[row] : mdp.ptr[row + 1]]
        inside = (sets.lower[seen] <= truth[sets.succ[seen]]) & (truth[sets.succ[seen]] <= sets.upper[seen])
        unseen = np.delete(truth, sets.succ[seen])
        if not (inside.all() and np.all(unseen <= sets.each[row]) and unseen.sum() <= sets.total[row]):
            return False
    return True


def main(seed=0, need=10, runs=5):
    mdp = gosprl.envs.make("riverswim6")
    print(f"{need} samples of every pair of {mdp.name} by Algorithm 1, means of {runs} runs\n")
    print(f"   {'sets':<12}{'steps':>10}{'mean width':>12}   {'truth inside':<14}guarantee")
    for name, confidence in (("Hoeffding", Hoeffding(0.1)), ("bernstein", "bernstein"), ("kl", "kl")):
        options = {"strategy": "gosprl", "confidence": confidence}
        results = [gosprl.collect(mdp, need, seed=seed + i, **options) for i in range(runs)]
        family = {"bernstein": gosprl.Bernstein(0.1), "kl": gosprl.KL(0.1)}.get(name, confidence)
        sets = [family.intervals(result.model) for result in results]
        steps = np.mean([result.steps for result in results])
        width = np.mean([np.mean(each.upper - each.lower) for each in sets])
        inside = sum(hold(mdp, each) for each in sets)
        print(f"   {name:<12}{steps:>10,.0f}{width:>12.3f}   {f'{inside} of {runs}':<14}{results[0].guarantee}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
