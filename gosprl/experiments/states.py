"""Random MDPs of growing size: steps against the number of states."""

from typing import TYPE_CHECKING

from gosprl.experiments import claims, garnet, growth
from gosprl.experiments.sweep import Case, Experiment, Results, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES, GARNETS = (10, 20, 30, 40, 50, 60, 80, 100), 5
PAPER_RUNS = 12  # runs of each garnet in the paper, where other figures have 30


def by_size(experiment: Experiment) -> dict[int, list[Case]]:
    """Return the cases of each number of states."""
    groups: dict[int, list[Case]] = {}
    for case in experiment.cases:
        groups.setdefault(garnet.states(case), []).append(case)
    return groups


def draw(experiment: Experiment, results: Results) -> "Figure":
    """Draw mean steps against the number of states."""
    groups = by_size(experiment)
    return growth.draw(experiment, results, list(groups), list(groups.values()), "states $S$")


def judge(experiment: Experiment, results: Results) -> list[Verdict]:
    """Judge the paper's claim about the number of states."""
    groups = by_size(experiment)
    linear = claims.proportional(
        *(results, list(groups), list(groups.values())),
        claim="Steps grow linearly with the number of states",
        paper="“as expected, the sample complexity scales linearly with S”",
    )
    return [linear, claims.guarded_beyond(experiment, results)]


STATES = Experiment(
    name="fig-states",
    title="Growth with the number of states",
    paper="Figure 9 (appendix)",
    text=(
        "Random garnets G(S, 5, 5) with needs of U(0, 100), five for each S, each with two fifths of the runs of other "
        "experiments, as in the paper (12 where those have 30). The paper's values of S were not available. Intervals "
        "are for these garnets; pale dots show each."
    ),
    cases=tuple(garnet.configuration(size, seed) for size in SIZES for seed in range(GARNETS)),
    algorithms=("gosprl", "guarded", "random"),
    quick=("garnet10-0", "garnet20-0"),
    draw=draw,
    judge=judge,
    share=PAPER_RUNS / claims.PAPER_RUNS,
)
