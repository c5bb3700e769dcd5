"""Pages of applications: the answer with its bounds, then the collection."""

import numpy as np
import pytest
from pages import page_of

import gosprl
from gosprl import applications


@pytest.fixture(scope="module")
def river():
    return gosprl.envs.make("riverswim6")


def answered(name, system, **options):
    answer = getattr(applications, name)(system, seed=0, **options)
    page = page_of(answer)
    assert page.headings[:2] == ["the-answer", "asked-and-promised"]
    assert {"coverage", "visits"} <= set(page.headings)  # where the samples went
    rows = {row[0]: row[1] for row in page.rows if len(row) == 2}
    assert rows["promised"] == str(answer.guarantee)
    for title, text in answer.lines():
        assert rows[title or "·"] == text
    return answer, page


def test_a_policy_is_listed_with_its_bounds(river):
    answer, page = answered("learn_policy", river, gamma=0.8, epsilon=1.0)
    drawn = page.values(0)
    assert sorted((bar["lo"], bar["hi"]) for bar in drawn) == sorted(
        zip(answer.lower.tolist(), answer.upper.tolist(), strict=True)
    )
    for s in range(6):
        assert [row for row in page.rows if row[:2] == [str(s), str(answer.policy[s])] and len(row) == 5]


def test_rewards_are_listed_with_their_radius(river):
    answer, page = answered("estimate_rewards", river, epsilon=0.5)
    best = np.unravel_index(np.argmax(answer.rewards), answer.rewards.shape)
    first = page.values(0)[0]
    assert first["v"] == answer.rewards[best]
    assert (first["hi"] - first["lo"]) / 2 == pytest.approx(answer.radius[best])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("estimate_model", {"eta": 0.8}),
        ("find_treasure", {"threshold": 0.5}),
        ("estimate_diameter", {"epsilon": 1.0, "max_steps": 2000}),
        ("explore_all_goals", {"epsilon": 1.0, "c_min": 0.5, "max_steps": 2000}),
    ],
)
def test_other_answers(name, options, river):
    _, page = answered(name, river, **options)
    assert not {("need", "nothing"), ("states", "0 states, 0 pairs")} & {tuple(row) for row in page.rows}


def test_the_best_state_and_its_candidates(river):
    answer, page = answered("best_state", river.with_rewards(np.linspace(0, 1, 6)), epsilon=0.5)
    listed = [row for row in page.rows if row[-1:] in (["yes"], ["no"])]
    assert len(listed) == 6
    assert {row[0] for row in listed if row[-1] == "yes"} == set(map(str, answer.candidates.tolist()))


def test_an_answer_that_was_cut_short_says_so(river, tmp_path):
    answer = applications.learn_policy(river, gamma=0.9, epsilon=0.1, seed=0, max_steps=500)
    assert answer.report(tmp_path / "cut.html").exists()
    assert "not met: max_steps" in page_of(answer).text
