"""The command that runs a collection again does so."""

import json
import shlex

import pytest
from typer.testing import CliRunner

import gosprl
from gosprl.cli.app import app
from gosprl.report.commands import command_of


def stored(directory):
    files = (json.loads((directory / f"{name}.json").read_text()) for name in ("manifest", "certificate"))
    return command_of(*files)


@pytest.mark.parametrize(
    "asked",
    [
        "riverswim6 --need 4 --seed 3",
        "FrozenLake-v1 --need 2 --seed 1 --resets anytime --reset-cost 2.0 --delta 0.2",
        "corridor24 --need 3 --seed 0 --strategy gosprl --scale 0.1 --max-steps 200",
    ],
)
def test_the_same_command_makes_the_same_run(asked, tmp_path):
    first = CliRunner().invoke(app, ["collect", *asked.split(), "--json", "--out", str(tmp_path / "run")])
    language, line = stored(tmp_path / "run")
    assert language == "sh"
    program, verb, *words = shlex.split(line)
    assert (program, verb) == ("gosprl", "collect")
    again = CliRunner().invoke(app, ["collect", *words, "--json"])
    told, repeated = json.loads(first.stdout), json.loads(again.stdout)
    assert {**told, "env": ""} == {**repeated, "env": ""}


def test_what_a_command_line_cannot_say_is_a_call(tmp_path):
    gosprl.collect("riverswim6", [1, 2, 3, 4, 5, 6], seed=3, out=tmp_path / "array")
    assert stored(tmp_path / "array") == (
        "python",
        "gosprl.collect(gosprl.envs.make('riverswim', states=6), need=need, strategy='guarded', seed=3)",
    )
    gosprl.applications.estimate_rewards(gosprl.envs.make("riverswim6"), epsilon=0.5, seed=0, out=tmp_path / "answer")
    language, call = stored(tmp_path / "answer")
    assert language == "python"
    assert call.startswith("gosprl.applications.estimate_rewards(gosprl.envs.make('riverswim', states=6), ")
    assert "epsilon=0.5" in call
