"""Tours through the last goals, against all orders by brute force and against runs without them."""

from itertools import permutations

import numpy as np
import pytest

import gosprl
from gosprl.envs import make
from gosprl.planning import tours
from gosprl.planning.tours import to_go


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_the_least_tour_from_each_goal_is_that_of_all_orders(n):
    times = np.random.default_rng(n).exponential(size=(n, n))
    for first, found in enumerate(to_go(times)):
        others = [g for g in range(n) if g != first]
        orders = ([first, *order] for order in permutations(others))
        assert found == pytest.approx(min(sum(times[o[:-1], o[1:]]) for o in map(np.array, orders)))


def line(n):
    """States 0 .. n - 1 in a row: left, right; the start is 0."""
    s = np.arange(n)
    parts = [(s, 0 * s, np.maximum(s - 1, 0)), (s, 0 * s + 1, np.minimum(s + 1, n - 1))]
    s, a, t = (np.concatenate(column) for column in zip(*parts, strict=True))
    return gosprl.TabularMDP((s, a, t, np.ones(len(s))), states=n, actions=2)


def test_prices_are_tours_by_hand():
    """Goals 2 and 5 of a line, action right: after the sample in 2, the walk is in 3; after that in 5, in 6."""
    need = np.zeros((9, 2), dtype=int)
    need[[2, 5], 1] = 1
    collector = gosprl.Collector(9, 2, need, dynamics=line(9), seed=0)
    prices = collector.planner.practical._prices._tours.prices()
    assert prices[[2, 5]] == pytest.approx([2, 4], abs=1e-3)


def test_tours_take_fewer_steps_on_a_cliff(monkeypatch):
    """Fixed seeds; without the priced order the mean is larger by 0.015 of the limit, 6 standard errors at 60 pairs."""
    mdp = make("cliff48")
    steps = []
    for goals in (tours.GOALS, 0):
        monkeypatch.setattr(tours, "GOALS", goals)
        steps.append([gosprl.collect(mdp, 1, dynamics=mdp, seed=seed).steps for seed in range(40)])
    assert np.mean(steps[0]) < np.mean(steps[1])
