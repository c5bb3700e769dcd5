"""A follower counts what `show` counts, however the log grew between its looks."""

import gymnasium
import numpy as np
import pytest

import gosprl
from gosprl.errors import GosprlError, InputError
from gosprl.runs.chain import WIDTH
from gosprl.runs.settings import Out
from gosprl.runs.showing import show
from gosprl.watching.following import Follower


def lake():
    return gymnasium.make("FrozenLake-v1")


def kept(system, directory, need=3, **options):
    return gosprl.collect(system, need, seed=0, out=Out(directory, sync_steps=50), **options)


SYSTEMS = {
    "table": lambda directory: kept("room20", directory),
    "discovered": lambda directory: kept(lake(), directory),
    "anytime": lambda directory: kept(lake(), directory, resets="anytime"),
    "fleet": lambda directory: kept("riverswim6", directory, workers="threads:3"),
}


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.filterwarnings("ignore:met for the")
def test_looks_at_a_growing_log_add_up(name, tmp_path):
    """The chain is cut after some links, as if the run had come so far; then it grows."""
    result = SYSTEMS[name](tmp_path)
    chain = tmp_path / "log" / "chain"
    lines = chain.read_bytes()
    follower, links = None, len(lines) // WIDTH
    for cut in (1, links // 2, links // 2, links):
        chain.write_bytes(lines[: cut * WIDTH] + b"0000" * (cut < links))  # and the beginning of a line
        follower = follower or Follower(tmp_path)
        follower.look()
    assert follower.look() == 0
    assert follower.record.steps == result.steps
    assert follower.record.resets == result.resets
    facts = show(tmp_path).facts
    assert follower.events == facts["events"]
    assert follower.record.counted.need.proportion_met == facts["progress"]["met"] == 1.0
    assert follower.left().missing == 0
    model = follower.record.counted.model
    assert np.array_equal(
        np.sort(model.visits[model.visits > 0]), np.sort(result.model.visits[result.model.visits > 0])
    )
    assert follower.walkers == (3 if name == "fleet" else 0)


def test_a_continued_run_is_read_again(tmp_path):
    kept("room20", tmp_path, max_steps=100)
    follower = Follower(tmp_path)
    follower.look()
    assert follower.record.steps == 100
    assert not follower.record.need.met
    result = gosprl.resume(tmp_path, need=4)
    follower.look()
    assert follower.record.steps == result.steps
    assert follower.record.need.met


def test_damage_is_named(tmp_path):
    kept("room20", tmp_path)
    segment = tmp_path / "log" / "000001.arrow"
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    with pytest.raises(GosprlError, match=r"log/000001.arrow, batch \d+: .*the bytes are not those"):
        Follower(tmp_path).look()


def test_a_directory_that_is_no_run(tmp_path):
    with pytest.raises(InputError, match=r"run: expected the directory of a run"):
        Follower(tmp_path)
