"""Runs of fleets on disk: every event is in the log, and everything follows from it."""

import shutil

import gymnasium
import numpy as np
import pyarrow.parquet as pq
import pytest
from fleet_logs import (
    LATE,
    RESET,
    UNKNOWN,
    Hall,
    batches,
    certificate,
    collected,
    cut,
    durations,
    fleet,
    links_of,
    recounted,
    rows_of,
    wait_for_syncs,
)

import gosprl
from gosprl.exchange import export
from gosprl.exchange.sources import Source
from gosprl.fleet.simulated import Simulated
from gosprl.runs import show, verify
from gosprl.runs.notes import Aside, Notes, Open, notes_of
from gosprl.runs.opened import OpenRun


class Ring:
    """Four rooms in a ring, forwards and backwards; no episode ends."""

    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None):
        self.room = 0
        return self.room, {}

    def step(self, action):
        self.room = (self.room + (1 if action else -1)) % 4
        return self.room, 0.0, False, False, {}


TABLE = gosprl.envs.make("riverswim6")
SYSTEMS = {"table": TABLE, "hall": Hall}


def same_counts(a, b):
    for name in ("visits", "unknown", "unknown_until", "reward_sum"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-12)
    assert a.states.kind(0) == b.states.kind(0)
    for ours, theirs in zip(a.stored(), b.stored(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize(("workers", "share"), [(1, 0.0), (4, 0.0), (1, 0.02), (4, 0.03)])
@pytest.mark.parametrize("lost", ["unknown", "independent"])
def test_the_log_says_everything(tmp_path, name, workers, share, lost):
    directory = tmp_path / "run"
    result = collected(directory, SYSTEMS[name], workers, share=share, lost=lost)
    assert result.stop == "met"
    rows = rows_of(directory)
    first = [row for row in rows if not row["flags"] & LATE]
    assert sorted(row["number"] for row in first) == list(range(len(first)))
    assert result.steps == sum(not row["flags"] & RESET for row in first)
    assert result.fleet["lost"] == sum(bool(row["flags"] & UNKNOWN) for row in first)
    if share:
        assert result.fleet["lost"] > 0
        assert any(row["flags"] & LATE for row in rows)
    if lost == "unknown":
        visits, unknown = recounted(rows)
        assert sum(unknown.values()) == certificate(directory)["fleet"]["unknown"] - sum(
            n for s, _, n in result.unknown if s < 0
        )
        assert sorted(visits.values()) == sorted(result.counts[result.counts > 0].tolist())
    checked = verify(directory)
    assert checked.ok, "\n".join(repr(check) for check in checked.checks if not check.ok)
    same_counts(Source(directory).model, result.model)


@pytest.mark.parametrize("late", [6.0, "3s"])
def test_a_crash_of_its_own(tmp_path, late):
    result = collected(tmp_path / "run", Hall, 4, share=0.03, lost="state", late=late)
    assert result.crashes > 0
    checked = verify(tmp_path / "run")
    assert checked.ok, "\n".join(repr(check) for check in checked.checks if not check.ok)
    same_counts(Source(tmp_path / "run").model, result.model)


def test_resets_that_are_chosen(tmp_path):
    result = collected(tmp_path / "run", Hall, 3, share=0.02, resets="anytime")
    checked = verify(tmp_path / "run")
    assert checked.ok, "\n".join(repr(check) for check in checked.checks if not check.ok)
    same_counts(Source(tmp_path / "run").model, result.model)


@pytest.mark.parametrize("seed", range(3))
def test_a_walker_in_the_place_of_a_lost_one_chooses_no_reset(tmp_path, seed):
    fleet = Simulated(Hall, 4, lost=lambda rng, report: rng.random() < 0.2, entropy=seed)
    result = gosprl.collect(Hall, 3, seed=seed, workers=fleet, out=tmp_path / "run", resets="anytime")
    assert result.fleet["lost"] > 3
    assert gosprl.resume(tmp_path / "run", system=Hall, workers=1).quits == result.quits
    other = gosprl.collect(Hall, 3, seed=seed + 10, data=tmp_path / "run", out=tmp_path / "other")
    assert other.met
    assert verify(tmp_path / "other").ok


@pytest.mark.parametrize("depth", [0, 2, 5])
def test_a_run_that_does_not_depend_on_time(tmp_path, depth):
    collected(tmp_path / "run", TABLE, 3, deterministic=depth, late=None)
    checked = verify(tmp_path / "run")
    assert checked.ok, "\n".join(repr(check) for check in checked.checks if not check.ok)


def test_a_run_that_stops_before_it_is_done(tmp_path):
    result = collected(tmp_path / "run", Hall, 4, need=50, max_steps=100, share=0.02)
    assert (result.stop, result.steps) == ("max_steps", 100)
    checked = verify(tmp_path / "run")
    assert checked.ok, "\n".join(repr(check) for check in checked.checks if not check.ok)


def test_one_walker_without_workers_keeps_its_format(tmp_path):
    gosprl.collect(TABLE, 3, seed=0, out=tmp_path / "run")
    run = OpenRun.read(tmp_path / "run")
    assert run.manifest["format"] == 1
    assert "fleet" not in run.manifest["legs"][0]
    assert run.contents.last_notes() is None
    assert all(row["order"] == row["walker"] == 0 for row in rows_of(tmp_path / "run"))


@pytest.mark.parametrize("name", SYSTEMS)
def test_resuming_after_a_cut_at_every_batch(tmp_path, name, monkeypatch):
    wait_for_syncs(monkeypatch)
    system, directory = SYSTEMS[name], tmp_path / "run"
    collected(directory, system, 4, share=0.03, sync_steps=15)
    before = rows_of(directory)
    ends = batches(directory)
    assert len(ends) > 5
    for links in ends:
        target = cut(directory, tmp_path / f"cut{links}", links)
        kept = sum(link.rows for link in links_of(target) if link.file.startswith("log"))
        run = OpenRun.read(target)
        assert run.contents.rows == kept
        open_before = {order.number for order in run.in_flight}
        issued = {row["number"] for row in before[:kept]}
        assert open_before | issued == set(range(len(open_before | issued)))
        assert {row["number"] for row in before[kept:]} >= open_before
        result = gosprl.resume(target, system=system, workers=fleet(system, 3, 0.02, seed=links))
        assert result.stop == "met"
        rows = rows_of(target)
        assert rows[:kept] == before[:kept]
        given_up = rows[kept : kept + len(open_before)]
        assert {row["number"] for row in given_up} == open_before
        assert all(row["flags"] & UNKNOWN for row in given_up)
        visits, _ = recounted(rows)
        assert sorted(visits.values()) == sorted(result.counts[result.counts > 0].tolist())
        checked = verify(target)
        assert checked.ok, "\n".join(repr(check) for check in checked.checks if not check.ok)
        same_counts(Source(target).model, result.model)


def test_a_finished_run_stays_as_it_is(tmp_path):
    directory = tmp_path / "run"
    result = collected(directory, Hall, 4, share=0.02)
    files = {file: file.read_bytes() for file in directory.rglob("*") if file.is_file()}
    again = collected(directory, Hall, 4, share=0.02)
    assert (again.steps, again.attempts, again.fleet) == (result.steps, result.attempts, result.fleet)
    assert {file: file.read_bytes() for file in directory.rglob("*") if file.is_file()} == files


def test_more_is_asked_of_a_finished_run(tmp_path):
    directory = tmp_path / "run"
    collected(directory, Hall, 4, share=0.02)
    result = gosprl.resume(directory, system=Hall, need=5, workers=fleet(Hall, 2, seed=5))
    assert result.counts[result.counts > 0].min() >= 5
    checked = verify(directory)
    assert checked.ok, "\n".join(repr(check) for check in checked.checks if not check.ok)


@pytest.mark.parametrize("at", [(), (2.5,)])
def test_a_fleet_that_goes_on_needs_no_reset_that_cannot_be_made(tmp_path, at, monkeypatch):
    """Whenever walkers join, and wherever a batch ends: their resets are no sign that episodes end."""
    wait_for_syncs(monkeypatch)
    out, before = gosprl.runs.Out(tmp_path / "run", sync_steps=1), Simulated(Ring, 1, joins=(1.0,), entropy=[0, 7])
    gosprl.collect(Ring, 5, seed=0, workers=before, out=out, max_steps=20)
    after = Simulated(Ring, 1, joins=at, entropy=[0, 7])
    result = gosprl.resume(tmp_path / "run", system=Ring, workers=after, max_steps=100, sync_steps=1)
    assert result.stop == "met"
    assert verify(tmp_path / "run").ok


def test_a_fleet_goes_on_with_the_run_of_one_walker(tmp_path):
    directory = tmp_path / "run"
    gosprl.collect(TABLE, 5, seed=0, out=directory, max_steps=40)
    before = rows_of(directory)
    result = gosprl.resume(directory, workers=fleet(TABLE, 3, 0.02))
    assert result.stop == "met"
    assert rows_of(directory)[: len(before)] == before
    assert OpenRun.read(directory).manifest["format"] == 2
    checked = verify(directory)
    assert checked.ok, "\n".join(repr(check) for check in checked.checks if not check.ok)


def test_one_walker_does_not_go_on_with_the_run_of_a_fleet(tmp_path):
    directory = tmp_path / "run"
    collected(directory, TABLE, 2, need=20, max_steps=50)
    with pytest.raises(gosprl.InputError, match="other settings: fleet"):
        gosprl.collect(TABLE, 20, seed=0, out=directory)
    out = gosprl.runs.Out(directory, change=True)
    with pytest.raises(gosprl.InputError, match="a run of a fleet, and goes on with one"):
        gosprl.collect(TABLE, 20, seed=0, out=out)
    with pytest.raises(gosprl.InputError, match="workers"):
        gosprl.resume(directory)


def test_another_fleet_is_refused_where_settings_have_to_be_equal(tmp_path):
    collected(tmp_path / "run", TABLE, 2, need=20, max_steps=50)
    with pytest.raises(gosprl.InputError, match="independent"):
        collected(tmp_path / "run", TABLE, 2, need=20, lost="independent")


def test_every_flipped_byte_is_found(tmp_path):
    directory = tmp_path / "run"
    collected(directory, TABLE, 3, share=0.03)
    log = next((directory / "log").glob("*.arrow"))
    data = log.read_bytes()
    rng = np.random.default_rng(0)
    places = [*rng.integers(len(data), size=25).tolist(), data.index(b"in flight"), data.rindex(b"events")]
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        log.write_bytes(changed)
        assert verify(directory).damaged
    log.write_bytes(data)
    assert verify(directory).ok


def test_a_cut_log_is_found(tmp_path, monkeypatch):
    wait_for_syncs(monkeypatch)
    directory = tmp_path / "run"
    collected(directory, TABLE, 3, share=0.02)
    for links in batches(directory)[:-1]:
        target = tmp_path / f"cut{links}"
        shutil.copytree(directory, target)
        saved = (target / "log/chain").read_bytes()
        (target / "log/chain").write_bytes(saved[: links * 138])
        assert verify(target).damaged  # the certificate speaks of more
        (target / "certificate.json").unlink()
        assert not verify(target).damaged  # looks like a shorter run
        assert not verify(target).ok


def test_show_names_the_fleet(tmp_path, monkeypatch):
    wait_for_syncs(monkeypatch)
    directory = tmp_path / "run"
    result = collected(directory, Hall, 4, share=0.03)
    facts = show(directory).facts["fleet"]
    assert (facts["joined"], facts["lost"]) == (result.fleet["walkers"], result.fleet["lost"])
    assert facts["unknown"] == sum(n for *_, n in result.unknown)
    assert "walkers joined" in repr(show(directory))
    target = cut(directory, tmp_path / "cut", batches(directory)[1])
    shown = show(target)
    assert shown.facts["fleet"]["in flight"] == len(OpenRun.read(target).in_flight) > 0
    assert not shown.problems


def test_exports_have_walkers_and_orders(tmp_path):
    directory = tmp_path / "run"
    result = collected(directory, Hall, 4, share=0.03)
    rows = rows_of(directory)
    for ending in ("parquet", "csv", "npz"):
        export(directory, tmp_path / f"rows.{ending}")
    table = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [row["walker"] for row in table] == [row["walker"] for row in rows]
    assert [row["order"] for row in table] == [row["order"] for row in rows]
    for bit, name in ((RESET, "reset"), (UNKNOWN, "unknown"), (LATE, "late")):
        assert [row[name] for row in table] == [bool(row["flags"] & bit) for row in rows]
    assert all(row["next_state"] == -1 and row["next_observation"] is None for row in table if row["unknown"])
    arrays = np.load(tmp_path / "rows.npz")
    np.testing.assert_array_equal(arrays["counts"], result.counts)
    np.testing.assert_array_equal(arrays["unknown"], [bool(row["flags"] & UNKNOWN) for row in rows])


def test_a_run_is_data_with_its_unknown_places(tmp_path):
    """States are discovered, episodes end, and walkers are lost: the data are the committed samples of all pairs."""
    directory = tmp_path / "run"
    result = collected(directory, Hall, 4, share=0.1)
    assert len(result.unknown) > 1
    taken = gosprl.collect(Hall, 1, data=directory, seed=1, max_steps=1)

    def by_observation(model, numbers):
        name = model.states.name
        pairs = map(model.rows.pair, range(len(model.rows)))
        return {(name(s), a): int(n) for (s, a), n in zip(pairs, numbers, strict=True) if n}

    had, have = (by_observation(one.model, one.model.visits) for one in (result, taken))
    assert sum(had.values()) <= sum(have.values()) <= sum(had.values()) + 3  # a step, an ending, a reset
    assert all(have[pair] >= n for pair, n in had.items())
    assert by_observation(taken.model, taken.model.unknown) == by_observation(result.model, result.model.unknown)


def test_repair_keeps_the_batches_before_the_damage(tmp_path, monkeypatch):
    wait_for_syncs(monkeypatch)
    directory = tmp_path / "run"
    collected(directory, Hall, 4, share=0.03)
    rows = len(rows_of(directory))
    link = links_of(directory)[batches(directory)[2] - 1]
    file = directory / link.file
    data = bytearray(file.read_bytes())
    data[link.offset + link.length // 2] ^= 1
    file.write_bytes(data)
    repaired = gosprl.runs.repair(directory, tmp_path / "copy")
    assert repaired.complete
    assert 0 < repaired.events < rows
    result = gosprl.resume(tmp_path / "copy", system=Hall, workers=fleet(Hall, 3, seed=9))
    assert result.stop == "met"
    checked = verify(tmp_path / "copy")
    assert checked.ok, "\n".join(repr(check) for check in checked.checks if not check.ok)


def test_an_application_by_a_fleet(tmp_path):
    directory = tmp_path / "run"
    answer = gosprl.applications.estimate_model(
        TABLE, 0.6, seed=0, out=directory, workers=fleet(TABLE, 3, 0.01), max_steps=200
    )
    assert answer.steps == 200
    checked = verify(directory)
    assert checked.ok, "\n".join(repr(check) for check in checked.checks if not check.ok)
    again = gosprl.resume(directory, workers=fleet(TABLE, 2, seed=3), max_steps=400)
    assert again.steps == 400
    checked = verify(directory)
    assert checked.ok, "\n".join(repr(check) for check in checked.checks if not check.ok)


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"{}", b'{"in flight": [], "events": 3}', b'{"in flight": [[0, 0, 0]], "events": []}']
)
def test_notes_of_strangers(value):
    with pytest.raises(ValueError, match=r"expected|Expecting"):
        notes_of({b"gosprl.fleet": value})
    with pytest.raises(ValueError, match=r"expected|Expecting"):
        notes_of({b"other": b"1"})


def test_notes_are_read_as_they_were_written():
    notes = Notes((Open(3, 1, 0, -1), Open(5, 0, 2, 1)), (Aside(0, "joined", 0), Aside(7, "left", 1)))
    assert notes_of(notes.metadata()) == notes
    twice = Notes((Open(3, 1, 0, -1), Open(3, 0, 2, 1)))
    with pytest.raises(ValueError, match="increasing"):
        notes_of(twice.metadata())


def test_a_run_that_fails_with_samples_in_flight(tmp_path):
    directory, seen = tmp_path / "run", []

    def fault(rng, report):
        seen.append(report)
        return report._replace(reward=np.nan) if len(seen) == 80 else None

    carried = Simulated(Hall, 4, duration=durations, fault=fault, entropy=0)
    with pytest.raises(gosprl.CollectionError, match="expected finite numbers"):
        gosprl.collect(Hall, 9, seed=0, out=directory, workers=carried, late=None)
    rows, in_flight = rows_of(directory), OpenRun.read(directory).in_flight
    assert len(in_flight) == 4  # that of the walker with the wrong reward has no row, either
    checked = verify(directory)
    assert not checked.damaged, "\n".join(repr(check) for check in checked.checks if not check.ok)
    result = gosprl.resume(directory, system=Hall, workers=fleet(Hall, 2, seed=1))
    assert result.stop == "met"
    assert rows_of(directory)[: len(rows)] == rows
    checked = verify(directory)
    assert checked.ok, "\n".join(repr(check) for check in checked.checks if not check.ok)


class Named(Hall):
    """A hall whose actions have names."""

    action_space = None
    order = ("left", "stay", "right")

    def step(self, action):
        return super().step(self.order.index(action) if action in self.order else action)

    def _observed(self):
        return f"door{self.at}", {}


@pytest.mark.parametrize("workers", ["threads:2", 2])
@pytest.mark.parametrize("actions", [3, ["left", "stay", "right"]])
def test_actions_that_were_given(workers, actions, tmp_path):
    gosprl.collect(Named, 2, workers=workers, actions=actions, seed=0, out=tmp_path / "run")
    found = verify(tmp_path / "run")
    assert found.ok, found
    assert gosprl.resume(tmp_path / "run", system=Named, need=3, workers=workers).met
    found = verify(tmp_path / "run")
    assert found.ok, found
