"""The short version of `make evidence`: what the applications promise holds, and the test can tell when it does not.

30 runs an objective. Of each claim at most 3 in 10 000 would be rejected wrongly, by a binomial test at level ALARM.
"""

import pytest

from evidence.guarantees import (
    BUDGET,
    DELTA,
    NARROW,
    NEED,
    OBJECTIVES,
    PAID,
    count,
    error_bound,
    failures,
    p_value,
    rejects_the_best,
    treasure_is_missed,
)

RUNS, ALARM = 30, 3e-4


@pytest.mark.parametrize("name", OBJECTIVES)
def test_answers_are_right(name):
    assert p_value(failures(name, 1, RUNS, workers=1), RUNS) >= ALARM


@pytest.mark.parametrize("name", OBJECTIVES)
def test_answers_from_sets_that_are_too_narrow_are_rejected(name):
    assert p_value(failures(name, NARROW, RUNS, workers=1), RUNS) < ALARM


def test_a_treasure_that_is_paid_sometimes_is_found_as_often_as_promised():
    missed = (1 - PAID) ** NEED
    assert missed < DELTA
    assert p_value(count(treasure_is_missed, [(seed, NEED) for seed in range(RUNS)], 1), RUNS, missed) >= ALARM
    assert p_value(count(treasure_is_missed, [(seed, 1) for seed in range(RUNS)], 1), RUNS, missed) < ALARM


def test_successive_rejects_is_wrong_no_more_often_than_its_bound():
    bound = error_bound([0.3, 0.4, 0.5, 0.6], BUDGET)
    assert bound < DELTA
    assert p_value(count(rejects_the_best, [(seed, BUDGET) for seed in range(RUNS)], 1), RUNS, bound) >= ALARM
    assert p_value(count(rejects_the_best, [(seed, BUDGET // 100) for seed in range(RUNS)], 1), RUNS, bound) < ALARM
