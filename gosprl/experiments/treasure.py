"""TREASURE-10 on seven domains: the proportion P_t of states with ten samples of every action."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gosprl.experiments import claims, figures, stats
from gosprl.experiments.algorithms import ALGORITHMS
from gosprl.experiments.sweep import CENSORED_AT, Case, Experiment, Results, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RIVALS = ("zero-one-ucrl", "zero-ucrl", "maxent", "random")  # those of the paper
STRUGGLING = 2.0  # an algorithm struggles if it takes at least this many times GOSPRL's mean steps
QUARTER_ADDS = 0.1  # P_t increases steadily if each quarter of a run adds this proportion of the states
NEED = 10
ALIKE = 1.5  # algorithms are alike if their mean steps are within this factor
EXTRA = (
    "MinFrequency, Zero-RMax, 0/1-UCRL that plans anew when a pair has all it needs (renewed) and our default, "
    "guarded, are not in the paper's figure."
)


def _ten(experiment: Experiment) -> Experiment:
    """Return the experiment without the cases of one sample per pair, which are for a footnote of the paper only."""
    return replace(experiment, cases=tuple(case for case in experiment.cases if case.need == NEED))


def draw(experiment: Experiment, results: Results) -> "Figure":
    """Draw the proportion of states met over time."""
    experiment = _ten(experiment)
    columns = min(3 if experiment.name == "fig-treasure" else 2, len(experiment.cases))
    rows = -(-len(experiment.cases) // columns)
    return figures.proportions(experiment, results, rows, columns, height=0.75 + 2.1 * rows)


def judge(experiment: Experiment, results: Results) -> list[Verdict]:
    """Judge the paper's claims about TREASURE-10."""
    whole, experiment = experiment, _ten(experiment)
    verdicts = [
        _succeeds(experiment, results),
        claims.fewer_steps(
            *(experiment, results, "gosprl", "zero-one-ucrl"),
            claim="GOSPRL is faster than 0/1-UCRL",
            paper="“and faster than 0/1-UCRL”",
        ),
        *(_struggles(experiment, results, rival) for rival in RIVALS[1:]),
        _steady(experiment, results),
    ]
    if experiment.name == "fig-treasure":
        verdicts += [_best(experiment, results), _alike(whole, results), _initial()]
    beyond = [claims.renewed_beyond(experiment, results), claims.guarded_beyond(experiment, results)]
    return [*verdicts, *beyond]


def _succeeds(experiment: Experiment, results: Results) -> Verdict:
    def measure() -> claims.Measured:
        runs = [run for case in experiment.cases for run in results[case.name, "gosprl"]]
        longest = max(
            run.steps / results.steps(case.name, "gosprl").mean()
            for case in experiment.cases
            for run in results[case.name, "gosprl"]
        )
        met = sum(run.met for run in runs)
        ours = f"{met} of {len(runs)} runs; the longest took {stats.number(longest)} times the mean of its case"
        return met == len(runs) and longest <= CENSORED_AT, ours

    return claims.measured(
        *(results, claims.keys(experiment.cases, "gosprl"), measure),
        claim="GOSPRL reaches P_t = 1 in every run",
        paper="“reaches the P_t = 1 line of success consistently”",
        threshold=f"every run of every domain, in at most {CENSORED_AT} times the mean steps",
    )


def _struggles(experiment: Experiment, results: Results, rival: str) -> Verdict:
    def measure() -> claims.Measured:
        parts, holds = [], True
        for case in experiment.cases:
            runs = results[case.name, rival]
            ratio = stats.ratio_of_means(results.steps(case.name, rival), results.steps(case.name, "gosprl"))
            stops = sum(not run.met for run in runs)
            holds &= ratio.value >= STRUGGLING or stops > len(runs) / 2
            parts.append(
                f"{case.title}: {stats.number(ratio.value)}" + (f", {stops} of {len(runs)} stopped" if stops else "")
            )
        return holds, f"mean steps over GOSPRL's, {'; '.join(parts)}"

    label = ALGORITHMS[rival].label
    return claims.measured(
        *(results, claims.keys(experiment.cases, "gosprl", rival), measure),
        claim=f"{label} struggles",
        paper="“while the other heuristics struggle”",
        threshold=f"on every domain, mean steps at least {STRUGGLING:g} times GOSPRL's, or most runs stopped",
        reason="What struggling is, in numbers, is our choice.",
    )


def _steady(experiment: Experiment, results: Results) -> Verdict:
    def measure() -> claims.Measured:
        quarters = {}
        for case in experiment.cases:
            times = [figures.at(run.curve, run.steps * np.linspace(0, 1, 5)) for run in results[case.name, "gosprl"]]
            quarters[case.title] = np.diff(np.mean(times, axis=0))
        ours = "; ".join(f"{title}: " + ", ".join(f"{q:.2f}" for q in added) for title, added in quarters.items())
        return all(added.min() >= QUARTER_ADDS for added in quarters.values()), "added by each quarter: " + ours

    return claims.measured(
        *(results, claims.keys(experiment.cases, "gosprl"), measure),
        claim="P_t of GOSPRL increases steadily",
        paper="“the steady increase of P_t”; it seeks to “even out” its sampling",
        threshold=f"on every domain, each quarter of a run adds at least {QUARTER_ADDS:g} of the states on average",
        reason="The reading of “steady” is ours; the paper points at the picture.",
    )


def _best(experiment: Experiment, results: Results) -> Verdict:
    def steps(name: str) -> list[np.ndarray]:
        return [results.steps(case.name, name) for case in experiment.cases]

    def measure() -> claims.Measured:
        ratios = {rival: stats.mean_ratio(steps(RIVALS[0]), steps(rival)) for rival in RIVALS[1:]}
        ours = "; ".join(f"over {ALGORITHMS[rival].label}: {ratio}" for rival, ratio in ratios.items())
        return all(ratio.high < 1 for ratio in ratios.values()), ours

    return claims.measured(
        *(results, claims.keys(experiment.cases, *RIVALS), measure),
        claim="0/1-UCRL is the best of the paper's heuristics",
        paper="“0/1-UCRL which is the best heuristic from the previous experiment”",
        threshold="mean steps over those of each other, geometric mean over the domains: upper end of the 95 % "
        "interval below 1",
        reason=claims.stopped(results, claims.keys(experiment.cases, *RIVALS[1:])),
        favoured=claims.keys(experiment.cases, RIVALS[0]),
    )


def _alike(experiment: Experiment, results: Results) -> Verdict:
    cases, learning = [case for case in experiment.cases if case.need == 1], ("gosprl", *RIVALS[:3])

    def measure() -> claims.Measured:
        means = {case.title: [results.steps(case.name, name).mean() for name in learning] for case in cases}
        ratios = {title: max(each) / min(each) for title, each in means.items()}
        ours = "; ".join(f"{title}: {stats.number(ratio)}" for title, ratio in ratios.items())
        return max(ratios.values()) <= ALIKE, f"most over fewest mean steps: {ours}"

    return claims.measured(
        *(results, claims.keys(cases, *learning), measure),
        claim="With b(s,a) = 1 the learning algorithms are alike",
        paper="“TREASURE-1 … for which empirical performance is comparable between learning algorithms” (footnote)",
        threshold=f"mean steps of GOSPRL and the paper's rivals but the random walk within a factor of {ALIKE:g}, on "
        "every domain",
        reason="What is comparable, in numbers, is our choice.",
        favoured=claims.keys(cases, *learning),
    )


def _initial() -> Verdict:
    return claims.untested(
        claim="Goals with the least remaining budget shorten the initial phase",
        paper="“which has the effect of shortening the length of the initial phase”",
        reason="not run: all runs of GOSPRL have that phase, as in the paper, which shows none without it",
    )


def _case(name: str, title: str) -> Case:
    return Case(name, title, name, need=NEED)


def _one(case: Case) -> Case:
    return replace(case, name=f"{case.name}-one", title=f"{case.title}, b = 1", need=1)


_ALGORITHMS = (
    "gosprl",
    "guarded",
    RIVALS[0],
    "zero-one-ucrl-renewed",
    *RIVALS[1:3],
    "min-frequency",
    "zero-rmax",
    "random",
)

MAIN = (
    _case("riverswim6", "RiverSwim(6)"),
    _case("corridor24", "corridor gridworld(24)"),
    _case("four_room43", "4-room gridworld(43)"),
)

TREASURE = Experiment(
    name="fig-treasure",
    title="TREASURE-10: proportion of states with all their samples",
    paper="Figure 1",
    text=(
        "Ten samples of every pair are needed. P_t is the proportion of states all of whose actions have theirs at "
        "time t; what counts is when it reaches 1. The maps of the gridworlds are reconstructed from the numbers of "
        f"the paper's Table 1. {EXTRA} Cases with b = 1 are for the footnote, and not drawn."
    ),
    cases=(*MAIN, *map(_one, MAIN)),
    algorithms=_ALGORITHMS,
    quick=("riverswim6", "riverswim6-one"),
    draw=draw,
    judge=judge,
)

MORE = Experiment(
    name="fig-treasure-more",
    title="TREASURE-10 on four more domains",
    paper="Figure 7 (appendix)",
    text=(
        "As the figure before. The paper describes the three gridworlds in words and gives their numbers of states. "
        f"The maps are our own, so numbers may differ. {EXTRA}"
    ),
    cases=(
        _case("riverswim36", "RiverSwim(36)"),
        _case("trap10", "trap gridworld(10)"),
        _case("room20", "4-room symmetric gridworld(20)"),
        _case("cliff48", "CliffWalk gridworld(48)"),
    ),
    algorithms=_ALGORITHMS,
    quick=("trap10", "room20"),
    draw=draw,
    judge=judge,
)
