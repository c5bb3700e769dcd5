"""How much of the price of not knowing is unavoidable: the best collectors of tiny problems beside the strategies.

python -m evidence.price [--runs 1000]      writes evidence/results/price.md
"""

import argparse
import itertools
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

import gosprl
from evidence.runs import one
from gosprl import TabularMDP, theory

RESULT = Path(__file__).parent / "results" / "price.md"
STRATEGIES = {
    "guarded": {},
    "practical": {"strategy": "practical"},
    "gosprl x0.1": {"strategy": "gosprl", "scale": 0.1},
}
UP, RIGHT, DOWN, LEFT = (-1, 0), (0, 1), (1, 0), (0, -1)
TURNS = [np.roll(np.arange(4), k) for k in range(4)]
PLACES = 3  # decimals of a price


class Problem(NamedTuple):
    name: str
    candidates: list[TabularMDP]
    need: object  # as `collect` takes it


def doors(actions):
    """One action leads from 0 to 1, the others stay; all lead back. Candidates differ in which it is."""
    for door in range(actions):
        P = np.zeros((2, actions, 2))
        P[0, :, 0] = P[1, :, 0] = 1
        P[0, door] = [0, 1]
        yield TabularMDP(P)


def arms(chances):
    """The actions lead from 0 to 1 with these probabilities, in any order; all lead back."""
    for order in sorted(set(itertools.permutations(chances))):
        P = np.zeros((2, len(chances), 2))
        P[0] = [(1 - p, p) for p in order]
        P[1, :, 0] = 1
        yield TabularMDP(P)


def deterministic(states, actions):
    """All communicating MDPs in which every pair leads to one state."""
    for targets in itertools.product(range(states), repeat=states * actions):
        mdp = TabularMDP(np.eye(states)[np.array(targets)].reshape(states, actions, states))
        if mdp.is_communicating():
            yield mdp


def relabelled(P):
    """The same MDP with the actions of each state in any order, equal ones once."""
    orders = [
        {rows[list(order)].tobytes(): rows[list(order)] for order in itertools.permutations(range(len(rows)))}
        for rows in P
    ]
    for chosen in itertools.product(*(each.values() for each in orders)):
        yield TabularMDP(np.array(chosen))


def turned(P, orders):
    """The same MDP with the actions in each of some orders, the same in all states."""
    for order in orders:
        yield TabularMDP(P[:, list(order)])


def grid(rows, columns, slip=0.0, wall=None):
    """P [S, 4, S] of a grid; with `slip` a uniform direction instead. `wall`: two cells without a way between them."""
    cells = {cell: s for s, cell in enumerate(np.ndindex(rows, columns))}
    P = np.zeros((len(cells), 4, len(cells)))
    for (i, j), s in cells.items():
        beside = [cells.get((i + di, j + dj), s) for di, dj in (UP, RIGHT, DOWN, LEFT)]
        to = [s if {s, t} == wall else t for t in beside]
        for a, t in np.ndindex(4, 4):
            P[s, a, to[t]] += slip / 4 + (1 - slip) * (a == t)
    return P


def walled(rows, columns, slip=0.0):
    """The grid without a wall, and with one between any two cells."""
    S, open_grid = rows * columns, grid(rows, columns)
    walls = [{s, t} for s in range(S) for t in range(s + 1, S) if open_grid[s, :, t].any()]
    for wall in [None, *walls]:
        mdp = TabularMDP(grid(rows, columns, slip, wall))
        if mdp.is_communicating():
            yield mdp


def tree(depth, aim):
    """P of a tree with two branches: go down by choice, with 1 - aim to either; leaves lead back to the root."""
    S = 2 ** (depth + 1) - 1
    P = np.zeros((S, 2, S))
    for s, a in np.ndindex(S, 2):
        if 2 * s + 2 < S:
            P[s, a, 2 * s + 1 : 2 * s + 3] += (1 - aim) / 2
            P[s, a, 2 * s + 1 + a] += aim
        else:
            P[s, a, 0] = 1
    return P


def problems():
    """What is tried; a need of 1 is one sample of every pair, `each state` one sample of it with any action."""
    river = {S: gosprl.envs.make("riverswim", states=S).dense() for S in (3, 4)}
    yield Problem("5 doors, one opens; the state behind", list(doors(5)), np.array([0, 1]))
    yield Problem("3 ways, 0.8, 0.2, 0.2; 3 of the state behind", list(arms([0.8, 0.2, 0.2])), np.array([0, 3]))
    yield Problem("any deterministic MDP, 2 x 2", list(deterministic(2, 2)), 1)
    yield Problem("any deterministic MDP, 2 x 3", list(deterministic(2, 3)), 1)
    yield Problem("any deterministic MDP, 3 x 2", list(deterministic(3, 2)), 1)
    yield Problem("riverswim3, actions shuffled", list(relabelled(river[3])), 1)
    yield Problem("riverswim4, actions shuffled", list(relabelled(river[4])), 1)
    yield Problem("tree of 3 states, actions shuffled", list(relabelled(tree(1, 0.8))), 1)
    yield Problem(
        "tree of 7 states, actions shuffled; each state", list(relabelled(tree(2, 0.8))), np.ones(7, dtype=int)
    )
    yield Problem(
        "2 x 2 grid, directions unknown; each state",
        list(turned(grid(2, 2), itertools.permutations(range(4)))),
        np.ones(4, dtype=int),
    )
    yield Problem(
        "2 x 2 grid, slip 0.1, compass turned; each state", list(turned(grid(2, 2, 0.1), TURNS)), np.ones(4, int)
    )
    yield Problem("2 x 3 maze, at most one wall; each state", list(walled(2, 3)), np.ones(6, dtype=int))
    yield Problem("2 x 3 maze, the same, slip 0.1; each state", list(walled(2, 3, 0.1)), np.ones(6, dtype=int))


def walks(problem, options, runs, pool=map):
    """Steps [K, n] of `collect` in each candidate; n is runs / K, but at least 4."""
    K = len(problem.candidates)
    each = max(4, runs // K)
    jobs = [
        (mdp, None, options, each * k + i, problem.need, None)
        for k, mdp in enumerate(problem.candidates)
        for i in range(each)
    ]
    answers = list(pool(one, jobs))
    assert all(met for _, met, *_ in answers)
    return np.array([steps for steps, *_ in answers]).reshape(K, each)


def mean_of_candidates(steps):
    """Mean over candidates of the mean of their runs, steps [K, n], and half the width of its 95 % interval."""
    K, n = steps.shape
    return float(steps.mean()), 1.96 * float((steps.var(axis=1, ddof=1) / n).sum() ** 0.5) / K


def interval(lower, upper):
    """One number if the bounds agree in all decimals printed, else both."""
    texts = f"{lower:.{PLACES}f}", f"{upper:.{PLACES}f}"
    return texts[0] if upper - lower < 0.5 * 10**-PLACES else " to ".join(texts)


def fluid(problem):
    """The mean over the candidates of their fluid limits."""
    return f"{np.mean([gosprl.fluid_limit(mdp, problem.need) for mdp in problem.candidates]):.2f}"


def line(problem, runs, pool=map):
    """The line of one problem."""
    price = theory.bayes_price(problem.candidates, problem.need, tolerance=2e-4, max_nodes=40_000)
    worst = theory.minimax_price(problem.candidates, problem.need, tolerance=5e-3)
    cells = [problem.name, str(len(problem.candidates)), fluid(problem), f"{price.known:.2f}", interval(*price.ratio)]
    cells.append(interval(max(worst.lower, price.ratio[0]), worst.upper))  # the worst ratio is no less than a mean
    for options in STRATEGIES.values():
        mean, half = mean_of_candidates(walks(problem, options, runs, pool))
        cells.append(f"{mean / price.known:.3f} ± {half / price.known:.3f}")
        if mean + 3 * half < price.lower:
            raise AssertionError(
                f"{problem.name}: {options} takes {mean} ± {half} steps, below the bound {price.lower}"
            )
    return f"| {' | '.join(cells)} |"


def head(runs):
    """The lines above those of the problems."""
    return [
        "# The price of not knowing, and how much of it is unavoidable",
        "",
        f"`python -m evidence.price --runs {runs}`: expected steps to the need, one sample of every pair unless a",
        "line says otherwise, over those of the best collector that knows the dynamics. Its steps are `known`, at",
        "least the fluid limit: means over some candidates of the same probability, one of which is the truth. `Bayes`",
        "is the best collector that knows the candidates but not the truth: no strategy has a smaller mean. `minimax`",
        "is the least that any collector pays in the candidate that is worst for it. Two numbers are bounds from below",
        "and from above ([docs/theory/price.md](../../docs/theory/price.md)).",
        "",
        f"The strategies are given nothing, not even the candidates: means of about {runs} runs, as many in each",
        "candidate (at least 4), ± their 95 % intervals. So what they pay above `Bayes` may be avoidable only for",
        "those who know the candidates. `Any deterministic MDP` (S states x A actions, communicating) gives away",
        "the least.",
        "",
        f"| | candidates | fluid limit | known | Bayes | minimax | {' | '.join(STRATEGIES)} |",
        "|---|" + "---|" * (5 + len(STRATEGIES)),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    runs, began = parser.parse_args().runs, time.time()
    lines = head(runs)
    print("\n".join(lines))
    one((next(doors(2)), None, {}, 0, 1, None))  # compile before the workers start
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        for problem in problems():
            lines.append(line(problem, runs, lambda f, jobs: workers.map(f, jobs, chunksize=16)))
            print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")
    print(f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
