"""`gosprl compare`: what it prints and writes, and how it ends."""

import json

from typer.testing import CliRunner

from gosprl.cli.app import app


def run(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


SMALL = ("riverswim6", "--strategies", "guarded,random", "--need", "1", "--runs", "2", "--workers", "1")


def test_a_table_and_files(tmp_path):
    done = run(*SMALL, "--csv", tmp_path / "runs.csv", "--picture", tmp_path / "runs.png", "--max-steps", "5")
    assert done.exit_code == 0, done.output
    assert "0 of 2" in done.stdout
    assert "at least: runs were stopped before the need was met" in done.stdout
    assert (tmp_path / "runs.csv").read_text().count("\n") == 5
    assert (tmp_path / "runs.png").read_bytes().startswith(b"\x89PNG")


def test_json():
    done = run(*SMALL, "--json")
    output = json.loads(done.stdout)
    assert [(row["strategy"], row["seed"]) for row in output["runs"]] == [
        ("guarded", 0), ("guarded", 1), ("random", 0), ("random", 1)
    ]  # fmt: skip
    assert output["limit"] > 0


def test_wrong_arguments_end_before_a_run_is_made(tmp_path):
    for arguments, message in (
        (("riverswim6", "--strategies", "nonsense"), "'nonsense' is not known"),
        (("nowhere",), "is not one of our domains"),
        (("riverswim6", "--picture", tmp_path / "runs.gif"), "picture: expected a name that ends with"),
        (("riverswim6", "--need", "many"), "need: expected a whole number"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2
        assert message in " ".join(done.stderr.split())


def test_without_matplotlib_a_picture_is_refused_before_a_run_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr("gosprl.experiments.figures.find_spec", lambda name: None)
    done = run(*SMALL, "--picture", tmp_path / "runs.png", "--out", tmp_path / "runs")
    assert done.exit_code == 2
    assert "pip install 'gosprl[plot]'" in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []
