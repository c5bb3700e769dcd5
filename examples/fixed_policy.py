"""How long until a policy that never changes has met a need? In an ergodic chain its stationary law and gap tell.

Prints how the time of a random walk is shared among the states of a river, and the steps after which it has met a need
of each state: proved beforehand, as it happened, and beside collecting the same with a plan.
"""

import sys

import numpy as np

import gosprl
from gosprl import theory

WIDTH = 40


def main(seed=0, states=6, need=10, delta=0.1, runs=30):
    river = gosprl.envs.make("riverswim", states=states)
    chain = theory.induced_chain(river, np.full((states, 2), 0.5))
    wanted = np.full(states, need)

    walks, collected = (
        [gosprl.collect(river, wanted, strategy=strategy, seed=seed + i).steps for i in range(runs)]
        for strategy in ("random", "guarded")
    )
    proved = theory.steps_until_met(chain, wanted, delta)
    least = np.maximum(theory.visits_at_least(chain, proved, delta), 0)

    print(f"A random walk in {river.name}, left or right by a fair coin: its share of time in each state, and the")
    print(f"visits that {proved:,} steps bring at least, with probability {1 - delta:g}\n")
    for s, share in enumerate(chain.law):
        print(f"   {s}  {'█' * round(WIDTH * share / chain.law.max()) or '▏':<{WIDTH}}{share:>8.3%}{least[s]:>12,.0f}")
    print(f"\n   spectral gap {chain.gap:.3g}, {'' if chain.reversible else 'not '}reversible\n")

    print(f"   steps until every state has {need} samples")
    for name, steps in (
        (f"random walk: proved, with probability {1 - delta:g}", proved),
        (f"random walk: enough for {1 - delta:.0%} of {runs} runs", np.quantile(walks, 1 - delta)),
        (f"random walk: mean of {runs} runs", np.mean(walks)),
        (f"gosprl: mean of {runs} runs", np.mean(collected)),
        ("fluid limit", gosprl.fluid_limit(river, wanted)),
    ):
        print(f"   {name:<48}{steps:>12,.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
