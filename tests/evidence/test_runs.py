"""Runs of the evidence are kept, and made only once."""

import evidence.runs
from evidence.runs import Finished, many
from gosprl.envs import make


def test_a_stopped_script_goes_on_after_its_last_whole_line(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence.runs, "STORE", tmp_path)
    with Finished() as finished:
        finished.add("a", (3, True))
        finished.add("b", (4, False))
    [path] = tmp_path.iterdir()
    path.write_text(path.read_text()[:-5])
    with Finished() as finished:
        assert finished.answers == {"a": [3, True]}
        finished.add("b", (5, True))
    with Finished() as finished:
        assert finished.answers == {"a": [3, True], "b": [5, True]}


def test_finished_runs_of_one_system_are_not_made_again(tmp_path, monkeypatch):
    """What a run computes of a system and keeps with it does not make the same system another one."""
    monkeypatch.setattr(evidence.runs, "STORE", tmp_path)

    def settings():
        mdp = make("room20")
        return [many(mdp, options, 1, need=1).steps.tolist() for options in ({}, {"strategy": "practical"})]

    first = settings()
    monkeypatch.setattr(evidence.runs, "ProcessPoolExecutor", None)
    assert settings() == first


def test_finished_runs_are_not_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence.runs, "STORE", tmp_path)
    first = many("riverswim6", {}, 2, need=1)
    monkeypatch.setattr(evidence.runs, "ProcessPoolExecutor", None)
    assert many("riverswim6", {}, 2, need=1).steps.tolist() == first.steps.tolist()
