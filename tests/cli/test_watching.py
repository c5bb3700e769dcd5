"""`gosprl watch`: what it prints, and how it ends."""

import json

import pytest
from typer.testing import CliRunner

import gosprl
from gosprl.cli import watching
from gosprl.cli.app import app


@pytest.fixture(autouse=True)
def _same_priority(monkeypatch):
    monkeypatch.setattr(watching, "POLITE", 0)


def run(*arguments):
    return CliRunner().invoke(app, ["watch", *map(str, arguments)])


def test_a_finished_run(tmp_path):
    gosprl.collect("riverswim6", 3, seed=0, out=tmp_path)
    done = run(tmp_path)
    assert done.exit_code == 0, done.output
    assert "100.0% of the 6 states known" in done.stdout
    assert "finished: met" in done.stdout


def test_a_run_that_stopped_before(tmp_path):
    gosprl.collect("riverswim20", 3, seed=0, max_steps=50, out=tmp_path)
    done = run(tmp_path, "--json")
    assert done.exit_code == 1
    [facts] = map(json.loads, done.stdout.splitlines())
    assert (facts["stop"], facts["steps"]) == ("max_steps", 50)
    assert run(tmp_path, "--once").exit_code == 0


def test_no_run_and_a_damaged_one(tmp_path):
    assert run(tmp_path).exit_code == 2
    gosprl.collect("riverswim6", 3, seed=0, out=tmp_path)
    chain = tmp_path / "log" / "chain"
    chain.write_bytes(b"x" + chain.read_bytes()[1:])
    done = run(tmp_path)
    assert done.exit_code == 1
    assert "log/chain, batch 1: the line is damaged" in " ".join(done.stderr.split())
