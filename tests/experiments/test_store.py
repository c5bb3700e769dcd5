"""Runs on disk: loading returns what was stored, and rejects any other file."""

import csv
import json
import os
from dataclasses import replace

import numpy as np
import pytest
from small_catalogue import files

import gosprl
from gosprl.experiments import store
from gosprl.experiments.algorithms import ALGORITHMS
from gosprl.experiments.sweep import Case, Job, Results, Run

CASE = Case("river", "River", "riverswim", (("states", 6), ("map", ("a", "b"))), need=3)
JOB = Job(CASE, "zero-one-ucrl", 4, max_steps=1000)
RUN = Run(4, 812, True, 1000, np.array([[0.0, 0.0], [17.0, 1 / 3], [812.0, 1.0]]), 5, 71, 70, 33, 0.125)


@pytest.fixture
def out(tmp_path):
    """A directory with one run."""
    store.begin(tmp_path / "out", quick=False)
    store.save(tmp_path / "out", "fig", JOB, RUN)
    return tmp_path / "out"


def edited(out, change):
    """The stored run, changed."""
    file = store.path(out, "fig", JOB)
    data = json.loads(file.read_text())
    change(data)
    file.write_text(json.dumps(data))


def refused(out, job=JOB):
    """Return the error of loading a run, which must not change any file."""
    before = files(out)
    with pytest.raises(gosprl.InputError, match="give another --out, or remove") as error:
        store.load(out, "fig", job)
    assert files(out) == before
    assert str(store.path(out, "fig", JOB)) in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    "run", [RUN, Run(4, 0, False, None, np.empty((0, 2)))], ids=["complete", "without steps or limit"]
)
def test_round_trip(out, run):
    job = replace(JOB, max_steps=run.max_steps, algorithm="gosprl")
    store.save(out, "fig", job, run)
    again = store.load(out, "fig", job)
    for key in ("seed", "steps", "met", "max_steps", "watched", "attempts", "ended", "reached", "uneven"):
        assert getattr(again, key) == getattr(run, key)
        assert type(getattr(again, key)) is type(getattr(run, key))
    np.testing.assert_array_equal(again.curve, run.curve)
    assert again.curve.shape == run.curve.shape


def test_a_run_is_one_file_that_says_the_job_completely(out):
    data = json.loads((out / "fig/runs/river/zero-one-ucrl/4.json").read_text())
    assert set(data) == {"format", "version", "job", "run"}  # no time, no host
    assert (data["format"], data["version"]) == (2, gosprl.__version__)
    assert data["job"]["strategy"] == "zero_one_ucrl"
    assert data["job"]["options"] == {"delta": 0.1, "confidence": "bernstein", "scale": 0.1}
    assert (data["job"]["seed"], data["job"]["max_steps"], data["job"]["case"]["need"]) == (4, 1000, 3)
    assert data["run"]["curve"] == RUN.curve.tolist()
    assert store.counts(out) == {"fig": 1}


def test_what_was_not_run_is_not_there(out):
    assert store.load(out, "fig", replace(JOB, seed=5)) is None
    assert store.load(out, "other", JOB) is None
    assert store.counts(out / "nowhere") == {}


def test_how_it_is_drawn_may_change(out, monkeypatch):
    monkeypatch.setitem(ALGORITHMS, JOB.algorithm, replace(ALGORITHMS[JOB.algorithm], label="new", color="#123456"))
    assert store.load(out, "fig", replace(JOB, case=replace(CASE, title="new"))).steps == 812


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (replace(JOB, max_steps=2000), "has job.max_steps 1000, expected 2000"),
        (replace(JOB, case=replace(CASE, need=7)), "has job.case.need 3, expected 7"),
        (replace(JOB, case=replace(CASE, parameters=())), r"has job.case.parameters [['states', 6], "),
    ],
)
def test_a_run_of_another_job_is_refused(out, job, message):
    assert message in refused(out, job)


def test_a_run_with_other_options_is_refused(out, monkeypatch):
    changed = replace(ALGORITHMS[JOB.algorithm], options={"delta": 0.2})
    monkeypatch.setitem(ALGORITHMS, JOB.algorithm, changed)
    assert "has job.options.delta 0.1, expected 0.2" in refused(out)


def test_a_run_of_another_version_or_format_is_refused(out):
    edited(out, lambda data: data.update(version="0.0.1"))
    assert f"has version '0.0.1', expected '{gosprl.__version__}'" in refused(out)
    edited(out, lambda data: data.update(format=0))
    assert "has format 0, expected 2" in refused(out)


@pytest.mark.parametrize("content", [b"", b'{"format": 2, "ver', b"[1]", b"\xff\xfe"])
def test_a_file_that_cannot_be_parsed_is_refused(out, content):
    store.path(out, "fig", JOB).write_bytes(content)
    assert "cannot be read" in refused(out)


@pytest.mark.parametrize("entry", [{"steps": "many"}, {"curve": [1, 2, 3]}, {"curve": None}])
def test_a_run_that_is_none_is_refused(out, entry):
    edited(out, lambda data: data["run"].update(entry))
    assert "cannot be read" in refused(out)
    edited(out, lambda data: data.pop("run"))
    assert "cannot be read" in refused(out)


def test_a_directory_in_place_of_a_run_is_refused(out):
    store.path(out, "fig", JOB).unlink()
    store.path(out, "fig", JOB).mkdir()
    assert "cannot be read" in refused(out)


@pytest.mark.parametrize("where", ["replace", "write"])
def test_an_interrupt_leaves_no_half_file(out, monkeypatch, where):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    before = files(out)
    monkeypatch.setattr(*((os, "replace") if where == "replace" else (type(out), "write_bytes")), interrupted)
    for job in (JOB, replace(JOB, seed=5)):
        with pytest.raises(KeyboardInterrupt):
            store.save(out, "fig", job, replace(RUN, steps=1))
    assert files(out) == before


def test_what_cannot_be_written_is_said(out):
    (out / "fig" / "runs" / "other").write_text("in the way")
    before = files(out)
    with pytest.raises(gosprl.InputError, match=r"out: .*0\.json cannot be written: .*stored runs are kept"):
        store.save(out, "fig", Job(replace(CASE, name="other"), "random", 0), RUN)
    assert files(out) == before


def test_begin(tmp_path):
    for folder in (tmp_path / "a/new", tmp_path):
        store.begin(folder, quick=True)
        assert json.loads((folder / "reproduction.json").read_text()) == {
            "format": 2,
            "version": gosprl.__version__,
            "quick": True,
        }
        before = files(tmp_path)
        store.begin(folder, quick=True)
        assert files(tmp_path) == before
        (tmp_path / "reproduction.json").unlink(missing_ok=True)
        if folder != tmp_path:
            (folder / "reproduction.json").unlink()
            folder.rmdir()
            folder.parent.rmdir()


def marked(text):
    return lambda folder: (folder.mkdir(), (folder / "reproduction.json").write_text(text))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda out: out.write_text("a file"), "expected a directory, got the file"),
        (lambda out: (out.mkdir(), (out / "thesis.tex").write_text("dear")), "with other files; give another --out"),
        (marked('{"format": 2, "version": "0.0.1", "quick": false}'), "has version '0.0.1', expected"),
        (marked(f'{{"format": 9, "version": "{gosprl.__version__}", "quick": false}}'), "has format 9, expected 2"),
        (
            marked(f'{{"format": 2, "version": "{gosprl.__version__}", "quick": true}}'),
            "has quick True, expected False; give another --out, or remove",
        ),
        (marked('{"format": 2'), "cannot be read"),
        (marked("{}"), "has format None, expected 2"),
    ],
    ids=["file", "foreign", "version", "format", "quick", "broken", "empty"],
)
def test_a_directory_that_is_not_ours_is_refused(tmp_path, make, message):
    make(tmp_path / "out")
    before = files(tmp_path)
    with pytest.raises(gosprl.InputError, match="out: ") as error:
        store.begin(tmp_path / "out", quick=False)
    assert message in str(error.value)
    assert str(tmp_path / "out") in str(error.value)
    assert files(tmp_path) == before


def test_a_directory_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("a file")
    with pytest.raises(gosprl.InputError, match="cannot be used as a directory"):
        store.begin(tmp_path / "file" / "out", quick=False)


def test_tables(tmp_path):
    results = Results({("river", "gosprl"): [RUN, replace(RUN, seed=5, met=False)], ("river", "random"): []})
    store.write_csv(tmp_path / "runs.csv", store.run_rows(results))
    text = (tmp_path / "runs.csv").read_bytes().decode()
    assert text.splitlines()[0] == "case,algorithm,seed,steps,met,max_steps,watched,attempts,ended,reached,uneven"
    assert "\r" not in text
    rows = list(csv.DictReader(text.splitlines()))
    assert [(row["case"], row["algorithm"], row["seed"], row["met"], row["watched"]) for row in rows] == [
        ("river", "gosprl", "4", "True", "5"),
        ("river", "gosprl", "5", "False", "5"),
    ]
    store.write_csv(tmp_path / "mixed.csv", [{"a": 1.5}, {"b": "x, y"}])
    assert (tmp_path / "mixed.csv").read_text() == 'a,b\n1.5,\n,"x, y"\n'


def test_what_was_drawn(out):
    assert store.load_drawn(out, "fig") is None
    store.save_drawn(out, "fig", 30, ["river/random/3: ValueError"])
    assert store.load_drawn(out, "fig") == (30, ("river/random/3: ValueError",))
    (out / "fig" / "drawn.json").write_text("{}")
    with pytest.raises(gosprl.InputError, match="cannot be read"):
        store.load_drawn(out, "fig")
