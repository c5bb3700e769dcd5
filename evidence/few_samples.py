"""The price of not knowing at one sample a pair, and where few states are needed: with the learnt prior and without.

python -m evidence.few_samples [--runs 100] [--most 1600]      writes evidence/results/few_samples.md

Where a verdict is undecided, the number of runs is doubled, up to --most. An interval that is looked at several times
fails somewhat more often than in 5 % of the cases.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np

import gosprl
from evidence.families import few_states, garnet, maze, queues, shuffled, tree
from evidence.runs import all_runs, mean_and_interval

RESULT = Path(__file__).parent / "results" / "few_samples.md"
SETTINGS = {  # (options, what the strategy is told)
    "guarded": ({}, None),
    "guarded, no prior": ({"prior": False}, None),
    "known dynamics, nearest first": ({"strategy": "gosprl", "duplicate_start": False}, "dynamics"),
}
SLACK = {"one": 0.1, "few": 0.02, "ten": 0.02}  # what the 95 % interval may exceed a target by
WORSE = 1.05  # times the steps without the prior


def domain(name):
    return lambda seed: gosprl.envs.make(name)


def fixed(make, *arguments):
    return lambda seed: make(*arguments)


def open_grid(n):
    return lambda seed: gosprl.envs.make("open_grid", rows=n, columns=n)


def other_numbers(make):
    return lambda seed: shuffled(make(seed), seed)


SYSTEMS = {
    "maze 8 x 8": partial(maze, 8),
    "maze 14 x 14": partial(maze, 14),
    "queues of 8": fixed(queues, 8),
    "riverswim20": domain("riverswim20"),
    "riverswim36": domain("riverswim36"),
    "noisy_riverswim36": domain("noisy_riverswim36"),
    "tree 3, 3": fixed(tree, 3, 3),
    "tree 5, 2": fixed(tree, 5, 2),
    "four_room43": domain("four_room43"),
    "corridor24": domain("corridor24"),
    "room20": domain("room20"),
    "cliff48": domain("cliff48"),
    "open grid 15 x 15": open_grid(15),
}
SHUFFLED = ("maze 8 x 8", "queues of 8", "riverswim20", "noisy_riverswim36", "tree 3, 3", "four_room43")
SHUFFLED += ("corridor24", "room20", "cliff48")
GARNETS = {f"garnet {S}, {b}": partial(garnet, S, b) for S, b in ((60, 2), (30, 3), (100, 3), (60, 5), (60, 10))}
UNSTRUCTURED = {f"{name}, shuffled": other_numbers(SYSTEMS[name]) for name in SHUFFLED}
UNSTRUCTURED |= GARNETS
TARGETS = {
    "one": {
        "maze 8 x 8": 1.8, "maze 14 x 14": 1.8, "queues of 8": 2.4, "riverswim20": 2.0, "riverswim36": 2.0,
        "noisy_riverswim36": 2.8, "tree 3, 3": 1.12, "tree 5, 2": 1.12, "four_room43": 1.15, "corridor24": 1.15,
        "room20": 1.15, "cliff48": 1.25,
    },
    "few": {
        "maze 8 x 8": 1.25, "maze 14 x 14": 1.25, "queues of 8": 1.5, "noisy_riverswim36": 1.3,
        "open grid 15 x 15": 1.05,
    },
}  # fmt: skip
NEEDS = {"one": lambda mdp: 1, "few": few_states, "ten": lambda mdp: 10}


def ratios(make, kind, runs, settings=SETTINGS):
    """Steps over the fluid limit, [settings, runs]; seed k is that of the system, too."""
    made = [make(seed) for seed in range(runs)]
    same = all(np.array_equal(made[0].prob, mdp.prob) and np.array_equal(made[0].succ, mdp.succ) for mdp in made[1:3])
    needs = [NEEDS[kind](mdp) for mdp in made]
    limits = [gosprl.fluid_limit(made[0], needs[0])] * runs if same else list(map(gosprl.fluid_limit, made, needs))
    jobs = [
        (mdp, told, options, seed, need, None)
        for options, told in settings.values()
        for seed, (mdp, need) in enumerate(zip(made, needs, strict=True))
    ]
    return all_runs(jobs).steps.reshape(len(settings), runs) / np.array(limits)


def against_target(ratio, target, slack):
    mean, half = mean_and_interval(ratio)
    if target is None:
        return "-"
    if mean + half <= target + slack:
        return f"{target:g}: met"
    return f"{target:g}: missed" if mean - half > target + slack else f"{target:g}: undecided"


def against_before(ratio, before):
    """Paired by seed: the mean of the differences, in parts of the mean before."""
    mean, half = mean_and_interval((ratio - before) / before.mean())
    verdict = "met" if mean + half <= WORSE - 1 else "missed" if mean - half > WORSE - 1 else "undecided"
    return f"{1 + mean:.3f} ± {half:.3f}: {verdict}"


def cells(name, rows):
    return f"| {name} | {rows.shape[1]} | " + " | ".join(
        "{:.3f} ± {:.3f}".format(*mean_and_interval(row)) for row in rows
    )


def judged(make, kind, runs, most, verdict, settings=SETTINGS):
    """The ratios and the verdict on them, with more runs while it is undecided."""
    while True:
        found = ratios(make, kind, runs, settings)
        end = verdict(found)
        if "undecided" not in end or 2 * runs > most:
            return found, end
        runs *= 2


def table(kind, systems, runs, most, structured):
    last = "target" if structured else f"with / without, at most {WORSE}"
    lines = ["| system | runs | " + " | ".join(SETTINGS) + f" | {last} |", "|---|" + "---|" * (len(SETTINGS) + 2)]
    for name, make in systems.items():
        target = TARGETS[kind].get(name) if structured else None

        def verdict(found, target=target):
            return against_target(found[0], target, SLACK[kind]) if structured else against_before(*found[:2])

        found, end = judged(make, kind, runs, most, verdict)
        lines.append(f"{cells(name, found)} | {end} |")
        print(lines[-1], flush=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--most", type=int, default=1600)
    given = parser.parse_args()
    runs, most = given.runs, given.most
    lines = [
        "# Few samples: the price of not knowing",
        "",
        f"`python -m evidence.few_samples --runs {runs} --most {most}`: steps over the fluid limit, mean ± 95 %.",
        "Mazes, garnets and shuffled systems are other ones for each seed. A target is met if the interval ends below",
        f"it plus {SLACK['one']:g} (one sample) or {SLACK['few']:g}, missed if it begins above, else undecided:",
        "then the number of runs is doubled, as long as it is at most the second number.",
        "",
        "## One sample of every pair",
        "",
        *table("one", SYSTEMS, runs, most, True),
        "",
        "Systems whose numbers say nothing: with the prior against without, paired by seed.",
        "",
        *table("one", UNSTRUCTURED, runs, most, False),
        "",
        "## 50 samples of every pair of a twentieth of the states",
        "",
        *table("few", {name: SYSTEMS[name] for name in TARGETS["few"]}, runs, most, True),
    ]
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
