"""Learn a policy for discounted rewards, provably within epsilon of the best: a little food downstream, much upstream.

Prints the policy with bounds on what it earns and on the best, beside the true best; then where the samples went,
beside uniform sampling for the same promise.
"""

import sys

import numpy as np

import gosprl

ACTIONS = "←→"
WIDTH = 30


def bar(samples, most):
    return "█" * round(WIDTH * samples / most) or "▏"


def best_values(mdp, rewards, gamma):
    """[S] the true optimum, by value iteration."""
    P, v = mdp.dense(), np.zeros(mdp.num_states)
    for _ in range(int(20 / (1 - gamma))):
        v = (rewards + gamma * P @ v).max(axis=1)
    return v


def main(seed=0, states=6, gamma=0.9, epsilon=1.0):
    rewards = np.zeros((states, len(ACTIONS)))
    rewards[0, 0], rewards[-1, 1] = 0.2, 1.0
    river = gosprl.envs.make("riverswim", states=states).with_rewards(rewards)
    best = best_values(river, rewards, gamma)

    learnt = gosprl.applications.learn_policy(river, gamma, epsilon, seed=seed)
    uniform = gosprl.applications.learn_policy(river, gamma, epsilon, allocation="uniform", seed=seed)
    print(f"{learnt}\n")
    print(f"   state  policy  {'earns at least':>14}{'true best':>12}{'none earns more':>18}")
    for s in range(states):
        print(
            f"   {s:>5}{ACTIONS[learnt.policy[s]]:>8}{learnt.lower[s]:>16.2f}{best[s]:>12.2f}{learnt.upper[s]:>18.2f}"
        )

    counts = learnt.collected.counts, uniform.collected.counts
    most = np.max(counts)
    print(f"\n   samples a pair  {'by what matters':<{WIDTH + 9}}uniform")
    for s in range(states):
        for a, arrow in enumerate(ACTIONS):
            n, m = (table[s, a] for table in counts)
            print(f"   {s:>5} {arrow}{n:>9,} {bar(n, most):<{WIDTH}}{m:>9,} {bar(m, most)}")
    print(f"\n   {learnt.steps:,} steps, and {uniform.steps:,} with uniform sampling")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
