"""The short version of `evidence.reach`: no state within L is given up too often, and the test can tell if some are.

40 runs of each; false-alarm rate at most 1e-6 for each strategy (evidence.reach). Over 200 runs: tests/strategies.
"""

import pytest

from evidence.reach import FALSE_ALARM, STRATEGIES, SYSTEMS, given_up, p_value

RUNS = 40


def failures(name, strategy):
    answers = [given_up(name, strategy, seed) for seed in range(RUNS)]
    return sum(within > 0 for within, _ in answers), sum(beyond for _, beyond in answers)


@pytest.mark.parametrize("strategy", ["gosprl", "guarded", "practical"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_states_within_reach_are_kept(name, strategy):
    failed, beyond = failures(name, strategy)
    assert p_value(failed, RUNS) >= FALSE_ALARM
    assert beyond > 10 or name != "random"  # states beyond L are given up


@pytest.mark.parametrize("name", ["chain", "hub"])
def test_sets_that_are_too_small_are_rejected(name):
    assert "gosprl, scale 0.01" in STRATEGIES
    assert p_value(failures(name, "gosprl, scale 0.01")[0], RUNS) < FALSE_ALARM
