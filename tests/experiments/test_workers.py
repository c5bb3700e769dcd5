"""Who makes the runs of experiments: bad input (runs on Ray are tested in tests_ray)."""

import pytest

import gosprl
from gosprl.experiments.workers import team_of


@pytest.mark.parametrize(
    ("workers", "why"),
    [(0, "whole number >= 1"), ("many", 'a number of processes, "ray" or "ray://host:port", got \'many\'')],
)
def test_teams_that_cannot_be(workers, why):
    with pytest.raises(gosprl.InputError, match=f"workers: expected .*{why}"):
        team_of(workers, print)
