"""The rules of an attempt, case by case, as plain Python and compiled."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gosprl import _kernels
from gosprl.collecting import rules
from gosprl.collecting.rules import INVALID_ROW, NO_ROW, Ended

BOTH = pytest.mark.parametrize("of", [rules, _kernels], ids=["plain", "compiled"])
ORDER = [Ended.FOUND, Ended.MET, Ended.GOAL, Ended.SETTLED, Ended.LIMIT, Ended.DOOR, Ended.HORIZON]


@BOTH
def test_the_first_reason_that_applies_ends_an_attempt(of):
    for flags in product([False, True], repeat=7):
        expected = next((why for why, flag in zip(ORDER, flags, strict=True) if flag), Ended.GOES_ON)
        assert of.why_ended(*flags) == expected


def test_the_reasons_have_the_numbers_of_compiled_code():
    assert {why.name: int(why) for why in Ended} == {why.name: getattr(rules, why.name) for why in Ended}
    assert len({int(why) for why in Ended}) == len(Ended) == 10
    assert Ended.GOES_ON == 0


# rows 2, 3, 4 of some state: visits, needed, which is taken
CASES = {
    "nothing is needed": ([5, 0, 3], [0, 0, 0], NO_ROW),
    "all is there": ([5, 1, 3], [5, 1, 2], NO_ROW),
    "one is short": ([5, 1, 3], [5, 2, 3], 3),
    "the fewest visits, not the largest gap": ([4, 1, 3], [99, 2, 4], 3),
    "the first of equals": ([4, 3, 3], [5, 4, 9], 3),
    "the first of all": ([0, 0, 0], [1, 1, 1], 2),
    "fewer visits where nothing is needed do not count": ([7, 0, 8], [8, 0, 9], 2),
    "the last": ([7, 5, 0], [7, 5, 1], 4),
}


@BOTH
@pytest.mark.parametrize("case", CASES)
def test_which_under_sampled_row_is_taken(of, case):
    visits, needed, expected = CASES[case]
    # rows of other states, before and after, have fewer visits and need more
    visits, needed = np.array([0, 0, *visits, 0]), np.array([9, 9, *needed, 9])
    assert of.under_sampled_row(2, 5, visits, needed) == expected
    if of is rules:
        assert rules.under_sampled_row(2, 5, visits.tolist(), needed.tolist()) == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6))
def test_the_under_sampled_row_by_definition(rows):
    short = [(have, row) for row, (have, need) in enumerate(rows) if have < need]
    expected = min(short)[1] if short else NO_ROW
    visits, needed = np.array(rows).T
    assert rules.under_sampled_row(0, len(rows), visits, needed) == expected
    assert _kernels.under_sampled_row(0, len(rows), np.ascontiguousarray(visits), np.ascontiguousarray(needed)) == (
        expected
    )


# probabilities of the rows 1, 2, ..., uniform number, which row it draws
THIRD, LAST = 1 / 3, 1 - 2.0**-53
DRAWS = [
    ([0.25, 0.5, 0.25], 0.0, 1),
    ([0.25, 0.5, 0.25], 0.249, 1),
    ([0.25, 0.5, 0.25], 0.25, 2),  # the interval of a row has its lower end
    ([0.25, 0.5, 0.25], 0.749, 2),
    ([0.25, 0.5, 0.25], 0.75, 3),
    ([0.25, 0.5, 0.25], LAST, 3),
    ([1.0], 0.0, 1),
    ([1.0], LAST, 1),
    ([0.0, 1.0, 0.0], 0.0, 2),  # what has no probability is never drawn
    ([0.0, 1.0, 0.0], LAST, 2),
    ([1 - 1e-7, 0.0], LAST, 1),  # nor is it where the numbers do not quite sum to one
    ([0.1] * 10, LAST, 10),  # which sum to a little less
    ([THIRD] * 3, LAST, 3),
    ([0.5, 0.4], 0.5, INVALID_ROW),  # too little in all, whatever is drawn
    ([0.5, 0.4], 0.95, INVALID_ROW),
    ([0.5, 0.6], 0.2, INVALID_ROW),  # too much
    ([0.5, 0.4999999], LAST, 2),  # within rounding, as it may have been computed in single precision
    ([0.0, 0.0], 0.0, INVALID_ROW),
    ([-0.5, 1.5], 0.0, INVALID_ROW),
    ([0.5, -0.1, 0.6], 0.7, INVALID_ROW),
    ([0.5, np.nan], 0.7, INVALID_ROW),
    ([np.nan, 1.0], 0.7, INVALID_ROW),
]


@BOTH
@pytest.mark.parametrize(("probability", "u", "expected"), DRAWS)
def test_which_row_is_drawn(of, probability, u, expected):
    numbers = np.array([7.0, *probability, 7.0])  # those of other states are not looked at
    assert of.drawn_row(1, 1 + len(probability), numbers, u) == expected
    if of is rules:
        assert rules.drawn_row(1, 1 + len(probability), numbers.tolist(), u) == expected


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any), st.floats(0, LAST))
def test_the_row_drawn_by_definition(weights, u):
    """The first whose cumulative probability exceeds u, up to rounding; plain and compiled bit for bit the same."""
    p = np.array(weights) / sum(weights)
    row = rules.drawn_row(0, len(p), p.tolist(), u)
    assert row == _kernels.drawn_row(0, len(p), p, u)
    assert weights[row] > 0
    cumulative = np.cumsum(p)
    assert cumulative[row] - p[row] <= u + 1e-12
    assert cumulative[row] > u - 1e-12
