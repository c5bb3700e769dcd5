"""What `data_order=` promises, at small size; false alarms have probability below 1e-6."""

import numpy as np
import pytest

import gosprl
from evidence import data_order
from evidence.data_order import FALSE_ALARM, Begun, failures, level_failures, new_ones_first, one_left_out, p_value
from gosprl.collecting.collect import begun_model, declared
from gosprl.exchange.adding import count_in_order
from gosprl.mdp.rows import Rows
from gosprl.systems import as_system

RUNS = 30


@pytest.mark.parametrize("order", ["drawn", "shuffled", "new ones first"])
def test_unknown_order_holds_whatever_the_order_is(order):
    assert p_value(failures("kl", order, False, RUNS), RUNS) >= FALSE_ALARM


def test_an_order_by_outcome_breaks_sets_that_take_it_for_the_order_of_drawing():
    assert p_value(failures("kl", "new ones first", True, RUNS), RUNS) < FALSE_ALARM


@pytest.mark.parametrize("collected", [True, False])
def test_a_selection_by_outcome_is_outside_of_every_guarantee(collected):
    assert p_value(failures("kl", "one left out", collected, RUNS), RUNS) < FALSE_ALARM


def test_too_narrow_sets_are_rejected():
    assert p_value(failures("kl", "shuffled", False, RUNS, scale=0.01), RUNS) < FALSE_ALARM


def test_levels_do_not_go_by_an_order_that_the_samples_chose():
    runs = 9
    assert p_value(level_failures("kl", "strangest first", "unknown", runs), runs) >= FALSE_ALARM
    assert p_value(level_failures("kl", "strangest first", "collected", runs), runs) < FALSE_ALARM


def test_orders():
    assert new_ones_first(np.array([3, 3, 1, 3, 0, 1])).tolist() == [3, 1, 0, 3, 3, 1]
    assert one_left_out(np.array([3, 3, 1, 3, 0])).tolist() == [1, 0]


@pytest.mark.parametrize("collected", [True, False])
def test_the_simulation_has_the_counts_and_times_of_a_run_that_begins_with_data(collected):
    """At the end of the data and at all later visits, as `collect` counts them."""
    S, rng = 6, np.random.default_rng(0)
    mdp = gosprl.TabularMDP(np.full((S, 1, S), 1 / S))
    draws = rng.integers(0, S, 25)
    begun = Begun(draws=draws, rows=Rows.build(S, 1), num_states=S, begin=10, collected=collected)
    ptr, succ, count, first = begun.stored()
    system = as_system(mdp)
    data = np.zeros(10, dtype=int), np.zeros(10, dtype=int), draws[:10]
    model = begun_model(system, declared(system), data, "collected" if collected else "unknown")
    for i, visits in enumerate(begun.visits):
        here = slice(ptr[i], ptr[i + 1])
        _, *theirs = model.stored(np.array([0]))
        assert model.visits[0] == visits
        for ours, their in zip((succ, count, first), theirs, strict=True):
            assert ours[here].tolist() == their.tolist()
        if visits < len(draws):
            count_in_order(model, np.array([0]), draws[visits : visits + 1], np.zeros(1))


def test_data_save_steps():
    walks = [lambda seed, **given: data_order.collected("riverswim6", 20, seed, **given)]
    walks += [lambda seed, **given: data_order.bounded(0.5, seed, **given)]
    data = [
        lambda seed: data_order.transitions_of("riverswim6", 300, seed),
        lambda seed: data_order.lake_data(300, seed),
    ]
    for walk, given in zip(walks, data, strict=True):
        without, *others = (float(cell.split()[0].replace(",", "")) for cell in data_order.steps_after(walk, given, 2))
        assert max(others) < without
