"""Tours through the last goals with known dynamics, against the prices of the fluid program and nearest first.

python -m evidence.tours [--runs 60] [--first 2000]      writes evidence/results/tours.md
"""

import argparse
from pathlib import Path

import numpy as np

import gosprl
from evidence.few_samples import SYSTEMS, cells
from evidence.runs import mean_and_interval
from gosprl.planning import tours

RESULT = Path(__file__).parent / "results" / "tours.md"
SETTINGS = {
    "tours": (tours.GOALS, None),
    "prices only": (0, None),
    "nearest first": (0, False),
}  # goals of tours, fluid


def ratios(make, seeds):
    """Steps over the fluid limit, [settings, runs]: one sample of every pair; seed k is that of the system, too."""
    found = np.zeros((len(SETTINGS), len(seeds)))
    for k, seed in enumerate(seeds):
        mdp = make(seed)
        limit = gosprl.fluid_limit(mdp, 1)
        for i, (goals, fluid) in enumerate(SETTINGS.values()):
            tours.GOALS = goals
            found[i, k] = gosprl.collect(mdp, 1, dynamics=mdp, fluid=fluid, seed=seed).steps / limit
    return found


def difference(one, other):
    mean, half = mean_and_interval(one - other)
    return f"{mean:+.3f} ± {half:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--first", type=int, default=2000)
    given = parser.parse_args()
    lines = [
        "# Tours through the last goals",
        "",
        f"`python -m evidence.tours --runs {given.runs} --first {given.first}`: known dynamics, one sample of",
        f"every pair; steps over the fluid limit, mean of {given.runs} runs ± 95 %; differences are paired by seed.",
        f"Tours are for the last {tours.GOALS} goals.",
        "",
        f"| system | runs | {' | '.join(SETTINGS)} | tours - prices | tours - nearest |",
        "|---|" + "---|" * (len(SETTINGS) + 3),
    ]
    for name, make in SYSTEMS.items():
        found = ratios(make, range(given.first, given.first + given.runs))
        ends = [difference(found[0], other) for other in found[1:]]
        lines.append(f"{cells(name, found)} | {' | '.join(ends)} |")
        print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
