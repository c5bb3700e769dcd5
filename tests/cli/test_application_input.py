"""The verbs of the applications: invalid input exits with 2 and names the option, before anything is run."""

import re

import numpy as np
import pytest
from application_verbs import MEANS, REWARDED, RIVER3, json_of, refused, run

import gosprl
from gosprl.cli import applications as cli_applications


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["estimate-model", "nowhere", "--eta", 1], "'nowhere' is not one of our domains"),
        (["estimate-model", "CartPole-v1", "--eta", 1], "observation_space: expected finitely many"),
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
        (["estimate-model", "riverswim6", "--eta", 1, "--resets", "anytime"], "resets: expected None or 'never'"),
        (["estimate-model", "FrozenLake-v1", "--eta", 1, "--unseen", 2], "unseen: expected a number strictly between"),
        (["estimate-diameter", "riverswim6", "--epsilon", -1], "epsilon: "),
        (["estimate-diameter", "riverswim6", "--epsilon", 1, "--rule", "best"], "rule: .*certified, doubling, paper"),
        (["explore-all-goals", "riverswim6", "--epsilon", 1], "c_min, theta: .*never reaches"),
        (["explore-all-goals", "riverswim6", "--epsilon", 1, "--theta", 0.5], "theta: expected a number >= 1"),
        (["explore-all-goals", "riverswim6", "--epsilon", 1, "--c-min", 2], r"c_min: .*in \[0, 1\], got 2"),
        (["learn-policy", "riverswim6", "--gamma", 1, "--epsilon", 1], "gamma: .*got 1.0"),
        (["learn-policy", "riverswim6", "--gamma", 0.9, "--epsilon", 0], "epsilon: "),
        (["learn-policy", "Taxi-v4", "--gamma", 0.9, "--epsilon", 1], r"rewards: expected rewards in \[0, 1\], got -1"),
        (["best-state", "riverswim6"], r"rewards: expected those of a state to be the same.*give means \[S\]"),
        (["find-treasure", "riverswim6", "--need", "many"], "need: expected a whole number or an .npy file, got"),
        (["find-treasure", "riverswim6", "--threshold", "nan"], "threshold: "),
        (["estimate-rewards", "riverswim6", "--epsilon", 1, "--noise", "gauss"], "noise: .*bernoulli, none"),
        (
            ["estimate-rewards", "FrozenLake-v1", "--epsilon", 1, "--noise", "none"],
            "rewards, noise: expected one of our own",
        ),
        (
            ["estimate-rewards", "FrozenLake-v1", "--epsilon", 1, "--rewards", "x.npy"],
            "rewards, noise: expected one of our",
        ),
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
    assert re.search(
        r"rewards: expected --rewards FILE.npy, as four_room43 has none: .*\(43, 4\) or \[S\] = \(43,\)", message
    )


def test_a_domain_without_rewards_can_still_be_searched():
    told = json_of("find-treasure", "room20", "--seed", 0)
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


def test_an_array_that_claims_more_than_its_file_has(tmp_path, no_walk):
    with (tmp_path / "r.npy").open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2)}
        np.lib.format.write_array_header_1_0(file, header)
    message = refused("estimate-rewards", *RIVER3, *REWARDED["estimate-rewards"], "--rewards", tmp_path / "r.npy")
    assert "is not an array that NumPy can read: mmap length is greater than file" in message


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
