"""Runs on disk that began with data: they contain all that they need to go on, to be checked and to be exported."""

import csv
import errno
import hashlib
import itertools
import json
import os
import random
import shutil
import tracemalloc
from collections import Counter

import gymnasium
import numpy as np
import pytest
from exported_logs import certificate_of, log_of, manifest_of
from forged import reseal
from kinds import Maze
from test_conformance import bits
from typer.testing import CliRunner

import gosprl
from gosprl import InputError
from gosprl.cli.app import app
from gosprl.collecting import collector as collecting
from gosprl.exchange import export
from gosprl.runs import begun, files, repair, show, verify

UNSELECTED = "that the data were not selected by their outcome, are disjoint and independent of the walk"
VOUCHED = "the data in order, disjoint and independent of the walk"


class Restorable(Maze):
    """A maze that tells its state."""

    def get_state(self):
        return {"place": list(self.place), "rng": json.dumps(self.rng.bit_generator.state)}

    def set_state(self, state):
        self.rng = np.random.default_rng()
        self.rng.bit_generator.state = json.loads(state["rng"])
        self.place = tuple(state["place"])


def doors(observation):
    """Which doors there are, by name: new names come up in new rooms."""
    return ["east", "north"] if "(0, 0, 0)" in observation else ["east", "north", "west", f"south of {observation}"]


class Doors(Restorable):
    """Its actions are known to a function only."""

    def step(self, action):
        return super().step({"east": 0, "west": 1, "north": 2}.get(action, 3))


def river():
    return gosprl.envs.make("riverswim6")


KINDS = {
    "table": (river, {}),
    "maze": (lambda: Restorable(ends=True, contexts=2), {"actions": 4}),
    "masks": (lambda: Restorable(ends=True, masks=True), {"actions": 4}),
    "anytime": (lambda: Restorable(contexts=2), {"actions": 4, "resets": "anytime", "horizon": 12}),
    "doors": (lambda: Doors(ends=True), {"actions": doors}),
}


@pytest.fixture(autouse=True)
def _often_renewed(monkeypatch):
    monkeypatch.setattr(collecting, "RENEWAL", 40)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Data of each kind as csv files, in order, from runs with another seed."""
    place, found = tmp_path_factory.mktemp("data"), {}
    for name, (make, options) in KINDS.items():
        gosprl.collect(make(), 6, seed=9, out=place / name, max_steps=70, **options)
        found[name] = place / f"{name}.csv"
        export(place / name, found[name])
    return found


def counted(model):
    """All that is counted, by observation."""
    names = [(model.states.kind(s), model.states.name(s)) for s in range(model.states.used)]
    found = Counter()
    for s, a, x, n in zip(*(part.tolist() for part in model.transitions()), strict=True):
        found[names[s], str(model.actions[a]), names[x]] += n
    return found


@pytest.mark.parametrize("order", ["collected", "unknown"])
@pytest.mark.parametrize("name", KINDS)
def test_in_pieces_and_without_the_file_it_is_the_run_that_was_never_interrupted(name, order, tables, tmp_path):
    make, options = KINDS[name]
    file = shutil.copy(tables[name], tmp_path)
    asked = {"seed": 1, "data": file, "data_order": order, "max_steps": 120, **options}
    memory = gosprl.collect(make(), 12, **asked)
    whole = gosprl.collect(make(), 12, out=tmp_path / "whole", **asked)
    assert bits(whole) == bits(memory)
    for steps in (1, 30, 41, 85):
        gosprl.collect(make(), 12, **{**asked, "max_steps": steps}, out=tmp_path / "run")
    os.remove(file)
    own = {name: value for name, value in options.items() if name == "actions" and callable(value)}
    system = {} if name == "table" else {"system": make()}
    assert bits(gosprl.resume(tmp_path / "run", max_steps=120, **system, **own)) == bits(whole)
    assert (tmp_path / "run" / "log" / "000001.arrow").exists()
    for directory in ("whole", "run"):
        found = verify(tmp_path / directory, **({"system": make(), **own} if own else {}))
        assert found.ok, found
    assert manifest_of(tmp_path / "run")["continued"][-1]["how"] == "exact"


@pytest.fixture
def kept(tables, tmp_path):
    """A run of a maze in a directory, that began with a csv file; and its result."""
    make, options = KINDS["maze"]
    asked = {"seed": 1, "data": tables["maze"], "data_order": "collected", "max_steps": 90, **options}
    return tmp_path / "run", gosprl.collect(make(), 12, out=tmp_path / "run", **asked), asked


def test_manifest_certificate_and_show_name_the_data(kept, tables):
    run, result, _ = kept
    (source,), data = manifest_of(run)["data"]["sources"], manifest_of(run)["data"]
    assert (source["name"], source["kind"], source["samples"]) == (str(tables["maze"]), "csv", data["samples"])
    assert source["digest"] == hashlib.sha256(tables["maze"].read_bytes()).hexdigest()
    certificate = certificate_of(run)
    assert certificate["data"] == {"samples": 70, "order": "collected", "counts": data["counts"]}
    assert np.sum(certificate["counts"]) == 70 + certificate["steps"] == result.counts.sum()
    assert f"given {VOUCHED}" in certificate["guarantee"]
    assert certificate["need"]["pairs"] == result.need[0].tolist()
    assert (result.need[0][result.need[0] > 0] == 12).all()
    text = f"70 samples of {tables['maze']} (csv), in the order collected"
    assert text in repr(show(run))
    assert any(check.name == "data" and text in check.text for check in verify(run).checks)
    assert show(run).facts["progress"]["missing"] == result.missing


def test_equal_data_go_on_and_other_data_are_refused(kept, tables, tmp_path):
    run, result, asked = kept
    make, _ = KINDS["maze"]
    export(tables["maze"].with_suffix(""), tmp_path / "same.parquet")
    again = gosprl.collect(make(), 12, out=run, **{**asked, "data": tmp_path / "same.parquet"})
    assert bits(again) == bits(result)
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    lines = tables["maze"].read_text().splitlines()
    (tmp_path / "less.csv").write_text("\n".join(lines[:-5]) + "\n")
    there = r"began with other data: 70 samples of .*maze.csv \(csv\), in the order collected, counts \w{8} there, "
    for other, here in (
        ({"data": tmp_path / "less.csv"}, r"\d\d samples of .*less.csv"),
        ({"data_order": "unknown"}, r"70 samples of .*maze.csv \(csv\), their order is unknown"),
        ({"data": None, "data_order": None}, "none here; give another directory"),
    ):
        with pytest.raises(InputError, match=there + here):
            gosprl.collect(make(), 12, out=run, **{**asked, **other})
    gosprl.collect(river(), 1, seed=0, out=tmp_path / "without")
    with pytest.raises(InputError, match="other data: none there, 1 samples of the arrays"):
        gosprl.collect(river(), 1, seed=0, out=tmp_path / "without", data=([0], [0], [0]), data_order="collected")
    assert before == {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}


def test_more_may_be_needed_later(kept):
    run, result, _ = kept
    more = gosprl.resume(run, system=KINDS["maze"][0](), need=15, max_steps=140)
    assert more.counts.sum() == 70 + 140
    assert (more.counts[: len(result.counts)] >= result.counts).all()
    assert verify(run).ok


def test_damage_of_the_data_is_located_and_repaired(kept, tmp_path):
    run, result, _ = kept
    file, rng = run / "data.json", random.Random(0)
    data = file.read_bytes()
    for _ in range(12):
        place = rng.randrange(len(data))
        for damaged in (data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :], data[:place]):
            file.write_bytes(damaged)
            found = verify(run)
            assert any(
                check.name == "data" and "data.json" in check.text for check in found.checks if check.ok is False
            )
    with pytest.raises(InputError, match=r"is damaged: data\.json"):
        gosprl.resume(run, system=KINDS["maze"][0]())
    assert any("data.json" in problem for problem in show(run).problems)
    repaired = repair(run, tmp_path / "without")
    assert repaired.complete
    assert any("data that the run began with are left out, 70 samples" in note for note in repaired.notes)
    assert "data" not in manifest_of(tmp_path / "without")
    with pytest.warns(UserWarning, match="all samples are kept, and planning begins anew"):
        less = gosprl.resume(tmp_path / "without", system=KINDS["maze"][0](), max_steps=100)
    assert less.counts.sum() == 100
    file.unlink()
    assert any("data.json: is missing" in check.text for check in verify(run).checks if check.ok is False)
    file.write_bytes(data)
    assert verify(run).ok
    repair(run, tmp_path / "with")
    assert bits(gosprl.resume(tmp_path / "with", system=KINDS["maze"][0](), max_steps=90)) == bits(result)


FORGED = {
    "expected whole numbers": lambda data: data["count"].__setitem__(0, 1.0),
    "expected the sums of the counts": lambda data: data["count"].__setitem__(0, data["count"][0] + 1),
    "next_state: expected numbers in": lambda data: data["next_state"].__setitem__(0, 10**9),
    "discovered: expected numbers": lambda data: data["discovered"].append(10**12),
    "expected finite numbers": lambda data: data["rewards"].__setitem__(0, 10**400),
    "first: expected visits": lambda data: data["first"].__setitem__(0, 10**6),
    "guarantees do not say so": lambda data: data.__setitem__("given", []),
    "has 71 samples; the manifest says 70": lambda data: (
        data["visits"].__setitem__(-1, data["visits"][-1] + 1),
        data["count"].__setitem__(-1, data["count"][-1] + 1),
    ),
    "ended: expected true or false": lambda data: data.__setitem__("ended", 1),
    "expected the fields": lambda data: data.__setitem__("code", "print()"),
    "actions, room: expected where": lambda data: data.__setitem__("room", 2**40),
    "not the text of a key": lambda data: data["states"][-1].__setitem__(1, '{"pickle": "gASV"}'),
    "states: expected a kind": lambda data: data["states"].append(["exec", "0"]),
    "expected each pair once": lambda data: [
        data[name].append(data[name][0]) for name in ("state", "action", "visits", "rewards", "squares")
    ],
}


@pytest.mark.parametrize("what", FORGED)
def test_data_of_a_stranger_are_checked(what, kept):
    """Edited, with digests that are right again: the error says what cannot be."""
    run, _, _ = kept
    reseal(run / "data.json", FORGED[what])
    assert any("its digest differs" in check.text for check in verify(run).checks if check.ok is False)
    digest = json.loads((run / "data.json").read_bytes())["digest"]
    reseal(run / "manifest.json", lambda manifest: manifest["data"].__setitem__("counts", digest))
    assert any(f"{what}" in check.text for check in verify(run).checks if check.ok is False), verify(run)


def test_data_that_could_be_but_are_not_those_of_the_run_confirm_nothing(kept):
    run, _, _ = kept
    reseal(run / "data.json", lambda data: data["rewards"].__setitem__(0, 0.125))
    digest = json.loads((run / "data.json").read_bytes())["digest"]
    reseal(run / "manifest.json", lambda manifest: manifest["data"].__setitem__("counts", digest))
    found = verify(run)
    assert any(check.name == "counts" and "'counts'" in check.text for check in found.checks if check.ok is False)


def test_data_that_were_kept_by_an_earlier_version(kept):
    """They have the number of resets that began another trajectory; the others followed an ending that was seen."""
    run, _, asked = kept

    def older(data):
        assert data.pop("ended") is True
        data["restarts"] = 0

    reseal(run / "data.json", older)
    digest = json.loads((run / "data.json").read_bytes())["digest"]
    reseal(run / "manifest.json", lambda manifest: manifest["data"].__setitem__("counts", digest))
    reseal(run / "certificate.json", lambda certificate: certificate["data"].__setitem__("counts", digest))
    assert verify(run).ok, verify(run)
    more = gosprl.resume(run, system=Restorable(ends=True, contexts=2), max_steps=120)
    asked = {**asked, "max_steps": 120}
    assert bits(more) == bits(gosprl.collect(Restorable(ends=True, contexts=2), 12, **asked))


def test_a_claim_of_many_states_allocates_nothing(tmp_path):
    data = {"data": ([0, 0], [1, 1], [0, 1]), "data_order": "collected"}
    lake = gymnasium.make("FrozenLake-v1")
    gosprl.collect(lake, 3, seed=0, out=tmp_path / "run", max_steps=20, **data)
    reseal(tmp_path / "run" / "manifest.json", lambda manifest: manifest["system"].__setitem__("states", 2**31))
    tracemalloc.start()
    assert not verify(tmp_path / "run").ok
    assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    tracemalloc.stop()


@pytest.mark.parametrize("entry", [{"order": "sorted"}, {"samples": -1}, {"counts": "0"}, {"sources": [{}]}])
def test_a_manifest_that_says_something_else_of_data(entry, kept):
    run, _, _ = kept
    reseal(run / "manifest.json", lambda manifest: manifest["data"].update(entry))
    first = verify(run).checks[0]
    assert (first.name, first.ok) == ("manifest", False)


def test_exports_have_the_transitions_walked_and_the_counts_of_all(kept, tmp_path):
    run, result, _ = kept
    export(run, tmp_path / "run.npz")
    found = np.load(tmp_path / "run.npz")
    assert int((~found["reset"]).sum()) == result.steps == 90
    np.testing.assert_array_equal(found["action"], log_of(run)["action"])
    np.testing.assert_array_equal(found["counts"], result.counts)
    assert found["counts"].sum() == 70 + 90
    assert json.loads(str(found["metadata"]))["data"] == manifest_of(run)["data"]
    export(run, tmp_path / "model.drn")
    assert f"given {VOUCHED}" in (tmp_path / "model.drn").read_text()
    export(run, tmp_path / "model.csv", table="model")
    with (tmp_path / "model.csv").open() as file:
        assert sum(int(row["count"]) for row in csv.DictReader(file) if row["reset"] == "false") == 70 + 90


def test_a_run_with_data_is_data(kept, tmp_path):
    """Its own data count, too, and so does what was taken for granted of them."""
    run, result, _ = kept
    make, options = KINDS["maze"]
    again = gosprl.collect(make(), 12, seed=1, data=run, max_steps=1, **options)
    assert again.counts.sum() == 70 + 90 + 1
    assert f"given {VOUCHED}" in str(again.guarantee)
    gosprl.collect(make(), 6, seed=8, out=tmp_path / "other", max_steps=70, **options)
    export(tmp_path / "other", tmp_path / "other.csv")
    data = [run, tmp_path / "other.csv"]
    both = gosprl.collect(make(), 1, seed=1, data=data, data_order="unknown", max_steps=1, **options)
    assert both.counts.sum() == 70 + 90 + 70 + 1
    assert UNSELECTED in str(both.guarantee)
    assert not counted(result.model) - counted(again.model)


@pytest.mark.parametrize("order", [None, "collected"])
def test_runs_prove_their_order_also_if_it_is_said(order, tables, tmp_path):
    make, options = KINDS["maze"]
    data = {"data": tables["maze"].with_suffix(""), "data_order": order}
    result = gosprl.collect(make(), 12, seed=1, max_steps=20, out=tmp_path / "run", **data, **options)
    (source,) = manifest_of(tmp_path / "run")["data"]["sources"]
    assert source["digest"] == certificate_of(tables["maze"].with_suffix(""))["log"]
    assert (source["kind"], manifest_of(tmp_path / "run")["data"]["order"]) == ("run", None)
    assert "the data" not in str(result.guarantee)
    assert verify(tmp_path / "run").ok


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_whatever_fails_when_it_begins_no_run_is_without_its_data(call, tmp_path, monkeypatch):
    """The n-th call of the disk fails, for every n before the first step is acknowledged; then everything is there."""
    data = {"data": ([0, 0], [1, 1], [0, 1]), "data_order": "collected"}
    expected = gosprl.collect(river(), 3, seed=0, **data)
    plain = getattr(files.disk, call)
    for n in range(6):
        made, run = itertools.count(), tmp_path / f"{call} {n}"

        def fails(*given, made=made, n=n, **at):
            if next(made) == n:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return plain(*given, **at)

        with monkeypatch.context() as patched:
            patched.setattr(files.disk, call, fails)
            try:
                gosprl.collect(river(), 3, seed=0, out=run, **data)
            except gosprl.GosprlError:
                if (run / "manifest.json").exists():
                    assert (run / "data.json").exists()
        assert bits(gosprl.collect(river(), 3, seed=0, out=run, **data)) == bits(expected)
        assert verify(run).ok


def test_data_are_on_the_disk_before_the_manifest_and_the_manifest_before_the_log(tmp_path, monkeypatch):
    order, plain = [], files.disk.replace

    def noted(source, target, **at):
        order.append(os.path.basename(target))
        plain(source, target, **at)

    monkeypatch.setattr(files.disk, "replace", noted)
    gosprl.collect(river(), 3, seed=0, out=tmp_path / "run", data=([0], [0], [0]), data_order="collected")
    assert order[:2] == ["data.json", "manifest.json"]


def test_a_beginning_without_data_forgets_those_of_one_that_failed(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "data.json").write_text("{}")
    gosprl.collect(river(), 3, seed=0, out=tmp_path / "run")
    assert not (tmp_path / "run" / "data.json").exists()
    assert verify(tmp_path / "run").ok


def test_too_many_different_transitions_are_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(begun, "MOST_KEPT", 1)
    data = {"data": ([0, 0], [1, 1], [0, 1]), "data_order": "collected"}
    with pytest.raises(InputError, match=r"data, out: expected data of at most 1 different transitions .* got 2"):
        gosprl.collect(river(), 3, out=tmp_path / "run", **data)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("estimate_model", {"eta": 0.7, "norm": "max"}),
        ("estimate_rewards", {"epsilon": 0.4}),
        ("find_treasure", {"need": 5}),
    ],
)
def test_applications(name, arguments, tmp_path):
    application = getattr(gosprl.applications, name)
    s, a = np.repeat(np.arange(6), 2), np.tile([0, 1], 6)
    arguments = {**arguments, "seed": 0, "data": (s, a, np.maximum(s - 1, 0)), "data_order": "unknown"}
    whole = application(river(), **arguments)
    application(river(), **arguments, max_steps=20, out=tmp_path / "run")
    resumed = gosprl.resume(tmp_path / "run")
    assert bits(resumed.collected) == bits(whole.collected)
    assert UNSELECTED in resumed.guarantee.given
    assert verify(tmp_path / "run").ok


def test_the_command_line(tmp_path):
    invoke = CliRunner().invoke
    (tmp_path / "data.csv").write_text("state,action,next_state\n0,0,0\n0,1,1\n")
    data = ["--data", str(tmp_path / "data.csv"), "--data-order", "collected"]
    words = ["collect", "riverswim6", "--need", "3", "--seed", "0", "--out", str(tmp_path / "run")]
    assert invoke(app, [*words, *data, "--max-steps", "5"]).exit_code == 1
    refused = invoke(app, words)
    assert refused.exit_code == 2
    assert "other data" in " ".join(refused.output.split())
    (tmp_path / "data.csv").unlink()
    assert invoke(app, ["resume", str(tmp_path / "run")]).exit_code == 0
    assert invoke(app, ["verify", str(tmp_path / "run")]).exit_code == 0
    assert "2 samples of" in " ".join(invoke(app, ["show", str(tmp_path / "run")]).output.split())
    answer = ["estimate-model", "riverswim6", "--eta", "0.9", "--norm", "max", "--seed", "0"]
    (tmp_path / "data.csv").write_text("state,action,next_state\n0,0,0\n0,1,1\n")
    assert invoke(app, [*answer, *data, "--out", str(tmp_path / "answer")]).exit_code == 0
    assert invoke(app, ["verify", str(tmp_path / "answer")]).exit_code == 0
