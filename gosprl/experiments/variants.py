"""The variants of GOSPRL in the appendix "Algorithmic Variants": selections of goals, and visit-driven costs.

The paper describes what each is for, without an experiment. Three numbers of a run show what it does:

    steps     until every need is met
    uneven    1/2 sum_s |N(s) / T - b(s) / B| at the end: 0 if every state was visited in proportion to its need
    success   the share of attempts that reached a goal; others ended because a pair was visited as often as before

The length of the initial phase, until the first state has all its samples, is measured as well.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gosprl.experiments import claims, figures, stats
from gosprl.experiments.algorithms import ALGORITHMS
from gosprl.experiments.sweep import Case, Experiment, Results, Run, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ONE_GOAL = ("gosprl-one-goal", "gosprl-least", "gosprl-easiest")
COSTS = ("gosprl-square", "gosprl-kl")
MORE_STEPS = 1.1  # poorer performance is that many times GOSPRL's mean steps


def steps(run: Run) -> float:
    """Return the steps."""
    return run.steps


def uneven(run: Run) -> float:
    """Return how far the visits were from the needs in proportion."""
    return run.uneven


def success(run: Run) -> float:
    """Return the share of attempts that reached a goal."""
    return run.reached / max(1, run.ended)


def initial_phase(run: Run) -> float:
    """Return the steps until the first state had all its samples; all steps if none had."""
    reached = run.curve[run.curve[:, 1] > 0, 0]
    return float(reached[0]) if len(reached) else float(run.steps)


MEASURES: dict[str, Callable[[Run], float]] = {
    "steps": steps,
    "unevenness of visits": uneven,
    "share of successful attempts": success,
    "steps of the initial phase": initial_phase,
}


def draw(experiment: Experiment, results: Results) -> "Figure":
    """Draw a row of panels for each domain, with a panel for each measure but the last."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    measures, labels = list(MEASURES.items())[:3], [ALGORITHMS[name].label for name in experiment.algorithms]
    with figures.style():
        figure, axes = figures.blank(len(experiment.cases), len(measures), 0.5 + 1.75 * len(experiment.cases))
        for i, axis in enumerate(axes):
            case, (title, measure) = experiment.cases[i // len(measures)], measures[i % len(measures)]
            first = i % len(measures) == 0
            figures.dots(axis, _rows(experiment, results, case, measure), log=False)
            axis.set(xlabel=title, yticks=range(len(labels)), yticklabels=labels)
            axis.tick_params(labelleft=first)
            axis.set_title(case.title if first else "", loc="left")
            axis.xaxis.set_major_locator(MaxNLocator(4))
            axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}" if first else "{x:g}"))
        return figures.finish(figure, [figures.mark("o", "mean and 95 % interval", markersize=4.5)])


def _rows(
    experiment: Experiment, results: Results, case: Case, measure: Callable[[Run], float]
) -> Sequence[figures.Row]:
    rows: list[figures.Row] = []
    for name in experiment.algorithms:
        runs = results.get((case.name, name), [])
        ours = stats.mean([measure(run) for run in runs]) if runs else None
        rows.append((ours, ALGORITHMS[name].color, None, figures.any_stopped(runs)))
    return rows


def judge(experiment: Experiment, results: Results) -> list[Verdict]:
    """Judge what the paper says of the variants."""
    return [
        _compared(
            *(experiment, results, "gosprl", "gosprl-no-phase", "steps of the initial phase"),
            claim="Goals with the least remaining budget shorten the initial phase",
            paper="“which has the effect of shortening the length of the initial phase”",
        ),
        *(_poorer(experiment, results, name) for name in ONE_GOAL),
        *(
            _compared(
                *(experiment, results, "gosprl-least", name, "unevenness of visits"),
                claim=f"The least-sampled goal has more even visits than {ALGORITHMS[name].label}",
                paper="least-sampled: “the most even possible sample collection over time”",
            )
            for name in ("gosprl-one-goal", "gosprl-easiest")
        ),
        _compared(
            *(experiment, results, "gosprl-easiest", "gosprl-least", "steps"),
            claim="The easiest goal meets the needs faster than the least-sampled one",
            paper="easiest: “to solely meet the total sampling requirements as fast as possible”",
        ),
        *(
            _compared(
                *(experiment, results, name, "gosprl", "unevenness of visits"),
                claim=f"{ALGORITHMS[name].label.capitalize()}: visits are more even than with costs of 1",
                paper="“to even out the sample collection w.r.t. the final requirements”",
            )
            for name in COSTS
        ),
        *(
            _compared(
                *(experiment, results, name, "gosprl", "steps"),
                claim=f"{claims.BEYOND}{ALGORITHMS[name].label}: fewer steps than with costs of 1",
                paper="not in the paper",
            )
            for name in COSTS
        ),
    ]


def _ratio(results: Results, case: Case, one: str, other: str, measure: Callable[[Run], float]) -> stats.Estimate:
    return stats.ratio_of_means(*([measure(run) for run in results[case.name, name]] for name in (one, other)))


def _compared(
    experiment: Experiment, results: Results, one: str, other: str, what: str, *, claim: str, paper: str
) -> Verdict:
    """Judge whether a measure is smaller for `one` than for `other` on every domain."""

    def measure() -> claims.Measured:
        ratios = [_ratio(results, case, one, other, MEASURES[what]) for case in experiment.cases]
        return claims.every(map(claims.below, ratios)), f"ratio, {claims.listed(experiment.cases, ratios)}"

    return claims.measured(
        *(results, claims.keys(experiment.cases, one, other), measure, claim, paper),
        threshold=f"mean {what} of {ALGORITHMS[one].label} over that of {ALGORITHMS[other].label}: the 95 % interval "
        "is below 1 on every domain",
        favoured=claims.keys(experiment.cases, one) if what == "steps" else (),
    )


def _poorer(experiment: Experiment, results: Results, name: str) -> Verdict:
    def measure() -> claims.Measured:
        ratios = [_ratio(results, case, name, "gosprl", steps) for case in experiment.cases]
        holds = claims.some(claims.above(ratio, MORE_STEPS) for ratio in ratios)
        return holds, f"ratio of mean steps, {claims.listed(experiment.cases, ratios)}"

    return claims.measured(
        *(results, claims.keys(experiment.cases, name, "gosprl"), measure),
        claim=f"A single goal ({ALGORITHMS[name].label}) may yield poorer performance",
        paper="“eliciting a single valid (i.e., under-sampled) goal state at each attempt may yield poorer "
        "performance”",
        threshold=f"on some domain, mean steps more than {MORE_STEPS:g} times GOSPRL's, with the 95 % interval",
        reason="What is poorer, in numbers, is our choice.",
    )


def _case(name: str, title: str) -> Case:
    return Case(name, title, name)


VARIANTS = Experiment(
    name="fig-variants",
    title="Goals and costs: the variants of GOSPRL",
    paper="Appendix “Algorithmic Variants”, which has no figure",
    text=(
        "Ten samples of every pair. GOSPRL heads for all under-sampled states; the variants have no initial phase, or "
        "head for one state: drawn at random, the least sampled, or the one with the largest share of successful "
        "attempts (the paper's formula says the smallest, its text the largest). The visit-driven costs make states "
        "with more visits than they need more expensive, up to 10: in proportion to the difference of the shares "
        "(square), or to the logarithm of their ratio (kl). Unevenness is half the l1 distance of the shares of visits "
        "from b(s)/B at the end of a run. An attempt is successful if it reached a goal. Unlike others, these claims "
        "and their thresholds were written down when three runs on two of the domains had been seen."
    ),
    cases=(
        _case("riverswim6", "RiverSwim(6)"),
        _case("corridor24", "corridor gridworld(24)"),
        _case("room20", "4-room symmetric gridworld(20)"),
        _case("four_room43", "4-room gridworld(43)"),
    ),
    algorithms=("gosprl", "gosprl-no-phase", *ONE_GOAL, *COSTS),
    quick=("riverswim6",),
    draw=draw,
    judge=judge,
    measures=MEASURES,
)
