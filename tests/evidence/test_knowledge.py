"""Verdicts on knowledge used fully."""

import numpy as np
import pytest

from evidence.few_samples import ratios
from evidence.knowledge import against_best, domain, settings, verdict_of
from evidence.runs import paired_ratio_interval


def test_verdicts():
    rng = np.random.default_rng(0)
    at = {mean: mean + 0.01 * rng.standard_normal(50) for mean in (1.0, 1.02, 1.2)}
    assert against_best([at[1.0], at[1.2], at[1.02]], 0.0).endswith("met")
    assert against_best([at[1.2], at[1.0], at[1.2]], 0.1).endswith("missed")
    assert against_best([at[1.02], at[1.0], at[1.2]], 0.0).endswith("undecided")
    assert against_best([at[1.02], at[1.0], at[1.2]], 0.02).endswith("met")
    assert verdict_of("dynamics", "ten", "room20")([at[1.02]]) == "1.03: met"
    assert verdict_of("dynamics", "ten", "riverswim36")([at[1.2]]) == "1.07: missed"


def test_pairs_of_equal_ratio_have_no_interval():
    x = np.random.default_rng(1).exponential(size=30)
    assert paired_ratio_interval(1.1 * x, x) == pytest.approx((1.1, 1.1, 1.1))


def test_everybody_is_told_the_same():
    for told in ("successors", "dynamics"):
        columns = settings(told)
        assert {known for _, known in columns.values()} == {told}
        found = ratios(domain("riverswim6"), "ten", 3, columns)
        assert found.shape == (len(columns), 3)
        assert found.min() > 0.8
