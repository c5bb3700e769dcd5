"""The verbs of the applications: answers saved to files."""

import re

import numpy as np
import pytest
from application_verbs import CASES, RIVER, RIVER3, contents, refused, run

import gosprl
from gosprl import applications


@pytest.mark.parametrize("case", CASES)
def test_saved_arrays_are_the_answer(tmp_path, case):
    arguments, call = CASES[case]
    done = run(case.split()[0], *RIVER3, "--seed", 0, *arguments, "--save", tmp_path / "answer.npz")
    assert done.exit_code == 0, done.stderr
    expected = {name: value for name, value in contents(call(RIVER)).items() if value is not None}
    with np.load(tmp_path / "answer.npz", allow_pickle=False) as saved:
        assert {*saved} == {"env", *expected}
        for name, value in expected.items():
            np.testing.assert_array_equal(saved[name], np.array(value), name)


def test_a_saved_model_can_be_taken_up_again(tmp_path):
    """Its error is at most the saved eta; this may fail with probability delta = 0.1, but not for this seed."""
    assert run("estimate-model", *RIVER3, "--eta", 0.5, "--seed", 0, "--save", tmp_path / "m.npz").exit_code == 0
    with np.load(tmp_path / "m.npz") as saved:
        model = gosprl.EmpiricalModel.from_counts(
            saved["s"], saved["a"], saved["s_next"], saved["count"], states=3, actions=2
        )
        assert np.all(np.abs(model.dense() - RIVER.dense()).sum(axis=2) <= saved["eta"])


def test_a_file_is_overwritten_only_if_that_is_said(tmp_path, no_walk):
    file = tmp_path / "there.npz"
    file.write_text("precious")
    message = refused("estimate-rewards", *RIVER3, "--epsilon", 0.5, "--save", file)
    assert re.search(r"save: .*there.npz exists; .*--force", message)
    assert file.read_text() == "precious"


def test_force_overwrites(tmp_path):
    file = tmp_path / "there.npz"
    file.write_text("precious")
    assert run("estimate-rewards", *RIVER3, "--epsilon", 0.5, "--save", file, "--force").exit_code == 0
    with np.load(file) as saved:
        assert saved["rewards"].shape == (3, 2)


@pytest.mark.parametrize(
    ("name", "message"),
    [("absent/x.npz", "save: .*x.npz cannot be written"), ("x.npy", "save: expected the name of an .npz file, got")],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_run(tmp_path, no_walk, name, message):
    said = refused("estimate-rewards", *RIVER3, "--epsilon", 0.5, "--save", tmp_path / name, "--force")
    assert re.search(message, said)


def test_a_file_that_appears_meanwhile_is_kept(tmp_path, monkeypatch):
    file, estimate = tmp_path / "there.npz", applications.estimate_rewards

    def slow(*arguments, **options):
        file.write_text("precious")
        return estimate(*arguments, **options)

    monkeypatch.setattr(applications, "estimate_rewards", slow)
    done = run("estimate-rewards", *RIVER3, "--epsilon", 0.5, "--save", file)
    assert done.exit_code == 2
    assert "radius" in done.stdout  # the answer is not lost
    assert "save: " in done.stderr
    assert file.read_text() == "precious"
