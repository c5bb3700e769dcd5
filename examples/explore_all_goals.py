"""Explore a gridworld once, with no goal and no costs in mind; then plan for any goal and costs without a step more.

Prints the map with the way to several goals as arrows, then the way to one of them when the swamp ~ costs more than dry
land, and what both ways cost in truth, beside the best and beside what was promised.
"""

import sys

import numpy as np

import gosprl

ARROWS = "→↓←↑"
MAP = [
    ".......",
    "SXXXXX.",
    ".#####.",
]


def drawn(mdp, policy, goal):
    """Lines of the map: arrows, and ★ at the goal."""
    cells = iter(["★" if s == goal else ARROWS[a] for s, a in enumerate(policy)])
    return [" ".join("█" if character == "#" else next(cells) for character in line) for line in mdp.map]


def beside(titles, pictures):
    """Print pictures side by side under their titles."""
    for parts in [titles, *zip(*pictures, strict=True)]:
        print("   " + "".join(f"{part:<22}" for part in parts).rstrip())
    print()


def true_cost(mdp, policy, goal, costs):
    """What a policy costs from the start on average, by the true dynamics."""
    P = mdp.dense()[np.arange(mdp.num_states), policy]
    P[goal] = 0.0
    return np.linalg.solve(np.eye(len(P)) - P, np.where(np.arange(len(P)) == goal, 0.0, costs))[mdp.start]


def main(seed=0, epsilon=2.0, c_min=0.5):
    mdp = gosprl.envs.make("gridworld", map=MAP)
    cells = "".join(MAP).replace("#", "")
    even, swamp = np.ones(len(cells)), np.array([1.0 if cell == "X" else c_min for cell in cells])

    explored = gosprl.applications.explore_all_goals(mdp, epsilon, c_min=c_min, seed=seed)
    print(f"{explored}\n")

    goals = [0, mdp.num_states - 2, mdp.num_states - 1]
    beside([f"to state {goal}" for goal in goals], [drawn(mdp, explored.policy(goal), goal) for goal in goals])

    land = [line.replace("X", "~").replace("#", "█").replace("", " ").strip() for line in MAP]
    far = cells.rindex("X") + 1  # behind the swamp
    short, round_about = explored.policy(far), explored.policy(far, swamp)
    ways = [drawn(mdp, policy, far) for policy in (short, round_about)]
    beside(["the swamp", "in the fewest steps", "at the least cost"], [land, *ways])

    print(f"   from S to ★, on average    {'steps':>8}{'cost':>8}      (dry {c_min:g}, swamp 1 a step)")
    for name, policy in (("straight through", short), ("round about", round_about)):
        print(f"   {name:<26}{true_cost(mdp, policy, far, even):>9.2f}{true_cost(mdp, policy, far, swamp):>8.2f}")
    best = [gosprl.plan(mdp, goals=[far], costs=costs).values[mdp.start] for costs in (even, swamp)]
    print(f"   {'the best there is':<26}{best[0]:>9.2f}{best[1]:>8.2f}")
    print(f"   promised: at most {explored.proved:.4g} more, for all goals and costs at once")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
