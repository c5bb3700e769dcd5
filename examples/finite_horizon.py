"""Why exploring within a horizon is not enough for goals: half of all ways may lead through a state beyond it.

Prints the paper's example and a second one that differs only in where y leads: within H steps nobody can tell which of
the two it is, yet the way from x to z is twice as long in one. Then what exploring without a horizon learns of both.
"""

import sys

import gosprl
from gosprl import theory

X, Y, Z = 0, 1, 2


def picture(horizon):
    print(f"   x ─┬─ 1/2 ─── {horizon} steps ─────► z ──► x")
    print(f"      └─ 1/2 ─── {horizon + 1} steps ───────► y ──► z or x?\n")


def table(name, cells, remark=""):
    print(f"   {name:<36}" + "".join(f"{cell:>15}" for cell in cells) + (f"   ◄ {remark}" if remark else ""))


def main(seed=0, horizon=5, eta=0.1):
    picture(horizon)
    first = theory.finite_horizon_example(horizon)
    P = first.dense()
    P[Y, 0] = P[Z, 0]  # from y where z leads: to x
    second = gosprl.TabularMDP(P, X, name="the other one")
    both = (first, second)

    table("", ["y leads to z", "y leads to x"])
    for steps in (horizon, horizon + 1, horizon + 2):
        for name, goal in (("y", Y), ("z", Z)):
            chances = [f"{theory.reach_within(mdp, [goal], steps)[X]:g}" for mdp in both]
            table(f"chance to be in {name} within {steps} steps", chances, "" if len(set(chances)) == 1 else "differ")
    table("steps from x to z on average", [f"{mdp.hitting_times()[X, Z]:.2f}" for mdp in both], "differ")
    print()

    learnt = [gosprl.applications.estimate_model(mdp, eta, seed=seed) for mdp in both]
    table("explored without a horizon: steps", [f"{answer.steps:,}" for answer in learnt])
    table("samples of y", [f"{answer.collected.counts[Y, 0]:,}" for answer in learnt])
    table("each row certified within", [f"{answer.eta.max():.3f}" for answer in learnt])
    models = [gosprl.TabularMDP(answer.model.dense()) for answer in learnt]
    table("learnt: steps from x to z", [f"{model.hitting_times()[X, Z]:.2f}" for model in models])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
