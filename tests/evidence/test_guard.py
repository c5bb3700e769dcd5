"""The reduced version of evidence.guard: the family is hostile, and the guard holds there."""

import numpy as np

import gosprl
from evidence.guard import MEMBERS, SETTINGS, rounds
from evidence.runs import ratio_interval


def steps(setting, seeds=2):
    mdp, need = rounds(*MEMBERS["30 goals"])
    runs = [gosprl.collect(mdp, need, seed=seed, **SETTINGS[setting]) for seed in range(seeds)]
    assert all(run.met for run in runs)
    return runs, np.mean([run.steps for run in runs])


def test_the_practical_plan_alone_loses_and_the_guard_holds():
    """30 runs each gave 13.2 and 2.3 times the certified steps, a single run's deviation is 7 %: far from 10 and 3."""
    _, certified = steps("certified")
    _, alone = steps("practical, nearest first")
    guarded, mean = steps("guarded, nearest first")
    assert alone > 10 * certified
    assert mean < 3 * certified
    for run in guarded:
        assert run.work["certified steps"] > 0
        assert run.steps == run.work["practical steps"] + run.work["certified steps"] <= run.work["bound"]
    _, priced = steps("guarded")
    assert priced < 2 * certified


def test_the_family_is_what_it_is_said_to_be():
    """From the hub the last goal is nearest; a round through the first passes all."""
    mdp, need = rounds(5, 2, 10, 3)
    goals = np.flatnonzero(need)
    to = mdp.hitting_times()[mdp.start, goals]
    assert len(goals) == 5
    np.testing.assert_allclose(to, [7, 6, 5, 4, 3])
    assert gosprl.fluid_limit(mdp, need) < 3 * (7 + 5 + 10 + 1)  # three rounds will do


def test_ratio_intervals_cover():
    """1000 times, 95 % give or take 4 standard deviations of that frequency, 2.8 %."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(1000):
        _, low, high = ratio_interval(12 * rng.gamma(20, size=60), 10 * rng.gamma(20, size=60))
        covered += low <= 1.2 <= high
    assert abs(covered / 1000 - 0.95) < 0.028
