"""Every example runs, and what it prints is true: by closed forms, by exact solutions, and by the rest of its text.

What is certified holds with probability 1 - delta; the seeds are fixed, so that here it holds always or never.
"""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import warmed
from gymnasium.utils import env_checker
from notices import without_notice

from evidence import picture
from gosprl.strategies import STRATEGIES

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = {path.stem: path for path in sorted(EXAMPLES.glob("*.py"))}
ARROWS = {"→": (0, 1), "↓": (1, 0), "←": (0, -1), "↑": (-1, 0)}


def numbers(text):
    return [float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def one(pattern, text):
    """The numbers in the only line that matches."""
    lines = [line for line in text.splitlines() if re.search(pattern, line)]
    assert len(lines) == 1, (pattern, lines)
    return numbers(re.split(pattern, lines[0], maxsplit=1)[-1])


def after(heading, text):
    """The lines that follow the line with `heading`, until an empty one."""
    lines = text.split(heading, 1)[1].split("\n", 1)[1].split("\n\n")[0]
    return lines.strip("\n").split("\n")


def check_find_treasure(text):
    hidden = one("It is at", text)
    steps, *found, _ = one("Found after", text)
    assert found == hidden
    picture = text.split("never been there):\n\n")[1].split("\n\n")[0]
    assert picture.count("◆") == picture.count("S") == 1
    assert sum(numbers(picture)) == steps
    ours, random = one("^gosprl", text), one("^random walk", text)
    assert all(mine < theirs for mine, theirs in zip(ours, random, strict=True))
    assert 172 <= one("^fluid limit", text)[0] <= ours[1]


def check_estimate_model(text):
    eta, steps = one("to within", text)
    rows = [line for line in text.splitlines() if re.match(r" +\d +(left|right)", line)]
    assert len(rows) == 12
    samples = 0
    for line in rows:
        state, count, *chances, certified, off = numbers(line)
        true, learnt = chances[: len(chances) // 2], chances[len(chances) // 2 :]
        assert sum(true) == pytest.approx(1)
        assert sum(learnt) == pytest.approx(1, abs=2e-3)
        assert off == pytest.approx(np.abs(np.subtract(true, learnt)).sum(), abs=3e-3)
        assert off <= certified <= eta
        if "right" in line and 0 < state < 5:
            assert true == [0.05, 0.6, 0.35]
        samples += count
    assert samples == steps
    rules = {name: one(rf"^   {name} ", text) for name in ("certified", "paper", "decreasing")}
    assert rules["certified"][0] == steps < rules["paper"][0] / 10
    assert all(off <= certified for _, certified, off in rules.values())


def check_estimate_diameter(text):
    truths = {"toy3": 10.0, "riverswim6": 14.72}  # 1 / nu, and the paper's B D = 1766.7 for B = 120
    for name, truth in truths.items():
        assert one(f"^{name}:", text)[-1] == truth
        lines = after(f"{name}:", text.replace("\n\n   rule", "\n   rule"))[1:]
        assert len(lines) == 4
        for line in lines:
            epsilon, _, low, high = numbers(line)
            assert low <= truth <= high <= (1 + 2 * epsilon * (1 + epsilon)) * (1 + epsilon) * truth
            assert re.search("├─*●─*[┤→]$|●─*┤$", line)
        steps = [numbers(line)[1] for line in lines]
        assert steps[:3] == sorted(steps[:3])
        assert steps[0] < steps[3]  # at the same epsilon


def follow(lines):
    """From every cell of a picture, the arrows lead to the star."""
    cells = [line.split() for line in lines]
    for i, j in np.ndindex(len(cells), len(cells[0])):
        if cells[i][j] == "█":
            continue
        for _ in range(len(cells) * len(cells[0])):
            if cells[i][j] == "★":
                break
            i, j = np.add((i, j), ARROWS[cells[i][j]])
        assert cells[i][j] == "★"


def check_explore_all_goals(text):
    for heading, first in (("to state 0", 0), ("the swamp", 1)):
        pictures = [re.split(" {3,}", line.strip()) for line in after(heading, text)]
        for column in range(first, 3):
            follow([line[column] for line in pictures])
    straight, around, best = (one(f"^   {name}", text) for name in ("straight", "round about", "the best"))
    promised = one("promised", text)[0]
    assert one("policies +within", text)[0] == promised <= 2
    assert straight[0] < around[0]
    assert around[1] < straight[1]
    assert best[0] <= straight[0] + 0.01 <= best[0] + promised
    assert best[1] <= around[1] + 0.01 <= best[1] + promised


def check_learn_policy(text):
    states = [numbers(line) for line in after("earns at least", text)]
    arrows = [re.search("[←→]", line)[0] for line in after("earns at least", text)]
    assert len(states) == 6
    for _, lower, best, upper in states:
        assert lower <= best <= upper <= lower + 1.01  # 1 and rounding
    # the best of the policies that go left below some state and right from there on
    assert [best for *_, best, _ in states] == pytest.approx(threshold_values().max(axis=0), abs=6e-3)
    assert "".join(arrows) == "←" * 2 + "→" * 4
    pairs = np.array([numbers(line)[1:] for line in after("samples a pair  by", text)])
    told = numbers(text.splitlines()[-1])
    np.testing.assert_array_equal(pairs.sum(axis=0), told)
    assert told[0] < told[1]


def threshold_values(states=6, gamma=0.9):
    """[policies, states] values of the policies that go left in the first k states, right in the others."""
    left, right = np.zeros((2, states, states))
    for s in range(states):
        left[s, max(s - 1, 0)] = 1
        up, down = (0.6, 0) if s == 0 else (0, 0.4) if s == states - 1 else (0.35, 0.05)
        right[s, max(s - 1, 0)] += down
        right[s, min(s + 1, states - 1)] += up
        right[s, s] += 1 - up - down
    values = []
    for k in range(states + 1):
        goes_left = np.arange(states) < k
        P = np.where(goes_left[:, None], left, right)
        reward = np.where(goes_left, 0.2 * (np.arange(states) == 0), 1.0 * (np.arange(states) == states - 1))
        values.append(np.linalg.solve(np.eye(states) - gamma * P, reward))
    return np.array(values)


def check_best_state(text):
    lines = [line.split() for line in after("bites a cast", text)]
    rates, casts, given_up = (np.array([line[i : i + 5] for line in lines]).ravel() for i in (0, 5, 10))
    best = int(np.argmax(rates.astype(float)))
    assert one("best state ", text) == [best]
    assert given_up[best] == "best"
    assert sorted(np.delete(given_up, best), key=lambda text: int(text[:-1])) == [f"{i}." for i in range(1, 15)]
    assert casts.astype(int).sum() == one("^  steps ", text)[0]
    right = [numbers(line)[1] for line in after("budget (casts)", text)]
    assert len(right) == 3
    assert right == sorted(right)
    assert right[-1] == 10


def check_estimate_rewards(text):
    worst = one("certified: off", text)[0]
    assert one("in truth", text)[0] <= worst <= 0.15
    assert one("within their radius", text) == [288, 288]
    pictures = [re.findall("│([^│]*)│", line) for line in after("true means", text)]
    assert np.shape(pictures) == (6, 3)
    true, learnt = (np.array([[" ░▒▓█".index(c) for c in line[i]] for line in pictures]) for i in (0, 1))
    assert np.abs(true - learnt).max() <= 1  # a shade is a quarter, and means are within 0.15
    assert true.max() == 4
    assert true.min() == 0


def check_lower_bounds(text):
    # B (1 / (2 q) + 1), sum of b (1 / (2 epsilon) + 1), (B - 1) D / 2 with the paper's D = 1766.7 / 120
    bounds = 5 * (5 + 1), 11 * (1 + 2.5 + 5 + 3), 11 * 1766.7 / 120 / 2
    told = [numbers(line) for line in text.splitlines() if "is promised" in line]
    assert len(told) == text.count("◄ bound") == 3
    for bound, (steps, share, promised) in zip(bounds, told, strict=True):
        assert steps == pytest.approx(bound, abs=0.51)
        assert share >= promised == 50
    # fluid limits of the first two: a crossing and a step back for each sample
    limits = [numbers(line) for line in text.splitlines() if "fluid limit" in line and "mean" in line]
    assert [limit for *_, limit in limits[:2]] == [5 * (10 + 1), 11 * (2 + 5 + 10 + 3)]
    assert all(abs(mean - limit) < 6 * off for mean, off, limit in limits)


def check_finite_horizon(text):
    assert one("in y within 5 steps", text) == [0, 0]
    assert one("in z within 5 steps", text) == [0.5, 0.5]
    assert one("in z within 7 steps", text) == [1, 0.5]
    # by a fair coin 5 steps or 7; and, if y leads back to x, from there anew
    assert one("to z on average", text) == [6, 12]
    assert one("learnt: steps", text) == pytest.approx([6, 12], rel=0.1)
    assert max(one("certified within", text)) <= 0.1
    assert min(one("samples of y", text)) > 0


def check_gymnasium_env(text):
    certified = one("leads to", text)[-1]
    chances = [numbers(line)[-1] for line in after("leads to", text)]
    assert np.abs(np.subtract(chances, [0.4, 0.6])).sum() <= certified <= 0.4
    lines = [line.split() for line in after("with a parcel      without", text)]
    assert [line[1:] for line in lines[:3]] == [
        ["→", "→", "·", "·", "←", "←"],
        ["charge", "→", "·", "·", "←", "←"],
        ["charge", "charge", "·", "·", "charge", "charge"],
    ]
    lower, upper = one("from the start", text)
    assert 0 < lower < upper <= lower + 0.5


def check_fixed_policy(text):
    lines = [numbers(line) for line in text.splitlines() if "%" in line and "runs" not in line]
    law = np.array([share for _, share, _ in lines]) / 100
    # the river flows up as often as down: law(s) up(s) = law(s + 1) down(s + 1), by a coin between left and right
    up, down = np.array([0.6, *[0.35] * 4]) / 2, (1 + np.array([*[0.05] * 4, 0.4])) / 2
    np.testing.assert_allclose(law[:-1] * up, law[1:] * down, atol=2e-5)
    assert min(visits for *_, visits in lines) >= 10
    proved, quantile, mean, ours, limit = (numbers(line)[-1] for line in text.splitlines()[-5:])
    assert proved > quantile > mean > ours > limit >= 60


def check_rivals(text):
    (need, _, limit) = one(r"^", text.splitlines()[0])
    rows = {line.split("  ")[1].strip(): numbers(line)[-2:] for line in after("strategy  ", text)}
    assert set(rows) == {*STRATEGIES, "least tried, our own"}
    for steps, ratio in rows.values():
        assert steps >= need * 80
        assert ratio == pytest.approx(steps / limit, abs=6e-3)
    assert [steps for steps, _ in rows.values()] == sorted(steps for steps, _ in rows.values())
    assert rows["guarded"][0] < rows["gosprl"][0] < rows["random"][0]


def check_own_system(text):
    """14 pairs exist: a door everywhere, a move up but at the top, a move down but at the bottom."""
    assert re.search(r"met +True \(8 states, 14 pairs\)", text)
    rows = [line.split() for line in after("samples of each action", text)]
    assert [row[:2] for row in rows] == [[str(floor), door] for floor in range(4) for door in ("closed", "open")]
    counts = np.array([[0 if cell == "·" else int(cell) for cell in row[2:]] for row in rows])
    exists = np.array([[floor > 0 and not door, floor < 3 and not door, True] for floor in range(4) for door in (0, 1)])
    np.testing.assert_array_equal(counts > 0, exists)
    assert counts[exists].min() >= 50
    assert counts.sum() == one("^  steps ", text)[0]
    failed = [numbers(line)[-1] for line in after("by what was collected", text)]
    assert len(failed) == 4
    # 50 samples or more each: 4 standard deviations of the frequency
    assert np.abs(np.array(failed) - 0.2).max() < 4 * (0.2 * 0.8 / 50) ** 0.5


def check_own_requirement(text):
    error, steps = one("standard error of at most", text)
    assert text.splitlines()[0].endswith("stop: met")
    rows = np.array([numbers(line) for line in after("samples   standard error", text)])
    assert rows.shape == (12, 5)  # state, mean, learnt, samples, standard error
    _, mean, learnt, samples, off = rows.T
    assert samples.sum() == steps
    assert samples.min() >= 20
    assert off.max() <= error
    # of a coin that shows 1 in a share q of n throws, the standard error is sqrt(q (1 - q) / n)
    np.testing.assert_allclose(off, np.sqrt(learnt * (1 - learnt) / samples), atol=3e-4)  # printed digits
    assert np.all(np.abs(learnt - mean) <= 5 * np.maximum(off, 0.05))
    assert np.all(samples[(mean > 0.3) & (mean < 0.7)] > 0.9 * 0.25 / error**2)  # they vary the most
    fixed, fixed_steps = one("^ +(?=100 samples of every pair)", text)
    assert fixed == pytest.approx(0.25 / error**2)
    assert steps < fixed_steps


def check_own_confidence(text):
    need, *_, runs = one("^(?=10 samples)", text)
    rows = [line.split() for line in after("truth inside", text)]
    assert [row[0] for row in rows] == ["Hoeffding", "bernstein", "kl"]
    for name, steps, width, inside, _, of, *guarantee in rows:
        assert float(steps.replace(",", "")) >= 12 * need
        assert 0 < float(width) <= 1
        assert int(inside) == int(of) == runs
        assert " ".join(guarantee) == ("that of Hoeffding" if name == "Hoeffding" else "delta=0.1")


def check_own_strategy(text):
    limit = one("fluid limit ", text)[0]
    lines = after("strategy  ", text)
    rows = {line[3:27].strip(): numbers(line[27:55]) for line in lines}
    assert list(rows) == ["largest need, our own", "guarded", "random"]
    assert limit == pytest.approx(3283.4)  # of four_room43, computed by another implementation
    for steps, ratio, _ in rows.values():
        assert steps >= 10 * 172
        assert ratio == pytest.approx(steps / limit, abs=6e-3)
    assert rows["guarded"][0] < rows["random"][0] / 5
    assert rows["largest need, our own"][0] < rows["random"][0] / 5
    guarantees = [line[55:].strip() for line in lines]
    assert guarantees == ["none: the largest need first", "delta=0.1", "none: a random walk"]


def check_cart_pole(text):
    steps = one("^  steps ", text)[0]
    resets = one("^  resets ", text)[0]
    states = one("^  met .*for the (?=[0-9]+ states discovered)", text)[0]
    rows = np.array(
        [
            [float(part) for part in re.findall(r"-?[0-9.]+", line.split("..")[1])]
            for line in after("episodes ended", text)
        ]
    )  # samples, share of them that ended the episode, in percent
    samples, ended = rows.T
    assert len(rows) == 8
    assert samples.sum() == steps == 20_000
    assert states <= 1 * 3 * 8 * 3
    # an episode ends by the fall, or after 500 steps, or where the run stops
    falls = (samples * ended / 100).sum()
    assert resets - steps / 500 - 1 <= falls + 0.001 * steps
    assert falls <= resets + 1 + 0.001 * steps
    assert np.all(ended[[0, 7]] > 5)  # the pole falls at 0.209, in the outer bins
    assert np.all(ended[1:7] < 1)


def check_mountain_car(text):
    plain, held = text.split("Result\n")[1:]
    assert re.search(r"met +True \(for the 2 states discovered, 6 pairs\)", plain)
    entered, without = one("^   bins entered: ", text)
    assert without == 2
    steps = one("^  steps ", held)[0]
    grid = [line.split() for line in held.splitlines() if "·" in line or re.match(r"^ +[0-9]+ +[0-9]+ ", line)]
    assert [len(line) for line in grid] == [12] * 12
    visits = [int(part) for line in grid for part in line if part != "·"]
    assert (sum(visits), len(visits)) == (steps, entered)
    assert entered > 100


CHECKS = {name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")}


def test_every_example_is_checked_and_listed():
    assert set(CHECKS) == set(SCRIPTS)
    commands = re.findall(r"^\| `python examples/(\w+)\.py` \|", (EXAMPLES / "README.md").read_text(), re.M)
    assert sorted(commands) == sorted(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_example(name, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(SCRIPTS[name])])
    runpy.run_path(str(SCRIPTS[name]), run_name="__main__")
    printed = capsys.readouterr()
    assert without_notice(printed.err) == ""
    assert all(line == line.rstrip() and len(line) <= 120 for line in printed.out.splitlines())
    CHECKS[name](printed.out)
    if name in picture.OBJECTIVES:  # which its page shows
        assert picture.text_of(picture.file_of(name)) == picture.text_of(picture.drawn(name, printed.out))


def test_pictures_of_something_else_are_found_out():
    older = picture.drawn("best_state", "steps   2,577")
    assert picture.text_of(older) != picture.text_of(picture.drawn("best_state", "steps   2,578"))
    assert {file.stem for file in picture.file_of("").parent.glob("*.svg")} == set(picture.OBJECTIVES)


def test_as_a_command_with_another_seed():
    command = [sys.executable, str(SCRIPTS["find_treasure"]), "3"]
    done = warmed.run(command, capture_output=True, text=True, encoding="utf-8")
    assert (done.returncode, without_notice(done.stderr)) == (0, "")
    check_find_treasure(done.stdout)


def test_the_environment_of_the_example_is_one():
    env_checker.check_env(runpy.run_path(str(SCRIPTS["gymnasium_env"]))["Courier"](), skip_render_check=True)
