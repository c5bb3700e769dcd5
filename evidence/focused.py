"""Focused planning against planning for all states before every attempt: does it cost steps?

python -m evidence.focused [--runs 200]      writes evidence/results/focused.md
"""

import argparse
from pathlib import Path

import numpy as np

from evidence.runs import log_ratio, many, mean_and_interval
from evidence.unknown_dynamics import DOMAINS

RESULT = Path(__file__).parent / "results" / "focused.md"
RUNS = 200  # a side
AIM = 1.02  # what the ratio should not exceed
SETTINGS = {
    "known dynamics": ({"strategy": "gosprl"}, "dynamics"),
    "kl": ({"strategy": "gosprl", "confidence": "kl", "scale": 1.0}, None),
}


def ratio_cells(log, variance):
    """Ratio, its 95 % interval, and where that lies."""
    half = 1.96 * variance**0.5
    ratio, low, high = np.exp([log, log - half, log + half])
    verdict = "below" if high < AIM else "above" if low > AIM else "around it"
    return f"{ratio:.4f} | {low:.4f} to {high:.4f} | {verdict}"


def mean_of(ratios):
    """The same numbers for the geometric mean of independent ratios."""
    logs, variances = np.transpose(ratios)
    return float(logs.mean()), float(variances.sum()) / len(logs) ** 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS)
    runs = parser.parse_args().runs
    lines = [
        "# Focused planning: steps to 10 samples of every pair, beside plans for all states",
        "",
        f"`python -m evidence.focused --runs {runs}`: {runs} runs a side, with different seeds. Means ± their 95 %",
        "intervals; ratio of the means with its 95 % interval (delta method on the logarithm); on which side of",
        f"{AIM} that lies (`around it`: too much noise to tell). Plans a run; in brackets, those for all states.",
        "",
        f"| setting | domain | focused | full | ratio | 95 % interval | beside {AIM} | plans, focused | plans, full |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    ratios = {setting: [] for setting in SETTINGS}
    for setting, (options, told) in SETTINGS.items():
        for name in DOMAINS:
            focused = many(name, {**options, "planning": "focused"}, runs, told=told)
            full = many(name, {**options, "planning": "full"}, runs, told=told, first=runs)
            assert focused.met.all()
            assert full.met.all()
            ratios[setting].append(log_ratio(focused.steps, full.steps))
            steps = ("{:,.1f} ± {:,.1f}".format(*mean_and_interval(side.steps)) for side in (focused, full))
            plans = (f"{side.plans.mean():,.1f} ({side.full.mean():,.1f})" for side in (focused, full))
            cells = (setting, name, *steps, ratio_cells(*ratios[setting][-1]), *plans)
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    lines += ["", f"| geometric mean of the ratios | | 95 % interval | beside {AIM} |", "|---|---|---|---|"]
    ratios["both"] = [each for some in ratios.values() for each in some]
    for setting, some in ratios.items():
        lines.append(f"| {setting} | {ratio_cells(*mean_of(some))} |")
        print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
