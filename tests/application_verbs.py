"""The verbs of the applications as tests run them: arguments, calls of the library, and comparisons."""

import dataclasses
import json
import sys

import numpy as np
import pytest
from notices import without_notice
from typer.testing import CliRunner

import gosprl
from gosprl import applications
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


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def words(text):
    return " ".join(text.split())


def json_of(*arguments, status=0):
    """Return the object that --json prints."""
    done = run(*arguments, "--json")
    assert done.exit_code == status, done.stderr
    assert without_notice(done.stderr) == ""
    assert len(done.stdout.splitlines()) == 1
    return json.loads(done.stdout, parse_constant=pytest.fail)  # no NaN, no Infinity


def refused(*arguments):
    """Return the message of an input error."""
    done = run(*arguments)
    assert done.exit_code == 2, done.stdout
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return words(done.stderr)


def finite(value):
    """Return numbers, with nan for null and for numbers that are not finite."""
    numbers = np.array(value, dtype=float)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def contents(answer):
    """Return the entries that a verb should print of an answer, by name."""
    fields = {field.name: getattr(answer, field.name) for field in dataclasses.fields(answer)}
    fields = {name: value for name, value in fields.items() if not name.startswith("_") and name != "collected"}
    if "model" in fields:
        fields |= dict(zip(("s", "a", "s_next", "count"), fields.pop("model").transitions(), strict=True))
    keys = (
        "met",
        "steps",
        "attempts",
        "stop",
        "states",
        "pairs",
        "of_discovered",
        "seed",
        "resets",
        "crashes",
        "unseen",
    )
    told = {key: getattr(answer.collected, key) for key in keys} | {"guarantee": str(answer.guarantee)}
    states = answer.collected.model.states
    if states.reset >= 0:
        told |= {"observations": list(states), "final": states.finals}
    return fields | told


def check(told, answer, env):
    expected = contents(answer)
    assert told.keys() == {"env", *expected}
    assert told["env"] == env
    for name, value in expected.items():
        if value is None or isinstance(value, str) or name == "observations":
            assert told[name] == value
        else:
            np.testing.assert_array_equal(finite(told[name]), finite(value), name)
