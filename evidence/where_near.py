"""Where guarded collection comes near the limit that no collector beats, and where it does not.

Few samples, in all of a system or in a part of it, have to be found first; in very random systems, such as FrozenLake,
each way takes long, and few samples do not tell which is short. Known dynamics show what of that is not knowing.

python -m evidence.where_near [--runs 10]      writes evidence/results/where_near.md
"""

import argparse
from pathlib import Path

import gymnasium
import numpy as np

import gosprl
from evidence.families import few_states, maze, queues
from evidence.near_limit import ratio_cell
from evidence.runs import many

RESULT = Path(__file__).parent / "results" / "where_near.md"
SETTINGS = {"guarded": ({}, None), "guarded, known dynamics": ({}, "dynamics")}  # (options, what it is told)
LAKE = "FrozenLake 8x8"
NEEDS = (1, 10, 100)
PARTS = (1, 10)


def lake():
    """FrozenLake as a table: holes and the goal are states that lead to the start."""
    return gosprl.TabularMDP.from_gymnasium(gymnasium.make("FrozenLake8x8-v1"))


SYSTEMS = {
    LAKE: lake,
    "four_room43": lambda: gosprl.envs.make("four_room43"),
    "riverswim36": lambda: gosprl.envs.make("riverswim36"),
    "noisy_riverswim36": lambda: gosprl.envs.make("noisy_riverswim36"),
    "maze 14 x 14": lambda: maze(14, 0),
    "queues of 8": lambda: queues(8),
}


def some(mdp, samples):
    """Samples of every pair of a twentieth of the states."""
    exists = mdp.rows.to_dense(np.ones(len(mdp.rows), dtype=np.int64))
    return np.minimum(few_states(mdp, number=samples), samples * exists)


def cells(mdp, need, runs):
    limit = gosprl.fluid_limit(mdp, need)
    done = (many(mdp, options, runs, told=told, need=need, max_steps=50_000_000) for options, told in SETTINGS.values())
    return [f"{limit:,.0f}", *(ratio_cell(each.steps / limit) for each in done)]


def table(needs, of, runs):
    lines = [f"| system | samples of {of} | fluid limit | " + " | ".join(SETTINGS) + " |", "|---|---|---|---|---|"]
    for name, make in SYSTEMS.items():
        mdp = make()
        for samples, need in needs(mdp):
            lines.append(f"| {name} | {samples} | " + " | ".join(cells(mdp, need, runs)) + " |")
            print(lines[-1], flush=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    lines = [
        "# Near the limit, and far from it",
        "",
        f"`python -m evidence.where_near --runs {runs}`: steps / fluid limit, mean of {runs} runs ± its 95 % interval.",
        "A mean below 1 is chance: the limit bounds expectations.",
        "",
        "## Every pair",
        "",
        *table(lambda mdp: [(need, need) for need in NEEDS], "every pair", runs),
        "",
        "## Every pair of a twentieth of the states",
        "",
        *table(lambda mdp: [(n, some(mdp, n)) for n in PARTS], "these pairs", runs),
    ]
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
