"""How often the interval of `gosprl watch` contains the steps that were left.

python -m evidence.forecast [--runs 100]     writes evidence/results/forecast.md
python -m evidence.forecast --calibrate --runs 30      prints FACTORS of gosprl/watching/forecast.py

Calibration is on other systems and other seeds than the check. Each run is looked at once, when a share of its steps
was made that is drawn uniformly from 5 % to 95 %.
"""

import argparse
import time
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

import gosprl
from evidence.families import garnet, maze, queues, tree
from gosprl.collecting.collector import Collector
from gosprl.systems import as_system
from gosprl.watching.forecast import LEVEL, VISITS, Left, by_count, by_limit, forecast, visits_class

RESULT = Path(__file__).parent / "results" / "forecast.md"
MOST = 300_000  # steps; longer runs are left out
SHARES = np.linspace(0.05, 0.95, 10)  # of a run of the calibration
QUANTILES = (0.1, 0.5, 0.9)
ENOUGH = 40  # looks at a system in a class, for its quantiles to count
NEEDS = {"near": (1, 3, 20), "far": (1, 5)}
STRATEGIES = {"near": {"guarded": {}}, "far": {"gosprl": {"scale": 0.1}, "zero_rmax": {}, "random": {}}}


def domain(name, **parameters):
    return lambda seed: gosprl.envs.make(name, **parameters)


CALIBRATION = {
    "garnet 40": partial(garnet, 40, 3),
    "garnet 60": partial(garnet, 60, 8),
    "maze 7 x 7": partial(maze, 7),
    "riverswim12": domain("riverswim12"),
    "queues of 5": lambda seed: queues(5),
    "tree 3, 3": lambda seed: tree(3, 3),
    "room20": domain("room20"),
    "wheel15": domain("wheel", states=15),
    "noisy_riverswim18": domain("noisy_riverswim18"),
    "corridor24": domain("corridor24"),
}
CHECKED = {
    "garnet 80": partial(garnet, 80, 5),
    "maze 10 x 10": partial(maze, 10),
    "riverswim20": domain("riverswim20"),
    "queues of 7": lambda seed: queues(7),
    "tree 4, 2": lambda seed: tree(4, 2),
    "four_room43": domain("four_room43"),
    "cliff48": domain("cliff48"),
    "open grid 8 x 8": domain("open_grid", rows=8, columns=8),
}


def left_of(collector):
    """What is missing now."""
    record, model = collector.record, collector.model
    need = record.need
    pair = np.maximum(need.pair - model.visits, 0)
    state = collector.engine.state
    missing = np.maximum(need.state - need.state_visits, 0)
    return Left(record.steps, pair, missing, 0 if state is None else state, need.collected)


def looks(mdp, need, strategy, options, seed, shares):
    """Yield (model, now, then, steps left) when these shares of the steps of a run were made."""
    steps = gosprl.collect(mdp, need, strategy=strategy, seed=seed, max_steps=MOST, **options).steps
    if steps == MOST:
        return
    collector = Collector(
        need=need, strategy=strategy, seed=seed, model=as_system(mdp).model(), resets="never", **options
    )
    past = [left_of(collector)]
    wanted = {max(1, int(share * steps)) for share in shares}
    for i, mark in enumerate(sorted(wanted | {max(1, mark // 2) for mark in wanted})):
        collector.run(None if i else mdp, mark - collector.record.steps)
        now = left_of(collector)
        if mark in wanted and now.missing:
            yield collector.model, now, min(past, key=lambda one: abs(one.step - mark / 2)), steps - mark
        past.append(now)


def calibrate(runs):
    """Print the quantiles of the steps left over F: the least and the largest of any calibration system."""
    for family, strategies in STRATEGIES.items():
        counted, fluid = [[] for _ in range(len(VISITS) + 1)], []  # a list for each system
        for make in CALIBRATION.values():
            for cells in (*counted, fluid):
                cells.append([])
            for seed, need, (strategy, options) in product(range(runs), NEEDS[family], strategies.items()):
                for model, now, then, steps in looks(make(seed), need, strategy, options, seed, SHARES):
                    known = visits_class(model)
                    counted[known][-1].append(steps / by_count(now, then))
                    if family == "near" and known == len(VISITS):
                        fluid[-1].append(steps / by_limit(model, now, then))
        print(f'"{family}": ({", ".join(map(quantiles, counted))}),', flush=True)
        if family == "near":
            print(f"FLUID = {quantiles(fluid)}", flush=True)


def quantiles(cells):
    """Quantiles of numbers: the outer ones those of the system where they are farthest out."""
    known = [x for x in cells if len(x) >= ENOUGH]
    low, middle, high = QUANTILES
    least, largest = min(np.quantile(x, low) for x in known), max(np.quantile(x, high) for x in known)
    return f"({least:.3g}, {np.quantile(np.concatenate(known), middle):.3g}, {largest:.3g})"


def check(runs):
    begin = time.monotonic()
    lines = [
        "# The forecast of `gosprl watch`",
        "",
        f"`python -m evidence.forecast --runs {runs}`: in how many runs the interval for the steps left, of level",
        f"{LEVEL:.0%}, contained them. Each run is looked at once, at a random time. Systems and seeds are others than",
        "those of the calibration. Width: the median of upper over lower end.",
        "",
        "| system | strategy | need | runs | inside | too few forecast | too many | width |",
        "|---|---|---|---|---|---|---|---|",
    ]
    total, least = np.zeros(3, dtype=int), 1.0
    for name, make in CHECKED.items():
        for strategy, options, need in (("guarded", {}, 1), ("guarded", {}, 10), ("zero_rmax", {}, 3)):
            counted, widths = one_cell(make, strategy, options, need, runs)
            total += counted
            least = min(least, counted[0] / counted.sum())
            few, many = f"{counted[1]}", f"{counted[2]}"
            cells = (name, strategy, need, counted.sum(), f"{counted[0] / counted.sum():.0%}", few, many)
            lines.append("| " + " | ".join(map(str, cells)) + f" | {np.median(widths):.1f} |")
            print(lines[-1], flush=True)
    rate, n = total[0] / total.sum(), total.sum()
    half = 1.96 * (rate * (1 - rate) / n) ** 0.5
    verdict = "met" if rate - half >= LEVEL else "undecided" if rate + half >= LEVEL else "MISSED"
    lines += [
        "",
        f"All: {rate:.1%} ± {half:.1%} of {n} (stated: {LEVEL:.0%}, {verdict}); in a line, {least:.0%} at least.",
    ]
    lines += ["", f"Made in {time.monotonic() - begin:.0f} s."]
    RESULT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines[-5:]))


def one_cell(make, strategy, options, need, runs):
    """(inside, more steps than the interval, fewer steps), and the widths of the intervals."""
    counted, widths = np.zeros(3, dtype=int), []
    for seed in range(1000, 1000 + runs):
        share = np.random.default_rng(seed).uniform(0.05, 0.95)
        for model, now, then, steps in looks(make(seed), need, strategy, options, seed, [share]):
            given = forecast(model, now, then, strategy)
            if given is not None:
                counted[0 if given.low <= steps <= given.high else 1 if steps > given.high else 2] += 1
                widths.append(given.high / given.low)
    return counted, widths


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--calibrate", action="store_true")
    given = parser.parse_args()
    (calibrate if given.calibrate else check)(given.runs)


if __name__ == "__main__":
    main()
