"""Find the best fishing spot of a lake by rowing about and casting: in each cell fish bite at a rate of its own.

Prints the true rates, how often each cell was tried and the order in which they were given up, until the best is known
with high probability; then how often a fixed budget of casts finds it.
"""

import sys

import numpy as np

import gosprl

ROWS, COLUMNS = 3, 5


def beside(titles, tables):
    """Print tables [ROWS][COLUMNS] of texts side by side under their titles."""
    print("".join(f"   {title:<{5 * COLUMNS + 2}}" for title in titles).rstrip())
    for rows in zip(*tables, strict=True):
        print("".join("   " + "".join(f"{cell:>5}" for cell in row) + "  " for row in rows).rstrip())
    print()


def main(seed=0, budgets=(30, 100, 300), runs=10):
    rates = np.random.default_rng(seed).uniform(0.1, 0.6, ROWS * COLUMNS)
    rates[np.argmax(rates)] = 0.85
    lake = gosprl.envs.make("open_grid", rows=ROWS, columns=COLUMNS).with_rewards(rates, noise="bernoulli")

    best = gosprl.applications.best_state(lake, seed=seed)
    print(f"{best}\n")
    given_up = np.full(len(rates), "best")
    given_up[best.dropped] = [f"{i}." for i in range(1, len(best.dropped) + 1)]
    shape = (ROWS, COLUMNS)
    tables = [np.array([f"{rate:.2f}" for rate in rates]), best.pulls, given_up]
    beside(["bites a cast, in truth", "casts", "given up"], [table.reshape(shape) for table in tables])

    print(f"   {'budget (casts)':<16}{'right, of ' + str(runs):>14}{'mean steps':>13}")
    for budget in budgets:
        answers = [gosprl.applications.best_state(lake, budget, seed=seed + i) for i in range(runs)]
        right = sum(answer.state == rates.argmax() for answer in answers)
        print(f"   {budget:<16,}{right:>14}{np.mean([answer.steps for answer in answers]):>13,.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
