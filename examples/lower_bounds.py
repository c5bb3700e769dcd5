"""What no collector can beat: the paper's lower bounds, and the steps that collecting takes on the MDPs they are about.

Prints, for three constructions, a histogram of the steps of many runs that even know the dynamics, with the bound: so
many steps are taken at least half of the time, whatever the collector does. And how often that was, and the mean beside
the fluid limit, which no collector can beat on average.
"""

import sys

import numpy as np

import gosprl
from gosprl import theory
from gosprl.envs.lower_bounds import farthest_pair

BINS, WIDTH = 9, 40


def histogram(steps, bound):
    """Print how often so many steps were taken; one of the bins begins at the bound, those before are light."""
    width = (max(steps.max(), bound) + 1 - min(steps.min(), bound)) / BINS
    first, last = np.floor((min(steps.min(), bound) - bound) / width), np.ceil((steps.max() + 1 - bound) / width)
    edges = bound + width * np.arange(first, last + 1)
    count = np.histogram(steps, edges)[0]
    for low, n in zip(edges, count, strict=False):
        bar = ("█" if low >= bound else "░") * round(WIDTH * n / count.max())
        mark = "◄ bound" if low == bound else ""
        print(f"   {low:>6,.0f}  {bar:<{WIDTH}} {mark}".rstrip())


def simulate(title, mdp, need, bound, seed, runs):
    """Print what collecting `need` [S] takes; dynamics=mdp: nothing has to be learnt."""
    print(f"{title}: {need.sum()} samples on {mdp.name}, {runs} runs\n")
    steps = np.array(
        [gosprl.collect(mdp, need, strategy="gosprl", dynamics=mdp, seed=seed + i).steps for i in range(runs)]
    )
    histogram(steps, bound)
    print(f"\n   at least {bound:,.0f} steps: {np.mean(steps >= bound):.0%} of the runs; 50% or more is promised")
    mean, off, limit = steps.mean(), steps.std() / runs**0.5, gosprl.fluid_limit(mdp, need)
    print(f"   mean {mean:,.0f} ± {off:,.0f}, fluid limit {limit:,.0f}\n")


def main(seed=0, runs=60):
    q, B = 0.1, 5
    chain = gosprl.envs.make("two_state_chain", q=q)
    bound = theory.lower_bound_two_state_chain(q, B)
    simulate("Few ways in", chain, np.array([0, B]), bound, seed, runs)

    epsilons, need = [0.5, 0.2, 0.1], [11, 11, 11]
    wheel = gosprl.envs.make("epsilon_wheel", epsilons=epsilons)
    bound = theory.lower_bound_epsilon_wheel(epsilons, need)
    simulate("Each rim state in its own time", wheel, np.array([0, *need]), bound, seed, runs)

    river, B = gosprl.envs.make("riverswim6"), 12
    _, far = farthest_pair(river)
    changed = gosprl.envs.make("one_state_modification", mdp=river)
    bound = theory.lower_bound_one_state_modification(river, B)
    simulate("Back to the source each time", changed, B * np.eye(6, dtype=int)[far], bound, seed, runs)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
