"""Estimate the dynamics of every state-action pair of a river that can only be swum in, to within eta.

Prints the rows learnt beside the true ones, with what each is certified to be off by at most and what it is off by, in
the l1 norm; then what stopping by certificate costs beside the requirement that the paper prints.
"""

import sys

import numpy as np

import gosprl

ACTIONS = ("left", "right")
RULES = {
    "certified": "until the confidence sets prove eta",
    "paper": "the printed requirement",
    "decreasing": "a small part of it, as in the paper's experiments",
}


def row_text(p, s):
    """The chances to go one state down, to stay, to go one up."""
    return "".join(f"{x:>7.3f}" if x else "      ·" for x in np.pad(p, 1)[s : s + 3])


def main(seed=0, eta=0.2, states=6):
    river = gosprl.envs.make("riverswim", states=states)
    truth = river.dense()
    estimate = gosprl.applications.estimate_model(river, eta, seed=seed)
    learnt, counts = estimate.model.dense(), estimate.collected.counts
    error = np.abs(learnt - truth).sum(axis=2)

    print(f"Every row of {river.name} to within {eta:g}, after {estimate.steps:,} steps:\n")
    print(f"{'':>27}{'true':^21}  {'learnt':^21}{'certified':>13}{'off':>8}")
    moves = "   down   stay     up"
    print(f"   state  action  samples  {moves}  {moves}{'within':>13}{'by':>8}")
    for s in range(states):
        for a, action in enumerate(ACTIONS):
            rows = f"{row_text(truth[s, a], s)}  {row_text(learnt[s, a], s)}"
            print(f"   {s:>5}  {action:<6}{counts[s, a]:>9,}  {rows}{estimate.eta[s, a]:>13.3f}{error[s, a]:>8.3f}")
    print(f"\n   {estimate.guarantee}\n")

    print(f"   {'rule':<12}{'steps':>10}{'certified within':>19}{'off by':>9}")
    for rule, meaning in RULES.items():
        answer = gosprl.applications.estimate_model(river, eta, rule=rule, seed=seed)
        off = np.abs(answer.model.dense() - truth).sum(axis=2).max()
        print(f"   {rule:<12}{answer.steps:>10,}{answer.eta.max():>19.3f}{off:>9.3f}   {meaning}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
