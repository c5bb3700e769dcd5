"""Planning against the model checker Storm: optimistic plans, and known dynamics.

    python benchmarks/storm.py      writes benchmarks/results/storm.md

All sides stop at the same absolute residual and must agree. Storm gives values only; it is driven through stormpy, its
model built from lists in one call, and building counts apart from solving. Ratios are within one run, medians over
several random instances. With known dynamics the others begin with arrays by row, we with (s, a, s_next, p) to check.
"""

import numpy as np
import stormpy
from planning import ALPHA, DELTA, PRECISION, Ready, sampled_garnet
from report import ONCE, cells, header, medians, options, timed, write
from scipy.sparse import csr_array

import gosprl
from gosprl.envs import make
from gosprl.sets.intervals import Intervals

TINY = 1e-12  # Storm refuses lower ends of 0 on unbounded rewards
LEAST_COST = stormpy.parse_property('R{"cost"}min=? [F "goal"]')
METHODS = stormpy.environments.MinMaxMethod


def storm_mdp(rows, ptr, succ, values, goal):
    """Storm's model of rows with increasing successors; the goals are absorbing and free."""
    kind = type(values[0])
    loop = ptr[rows.ptr[goal]]  # the first entry of a goal stands for all its rows
    kept = np.repeat(rows.state != goal, np.diff(ptr))
    kept[loop] = True
    number = np.cumsum(rows.state != goal) - 1  # of the rows that are left: none at the goal, but for its loop
    number[rows.ptr[goal] :] += 1
    row = np.repeat(number, np.diff(ptr))[kept]
    succ = np.where(np.arange(len(succ)) == loop, goal, succ)[kept]
    values = [*values[:loop], kind(1.0), *values[ptr[rows.ptr[goal + 1]] :]]
    S, R = rows.num_states, int(number[-1]) + 1
    matrix = stormpy.datastructures.SparseMatrixBuilder[kind](
        rows=R, columns=S, has_custom_row_grouping=True, row_groups=S
    )
    matrix.add_next_values(row.tolist(), succ.tolist(), values, number[rows.ptr[:-1]].tolist())
    labels = stormpy.models.StateLabeling(S)
    labels.add_label("goal")
    labels.add_label_to_state("goal", goal)
    costs = [kind(1.0)] * R
    costs[number[rows.ptr[goal]]] = kind(0.0)
    reward = stormpy.models.SparseRewardModel[kind](optional_state_action_reward_vector=costs)
    parts = stormpy.models.SparseModelComponents[kind](
        transition_matrix=matrix.build(), state_labeling=labels, reward_models={"cost": reward}
    )
    return stormpy.models.SparseMdp[kind](parts)


def storm_values(mdp, method, **mode):
    environment = stormpy.Environment()
    solver = environment.solver().min_max()
    solver.method = method
    solver.precision = stormpy.Rational(f"1/{round(1 / PRECISION)}")
    solver.relative_termination_criterion = False
    return stormpy.model_checking(mdp, LEAST_COST, environment=environment, **mode).get_value_vector()


def interval_mdp(rows, sets, goal, everywhere):
    """Storm's model of the sets; `everywhere`: unseen successors too, each with an interval of its own."""
    Interval, S = stormpy.Interval, rows.num_states
    seen = [Interval(low, high) for low, high in zip(sets.lower.tolist(), sets.upper.tolist(), strict=True)]
    if not everywhere:
        return storm_mdp(rows, sets.ptr, sets.succ, seen, goal)
    values = []
    for r in range(len(rows)):
        row = [Interval(TINY, float(sets.each[r]))] * S
        for i in range(sets.ptr[r], sets.ptr[r + 1]):
            row[sets.succ[i]] = seen[i]
        values += row
    return storm_mdp(rows, S * np.arange(len(rows) + 1), np.tile(np.arange(S), len(rows)), values, goal)


def compare_optimistic(S, N, everywhere, seed, goal=1):
    """Seconds of one instance."""
    model = sampled_garnet(S, N, seed)
    sets = gosprl.Bernstein(DELTA, ALPHA).intervals(model)
    none = np.zeros(len(model.rows))
    each, total = (sets.each, sets.total) if everywhere else (none, none)
    sets = Intervals(sets.ptr, sets.succ, np.maximum(sets.lower, TINY), sets.upper, each, total)
    pace = ONCE if everywhere else {}
    build, mdp = timed(lambda: interval_mdp(model.rows, sets, goal, everywhere), **pace)
    mode = stormpy.UncertaintyResolutionMode.COOPERATIVE
    solve, values = timed(lambda: storm_values(mdp, METHODS.VALUE_ITERATION, uncertainty_resolution_mode=mode), **pace)
    ours, plan = timed(lambda: gosprl.plan(model, [goal], confidence=Ready(sets), precision=PRECISION))
    check(plan, values)
    return {"build": build, "solve": solve, "ours": ours, "ratio": solve / ours}


def scipy_values(row_ptr, ptr, succ, prob, goal):
    """(values, sweeps) of value iteration with one sparse matrix [R, S] and unit costs."""
    P = csr_array((prob, succ, ptr), shape=(len(ptr) - 1, len(row_ptr) - 1))
    v, residual, sweeps = np.zeros(P.shape[1]), np.inf, 0
    while residual > PRECISION:
        new = np.minimum.reduceat(1 + P @ v, row_ptr[:-1])
        new[goal] = 0
        residual = np.abs(new - v).max()
        v, sweeps = new, sweeps + 1
    return v, sweeps


def compare_known(mdp, goal):
    """Seconds, building included on all sides."""
    row = np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    parts = (mdp.rows.state[row], mdp.rows.action[row], mdp.succ, mdp.prob)
    build, model = timed(lambda: storm_mdp(mdp.rows, mdp.ptr, mdp.succ, mdp.prob.tolist(), goal))
    solve, values = timed(lambda: storm_values(model, METHODS.TOPOLOGICAL))
    sparse, (sparse_values, sparse_sweeps) = timed(
        lambda: scipy_values(mdp.rows.ptr, mdp.ptr, mdp.succ, mdp.prob, goal)
    )
    our_build, own = timed(lambda: gosprl.TabularMDP(parts, states=mdp.num_states, actions=mdp.num_actions))
    our_solve, plan = timed(lambda: gosprl.plan(own, [goal], precision=PRECISION))
    check(plan, values)
    check(plan, sparse_values)
    ours = our_build + our_solve
    return {
        "build": build,
        "solve": solve,
        "sparse": sparse,
        "sparse sweeps": sparse_sweeps,
        "our build": our_build,
        "our solve": our_solve,
        "our sweeps": plan.sweeps,
        "ratio": (build + solve) / ours,
        "sparse ratio": sparse / ours,
    }


def check(plan, values):
    """Values and residual are both in steps, so a residual of `PRECISION` is about that much relative error."""
    assert np.allclose(plan.values, values, rtol=10 * PRECISION, atol=0), "the two solve different problems"


def optimistic_table(quick):
    lines = [
        f"## Optimistic plans (ms; garnet, A = 5, branching 5, Bernstein x{ALPHA}, precision {PRECISION:g}, 1 goal)",
        "",
        f"Storm refuses lower ends of 0, so they are {TINY:g} here: for every successor, or for those observed, all "
        "others being excluded on both sides.",
        "",
        *header("S", "N a pair", "successors", "Storm's build", "Storm's solve", "ours", "solve / ours", "target"),
    ]
    for S, N, successors, instances, target in (
        ((30, 1000, "all", 1, "-"), (30, 1000, "observed", 1, "-"))
        if quick
        else ((1000, 1000, "all", 3, "500"), (1000, 1000, "observed", 5, "-"))
    ):
        m = medians([compare_optimistic(S, N, successors == "all", seed) for seed in range(instances)])
        times = (f"{1e3 * m[key]:.2f}" for key in ("build", "solve", "ours"))
        lines.append(cells(S, N, successors, *times, f"{m['ratio']:.1f}", target))
    return lines


def known_table(quick):
    n, S, seeds = (5, 30, 1) if quick else (30, 1000, 5)
    garnets = [make("garnet", states=S, actions=5, branching=5, seed=seed) for seed in range(seeds)]
    lines = [
        f"## Known dynamics (ms; building + solving, (sweeps); precision {PRECISION:g})",
        "",
        *header("domain", "Storm, topological", "scipy.sparse", "ours", "Storm / ours", "target", "scipy / ours"),
    ]
    for name, instances in (
        (f"open_grid({n}, {n})", [(make("open_grid", rows=n, columns=n), n * n - 1)]),
        (f"garnet({S})", [(garnet, 1) for garnet in garnets]),
    ):
        m = medians([compare_known(mdp, goal) for mdp, goal in instances])
        theirs = f"{1e3 * m['build']:.2f} + {1e3 * m['solve']:.2f}"
        sparse = f"{1e3 * m['sparse']:.2f} ({m['sparse sweeps']:.0f})"
        ours = f"{1e3 * m['our build']:.2f} + {1e3 * m['our solve']:.2f} ({m['our sweeps']:.0f})"
        lines.append(cells(name, theirs, sparse, ours, f"{m['ratio']:.1f}", "1", f"{m['sparse ratio']:.1f}"))
    return lines


if __name__ == "__main__":
    quick = options(__doc__).quick
    lines = ["# Planning, beside Storm", "", *optimistic_table(quick), "", *known_table(quick)]
    write("storm", lines, quick=quick, packages=("stormpy",))
