"""`gosprl collect`, run as a user runs it."""

import json
import os
import re
import select
import signal
import sys
import time

import gymnasium as gym
import numpy as np
import pytest
import warmed
from notices import without_notice
from typer.testing import CliRunner

import gosprl
from gosprl.cli import shared as cli_shared
from gosprl.cli.app import app

COMMAND = [sys.executable, "-c", "from gosprl.cli import main; main()", "collect"]
RIVER = gosprl.envs.make("riverswim6")
KEYS = (
    "met",
    "steps",
    "attempts",
    "stop",
    "states",
    "pairs",
    "seed",
    "guarantee",
    "resets",
    "crashes",
    "unseen",
    "of_discovered",
)


def run(*arguments):
    return warmed.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True)


def answer(*arguments, status=0):
    """The one object that --json prints."""
    done = run(*arguments, "--json")
    assert done.returncode == status, done.stderr
    assert without_notice(done.stderr) == ""
    assert len(done.stdout.splitlines()) == 1
    return json.loads(done.stdout, parse_constant=pytest.fail)  # no NaN, no Infinity


def check(told, result):
    expected = {key: getattr(result, key) for key in KEYS} | {"guarantee": str(result.guarantee)}
    assert {key: told[key] for key in KEYS} == expected


def numbers(text):
    return [int(number) for number in re.findall(r"\d+", text.replace(",", ""))]


def heat_map(text):
    return numbers(text.split("visits\n")[1].split("\n\n")[0].replace("#", " "))


def test_a_domain_as_json():
    result = gosprl.collect(gosprl.envs.make("four_room43"), need=10, seed=0)
    told = answer("four_room43", "--need", 10, "--seed", 0)
    check(told, result)
    assert (told["met"], told["states"], told["pairs"]) == (True, 43, 172)


def test_a_gymnasium_environment_as_json():
    result = gosprl.collect(gym.make("FrozenLake-v1"), need=20, seed=0)
    told = answer("FrozenLake-v1", "--need", 20, "--seed", 0)
    check(told, result)
    assert (told["met"], told["states"], told["pairs"], told["of_discovered"]) == (True, 11, 44, True)
    assert told["guarantee"] == "delta=0.1, of the states discovered"


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (
            ["--strategy", "gosprl", "--confidence", "bernstein", "--scale", "0.1"],
            {"strategy": "gosprl", "confidence": "bernstein", "scale": 0.1},
        ),
        (
            ["--strategy", "maxent", "--confidence", "bernstein", "--scale", "0.1", "--linear-scale", "0.01"],
            {"strategy": "maxent", "confidence": "bernstein", "scale": 0.1, "linear_scale": 0.01},
        ),
        (
            ["--strategy", "gosprl", "--delta", "0.01", "--goals", "least-sampled", "--planning", "full"],
            {"strategy": "gosprl", "delta": 0.01, "goals": "least-sampled", "planning": "full"},
        ),
        (["--confidence", "bernstein", "--delta", "0.01"], {"confidence": "bernstein", "delta": 0.01}),
        (["--strategy", "practical", "--scale", "0.1"], {"strategy": "practical", "scale": 0.1}),
        (["--strategy", "random"], {"strategy": "random"}),
        (["--known"], {"dynamics": RIVER}),
        (["--known", "--strategy", "gosprl"], {"dynamics": RIVER, "strategy": "gosprl"}),
        (["--known", "--strategy", "practical"], {"dynamics": RIVER, "strategy": "practical"}),
    ],
)
def test_options_are_those_of_the_library(arguments, options):
    told = answer("riverswim6", "--need", 5, "--seed", 3, *arguments)
    check(told, gosprl.collect(gosprl.envs.make("riverswim6"), need=5, seed=3, **options))


@pytest.mark.parametrize("strategy", ["guarded", "gosprl", "practical"])
def test_known_dynamics_are_said_so(strategy):
    told = answer("riverswim6", "--need", 5, "--seed", 0, "--known", "--strategy", strategy)
    assert (told["met"], told["guarantee"]) == (True, "known dynamics")


few = pytest.mark.filterwarnings("ignore:met for the .* states discovered")  # a command says it in its own words


@few
def test_parameters_of_the_environment():
    told = answer("riverswim", "--set", "states=9", "--need", 2, "--seed", 1)
    check(told, gosprl.collect(gosprl.envs.make("riverswim", states=9), need=2, seed=1))
    assert (told["states"], told["pairs"]) == (9, 18)
    told = answer("FrozenLake-v1", "--set", "is_slippery=false", "--set", "map_name=8x8", "--need", 2, "--seed", 1)
    check(told, gosprl.collect(gym.make("FrozenLake-v1", is_slippery=False, map_name="8x8"), need=2, seed=1))
    assert told["states"] == 53


@pytest.mark.parametrize("need", [np.arange(12).reshape(6, 2), np.arange(6)], ids=["pairs", "states"])
def test_need_from_a_file(tmp_path, need):
    np.save(tmp_path / "need.npy", need)
    told = answer("riverswim6", "--need", tmp_path / "need.npy", "--seed", 0)
    check(told, gosprl.collect(gosprl.envs.make("riverswim6"), need=need, seed=0))
    assert (told["states"], told["pairs"]) == ((6, 11) if need.ndim == 2 else (5, 0))


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--unseen", "0.3"], {"unseen": 0.3}),
        (["--resets", "anytime", "--reset-cost", "2.5"], {"resets": "anytime", "reset_cost": 2.5}),
        (["--horizon", "7"], {"horizon": 7}),
    ],
)
@few
def test_what_an_environment_is_like(arguments, options):
    told = answer("FrozenLake-v1", "--need", 5, "--seed", 0, *arguments)
    check(told, gosprl.collect(gym.make("FrozenLake-v1"), need=5, seed=0, **options))
    if "unseen" in options:
        assert told["unseen"] <= 0.3


def test_states_that_are_discovered():
    """What may have been missed is said where "met" is; no warning repeats it."""
    result = gosprl.collect(gym.make("Blackjack-v1"), need=5, seed=0, max_steps=2000, max_states=704)
    arguments = ["Blackjack-v1", "--need", 5, "--seed", 0, "--max-steps", 2000, "--max-states", 704]
    check(answer(*arguments, status=1), result)
    done = run(*arguments)
    said = " ".join(done.stdout.split())
    assert f"met no: for the {result.states} states discovered, {result.pairs} pairs" in said
    assert "unseen a pair visited may have next states never seen, of probability <=" in said
    done = run("FrozenLake-v1", "--need", 1, "--seed", 0)
    assert done.returncode == 0
    assert without_notice(done.stderr) == ""
    assert re.search(r"met +yes: for the \d+ states discovered", done.stdout)


def test_more_states_than_declared_exit_with_1_and_show_what_was_collected():
    done = run("Blackjack-v1", "--need", 5, "--seed", 0, "--max-states", 20, "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["stop"], told["states"]) == (1, "failed", 20)
    assert "max_states: expected at most 20 observations" in done.stderr


class Fussy(gym.Env):
    """Refuses its input after some steps."""

    observation_space, action_space = gym.spaces.Discrete(2), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.made = 0
        return 0, {}

    def step(self, action):
        self.made += 1
        if self.made > 3:
            raise gosprl.InputError("power: expected more of it")
        return int(action), 0.0, False, False, {}


def test_an_input_error_on_the_way_exits_with_2(monkeypatch):
    """As the verbs of the applications do."""
    monkeypatch.setattr(cli_shared, "environment", lambda name, settings: Fussy())
    done = CliRunner().invoke(app, ["collect", "x", "--need", "9", "--seed", "0", "--json"])
    assert done.exit_code == 2
    assert "power: expected more of it" in done.stderr
    assert (json.loads(done.stdout)["stop"], json.loads(done.stdout)["steps"]) == ("failed", 3)


def test_nothing_needed():
    told = answer("riverswim6", "--need", 0)
    assert (told["met"], told["steps"], told["seed"]) == (True, 0, None)


def test_stopped_unmet_exits_with_1():
    told = answer("four_room43", "--need", 10, "--max-steps", 50, "--seed", 0, status=1)
    assert (told["met"], told["stop"], told["steps"]) == (False, "max_steps", 50)
    done = run("FrozenLake-v1", "--need", 10, "--max-steps", 50, "--seed", 0)
    assert done.returncode == 1
    assert "max_steps" in done.stdout
    result = gosprl.collect(gym.make("FrozenLake-v1"), need=10, max_steps=50, seed=0)
    missing = int((result.unmet["needed"] - result.unmet["have"]).sum())
    assert re.search(rf"missing +{missing} samples", done.stdout)


@pytest.mark.parametrize("strategy", ["guarded", "gosprl", "practical"])
def test_given_up_exits_with_1(strategy):
    """After some samples, most states are more than 1.5 steps away even in optimistic models."""
    told = answer("riverswim6", "--need", 50, "--reach", 1.5, "--seed", 0, "--strategy", strategy, status=1)
    assert (told["met"], told["stop"]) == (False, "unreachable")
    check(told, gosprl.collect(RIVER, need=50, reach=1.5, seed=0, strategy=strategy))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "ENV"),
        (["nowhere"], "'nowhere'.*corridor24.*four_room43.*riverswim.*wheel"),
        (
            ["riverswim6", "--need", "many"],
            "need: expected a whole number or an .npy, .csv or .parquet file, got 'many'",
        ),
        (["riverswim6", "--need", "[/b]3"], r"need: .* got '\[/b\]3'"),
        (["riverswim6", "--need", "-1"], "need: .*>= 0, got -1"),
        (["riverswim6", "--need", "absent.npy"], "need: absent.npy"),
        (["riverswim", "--set", "states"], "set: expected KEY=VALUE, got 'states'"),
        (["riverswim", "--set", "length=6"], "length: .*states"),
        (["riverswim", "--set", "states=few"], "states: .*'few'"),
        (["FrozenLake-v1", "--set", "length=6"], "length"),
        (["FrozenLake-v1", "--set", "map_name=9x9"], "9x9"),
        (
            ["riverswim6", "--strategy", "best"],
            "strategy: 'best'.*gosprl, guarded, maxent, min_frequency, practical, random, .*zero_ucrl",
        ),
        (["riverswim6", "--confidence", "none"], "confidence: 'none'.*bernstein, kl"),
        (
            ["riverswim6", "--strategy", "gosprl", "--goals", "near"],
            "goals: 'near'.*all, all-always, easiest, least-sampled, random",
        ),
        (["riverswim6", "--goals", "all"], "goals: not an option of strategy 'guarded'.*goals is an option of gosprl"),
        (
            ["riverswim6", "--scale", "0.1"],
            "scale: not an option of strategy 'guarded'.*an option of gosprl, practical,",
        ),
        (
            ["riverswim6", "--strategy", "random", "--delta", "0.2"],
            "delta: not an option of strategy 'random', which takes no options; delta is an option of guarded, gosprl, "
            ".*: choose one with strategy=",
        ),
        (
            ["riverswim6", "--strategy", "random", "--reach", "5"],
            "reach: .* is an option of guarded, gosprl, practical: ",
        ),
        (
            ["riverswim6", "--strategy", "zero_ucrl", "--known"],
            "dynamics: .* an option of guarded, gosprl, practical: ",
        ),
        (["riverswim6", "--max-steps", "0"], "max_steps: "),
        (["riverswim6", "--seed", "-1"], "seed: "),
        (["FrozenLake-v1", "--known"], "known: "),
        (["riverswim6", "--known", "--confidence", "kl"], "known, confidence: known dynamics need no confidence sets"),
        (["riverswim6", "--known", "--confidence", "bernstein"], "known, confidence: "),
        (["FrozenLake-v1", "--compare"], "compare: expected one of our domains"),
        (["FrozenLake-v1", "--resets", "always"], "resets: 'always' is not known; known are anytime, never, terminal"),
        (["FrozenLake-v1", "--reset-cost", "0"], "reset_cost: expected a positive"),
        (["FrozenLake-v1", "--horizon", "0"], "horizon: expected a whole number >= 1"),
        (["FrozenLake-v1", "--unseen", "1"], "unseen: expected a number strictly between 0 and 1"),
        (["FrozenLake-v1", "--max-states", "9"], "max_states: expected None where the number of states is known"),
        (["riverswim6", "--resets", "anytime"], "resets: expected None or 'never' for a TabularMDP"),
        (["riverswim6", "--horizon", "5"], "horizon: expected None for a TabularMDP"),
        (["CartPole-v1"], "observation_space: expected finitely many.*Box.*gymnasium.wrappers"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_exits_with_2_and_says_why(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2, done.stderr
    assert re.search(message, " ".join(done.stderr.split()), re.IGNORECASE)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("need", [np.ones((2, 6), dtype=int), np.full(6, 0.5)], ids=["shape", "halves"])
def test_a_file_that_is_no_need_exits_with_2(tmp_path, need):
    np.save(tmp_path / "need.npy", need)
    done = run("riverswim6", "--need", tmp_path / "need.npy")
    assert done.returncode == 2
    assert "need: expected" in " ".join(done.stderr.split())


def test_a_file_that_is_no_array_exits_with_2(tmp_path):
    (tmp_path / "need.npy").write_text("10")
    done = run("riverswim6", "--need", tmp_path / "need.npy")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_map_shows_every_visit():
    result = gosprl.collect(gosprl.envs.make("four_room43"), need=3, seed=0)
    done = run("four_room43", "--need", 3, "--seed", 0)
    assert done.returncode == 0
    assert without_notice(done.stderr) == ""
    assert heat_map(done.stdout) == result.counts.sum(axis=1).tolist()
    assert sum(heat_map(done.stdout)) == result.steps
    assert re.search(rf"met +yes: 43 states, 172 pairs +\n.*\n  steps +{result.steps:,} ", done.stdout)
    assert "delta=0.1" in done.stdout


def test_compare_shows_the_fluid_limit(reference_domains):
    mdp, limit = gosprl.envs.make("riverswim6"), reference_domains["riverswim6"]["fluid_b10"]
    done = run("riverswim6", "--need", 10, "--seed", 0, "--compare")
    assert done.returncode == 0
    steps = [gosprl.collect(mdp, need=10, seed=0, strategy=name).steps for name in ("guarded", "random")]
    for name, number in zip(("fluid limit: ", "this run ", "random walk "), (limit, *steps), strict=True):
        line = next(line for line in done.stdout.splitlines() if line.strip().startswith(name))
        assert line.split()[-2:] == [f"{number:,.0f}", f"{number / limit:.2f}"]


@pytest.mark.parametrize(
    "arguments",
    [["four_room43", "--need", "1000000000"], ["FrozenLake-v1", "--need", "10000000", "--json"]],
    ids=lambda arguments: arguments[0],
)
def test_ctrl_c_prints_what_was_collected_and_exits_with_130(arguments):
    """A long run in a terminal gets SIGINT once it shows steps."""
    gosprl.collect(gosprl.envs.make("riverswim6"), need=1)  # compiles, if that has still to be done
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # also in the background
    command = [*COMMAND[:2], heard + COMMAND[2], *COMMAND[3:], *arguments, "--seed", "0"]
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
        out, _ = process.communicate(timeout=600)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert process.returncode == 130
    if "--json" in arguments:
        told = json.loads(out)
        assert (told["met"], told["stop"]) == (False, "interrupted")
        assert told["steps"] > 0
    else:
        assert "interrupted" in out
        steps = numbers(re.search(r"steps +([\d,]+)", out)[1])[0]
        assert sum(heat_map(out)) == steps > 0


@pytest.mark.parametrize("command", [[], ["collect"]])
def test_help_shows_an_example(command):
    done = warmed.run([*COMMAND[:3], *command, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    assert "gosprl collect four_room43 --need 10 --seed 0" in said
    assert not command or "gosprl collect FrozenLake-v1 --need 20 --seed 0 --json" in said
