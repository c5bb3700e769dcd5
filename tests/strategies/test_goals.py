"""Where to head: each selection by its definition, alone and during runs."""

import numpy as np
import pytest
from scipy import stats
from walked import table_collector

from gosprl.envs import make
from gosprl.strategies import Gosprl
from gosprl.strategies.goals import GOALS, History, every_from_the_start
from gosprl.strategies.gosprl import GosprlPlanner

LEVEL = 1e-4  # false-alarm rate of each test of a law
NAMES = ["all", "all-always", "least-sampled", "easiest", "random"]


def history(visits=(0, 0, 0, 0), remaining=(1, 1, 1, 1), tried=None, succeeded=None):
    made = History(np.array(visits), np.array(remaining))
    made.tried[:] = 0 if tried is None else tried
    made.succeeded[:] = 0 if succeeded is None else succeeded
    return made


def chosen(name, under, past, draws=1, seed=0):
    """How often each state is among the goals."""
    rng, under = np.random.default_rng(seed), np.array(under, dtype=bool)
    return sum(GOALS[name](under, past, rng).astype(int) for _ in range(draws)).tolist()


def test_names():
    assert list(GOALS) == NAMES


def test_all_takes_every_under_sampled_state():
    assert chosen("all", [1, 0, 1, 1], history(remaining=[5, 0, 1, 2])) == [1, 0, 1, 1]


def test_all_takes_the_least_remaining_while_everything_is_needed():
    assert chosen("all", [1, 1, 1, 1], history(remaining=[5, 2, 9, 2])) == [0, 1, 0, 1]
    under, past = np.ones(4, dtype=bool), history(remaining=[5, 2, 9, 2])
    assert every_from_the_start(under, past, np.random.default_rng(0)).all()


def test_least_sampled_takes_the_fewest_visits_of_those_needed():
    assert chosen("least-sampled", [1, 0, 1, 1], history(visits=[7, 0, 3, 4]), draws=20) == [0, 0, 20, 0]


def test_easiest_takes_the_best_ratio():
    past = history(tried=[10, 4, 8, 3], succeeded=[5, 4, 6, 1])  # 0.5, 1, 0.75, 0.33
    assert chosen("easiest", [1, 1, 1, 1], past, draws=20) == [0, 20, 0, 0]
    assert chosen("easiest", [1, 0, 1, 1], past, draws=20) == [0, 0, 20, 0]


def test_easiest_is_hopeful_about_what_was_never_tried():
    past = history(tried=[10, 0, 8, 3], succeeded=[9, 0, 6, 1])
    assert chosen("easiest", [1, 1, 1, 1], past, draws=20) == [0, 20, 0, 0]
    past = history(tried=[10, 0, 8, 3], succeeded=[10, 0, 6, 1])  # as good as always
    picked = chosen("easiest", [1, 1, 1, 1], past, draws=400)
    assert picked[0] + picked[1] == 400
    assert stats.binomtest(picked[0], 400).pvalue > LEVEL


@pytest.mark.parametrize("name", ["least-sampled", "easiest", "random"])
def test_ties_are_broken_uniformly(name):
    past = history(visits=[2, 2, 0, 2], tried=[1, 1, 0, 1], succeeded=[1, 1, 0, 1])
    picked = chosen(name, [1, 1, 0, 1], past, draws=900)
    assert picked[2] == 0
    assert stats.chisquare([picked[0], picked[1], picked[3]]).pvalue > LEVEL


def test_random_takes_no_notice_of_anything_else():
    past = history(visits=[9, 0, 5, 1], remaining=[1, 7, 3, 2], tried=[5, 5, 5, 0], succeeded=[5, 0, 1, 0])
    assert stats.chisquare(chosen("random", [1, 1, 1, 1], past, draws=900)).pvalue > LEVEL


class Watched(Gosprl):
    """Remembers every walk: where it began, its goals, what is missing and N(s) then; and whether it came to a goal."""

    def begin(self, model, need, rng):
        return WatchedPlanner(self, model, need, rng)


class WatchedPlanner(GosprlPlanner):
    def __init__(self, *given):
        super().__init__(*given)
        self.walks = []

    def attempt(self, s, t):
        if self.walks and "came" not in self.walks[-1]:
            self.walks[-1]["came"] = bool(self.walks[-1]["goals"][s])
        answer = super().attempt(s, t)
        if answer.horizon > 1:
            N = self.model.visits.reshape(self.model.num_states, -1)
            gaps = np.maximum(self.need.pair.reshape(N.shape) - N, 0).sum(axis=1)
            self.walks.append({"goals": answer.goals.copy(), "missing": gaps, "visits": N.sum(axis=1)})
        return answer


def walks(name, seed=0, **options):
    collector = table_collector(6, 2, 6, strategy=Watched(goals=name, **options), seed=seed)
    result = collector.run(make("riverswim6"))
    assert result.met
    assert len(collector.planner.walks) == result.attempts > 15
    return collector.planner.walks


@pytest.mark.parametrize("name", NAMES)
def test_runs_come_to_an_end_and_head_for_what_is_needed(name):
    for walk in walks(name):
        assert walk["goals"].any()
        assert (walk["missing"][walk["goals"]] > 0).all()
        assert name.startswith("all") or walk["goals"].sum() == 1


def test_all_in_a_run():
    initial = 0
    for walk in walks("all"):
        missing = walk["missing"]
        expected = missing == missing.min() if missing.all() else missing > 0
        assert walk["goals"].tolist() == expected.tolist()
        initial += bool(missing.all())
    assert initial > 5


def test_least_sampled_in_a_run():
    for walk in walks("least-sampled"):
        under = walk["missing"] > 0
        assert walk["visits"][walk["goals"]] == walk["visits"][under].min()


@pytest.mark.parametrize("options", [{}, {"confidence": "bernstein", "scale": 0.3}], ids=["kl", "bernstein"])
def test_easiest_in_a_run(options):
    tried, succeeded, failures = np.zeros(6), np.zeros(6), 0
    for walk in walks("easiest", **options):
        ratio = np.where(tried > 0, succeeded / np.maximum(tried, 1), 1.0)
        assert ratio[walk["goals"]] == ratio[walk["missing"] > 0].max()
        came = walk.get("came", True)
        tried[walk["goals"]] += 1
        succeeded[walk["goals"]] += came
        failures += not came
    assert failures > 5  # walks that ended by doubling


def test_a_selection_of_ones_own():
    def last(under, past, rng):
        goals = np.zeros(len(under), dtype=bool)
        goals[np.flatnonzero(under)[-1]] = True
        return goals

    for walk in walks(last):
        assert np.flatnonzero(walk["goals"]).tolist() == [np.flatnonzero(walk["missing"]).max()]
