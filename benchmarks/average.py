"""Optimistic average rewards, as UCRL2B plans, against a plain dense extended value iteration; and how time grows.

    python benchmarks/average.py      writes benchmarks/results/average.md

Both sides stop at the same span, get the confidence sets ready-made and must agree on the gain. Rewards are 1 for the
pairs of the first few states, as 0/1-UCRL has them near its end. `again` is a plan after one more state has all it
needs, from the values of the last.
"""

from dense_evi import dense_gain
from planning import ALPHA, DELTA, LARGE, Ready, dense_ends, sampled_garnet
from report import ONCE, cells, header, medians, options, timed, write

import gosprl
from gosprl.planning.average import DAMPING, AveragePlanner

PRECISION = 1e-4
SIZES = ((50, 50, 5, 9), (50, 1000, 5, 9), (1000, 50, 20, 5), (1000, 1000, 20, 5))  # (S, N, rewarded, instances)
GROWTH = (1000, 10_000, 100_000)


def rewards(model, rewarded):
    return (model.rows.state < rewarded).astype(float)


def compare(S, N, rewarded, seed):
    """Seconds and sweeps of one instance."""
    model = sampled_garnet(S, N, seed)
    intervals = gosprl.Bernstein(DELTA, ALPHA).intervals(model)
    reward = rewards(model, rewarded)
    lower, upper = dense_ends(model, intervals)
    pace = ONCE if S >= LARGE else {}
    dense, (low, high, dense_sweeps) = timed(
        lambda: dense_gain(lower, upper, reward.reshape(S, -1), DAMPING, PRECISION), **pace
    )
    ours, plan = timed(lambda: AveragePlanner(model, Ready(intervals)).plan(reward, PRECISION))
    assert max(low, plan.low) <= min(high, plan.high) + 1e-12, "the two solve different problems"
    planner = AveragePlanner(model, Ready(intervals))
    planner.plan(reward, PRECISION)
    fewer, values = rewards(model, rewarded - 1), planner._v

    def again():
        planner._v = values
        return planner.plan(fewer, PRECISION)

    warm, _ = timed(again)
    return {
        "dense": dense,
        "dense sweeps": dense_sweeps,
        "ours": ours,
        "our sweeps": plan.sweeps,
        "again": warm,
        "ratio": dense / ours,
    }


def main():
    quick = options(__doc__).quick
    lines = [
        "# Optimistic average rewards",
        "",
        f"## Time of a plan (ms; garnet, A = 5, branching 5, Bernstein x{ALPHA}, span {PRECISION:g})",
        "",
        *header("S", "N a pair", "rewarded states", "dense (sweeps)", "ours (sweeps)", "dense / ours", "again, ours"),
    ]
    for S, N, rewarded, instances in ((50, 50, 5, 1),) if quick else SIZES:
        m = medians([compare(S, N, rewarded, seed) for seed in range(instances)])
        dense = f"{1e3 * m['dense']:.2f} ({m['dense sweeps']:.0f})"
        ours = f"{1e3 * m['ours']:.2f} ({m['our sweeps']:.0f})"
        lines.append(cells(S, N, rewarded, dense, ours, f"{m['ratio']:.1f}", f"{1e3 * m['again']:.2f}"))
    lines += ["", "## Growth (N = 100, 20 rewarded states, sets included)", ""]
    lines += header("S", "transitions", "plan (ms)", "sweeps", "ns a transition and sweep")
    for S in (500,) if quick else GROWTH:
        model = sampled_garnet(S, 100, 0)
        family = gosprl.Bernstein(DELTA, ALPHA)
        seconds, plan = timed(
            lambda model=model, family=family: AveragePlanner(model, family).plan(rewards(model, 20), PRECISION), **ONCE
        )
        stored = len(model.stored()[1])
        each = f"{1e9 * seconds / stored / plan.sweeps:.1f}"
        lines.append(cells(f"{S:,}", f"{stored:,}", f"{1e3 * seconds:.1f}", plan.sweeps, each))
    write("average", lines, quick=quick)


if __name__ == "__main__":
    main()
