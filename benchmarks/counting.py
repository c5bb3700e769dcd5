"""Updates of an EmpiricalModel from compiled code.

python benchmarks/counting.py      writes benchmarks/results/counting.md
"""

import numpy as np
from report import median_time, write

import gosprl
from gosprl import _kernels
from gosprl.envs import make

UPDATES = 1_000_000


def updates_a_second(mdp, seed=0):
    """Of transitions of random pairs, through `update` (checks included) and from compiled code alone."""
    rng = np.random.default_rng(seed)
    row = rng.integers(len(mdp.rows), size=UPDATES)
    width = np.diff(mdp.ptr)[row]
    s_next = mdp.succ[mdp.ptr[row] + (rng.random(UPDATES) * width).astype(np.int64)]
    s, a = mdp.rows.state[row], mdp.rows.action[row]
    reward = np.zeros(UPDATES)
    model = gosprl.EmpiricalModel.from_transitions(s, a, s_next, states=mdp.num_states, actions=mdp.num_actions)
    checked = median_time(lambda: model.update(s, a, s_next, reward))
    compiled = median_time(lambda: _kernels.record_many(model._counts, 0, row, s_next, reward))
    return UPDATES / checked, UPDATES / compiled


if __name__ == "__main__":
    lines = [
        "# Counting",
        "",
        "Millions of updates a second:",
        "",
        "| domain | `update(arrays)` | compiled code |",
        "|---|---|---|",
    ]
    for name, parameters in (
        ("four_room43", {}),
        ("noisy_riverswim36", {}),
        ("garnet", {"states": 1000, "actions": 5, "branching": 5}),
        ("garnet", {"states": 100_000, "actions": 5, "branching": 5}),
    ):
        mdp = make(name, **parameters)
        checked, compiled = updates_a_second(mdp)
        lines.append(f"| {mdp.name} | {checked / 1e6:.1f} | {compiled / 1e6:.1f} |")
    write("counting", lines)
