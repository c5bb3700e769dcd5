"""`show`: the numbers are those of the result and of the files, also of a run that is damaged or goes on."""

import json
import shutil

import gymnasium
import pytest
from forged import contents, forge, table_of
from kinds import Maze

import gosprl
import gosprl.watching
from gosprl import applications
from gosprl.report.from_run import of_run
from gosprl.runs import Out, journal, show
from gosprl.runs.locks import Lock
from gosprl.systems.stepper import Stepper

RIVER = gosprl.envs.make("riverswim6")


def maze():
    return Stepper(Maze(contexts=2, ends=True), actions=4)


def collect(kind, out, **limits):
    systems = {"table": RIVER, "lake": gymnasium.make("FrozenLake-v1"), "maze": maze()}
    return gosprl.collect(systems[kind], 6, seed=0, out=Out(out, sync_steps=40), **limits)


@pytest.mark.parametrize("steps", [60, 100_000], ids=["stopped", "done"])
@pytest.mark.parametrize("kind", ["table", "lake", "maze"])
def test_numbers_are_those_of_the_result(tmp_path, kind, steps):
    result = collect(kind, tmp_path / "run", max_steps=steps)
    before = contents(tmp_path / "run")
    found = show(tmp_path / "run")
    facts, progress = found.facts, found.facts["progress"]
    assert not found.problems
    assert (facts["steps"], facts["resets"], facts["crashes"]) == (result.steps, result.resets, 0)
    assert facts["events"] == table_of(tmp_path / "run").num_rows
    assert (progress["missing"], progress["unmet"]) == (result.missing, len(result.unmet))
    assert progress["met"] == result.curve["proportion"][-1]
    assert progress["of_discovered"] == result.of_discovered
    assert facts["model"]["pairs"] == (result.counts > 0).sum()
    assert facts["model"]["transitions"] == len(result.model.transitions()[0])
    assert facts["certificate"]["stop"] == result.stop
    assert facts["disk"]["bytes"] == sum(len(data) for data, _ in before.values())
    assert contents(tmp_path / "run") == before
    json.dumps(facts, allow_nan=False)


def test_what_is_missing_is_named_by_observation(tmp_path):
    result = collect("maze", tmp_path / "run", max_steps=60)
    worst = max((result.unmet["needed"] - result.unmet["have"]).tolist())
    missing = show(tmp_path / "run").facts["missing"]
    assert missing[0]["needed"] - missing[0]["have"] == worst
    names = {result.named(s).removeprefix("state ") for s in result.unmet["state"].tolist()}
    assert {pair["state"] for pair in missing} <= names
    assert any("room (" in pair["state"] for pair in missing)


def test_a_run_that_went_on(tmp_path):
    collect("maze", tmp_path / "run", max_steps=60)
    gosprl.resume(tmp_path / "run", system=maze(), need=7)
    shown = show(tmp_path / "run")
    events = shown.facts["continued"][0]["event"]
    assert shown.facts["continued"][0]["how"] in ("new trajectory", "at an ending")
    assert [leg["first"] for leg in shown.facts["legs"]] == [0, events]
    assert f"7 samples of each discovered pair from event {events}" in repr(shown)


def test_an_application(tmp_path):
    answer = applications.estimate_rewards(RIVER, 0.4, seed=0, out=tmp_path / "run")
    facts = show(tmp_path / "run").facts
    assert facts["need"].startswith("estimate_rewards(")
    assert facts["steps"] == answer.steps
    assert "progress" not in facts  # needs of applications are computed on the way


def test_a_run_that_has_just_begun(tmp_path):
    collect("lake", tmp_path / "run")
    (tmp_path / "run/certificate.json").unlink()
    shutil.rmtree(tmp_path / "run/log")
    found = show(tmp_path / "run")
    assert not found.problems
    assert (found.facts["steps"], found.facts["progress"]["met"]) == (0, 0.0)
    assert "none: the run is unfinished" in repr(found)


def test_a_damaged_log_is_shown_up_to_the_damage(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "BACKLOG", 0)  # every sync is a batch
    collect("table", tmp_path / "run")
    whole = table_of(tmp_path / "run")
    log = tmp_path / "run/log/000001.arrow"
    data = bytearray(log.read_bytes())
    data[-200] ^= 1  # in the last batches
    log.write_bytes(data)
    found = show(tmp_path / "run")
    assert any("log/000001.arrow, batch " in problem for problem in found.problems)
    assert 0 < found.facts["steps"] < whole.num_rows
    assert found.facts["progress"]["missing"] > 0
    assert "damaged" in repr(found)


def test_a_damaged_manifest(tmp_path):
    collect("table", tmp_path / "run")
    manifest = tmp_path / "run/manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"seed": 0', b'"seed": 1'))
    found = show(tmp_path / "run")
    assert any("manifest.json" in problem for problem in found.problems)
    assert found.facts["events"] == table_of(tmp_path / "run").num_rows


def test_impossible_events_are_a_problem(tmp_path):
    collect("lake", tmp_path / "run")
    forge(tmp_path / "run", lambda columns: columns["action"].__setitem__(5, 99))
    assert any("event 5: there are 4 actions" in problem for problem in show(tmp_path / "run").problems)


def test_whether_a_process_is_writing(tmp_path):
    collect("table", tmp_path / "run")
    assert show(tmp_path / "run").facts["writer"] is False
    lock = Lock(tmp_path / "run")
    lock.acquire()
    assert show(tmp_path / "run").facts["writer"] is True
    lock.release()


def test_no_run(tmp_path):
    with pytest.raises(gosprl.InputError, match=r"expected the directory of a run, with a manifest\.json"):
        show(tmp_path)


def test_as_many_states_as_the_result_has(tmp_path):
    """The reset has a need of its own, but is no state."""
    result = gosprl.collect("FrozenLake-v1", 3, seed=0, out=tmp_path)
    assert show(tmp_path).facts["progress"]["states"] == result.states
    [look] = gosprl.watching.watch(tmp_path)
    assert look.facts["states"] == result.states


def test_the_certificate_of_another_run_is_not_shown_as_this_one_s(tmp_path):
    """As after a copy to the wrong directory: neither of another run, nor of an earlier moment of the same one."""
    mdp = gosprl.envs.make("riverswim6")
    gosprl.collect(mdp, 5, seed=0, out=tmp_path / "run")
    earlier = (tmp_path / "run/certificate.json").read_bytes()
    gosprl.resume(tmp_path / "run", need=9, max_steps=200)
    gosprl.collect(mdp, 9, seed=1, out=tmp_path / "other")
    for content in (earlier, (tmp_path / "other/certificate.json").read_bytes()):
        (tmp_path / "run/certificate.json").write_bytes(content)
        shown = show(tmp_path / "run")
        assert shown.facts["certificate"] == {"there": True, "of this log": False}
        assert any("certificate.json" in problem for problem in shown.problems)
        assert "not that of this run" in dict(shown.lines())["certificate"]
        page = of_run(tmp_path / "run")
        assert page.certificate is None
        assert page.guarantee.startswith("none")
        assert page.stop == "unfinished"
        *_, look = gosprl.watching.watch(tmp_path / "run", every=0.01)
        assert look.facts["stop"] is None
        with pytest.raises(gosprl.InputError, match=r"certificate\.json"):
            gosprl.resume(tmp_path / "run")
        with pytest.raises(gosprl.InputError, match=r"certificate\.json"):
            gosprl.exchange.export(tmp_path / "run", tmp_path / "samples.csv")
