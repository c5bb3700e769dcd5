"""Verdicts on made-up runs: each rule must give every verdict that it can."""

import math
from dataclasses import replace

import numpy as np
import pytest
from experiments import made_up

from gosprl.experiments import claims, stats
from gosprl.experiments.catalogue import EXPERIMENTS
from gosprl.experiments.modest import first_need
from gosprl.experiments.sweep import Case, Results, Run

CASE = Case("case", "a case", "riverswim6")
LEVELS = {"gosprl": 1000, "guarded": 800, "zero-one-ucrl": 1500, "gosprl-one-goal": 1200, "gosprl-known": 900}
INTERVAL = stats.Estimate(1.0, 0.9, 1.1)


def judged(name, level, **more):
    experiment = EXPERIMENTS[name]
    return experiment.judge(experiment, made_up.results(experiment, level, **more))


def of(verdicts, beginning):
    (verdict,) = [each for each in verdicts if each.claim.startswith(beginning)]
    return verdict.verdict


def levels(**changed):
    """Return the mean steps of each algorithm, given by name with _ for -; 5000 for the others."""
    known = LEVELS | {name.replace("_", "-"): value for name, value in changed.items()}
    return lambda case, name: known.get(name, 5000)


@pytest.mark.parametrize(("threshold", "expected"), [(1.2, True), (0.8, False), (1.05, None), (0.95, None)])
def test_an_interval_that_contains_the_threshold_decides_nothing(threshold, expected):
    assert claims.below(INTERVAL, threshold) is expected
    assert claims.above(INTERVAL, threshold) is (None if expected is None else not expected)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.8, 1.2, True), (1.2, 1.4, False), (0.6, 0.8, False), (0.95, 1.2, None), (0.8, 1.05, None), (0.95, 1.05, None)],
)
def test_within(low, high, expected):
    assert claims.within(INTERVAL, low, high) is expected


def test_no_interval_decides_nothing():
    assert claims.below(stats.Estimate(np.nan, np.nan, np.nan)) is None
    assert claims.above(stats.Estimate(np.nan, np.nan, np.nan)) is None


def test_parts_of_a_claim():
    assert claims.every([True, True]) is True
    assert claims.every([True, None]) is None
    assert claims.every([None, False, True]) is False
    assert claims.some([False, False]) is False
    assert claims.some([False, None]) is None
    assert claims.some([None, False, True]) is True


def test_faster_is_confirmed_refused_when_swapped_and_open_with_few_runs():
    claim = "GOSPRL is faster than 0/1-UCRL"
    assert of(judged("fig-treasure", levels()), claim) == claims.CONFIRMED
    assert of(judged("fig-treasure", levels(gosprl=1500, zero_one_ucrl=1000)), claim) == claims.NOT_CONFIRMED
    few = judged("fig-treasure", levels(), runs=9)
    assert of(few, claim) == claims.NOT_COMPARABLE
    assert all(each.verdict == claims.NOT_COMPARABLE for each in few)
    assert any("too few runs" in each.reason for each in few)


def test_faster_must_hold_in_every_case():
    def one_slow(case, name):
        return 3000 if (case.name, name) == ("corridor24", "gosprl") else levels()(case, name)

    assert of(judged("fig-treasure", one_slow), "GOSPRL is faster than 0/1-UCRL") == claims.NOT_CONFIRMED


def test_equal_means_decide_nothing():
    assert of(judged("fig-aggregation", levels(gosprl_one_goal=1000)), "Aggregating") == claims.UNDECIDED
    assert of(judged("fig-aggregation", levels(gosprl_one_goal=900)), "Aggregating") == claims.NOT_CONFIRMED
    assert of(judged("fig-aggregation", levels()), "Aggregating") == claims.CONFIRMED


def test_stopped_runs_are_said_to_favour_the_rival():
    verdicts = judged("fig-treasure", levels(), stopped=("zero-one-ucrl",))
    (verdict,) = [each for each in verdicts if each.claim.startswith("GOSPRL is faster")]
    assert "36 of 36 runs" in verdict.reason
    assert "favours 0/1-UCRL" in verdict.reason


@pytest.mark.parametrize(
    ("name", "algorithm", "claim"),
    [
        ("fig-treasure", "guarded", "Beyond the paper: our default"),
        ("fig-treasure", "zero-one-ucrl", "0/1-UCRL is the best"),
        ("fig-treasure", "gosprl", "With b(s,a) = 1"),
        ("table-dynamics", "guarded", "Greedy"),
        ("table-costs", "gosprl-costs", "Costs keep away"),
    ],
)
def test_what_was_stopped_may_have_taken_any_number_of_steps_and_is_not_better(name, algorithm, claim):
    lower = {"gosprl-costs": 300, "zero-one-ucrl": 1100, "zero-ucrl": 1200, "maxent": 1200}
    for stopped, expected in (((), claims.CONFIRMED), ((algorithm,), claims.NOT_COMPARABLE)):
        verdicts = judged(name, lambda case, name: lower.get(name, levels()(case, name)), stopped=stopped)
        assert of(verdicts, claim) == expected
    (verdict,) = [each for each in verdicts if each.claim.startswith(claim)]
    assert "were stopped at max_steps, which favours" in verdict.reason


@pytest.mark.parametrize(
    ("level", "stopped", "expected"),
    [
        (2500, (), claims.CONFIRMED),
        (1500, (), claims.NOT_CONFIRMED),
        (1950, (), claims.UNDECIDED),
        (1500, ("maxent",), claims.CONFIRMED),
    ],
)
def test_struggling(level, stopped, expected):
    assert of(judged("fig-treasure", levels(maxent=level), stopped=stopped), "MaxEnt struggles") == expected


def test_struggling_says_with_which_constants_and_on_how_many_domains():
    verdicts = judged("fig-treasure", levels(maxent=1500, maxent_coarse=2500))
    assert of(verdicts, "MaxEnt struggles") == claims.NOT_CONFIRMED
    coarse = "Other constants: MaxEnt, precision of UCRL2, mu = 1, Q = 0.5 struggles"
    assert of(verdicts, coarse) == claims.CONFIRMED
    assert next(each for each in verdicts if each.claim == coarse).ours.endswith("it does on 3 of 3 domains")


def test_success_in_every_run():
    claim = "GOSPRL reaches"
    assert of(judged("fig-treasure", levels()), claim) == claims.CONFIRMED
    assert of(judged("fig-treasure", levels(), stopped=("gosprl",)), claim) == claims.NOT_CONFIRMED


def test_steady_increase():
    experiment = EXPERIMENTS["fig-treasure"]
    results = made_up.results(experiment, levels())
    assert of(experiment.judge(experiment, results), "P_t of GOSPRL") == claims.CONFIRMED
    late = np.array([(0.0, 0.0), (900.0, 0.5), (1000.0, 1.0)])  # nothing in three quarters of the time
    some = np.array([(0.0, 0.0), (100.0, 0.3), (300.0, 0.5), (600.0, 0.7), (1000.0, 1.0)])
    results["corridor24", "gosprl"] = [Run(seed, 1000, True, None, late) for seed in range(12)]
    assert of(experiment.judge(experiment, results), "P_t of GOSPRL") == claims.NOT_CONFIRMED
    flat = np.array([(0.0, 0.0), (100.0, 0.3), (300.0, 0.5), (1000.0, 1.0)])  # nothing in the third quarter
    mixed = [Run(seed, 1000, True, None, flat if seed % 2 else some) for seed in range(12)]  # 0.1 of it on average
    results["corridor24", "gosprl"] = mixed
    assert of(experiment.judge(experiment, results), "P_t of GOSPRL") == claims.UNDECIDED


def test_best_heuristic():
    claim = "0/1-UCRL is the best"
    assert of(judged("fig-treasure", levels()), claim) == claims.CONFIRMED
    assert of(judged("fig-treasure", levels(maxent=1400)), claim) == claims.NOT_CONFIRMED


def test_missing_runs_are_no_verdict():
    experiment = EXPERIMENTS["fig-treasure"]
    results = made_up.results(experiment, levels())
    del results["riverswim6", "zero-one-ucrl"]
    assert of(experiment.judge(experiment, results), "GOSPRL is faster") == claims.NOT_COMPARABLE
    assert of(experiment.judge(experiment, Results()), "GOSPRL reaches") == claims.NOT_COMPARABLE


def test_a_printed_mean_may_differ_by_what_two_samples_differ():
    # sd 10 in 30 runs: three standard errors of the difference of two such means are 30 sqrt(2 / 30) = 7.7, and the
    # 95 % interval of ours is about 100 +- 1.96 * 10 sqrt(1 / 30) = 96.4 to 103.6
    steps = np.tile([90.0, 110.0], 15) * np.sqrt(29 / 30) + 100 * (1 - np.sqrt(29 / 30))
    results = Results(
        {("case", "gosprl"): [Run(i, float(x), True, None, np.zeros((1, 2))) for i, x in enumerate(steps)]}
    )
    assert steps.std(ddof=1) == pytest.approx(10)
    for printed, expected in [
        (103.0, claims.CONFIRMED),
        (107.0, claims.UNDECIDED),
        (108.5, claims.UNDECIDED),
        (112.5, claims.NOT_CONFIRMED),
        (87.5, claims.NOT_CONFIRMED),
        (93.0, claims.UNDECIDED),
    ]:
        assert claims.printed_mean(results, CASE, "gosprl", printed, "steps").verdict == expected


def test_a_number_without_chance_is_right_up_to_its_last_digit():
    assert claims.printed_exactly("B D", 24375.6, 24375.67).verdict == claims.CONFIRMED
    assert claims.printed_exactly("B D", 24375.6, 24375.75).verdict == claims.NOT_CONFIRMED


def test_table_of_bounds_needs_no_runs_for_what_takes_none():
    experiment = EXPERIMENTS["table-dynamics"]
    verdicts = experiment.judge(experiment, Results())
    exact = [each for each in verdicts if each.claim.startswith(("B D", "Σ b(s)"))]
    assert len(exact) == 6
    fitted = [each for each in exact if "RiverSwim" not in each.claim]  # maps drawn from these numbers prove nothing
    assert [each.verdict for each in exact if each not in fitted] == [claims.CONFIRMED] * 2
    assert [each.verdict for each in fitted] == [claims.NOT_COMPARABLE] * 4
    for each in exact:
        paper, ours = (float(number.replace(",", "")) for number in (each.paper, each.ours))
        assert abs(paper - ours) <= 0.1
    assert of(verdicts, "The sum over the states") == claims.CONFIRMED
    assert of(verdicts, "With known dynamics, the sample") == claims.NOT_COMPARABLE
    assert of(verdicts, "GOSPRL with known dynamics, RiverSwim") == claims.NOT_COMPARABLE


def test_order_of_the_domains():
    right = {"riverswim6": 250, "corridor24": 3150, "four_room43": 3600}
    wrong = right | {"four_room43": 2000}
    close = right | {"four_room43": 3160}
    for steps, expected in ((right, claims.CONFIRMED), (wrong, claims.NOT_CONFIRMED), (close, claims.UNDECIDED)):
        verdicts = judged("table-dynamics", lambda case, _, steps=steps: steps[case.name])
        assert of(verdicts, "The bounds order") == expected


def test_greedy_is_shown_not_to_be_optimal_by_one_domain():
    def once(case, name):
        return 800 if (case.name, name) == ("corridor24", "guarded") else 1000

    assert of(judged("table-dynamics", once), "Greedy") == claims.CONFIRMED
    assert of(judged("table-dynamics", lambda *_: 1000), "Greedy") == claims.UNDECIDED
    slower = judged("table-dynamics", lambda _, name: 1200 if name == "guarded" else 1000)
    assert of(slower, "Greedy") == claims.NOT_CONFIRMED


def test_costs():
    as_printed = {"gosprl": 253.1, "gosprl-costs": 600}
    experiment = EXPERIMENTS["table-costs"]
    results = made_up.results(experiment, lambda _, name: as_printed.get(name, 300))
    verdicts = experiment.judge(experiment, results)
    assert of(verdicts, "Costs worsen") == claims.CONFIRMED
    assert of(verdicts, "steps of GOSPRL") == claims.CONFIRMED
    assert of(verdicts, "Costs keep away") == claims.NOT_CONFIRMED  # made-up visits grow with the steps
    assert of(verdicts, "The shortest way") == claims.CONFIRMED
    swapped = Results({**results, ("trap10", "gosprl"): results["trap10", "gosprl-costs"]})
    swapped["trap10", "gosprl-costs"] = results["trap10", "gosprl"]
    verdicts = experiment.judge(experiment, swapped)
    assert of(verdicts, "Costs worsen") == claims.NOT_CONFIRMED
    assert of(verdicts, "Costs keep away") == claims.CONFIRMED


def test_garnets():
    verdicts = judged("fig-garnet", levels(zero_one_ucrl=3000))  # the spread is 5 % of the mean
    assert of(verdicts, "GOSPRL is faster") == claims.CONFIRMED
    assert of(verdicts, "GOSPRL varies less") == claims.CONFIRMED
    verdicts = judged("fig-garnet", levels(gosprl=3000, zero_one_ucrl=1000))
    assert of(verdicts, "GOSPRL is faster") == claims.NOT_CONFIRMED
    assert of(verdicts, "GOSPRL varies less") == claims.NOT_CONFIRMED


def test_errors():
    claim = "GOSPRL-for-MODEST outperforms WeightedMaxEnt"

    def of(verdicts, claim):
        return next(each.verdict for each in verdicts if each.claim == claim)

    assert of(judged("fig-modest", levels(gosprl=1, weighted_maxent=2)), claim) == claims.CONFIRMED
    assert of(judged("fig-modest", levels(gosprl=2, weighted_maxent=1)), claim) == claims.NOT_CONFIRMED
    assert of(judged("fig-modest", levels(gosprl=1, weighted_maxent=2), runs=3), claim) == claims.NOT_COMPARABLE
    assert of(judged("fig-modest", levels(gosprl=1, weighted_maxent=1)), claim) == claims.UNDECIDED


def test_a_figure_that_ends_within_the_first_needs_compares_nothing():
    """The needs of the garnet by the printed formula, one pair at a time, are more samples than the figure has."""
    case = EXPERIMENTS["fig-modest"].cases[-1]
    P, total, (S, A, delta) = case.mdp().dense(), 0, (50, 5, 0.1)
    for p in P.reshape(-1, S):
        X = sum(math.sqrt(x * (1 - x)) for x in p)
        logarithm = math.log(8 * math.e * X * math.sqrt(2 * S * A) / math.sqrt(delta))
        total += math.ceil(0.01 * (57 * X**2 * logarithm**2 + 24 * S * math.log(24 * S * S * A / delta)))
    assert total == first_need(case) > 5 * case.horizon
    verdicts = judged("fig-modest", levels(gosprl=1, weighted_maxent=2))
    (verdict,) = [each for each in verdicts if "garnet" in each.claim]
    assert verdict.verdict == claims.NOT_COMPARABLE
    assert f"{total:,} samples" in verdict.reason
    assert "57 X²" in verdict.reason
    assert not any("garnet" in each.ours for each in verdicts if each.verdict == claims.CONFIRMED)


def success(share, name, other):
    """Results of the aggregation experiment in which this share of the attempts succeeds, for all goals and for one."""
    experiment = EXPERIMENTS["fig-aggregation"]
    results = made_up.results(experiment, levels())
    for one, part in ((name, share), (other, 0.5)):
        runs = results["room20", one]
        results["room20", one] = [replace(run, ended=100, reached=int(100 * part) + run.seed % 2) for run in runs]
    return of(experiment.judge(experiment, results), "Aggregation makes attempts more")


@pytest.mark.parametrize(
    ("share", "expected"), [(0.8, claims.CONFIRMED), (0.3, claims.NOT_CONFIRMED), (0.5, claims.UNDECIDED)]
)
def test_successful_attempts(share, expected):
    assert success(share, "gosprl", "gosprl-one-goal") == expected


def phase(length):
    """Runs whose first state has all its samples after this many steps, give or take 5."""
    curves = [np.array([(0.0, 0.0), (length + seed % 10 - 5, 0.5), (1000.0, 1.0)]) for seed in range(12)]
    return [Run(seed, 1000, True, None, curve) for seed, curve in enumerate(curves)]


@pytest.mark.parametrize(
    ("without", "expected"), [(200, claims.CONFIRMED), (50, claims.NOT_CONFIRMED), (100, claims.UNDECIDED)]
)
def test_length_of_the_initial_phase(without, expected):
    experiment = EXPERIMENTS["fig-variants"]
    results = made_up.results(experiment, levels())
    for case in experiment.cases:
        results[case.name, "gosprl"], results[case.name, "gosprl-no-phase"] = phase(100), phase(without)
    assert of(experiment.judge(experiment, results), "Goals with the least remaining budget") == expected


def test_variants():
    steps = levels(gosprl_least=1500, gosprl_easiest=1050, gosprl_one_goal=1000, gosprl_square=900, gosprl_kl=1200)
    experiment = EXPERIMENTS["fig-variants"]
    results = made_up.results(experiment, steps)
    even = {"gosprl-least": 0.1, "gosprl-one-goal": 0.2, "gosprl-easiest": 0.1, "gosprl-square": 0.2, "gosprl-kl": 0.4}
    for (case, name), runs in results.items():
        results[case, name] = [replace(run, uneven=even.get(name, 0.3) * (0.9 + run.seed / 55)) for run in runs]
    verdicts = experiment.judge(experiment, results)
    assert of(verdicts, "A single goal (goal: least") == claims.CONFIRMED
    assert of(verdicts, "A single goal (goal: easiest") == claims.NOT_CONFIRMED
    assert of(verdicts, "The easiest goal meets the needs faster") == claims.CONFIRMED
    assert of(verdicts, "The least-sampled goal has more even visits than GOSPRL, one") == claims.CONFIRMED
    assert of(verdicts, "The least-sampled goal has more even visits than goal: easiest") == claims.UNDECIDED
    assert of(verdicts, "Visit costs: square: visits are more even") == claims.CONFIRMED
    assert of(verdicts, "Visit costs: kl: visits are more even") == claims.NOT_CONFIRMED
    assert of(verdicts, "Beyond the paper: visit costs: square: fewer steps") == claims.CONFIRMED
    assert of(verdicts, "Beyond the paper: visit costs: kl: fewer steps") == claims.NOT_CONFIRMED


def diameter_of(case):
    return 1 / dict(case.parameters)["nu"]


@pytest.mark.parametrize(
    ("power", "runs", "expected"),
    [
        (1, 12, claims.CONFIRMED),
        (1.5, 12, claims.NOT_CONFIRMED),
        (0.5, 12, claims.NOT_CONFIRMED),
        (1, 9, claims.NOT_COMPARABLE),
    ],
)
def test_linear_growth(power, runs, expected):
    verdicts = judged("fig-diameter", lambda case, _: 100 * diameter_of(case) ** power, runs=runs)
    assert of(verdicts, "On the toy, steps grow") == expected
    runs = 1 if runs < 10 else runs  # each size has five garnets
    verdicts = judged("fig-states", lambda case, _: 100 * dict(case.parameters)["states"] ** power, runs=runs)
    assert of(verdicts, "Steps grow linearly") == expected


def test_what_is_ours_is_marked():
    for name in EXPERIMENTS:
        verdicts = judged(name, levels())
        assert any(each.claim.startswith(claims.BEYOND) for each in verdicts)
        assert all(each.paper == "not in the paper" for each in verdicts if "our default" in each.claim)
