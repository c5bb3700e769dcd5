"""Verdicts on knowledge used fully."""

import numpy as np

from evidence.few_samples import ratios
from evidence.knowledge import against_best, against_limit, domain, settings


def test_verdicts():
    rng = np.random.default_rng(0)
    at = {mean: mean + 0.01 * rng.standard_normal(50) for mean in (1.0, 1.02, 1.2)}
    assert against_best([at[1.0], at[1.2], at[1.02]]).endswith("met")
    assert against_best([at[1.2], at[1.0], at[1.2]]).endswith("missed")
    assert against_best([at[1.02], at[1.0], at[1.2]]).endswith("undecided")
    assert against_limit("room20", at[1.02]) == "1.03: met"
    assert against_limit("riverswim36", at[1.2]) == "1.07: missed"


def test_everybody_is_told_the_same():
    for told in ("successors", "dynamics"):
        columns = settings(told)
        assert {known for _, known in columns.values()} == {told}
        found = ratios(domain("riverswim6"), "ten", 3, columns)
        assert found.shape == (len(columns), 3)
        assert found.min() > 0.8
