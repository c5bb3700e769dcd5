"""Gymnasium's toy-text environments: steps, states discovered, and whether the transitions collected are possible.

python -m evidence.gymnasium_envs [--runs 5]      writes evidence/results/gymnasium_envs.md
"""

import argparse
from pathlib import Path

import gymnasium
import numpy as np

import gosprl

RESULT = Path(__file__).parent / "results" / "gymnasium_envs.md"
ENVIRONMENTS = ("FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", "Taxi-v4")
NEED = 5


def possible(result, table):
    """Whether the published dynamics allow every transition collected."""
    model = result.model
    return all(
        model.terminal[s] or any(p > 0 and after == s_next for p, after, _, _ in table[s][a])
        for s, a, s_next, _ in zip(*model.transitions(), strict=True)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    lines = [
        f"# Gymnasium: {NEED} samples of every action of every state discovered",
        "",
        f"`python -m evidence.gymnasium_envs --runs {runs}`: the default at delta = 0.1, {runs} seeds.",
        "",
        "| environment | met | states discovered (of) | pairs | steps: mean (least to most) | resets | all possible |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for name in ENVIRONMENTS:
        env = gymnasium.make(name)
        results = [gosprl.collect(env, NEED, seed=seed) for seed in range(runs)]
        steps = np.array([result.steps for result in results])
        discovered = sorted({int(result.model.is_discovered.sum()) for result in results})
        pairs = sorted({result.pairs for result in results})
        lines.append(
            f"| {name} | {sum(result.met for result in results)} of {runs} "
            f"| {' to '.join(map(str, dict.fromkeys((discovered[0], discovered[-1]))))} ({env.observation_space.n}) "
            f"| {' to '.join(map(str, dict.fromkeys((pairs[0], pairs[-1]))))} "
            f"| {steps.mean():,.0f} ({steps.min():,} to {steps.max():,}) "
            f"| {np.mean([result.resets for result in results]):,.0f} "
            f"| {'yes' if all(possible(result, env.unwrapped.P) for result in results) else 'NO'} |"
        )
        print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
