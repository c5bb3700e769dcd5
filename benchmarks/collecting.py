"""Collecting: whole runs, and what ask and tell cost beside an environment's own step.

python benchmarks/collecting.py      writes benchmarks/results/collecting.md
"""

import gymnasium
import numpy as np
from report import cells, clock, header, options, write

import gosprl
from gosprl.envs import make
from gosprl.strategies import Attempt, Planner, Strategy

DOMAINS = ("riverswim6", "riverswim36", "corridor24", "four_room43", "room20", "cliff48")
RATIOS = ("guarded / gosprl, a step", "guarded / gosprl x0.01, a step")


def whole_runs(runs):
    """Seconds for `runs` runs after compilation, steps and plans a run."""
    mdp = make("four_room43")
    sets = {"strategy": "gosprl", "confidence": "bernstein", "scale": 0.1}
    gosprl.collect(mdp, 10, seed=0, **sets)
    begin = clock()
    results = [gosprl.collect(mdp, 10, seed=seed, **sets) for seed in range(runs)]
    seconds = clock() - begin
    return seconds, np.mean([r.steps for r in results]), np.mean([r.attempts for r in results])


SETTINGS = {"gosprl": {"strategy": "gosprl"}, "gosprl x0.01": {"strategy": "gosprl", "scale": 0.01}, "guarded": {}}


def per_step(name, runs):
    """(us a step, ms a run) of each setting: 10 samples of every pair, in turns, medians over the runs."""
    mdp, took = make(name), {setting: [] for setting in SETTINGS}
    for seed in range(-1, runs):  # the first compiles
        for setting, sets in SETTINGS.items():
            begin = clock()
            result = gosprl.collect(mdp, 10, seed=max(seed, 0), **sets)
            if seed >= 0:
                took[setting].append((1e6 * (clock() - begin) / result.steps, 1e3 * (clock() - begin)))
    return {setting: np.median(times, axis=0) for setting, times in took.items()}


def step_table(runs):
    """Planning and walking, guarded beside Algorithm 1 in the same sets and in narrow ones."""
    lines = header("domain", *(f"{setting}: us a step (ms a run)" for setting in SETTINGS), *RATIOS)
    for name in DOMAINS:
        took = per_step(name, runs)
        each = {setting: f"{step:.1f} ({run:.0f})" for setting, (step, run) in took.items()}
        ratios = (f"{took['guarded'][0] / took[setting][0]:.2f}" for setting in ("gosprl", "gosprl x0.01"))
        lines.append(cells(name, *each.values(), *ratios))
    return lines


class Walk(Strategy):
    """A strategy that never plans: what is measured is the cost of asking and telling."""

    def begin(self, model, need, rng):
        return Walking(model)


class Walking(Planner):
    """Always the first action."""

    def __init__(self, model):
        self.model = model

    def attempt(self, s, t):
        S, R = self.model.num_states, len(self.model.rows)
        return Attempt(self.model.rows.ptr[:-1].copy(), np.zeros(S, dtype=bool), np.full(R, 10**12), 10**12)


def ask_and_tell(steps):
    """Seconds of ask + tell together."""
    collector = gosprl.Collector(16, 4, need=10**9, strategy=Walk(), seed=0)
    s_next = np.random.default_rng(0).integers(16, size=steps).tolist()
    s, begin = 0, 0.0
    for i in range(2 * steps):
        if i == steps:  # the first half warms up
            begin = clock()
        a = collector.ask(s)
        collector.tell(s, a, s_next[i % steps])
        s = s_next[i % steps]
    return (clock() - begin) / steps


def frozen_lake_step(steps):
    """Seconds of FrozenLake's own step, without the wrappers of `gymnasium.make`."""
    env = gymnasium.make("FrozenLake-v1").unwrapped
    env.reset(seed=0)
    begin = clock()
    for _ in range(steps):
        env.step(1)
        env.s = 0
    return (clock() - begin) / steps


if __name__ == "__main__":
    quick = options(__doc__).quick
    runs, walked = (1, 100) if quick else (30, 20_000)
    seconds, steps, plans = whole_runs(runs)
    rounds = [(ask_and_tell(walked), frozen_lake_step(walked)) for _ in range(5)]
    ask, step = np.median(rounds, axis=0)
    ratio = np.median([a / b for a, b in rounds])
    write(
        "collecting",
        [
            "# Collecting",
            "",
            f"- {runs} runs of four_room43, 10 samples of every pair, Bernstein x0.1: {seconds:.1f} s once compiled",
            f"  ({steps:,.0f} steps and {plans:,.0f} plans a run: {1e6 * seconds / runs / plans:.0f} us a plan).",
            f"- ask + tell: {1e6 * ask:.1f} us; FrozenLake's own step: {1e6 * step:.1f} us; ratio {ratio:.2f}.",
            "",
            f"Time a step and a run, everything included, 10 samples of every pair, median of {runs} runs:",
            "",
            *step_table(runs),
        ],
        quick=quick,
    )
