"""The short version of evidence.price: its problems, and that the default does not beat the bound on two of them.

24 to 36 runs in all; a mean is rejected if it is more than 5 standard errors below the bound.
"""

import numpy as np
import pytest

from evidence.price import Problem, deterministic, doors, interval, line, mean_of_candidates, problems, walks
from gosprl import theory


def test_problems_are_what_their_names_say():
    found = {problem.name: problem for problem in problems()}
    sizes = {name: len(problem.candidates) for name, problem in found.items()}
    assert sizes["any deterministic MDP, 3 x 2"] == 296
    assert sizes["riverswim4, actions shuffled"] == 16
    assert sizes["tree of 3 states, actions shuffled"] == 2  # the leaves' actions are the same
    assert sizes["tree of 7 states, actions shuffled; each state"] == 8
    assert sizes["2 x 3 maze, at most one wall; each state"] == 8
    for problem in found.values():
        assert len({mdp.dense().tobytes() for mdp in problem.candidates}) == len(problem.candidates), problem.name
        assert all(mdp.is_communicating() for mdp in problem.candidates)


@pytest.mark.parametrize("name", ["any deterministic MDP, 2 x 2", "riverswim3, actions shuffled"])
def test_the_default_does_not_beat_the_bound(name):
    problem = next(problem for problem in problems() if problem.name == name)
    price = theory.bayes_price(problem.candidates, problem.need)
    mean, half = mean_of_candidates(walks(problem, {}, 24))
    assert price.lower <= mean + 5 * half / 1.96


def test_a_line():
    cells = line(Problem("doors", list(doors(2)), np.array([0, 1])), runs=8).strip("| ").split(" | ")
    assert cells[:6] == ["doors", "2", "2.00", "2.00", "1.250", "1.250"]
    assert len(cells) == 9


def test_means_and_intervals():
    """Two candidates of variances 1 and 4, two runs each: 1.96 sqrt(1 / 2 + 4 / 2) / 2."""
    steps = np.array([[3 - 0.5**0.5, 3 + 0.5**0.5], [7 - 2**0.5, 7 + 2**0.5]])
    assert mean_of_candidates(steps) == pytest.approx((5, 1.96 * 2.5**0.5 / 2))
    assert (interval(1.2, 1.2001), interval(1.2, 1.25)) == ("1.200", "1.200 to 1.250")
    assert len(list(deterministic(2, 2))) == 9
