"""All strategies on the same gridworld and seeds, and one of your own.

A strategy says what to do until when: here, a policy for every state, kept until a count doubles. Prints the mean steps
of each until every pair was sampled, and what that is of the fluid limit, a lower bound on the expected steps of any.
"""

import sys
from dataclasses import dataclass

import numpy as np

import gosprl
from gosprl.strategies import STRATEGIES, Attempt, Planner, Strategy, options_of

NEED = 10
SETS = {"confidence": "bernstein", "scale": 0.1}  # as in the paper's experiments, for all that take them


@dataclass(frozen=True)
class LeastTried(Strategy):
    """In every state, the action that was tried least often; `horizon` steps at a time."""

    horizon: int = 100

    def begin(self, model, need, rng):
        return LeastTriedPlanner(self.horizon, model)


class LeastTriedPlanner(Planner):
    """The same at work in one run."""

    def __init__(self, horizon, model):
        self.horizon, self.model = horizon, model

    def attempt(self, s, t):
        N, ptr = self.model.visits, self.model.rows.ptr
        policy = np.array([ptr[x] + np.argmin(N[ptr[x] : ptr[x + 1]]) for x in range(self.model.num_states)])
        nowhere = np.zeros(self.model.num_states, dtype=bool)
        return Attempt(policy, goals=nowhere, limit=N + np.maximum(N, 1) - 1, horizon=self.horizon)


def mean_steps(mdp, strategy, seeds, **options):
    """`strategy` is a name or an object: objects hold options only, so all runs can share one."""
    return np.mean([gosprl.collect(mdp, NEED, strategy=strategy, seed=seed, **options).steps for seed in seeds])


def main(seed=0, runs=5):
    mdp, seeds = gosprl.envs.make("room20"), range(seed, seed + runs)
    limit = gosprl.fluid_limit(mdp, NEED)
    rows = {}
    for name in STRATEGIES:
        takes_sets = name != "guarded" and set(SETS) <= set(options_of(name))
        rows[name] = mean_steps(mdp, name, seeds, **(SETS if takes_sets else {}))
    rows["least tried, our own"] = mean_steps(mdp, LeastTried(), seeds)
    print(f"{NEED} samples of every pair of room20; no strategy takes fewer than {limit:,.1f} steps on average\n")
    print(f"   {'strategy':<22}{'mean steps':>12}{'x limit':>10}")
    for name, steps in sorted(rows.items(), key=lambda row: row[1]):
        print(f"   {name:<22}{steps:>12,.1f}{steps / limit:>10.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
