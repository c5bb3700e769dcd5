"""Optimistic planning against a plain dense extended value iteration: time, sweeps, memory.

    python benchmarks/planning.py      writes benchmarks/results/planning.md

Both sides get the confidence sets ready-made and stop at the same residual; ratios are within one run, medians over
several random instances. `dense` is benchmarks/dense_evi.py; `plain` is method="value-iteration" on our sparse rows.
"""

import resource
import subprocess
import sys

import numpy as np
from dense_evi import dense_evi
from report import median_time, write

import gosprl
from gosprl.envs import make

ALPHA, DELTA, PRECISION = 0.1, 0.1, 1e-6
SEEDS = (0, 1, 2)


class Ready:
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


def compare(S, N, num_goals, seed):
    """Times in seconds of one instance, and sweeps: (dense, plain, ours, ours after one goal is dropped)."""
    model = sampled_garnet(S, N, seed)
    intervals = gosprl.Bernstein(DELTA, ALPHA).intervals(model)
    ready = Ready(intervals)
    goals = np.arange(1, num_goals + 1)
    goal = np.isin(np.arange(S), goals)
    lower, upper = dense_ends(model, intervals)

    def ours(goals=goals, **options):
        return gosprl.plan(model, goals, confidence=ready, precision=PRECISION, **options)

    values, _, dense_sweeps = dense_evi(lower, upper, goal, PRECISION)
    plan, plain = ours(), ours(method="value-iteration")
    assert np.allclose(values, plain.values, rtol=0, atol=1e-9), "the two solve different problems"
    assert np.all(plan.values <= (1 + plain.gap) * values + 1e-12), "not a lower bound"
    fewer = goals[1:] if num_goals > 1 else goals
    return {
        "dense": median_time(lambda: dense_evi(lower, upper, goal, PRECISION)),
        "plain": median_time(lambda: ours(method="value-iteration")),
        "ours": median_time(ours),
        "again": median_time(lambda: ours(fewer, warm=plan)),
        "dense sweeps": dense_sweeps,
        "our sweeps": plan.sweeps,
    }


def times_table():
    lines = [
        f"## Time of a plan (ms; garnet, A = 5, branching 5, Bernstein x{ALPHA}, precision {PRECISION:g})",
        "",
        "| S | N a pair | goals | dense (sweeps) | plain sparse | ours (sweeps) | dense / ours | warm, a goal fewer |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for S, N, goals in ((50, 50, 1), (50, 1000, 1), (1000, 50, 1), (1000, 1000, 1), (1000, 1000, 20)):
        runs = [compare(S, N, goals, seed) for seed in SEEDS]
        m = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
        ratio = float(np.median([run["dense"] / run["ours"] for run in runs]))
        again = f"{1e3 * m['again']:.2f}" if goals > 1 else "-"
        lines.append(
            f"| {S} | {N} | {goals} | {1e3 * m['dense']:.2f} ({m['dense sweeps']:.0f}) | {1e3 * m['plain']:.2f} "
            f"| {1e3 * m['ours']:.2f} ({m['our sweeps']:.0f}) | {ratio:.1f} | {again} |"
        )
    return lines


def peak_memory(S):
    """(stored transitions, peak bytes of a process that makes the counts and plans once); S = 0: only the imports."""
    code = f"import planning; print(*planning.use_memory({S}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=sys.path[0])
    transitions, peak = done.stdout.split()
    return int(transitions), int(peak)


def use_memory(S):
    transitions = 0
    gosprl.plan(sampled_garnet(50, 50, 0), [1], confidence="bernstein")  # loads the compiled code
    if S:
        model = sampled_garnet(S, 100, 0)
        assert np.isfinite(gosprl.plan(model, [1], confidence="bernstein", scale=ALPHA).values).all()
        transitions = len(model.transitions()[0])
    return transitions, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory_table():
    _, base = peak_memory(0)
    lines = [
        "## Memory of the whole process: domain, counts, sets and a cold plan (garnet, A = 5, branching 5, N = 100)",
        "",
        f"Imports and compiled code alone take {base / 1e6:.0f} MB.",
        "",
        "| S | stored transitions | peak (MB) | bytes a transition beyond that | two dense arrays take (MB) |",
        "|---|---|---|---|---|",
    ]
    for S in (10_000, 30_000, 100_000, 300_000):
        transitions, peak = peak_memory(S)
        dense = 2 * 8 * S * 5 * S / 1e6
        extra = (peak - base) / transitions
        lines.append(f"| {S:,} | {transitions:,} | {peak / 1e6:.0f} | {extra:.0f} | {dense:,.0f} |")
    return lines


if __name__ == "__main__":
    memory = memory_table()  # first: a child's peak begins at what its parent holds
    write("planning", ["# Planning", "", *times_table(), "", *memory])
