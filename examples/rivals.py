"""All strategies on the same gridworld and seeds, and one of your own.

A strategy says what to do until when: here, a policy for every state, kept until a count doubles. Prints the mean steps
of each until every pair was sampled, and what that is of the fluid limit, which no strategy beats on average.
"""

import sys

import numpy as np

import gosprl
from gosprl.strategies import STRATEGIES, Attempt

NEED = 10
SETS = {"confidence": "bernstein", "scale": 0.1}  # as in the paper's experiments, for all that take them


class LeastTried:
    """In every state, the action that was tried least often."""

    guarantee = "none"

    def attempt(self, model, need, s, t, rng):
        N, ptr = model.visits, model.rows.ptr
        policy = np.array([ptr[x] + np.argmin(N[ptr[x] : ptr[x + 1]]) for x in range(model.num_states)])
        nowhere = np.zeros(model.num_states, dtype=bool)
        return Attempt(policy, goals=nowhere, limit=N + np.maximum(N, 1) - 1, horizon=100)


def mean_steps(mdp, strategy, seeds, **options):
    """`strategy` is a name, or makes a new object for each run."""
    runs = []
    for seed in seeds:
        one = strategy if isinstance(strategy, str) else strategy()
        runs.append(gosprl.collect(mdp, NEED, strategy=one, seed=seed, **options).steps)
    return np.mean(runs)


def main(seed=0, runs=5):
    mdp, seeds = gosprl.envs.make("room20"), range(seed, seed + runs)
    limit = gosprl.fluid_limit(mdp, NEED)
    rows = {}
    for name, kind in STRATEGIES.items():
        takes_sets = name != "guarded" and set(SETS) <= set(kind.__dataclass_fields__)
        rows[name] = mean_steps(mdp, name, seeds, **(SETS if takes_sets else {}))
    rows["least tried, our own"] = mean_steps(mdp, LeastTried, seeds)
    print(f"{NEED} samples of every pair of room20; no strategy takes fewer than {limit:,.1f} steps on average\n")
    print(f"   {'strategy':<22}{'mean steps':>12}{'x limit':>10}")
    for name, steps in sorted(rows.items(), key=lambda row: row[1]):
        print(f"   {name:<22}{steps:>12,.1f}{steps / limit:>10.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
