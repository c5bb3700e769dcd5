"""Goal aggregation: heading for all under-sampled states at once, or for one of them drawn at random."""

from typing import TYPE_CHECKING

from gosprl.experiments import claims, figures, stats
from gosprl.experiments.sweep import Case, Experiment, Results, Verdict
from gosprl.experiments.variants import success

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(experiment: Experiment, results: Results) -> "Figure":
    """Draw the proportion of states met over time."""
    return figures.proportions(experiment, results, 1, 1, height=3.1, width=figures.COLUMN)


def judge(experiment: Experiment, results: Results) -> list[Verdict]:
    """Judge the paper's claims about aggregation."""
    faster = claims.fewer_steps(
        *(experiment, results, "gosprl", "gosprl-one-goal"),
        claim="Aggregating goals takes fewer steps than one random goal",
        paper="“collects the prescribed samples faster than a version of GOSPRL that selects uniformly at random a "
        "single goal state”",
        reason="The map is our own.",
    )
    return [
        faster,
        _shorter(experiment, results),
        _more_successful(experiment, results),
        claims.guarded_beyond(experiment, results),
    ]


def _shorter(experiment: Experiment, results: Results) -> Verdict:
    def lengths(name: str) -> list[float]:
        return [run.steps / run.attempts for case in experiment.cases for run in results[case.name, name]]

    def measure() -> claims.Measured:
        ratio = stats.ratio_of_means(lengths("gosprl"), lengths("gosprl-one-goal"))
        return claims.below(ratio), f"steps an attempt, ratio {ratio}"

    return claims.measured(
        *(results, claims.keys(experiment.cases, "gosprl", "gosprl-one-goal"), measure),
        claim="Aggregation makes attempts shorter",
        paper="“leads to shorter and more successful sample collection attempts”",
        threshold="ratio of the steps an attempt: the 95 % interval is below 1",
        reason="The map is our own.",
    )


def _more_successful(experiment: Experiment, results: Results) -> Verdict:
    def shares(name: str) -> list[float]:
        return [success(run) for case in experiment.cases for run in results[case.name, name]]

    def measure() -> claims.Measured:
        all_goals, one_goal = shares("gosprl"), shares("gosprl-one-goal")
        difference = stats.difference_of_means(all_goals, one_goal)
        ours = f"share of attempts that reached a goal: {stats.mean(all_goals)} and {stats.mean(one_goal)}"
        return claims.above(difference, 0), f"{ours}; difference {difference}"

    return claims.measured(
        *(results, claims.keys(experiment.cases, "gosprl", "gosprl-one-goal"), measure),
        claim="Aggregation makes attempts more successful",
        paper="“leads to shorter and more successful sample collection attempts”",
        threshold="share of attempts that reached a goal, difference: the 95 % interval is above 0",
        reason="Other attempts ended because a pair was visited as often as before. The map is our own.",
    )


AGGREGATION = Experiment(
    name="fig-aggregation",
    title="Impact of goal aggregation",
    paper="Figure 10 (appendix)",
    text=(
        "GOSPRL heads for all under-sampled states at once; the variant for one of them, drawn uniformly for each "
        "attempt. The map of the 20-state symmetric gridworld is our own."
    ),
    cases=(Case("room20", "4-room symmetric gridworld(20)", "room20"),),
    algorithms=("gosprl", "gosprl-one-goal", "guarded", "random"),
    quick=("room20",),
    draw=draw,
    judge=judge,
)
