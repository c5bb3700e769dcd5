"""numba compiles a kernel anew for every combination of argument types. All callers agree on one.

Kernels that borrow arrays neither return arrays nor get some from other kernels: nobody would release them.
"""

import os
import subprocess
import sys
from pathlib import Path

from notices import COMPILING

# Plans, runs and applications of every kind; then the kernels that were not compiled exactly once.
SCRIPT = """
import contextlib
import io

import gymnasium
import numpy as np
from numba.core import types

import gosprl
from gosprl.model.committed import CommittedModel
from gosprl import _kernels, applications
from gosprl.cli.app import app

with contextlib.redirect_stdout(io.StringIO()):
    app("collect four_room43 --need 10 --seed 0 --compare".split(), standalone_mode=False)

rng = np.random.default_rng(0)
s, a, s_next, rewards = *(rng.integers(n, size=400) for n in (6, 2, 6)), rng.random(400)
model = gosprl.EmpiricalModel.from_transitions(s, a, s_next, states=6, actions=2)
model.update(1, 1, 2)
model.update(s[::2], a[::2], s_next[::2], rewards[::2])
model.update(s[::-1], a[::-1], s_next[::-1], 0.5)
counted = gosprl.EmpiricalModel.from_counts(*model.transitions(), states=6, actions=2)
for data in (model, counted, model.transitions()):
    gosprl.collect(gosprl.TabularMDP(np.full((6, 2, 6), 1 / 6)), 1, data=data, data_order="collected")
closed = gosprl.EmpiricalModel(6, 2, successors=np.ones((6, 2, 6), dtype=bool))
closed.update(s, a, s_next)
river = gosprl.envs.make("riverswim6")
families = ["kl", "bernstein", gosprl.KL(0.1, 0.03)]
for system, sets in [(river, [None]), (model, families), (counted, families), (closed, families)]:
    for method in ("modified-policy-iteration", "value-iteration"):
        for confidence in sets:
            options = {"method": method, "confidence": confidence}
            plan = gosprl.plan(system, [0], rng=1, **options)
            if system is not river:
                system.update(1, 1, 2)
            gosprl.plan(system, np.arange(6) == 3, costs=np.arange(1, 7), warm=plan, **options)
growing = model.copy()
growing.max_states, growing.rank = None, np.arange(1, 7)
for source, family in ((model, gosprl.KL()), (growing, gosprl.KL()), (growing, gosprl.Bernstein(0.1, 0.5))):
    gosprl.plan(source, [0], confidence=family)
    gosprl.sets.visits_for_unseen(source, family, np.arange(12), 0.1)
committed = CommittedModel(growing), CommittedModel(model)
for source in committed:
    for row in (0, 1, 3):
        source.add_unknown(row)
    for family in (gosprl.KL(), gosprl.Bernstein(0.1, 0.5)):
        gosprl.plan(source, [0], confidence=family)
        if source is committed[0] or isinstance(family, gosprl.KL):
            gosprl.sets.visits_for_unseen(source, family, np.arange(12), 0.1)
model.restrict(lambda s, a: range(6))
gosprl.plan(model, [0])
river.hitting_times()
river.ssp_diameters()
gosprl.fluid_limit(river, need=3)

grid = gosprl.envs.make("open_grid", rows=4, columns=4)
waves = lambda model: np.where(np.arange(16) % 3 == int(model.visits.sum()) // 30 % 3, 5, 2)
for options in ({"scale": 0.03}, {"successors": grid}, {"dynamics": grid}, {"confidence": "bernstein"}, {"reach": 3}):
    gosprl.collect(grid, waves, strategy="gosprl", seed=0, max_steps=150, costs=np.linspace(1, 3, 16), **options)
for strategy in ("guarded", "gosprl", "practical", "random", "zero_one_ucrl", "zero_rmax", "min_frequency"):
    gosprl.collect(grid, 2, strategy=strategy, seed=0, max_steps=300)
    gosprl.collect(gymnasium.make("FrozenLake-v1"), 9, strategy=strategy, seed=0, max_steps=100)
for need in (1, 2):
    gosprl.collect(grid, need, prior=True, seed=0, max_steps=300)
gosprl.collect(grid, np.arange(16) % 3, prior=True, seed=0, max_steps=300)
lake = gymnasium.make("FrozenLake-v1")
gosprl.collect(lake, 9, prior=True, seed=0, max_steps=100, key=lambda o, info: divmod(int(o), 4))
rewarded = river.with_rewards(np.linspace(0, 1, 6), noise="bernoulli")
gosprl.collect(rewarded, np.full((6, 2), 2), seed=0, threshold=0.9)

gosprl.strategies.prices.FLUID_STATES = gosprl.strategies.gosprl.FULL_STATES = 10
gosprl.strategies.prices.CHOICES = 0
for options in ({}, {"successors": grid}, {"dynamics": grid}):
    for need in (3, np.full(16, 10)):
        gosprl.collect(grid, need, strategy="practical", seed=0, fluid=True, **options)

short = {"seed": 0, "max_steps": 1000}
applications.best_state(rewarded, **short)
applications.find_treasure(rewarded, threshold=0.5, **short)
applications.estimate_rewards(rewarded, 0.3, **short)
applications.learn_policy(rewarded, 0.9, 0.5, **short)
for norm in ("l1", "max"):
    applications.estimate_model(river, 0.5, norm=norm, **short)
for rule in ("certified", "paper"):
    applications.estimate_diameter(river, 0.5, rule=rule, **short)
    applications.explore_all_goals(river, 1.0, c_min=0.5, rule=rule, **short).policy(0)

kernels = {name: kernel for name, kernel in vars(_kernels).items() if hasattr(kernel, "signatures")}
assert len(kernels) > 40
for name, kernel in kernels.items():
    inlined = kernel.targetoptions.get("inline") == "always"  # compiled as a part of its callers
    if len(kernel.signatures) != 1 - inlined:
        differing = [sorted(set(map(str, kinds))) for kinds in zip(*kernel.signatures)]
        print(name, len(kernel.signatures), *(kinds for kinds in differing if len(kinds) > 1))

# A kernel that borrows arrays counts no references: it must not get arrays from what it calls, nor return any.
def holds_arrays(kind):
    return isinstance(kind, types.Array) or isinstance(kind, types.BaseTuple) and any(map(holds_arrays, kind))

borrowing = {name: kernel for name, kernel in kernels.items() if kernel.targetoptions.get("_nrt") is False}
assert len(borrowing) > 40
for name, kernel in borrowing.items():
    for compiled in kernel.overloads.values():
        calls = compiled.type_annotation.calltypes.items()
        got = [call for call, kind in calls if getattr(call, "op", "") == "call" and holds_arrays(kind.return_type)]
        if got or holds_arrays(compiled.signature.return_type):
            print(name, "needs allocates=True:", got or compiled.signature.return_type)
"""


def test_every_kernel_is_compiled_once(tmp_path):
    """With an empty cache: numba may compile kernels for types that it drops later, when it infers a caller's types.

    In a fresh clone the package's own cache is empty. It is filled then, so that all other tests find it warm.
    """
    root = Path(__file__).parents[2]
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    environment["PYTHONPATH"] = str(root)
    if "NUMBA_CACHE_DIR" in environment or any((root / "gosprl" / "_kernels").glob("__pycache__/*.nbi")):
        environment["NUMBA_CACHE_DIR"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(COMPILING)
