"""Prices of goals in large systems: the fluid program by three methods, and whole runs with and without prices.

    python benchmarks/prices.py      writes benchmarks/results/prices.md

A gap is that of the potential: what it proves (`gosprl.planning.approximate`, certificate) is compared with the best
bound found, in parts of the cost beyond the needed samples. So simplex, PDLP and ours are judged by the same measure.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
from report import ONCE, cells, clock, header, options, timed, write

import gosprl
from gosprl.planning import approximate, fluid

sys.path.append(str(Path(__file__).parents[1]))
from evidence.families import queues

PROGRAMS = (
    ("garnet", 500, 3),
    ("garnet", 1000, 3),
    ("garnet", 1000, 10),
    ("queues", 30, 0),
    ("garnet", 3000, 3),
    ("garnet", 10_000, 3),
)
SIMPLEX, PDLP = 1000, 3000  # most states that these are tried with
RUNS = (  # (family, size, branching, need, whether the dynamics are known)
    *(("garnet", 1000, 3, need, known) for known in (True, False) for need in (1, 3, 10)),
    ("garnet", 1000, 10, 3, True),
    ("garnet", 1000, 10, 3, False),
    *(("queues", 30, 0, need, True) for need in (1, 3, 10)),
    ("queues", 30, 0, 3, False),
    ("grid", 32, 0, 3, True),
    ("grid", 32, 0, 3, False),
    ("garnet", 3000, 3, 3, True),
    ("garnet", 3000, 3, 3, False),
    ("garnet", 10_000, 3, 3, True),
)
STEPS = (100, 300, 1000)  # iterations


@cache
def system(family, size, branching):
    if family == "garnet":
        return gosprl.envs.make("garnet", states=size, actions=5, branching=branching, seed=0)
    return queues(size) if family == "queues" else gosprl.envs.make("open_grid", rows=size, columns=size)


def name_of(family, size, branching):
    return f"garnet, {size} states, branching {branching}" if family == "garnet" else f"{family} {size} x {size}"


def program(mdp, need):
    S, R = mdp.num_states, len(mdp.rows)
    law = (np.arange(S) == 0).astype(float)
    return [mdp.rows, mdp.ptr, mdp.succ, mdp.prob, np.ones(R), need, np.zeros(S, dtype=np.int64), law]


def proven(given, potential):
    """What a potential proves: no iteration changes it but one, which is too small to count."""
    start = approximate.Start(
        np.zeros(len(given[0])), potential, 0 * potential, (0.0, np.zeros(0), np.zeros(0, int)), 1
    )
    return approximate.solve(*given, basis=start, work=0).value


def by_highs(given, solver, tolerance=None, before=None):
    """(CPU seconds, potential [S], solution) of HiGHS."""
    import highspy

    kept = {}

    def keep(program, basis):
        kept["program"] = program
        raise StopIteration

    original, fluid._run = fluid._run, keep
    try:
        fluid.solve(*given)
    except StopIteration:
        pass
    finally:
        fluid._run = original
    highs, made = highspy.Highs(), kept["program"]
    highs.silent()
    highs.setOptionValue("solver", solver)
    highs.setOptionValue("parallel", "off")
    if tolerance is not None:
        highs.setOptionValue("kkt_tolerance", tolerance)
        highs.setOptionValue("pdlp_iteration_limit", 100_000)
    highs.passModel(made.model(1.0, np.zeros(len(made.cost)), 0.0))
    if before is not None:
        highs.setBasis(before) if solver == "simplex" else highs.setSolution(before)
    begin = clock()
    highs.run()
    seconds = clock() - begin
    solution = highs.getSolution()
    potential = np.minimum(np.array(solution.row_dual)[: len(given[7])], 0)
    return seconds, potential, highs.getBasis() if solver == "simplex" else solution


def methods(given, later):
    """Yield (method, seconds and potential cold, seconds and potential warm) for a need and a later one."""
    S = len(given[7])
    for solver, tolerance, most in (("simplex", None, SIMPLEX), ("pdlp", 1e-2, PDLP), ("pdlp", 1e-4, PDLP // 2)):
        if most >= S:
            cold, v, solution = by_highs(given, solver, tolerance)
            warm, w, _ = by_highs(later, solver, tolerance, solution)
            yield f"HiGHS {solver}" + (f" {tolerance:g}" if tolerance else ""), cold, v, warm, w
    size = len(given[2]) + len(given[0]) + S
    start = approximate.solve(*given, work=1000 * size).basis
    for steps in STEPS:
        cold, flow = timed(lambda n=steps: approximate.solve(*given, work=n * size), **ONCE)
        warm, again = timed(lambda n=steps: approximate.solve(*later, basis=start, work=n * size), **ONCE)
        yield f"ours, {steps} iterations", cold, flow.potential, warm, again.potential


def programs(sizes, random):
    """The lines of the first table."""
    yield from header("program", "method", "cold, s", "gap", "warm, s", "gap")
    for chosen in sizes:
        mdp = system(*chosen)
        need = random.integers(0, 11, len(mdp.rows))
        given, later = (program(mdp, b) for b in (need, np.maximum(need - (random.random(len(need)) < 0.2), 0)))
        made = list(methods(given, later))
        size = len(mdp.succ) + len(mdp.rows) + mdp.num_states
        best = approximate.solve(*given, work=5000 * size)
        limits = []
        for each, potentials in ((given, [m[2] for m in made]), (later, [m[4] for m in made])):
            warm = approximate.solve(*each, basis=best.basis, work=5000 * size).value
            bounds = [proven(each, v) for v in potentials]
            limits.append((max(warm, *bounds), bounds, float(each[5].sum())))
        for i, (method, cold, _, warm, _) in enumerate(made):
            gaps = [f"{max(0.0, (best - bounds[i]) / (best - base)):.4f}" for best, bounds, base in limits]
            yield cells(name_of(*chosen), method, f"{cold:.3f}", gaps[0], f"{warm:.3f}", gaps[1])
            print(name_of(*chosen), method, cold, warm, *gaps, flush=True)


def runs(chosen, seeds):
    """The lines of the second table."""
    columns = "steps / limit, nearest first", "priced", "us a step, nearest first", "priced", "programs"
    yield from header("system", "dynamics", "need", *columns)
    for *which, need, known in chosen:
        mdp = system(*which)
        size = len(mdp.succ) + len(mdp.rows) + mdp.num_states
        limit = approximate.solve(*program(mdp, np.full(len(mdp.rows), need)), work=3000 * size).value
        told = {"dynamics": mdp} if known else {}
        ratios, times = [], []
        for fluid_program in (False, None):
            begin, steps = clock(), []
            for seed in range(seeds if mdp.num_states <= 1100 and need < 10 else 1):
                result = gosprl.collect(mdp, need, strategy="practical", seed=seed, fluid=fluid_program, **told)
                steps.append(result.steps)
            times.append(f"{1e6 * (clock() - begin) / sum(steps):.0f}")
            ratios.append(f"{np.mean(steps) / limit:.3f}")
        line = (name_of(*which), "known" if known else "unknown", need, *ratios, *times, int(result.work["programs"]))
        print(*line, flush=True)
        yield cells(*line)


def main():
    quick = options(__doc__).quick
    small = (("garnet", 550, 3),)
    for need in (1, 2):  # compile
        gosprl.collect(system(*small[0]), need, strategy="practical", seed=0, dynamics=system(*small[0]))
    lines = [
        "# Prices of goals in large systems",
        "",
        "`python benchmarks/prices.py`. The fluid program with needs U(0, 10) of each pair: CPU seconds and gap of the",
        "potential, in parts of the cost beyond the needed samples. Warm: a fifth of the pairs got a sample since.",
        "",
        *programs(small if quick else PROGRAMS, np.random.default_rng(0)),
        "",
        "Whole runs of the practical plan: means of 2 seeds up to 1100 states with needs below 10, else 1 seed. The",
        "limit is a lower bound on the fluid limit.",
        "",
        *runs([(*small[0], 2, True)] if quick else RUNS, 2),
    ]
    write("prices", lines, quick=quick, packages=("highspy",))


if __name__ == "__main__":
    main()
