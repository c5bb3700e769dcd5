"""Compiled kernels and the same Python run by the interpreter give the same bits."""

import os
import subprocess
import sys
from pathlib import Path

# Every array that a kernel fills is printed as a digest of its bytes, so one different last bit is a different line.
SCRIPT = """
import hashlib
import inspect
import sys
import threading

import gymnasium
import numba
import numpy as np

called = set()
if numba.config.DISABLE_JIT:  # see which kernels the interpreter runs
    def note(frame, event, arg):
        folder, _, file = frame.f_code.co_filename.rpartition("/")
        if event == "call" and (folder.endswith("_kernels") or file == "rules.py"):
            called.add(frame.f_code.co_name)
    sys.setprofile(note)
    threading.setprofile(note)  # hitting times are solved by threads

import gosprl
from gosprl import _kernels
from gosprl.collecting import rules
from gosprl.exchange.adding import add_counts
from gosprl.planning import ssp as planner
from gosprl.planning.solution import seen_of


def show(name, *arrays):
    parts = [np.ascontiguousarray(array) for array in arrays]
    digests = [hashlib.sha256(part.tobytes()).hexdigest()[:16] for part in parts]
    print(name, *(f"{part.dtype}{list(part.shape)}:{digest}" for part, digest in zip(parts, digests)))


print("jit", not numba.config.DISABLE_JIT, hasattr(_kernels.solve, "py_func"))

# counts, with a pool that has to grow, and one row's room that doubles twice
rng = np.random.default_rng(0)
S, A, n = 15, 2, 1500
exists = rng.random((S, A)) < 0.8
exists[:, 0] = True
exists[:6] = True
model = gosprl.EmpiricalModel(S, exists)
pairs = np.argwhere(exists)
likely = rng.dirichlet(np.full(S, 0.1), size=(S, A))
likely[:, 0] = 0.8 * np.eye(S)[(np.arange(S) + 1) % S] + 0.2 * np.eye(S)
likely[0, 1] = 1 / S
pool = len(model.counts.succ)
mark = 0
for block in range(3):
    s, a = pairs[rng.integers(len(pairs) - block, size=n // 3)].T
    s_next = [rng.choice(S, p=likely[pair]) for pair in zip(s, a)]
    model.update(s, a, s_next, rng.normal(size=len(s)))
    show("counts", *model.counts)
    show("changed", model.changed(mark))
    mark = model.mark()
    model.update(1, 1, 2)
show("changed", model.changed(mark))
assert len(model.counts.succ) > pool
s, a, s_next, count = model.transitions()
given = gosprl.EmpiricalModel.from_counts(s, a, s_next, count, states=S, actions=exists)
show("from_counts", *given.counts)
added = gosprl.EmpiricalModel(S, exists)
add_counts(added, added.rows.index(s, a), s_next, count)
add_counts(added, added.rows.index(s, a), s_next, count, np.ones_like(count))
added.update(s[:5], a[:5], (s_next[:5] + 1) % S)
show("added", *added.counts, gosprl.KL(0.1, 1.0).intervals(added).total)

# confidence sets
families = [gosprl.KL(0.1, 1.0), gosprl.KL(0.1, 0.03), gosprl.Bernstein(0.1, 0.02)]
for family in families:
    for source in (model, given):
        intervals = family.intervals(source)
        show(repr(family), intervals.lower, intervals.upper, intervals.each, intervals.total)
ends = [(k, n, budget) for n in (1, 7, 1000) for k in range(0, n + 1, 1 + n // 9) for budget in (0.01, 3.0, 80.0)]
from gosprl.sets import visits_for_unseen
growing = model.copy()
growing.max_states, growing.rank = None, np.arange(S, 0, -1)
for family in families:
    intervals = family.intervals(growing)
    show("growing", intervals.lower, intervals.upper, intervals.each, intervals.total)
    for source in (model, growing)[isinstance(family, gosprl.Bernstein) :]:
        show("visits", visits_for_unseen(source, family, np.arange(len(model.rows)), 0.01))
show("kl", [_kernels.kl_upper(*end) for end in ends])
from gosprl.model.committed import CommittedModel
for source in (model, growing):
    committed = CommittedModel(source.copy())
    for row in (0, 1, 1, 5, 7):
        committed.add_unknown(row)
    for family in families:
        intervals = family.intervals(committed)
        show("unknown", intervals.lower, intervals.upper, intervals.each, intervals.total)
    show("visits", visits_for_unseen(committed, families[0], np.arange(len(model.rows)), 0.01))

# certificates
from gosprl.sets import certificates
visited = np.flatnonzero(model.visits > 0)
means = np.append(model.visits[visited] * rng.random(len(visited)), [0.0, 3.0])
show("means", *certificates.mean_intervals(np.append(model.visits[visited], [0, 3]), means, means, 0.1))
for family in families:
    slack = certificates.slack(model, family, visited)
    show("slack", slack.up, slack.down, slack.extra)
    assert np.diff(slack.ptr).max() > certificates.FEW
    show("errors", *(certificates.model_errors(slack, norm) for norm in certificates.NORMS))
    show("lipschitz", *certificates.lipschitz_errors(slack, rng.uniform(0, 9, (S, S))))
    show("averages", *certificates.average_errors(slack, rng.normal(size=S)))

# candidates
closed = gosprl.EmpiricalModel(S, exists, successors=likely > 1e-9)
s, a, s_next, count = (part[:200] for part in model.transitions())
inside = likely[s, a, s_next] > 1e-9
closed.update(s[inside], a[inside], s_next[inside], 0.5)
show("closed", *closed.counts)
try:
    closed.update([2, 3], [0, 0], [3, 9])
    print("nothing is foreign")
except gosprl.GosprlError as error:
    print(error)
show("closed", *closed.counts)
for family in families:
    intervals = family.intervals(closed)
    show(repr(family), intervals.lower, intervals.upper, intervals.each, intervals.total)
    plan = gosprl.plan(closed, [0, 7], confidence=family, rng=3)
    show("plan", plan.values, plan.policy)

# planning; the trap 14 is closed for known dynamics, so that some states are out of reach
P = np.where(exists[:, :, None], likely, 0)
P[14] = P[13] = 0
P[14, 0, 14] = P[13, 0, 14] = 1
mdp = gosprl.TabularMDP(P)
costs = rng.uniform(1, 4, (S, A))
goals = [0, 7]
systems = [(mdp, {})] + [(model, {"confidence": family}) for family in families]
for system, options in systems:
    for method in planner.METHODS:
        plan = gosprl.plan(system, goals, costs=costs, method=method, rng=3, **options)
        warm = gosprl.plan(system, [3], method=method, warm=plan, precision=1e-8, **options)
        for result in (plan, warm):
            show(method, result.values, result.policy, result.rows, result.start_cost)
            print(result.sweeps, result.gap.hex(), result.residual.hex())
            print(result.values.max() > 3, np.isinf(result.values).sum())

# the pieces by themselves
sets = planner.as_sets(model.rows, families[1].intervals(model))
v = np.append(rng.uniform(0, 9, S - 1), _kernels.DEAD)
goal = np.arange(S) == 2
order, rank, prefix = np.arange(S), np.arange(S), np.zeros(S + 1)
alive, usable = np.empty(S, dtype=bool), np.empty(len(model.rows), dtype=bool)
_kernels.reach(sets, goal, alive, usable)
show("reach", alive, usable)
alive[-1] = False
usable[:] = [_kernels.stays_alive(sets, r, alive, S - 1) for r in range(len(usable))]
_kernels.rank_states(v, order, rank)
_kernels.accumulate(v, order, S - 1, prefix)
show("sorted", order, rank, prefix)
_kernels.rank_states(-v, order.copy(), rank.copy())
cost = np.ascontiguousarray(costs[exists])
best, q, out = np.full(S, -1), np.full(len(cost), -np.inf), v.copy()
frozen = _kernels.new_frozen(S, *_kernels.frozen_room(sets, order, S))
everything = (order, S - 1, order, rank, prefix, S - 1)
ends = _kernels.sweep(sets, cost, usable, goal, v, *everything, best, q, 0.0, out, frozen)
kept, room = ends[4], frozen.ptr[ends[4]]
show("sweep", ends, best, q, out, usable, sets.succ, sets.lower, sets.upper)
show("frozen", *(part[:kept] for part in frozen[:5]), frozen.succ[:room], frozen.weight[:room])
show("again", _kernels.sweep(sets, cost, usable, goal, v, *everything, best, q, -0.01, out, frozen), q)
history = np.cumsum(rng.random((_kernels.HISTORY + 1, S)) * 0.5 ** np.arange(_kernels.HISTORY + 1)[:, None], axis=0)
x = np.empty(S)
print("extrapolate", _kernels.extrapolate(history, x))
show("extrapolate", x)
leave, policy = np.empty(S), np.empty(S, dtype=np.int64)
for key in (-1, 12345):
    _kernels.greedy(model.rows.ptr, np.round(q), alive, 1e-6, key, seen_of(model), np.floor(v), leave, policy)
    show("greedy", leave, policy)
limit = np.full(len(q), 9)
_kernels.follow_flow(model.rows.ptr, np.round(q), 1.5, rng.normal(3, 4, len(q)), np.arange(len(q)), 0.25, policy, limit)
show("follow_flow", policy, limit)

# whole runs: simulated, on a Gymnasium environment, and hitting times
show("hitting_times", gosprl.envs.make("riverswim6").hitting_times())
simulated = gosprl.collect(gosprl.envs.make("riverswim6"), need=3, seed=0)
known = gosprl.collect(gosprl.envs.make("riverswim6"), need=3, seed=0, successors=gosprl.envs.make("riverswim6"))
try:
    gosprl.collect(
        gosprl.envs.make("riverswim6"), need=3, seed=0, successors=lambda s, a: range(4), strategy="gosprl"
    )
except gosprl.CollectionError as error:
    print(error)
    failed = error.result
toy = gosprl.envs.make("toy3")
collector = gosprl.Collector(3, toy.dense().any(axis=2), 3, seed=0, strategy="zero_one_ucrl", scale=0.1)
rival = collector.run(toy)
show("average", collector.planner.planner._v)
drawn = gosprl.collect(gosprl.envs.make("riverswim6"), need=2, seed=0, strategy="random")
stepped = gosprl.collect(gymnasium.make("FrozenLake-v1"), need=1, seed=0, max_steps=60)
for result in (simulated, known, failed, rival, drawn, stepped):
    show("collect", result.counts, result.curve["step"], *result.model.transitions())

# focused planning: open sets, closed sets, known dynamics; needs that come and go, so that goals are added
grid = gosprl.envs.make("open_grid", rows=4, columns=4)
waves = lambda model: np.where(np.arange(16) % 3 == int(model.visits.sum()) // 30 % 3, 5, 2)
for options in ({"scale": 0.03}, {"successors": grid, "scale": 0.1}, {"dynamics": grid}):
    costs = np.linspace(1, 3, 16)
    collector = gosprl.Collector(16, 4, waves, strategy="gosprl", seed=0, costs=costs, **options)
    result = collector.run(grid, max_steps=150)
    focus = collector.planner.focus
    print(result.work, focus.stayed, focus.left)
    show("focus", focus.values, focus._region.policy, focus._region.best, focus._region.head, focus._links.row)

# the fluid program by a first-order method: needs of both kinds, mass that escapes, a warm start
from gosprl.planning import approximate
rows, R = grid.rows, len(grid.rows)
pair, of_state, law = np.arange(R) % 3, np.arange(16) % 5 * 2, np.full(16, 1 / 16)
for escape in (None, np.linspace(0, 0.2, R)):
    kept = grid.prob if escape is None else grid.prob * (1 - np.repeat(escape, np.diff(grid.ptr)))
    given = (rows, grid.ptr, grid.succ, kept, np.linspace(0, 2, R), pair, of_state, law, escape)
    basis = approximate.solve(*given, work=10_000).basis
    flow = approximate.solve(*given, basis=basis, work=5_000)
    show("flow", flow.potential, np.array([flow.value, flow.gap]), flow.basis.x, flow.basis.v, flow.basis.y)

# the last samples with known dynamics
for river in (gosprl.envs.make("riverswim6"), gosprl.TabularMDP(np.eye(2)[:, None, :])):
    missing = np.arange(len(river.rows)) % 3
    size, item = missing[missing > 0] + 1, np.where(missing > 0, np.cumsum(missing > 0) - 1, -1)
    stride = np.append(1, np.cumprod(size))[:-1]
    values = np.zeros((int(np.prod(size)), river.num_states))
    best, arrays = np.zeros(values.shape, dtype=np.int64), (river.rows.ptr, river.ptr, river.succ, river.prob)
    enabled, cost = np.ones(len(river.rows), dtype=bool), np.ones(len(river.rows))
    done = _kernels.solve_levels(arrays, enabled, cost, item, size, stride, values, best, 1e-4, 1000)
    show("levels", np.array([done]), values, best)

# focused planning with prices
for options in ({"scale": 0.03}, {"dynamics": grid}):
    collector = gosprl.Collector(16, 4, 3, strategy="gosprl", seed=0, **options)
    collector.planner.prices = np.linspace(-3, 0, collector.planner.model.rows.num_states)
    gosprl.strategies.gosprl.FULL_STATES = 0
    result = collector.run(grid, max_steps=100)
    focus = collector.planner.focus
    show("priced", focus.values, focus.prices, focus._region.policy, result.counts)
gosprl.strategies.gosprl.FULL_STATES = 500

# the learnt prior: states that are unknown, needs per pair and per state, episodes that end
for need in (1, np.arange(16) % 3):
    collector = gosprl.Collector(16, 4, need, seed=0, prior=True)
    result = collector.run(grid, max_steps=150)
    prior = collector.planner.practical._prior
    learnt = [part for part in prior._learnt if isinstance(part, np.ndarray)]
    show("prior", result.counts, *learnt, *prior._learnt.steps, *prior._around, prior._means)
    prior.recall(prior.remember())
    show("prior", *learnt)
lake = gosprl.collect(gymnasium.make("FrozenLake-v1"), need=1, seed=0, max_steps=60, prior=True)
show("prior", lake.counts)
places = gosprl.collect(
    gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=9),
    need=1, seed=0, prior=True, key=lambda o, info: (-(10**20), *divmod(int(o), 4)),
)
show("prior", places.counts)
sys.setprofile(None)
functions = inspect.getmembers(_kernels, inspect.isfunction) + inspect.getmembers(rules, inspect.isfunction)
homes = (_kernels.__name__, rules.__name__)  # the walk compiles the rules
kernels = {name for name, function in functions if function.__module__.startswith(homes)}
print("not called:", *sorted(kernels - called))
"""


def output(**environment):
    """What the script prints: whether it ran compiled, the digests, and the Python kernels that it did not call."""
    root = Path(__file__).parents[2]
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    environment = inherited | environment | {"PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    mode, *digests, missing = done.stdout.splitlines()
    return mode, digests, missing


def test_compiled_and_interpreted_kernels_agree_bit_for_bit():
    mode, compiled, _ = output()
    assert mode == "jit True True"
    mode, interpreted, missing = output(NUMBA_DISABLE_JIT="1")
    assert mode == "jit False False"
    assert missing == "not called:"  # a new kernel has to be exercised in the script
    assert len(compiled) > 50
    assert compiled == interpreted
