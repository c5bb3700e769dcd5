"""Data whose order is not known: what is counted, and what is not believed."""

import numpy as np
import pytest
from kinds import Maze

import gosprl
from gosprl import InputError
from gosprl.collecting.collect import begun_model, declared
from gosprl.exchange import export
from gosprl.exchange.sources import Source
from gosprl.exchange.tables import transitions
from gosprl.systems import as_system

CHAIN = {
    "observation": ['"a"', '"b"', '"c"'],
    "action": [0, 0, 0],
    "next_observation": ['"b"', '"c"', '"a"'],
}


def rows_of(run, order):
    """The transitions of a run as a table, in another order."""
    import pyarrow as pa

    table = pa.Table.from_batches(transitions(Source(run)).batches)
    return table.take(np.arange(table.num_rows) if order is None else order.permutation(table.num_rows))


def begun(data, order, **options):
    system = as_system(Maze(contexts=2, ends=True), actions=4)
    return begun_model(system, declared(system, **options), data, order)


def test_endings_and_resets_may_be_in_any_order(maze_run):
    rng = np.random.default_rng(0)
    expected = begun(rows_of(maze_run, None), "collected")
    with pytest.raises(InputError, match=r"row \d+, column observation: a transition out of a terminal state"):
        begun(rows_of(maze_run, rng), "collected")
    got = begun(rows_of(maze_run, rng), "unknown")
    for part in ("transitions", "starts"):
        assert by_name(got, part) == by_name(expected, part)


def by_name(model, part):
    """Counts by observation, since states are numbered in the order in which they come."""
    *places, number = getattr(model, part)()
    named = [[model.states.name(s) for s in places[-1].tolist()]]
    if part == "transitions":
        named = [[model.states.name(s) for s in places[0].tolist()], places[1].tolist(), *named]
    return dict(zip(zip(*named, strict=True), number.tolist(), strict=True))


def ranks(data, order):
    system = as_system(Maze(), actions=1)
    model = begun_model(system, declared(system, resets="never"), data, order)
    return model.rank[model.discovered].tolist()


def test_levels_go_by_the_order_of_discovery_only_where_it_is_known():
    assert ranks(CHAIN, "collected") == [1, 2, 3]
    assert ranks(CHAIN, "unknown") == [3, 3, 3]
    assert ranks({**CHAIN, "count": [2, 2, 2]}, "collected") == [3, 3, 3]


def test_states_discovered_after_the_data_come_after_them():
    system = as_system(Maze(), actions=1)
    model = begun_model(system, declared(system, resets="never"), CHAIN, "unknown")
    assert model.rank[model.locate(("new", 0))] == 4


def test_a_run_keeps_its_order(maze_run, tmp_path):
    expected = begun(rows_of(maze_run, None), "collected")
    model = begun(maze_run, None)
    assert model.rank.tolist() == expected.rank.tolist()
    assert len(set(model.rank[model.discovered].tolist())) == len(model.discovered)


def test_a_run_on_disk_goes_on_with_the_levels_that_it_began_with(tmp_path):
    system = {"actions": 4, "seed": 0, "max_steps": 5}
    data = {name: column[:2] for name, column in CHAIN.items()}
    result = gosprl.collect(Maze(), 10, data=data, data_order="unknown", out=tmp_path / "run", **system)
    ranks = result.model.rank.tolist()
    assert ranks[:3] == [4, 4, 4]
    again = gosprl.resume(tmp_path / "run", system=Maze(), max_steps=6)
    assert again.model.rank.tolist()[:3] == [4, 4, 4]


def test_files_for_model_checkers_say_what_was_taken_for_granted(tmp_path):
    mdp = gosprl.envs.make("riverswim6")
    result = gosprl.collect(mdp, 5, seed=0, data=([0], [1], [1]), data_order="unknown")
    export(result, tmp_path / "model.drn")
    assert "given that the data were not selected by their outcome" in (tmp_path / "model.drn").read_text()
