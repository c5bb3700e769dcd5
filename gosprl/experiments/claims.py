"""What the paper says against what was measured: the rules that several experiments share.

A claim is confirmed, not confirmed, or not comparable: where chance decides, with fewer than LEAST_RUNS runs. The
thresholds are constants, here and in the experiments' files, and were fixed before the runs were made. A run that was
stopped counts with the steps it had made: that favours the algorithm that was stopped. Where it is the one that a claim
is in favour of, the claim cannot be confirmed: it is not comparable, either.
"""

from collections.abc import Callable, Sequence

import numpy as np

from gosprl.experiments import stats
from gosprl.experiments.algorithms import ALGORITHMS
from gosprl.experiments.sweep import Case, Experiment, Results, Verdict

VERDICTS = CONFIRMED, NOT_CONFIRMED, NOT_COMPARABLE = "confirmed", "not confirmed", "not comparable"
LEAST_RUNS = 10
BEYOND = "Beyond the paper: "  # what such claims begin with; they are ours
PAPER_RUNS = 30  # behind each mean that the paper prints
STANDARD_ERRORS = 3  # by which two means of the same law may differ
LAST_DIGIT = 0.1  # of numbers that the paper prints
LEAST_R2, SLOPE_WITHIN = 0.98, 0.1
LISTED = 8  # cases named one by one, at most
Measured = tuple[bool, str]  # whether it holds, and the numbers


def verdict(holds: bool, claim: str, paper: str, ours: str, threshold: str, reason: str = "") -> Verdict:
    """Of a claim that chance has no part in, or has no longer."""
    return Verdict(claim, paper, ours, threshold, CONFIRMED if holds else NOT_CONFIRMED, reason)


def untested(claim: str, paper: str, reason: str, ours: str = "-") -> Verdict:
    return Verdict(claim, paper, ours, "", NOT_COMPARABLE, reason)


def measured(
    results: Results,
    keys: Sequence[tuple[str, str]],
    measure: Callable[[], Measured],
    claim: str,
    paper: str,
    threshold: str,
    reason: str = "",
    favoured: Sequence[tuple[str, str]] = (),
) -> Verdict:
    """Of a claim about the runs of these (case, algorithm); `favoured`: those that it says are the better ones."""
    fewest = min((len(results.get(key, ())) for key in keys), default=0)
    if not fewest:
        return Verdict(claim, paper, "-", threshold, NOT_COMPARABLE, "runs are missing")
    holds, ours = measure()
    if fewest < LEAST_RUNS:
        few = f"too few runs: {fewest}, expected at least {LEAST_RUNS}"
        return Verdict(claim, paper, ours, threshold, NOT_COMPARABLE, few)
    if holds and (stops := stopped(results, favoured)):
        return Verdict(claim, paper, ours, threshold, NOT_COMPARABLE, stops)
    return verdict(holds, claim, paper, ours, threshold, reason)


def keys(cases: Sequence[Case], *algorithms: str) -> list[tuple[str, str]]:
    return [(case.name, algorithm) for case in cases for algorithm in algorithms]


def fewer_steps(
    experiment: Experiment, results: Results, one: str, other: str, claim: str, paper: str, reason: str = ""
) -> Verdict:
    """That `one` takes fewer steps than `other` on average in every case."""

    def measure() -> Measured:
        ratios = [
            stats.ratio_of_means(results.steps(c.name, one), results.steps(c.name, other)) for c in experiment.cases
        ]
        return all(ratio.high < 1 for ratio in ratios), f"ratio of mean steps, {listed(experiment.cases, ratios)}"

    threshold = (
        f"mean steps of {ALGORITHMS[one].label} over those of {ALGORITHMS[other].label}: the upper end of the 95 % "
        "interval is below 1 in every case"
    )
    note = " ".join(filter(None, [reason, stopped(results, keys(experiment.cases, other))]))
    used, better = keys(experiment.cases, one, other), keys(experiment.cases, one)
    return measured(results, used, measure, claim, paper, threshold, note, better)


def guarded_beyond(experiment: Experiment, results: Results) -> Verdict:
    """Our default against Algorithm 1 with the paper's settings."""
    claim = (
        BEYOND + "our default strategy, which keeps its guarantee, takes fewer steps than GOSPRL in the paper's setting"
    )
    return fewer_steps(experiment, results, "guarded", "gosprl", claim, "not in the paper")


def renewed_beyond(experiment: Experiment, results: Results) -> Verdict:
    """Algorithm 1 against the strongest version of its closest rival."""
    claim = BEYOND + "GOSPRL is faster than 0/1-UCRL that plans anew when a pair has all it needs"
    return fewer_steps(experiment, results, "gosprl", "zero-one-ucrl-renewed", claim, "not in the paper")


def stopped(results: Results, keys: Sequence[tuple[str, str]]) -> str:
    """How many runs of each algorithm were stopped, in words; nothing if none was."""
    said = []
    for algorithm in dict.fromkeys(name for _, name in keys):
        runs = [run for key in keys if key[1] == algorithm for run in results.get(key, ())]
        if count := sum(not run.met for run in runs):
            label = ALGORITHMS[algorithm].label
            said.append(f"{count} of {len(runs)} runs of {label} were stopped at the limit: that favours {label}.")
    return " ".join(said)


def listed(cases: Sequence[Case], ratios: Sequence[stats.Estimate]) -> str:
    """Each ratio with its case; of many, how many are below 1 and their range."""
    if len(cases) <= LISTED:
        return "; ".join(f"{case.title}: {ratio}" for case, ratio in zip(cases, ratios, strict=True))
    below, values = sum(ratio.high < 1 for ratio in ratios), [ratio.value for ratio in ratios]
    span = f"{stats.number(min(values))} to {stats.number(max(values))}"
    return f"{span} over the cases; the interval is below 1 in {below} of {len(cases)}"


def printed_mean(
    results: Results, case: Case, algorithm: str, printed: float, what: str, *, watched: bool = False, reason: str = ""
) -> Verdict:
    """That a mean which the paper prints and ours are of the same law."""
    runs = results.get((case.name, algorithm), [])
    values = np.array([run.watched if watched else run.steps for run in runs], dtype=float)

    def measure() -> Measured:
        spread = float(values.std(ddof=1)) if len(values) > 1 else np.nan
        allowed = STANDARD_ERRORS * spread * np.sqrt(1 / len(values) + 1 / PAPER_RUNS)
        ours = f"{stats.mean(values)}; allowed: {printed:,} ± {stats.number(allowed)}"
        return bool(abs(values.mean() - printed) <= allowed), ours

    threshold = (
        f"within {STANDARD_ERRORS} standard errors of the difference of two means, ours and one of {PAPER_RUNS} runs "
        "with the same spread"
    )
    return measured(results, keys([case], algorithm), measure, what, f"{printed:,}", threshold, reason)


def printed_exactly(what: str, printed: float, ours: float, fitted: str = "") -> Verdict:
    """That a number which takes no runs is what the paper prints, up to its last digit; unless it was `fitted`."""
    if fitted:
        return untested(what, f"{printed:,}", fitted, f"{ours:,.2f}")
    holds = abs(ours - printed) <= LAST_DIGIT
    return verdict(holds, what, f"{printed:,}", f"{ours:,.2f}", f"within {LAST_DIGIT:g}, the last digit printed")


def proportional(
    results: Results, x: Sequence[float], groups: Sequence[Sequence[Case]], claim: str, paper: str
) -> Verdict:
    """That the mean steps of GOSPRL grow in proportion to x; each x has a group of cases."""

    def measure() -> Measured:
        samples = [[results.steps(case.name, "gosprl") for case in group] for group in groups]
        slope = stats.log_log_slope(x, samples)
        fit = stats.line(x, [stats.mean_of_cases(sample).value for sample in samples])
        holds = abs(slope.value - 1) <= SLOPE_WITHIN and fit.r2 >= LEAST_R2
        return holds, f"log-log slope {slope}; line {fit.intercept:,.0f} + {fit.slope:,.1f} x, R² = {fit.r2:.4f}"

    threshold = f"log-log slope within {SLOPE_WITHIN} of 1, and R² of the straight line at least {LEAST_R2}"
    used = keys([case for group in groups for case in group], "gosprl")
    return measured(results, used, measure, claim, paper, threshold)
