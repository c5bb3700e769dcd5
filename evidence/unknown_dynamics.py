"""Unknown dynamics on six of the paper's domains: what learning costs, by confidence sets.

python -m evidence.unknown_dynamics [--runs 30]      writes evidence/results/unknown_dynamics.md
"""

import argparse
from pathlib import Path

import numpy as np

import gosprl
from evidence.runs import many, mean_and_interval, ratio_interval

RESULT = Path(__file__).parent / "results" / "unknown_dynamics.md"
DOMAINS = ("riverswim6", "riverswim36", "corridor24", "four_room43", "room20", "cliff48")
SETTINGS = {  # (options, what the strategy is told)
    "bernstein": ({"strategy": "gosprl", "confidence": "bernstein"}, None),
    "bernstein x0.1": ({"strategy": "gosprl", "confidence": "bernstein", "scale": 0.1}, None),
    "kl": ({"strategy": "gosprl"}, None),
    "kl, successors known": ({"strategy": "gosprl"}, "successors"),
    "guarded, nearest first": ({"fluid": False}, None),
    "guarded": ({}, None),
    "random walk": ({"strategy": "random"}, None),
}
MOST = 5_000_000  # steps after which a run is given up


def ratio(runs, limit):
    if not runs.met.all():
        return f"{runs.met.sum()} of {len(runs.met)} done in {MOST:,} steps"
    mean, half = mean_and_interval(runs.steps)
    return f"{mean / limit:.2f} ± {half / limit:.2f}"


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
        f"`python -m evidence.unknown_dynamics --runs {runs}`: mean of {runs} runs ± its 95 % interval, over the fluid",
        "limit, a lower bound on the expected steps of any collector. `bernstein` is the paper's sets, `x0.1` its",
        'experiments\' scale, which gives up the guarantee; `kl` is our sets. These are `strategy="gosprl"`.',
        "`successors known`: the strategy is told which next states are possible (`successors=mdp`), not how likely.",
        "`guarded` is the default; `nearest first` leaves out the prices of the fluid program (`fluid=False`).",
        "All but `bernstein x0.1` and the random walk promise the paper's bound at delta = 0.1.",
        "",
    ]
    head = ["| domain | fluid limit | " + " | ".join(SETTINGS) + " |", "|---|---|" + "---|" * len(SETTINGS)]
    ratios, steps, halves = [], [], []
    for name in DOMAINS:
        limit = gosprl.fluid_limit(gosprl.envs.make(name), 10)
        done = {
            setting: many(name, options, runs, told=told, max_steps=MOST)
            for setting, (options, told) in SETTINGS.items()
        }
        ratios.append(f"| {name} | {limit:,.1f} | " + " | ".join(ratio(each, limit) for each in done.values()) + " |")
        steps.append(f"| {name} | {limit:,.1f} | " + " | ".join(cell(each, limit) for each in done.values()) + " |")
        print(ratios[-1], flush=True)
        mean, low, high = ratio_interval(done["kl"].steps, done["bernstein"].steps)
        verdict = "below a half" if high < 0.5 else "not shown to be below a half"
        halves.append(f"| {name} | {mean:.3f} ({low:.3f} to {high:.3f}) | {verdict} |")
    lines += [*head, *ratios, ""]
    lines += ["Steps; their 90 % quantile, the paper's sample complexity at delta = 0.1; mean / fluid limit.", ""]
    lines += [*head, *steps, ""]
    lines += ["Certified against certified: mean steps with `kl` over those with `bernstein`, 95 % interval.", ""]
    lines += ["| domain | kl / bernstein | |", "|---|---|---|", *halves]
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
