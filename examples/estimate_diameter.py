"""Bound the diameter of systems that can only be walked through: the steps between the two states farthest apart.

Prints intervals that hold it with high probability, drawn on a line with the true one, for several accuracies: when the
walk ends as soon as the confidence sets prove enough, and by the paper's algorithm, which estimates the model first.
"""

import sys

import numpy as np

import gosprl

WIDTH = 44
RUNS = (("certified", 1.0), ("certified", 0.5), ("certified", 0.2), ("doubling", 1.0))


def drawn(low, high, truth, end):
    """A line from 0 to `end`: the interval as ├──┤, the truth as ●."""
    left, right, there = (min(WIDTH, round(WIDTH * x / end)) for x in (low, high, truth))
    line = [" "] * left + ["├"] + ["─"] * (right - left - 1) + ["┤" if high <= end else "→"] + [" "] * (WIDTH - right)
    line[there] = "●"
    return "".join(line).rstrip()


def main(seed=0, domains=("toy3", "riverswim6")):
    for name in domains:
        mdp = gosprl.envs.make(name)
        truth = mdp.diameter()
        answers = [gosprl.applications.estimate_diameter(mdp, epsilon, rule=rule, seed=seed) for rule, epsilon in RUNS]
        s, goal = np.unravel_index(answers[-1].values.argmax(), answers[-1].values.shape)
        end = 3 * truth
        print(f"{name}: the longest way seems to be from state {s} to {goal}; the true diameter ● is {truth:.2f}\n")
        print(f"   {'rule':<11}{'epsilon':>7}{'steps':>12}   {'diameter between':<18} 0{f'{end:.0f}':>{WIDTH}}")
        for (rule, epsilon), answer in zip(RUNS, answers, strict=True):
            between = f"{answer.lower:5.2f} and {answer.diameter:5.2f}"
            line = drawn(answer.lower, answer.diameter, truth, end)
            print(f"   {rule:<11}{epsilon:>7g}{answer.steps:>12,}   {between:<18} {line}")
        print()
    print(f"{answers[0].guarantee}, which is at most (1 + 2 epsilon (1 + epsilon)) (1 + epsilon) D")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
