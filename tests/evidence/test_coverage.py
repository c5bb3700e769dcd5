"""The short version of `make evidence`: the confidence sets hold at scale 1, and the test can tell when they do not.

120 runs of 200 visits; false-alarm rate at most 1e-6 for each family (evidence.coverage).
"""

import numpy as np
import pytest

import gosprl
from evidence.coverage import ACTIONS, FALSE_ALARM, STATES, Snapshots, failures, p_value
from gosprl.mdp.rows import Rows
from gosprl.sets.families import FAMILIES

RUNS, VISITS = 120, 200


families = pytest.mark.parametrize("family", FAMILIES)
knowledge = pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])


@families
@knowledge
def test_the_truth_stays_inside(family, closed):
    assert p_value(failures(family, 1.0, RUNS, VISITS, closed), RUNS) >= FALSE_ALARM


@families
@knowledge
def test_sets_that_are_too_small_are_rejected(family, closed):
    assert p_value(failures(family, 0.01, RUNS, VISITS, closed), RUNS) < FALSE_ALARM


@families
@knowledge
def test_snapshots_are_the_model_at_each_time(family, closed):
    """The check reads the sets of all times in one go: they must be those a growing model gives."""
    p = np.array([0.5, 0.3, 0.0, 0.15, 0.05])
    draws = np.random.default_rng(3).choice(STATES, size=40, p=p)
    confidence = FAMILIES[family](0.1, 1.0)
    rows = Rows.build(STATES, ACTIONS)
    model = gosprl.EmpiricalModel(STATES, ACTIONS, (lambda s, a: np.flatnonzero(p)) if closed else None)
    known = (np.flatnonzero(p), len(rows) * np.count_nonzero(p)) if closed else ()
    at_once = confidence.intervals(Snapshots(draws, rows, *known))
    for n, s_next in enumerate(draws):
        model.update(2, 1, s_next)
        now = confidence.intervals(model, np.array([5]))
        piece = slice(at_once.ptr[n], at_once.ptr[n + 1])
        for name in ("succ", "lower", "upper"):
            np.testing.assert_array_equal(getattr(now, name), getattr(at_once, name)[piece])
        assert (now.each[0], now.total[0]) == (at_once.each[n], at_once.total[n])
