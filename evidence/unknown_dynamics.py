"""Unknown dynamics on six of the paper's domains: what learning costs, by confidence sets.

python -m evidence.unknown_dynamics [--runs 30]      writes evidence/results/unknown_dynamics.md
"""

import argparse
from pathlib import Path

import numpy as np

import gosprl
from evidence.runs import many, mean_and_interval

RESULT = Path(__file__).parent / "results" / "unknown_dynamics.md"
DOMAINS = ("riverswim6", "riverswim36", "corridor24", "four_room43", "room20", "cliff48")
SETTINGS = {  # (options, what the strategy is told)
    "bernstein": ({"confidence": "bernstein"}, None),
    "bernstein x0.1": ({"confidence": "bernstein", "scale": 0.1}, None),
    "kl": ({"confidence": "kl"}, None),
    "kl, successors known": ({"confidence": "kl"}, "successors"),
    "random walk": ({"strategy": "random"}, None),
}
MOST = 5_000_000  # steps after which a run is given up


def cell(runs, limit):
    if not runs.met.all():
        return f"{runs.met.sum()} of {len(runs.met)} done within {MOST:,}"
    mean, half = mean_and_interval(runs.steps)
    return f"{mean:,.0f} ± {half:,.0f}; {np.quantile(runs.steps, 0.9):,.0f}; x{mean / limit:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    runs = parser.parse_args().runs
    lines = [
        "# Unknown dynamics: steps to 10 samples of every pair",
        "",
        f"`python -m evidence.unknown_dynamics --runs {runs}`: mean of {runs} runs ± its 95 % interval; 90 % quantile",
        "(the paper's sample complexity at delta = 0.1); mean / fluid limit. `bernstein` is the paper's sets, `x0.1`",
        "its experiments' scale, which gives up the guarantee; `kl` is our default. Both hold at delta = 0.1.",
        "`successors known`: the strategy is told which next states are possible (`successors=mdp`), not how likely.",
        "",
        "| domain | fluid limit | " + " | ".join(SETTINGS) + " |",
        "|---|---|" + "---|" * len(SETTINGS),
    ]
    print("\n".join(lines))
    for name in DOMAINS:
        limit = gosprl.fluid_limit(gosprl.envs.make(name), 10)
        done = (many(name, options, runs, told=told, max_steps=MOST) for options, told in SETTINGS.values())
        cells = [cell(each, limit) for each in done]
        lines.append(f"| {name} | {limit:,.1f} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
