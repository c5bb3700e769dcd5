"""export and convert on the command line."""

import json

import numpy as np
import pytest
from application_verbs import refused, run

import gosprl


@pytest.fixture(scope="module")
def river_run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "river"
    gosprl.collect(gosprl.envs.make("riverswim6"), need=2, seed=0, out=directory)
    return directory


def test_export(river_run, tmp_path):
    file = tmp_path / "a.npz"
    done = run("export", river_run, file)
    assert done.exit_code == 0, done.stderr
    assert "wrote" in done.stdout
    assert np.load(file)["counts"].min() >= 2
    assert "exists" in refused("export", river_run, file)
    done = run("export", river_run, file, "--force", "--json")
    assert json.loads(done.stdout) == {"directory": str(river_run), "file": str(file), "bytes": file.stat().st_size}


def test_export_of_a_model(river_run, tmp_path):
    assert run("export", river_run, tmp_path / "a.csv", "--table", "model").exit_code == 0
    assert (tmp_path / "a.csv").read_text().startswith('"state","action","next_state","count"')


def test_bad_arguments(river_run, tmp_path):
    assert ".parquet" in refused("export", river_run, tmp_path / "a.xyz")
    assert "minari" in refused("export", river_run, tmp_path / "a.csv", "--to", "xyz")
    assert "manifest.json" in refused("export", tmp_path, tmp_path / "a.csv")


def test_a_failure_to_write_is_no_usage_error(river_run, tmp_path, monkeypatch):
    from gosprl.exchange import exporting

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting.os, "replace", full)
    done = run("export", river_run, tmp_path / "a.csv")
    assert done.exit_code == 1
    assert "No space left" in done.stderr
    assert not list(tmp_path.iterdir())


def test_convert(river_run, tmp_path):
    assert run("export", river_run, tmp_path / "a.parquet").exit_code == 0
    done = run("convert", tmp_path / "a.parquet", tmp_path / "b.csv", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["bytes"] == (tmp_path / "b.csv").stat().st_size
    assert "exists" in refused("convert", tmp_path / "a.parquet", tmp_path / "b.csv")
    assert "gosprl export" in refused("convert", tmp_path / "a.parquet", tmp_path / "b.graphml")


def test_convert_known_dynamics(river_run, tmp_path):
    mdp = gosprl.envs.make("riverswim6")
    mdp.to_drn(tmp_path / "a.drn")
    done = run("convert", tmp_path / "a.drn", tmp_path / "b", "--to", "prism", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["bytes"] > 100
    assert run("convert", tmp_path / "b" / "model.tra", tmp_path / "c.umb").exit_code == 0
    np.testing.assert_array_equal(gosprl.TabularMDP.from_umb(tmp_path / "c.umb").prob, mdp.prob)
    assert run("export", river_run, tmp_path / "learnt.drn").exit_code == 0
    assert "gosprl export" in refused("convert", tmp_path / "learnt.drn", tmp_path / "d.umb")
    assert "known dynamics, not transitions" in refused("convert", tmp_path / "a.drn", tmp_path / "d.csv")


@pytest.mark.parametrize("verb", ["export", "convert"])
def test_help_has_an_example(verb):
    said = run(verb, "--help").stdout
    assert f"Example: gosprl {verb}" in " ".join(said.split()) or "Example" in said
    assert "--force" in said
