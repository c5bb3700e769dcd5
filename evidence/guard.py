"""The guard at work: MDPs on which the practical plan alone loses by far, and what the guard costs elsewhere.

Rounds. Goals h_1 -> ... -> h_m stand in a row; after the last, the walk waits for some `wait` steps and is back at the
hub. From the hub, doors lead to every goal, the nearer the later it stands in the row; detours, a little longer, lead
to h_1. A round through h_1 passes all goals, a round through the nearest brings one sample: heading for what is nearest
takes a round for each sample. Sets that hold leave open where detours lead, long enough to learn what they are worth.

python -m evidence.guard [--runs 30]      writes evidence/results/guard.md
"""

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np

import gosprl
from evidence.runs import many, mean_and_interval, ratio_interval

RESULT = Path(__file__).parent / "results" / "guard.md"
MOST = 20_000_000  # steps after which a run is given up
CERTIFIED = {"strategy": "gosprl", "duplicate_start": False}
SETTINGS = {
    "certified": CERTIFIED,
    "practical, nearest first": {"strategy": "practical", "fluid": False},
    "guarded, nearest first": {"fluid": False},
    "practical": {"strategy": "practical"},
    "guarded": {},
}
MEMBERS = {"30 goals": (30, 4, 300, 100), "40 goals": (40, 3, 400, 100)}


def rounds(goals, detours, wait, need, exit_length=2):
    """(MDP, need [S]) of the family; every way but the wait is certain."""
    edges, actions, states = [], {}, 0

    def new(count):
        nonlocal states
        states += count
        return list(range(states - count, states))

    def arrow(s, t, p=1.0, action=None):
        a = actions.setdefault(s, 0) if action is None else action
        edges.append((s, a, t, p))
        actions[s] = max(actions[s], a + 1)

    def path(s, t, length):
        way = [s, *new(length - 1), t]
        for here, there in pairwise(way):
            arrow(here, there)

    hub, row, (pause,), corridor = new(1)[0], new(goals), new(1), new(goals - 1)
    for here, there in zip(row, [*row[1:], pause], strict=True):
        arrow(here, there)
    arrow(pause, hub, 1 / wait)
    arrow(pause, pause, 1 - 1 / wait, action=0)
    for before, cell, goal in zip([hub, *corridor], corridor, reversed(row), strict=False):
        arrow(before, cell)
        path(cell, goal, exit_length)
    for _ in range(detours):
        path(hub, row[0], goals + exit_length)
    s, a, t, p = (np.array(part) for part in zip(*edges, strict=True))
    mdp = gosprl.TabularMDP((s, a, t, p), start=hub, states=states, actions=max(actions.values()))
    wanted = np.zeros(states, dtype=np.int64)
    wanted[row] = need
    return mdp, wanted


def ends(name, samples):
    """Samples at two far ends of a domain: a good plan that needs more steps than it has credit for."""
    mdp = gosprl.envs.make(name)
    need = np.zeros((mdp.num_states, mdp.num_actions), dtype=np.int64)
    need[0, 0] = need[-1, 1] = samples
    return mdp, need


def table(members, settings, runs):
    lines = [
        "| member | states | setting | steps | over certified | steps / bound, most | certified steps |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (mdp, need) in members.items():
        base = None
        for setting, options in settings.items():
            done = many(mdp, options, runs, need=need, max_steps=MOST)
            steps = done.steps.astype(float)
            base = steps if base is None else base
            mean, half = mean_and_interval(steps)
            ratio, low, high = ratio_interval(steps, base)
            over = "1" if steps is base else f"{ratio:.2f} ({low:.2f} to {high:.2f})"
            inequality = "- | -"
            if np.isfinite(done.bound).all():
                share = done.certified.sum() / steps.sum()
                inequality = f"{(steps / done.bound).max():.2f} | {100 * share:.0f} %"
            unmet = int((~done.met).sum())
            shown = f"{mean:,.0f} ± {half:,.0f}" + (f" ({unmet} stopped)" if unmet else "")
            lines.append(f"| {name} | {mdp.num_states:,} | {setting} | {shown} | {over} | {inequality} |")
            print(lines[-1], flush=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    runs = parser.parse_args().runs
    few = max(2, runs // 3)
    lines = [
        "# The guard at work",
        "",
        f"`python -m evidence.guard --runs {runs}`. Mean of {runs} runs ± its 95 % interval; ratio of means to the",
        "certified strategy (`gosprl`, `kl`, sampling at once) with its 95 % interval; for guarded runs, the largest",
        "steps / ((1 + kappa) T_c + kappa Lambda) among all (the inequality: at most 1), and the share of T_c.",
        "`nearest first` is the practical plan without prices: what is used in large systems.",
        "",
        "## Rounds: the nearest goal is the worst",
        "",
        *table({name: rounds(*member) for name, member in MEMBERS.items()}, SETTINGS, runs),
        "",
        "## What kappa costs",
        "",
        f"{few} runs each. Rounds with 30 goals without prices, where the practical plan is bad; and samples at two",
        "far ends of a corridor, where it is good but needs more than its credit.",
        "",
        *table(
            {"30 goals": rounds(*MEMBERS["30 goals"]), "corridor24, ends": ends("corridor24", 300)},
            {"certified": CERTIFIED} | {f"kappa = {k:g}": {"fluid": False, "kappa": k} for k in (0.5, 1, 2, 4)},
            few,
        ),
    ]
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
