"""Optimistic planning against a plain dense extended value iteration: time, sweeps, memory.

    python benchmarks/planning.py      writes benchmarks/results/planning.md

Both sides stop at the same residual, and get the confidence sets ready-made, except that after a change of the counts
our time includes the new sets. Ratios are within one run, medians over several random instances. `dense` is
benchmarks/dense_evi.py; `plain` is method="value-iteration" on our sparse rows.
"""

import numpy as np
from dense_evi import dense_evi
from report import ONCE, cells, clock, header, in_child, medians, options, peak_memory, timed, write

import gosprl
from gosprl.envs import make

ALPHA, DELTA, PRECISION = 0.1, 0.1, 1e-6
NAMED = {"confidence": "bernstein", "scale": ALPHA, "delta": DELTA}
START = 0
# (S, N, goals, instances, dense / ours to reach)
COLD = (
    (50, 50, 1, 9, "1.3"),
    (50, 1000, 1, 9, "4"),
    (1000, 50, 1, 5, "-"),
    (1000, 1000, 1, 5, "120"),
    (1000, 1000, 20, 5, "60"),
    (5000, 50, 1, 2, "100"),
)
WARM = ((1000, 1000, 1, 5, "row doubled", "400"), (1000, 1000, 20, 5, "goal dropped", "120"))
QUICK_COLD = ((50, 50, 1, 1, "-"),)
QUICK_WARM = ((50, 50, 1, 1, "row doubled", "-"), (50, 50, 5, 1, "goal dropped", "-"))
LARGE = 2000  # states from which on a dense run is made once an instance


class Ready(gosprl.Confidence):
    """A confidence family whose sets were computed before the clock started."""

    def __init__(self, intervals):
        self._intervals = intervals

    def intervals(self, model, rows=None):
        return self._intervals


def sampled_garnet(S, N, seed):
    """Counts of N samples of every pair of a Garnet(S, 5, 5)."""
    mdp = make("garnet", states=S, actions=5, branching=5, seed=seed)
    rng = np.random.default_rng(seed)
    counts = [rng.multinomial(N, mdp.prob[mdp.ptr[r] : mdp.ptr[r + 1]]) for r in range(len(mdp.rows))]
    row = np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    parts = (mdp.rows.state[row], mdp.rows.action[row], mdp.succ, np.concatenate(counts))
    return gosprl.EmpiricalModel.from_counts(*parts, states=S, actions=5)


def dense_ends(model, intervals):
    """The same sets as arrays [S, A, S]."""
    S, A = model.num_states, model.num_actions
    upper = np.repeat(intervals.each[:, None], S, axis=1)
    lower = np.zeros_like(upper)
    row = np.repeat(np.arange(S * A), np.diff(intervals.ptr))
    lower[row, intervals.succ], upper[row, intervals.succ] = intervals.lower, intervals.upper
    return lower.reshape(S, A, S), upper.reshape(S, A, S)


def time_dense(model, intervals, goals):
    """(seconds, values, sweeps) of the dense solver."""
    lower, upper = dense_ends(model, intervals)
    goal = np.isin(np.arange(model.num_states), goals)
    pace = ONCE if model.num_states >= LARGE else {}
    seconds, (values, _, sweeps) = timed(lambda: dense_evi(lower, upper, goal, PRECISION), **pace)
    return seconds, values, sweeps


def check(plan, values):
    """The plan's values are a lower bound of the dense solver's, and no further off than either's stopping allows."""
    assert np.all(plan.values <= (1 + 2 * PRECISION) * values + 1e-12), "not a lower bound"
    assert np.allclose(plan.values, values, rtol=10 * PRECISION, atol=0), "the two solve different problems"


def compare_cold(S, N, num_goals, seed):
    """Seconds and sweeps of one instance."""
    model = sampled_garnet(S, N, seed)
    intervals = gosprl.Bernstein(DELTA, ALPHA).intervals(model)
    goals = np.arange(1, num_goals + 1)
    dense, values, dense_sweeps = time_dense(model, intervals, goals)
    ready = {"confidence": Ready(intervals), "precision": PRECISION}
    plain, plain_plan = timed(lambda: gosprl.plan(model, goals, method="value-iteration", **ready))
    ours, plan = timed(lambda: gosprl.plan(model, goals, **ready))
    check(plan, values)
    check(plain_plan, values)
    return {
        "dense": dense,
        "dense sweeps": dense_sweeps,
        "plain": plain,
        "ours": ours,
        "our sweeps": plan.sweeps,
        "ratio": dense / ours,
    }


def compare_warm(S, N, num_goals, change, seed):
    """The same for planning again after a change, always from the plan made before it."""
    model = sampled_garnet(S, N, seed)
    goals = np.arange(1, num_goals + 1)
    before = gosprl.plan(model, goals, precision=PRECISION, **NAMED)
    kept = before.values.copy()
    if change == "row doubled":  # that of the action taken first
        s, a, s_next, count = model.transitions()
        again = np.repeat(s_next, count * ((s == START) & (a == before.policy[START])))
        model.update(np.full(len(again), START), np.full(len(again), before.policy[START]), again)
    else:
        goals = goals[1:]
    dense, values, dense_sweeps = time_dense(model, gosprl.Bernstein(DELTA, ALPHA).intervals(model), goals)
    ours, plan = timed(lambda: gosprl.plan(model, goals, precision=PRECISION, warm=before, **NAMED))
    check(plan, values)
    assert np.array_equal(before.values, kept), "the earlier plan was overwritten"
    return {
        "dense": dense,
        "dense sweeps": dense_sweeps,
        "ours": ours,
        "our sweeps": plan.sweeps,
        "ratio": dense / ours,
    }


def times_tables(quick):
    lines = [
        f"## Time of a plan (ms; garnet, A = 5, branching 5, Bernstein x{ALPHA}, precision {PRECISION:g})",
        "",
        *header("S", "N a pair", "goals", "dense (sweeps)", "plain sparse", "ours (sweeps)", "dense / ours", "target"),
    ]
    for S, N, goals, instances, target in QUICK_COLD if quick else COLD:
        m = medians([compare_cold(S, N, goals, seed) for seed in range(instances)])
        dense = f"{1e3 * m['dense']:.2f} ({m['dense sweeps']:.0f})"
        ours = f"{1e3 * m['ours']:.2f} ({m['our sweeps']:.0f})"
        lines.append(cells(S, N, goals, dense, f"{1e3 * m['plain']:.2f}", ours, f"{m['ratio']:.1f}", target))
    lines += [
        "",
        "## Planning again after a change, from the plan before it (ms; the dense solver begins anew)",
        "",
        *header("S", "N a pair", "goals", "change", "dense (sweeps)", "ours (sweeps)", "dense / ours", "target"),
    ]
    for S, N, goals, instances, change, target in QUICK_WARM if quick else WARM:
        m = medians([compare_warm(S, N, goals, change, seed) for seed in range(instances)])
        dense = f"{1e3 * m['dense']:.2f} ({m['dense sweeps']:.0f})"
        ours = f"{1e3 * m['ours']:.2f} ({m['our sweeps']:.0f})"
        lines.append(cells(S, N, goals, change, dense, ours, f"{m['ratio']:.1f}", target))
    return lines


def use_memory(S):
    """(stored transitions, seconds of a cold plan with its sets, peak bytes); S = 0: only the compiled code."""
    gosprl.plan(sampled_garnet(50, 50, 0), [1], **NAMED)
    if not S:
        return 0, 0.0, peak_memory()
    model = sampled_garnet(S, 100, 0)
    begin = clock()
    plan = gosprl.plan(model, [1], precision=PRECISION, **NAMED)
    seconds, peak = clock() - begin, peak_memory()
    assert np.isfinite(plan.values).all()
    return len(model.stored()[1]), seconds, peak


def memory_table(quick):
    if not quick:
        in_child("planning", "use_memory(0)")  # a process that compiles takes more; the next ones find its code on disk
    _, _, base = in_child("planning", "use_memory(0)")
    lines = [
        "## Memory of the whole process: domain, counts, sets and a cold plan (garnet, A = 5, branching 5, N = 100)",
        "",
        f"Imports and compiled code alone take {base / 1e6:.0f} MB. Target at S = 100,000: 700 MB, 5 s.",
        "",
        *header(
            "S", "transitions", "cold plan (s)", "peak (MB)", "bytes a transition beyond that", "two dense arrays (MB)"
        ),
    ]
    for S in (1000,) if quick else (10_000, 30_000, 100_000, 300_000):
        transitions, seconds, peak = in_child("planning", f"use_memory({S})")
        extra = f"{(peak - base) / transitions:.0f}"
        dense = f"{2 * 8 * S * 5 * S / 1e6:,.0f}"
        lines.append(cells(f"{S:,}", f"{transitions:,}", f"{seconds:.2f}", f"{peak / 1e6:.0f}", extra, dense))
    return lines


if __name__ == "__main__":
    quick = options(__doc__).quick
    memory = memory_table(quick)  # first: a child's peak begins at what its parent holds
    write("planning", ["# Planning", "", *times_tables(quick), "", *memory], quick=quick)
