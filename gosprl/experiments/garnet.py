"""Random MDPs with random needs: boxplots of the steps, one column for each configuration."""

from typing import TYPE_CHECKING

import numpy as np

from gosprl.experiments import claims, figures, stats
from gosprl.experiments.algorithms import ALGORITHMS
from gosprl.experiments.sweep import Case, Experiment, Results, Verdict, fluid_limit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZES, CONFIGURATIONS = (10, 50), 10
ACTIONS, BRANCHING, MOST_NEEDED = 5, 5, 100
BOXED = (
    "gosprl",
    "guarded",
    "zero-one-ucrl",
    "zero-one-ucrl-renewed",
)  # the random walk is left out: its box would make the others too small


def configuration(states: int, seed: int) -> Case:
    """Return the case of a garnet with a need U(0, 100) of each pair."""
    parameters = (("states", states), ("actions", ACTIONS), ("branching", BRANCHING), ("seed", seed))
    return Case(
        f"garnet{states}-{seed}", f"S={states}, #{seed + 1}", "garnet", parameters, MOST_NEEDED, random_need=1000 + seed
    )


def states(case: Case) -> int:
    """Return the number of states of a configuration."""
    return int(dict(case.parameters)["states"])


def draw(experiment: Experiment, results: Results) -> "Figure":
    """Draw boxplots of the steps, one panel for each number of states."""
    with figures.style():
        sizes = sorted({states(case) for case in experiment.cases})
        figure, axes = figures.blank(len(sizes), 1, 0.55 + 2.0 * len(sizes))
        for axis, size in zip(axes, sizes, strict=True):
            cases = [case for case in experiment.cases if states(case) == size]
            for x, case in enumerate(cases):
                _column(axis, x, case, results)
            axis.set(
                ylabel="steps", xticks=range(len(cases)), xticklabels=[case.title.split(", ")[1] for case in cases]
            )
            axis.set_title(f"$S = {size}${_walk(cases, results)}")
            axis.tick_params(axis="x", length=0)
            figures.thousands(axis.yaxis)
        axes[-1].set_xlabel("configuration: a random garnet and random needs")
        handles = [figures.box_entry(name) for name in BOXED]
        return figures.finish(figure, [*handles, figures.mark("_", "fluid limit", markersize=10)])


def _column(axis: "Axes", x: int, case: Case, results: Results) -> None:
    for place, name in zip((-0.33, -0.11, 0.11, 0.33), BOXED, strict=True):
        if results.get((case.name, name)):
            figures.box(axis, x + place, results.steps(case.name, name), ALGORITHMS[name].color)
    limit = fluid_limit(case)
    axis.plot([x - 0.4, x + 0.4], [limit, limit], color="black", linewidth=0.8)


def _walk(cases: list[Case], results: Results) -> str:
    """Return the steps of the random walk as text."""
    runs = [results[case.name, "random"] for case in cases if results.get((case.name, "random"))]
    if not runs:
        return ""
    medians = [float(np.median([run.steps for run in each])) for each in runs]
    stops = sum(not run.met for each in runs for run in each)
    more = f", {stops} of {sum(map(len, runs))} runs stopped" if stops else ""
    span = f"{min(medians):,.0f} to {max(medians):,.0f}" if len(medians) > 1 else f"{medians[0]:,.0f}"
    return f"  (random walk, not drawn: median {span}{more})"


def judge(experiment: Experiment, results: Results) -> list[Verdict]:
    """Judge the paper's claims about random MDPs."""
    faster = claims.fewer_steps(
        *(experiment, results, "gosprl", "zero-one-ucrl"),
        claim="GOSPRL is faster than 0/1-UCRL in every configuration",
        paper="“GOSPRL consistently meets the sampling requirements faster than 0/1-UCRL”",
    )
    return [
        faster,
        _lower_variance(experiment, results),
        claims.renewed_beyond(experiment, results),
        claims.guarded_beyond(experiment, results),
    ]


def _lower_variance(experiment: Experiment, results: Results) -> Verdict:
    def measure() -> claims.Measured:
        ours, theirs = (
            [results.steps(case.name, name) for case in experiment.cases] for name in ("gosprl", "zero-one-ucrl")
        )
        ratio = stats.mean_ratio_of_sds(ours, theirs)
        below = sum(a.std() < b.std() for a, b in zip(ours, theirs, strict=True))
        return claims.below(ratio), f"geometric mean {ratio}; lower in {below} of {len(ours)} configurations"

    return claims.measured(
        *(results, claims.keys(experiment.cases, "gosprl", "zero-one-ucrl"), measure),
        claim="GOSPRL varies less from run to run than 0/1-UCRL",
        paper="“as well as suffers from lower variance across runs”",
        threshold="ratio of the standard deviations of steps, geometric mean over the configurations: the 95 % "
        "interval is below 1",
        reason=claims.stopped(results, claims.keys(experiment.cases, "zero-one-ucrl")),
    )


GARNET = Experiment(
    name="fig-garnet",
    title="Random MDPs with random needs",
    paper="Figure 2",
    text=(
        "Each configuration is a random garnet G(S, 5, 5) and a need of U(0, 100) of each pair, both fixed for all "
        "runs. The bound p(s_0|s,a) >= 0.001, which makes the garnet communicating, is the paper's; the mixing that "
        "achieves it is ours. The configurations differ from the paper's."
    ),
    cases=tuple(configuration(size, seed) for size in SIZES for seed in range(CONFIGURATIONS)),
    algorithms=(*BOXED, "random"),
    quick=("garnet10-0", "garnet10-1"),
    draw=draw,
    judge=judge,
)
