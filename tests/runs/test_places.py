"""Directories that are renamed, replaced, removed or copied while a run writes to them."""

import os
import shutil
import time

import pytest
from forged import contents

import gosprl
from gosprl.runs import Out, verify
from gosprl.runs.files import read_json
from gosprl.systems import Outcome

OFTEN = {"sync_steps": 20, "sync_seconds": 100.0}


class Ring(gosprl.systems.System):
    """A ring with a state that can be saved, and a moment at which something else happens."""

    ends = False

    def __init__(self, at=None, happens=None):
        self.place = self.steps = 0
        self.at, self.happens = at, happens

    def model(self):
        return gosprl.EmpiricalModel(5, 2)

    def reset(self):
        self.place = 0
        return 0

    def step(self, action):
        self.steps += 1
        if self.steps == self.at:
            self.happens()
        self.place = (self.place + (1 if action else -1)) % 5
        return Outcome(self.place, 0.0)

    def get_state(self):
        return [self.place, self.steps]

    def set_state(self, state):
        self.place, self.steps = state


def written(directory, steps):
    """Wait until everything that was asked for by so many steps is written: the state of the system is the last."""
    file, events = directory / "checkpoint/system.json", 0
    while events <= steps:
        time.sleep(0.001)
        events = read_json(file)["events"] if file.exists() else 0


def finished(directory):
    gosprl.collect(gosprl.envs.make("riverswim6"), 3, seed=5, out=directory)
    return contents(directory)


@pytest.fixture(params=["stepped", "resumed"])
def during(request):
    """Collect in a directory, and let something happen in the middle."""

    def collect(directory, happens):
        out = Out(directory, **OFTEN)
        if request.param == "stepped":
            return gosprl.collect(Ring(60, happens), 20, seed=0, out=out)
        gosprl.collect(Ring(), 20, seed=0, max_steps=45, out=out)
        return gosprl.resume(directory, system=Ring(60, happens), **OFTEN)

    return collect


def test_a_renamed_run_goes_on_in_its_directory_and_nowhere_else(during, tmp_path):
    before = finished(tmp_path / "other")

    def swap():
        (tmp_path / "run").rename(tmp_path / "moved")
        (tmp_path / "other").rename(tmp_path / "run")

    result = during(tmp_path / "run", swap)
    assert contents(tmp_path / "run") == before
    assert result.met
    assert verify(tmp_path / "moved").ok
    assert verify(tmp_path / "run").ok


def test_a_link_that_is_repointed_does_not_send_a_run_elsewhere(during, tmp_path):
    (tmp_path / "run").mkdir()
    before, link = finished(tmp_path / "other"), tmp_path / "latest"
    link.symlink_to("run")

    def repoint():
        link.unlink()
        link.symlink_to("other")

    assert during(link, repoint).met
    assert contents(tmp_path / "other") == before
    assert verify(tmp_path / "run").ok
    assert verify(tmp_path / "other").ok


def test_a_fleet_stays_in_its_directory(tmp_path):
    before = finished(tmp_path / "other")
    moved = []

    def swap(status):
        if not moved and status["steps"] > 50:
            moved.append(True)
            (tmp_path / "run").rename(tmp_path / "moved")
            (tmp_path / "other").rename(tmp_path / "run")

    gosprl.collect(
        gosprl.envs.make("riverswim6"),
        60,
        seed=0,
        workers="threads:2",
        out=Out(tmp_path / "run", **OFTEN),
        progress=swap,
    )
    assert moved
    assert contents(tmp_path / "run") == before
    assert verify(tmp_path / "moved").ok


@pytest.mark.parametrize("what", ["all", "log/chain", "log/000001.arrow", "replaced"])
def test_what_is_removed_meanwhile_is_noticed_and_nothing_is_said_to_be_saved(what, tmp_path):
    run = tmp_path / "run"

    def remove():
        written(run, 180)
        if what == "all":
            shutil.rmtree(run)
        elif what == "replaced":
            (run / "copy").write_bytes((run / "log/chain").read_bytes())
            os.replace(run / "copy", run / "log/chain")
        else:
            (run / what).unlink()

    with pytest.raises(gosprl.CollectionError, match="removed or replaced") as error:
        gosprl.collect(Ring(200, remove), 200, seed=0, out=Out(run, **OFTEN))
    assert "are saved" not in str(error.value)
    assert "are lost, unless there is a copy" in str(error.value)
    assert error.value.result.steps >= 200


def linked(source, target):
    """As `cp -al`."""
    shutil.copytree(source, target, copy_function=os.link)
    return contents(target)


def test_a_copy_of_links_is_not_written_through(tmp_path):
    run, copy = tmp_path / "run", tmp_path / "copy"
    gosprl.collect(Ring(), 20, seed=0, max_steps=45, out=Out(run, **OFTEN))
    with (run / "log/chain").open("ab") as chain:
        chain.write(b"0000")  # a torn tail, which is cut off
    before = linked(run, copy)
    assert gosprl.resume(run, system=Ring(), **OFTEN).met
    assert contents(copy) == before
    assert gosprl.resume(copy, system=Ring(), **OFTEN).met  # each has a lock of its own
    for directory in (run, copy):
        assert verify(directory).ok


def test_a_copy_of_links_that_is_made_while_a_run_writes_stays_as_it_is(tmp_path):
    run, copy, before = tmp_path / "run", tmp_path / "copy", {}
    ring = Ring(100, lambda: (written(run, 90), before.update(linked(run, copy))))
    assert gosprl.collect(ring, 40, seed=0, out=Out(run, sync_steps=90, sync_seconds=100.0)).met
    assert contents(copy) == before
    assert "log/chain" in before
    assert verify(run).ok
    assert gosprl.resume(copy, system=Ring(), **OFTEN).met
    assert verify(copy).ok
