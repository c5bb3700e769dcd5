"""Collecting: whole runs, and what ask and tell cost beside an environment's own step.

python benchmarks/collecting.py      writes benchmarks/results/collecting.md
"""

import time

import gymnasium
import numpy as np
from report import write

import gosprl
from gosprl.envs import make
from gosprl.strategies.base import Attempt

RUNS = 30
STEPS = 20_000


def whole_runs():
    """Seconds for RUNS runs after compilation, steps and plans a run."""
    mdp = make("four_room43")
    options = {"confidence": "bernstein", "scale": 0.1}
    gosprl.collect(mdp, 10, seed=0, **options)
    begin = time.perf_counter()
    results = [gosprl.collect(mdp, 10, seed=seed, **options) for seed in range(RUNS)]
    seconds = time.perf_counter() - begin
    return seconds, np.mean([r.steps for r in results]), np.mean([r.attempts for r in results])


class Walk:
    """A strategy that never plans: what is left is the cost of asking and telling."""

    guarantee = "none"

    def attempt(self, model, need, s, t, rng):
        S, R = model.num_states, len(model.rows)
        return Attempt(model.rows.ptr[:-1], np.zeros(S, dtype=bool), np.full(R, 10**12), 10**12)


def ask_and_tell():
    """Seconds of ask + tell together."""
    collector = gosprl.Collector(16, 4, need=10**9, strategy=Walk(), seed=0)
    s_next = np.random.default_rng(0).integers(16, size=STEPS).tolist()
    s, begin = 0, 0.0
    for i in range(2 * STEPS):
        if i == STEPS:  # the first half warms up
            begin = time.perf_counter()
        a = collector.ask(s)
        collector.tell(s, a, s_next[i % STEPS])
        s = s_next[i % STEPS]
    return (time.perf_counter() - begin) / STEPS


def frozen_lake_step():
    """Seconds of FrozenLake's own step, without the wrappers of `gymnasium.make`."""
    env = gymnasium.make("FrozenLake-v1").unwrapped
    env.reset(seed=0)
    begin = time.perf_counter()
    for _ in range(STEPS):
        env.step(1)
        env.s = 0
    return (time.perf_counter() - begin) / STEPS


if __name__ == "__main__":
    seconds, steps, plans = whole_runs()
    rounds = [(ask_and_tell(), frozen_lake_step()) for _ in range(5)]
    ask, step = np.median(rounds, axis=0)
    ratio = np.median([a / b for a, b in rounds])
    write(
        "collecting",
        [
            "# Collecting",
            "",
            f"- {RUNS} runs of four_room43, 10 samples of every pair, Bernstein x0.1: {seconds:.1f} s once compiled",
            f"  ({steps:,.0f} steps and {plans:,.0f} plans a run: {1e6 * seconds / RUNS / plans:.0f} us a plan).",
            f"- ask + tell: {1e6 * ask:.1f} us; FrozenLake's own step: {1e6 * step:.1f} us; ratio {ratio:.2f}.",
        ],
    )
