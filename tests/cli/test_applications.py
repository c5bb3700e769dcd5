"""The verbs of the applications: the same answers as the library's, printed or as JSON; exit statuses; help."""

import inspect
import json
import os
import re
import select
import signal
import subprocess
import sys
import time

import gymnasium as gym
import numpy as np
import pytest
import warmed
from application_verbs import CASES, COMMAND, MEANS, RIVER, RIVER3, VERBS, check, json_of, run, words
from notices import without_notice

from gosprl import applications
from gosprl.cli import applications as cli_applications


@pytest.mark.parametrize("case", CASES)
def test_the_answer_of_the_library_as_json(case):
    arguments, call = CASES[case]
    told = json_of(case.split()[0], *RIVER3, "--seed", 0, *arguments)
    check(told, call(RIVER), "riverswim")


GYMNASIUM = {
    "find-treasure": (["--need", 20], lambda s: applications.find_treasure(s, 20, seed=1)),
    "estimate-model": (
        ["--eta", 0.5, "--norm", "max"],
        lambda s: applications.estimate_model(s, 0.5, norm="max", seed=1),
    ),
    "best-state": (["--budget", 200], lambda s: applications.best_state(s, 200, seed=1)),
    "estimate-rewards": (["--epsilon", 0.5], lambda s: applications.estimate_rewards(s, 0.5, seed=1)),
}


@pytest.mark.parametrize("verb", GYMNASIUM)
def test_gymnasium_environments(verb):
    arguments, call = GYMNASIUM[verb]
    told = json_of(verb, "FrozenLake-v1", "--seed", 1, *arguments)
    check(told, call(gym.make("FrozenLake-v1")), "FrozenLake-v1")


def test_states_that_are_discovered_are_shown_as_observations(tmp_path):
    """Hands of Blackjack: an index says nothing."""
    arguments = ["estimate-model", "Blackjack-v1", "--eta", 1, "--max-steps", 400, "--seed", 0]
    told = json_of(*arguments, "--max-states", 704, "--save", tmp_path / "hands.npz", status=1)
    answer = applications.estimate_model(gym.make("Blackjack-v1"), 1, max_steps=400, seed=0, max_states=704)
    states = answer.model.states
    assert told["observations"] == [None if s == states.reset else list(states[s]) for s in range(len(states))]
    assert told["final"] == states.finals
    assert told["states"] == len(told["eta"]) == answer.model.num_states
    with np.load(tmp_path / "hands.npz") as saved:
        assert [json.loads(text) for text in saved["observations"]] == told["observations"]
    printed = run(*arguments)
    lacking = states.name(int(np.unique(answer.collected.unmet["state"])[0]))
    assert f"missing samples of states {lacking}" in words(printed.stdout)
    assert "guarantee delta=0.1, of the states discovered: every" in words(printed.stdout)


def test_goals_among_states_that_are_discovered():
    """Which states there are is known only afterwards: the answer is shown, even if the goal is none."""
    arguments = ["explore-all-goals", "Blackjack-v1", "--epsilon", 9, "--c-min", 1, "--max-steps", 30, "--seed", 0]
    told = json_of(*arguments, "--goal", 3, status=1)
    assert len(told["policy"]) == told["states"]
    done = run(*arguments, "--goal", 999, "--json")
    assert done.exit_code == 2
    assert "goal: expected a state in 0.." in done.stderr
    assert json.loads(done.stdout)["steps"] == 30


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("estimate-diameter", ["--epsilon", 1, "--rule", "certified"]),
        ("explore-all-goals", ["--epsilon", 2, "--c-min", 1]),
        ("learn-policy", ["--gamma", 0.8, "--epsilon", 1]),
    ],
)
def test_all_verbs_take_gymnasium_ids(verb, arguments):
    told = json_of(verb, "gosprl/riverswim-v0", "--set", "states=2", "--seed", 0, *arguments)
    assert (told["env"], told["stop"]) == ("gosprl/riverswim-v0", "met")


def test_the_best_state(files):
    mdp = RIVER.with_rewards(MEANS, "bernoulli")
    common = [*RIVER3, "--rewards", "means.npy", "--noise", "bernoulli", "--seed", 0]
    told = json_of("best-state", *common, "--budget", 100)
    check(told, applications.best_state(mdp, 100, seed=0), "riverswim")
    assert told["budget"] == 100
    told = json_of("best-state", *common, "--delta", 0.05, "--epsilon", 0.1)
    check(told, applications.best_state(mdp, epsilon=0.1, delta=0.05, seed=0), "riverswim")
    assert told["budget"] is None
    assert told["state"] == 1


def test_rewards_of_pairs_or_states_with_noise_or_without(files):
    for name, noise in (("means", None), ("pairs", "none"), ("pairs", "bernoulli")):
        given = [] if noise is None else ["--noise", noise]
        told = json_of("estimate-rewards", *RIVER3, "--epsilon", 0.4, "--seed", 0, "--rewards", f"{name}.npy", *given)
        mdp = RIVER.with_rewards(np.load(f"{name}.npy"), noise or "none")
        check(told, applications.estimate_rewards(mdp, 0.4, seed=0), "riverswim")
    told = json_of("estimate-rewards", *RIVER3, "--epsilon", 0.4, "--seed", 0, "--noise", "bernoulli")
    own = RIVER.with_rewards([[0.005, 0], [0, 0], [0, 1]], "bernoulli")
    check(told, applications.estimate_rewards(own, 0.4, seed=0), "riverswim")


def test_the_policy_for_a_goal(files):
    explored = applications.explore_all_goals(RIVER, 2.0, c_min=0.5, seed=0)
    common = ["explore-all-goals", *RIVER3, "--epsilon", 2, "--c-min", 0.5, "--seed", 0, "--goal", 2]
    for given, costs in (([], None), (["--costs", "costs.npy"], [0.5, 1, 0.75])):
        told = json_of(*common, *given)
        assert told["goal"] == 2
        assert told["policy"] == explored.policy(2, costs).tolist()
        assert told["values"] == explored.values(2, costs).tolist()
    assert told["policy"][:2] == [1, 1]  # right is the only way up
    printed = run(*common, "--costs", "costs.npy")
    assert printed.exit_code == 0
    values = [f"{value:.4g}" for value in told["values"]]
    for state in (0, 1):
        assert f"{state} 1 {values[state]}" in words(printed.stdout)


def test_nothing_known_is_null():
    told = json_of("estimate-diameter", *RIVER3, "--epsilon", 0.1, "--max-steps", 3, "--seed", 0, status=1)
    assert told["diameter"] is None
    told = json_of("best-state", "FrozenLake-v1", "--max-steps", 20, "--seed", 0, status=1)
    assert told["rewards"][14] is None


def test_printed_for_people():
    done = run("estimate-model", *RIVER3, "--eta", 0.3, "--norm", "max", "--seed", 0)
    answer = applications.estimate_model(RIVER, 0.3, norm="max", seed=0)
    assert done.exit_code == 0
    assert without_notice(done.stderr) == ""
    shown = [*answer.lines(), ("steps", f"{answer.steps:,}"), ("stop", "met"), ("guarantee", str(answer.guarantee))]
    for name, value in shown:
        assert words(f"{name} {value}") in words(done.stdout)


def test_a_long_policy_is_cut():
    common = ["riverswim", "--set", "states=60", "--gamma", 0.5, "--epsilon", 2, "--seed", 0, "--max-steps", 40_000]
    done = run("learn-policy", *common)
    states = [int(line.split()[0]) for line in done.stdout.splitlines() if re.match(r" +\d+ +[01] ", line)]
    assert states == list(range(50))
    assert "and 10 more states: --json and --save have all" in words(done.stdout)


def test_found_and_met_exit_with_0():
    assert json_of("find-treasure", *RIVER3, "--threshold", 0.5, "--seed", 0)["stop"] == "found"
    assert json_of("find-treasure", *RIVER3, "--seed", 0)["stop"] == "met"


def test_stopped_before_exits_with_1_and_tells_what_it_has():
    told = json_of("learn-policy", *RIVER3, "--gamma", 0.9, "--epsilon", 0.1, "--max-steps", 200, status=1)
    assert (told["steps"], told["stop"], told["seed"]) == (200, "max_steps", None)
    lower, upper = np.array(told["lower"]), np.array(told["upper"])
    assert np.all(lower <= upper)
    assert told["gap"] == pytest.approx(np.max(upper - lower), abs=1e-12)
    done = run("estimate-model", *RIVER3, "--eta", 0.01, "--max-steps", 100)
    assert done.exit_code == 1
    assert "stop max_steps" in words(done.stdout)


class Fragile(gym.Env):
    """An environment that raises after 30 steps."""

    observation_space, action_space = gym.spaces.Discrete(2), gym.spaces.Discrete(2)

    def __init__(self, reward=0.0):
        self.made, self.reward = 0, reward

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        self.made += 1
        if self.made > 30:
            if self.reward:
                return 0, self.reward, False, False, {}
            raise OSError("the arm is stuck")
        return int(action), 0.5, False, False, {}


@pytest.fixture
def fragile():
    gym.register("Fragile-v0", Fragile, disable_env_checker=True)
    yield
    del gym.registry["Fragile-v0"]


@pytest.mark.parametrize(
    ("settings", "status", "message"),
    [
        ([], 1, "the run failed after 30 steps: the arm is stuck"),
        (["--set", "reward=7"], 2, r"the run failed after 30 steps: rewards: expected rewards in \[0, 1\], got 7"),
    ],
    ids=["a fault of the system", "of the input"],
)
def test_a_run_that_fails_shows_what_was_collected(tmp_path, fragile, settings, status, message):
    arguments = ["estimate-rewards", "Fragile-v0", "--epsilon", 0.01, "--seed", 0, *settings]
    done = run(*arguments, "--json", "--save", tmp_path / "part.npz")
    assert done.exit_code == status
    assert re.search(message, words(done.stderr))
    told = json.loads(done.stdout)
    assert (told["env"], told["steps"], told["stop"], told["seed"]) == ("Fragile-v0", 30, "failed", 0)
    assert re.search(message, told["error"])
    assert sum(told["count"]) == 30
    with np.load(tmp_path / "part.npz") as saved:
        assert saved["count"].tolist() == told["count"]
    printed = run(*arguments)
    assert printed.exit_code == status
    assert "stop failed steps 30" in words(printed.stdout)


def test_an_internal_error_exits_with_70(monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("oops")

    monkeypatch.setattr(applications, "estimate_rewards", broken)
    done = run("estimate-rewards", *RIVER3, "--epsilon", 0.1)
    assert done.exit_code == 70
    assert "internal error" in done.stderr


@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["table", "json"])
def test_ctrl_c_in_a_terminal_prints_and_saves_what_is_known_and_exits_with_130(tmp_path, as_json):
    """A live line shows what is being done, and the number of steps."""
    json_of("estimate-model", *RIVER3, "--eta", 0.5, "--seed", 0)  # compiles, if that has still to be done
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # also in the background
    arguments = ["estimate-model", *RIVER3, "--eta", "0.0001", "--seed", "0", "--save", str(tmp_path / "model.npz")]
    terminal, theirs = os.openpty()
    process = warmed.Popen(
        [*COMMAND[:2], heard + COMMAND[2], *arguments, *as_json],
        stdout=warmed.PIPE,
        stderr=theirs,
        text=True,
        env={**os.environ, "COLUMNS": "160", "TERM": "xterm"},
    )
    try:
        os.close(theirs)
        shown, deadline = "", time.monotonic() + 6000
        while not re.search(r"estimating the model\D* [1-9][\d,]* steps, [\d,]+ plans, [\d,]+ steps/s", plain(shown)):
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
    assert "of states met" not in shown
    with np.load(tmp_path / "model.npz") as saved:
        assert saved["stop"] == "interrupted"
        steps = int(saved["steps"])
        assert saved["count"].sum() == steps > 0
    if as_json:
        told = json.loads(out)
        assert (told["stop"], told["steps"]) == ("interrupted", steps)
    else:
        assert "stop interrupted" in words(out)


def plain(text):
    """Return the text without terminal control codes."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def examples():
    for verb in VERBS:
        text = getattr(cli_applications, verb.replace("-", "_")).__doc__
        yield from (line.split() for line in re.findall(r"Example: `gosprl (.*)`", text))


@pytest.mark.parametrize("line", list(examples()), ids=" ".join)
def test_the_examples_of_the_help_work(tmp_path, monkeypatch, line):
    np.save(tmp_path / "means.npy", np.linspace(0, 1, 6))
    monkeypatch.chdir(tmp_path)
    done = run(*line)
    assert done.exit_code == 0, done.stderr
    assert line[0] in VERBS
    assert " ".join(line) in words(run(line[0], "--help").stdout)


def test_every_verb_is_in_the_help_and_has_an_example():
    shown = run("--help").stdout
    assert all(re.search(rf"\b{verb}\b", shown) for verb in VERBS)
    assert {line[0] for line in examples()} == set(VERBS)


def test_parameters_are_those_of_the_functions():
    """Every parameter of an application is an option of its verb, and has the same default."""
    for verb in VERBS:
        name = verb.replace("-", "_")
        ours = inspect.signature(getattr(cli_applications, name)).parameters
        for parameter in inspect.signature(getattr(applications, name)).parameters.values():
            if parameter.name in ("system", "progress", "options"):
                continue
            default = {"need": "1", "theta": None}.get(parameter.name, parameter.default)
            assert ours[parameter.name].default == default, (verb, parameter.name)


@pytest.mark.parametrize("arguments", [["learn-policy", "--help"], ["learn-policy", "riverswim6"]])
def test_nothing_is_compiled_before_there_is_work(arguments):
    code = f"""
import sys
from gosprl.cli.app import app
try:
    app({arguments})
except SystemExit as stop:
    print("status", stop.code)
assert not {{"numba", "scipy.optimize"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"status {0 if '--help' in arguments else 2}" in done.stdout
