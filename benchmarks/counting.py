"""Updates of an EmpiricalModel from compiled code.

python benchmarks/counting.py      writes benchmarks/results/counting.md
"""

import numpy as np
from report import cells, header, options, timed, write

import gosprl
from gosprl import _kernels
from gosprl.envs import make

UPDATES = 1_000_000
DOMAINS = (
    ("four_room43", {}),
    ("noisy_riverswim36", {}),
    ("garnet", {"states": 1000, "actions": 5, "branching": 5}),
    ("garnet", {"states": 100_000, "actions": 5, "branching": 5}),
)


def updates_a_second(mdp, updates, seed=0):
    """Of transitions of random pairs, through `update` (checks included) and from compiled code alone."""
    rng = np.random.default_rng(seed)
    row = rng.integers(len(mdp.rows), size=updates)
    width = np.diff(mdp.ptr)[row]
    s_next = mdp.succ[mdp.ptr[row] + (rng.random(updates) * width).astype(np.int64)]
    s, a = mdp.rows.state[row], mdp.rows.action[row]
    reward = np.zeros(updates)
    model = gosprl.EmpiricalModel.from_transitions(s, a, s_next, states=mdp.num_states, actions=mdp.num_actions)
    checked, _ = timed(lambda: model.update(s, a, s_next, reward))
    compiled, _ = timed(lambda: _kernels.record_many(model.counts, 0, row, s_next, reward))
    return updates / checked, updates / compiled


if __name__ == "__main__":
    quick = options(__doc__).quick
    lines = ["# Counting", "", "Millions of updates a second:", ""]
    lines += header("domain", "`update(arrays)`", "compiled code")
    for name, parameters in DOMAINS[:1] if quick else DOMAINS:
        mdp = make(name, **parameters)
        checked, compiled = updates_a_second(mdp, 1000 if quick else UPDATES)
        lines.append(cells(mdp.name, f"{checked / 1e6:.1f}", f"{compiled / 1e6:.1f}"))
    write("counting", lines, quick=quick)
