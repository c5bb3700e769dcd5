"""A strategy of your own: head for the state that lacks the most samples, and take what is needed on the way.

A `Strategy` has the options, as a frozen dataclass; for each run it makes a `Planner`, which says what to do until
when. Prints the steps beside those of built-in strategies and of the fluid limit, a lower bound on their expectation.
"""

import sys
from dataclasses import dataclass

import numpy as np

import gosprl
from gosprl.strategies import Attempt, Planner, Strategy


@dataclass(frozen=True)
class LargestNeed(Strategy):
    """Head for the state that lacks the most samples, by optimistic shortest paths in sets of the given width."""

    scale: float = 0.01

    def begin(self, model, need, rng):
        return LargestNeedPlanner(self, model, need, rng)


class LargestNeedPlanner(Planner):
    """The same in one run: `model` and `need` change as samples come in."""

    may_give_up = False  # the sets leave open where a step may lead, so every state has a path

    def __init__(self, options, model, need, rng):
        self.model, self.need, self.rng = model, need, rng
        self.sets = gosprl.KL(options.delta, options.scale)

    @property
    def guarantee(self):
        return gosprl.Guarantee.none("the largest need first")

    def attempt(self, s, t):
        goal = int(np.argmax(self.need.missing_samples))
        plan = gosprl.plan(self.model, [goal], confidence=self.sets, rng=self.rng)
        limit = 2 * self.model.visits + 1  # plan again when the visits of a pair have doubled,
        goals = np.arange(self.model.num_states) == goal  # at the goal,
        horizon = 100  # after so many steps, or
        return Attempt(plan.rows, goals, limit, horizon, sample=True)  # when a state got all it needs


def main(seed=0, need=10, runs=5):
    mdp = gosprl.envs.make("four_room43")
    limit = gosprl.fluid_limit(mdp, need)
    print(f"{need} samples of every pair of {mdp.name}, means of {runs} runs; fluid limit {limit:,.1f}\n")
    print(f"   {'strategy':<24}{'steps':>10}{'x limit':>10}{'plans':>8}   guarantee")
    for name, strategy in (("largest need, our own", LargestNeed()), ("guarded", "guarded"), ("random", "random")):
        results = [gosprl.collect(mdp, need, strategy=strategy, seed=seed + i) for i in range(runs)]
        steps, plans = (np.mean([getattr(result, each) for result in results]) for each in ("steps", "attempts"))
        print(f"   {name:<24}{steps:>10,.1f}{steps / limit:>10.2f}{plans:>8,.0f}   {results[0].guarantee}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
