"""A run of a fleet that was changed and sealed again: the audit or the replay says where."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from fleet_logs import LATE, UNKNOWN, Hall, collected, rows_of

from gosprl.runs import verify
from gosprl.runs.files import write_json
from gosprl.runs.notes import Aside, Notes
from gosprl.runs.opened import OpenRun
from gosprl.runs.reading import read_log
from gosprl.runs.writing import LogWriter

NAMES = ("walker", "order", "state", "action", "next_state", "reward", "flags")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("fleet") / "run"
    collected(directory, Hall, 4, need=4, share=0.03, sync_steps=40)
    return directory


def forged(run, target, change):
    """Write a run whose rows (with the numbers of orders in the place of differences) and notes are changed."""
    opened = OpenRun.read(run)
    batches = [(first, columns, notes) for first, columns, notes in opened.contents.noted() if notes is not None]
    rows = rows_of(run)
    events = [aside for _, _, notes in batches for aside in notes.events]
    rows, events = change(rows, events)
    (target / "log").mkdir(parents=True)
    manifest = dict(opened.manifest)
    writer = LogWriter(target, manifest["run"])
    writer.append_names(opened.contents.names())
    columns = {name: np.array([row[name] for row in rows]) for name in NAMES}
    columns["order"] = np.array([row["number"] - i for i, row in enumerate(rows)])
    writer.append(columns, Notes((), tuple(events)))
    writer.close()
    (target / "checkpoint").mkdir()
    manifest.pop("digest", None)
    write_json(target / "manifest.json", manifest)
    return verify(target)


def said(checked):
    return " ".join(check.text for check in checked.checks if check.ok is False)


def test_the_same_rows_sealed_again_are_confirmed(run, tmp_path):
    checked = forged(run, tmp_path / "same", lambda rows, events: (rows, events))
    assert not checked.damaged, checked


def swapped(rows, i, j):
    rows = list(rows)
    rows[i], rows[j] = rows[j], rows[i]
    return rows


def test_two_events_that_change_places(run, tmp_path):
    rows = rows_of(run)
    plain = [i for i, row in enumerate(rows) if not row["flags"]]
    neighbours = [i for i in plain if i + 1 in plain and rows[i]["walker"] != rows[i + 1]["walker"]]
    found = 0
    for n, i in enumerate(neighbours[:: max(1, len(neighbours) // 12)]):
        checked = forged(run, tmp_path / f"swapped{n}", lambda rows, events, i=i: (swapped(rows, i, i + 1), events))
        if checked.damaged:
            found += 1
            assert re.search(r"event \d+", said(checked)), checked
    assert found >= 4  # where neither order depends on the other outcome, the sequences lead to the same orders


def changed(i, **values):
    def change(rows, events):
        rows = [dict(row) for row in rows]
        rows[i].update(values)
        return rows, events

    return change


def test_what_no_fleet_does_is_found_by_the_audit(run, tmp_path):
    rows = rows_of(run)
    step = next(i for i in range(20, len(rows)) if not rows[i]["flags"])
    unknown = next(i for i, row in enumerate(rows) if row["flags"] == UNKNOWN)
    late = next(i for i, row in enumerate(rows) if row["flags"] & LATE)
    cases = {
        "twice": (changed(step, number=rows[step - 1]["number"]), "order"),
        "elsewhere": (changed(step, state=(rows[step]["state"] + 1) % 4), "begin where its walker was|no such action"),
        "other walker": (changed(step, walker=(rows[step]["walker"] + 1) % 4), "walker"),
        "nobody": (changed(step, walker=77), "its walker is not there"),
        "flags": (changed(step, flags=64), "flags"),
        "answered": (changed(unknown, flags=0, next_state=0), "late outcome|walker"),
        "not given up": (changed(late, flags=rows[late]["flags"] & ~LATE), "order|late"),
        "nothing known": (changed(unknown, next_state=1), "lead to state -1"),
        "left out": (lambda rows, events: (rows[:step] + rows[step + 1 :], events), "order|walker|outside"),
    }
    for name, (change, text) in cases.items():
        checked = forged(run, tmp_path / name, change)
        assert checked.damaged, name
        assert re.search(text, said(checked)), (name, said(checked))


def test_walkers_that_join_or_leave_at_other_times(run, tmp_path):
    def without(kind):
        return lambda rows, events: (rows, [event for event in events if event.what != kind])

    assert "is not there" in said(forged(run, tmp_path / "a", without("joined")))
    assert forged(run, tmp_path / "b", without("left")).damaged
    twice = lambda rows, events: (rows, [*events, Aside(len(rows), "joined", 0)])  # noqa: E731
    assert "joins that is there already" in said(forged(run, tmp_path / "c", twice))


def test_a_stop_that_never_was(run, tmp_path):
    def stopped(rows, events):
        middle = len(rows) // 2
        more = [*events, Aside(middle, "stopped", 0)]
        return rows, sorted(more, key=lambda event: event.row)

    checked = forged(run, tmp_path / "stopped", stopped)
    assert "gives that walker none" in said(checked)


def test_any_arrow_reader_reads_the_notes(run):
    reader = pa.ipc.open_stream(pa.OSFile(str(next((run / "log").glob("*.arrow")))))
    _, metadata = reader.read_next_batch_with_custom_metadata()
    value = json.loads(metadata[b"gosprl.fleet"])
    assert [what for _, what, _ in value["events"][:4]] == ["joined"] * 4
    assert {len(order) for order in value["in flight"]} == {4}
    assert read_log(run, OpenRun.read(run).manifest["run"]).problems == ()
