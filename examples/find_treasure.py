"""Find a treasure that is hidden at one state-action pair of a gridworld, when nothing hints at where.

Prints the map with the visits until it was found, then the mean steps over several hiding places, beside a random walk
and beside the fluid limit: the steps that sampling every pair takes at least on average, whoever does it.
"""

import sys

import numpy as np

import gosprl

ARROWS = "→↓←↑"


def hide(mdp, pair):
    """The same gridworld with a reward of 1 at one pair (s, a)."""
    rewards = np.zeros((mdp.num_states, mdp.num_actions))
    rewards[pair] = 1.0
    return mdp.with_rewards(rewards)


def draw(mdp, visits, treasure):
    """The map with the visits of each cell; ◆ is where the treasure was found."""
    marks = {mdp.start: "S", treasure: "◆"}
    cells = iter([f"{marks.get(s, ' ')}{visits[s] or '·':>3}" for s in range(mdp.num_states)])
    for line in mdp.map:
        print("   " + "".join("████" if character == "#" else next(cells) for character in line))


def main(seed=0, places=10):
    mdp = gosprl.envs.make("four_room43")
    pairs = len(mdp.rows)
    hidden = [mdp.rows.pair(row) for row in np.random.default_rng(seed).choice(pairs, places, replace=False)]

    s, a = hidden[0]
    print(f"A treasure is hidden at one of {pairs} pairs: {mdp.num_states} cells, {mdp.num_actions} moves each.")
    print(f"(It is at state {s}, action {a}, but nobody tells.)\n")
    treasure = gosprl.applications.find_treasure(hide(mdp, (s, a)), threshold=0.5, seed=seed)
    print(f"Found after {treasure.steps} steps, at state {treasure.state}, action {treasure.action}: going", end=" ")
    print(f"{ARROWS[treasure.action]} from ◆ earned {treasure.reward:g}.")
    print("Visits until then (S the start, · never been there):\n")
    draw(mdp, treasure.collected.counts.sum(axis=1), treasure.state)

    print(f"\n{f'mean steps over {places} hiding places':<36}{'until found':>12}{'every pair sampled':>20}")
    for name, strategy in (("gosprl", "guarded"), ("random walk", "random")):
        steps = []
        for i, pair in enumerate(hidden):
            for threshold in (0.5, None):
                options = {"threshold": threshold, "strategy": strategy, "seed": seed + i}
                steps.append(gosprl.applications.find_treasure(hide(mdp, pair), **options).steps)
        found, covered = np.mean(np.reshape(steps, (-1, 2)), axis=0)
        print(f"{name:<36}{found:>12,.0f}{covered:>20,.0f}")
    print(f"{'fluid limit':<36}{'':>12}{gosprl.fluid_limit(mdp, need=1):>20,.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
