"""Claims of the paper against measurements: the rules that several experiments share.

A claim is confirmed, not confirmed, undecided, or not comparable. It is undecided if a 95 % interval contains its
threshold: more runs could decide it. It is not comparable if it is about random runs and there are fewer than
LEAST_RUNS of them. The thresholds are constants, here and in the experiments' modules, and were fixed before the runs
were made. A run that was stopped counts with the steps it had made, which favours its algorithm. If a claim says that
this algorithm is the better one, it cannot be confirmed, and is not comparable either.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from gosprl.experiments import stats
from gosprl.experiments.algorithms import ALGORITHMS
from gosprl.experiments.sweep import Case, Experiment, Results, Verdict

VERDICTS = CONFIRMED, NOT_CONFIRMED, UNDECIDED, NOT_COMPARABLE = (
    "confirmed",
    "not confirmed",
    "undecided",
    "not comparable",
)
LEAST_RUNS = 10
BEYOND = "Beyond the paper: "  # prefix of claims that are ours
SOURCE = "Other constants: "  # prefix of claims of the paper with other constants of a rival
PAPER_RUNS = 30  # runs behind each mean that the paper prints
STANDARD_ERRORS = 3  # two means of the same law may differ by this
LAST_DIGIT = 0.1  # of the numbers that the paper prints
LEAST_R2, SLOPE_WITHIN = 0.98, 0.1
LISTED = 8  # the largest number of cases that are listed one by one
Holds = bool | None  # None: undecided
Measured = tuple[Holds, str]  # whether the claim holds, and the numbers


def below(estimate: stats.Estimate, threshold: float = 1.0) -> Holds:
    """Return whether a statistic is below a threshold; None if its interval contains the threshold, or is none."""
    return True if estimate.high < threshold else False if estimate.low > threshold else None


def above(estimate: stats.Estimate, threshold: float = 1.0) -> Holds:
    """Return whether a statistic is above a threshold; None if its interval contains the threshold, or is none."""
    holds = below(estimate, threshold)
    return None if holds is None else not holds


def within(estimate: stats.Estimate, low: float, high: float) -> Holds:
    """Return whether a statistic is in [low, high]; None if its interval contains one of them, or is none."""
    return every([above(estimate, low), below(estimate, high)])


def every(parts: Iterable[Holds]) -> Holds:
    """Return whether all parts of a claim hold: False if one does not, None if the rest leaves it open."""
    known = set(parts)
    return False if False in known else None if None in known else True


def some(parts: Iterable[Holds]) -> Holds:
    """Return whether one part of a claim holds: True if one does, None if the rest leaves it open."""
    known = set(parts)
    return True if True in known else None if None in known else False


def verdict(holds: Holds, claim: str, paper: str, ours: str, threshold: str, reason: str = "") -> Verdict:
    """Return the verdict on a claim that does not depend on chance, or for which there are enough runs."""
    word = UNDECIDED if holds is None else CONFIRMED if holds else NOT_CONFIRMED
    return Verdict(claim, paper, ours, threshold, word, reason)


def untested(claim: str, paper: str, reason: str, ours: str = "-") -> Verdict:
    """Return the verdict on a claim that is not tested, with the reason."""
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
    pooled: int = 1,
) -> Verdict:
    """Return the verdict on a claim about runs.

    Parameters
    ----------
    results
        All runs.
    keys
        The (case, algorithm) pairs whose runs are used.
    measure
        Returns whether the claim holds, and the numbers as text.
    claim, paper, threshold, reason
        As in `Verdict`.
    favoured
        The (case, algorithm) pairs that are the better ones according to the claim.
    pooled
        The number of cases over which each mean of the claim is taken.
    """
    fewest = pooled * min((len(results.get(key, ())) for key in keys), default=0)
    if not fewest:
        return Verdict(claim, paper, "-", threshold, NOT_COMPARABLE, "runs are missing")
    holds, ours = measure()
    if fewest < LEAST_RUNS:
        few = f"too few runs: {fewest}, expected at least {LEAST_RUNS}"
        return Verdict(claim, paper, ours, threshold, NOT_COMPARABLE, few)
    if holds is not False and (stops := stopped(results, favoured)):
        return Verdict(claim, paper, ours, threshold, NOT_COMPARABLE, stops)
    return verdict(holds, claim, paper, ours, threshold, reason)


def keys(cases: Sequence[Case], *algorithms: str) -> list[tuple[str, str]]:
    """Return the keys (case, algorithm) of `Results` for all these cases and algorithms."""
    return [(case.name, algorithm) for case in cases for algorithm in algorithms]


def fewer_steps(
    experiment: Experiment, results: Results, one: str, other: str, claim: str, paper: str, reason: str = ""
) -> Verdict:
    """Judge the claim that `one` takes fewer mean steps than `other` in every case."""

    def measure() -> Measured:
        ratios = [
            stats.ratio_of_means(results.steps(c.name, one), results.steps(c.name, other)) for c in experiment.cases
        ]
        return every(map(below, ratios)), f"ratio of mean steps, {listed(experiment.cases, ratios)}"

    threshold = (
        f"mean steps of {ALGORITHMS[one].label} over those of {ALGORITHMS[other].label}: the 95 % interval is below 1 "
        "in every case"
    )
    note = " ".join(filter(None, [reason, stopped(results, keys(experiment.cases, other))]))
    used, better = keys(experiment.cases, one, other), keys(experiment.cases, one)
    return measured(results, used, measure, claim, paper, threshold, note, better)


def guarded_beyond(experiment: Experiment, results: Results) -> Verdict:
    """Judge our default strategy against Algorithm 1 with the paper's settings."""
    claim = BEYOND + "our default strategy, which keeps its guarantee, takes fewer steps than GOSPRL in these sets"
    return fewer_steps(experiment, results, "guarded", "gosprl", claim, "not in the paper")


def renewed_beyond(experiment: Experiment, results: Results) -> Verdict:
    """Judge Algorithm 1 against the strongest version of its closest rival."""
    claim = BEYOND + "GOSPRL is faster than 0/1-UCRL that plans anew when a pair has all it needs"
    return fewer_steps(experiment, results, "gosprl", "zero-one-ucrl-renewed", claim, "not in the paper")


def stopped(results: Results, keys: Sequence[tuple[str, str]]) -> str:
    """Return a sentence for each algorithm with stopped runs; an empty string if there are none."""
    sentences = []
    for algorithm in dict.fromkeys(name for _, name in keys):
        runs = [run for key in keys if key[1] == algorithm for run in results.get(key, ())]
        if count := sum(not run.met for run in runs):
            label = ALGORITHMS[algorithm].label
            sentences.append(
                f"{count} of {len(runs)} runs of {label} were stopped at max_steps, which favours {label}."
            )
    return " ".join(sentences)


def listed(cases: Sequence[Case], ratios: Sequence[stats.Estimate]) -> str:
    """Return each ratio with its case as text; for many cases, their range and how many are below 1."""
    if len(cases) <= LISTED:
        return "; ".join(f"{case.title}: {ratio}" for case, ratio in zip(cases, ratios, strict=True))
    values, sides = [ratio.value for ratio in ratios], [below(ratio) for ratio in ratios]
    span = f"{stats.number(min(values))} to {stats.number(max(values))}"
    return (
        f"{span} over the cases; the interval is below 1 in {sides.count(True)} of {len(cases)}, above in "
        f"{sides.count(False)}"
    )


def printed_mean(
    results: Results, case: Case, algorithm: str, printed: float, what: str, *, watched: bool = False, reason: str = ""
) -> Verdict:
    """Judge whether our mean agrees with one that the paper prints, up to chance."""
    runs = results.get((case.name, algorithm), [])
    values = np.array([run.watched if watched else run.steps for run in runs], dtype=float)

    def measure() -> Measured:
        spread = float(values.std(ddof=1)) if len(values) > 1 else np.nan
        allowed, mean = STANDARD_ERRORS * spread * np.sqrt(1 / len(values) + 1 / PAPER_RUNS), stats.mean(values)
        ours = f"{mean}; allowed: {printed:,} ± {stats.number(allowed)}"
        return within(mean, printed - allowed, printed + allowed), ours

    threshold = (
        f"the 95 % interval is within {STANDARD_ERRORS} standard errors of the difference of two means, ours and one "
        f"of {PAPER_RUNS} runs with the same spread, of the printed number"
    )
    return measured(results, keys([case], algorithm), measure, what, f"{printed:,}", threshold, reason)


def printed_exactly(what: str, printed: float, ours: float, fitted: str = "") -> Verdict:
    """Judge whether a computed number agrees with the printed one up to its last digit, unless it was `fitted`."""
    if fitted:
        return untested(what, f"{printed:,}", fitted, f"{ours:,.2f}")
    holds = abs(ours - printed) <= LAST_DIGIT
    return verdict(holds, what, f"{printed:,}", f"{ours:,.2f}", f"within {LAST_DIGIT:g}, the last digit printed")


def proportional(
    results: Results, x: Sequence[float], groups: Sequence[Sequence[Case]], claim: str, paper: str
) -> Verdict:
    """Judge the claim that the mean steps of GOSPRL grow in proportion to x; each x has a group of cases."""

    def measure() -> Measured:
        samples = [[results.steps(case.name, "gosprl") for case in group] for group in groups]
        slope, r2 = stats.log_log_slope(x, samples), stats.r_squared(x, samples)
        fit = stats.line(x, [stats.mean_of_cases(sample).value for sample in samples])
        holds = every([within(slope, 1 - SLOPE_WITHIN, 1 + SLOPE_WITHIN), above(r2, LEAST_R2)])
        r2_text = f"R² = {r2.value:.4f} ({r2.low:.4f} to {r2.high:.4f})"
        return holds, f"log-log slope {slope}; line {fit.intercept:,.0f} + {fit.slope:,.1f} x, {r2_text}"

    threshold = (
        f"log-log slope within {SLOPE_WITHIN} of 1, and R² of the straight line at least {LEAST_R2}, with their 95 % "
        "intervals"
    )
    used = keys([case for group in groups for case in group], "gosprl")
    return measured(results, used, measure, claim, paper, threshold, pooled=min(map(len, groups)))
