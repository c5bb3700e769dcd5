"""The verbs of the applications: the same answers as the library's, printed, as JSON, saved; and how they end."""

import dataclasses
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
from typer.testing import CliRunner

import gosprl
from gosprl import applications
from gosprl.cli import applications as cli_applications
from gosprl.cli.app import app

COMMAND = [sys.executable, "-c", "from gosprl.cli import main; main()"]
VERBS = (
    "find-treasure",
    "estimate-model",
    "estimate-diameter",
    "explore-all-goals",
    "learn-policy",
    "best-state",
    "estimate-rewards",
)
REWARDED = {
    "learn-policy": ["--gamma", "0.9", "--epsilon", "1"],
    "best-state": ["--budget", "100"],
    "estimate-rewards": ["--epsilon", "0.5"],
    "find-treasure": ["--threshold", "0.5"],
}
RIVER = gosprl.envs.make("riverswim", states=3)
RIVER3 = ["riverswim", "--set", "states=3"]
MEANS = np.array([0.1, 0.9, 0.3])


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def words(text):
    return " ".join(text.split())


def told_by(*arguments, status=0):
    """The one object that --json prints."""
    done = run(*arguments, "--json")
    assert done.exit_code == status, done.stderr
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
    return json.loads(done.stdout, parse_constant=pytest.fail)  # no NaN, no Infinity


def refused(*arguments):
    """The message of an input error."""
    done = run(*arguments)
    assert done.exit_code == 2, done.stdout
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return words(done.stderr)


def finite(value):
    """`value` as numbers, nan for null and for what is not finite."""
    numbers = np.array(value, dtype=float)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def contents(answer):
    """What a verb should tell of an answer, by name."""
    fields = {field.name: getattr(answer, field.name) for field in dataclasses.fields(answer)}
    fields = {name: value for name, value in fields.items() if not name.startswith("_") and name != "collected"}
    if "model" in fields:
        fields |= dict(zip(("s", "a", "s_next", "count"), fields.pop("model").transitions(), strict=True))
    told = {"steps": answer.steps, "stop": answer.stop, "seed": answer.collected.seed}
    return fields | told | {"guarantee": str(answer.guarantee)}


def check(told, answer, env):
    expected = contents(answer)
    assert told.keys() == {"env", *expected}
    assert told["env"] == env
    for name, value in expected.items():
        if value is None or isinstance(value, str):
            assert told[name] == value
        else:
            np.testing.assert_array_equal(finite(told[name]), finite(value), name)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A directory with means and costs of three states, where the command runs."""
    np.save(tmp_path / "means.npy", MEANS)
    np.save(tmp_path / "pairs.npy", np.column_stack([MEANS, MEANS / 2]))
    np.save(tmp_path / "costs.npy", [0.5, 1.0, 0.75])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_walk(monkeypatch):
    """What is wrong with the input must be said before anything is done."""
    for name in applications.__all__:
        if name.islower():
            monkeypatch.setattr(applications, name, lambda *arguments, **options: pytest.fail("walked"))


# Answers

CASES = {
    "find-treasure": (["--threshold", 0.5], lambda s: applications.find_treasure(s, threshold=0.5, seed=0)),
    "find-treasure everything": (["--need", 3], lambda s: applications.find_treasure(s, 3, seed=0)),
    "estimate-model": (
        ["--eta", 0.3, "--norm", "max", "--rule", "certified"],
        lambda s: applications.estimate_model(s, 0.3, norm="max", seed=0),
    ),
    "estimate-model decreasing": (
        ["--eta", 0.5, "--rule", "decreasing", "--alpha-b", 0.02, "--confidence", "bernstein", "--delta", 0.2],
        lambda s: applications.estimate_model(
            s, 0.5, rule="decreasing", alpha_b=0.02, confidence="bernstein", delta=0.2, seed=0
        ),
    ),
    "estimate-diameter": (
        ["--epsilon", 1, "--rule", "certified"],
        lambda s: applications.estimate_diameter(s, 1.0, rule="certified", seed=0),
    ),
    "explore-all-goals": (
        ["--epsilon", 2, "--c-min", 0.8],
        lambda s: applications.explore_all_goals(s, 2.0, c_min=0.8, seed=0),
    ),
    "explore-all-goals paper": (
        ["--epsilon", 2, "--theta", 2, "--rule", "paper", "--diameter", 5, "--alpha", 1e-4],
        lambda s: applications.explore_all_goals(s, 2.0, theta=2.0, rule="paper", diameter=5.0, alpha=1e-4, seed=0),
    ),
    "learn-policy": (
        ["--gamma", 0.8, "--epsilon", 1, "--allocation", "uniform"],
        lambda s: applications.learn_policy(s, 0.8, 1.0, allocation="uniform", seed=0),
    ),
    "estimate-rewards": (["--epsilon", 0.2], lambda s: applications.estimate_rewards(s, 0.2, seed=0)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_of_the_library_as_json(case):
    arguments, call = CASES[case]
    told = told_by(case.split()[0], *RIVER3, "--seed", 0, *arguments)
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
    told = told_by(verb, "FrozenLake-v1", "--seed", 1, *arguments)
    check(told, call(gym.make("FrozenLake-v1")), "FrozenLake-v1")


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("estimate-diameter", ["--epsilon", 1, "--rule", "certified"]),
        ("explore-all-goals", ["--epsilon", 2, "--c-min", 1]),
        ("learn-policy", ["--gamma", 0.8, "--epsilon", 1]),
    ],
)
def test_all_verbs_take_gymnasium_ids(verb, arguments):
    told = told_by(verb, "gosprl/riverswim-v0", "--set", "states=2", "--seed", 0, *arguments)
    assert (told["env"], told["stop"]) == ("gosprl/riverswim-v0", "met")


def test_the_best_state(files):
    mdp = RIVER.with_rewards(MEANS, "bernoulli")
    common = [*RIVER3, "--rewards", "means.npy", "--noise", "bernoulli", "--seed", 0]
    told = told_by("best-state", *common, "--budget", 100)
    check(told, applications.best_state(mdp, 100, seed=0), "riverswim")
    assert told["budget"] == 100
    told = told_by("best-state", *common, "--delta", 0.05, "--epsilon", 0.1)
    check(told, applications.best_state(mdp, epsilon=0.1, delta=0.05, seed=0), "riverswim")
    assert told["budget"] is None
    assert told["state"] == 1


def test_rewards_of_pairs_or_states_with_noise_or_without(files):
    for name, noise in (("means", None), ("pairs", "none"), ("pairs", "bernoulli")):
        given = [] if noise is None else ["--noise", noise]
        told = told_by("estimate-rewards", *RIVER3, "--epsilon", 0.4, "--seed", 0, "--rewards", f"{name}.npy", *given)
        mdp = RIVER.with_rewards(np.load(f"{name}.npy"), noise or "none")
        check(told, applications.estimate_rewards(mdp, 0.4, seed=0), "riverswim")
    told = told_by("estimate-rewards", *RIVER3, "--epsilon", 0.4, "--seed", 0, "--noise", "bernoulli")
    own = RIVER.with_rewards([[0.005, 0], [0, 0], [0, 1]], "bernoulli")
    check(told, applications.estimate_rewards(own, 0.4, seed=0), "riverswim")


def test_the_policy_for_a_goal(files):
    explored = applications.explore_all_goals(RIVER, 2.0, c_min=0.5, seed=0)
    common = ["explore-all-goals", *RIVER3, "--epsilon", 2, "--c-min", 0.5, "--seed", 0, "--goal", 2]
    for given, costs in (([], None), (["--costs", "costs.npy"], [0.5, 1, 0.75])):
        told = told_by(*common, *given)
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
    told = told_by("estimate-diameter", *RIVER3, "--epsilon", 0.1, "--max-steps", 3, "--seed", 0, status=1)
    assert told["diameter"] is None
    told = told_by("best-state", "FrozenLake-v1", "--max-steps", 20, "--seed", 0, status=1)
    assert told["rewards"][14] is None


def test_printed_for_people():
    done = run("estimate-model", *RIVER3, "--eta", 0.3, "--norm", "max", "--seed", 0)
    answer = applications.estimate_model(RIVER, 0.3, norm="max", seed=0)
    assert done.exit_code == 0
    assert done.stderr == ""
    shown = [*answer.lines(), ("steps", f"{answer.steps:,}"), ("stop", "met"), ("guarantee", str(answer.guarantee))]
    for name, value in shown:
        assert words(f"{name} {value}") in words(done.stdout)


def test_a_long_policy_is_cut():
    common = ["riverswim", "--set", "states=60", "--gamma", 0.5, "--epsilon", 2, "--seed", 0, "--max-steps", 40_000]
    done = run("learn-policy", *common)
    states = [int(line.split()[0]) for line in done.stdout.splitlines() if re.match(r" +\d+ +[01] ", line)]
    assert states == list(range(50))
    assert "and 10 states more: --json and --out have all" in words(done.stdout)


# How a run ends


def test_found_and_met_exit_with_0():
    assert told_by("find-treasure", *RIVER3, "--threshold", 0.5, "--seed", 0)["stop"] == "found"
    assert told_by("find-treasure", *RIVER3, "--seed", 0)["stop"] == "met"


def test_stopped_before_exits_with_1_and_tells_what_it_has():
    told = told_by("learn-policy", *RIVER3, "--gamma", 0.9, "--epsilon", 0.1, "--max-steps", 200, status=1)
    assert (told["steps"], told["stop"], told["seed"]) == (200, "max_steps", None)
    lower, upper = np.array(told["lower"]), np.array(told["upper"])
    assert np.all(lower <= upper)
    assert told["gap"] == pytest.approx(np.max(upper - lower), abs=1e-12)
    done = run("estimate-model", *RIVER3, "--eta", 0.01, "--max-steps", 100)
    assert done.exit_code == 1
    assert "stop max_steps" in words(done.stdout)


class Fragile(gym.Env):
    """Breaks after 30 steps."""

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
    done = run(*arguments, "--json", "--out", tmp_path / "part.npz")
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
    """While it goes on there is a line that says what is done, and how many steps of it."""
    told_by("estimate-model", *RIVER3, "--eta", 0.5, "--seed", 0)  # compiles, if that has still to be done
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # also in the background
    arguments = ["estimate-model", *RIVER3, "--eta", "0.0001", "--seed", "0", "--out", str(tmp_path / "model.npz")]
    terminal, theirs = os.openpty()
    process = subprocess.Popen(
        [*COMMAND[:2], heard + COMMAND[2], *arguments, *as_json],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env={**os.environ, "COLUMNS": "160", "TERM": "xterm"},
    )
    try:
        os.close(theirs)
        shown, deadline = "", time.monotonic() + 100
        while not re.search(r"estimating the model\D* [1-9][\d,]* steps, [\d,]+ plans, [\d,]+ steps/s", plain(shown)):
            assert time.monotonic() < deadline, shown
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 65536).decode(errors="replace")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
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
    """Without the codes that move and colour."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


# Files


@pytest.mark.parametrize("case", CASES)
def test_saved_arrays_are_the_answer(tmp_path, case):
    arguments, call = CASES[case]
    done = run(case.split()[0], *RIVER3, "--seed", 0, *arguments, "--out", tmp_path / "answer.npz")
    assert done.exit_code == 0, done.stderr
    expected = {name: value for name, value in contents(call(RIVER)).items() if value is not None}
    with np.load(tmp_path / "answer.npz", allow_pickle=False) as saved:
        assert {*saved} == {"env", *expected}
        for name, value in expected.items():
            np.testing.assert_array_equal(saved[name], np.array(value), name)


def test_a_saved_model_can_be_taken_up_again(tmp_path):
    """And is as near to the truth as it says, which the sets promise but for a chance of delta = 0.1."""
    assert run("estimate-model", *RIVER3, "--eta", 0.5, "--seed", 0, "--out", tmp_path / "m.npz").exit_code == 0
    with np.load(tmp_path / "m.npz") as saved:
        model = gosprl.EmpiricalModel.from_counts(
            saved["s"], saved["a"], saved["s_next"], saved["count"], states=3, actions=2
        )
        assert np.all(np.abs(model.dense() - RIVER.dense()).sum(axis=2) <= saved["eta"])


def test_a_file_is_overwritten_only_if_that_is_said(tmp_path, no_walk):
    file = tmp_path / "there.npz"
    file.write_text("precious")
    message = refused("estimate-rewards", *RIVER3, "--epsilon", 0.5, "--out", file)
    assert re.search(r"out: .*there.npz exists; .*--force", message)
    assert file.read_text() == "precious"


def test_force_overwrites(tmp_path):
    file = tmp_path / "there.npz"
    file.write_text("precious")
    assert run("estimate-rewards", *RIVER3, "--epsilon", 0.5, "--out", file, "--force").exit_code == 0
    with np.load(file) as saved:
        assert saved["rewards"].shape == (3, 2)


@pytest.mark.parametrize(
    ("name", "message"),
    [("absent/x.npz", "out: .*x.npz cannot be written"), ("x.npy", "out: expected the name of an .npz file, got")],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_run(tmp_path, no_walk, name, message):
    said = refused("estimate-rewards", *RIVER3, "--epsilon", 0.5, "--out", tmp_path / name, "--force")
    assert re.search(message, said)


def test_a_file_that_appears_meanwhile_is_kept(tmp_path, monkeypatch):
    file, estimate = tmp_path / "there.npz", applications.estimate_rewards

    def slow(*arguments, **options):
        file.write_text("precious")
        return estimate(*arguments, **options)

    monkeypatch.setattr(applications, "estimate_rewards", slow)
    done = run("estimate-rewards", *RIVER3, "--epsilon", 0.5, "--out", file)
    assert done.exit_code == 2
    assert "radius" in done.stdout  # the answer is not lost
    assert "out: " in done.stderr
    assert file.read_text() == "precious"


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["estimate-model", "nowhere", "--eta", 1], "'nowhere' is not one of our domains"),
        (["estimate-model", "CartPole-v1", "--eta", 1], "observation_space: expected Discrete"),
        (["estimate-model", "riverswim", "--set", "length=6", "--eta", 1], "length: .*states"),
        (["estimate-model", "riverswim6"], "--eta"),
        (["estimate-model", "riverswim6", "--eta", "small"], "--eta"),
        (["estimate-model", "riverswim6", "--eta", 0], "eta: expected a positive finite number, got 0.0"),
        (["estimate-model", "riverswim6", "--eta", "nan"], "eta: .*got nan"),
        (["estimate-model", "riverswim6", "--eta", 1, "--norm", "l2"], "norm: 'l2' is not known; known are l1, max"),
        (["estimate-model", "riverswim6", "--eta", 1, "--rule", "best"], "rule: .*certified, decreasing, paper"),
        (["estimate-model", "riverswim6", "--eta", 1, "--alpha-b", 1], "alpha_b: .*certified"),
        (["estimate-model", "riverswim6", "--eta", 1, "--delta", 1], "delta: .*got 1.0"),
        (["estimate-model", "riverswim6", "--eta", 1, "--confidence", "wide"], "confidence: .*bernstein, kl"),
        (["estimate-model", "riverswim6", "--eta", 1, "--seed", -1], "seed: "),
        (["estimate-model", "riverswim6", "--eta", 1, "--max-steps", 0], "max_steps: "),
        (["estimate-model", "riverswim6", "--eta", 1, "--rewards", "x.npy"], "--rewards"),
        (["estimate-diameter", "riverswim6", "--epsilon", -1], "epsilon: "),
        (["estimate-diameter", "riverswim6", "--epsilon", 1, "--rule", "best"], "rule: .*certified, doubling, paper"),
        (["explore-all-goals", "riverswim6", "--epsilon", 1], "c_min, theta: .*never arrives"),
        (["explore-all-goals", "riverswim6", "--epsilon", 1, "--theta", 0.5], "theta: expected a number >= 1"),
        (["explore-all-goals", "riverswim6", "--epsilon", 1, "--c-min", 2], r"c_min: .*in \[0, 1\], got 2"),
        (["learn-policy", "riverswim6", "--gamma", 1, "--epsilon", 1], "gamma: .*got 1.0"),
        (["learn-policy", "riverswim6", "--gamma", 0.9, "--epsilon", 0], "epsilon: "),
        (["learn-policy", "Taxi-v4", "--gamma", 0.9, "--epsilon", 1], r"rewards: expected rewards in \[0, 1\], got -1"),
        (["best-state", "riverswim6"], r"rewards: expected those of a state to be the same.*give means \[S\]"),
        (["find-treasure", "riverswim6", "--need", "many"], "need: expected a whole number or an .npy file, got"),
        (["find-treasure", "riverswim6", "--threshold", "nan"], "threshold: "),
        (["estimate-rewards", "riverswim6", "--epsilon", 1, "--noise", "gauss"], "noise: .*bernoulli, none"),
        (["estimate-rewards", "FrozenLake-v1", "--epsilon", 1, "--noise", "none"], "rewards, noise: only for our own"),
        (["estimate-rewards", "FrozenLake-v1", "--epsilon", 1, "--rewards", "x.npy"], "rewards, noise: only for our"),
        (["estimate-rewards", "riverswim6", "--epsilon", 1, "--rewards", "absent.npy"], "rewards: absent.npy"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_bad_input_exits_with_2_and_says_why(arguments, message):
    assert re.search(message, refused(*arguments))


def test_states_that_cannot_be_reached_are_named(monkeypatch):
    parts = gosprl.TabularMDP(np.eye(3)[:, None, :], name="islands")
    monkeypatch.setattr(cli_applications, "environment", lambda name, settings: parts)
    assert "no path leads from the start, state 0, to states 1, 2" in refused("estimate-model", "x", "--eta", 1)


@pytest.mark.parametrize("verb", REWARDED)
def test_where_rewards_are_missing_the_option_is_named(no_walk, verb):
    message = refused(verb, "four_room43", *REWARDED[verb])
    assert re.search(r"rewards: four_room43 has none; .*--rewards FILE.npy .*\(43, 4\) or \[S\] = \(43,\)", message)


def test_a_domain_without_rewards_can_still_be_searched():
    told = told_by("find-treasure", "room20", "--seed", 0)
    assert (told["stop"], told["covered"], told["state"]) == ("met", 1.0, None)


@pytest.mark.parametrize("verb", REWARDED)
@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        (np.ones((2, 3)), r"rewards: expected mean rewards \[S, A\] = \(3, 2\) or \[S\] = \(3,\), got shape \(2, 3\)"),
        (np.full((3, 2), np.nan), "rewards: expected finite means, got nan"),
        (np.array(["a", "b", "c"]), "rewards: expected numbers"),
    ],
    ids=["shape", "nan", "words"],
)
def test_bad_rewards_exit_with_2(tmp_path, no_walk, verb, rewards, message):
    np.save(tmp_path / "r.npy", rewards)
    assert re.search(message, refused(verb, *RIVER3, *REWARDED[verb], "--rewards", tmp_path / "r.npy"))


@pytest.mark.parametrize(
    ("means", "low", "high"),
    [([2.0, 2.0, 2.0], 0, 2), ([-3.0, -3.0, -3.0], -3, 0), ([-1.0, 0.0, 3.0], -1, 3)],
)
def test_rewards_outside_say_how_to_scale(tmp_path, means, low, high):
    np.save(tmp_path / "r.npy", means)
    arguments = ["estimate-rewards", *RIVER3, "--epsilon", 0.5, "--rewards", tmp_path / "r.npy"]
    message = refused(*arguments)
    assert f"scale them: (R - low) / (high - low), here with low = {low}, high = {high}" in message
    np.save(tmp_path / "r.npy", (np.array(means) - low) / (high - low))
    assert run(*arguments).exit_code == 0


def test_rewards_are_one_array(tmp_path):
    np.savez(tmp_path / "r.npz", means=MEANS)
    message = refused("estimate-rewards", *RIVER3, "--epsilon", 0.5, "--rewards", tmp_path / "r.npz")
    assert "expected an .npy file with one array" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--goal", 3], "goal: expected a state in 0..2, got 3"),
        (["--goal", -1], "goal: expected a state in 0..2, got -1"),
        (["--costs", "costs.npy"], "costs: .*--goal"),
        (["--goal", 2, "--costs", "low.npy"], r"costs: expected costs in \[c_min, 1\] = \[0.5, 1\], got 0.4"),
        (
            ["--goal", 2, "--costs", "long.npy"],
            r"costs: expected \[S\] = \(3,\) or \[S, A\] = \(3, 2\), got shape \(4,\)",
        ),
        (["--goal", 2, "--costs", "absent.npy"], "costs: absent.npy"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_goal_and_costs_are_checked_before_the_walk(files, no_walk, arguments, message):
    np.save("low.npy", [0.5, 0.4, 1.0])
    np.save("long.npy", np.ones(4))
    said = refused("explore-all-goals", *RIVER3, "--epsilon", 1, "--c-min", 0.5, *arguments)
    assert re.search(message, said)


def test_a_budget_below_the_number_of_states(files):
    message = refused("best-state", *RIVER3, "--rewards", "means.npy", "--budget", 2)
    assert "budget: expected at least one sample of each of the 3 states, got 2" in message


# Help


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
