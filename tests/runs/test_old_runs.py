"""Runs on disk that were written earlier: each is confirmed as it was then, and goes on.

tests/data/runs.zip has small runs of the systems of tests/rings.py, written by version 0.2.0 in development (3ba278f).
They are never made anew: what is added goes into another file.
"""

import json
import zipfile
from pathlib import Path

import pytest
from rings import WALKED

import gosprl
from gosprl.runs import verify
from gosprl.runs.settings import versions

ARCHIVE = Path(__file__).parent.parent / "data" / "runs.zip"
PROGRAMS = Path(__file__).parents[2] / "examples" / "processes"
with zipfile.ZipFile(ARCHIVE) as _archive:
    NAMES = sorted({name.split("/")[0] for name in _archive.namelist()})
SYSTEMS = {"data of endings": "ends"}  # of those that are not called by their system
TABLES = ("application", "data", "fleet", "one, then a fleet", "table")


@pytest.fixture(params=NAMES)
def run(request, tmp_path, monkeypatch):
    """Return the directory of a run, as it was written."""
    monkeypatch.chdir(PROGRAMS)  # a program is called by its name there
    with zipfile.ZipFile(ARCHIVE) as archive:
        for name in archive.namelist():
            if name.startswith(f"{request.param}/"):
                archive.extract(name, tmp_path)
    return tmp_path / request.param


def certificate(run):
    return json.loads((run / "certificate.json").read_text())


def check(run):
    found = verify(run)
    assert not found.damaged, found
    if all(leg["versions"] == versions() for leg in json.loads((run / "manifest.json").read_text())["legs"]):
        assert found.ok, found


def given(run):
    """What `resume` needs besides the directory."""
    if run.name in TABLES:
        return {"workers": "threads:2"} if "fleet" in run.name else {}
    if run.name == "program":
        return {"system": gosprl.systems.Process(["bash", "queue.sh"])}
    return {"system": WALKED[SYSTEMS.get(run.name, run.name)].make()}


def test_confirmed(run):
    check(run)


@pytest.mark.filterwarnings("ignore:met for the")
def test_goes_on(run):
    before, log = certificate(run), (run / "log" / "chain").read_bytes()
    answer = gosprl.resume(run, **given(run))
    result = getattr(answer, "collected", answer)
    assert result.met
    assert (result.steps > before["steps"]) == (not before["met"])
    assert (run / "log" / "chain").read_bytes().startswith(log)
    check(run)


def test_all_kinds_of_runs_are_there():
    assert len(NAMES) == 16
    manifests = {}
    with zipfile.ZipFile(ARCHIVE) as archive:
        for name in NAMES:
            manifests[name] = json.loads(archive.read(f"{name}/manifest.json"))
    assert {entry["how"] for manifest in manifests.values() for entry in manifest["continued"]} >= {
        "exact",
        "new trajectory",
        "walkers reset",
    }
    assert any(len(manifest["legs"]) > 1 for manifest in manifests.values())
    assert any("data" in manifest for manifest in manifests.values())
    assert any(leg["around"]["resets"] == "anytime" for manifest in manifests.values() for leg in manifest["legs"])
