"""`gosprl probe`, run as a user runs it."""

import json
import os
import re
import select
import signal
import sys
import time
from pathlib import Path

import gymnasium
import pytest
import warmed
from notices import without_notice
from typer.testing import CliRunner

import gosprl
from gosprl.cli.app import app

COMMAND = [sys.executable, "-c", "from gosprl.cli import main; main()", "probe"]
BROKEN = [sys.executable, "-c", "import gymnasium; import evidence.probed as p; from gosprl.cli import main;"]
BROKEN[2] += (
    "gymnasium.register('Broken-v0', lambda: p.Broken()); gymnasium.register('Slow-v0', lambda: p.Slow()); main()"
)
CONTRACT = ("met", "steps", "attempts", "stop", "states", "pairs", "seed", "guarantee", "unseen")


def run(*arguments, command=COMMAND):
    return warmed.run([*command, *map(str, arguments)], capture_output=True, text=True)


def test_as_json():
    done = run("FrozenLake-v1", "--need", 3, "--seed", 0, "--json")
    assert done.returncode == 0, done.stderr
    assert without_notice(done.stderr) == ""
    told = json.loads(done.stdout, parse_constant=pytest.fail)
    found = gosprl.probe(gymnasium.make("FrozenLake-v1"), need=3, seed=0)
    for name in CONTRACT:
        assert told[name] == getattr(found, name), name
    assert told["env"] == "FrozenLake-v1"
    assert told["forecast"]["steps"] == found.forecast.steps
    assert told["aliasing"] | {"found": False} == told["aliasing"]
    assert told["endings"]["steps_to_termination"]["most"] == found.endings.steps_to_termination.most
    assert {verdict["about"] for verdict in told["verdicts"]} >= {"states", "history", "forecast"}
    assert {verdict["known"] for verdict in told["verdicts"]} <= {"seen", "proved", "estimated"}


def test_as_a_table():
    done = run("riverswim6", "--need", 5, "--seed", 0)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    steps = gosprl.collect(gosprl.envs.make("riverswim6"), 5, seed=0).steps
    assert "6 states, 2 actions, 12 pairs, all tried" in text
    assert f"collecting 5 samples of every pair: {steps:,} steps" in text
    assert "seen: in this walk." in text


def test_options_that_declare_the_system():
    done = run("FrozenLake-v1", "--need", 2, "--seed", 0, "--resets", "anytime", "--horizon", 9, "--json")
    told = json.loads(done.stdout)
    assert told["endings"]["steps_to_termination"]["most"] <= 9
    done = run("Blackjack-v1", "--max-steps", 200, "--max-states", 300, "--seed", 0, "--json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert (told["steps"], told["met"], told["stop"], told["size"]["at_most"]) == (200, False, "max_steps", 300)


def test_a_system_that_fails():
    done = run("Broken-v0", "--seed", 0, "--json", command=[*BROKEN, "probe"])
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    told = json.loads(done.stdout)
    assert told["stop"] == "failed"
    assert told["steps"] == 699
    assert "observation left its space" in told["failure"]


def test_seconds():
    done = run("Slow-v0", "--need", 10**6, "--seconds", 0.5, "--json", command=[*BROKEN, "probe"])
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert told["stop"] == "max_seconds"
    assert 0 < told["steps"] < 1000 * told["seconds"]


def test_ctrl_c():
    """A long walk in a terminal gets SIGINT once it shows steps."""
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # also in the background
    command = [*BROKEN[:2], heard + BROKEN[2], "probe", "Slow-v0", "--need", str(10**6), "--json"]
    terminal, theirs = os.openpty()
    environment = {**os.environ, "COLUMNS": "160", "TERM": "xterm"}
    process = warmed.Popen(command, stdout=warmed.PIPE, stderr=theirs, text=True, env=environment)
    try:
        os.close(theirs)
        shown, deadline = "", time.monotonic() + 6000
        while not re.search(r"[1-9][\d,]* steps, ", shown):
            assert time.monotonic() < deadline, shown
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 65536).decode(errors="replace")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(terminal)
    assert process.returncode == 130
    told = json.loads(out)
    assert told["stop"] == "interrupted"
    assert 0 < told["steps"] < 60_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "env: 'nowhere' is not one of our domains"),
        (["riverswim6", "--need", "many"], "need: expected a whole number or an .npy file"),
        (["riverswim6", "--max-steps", "0"], "max_steps: expected a whole number >= 1, got 0"),
        (["riverswim6", "--seconds", "0"], "max_seconds: expected a positive finite number, got 0.0"),
        (["CartPole-v1"], "observation_space: expected finitely many observations"),
    ],
)
def test_wrong_arguments(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""


# Programs

EXAMPLES = Path(__file__).parents[2] / "examples" / "processes"
QUEUE = f"bash {EXAMPLES / 'queue.sh'}"


def test_a_program_is_probed():
    done = CliRunner().invoke(app, ["probe", "--process", QUEUE, "--max-steps", "300", "--seed", "0", "--json"])
    told = json.loads(done.stdout)
    assert (done.exit_code, told["env"], told["states"], told["pairs"]) == (0, QUEUE, 5, 9)


def test_a_program_that_crashes_is_probed(tmp_path):
    faulty = Path(__file__).parents[2] / "evidence" / "faulty.py"
    command = f"{sys.executable} -S {faulty} exit 9 {tmp_path / 'log'}"
    done = CliRunner().invoke(app, ["probe", "--process", command, "--max-steps", "100", "--seed", "0"])
    assert done.exit_code == 0
    crashes = re.search(r"(\d+) terminations, (\d+) of them crashes of the", done.stdout)
    assert int(crashes[1]) == int(crashes[2]) == (tmp_path / "log").read_text().count("crash") > 0


def test_a_program_that_keeps_to_the_protocol():
    done = CliRunner().invoke(app, ["probe", "--process", QUEUE, "--strict"])
    assert done.exit_code == 0
    assert "keeps to the protocol" in done.stdout
    assert "violation" not in done.stdout


def test_a_program_that_does_not():
    done = CliRunner().invoke(app, ["probe", "--process", "cat", "--strict"])
    assert done.exit_code == 1
    assert "violation: line 1, answer to hello: actions: expected their number" in done.stdout
    told = json.loads(CliRunner().invoke(app, ["probe", "--process", "cat", "--strict", "--json"]).stdout)
    assert (told["conforms"], told["findings"][0]["line"]) == (False, 1)


def test_options_of_a_program_that_is_checked(tmp_path):
    done = CliRunner().invoke(app, ["probe", "--process", QUEUE, "--strict", "--timeout", "-1"])
    assert (done.exit_code, "timeout: expected a positive" in done.stderr) == (2, True)
    noisy, log = "bash -c 'echo the lens is dirty >&2'", tmp_path / "errors.txt"
    assert CliRunner().invoke(app, ["probe", "--process", noisy, "--strict", "--log", str(log)]).exit_code == 1
    assert log.read_text() == "the lens is dirty\n"


def test_what_a_terminal_cannot_show_is_escaped():
    """A lone surrogate, as Python makes them of file names that are no UTF-8."""
    code = """
from contextlib import nullcontext
from gosprl.cli import main, probe
from gosprl.systems.stepper import Stepper
class System:
    def reset(self, seed=None):
        return "\\udc80", {}
    def step(self, action):
        raise RuntimeError("in \\udc80")
probe.opened = lambda *given: nullcontext(("one", Stepper(System(), None, 1)))
main()
"""
    done = warmed.run([sys.executable, "-c", code, "probe", "one"], capture_output=True, text=True, timeout=600)
    assert (done.returncode, without_notice(done.stderr)) == (1, "")
    assert r"in \udc80" in done.stdout


@pytest.mark.parametrize(
    "arguments", [["--strict"], ["FrozenLake-v1", "--strict"], ["x", "--process", "y", "--strict"]]
)
def test_strict_is_for_programs(arguments):
    done = CliRunner().invoke(app, ["probe", *arguments])
    assert done.exit_code == 2
    assert "strict: expected a program to check" in done.stderr
