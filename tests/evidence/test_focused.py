"""The arithmetic of evidence.focused: intervals of ratios that cover, and verdicts that say what they show."""

import numpy as np
import pytest

from evidence.focused import log_ratio, mean_of, ratio_cells


def test_intervals_cover_the_true_ratio():
    """2000 times 6 independent ratios: 95 % give or take 5 standard deviations of that frequency, here 2.5 %."""
    rng = np.random.default_rng(0)
    truth, times = np.log(1.1), 2000
    covered = np.zeros(2)
    for _ in range(times):
        ratios = [log_ratio(11 * rng.gamma(20, size=100), 10 * rng.gamma(20, size=200)) for _ in range(6)]
        for i, (log, variance) in enumerate((ratios[0], mean_of(ratios))):
            covered[i] += abs(log - truth) <= 1.96 * variance**0.5
    np.testing.assert_allclose(covered / times, 0.95, atol=0.025)


@pytest.mark.parametrize(
    ("ratio", "spread", "verdict"), [(1, 0.001, "below"), (1, 0.1, "around"), (1.1, 0.01, "above")]
)
def test_verdicts(ratio, spread, verdict):
    assert verdict in ratio_cells(np.log(ratio), spread**2)
