"""The rivals' constants that their sources leave open: mean steps for some values, on four of the paper's domains.

python -m evidence.rivals [--runs 10]      writes evidence/results/rivals.md
"""

import argparse
from pathlib import Path

from evidence.runs import many
from gosprl.strategies import STRATEGIES

RESULT = Path(__file__).parent / "results" / "rivals.md"
DOMAINS = ("riverswim6", "riverswim36", "corridor24", "cliff48")
SETS = {"confidence": "bernstein", "scale": 0.1}  # as in the paper's experiments
GRIDS = {  # strategy: (other options, values of its constants)
    "maxent": (SETS, {"mu": (0.01, 0.1, 1.0), "drift": (0.1, 0.25, 0.5)}),
    "min_frequency": (SETS, {"rate": (0.3, 1.0, 3.0), "drift": (0.25, 0.5, 1.0)}),
    "zero_rmax": ({}, {"gamma": (0.9, 0.99, 0.999)}),
    "zero_one_ucrl": (SETS, {"renew": (False, True)}),
}
MOST = 200_000  # steps after which a run is given up


def choices(constants):
    """Every choice of values, as dicts."""
    made = [{}]
    for name, values in constants.items():
        made = [choice | {name: value} for choice in made for value in values]
    return made


def cell(runs):
    stopped = "" if runs.met.all() else f", {(~runs.met).sum()} stopped"
    return f"{runs.steps.mean():,.0f}{stopped}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    lines = [
        "# Constants of the rivals: steps to 10 samples of every pair",
        "",
        f"`python -m evidence.rivals --runs {runs}`: means of {runs} runs; bold are the defaults. A run is given up",
        f"after {MOST:,} steps. All but Zero-RMax, which has none, have the sets of the paper's experiments, Bernstein",
        "x0.1. MinFrequency's rate 1 is what its theory says.",
        "",
        "| strategy | constants | " + " | ".join(DOMAINS) + " |",
        "|---|---|" + "---|" * len(DOMAINS),
    ]
    print("\n".join(lines))
    for strategy, (options, constants) in GRIDS.items():
        default = STRATEGIES[strategy]()
        for choice in choices(constants):
            given = {"strategy": strategy, **options, **choice}
            means = [cell(many(name, given, runs, max_steps=MOST)) for name in DOMAINS]
            said = ", ".join(f"{name} = {value}" for name, value in choice.items())
            if all(getattr(default, name) == value for name, value in choice.items()):
                said = f"**{said}**"
            lines.append(f"| {strategy} | {said} | " + " | ".join(means) + " |")
            print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
