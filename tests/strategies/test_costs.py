"""What to avoid: visit-driven costs by hand, bad costs, and a trap that is visited less when it costs more."""

import math

import numpy as np
import pytest
from scipy import stats

import gosprl
from gosprl import EmpiricalModel, InputError
from gosprl.envs import make
from gosprl.strategies.costs import VisitDriven
from gosprl.systems.tabular import Tabular


def visited(per_state, actions=2):
    """A model in which each state was visited so often, by its actions in turns."""
    s = np.repeat(np.arange(len(per_state)), per_state)
    return EmpiricalModel.from_transitions(
        s, np.arange(len(s)) % actions, 0 * s, states=len(per_state), actions=actions
    )


# need 1 : 1 : 2, visits 6 : 2 : 0, so shares 3/4, 1/4, 0 against 1/4, 1/4, 1/2
NEED, VISITS = np.array([10, 10, 20]), [6, 2, 0]


def test_the_gradient_of_the_square():
    costs = VisitDriven(NEED, gradient="square", weight=2.0)(visited(VISITS))
    assert costs == pytest.approx([1 + 2 * 3 * (3 / 4 - 1 / 4), 1, 1])


def test_the_gradient_of_kl():
    costs = VisitDriven(NEED, weight=0.5)(visited(VISITS))
    assert costs == pytest.approx([1 + 0.5 * (math.log(3) + 1), 1.5, 1])


def test_costs_are_clipped():
    model = visited(VISITS)
    assert VisitDriven(NEED, gradient="square", weight=100.0, c_max=4.0)(model).tolist() == [4, 1, 1]
    assert VisitDriven(NEED, gradient="kl", weight=100.0, c_max=4.0)(model).tolist() == [4, 4, 1]
    assert VisitDriven(NEED, gradient="square", weight=100.0, c_max=200.0)(model).tolist() == [151, 1, 1]


@pytest.mark.parametrize("gradient", ["square", "kl"])
def test_nothing_visited_and_nothing_needed(gradient):
    assert VisitDriven(NEED, gradient=gradient)(visited([0, 0, 0])).tolist() == [1, 1, 1]
    # state 0 is visited and not needed, state 1 neither, state 2 needed and not visited
    costs = VisitDriven(np.array([0, 0, 5]), gradient=gradient, c_max=7.0)(visited([8, 0, 0]))
    assert costs.tolist() == [7 if gradient == "kl" else 4, 1, 1]


@pytest.mark.parametrize("gradient", ["square", "kl"])
def test_costs_grow_with_visits(gradient):
    driven = VisitDriven(NEED, gradient=gradient, c_max=1e9)
    costs = [driven(visited([n, 10, 10]))[0] for n in range(0, 100, 5)]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gradient": "cubic"}, "gradient: 'cubic' is not known; known are kl, square"),
        ({"c_max": 0.5}, "c_max: expected a number >= 1, got 0.5"),
        ({"c_max": math.inf}, "c_max: expected a positive finite number"),
        ({"weight": 0.0}, "weight: expected a positive finite number, got 0.0"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(InputError, match=words):
        VisitDriven(NEED, **options)


class Untouched(Tabular):
    def follow(self, *given):
        pytest.fail("a step was made")


def with_one(value):
    costs = np.ones((6, 2))
    costs[3, 1] = value
    return costs


@pytest.mark.parametrize("wrap", [lambda costs: costs, lambda costs: lambda model: costs], ids=["array", "callable"])
@pytest.mark.parametrize(
    ("costs", "words"),
    [
        (with_one(0.5), r"costs: expected costs in \[1, c_max\], got 0.5"),
        (with_one(0.0), "costs: expected positive finite costs, got 0.0 at .* = .3, 1."),
        (with_one(-1.0), "costs: .* got -1.0"),
        (with_one(math.nan), "costs: .* got nan"),
        (with_one(math.inf), "costs: .* got inf"),
        (np.ones(5), r"costs: expected \[S\] = \(6,\) or \[S, A\] = \(6, 2\), got shape \(5,\)"),
        (np.ones((2, 6)), r"costs: .* got shape \(2, 6\)"),
        (2.0, r"costs: .* got shape \(\)"),
        ("cheap", "costs"),
    ],
)
def test_bad_costs_are_refused_before_any_step(wrap, costs, words):
    with pytest.raises(InputError, match=words):
        gosprl.collect(Untouched(make("riverswim6")), 1, strategy="gosprl", costs=wrap(costs))


def test_costs_that_turn_bad_during_a_run_lose_nothing():
    def costs(model):
        return np.full(6, 1.0 if model.visits.sum() < 30 else math.nan)

    with pytest.raises(gosprl.CollectionError, match=r"costs: .* got nan") as caught:
        gosprl.collect(make("riverswim6"), 5, strategy="gosprl", costs=costs, seed=0)
    result = caught.value.result
    assert result.stop == "failed"
    assert result.steps == result.counts.sum() >= 30


def test_unit_costs_change_nothing():
    river = make("riverswim6")
    for planning, ways in (("focused", 2), ("full", 3)):
        plain = gosprl.collect(river, 3, strategy="gosprl", seed=0, planning=planning)
        for costs in (np.ones(6), np.ones((6, 2)), lambda model: np.ones(6))[:ways]:
            run = gosprl.collect(river, 3, strategy="gosprl", seed=0, costs=costs, planning=planning)
            assert run.counts.tolist() == plain.counts.tolist()


TRAP = make("trap10")
COSTS = np.ones((10, 4))
COSTS["".join(TRAP.map).replace("#", "").index("X")] = 10


def trap_visits(seeds, **options):
    runs = [gosprl.collect(TRAP, 10, strategy="gosprl", seed=seed, **options) for seed in range(seeds)]
    assert all(run.met for run in runs)
    return [run.counts[COSTS[:, 0] > 1].sum() for run in runs]


@pytest.mark.parametrize("options", [{"dynamics": TRAP}, {"confidence": "bernstein", "scale": 0.1}])
def test_a_trap_that_costs_more_is_visited_less(options):
    less, more = trap_visits(12, costs=COSTS, **options), trap_visits(12, **options)
    assert stats.ttest_ind(less, more, equal_var=False, alternative="less").pvalue < 1e-4  # by chance, once in 10^4


def collect_full(**options):
    return gosprl.collect(TRAP, 3, strategy="gosprl", seed=0, planning="full", **options)


def test_the_same_costs_given_in_other_ways_are_the_same():
    ways = (COSTS, COSTS[:, 0], COSTS.tolist(), lambda model: COSTS, lambda model: COSTS[:, 0])
    runs = [collect_full(costs=costs).counts.tolist() for costs in ways]
    assert all(run == runs[0] for run in runs)
    assert runs[0] != collect_full().counts.tolist()


@pytest.mark.parametrize("gradient", ["square", "kl"])
def test_visit_driven_costs_bend_the_walk_and_lose_no_need(gradient):
    costs = VisitDriven(np.full(10, 20), gradient=gradient)
    result = gosprl.collect(TRAP, 5, strategy="gosprl", costs=costs, seed=0)
    assert result.met
    assert result.counts.min() >= 5
    assert result.counts.tolist() != gosprl.collect(TRAP, 5, strategy="gosprl", seed=0).counts.tolist()
