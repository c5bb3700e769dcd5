"""The guard with 1,000 to 20,000 states: members of the family `rounds` (`evidence.guard`).

The credit begins with 4 P l, which grows with the number of pairs, and the cost of collecting does not: with more
states, a bad practical plan goes on for longer before the guard stops it, or is not stopped at all.

python -m evidence.guard_states [--runs 5] [--states 10000]      writes evidence/results/guard_states.md

It makes `--runs` runs of each setting up to FEW states, one above (not of `practical`), and none above `--states`.
"""

import argparse
from pathlib import Path

import numpy as np

from evidence.guard import MOST, SETTINGS, rounds
from evidence.runs import many

RESULT = Path(__file__).parent / "results" / "guard_states.md"
MEMBERS = ((60, 4, 300, 100, 16), *((100, 2, 300, 100, way) for way in (21, 46, 96, 195)))
FEW = 5_000
SHOWN = ("certified", "practical", "guarded")


def span(numbers):
    low, high = f"{min(numbers):,.2f}".removesuffix(".00"), f"{max(numbers):,.2f}".removesuffix(".00")
    return low if low == high else f"{low} to {high}"


def rows(member, runs):
    """A row for each setting: the least and the most of its runs."""
    mdp, need = rounds(*member)
    base = None
    for setting in SHOWN if mdp.num_states <= FEW else (SHOWN[0], SHOWN[-1]):
        done = many(mdp, SETTINGS[setting], runs, need=need, max_steps=MOST)
        base = done.steps if base is None else base
        inequality = "- | -"
        if np.isfinite(done.bound).all():
            inequality = f"{span(done.steps / done.bound)} | {span(np.round(100 * done.certified / done.steps))} %"
        over = "1" if done.steps is base else f"{done.steps.mean() / base.mean():.2f}"
        stopped = f" ({int((~done.met).sum())} stopped)" if not done.met.all() else ""
        what = f"{mdp.num_states:,} | {member[0]} | {runs} | {setting}"
        yield f"| {what} | {span(done.steps)}{stopped} | {over} | {inequality} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--states", type=int, default=10_000)
    given = parser.parse_args()
    lines = [
        "# The guard with many states",
        "",
        f"`python -m evidence.guard_states --runs {given.runs} --states {given.states}`. Systems of the family",
        "`rounds`, 100 samples of every goal: the least and the most steps of the runs; their mean over that of the",
        "certified strategy (`gosprl`, `kl`, sampling at once); steps / ((1 + kappa) T_c + kappa Lambda), which is at",
        "most 1; the share of T_c.",
        "",
        "| states | goals | runs | setting | steps | over certified | steps / bound | certified steps |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for member in MEMBERS:
        states = rounds(*member)[0].num_states
        if states > given.states:
            continue
        for line in rows(member, given.runs if states <= FEW else 1):
            lines.append(line)
            print(line, flush=True)
        RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
