"""Does `reach=L` hold? How often a state within L steps is given up, against the promised delta.

A run fails if it gives up any state whose true distance, the shortest expected hitting time from the state that the
walk was in then, is at most L. Under the promise a run fails with probability at most delta, so the number of failures
among n runs is at most binomial: a strategy is rejected if so many failures or more would happen with probability below
FALSE_ALARM. Systems:

    chain    two states; one is L steps from the other, exactly
    hub      five states that one rare transition each leads to; all are within L from anywhere, L from most states
    random   systems with transitions that are likely and rare, other ones in each run; L = 40

The test must reject `gosprl` with sets at scale 0.01, or it proves nothing. States beyond L that are given up are
counted too: a strategy that gives up nothing would never fail.

    python -m evidence.reach [--runs 800]      writes evidence/results/reach.md
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import binom

from gosprl import Collector, EmpiricalModel, TabularMDP
from gosprl.envs import make
from gosprl.strategies import Gosprl, Guarded, Planner, Practical, Strategy

DELTA = 0.1
FALSE_ALARM = 1e-6
STEPS = 20_000
RESULT = Path(__file__).parent / "results" / "reach.md"


def hub(states, p):
    """0 <-> 1; the second action of 0 leads to each of 2, 3, ... with probability p, else back to 0."""
    P = np.zeros((states + 2, 2, states + 2))
    P[0, 0, 1] = P[1:, :, 0] = 1
    P[0, 1, 2:], P[0, 1, 0] = p, 1 - states * p
    return TabularMDP(P)


def with_rare_transitions(rng, states=7):
    """The second action leads to 0, the first to the next state and a few others, some of them rarely."""
    P = np.zeros((states, 2, states))
    P[:, 1, 0] = 1
    P[:, 0] = 10 ** (-3 * rng.random((states, states))) * (rng.random((states, states)) < 0.5)
    P[:, 0, 0] += 0.1
    P[np.arange(states), 0, np.roll(np.arange(states), -1)] += 0.01
    P[:, 0] /= P[:, 0].sum(axis=1, keepdims=True)
    return TabularMDP(P)


def system(name, rng):
    """(MDP, need, L) of a run."""
    if name == "chain":
        return make("two_state_chain", q=0.02), np.array([3, 3]), 50.0
    if name == "hub":
        mdp = hub(5, 1 / 40)
        return mdp, np.array([200, 200, 5, 5, 5, 5, 5]), float(mdp.hitting_times()[:, 2].max())
    return with_rare_transitions(rng), rng.integers(0, 300, 7), 40.0


SYSTEMS = ("chain", "hub", "random")
STRATEGIES = {
    "gosprl": Gosprl,
    "guarded": Guarded,
    "practical": Practical,
    "gosprl, scale 0.01": lambda **options: Gosprl(scale=0.01, **options),
}


@dataclass(frozen=True)
class Watched(Strategy):
    """Another strategy, which remembers where the walk was when a state was given up."""

    watched: Strategy = None

    def begin(self, model, need, rng):
        return WatchedPlanner(self.watched.begin(model, need, rng), need)


class WatchedPlanner(Planner):
    """The same in one run."""

    def __init__(self, planner, need):
        self.planner, self.need = planner, need
        self.log = []  # (state of the walk, state given up)

    def restart(self):
        self.planner.restart()

    def account(self, steps, collected, *, walked):
        self.planner.account(steps, collected, walked=walked)

    def attempt(self, s, t):
        before = set(self.need.waived)
        answer = self.planner.attempt(s, t)
        self.log += [(s, g) for g in self.need.waived if g not in before]
        return answer


def given_up(name, strategy, seed):
    """(states within L, states beyond L) that one run gives up."""
    mdp, need, L = system(name, np.random.default_rng(seed))
    options = STRATEGIES[strategy](reach=L, delta=DELTA, successors=mdp if name == "random" else None)
    model = EmpiricalModel.over(mdp.rows)
    collector = Collector(model=model, need=need, strategy=Watched(options), seed=seed)
    collector.run(mdp, max_steps=STEPS)
    distances = np.array([mdp.hitting_times()[pair] for pair in collector.planner.log])
    within = int(np.sum(distances <= L * (1 + 1e-9)))
    return within, len(distances) - within


def failures(name, strategy, runs):
    """How many of `runs` runs give up a state within L, and how many states beyond L all of them give up."""
    given_up(name, strategy, 0)  # compile before the workers start
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(partial(given_up, name, strategy), range(runs), chunksize=max(1, runs // 64)))
    return sum(within > 0 for within, _ in answers), sum(beyond for _, beyond in answers)


def p_value(failed, runs):
    """The probability of so many failures or more if each run failed with probability delta."""
    return float(binom.sf(failed - 1, runs, DELTA))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=800)
    runs = parser.parse_args().runs
    began = time.perf_counter()
    lines = [
        "# States within reach that are given up",
        "",
        f"`python -m evidence.reach --runs {runs}`: runs of at most {STEPS} steps in which `reach=L` gives up a state",
        f"whose true distance from where the walk is then is at most L, for delta = {DELTA}; and the states beyond L",
        "that are given up, in all runs together. A strategy is rejected if so many failures or more have probability",
        f"below {FALSE_ALARM}.",
        "",
        "| system | strategy | failed runs | of | p-value | verdict | states beyond L given up |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for name in SYSTEMS:
        for strategy in STRATEGIES:
            failed, beyond = failures(name, strategy, runs)
            p = p_value(failed, runs)
            verdict = "rejected" if p < FALSE_ALARM else "holds"
            lines.append(f"| {name} | {strategy} | {failed} | {runs} | {p:.2g} | {verdict} | {beyond} |")
            print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
