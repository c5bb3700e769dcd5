"""Samples of a fleet as data: unknown places come along, in every form; forms that cannot hold them are refused."""

import json

import numpy as np
import pytest

import gosprl
from evidence.seams import COIN, is_lost_by_state, sets_are_false
from gosprl import InputError
from gosprl.collecting.beginning import UNSELECTED, VOUCHED
from gosprl.exchange import export
from gosprl.exchange.incoming.minari import Minari
from gosprl.exchange.learnt import as_interval_mdp
from gosprl.exchange.sources import counted, opened
from gosprl.fleet.simulated import Simulated

FORMS = {
    "Result": lambda result, run: result,
    "model": lambda result, run: result.model,
    "copy": lambda result, run: result.model.copy(),
    "run": lambda result, run: run,
    "unknown order": lambda result, run: result,
}
ORDERS = {"run": None, "unknown order": "unknown"}


def fleet(mdp, seed, lost=is_lost_by_state):
    return Simulated(mdp, 8, entropy=[seed, 7], restart=0.0, lost=lost)


def collected(seed, out, need=100, **options):
    mdp = gosprl.TabularMDP(COIN)
    return gosprl.collect(mdp, need, seed=seed, workers=fleet(mdp, seed), late=None, out=out, **options)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(2))
def test_unknown_places_come_along_in_every_form(form, seed, tmp_path):
    """Without them, most of the steps to state 1 are missing: the truth is outside of the sets."""
    mdp, first = gosprl.TabularMDP(COIN), collected(seed, tmp_path / "run")
    data, order = FORMS[form](first, tmp_path / "run"), ORDERS.get(form, "collected")
    out = tmp_path / "second"
    second = gosprl.collect(mdp, 200, seed=seed, data=data, data_order=order, out=out)
    assert second.unknown == first.unknown
    assert sum(n for _, _, n in first.unknown) > 50
    assert not sets_are_false(second.model, COIN)
    s, a, s_next, count = first.model.transitions()
    known = gosprl.collect(mdp, 200, seed=seed, data=(s, a, s_next, count), data_order="collected")
    assert sets_are_false(known.model, COIN)
    assert gosprl.runs.verify(out).ok
    more = gosprl.resume(out, need=220)
    assert more.unknown == first.unknown
    assert not sets_are_false(more.model, COIN)
    assert gosprl.runs.verify(out).ok


@pytest.mark.parametrize("form", ["Result", "run"])
def test_a_fleet_goes_on_from_the_samples_of_another(form, tmp_path):
    """Unknown places of the data, and of the fleet; the third run begins with both."""
    first = collected(0, tmp_path / "run")
    data, order = FORMS[form](first, tmp_path / "run"), ORDERS.get(form, "collected")
    second = collected(1, tmp_path / "second", need=200, data=data, data_order=order)
    had, have = ({(s, a): n for s, a, n in result.unknown} for result in (first, second))
    assert all(have[pair] > n for pair, n in had.items())
    assert gosprl.runs.verify(tmp_path / "second").ok
    certificate = json.loads((tmp_path / "second" / "certificate.json").read_text())
    assert certificate["fleet"]["unknown"] == sum(have.values())
    recounted = counted(opened(tmp_path / "second"))  # from the data and the log, without the planner
    for now, then in zip(recounted.stored(), second.model.stored(), strict=True):
        assert np.array_equal(now, then)
    assert np.array_equal(recounted.unknown_until, second.model.unknown_until)
    third = gosprl.collect(gosprl.TabularMDP(COIN), 220, seed=2, data=tmp_path / "second")
    assert third.unknown == second.unknown
    for result in (first, second, third):
        assert not sets_are_false(result.model, COIN)


def test_what_is_in_flight_is_unknown_to_those_who_take_it_as_data():
    """Its outcome decides whether it is here: whoever draws it anew as often as it takes draws the fast ones only."""
    collector = gosprl.Collector(states=2, actions=1, need=10, seed=0, resets="never")
    for walker in "ab":
        collector.ask(0, walker=walker)
    collector.tell(0, 0, 1, walker="b")  # it waits for the one before
    taken = gosprl.collect(
        gosprl.TabularMDP(COIN), 5, seed=1, data=collector.result(), data_order="collected", max_steps=1
    )
    assert taken.unknown == [(0, 0, 2)]


def test_rewards_of_the_data_of_a_fleet_are_those_of_all_its_places():
    mdp = gosprl.TabularMDP(COIN, rewards=np.array([[0.6], [0.4]]), noise="bernoulli")
    workers = fleet(mdp, 0, lambda rng, report: report.reward == 1 and rng.random() < 0.9)
    first = gosprl.collect(mdp, 100, seed=0, workers=workers, late=None)
    answer = gosprl.applications.estimate_rewards(mdp, 0.3, seed=1, data=first, data_order="collected", max_steps=300)
    assert np.all(np.abs(answer.rewards - [[0.6], [0.4]]) <= answer.radius)
    assert answer.stop == "max_steps"  # half of the places of the data are unknown


def test_what_a_fleet_assumed_is_assumed_of_its_data():
    mdp = gosprl.TabularMDP(COIN)
    first = gosprl.collect(mdp, 20, seed=0, workers=fleet(mdp, 0), late=None, lost="independent")
    for order, what in (("collected", VOUCHED), ("unknown", UNSELECTED)):
        second = gosprl.collect(mdp, 30, seed=1, data=first, data_order=order)
        assert str(second.guarantee) == f"delta=0.1, given {what} and that losses do not depend on outcomes"


def test_exported_intervals_of_rewards_allow_for_unknown_places():
    """Most ones of state 0 are lost: its mean, 0.6, is far above the mean that is known."""
    mdp = gosprl.TabularMDP(COIN, rewards=np.array([[0.6], [0.4]]), noise="bernoulli")
    workers = fleet(mdp, 0, lambda rng, report: report.reward == 1 and rng.random() < 0.9)
    model = gosprl.collect(mdp, 200, seed=0, workers=workers, late=None).model
    low, mean, high = as_interval_mdp(model, delta=0.1).rewards["reward"]
    assert mean[0] < 0.3
    assert np.all((low[:2] <= [0.6, 0.4]) & (high[:2] >= [0.6, 0.4]))


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npz"])
def test_tables_of_a_fleet_are_refused_as_data(suffix, tmp_path):
    result = collected(0, tmp_path / "run", need=10)
    mdp = gosprl.TabularMDP(COIN)
    for source, message in ((tmp_path / "run", "column (unknown|order)"), (result, "exported model")):
        file = tmp_path / f"{type(source).__name__}{suffix}"
        export(source, file)
        with pytest.raises(InputError, match=message):
            gosprl.collect(mdp, 20, data=file, data_order="collected")


class Stored:
    """A data set with the metadata that an export of a run has."""

    def __init__(self, **metadata):
        self.storage = type("Storage", (), {"metadata": {"gosprl": metadata}})()

    def iterate_episodes(self):
        return iter(())


def test_a_minari_data_set_of_a_fleet_is_refused():
    with pytest.raises(InputError, match=r"a run of a fleet.*give the directory of the run"):
        Minari(Stored(fleet=True))
    Minari(Stored())
