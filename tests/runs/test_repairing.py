"""`repair`: a copy with every batch before the damage, which verifies and goes on; the original is not touched."""

import os
import shutil

import pyarrow as pa
import pytest
from forged import contents, forge, reseal, table_of
from kinds import Maze, river

import gosprl
from gosprl import InputError
from gosprl.runs import Out, repair, verify
from gosprl.systems.stepper import Stepper


def maze():
    return Stepper(Maze(masks=True, ends=True), actions=4)


MAKE = {"table": river, "maze": maze}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The uninterrupted runs, by name, and where they are."""
    place = tmp_path_factory.mktemp("runs")
    made = {
        name: gosprl.collect(make(), 8, seed=0, out=Out(place / name, sync_steps=30)) for name, make in MAKE.items()
    }
    return place, made


@pytest.fixture
def run(request, results, tmp_path):
    """A copy of a run."""
    return shutil.copytree(results[0] / getattr(request, "param", "table"), tmp_path / "run")


def flip(file, place):
    data = bytearray(file.read_bytes())
    data[place] ^= 4
    file.write_bytes(data)


def ends(run, file):
    """Return (bytes, rows of the log) after each link of a file, from the lines of the chain."""
    rows, found = 0, []
    for line in (run / "log/chain").read_text().splitlines():
        _, name, offset, length, number, *_ = line.split()
        rows += int(number) * name.startswith("log/")
        if name == file:
            found.append((int(offset) + int(length), rows))
    return found


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.95])
def test_every_batch_before_the_damage_is_kept(run, tmp_path, results, share):
    links = ends(run, "log/000001.arrow")
    place = int(share * links[-1][0])
    expected = max([rows for end, rows in links if end <= place], default=0)
    whole = table_of(run).slice(0, expected)
    flip(run / "log/000001.arrow", place)
    before = contents(run)
    done = repair(run, tmp_path / "copy")
    assert contents(run) == before
    assert (done.events, done.complete) == (expected, True)
    assert any("log/000001.arrow, batch " in note for note in done.notes)
    found = verify(tmp_path / "copy")
    assert not found.damaged, found
    if expected:
        assert table_of(tmp_path / "copy").equals(whole)
    result = gosprl.resume(tmp_path / "copy")
    uninterrupted = results[1]["table"]
    assert (result.steps, result.counts.tolist()) == (uninterrupted.steps, uninterrupted.counts.tolist())
    assert verify(tmp_path / "copy").ok


@pytest.mark.parametrize("run", ["maze"], indirect=True)
def test_events_whose_states_have_lost_their_names_are_left_out(run, tmp_path):
    second = ends(run, "states.arrow")[1]  # the second batch of names
    flip(run / "states.arrow", second[0] - 9)
    done = repair(run, tmp_path / "copy")
    assert done.events == second[1] > 0  # rows acknowledged before it
    assert not verify(tmp_path / "copy").damaged
    assert gosprl.resume(tmp_path / "copy", system=maze()).met
    assert verify(tmp_path / "copy").ok


def test_settings_that_begin_later_are_left_out(run, tmp_path):
    rows = table_of(run).num_rows
    gosprl.resume(run, need=9)
    flip(run / "log/000001.arrow", ends(run, "log/000001.arrow")[2][0] + 5)
    assert repair(run, tmp_path / "copy").events < rows
    found = verify(tmp_path / "copy")
    assert not found.damaged
    assert found.checks[0].text.endswith("1 leg(s)")
    assert gosprl.resume(tmp_path / "copy").met


def test_a_sound_run_is_copied_without_its_certificate(run, tmp_path, results):
    repair(run, tmp_path / "copy")
    assert not (tmp_path / "copy/certificate.json").exists()
    assert gosprl.resume(tmp_path / "copy").steps == results[1]["table"].steps
    assert verify(tmp_path / "copy").ok  # it has one again


def test_a_damaged_table_has_to_be_given(run, tmp_path):
    flip(run / "system.json", 100)
    done = repair(run, tmp_path / "copy")
    assert any("system.json" in note for note in done.notes)
    with pytest.raises(InputError, match="system=") as error:
        gosprl.resume(tmp_path / "copy")
    assert "Traceback" not in str(error)
    assert gosprl.resume(tmp_path / "copy", system=river()).met
    assert verify(tmp_path / "copy", system=river()).ok


def test_a_damaged_manifest_cannot_be_repaired_but_the_log_can_be_read(run, tmp_path):
    whole = table_of(run)
    manifest = run / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"guarded", b"guardee"))
    done = repair(run, tmp_path / "copy")
    assert (done.complete, done.events) == (False, whole.num_rows)
    assert any("cannot be resumed" in note for note in done.notes)
    assert any("Arrow streams" in note for note in done.notes)
    assert table_of(tmp_path / "copy").equals(whole)


def test_without_an_id_nothing_is_copied(run, tmp_path):
    (run / "manifest.json").write_bytes(b"")
    done = repair(run, tmp_path / "copy")
    assert (done.complete, done.events) == (False, 0)
    assert not (tmp_path / "copy").exists()
    assert pa.ipc.open_stream((run / "log/000001.arrow").read_bytes()).read_all().num_rows > 0  # as the note says


def test_events_that_cannot_be_are_left_out(run, tmp_path):
    forge(run, lambda columns: columns["action"].__setitem__(50, 7))
    done = repair(run, tmp_path / "copy")
    assert done.events == 0  # there is one batch
    assert any("event 50" in note for note in done.notes)


@pytest.mark.parametrize("target", ["there", "run/inside"])
def test_targets_that_are_refused(run, tmp_path, target):
    (tmp_path / "there").mkdir()
    before = contents(tmp_path)
    with pytest.raises(InputError, match="target: expected a directory"):
        repair(run, tmp_path / target)
    assert contents(tmp_path) == before


def test_paths_stay_inside_the_directory(run, tmp_path):
    """A log that is a link to somewhere else is not copied."""
    os.rename(run / "log", tmp_path / "elsewhere")
    (run / "log").symlink_to(tmp_path / "elsewhere")
    assert repair(run, tmp_path / "copy").events == 0


def test_the_copy_says_why_it_is_shorter(run, tmp_path):
    flip(run / "log/000001.arrow", 3000)
    repair(run, tmp_path / "copy")
    said = {}
    reseal(tmp_path / "copy/manifest.json", said.update)
    assert "log/000001.arrow, batch" in said["repaired"][0]["because"][0]
