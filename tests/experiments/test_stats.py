"""Intervals against closed forms: their coverage, constants, exact lines."""

import numpy as np
import pytest
import scipy.stats

from gosprl.experiments import stats


def test_interval_of_the_mean_covers_as_often_as_its_closed_form_says():
    # For a normal law, n runs: the percentile interval is mean +- 1.96 sqrt((n - 1) / n) s / sqrt(n), nearly.
    n, repeats, rng = 30, 1000, np.random.default_rng(1)
    miss = 2 * scipy.stats.t.sf(1.96 * np.sqrt((n - 1) / n), n - 1)
    missed = 0
    for _ in range(repeats):
        estimate = stats.mean(rng.normal(5, 2, size=n))
        missed += not estimate.low <= 5 <= estimate.high
    low, high = scipy.stats.binom.ppf([5e-7, 1 - 5e-7], repeats, miss)  # a false alarm in a million
    assert low <= missed <= high


def test_the_same_runs_give_the_same_interval():
    x = np.random.default_rng(0).exponential(size=20)
    assert stats.mean(x) == stats.mean(x)


@pytest.mark.parametrize("ratio", [stats.ratio_of_means, lambda x, y: stats.mean_ratio([x, x], [y, y])])
def test_ratio_of_constants(ratio):
    estimate = ratio([2, 2, 2], [4, 4])
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((0.5, 0.5, 0.5))


def test_difference_of_constants():
    assert stats.difference_of_means([2, 2], [5, 5, 5]) == stats.Estimate(-3, -3, -3)


def test_ratio_of_means_draws_both_samples():
    rng = np.random.default_rng(2)
    x, y = rng.normal(10, 1, size=400), rng.normal(20, 2, size=400)
    both, one = stats.ratio_of_means(x, y), stats.ratio_of_means(x, np.full(400, y.mean()))
    assert (both.high - both.low) / (one.high - one.low) == pytest.approx(np.sqrt(2), rel=0.1)  # equal relative spreads


def test_ratio_of_sds():
    x = np.random.default_rng(3).normal(size=200)
    estimate = stats.mean_ratio_of_sds([3 * x + 1], [x])
    assert estimate.value == pytest.approx(3)
    assert 2 < estimate.low < 3 < estimate.high < 4.5


def test_a_ratio_to_no_spread_at_all_confirms_nothing():
    estimate = stats.mean_ratio_of_sds([[1, 2, 3]], [[4, 4, 4]])
    assert not estimate.high < 1


def test_geometric_mean_over_cases():
    assert stats.mean_ratio([[1], [8]], [[2], [2]]).value == pytest.approx(np.sqrt(0.5 * 4))


def test_mean_of_cases_weighs_cases_not_runs():
    assert stats.mean_of_cases([[1, 1, 1], [3]]) == stats.Estimate(2, 2, 2)


def test_quantile_is_one_of_the_runs():
    assert stats.quantile90(range(1, 31)) == 27
    assert stats.quantile90([7.0]) == 7


def test_line_through_points_on_a_line():
    fit = stats.line([1, 2, 5], [5, 7, 13])
    assert (fit.slope, fit.intercept, fit.r2) == pytest.approx((2, 3, 1))


def test_line_against_scipy():
    rng = np.random.default_rng(4)
    x = rng.normal(size=30)
    y = 2 * x + rng.normal(size=30)
    fit, theirs = stats.line(x, y), scipy.stats.linregress(x, y)
    assert (fit.slope, fit.intercept, fit.r2) == pytest.approx((theirs.slope, theirs.intercept, theirs.rvalue**2))


def test_log_log_slope_of_powers():
    x = np.array([1.0, 2, 4, 8])
    for power in (1.0, 1.5):
        estimate = stats.log_log_slope(x, [[[3 * y**power] * 4, [5 * y**power] * 2] for y in x])
        assert (estimate.value, estimate.low, estimate.high) == pytest.approx((power, power, power))


def test_band_is_the_interval_of_the_mean_at_each_time():
    curves = np.random.default_rng(5).normal(size=(30, 3))
    low, high = stats.band(curves)
    for t in range(3):
        alone = stats.mean(curves[:, t])
        assert (low[t], high[t]) == pytest.approx((alone.low, alone.high), abs=0.05)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (12345.6, "12,346"),
        (253.14, "253.1"),
        (14.7223, "14.72"),
        (0.8712, "0.871"),
        (0.01234, "0.0123"),
        (np.nan, "n/a"),
    ],
)
def test_numbers_for_people(x, text):
    assert stats.number(x) == text


def test_explained_variance_is_the_square_of_the_correlation():
    x, rng = np.array([1.0, 2, 4, 8]), np.random.default_rng(5)
    groups = [[rng.normal(10 * each, 3, size=12), rng.normal(12 * each, 3, size=12)] for each in x]
    means = [np.mean([sample.mean() for sample in group]) for group in groups]
    found = stats.r_squared(x, groups)
    assert found.value == pytest.approx(np.corrcoef(x, means)[0, 1] ** 2, rel=1e-12)
    assert found.value == pytest.approx(stats.line(x, means).r2, rel=1e-12)
    assert found.low <= found.value <= found.high <= 1
    assert stats.r_squared(x, [[np.full(3, 7.0)] for _ in x]).value == 1  # nothing to explain


def test_spread_of_means():
    found = stats.spread_of_means([np.array([9.0, 11]), np.array([19.0, 21]), np.array([14.0, 16])])
    assert found.value == pytest.approx(2)
    assert found.low >= 19 / 11
    assert found.high <= 21 / 9
