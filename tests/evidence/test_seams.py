"""The short version of `make evidence`: no answer of a route is false, and the twins show that one could be.

Two runs a route at delta 0.1; sets hold much more often than they promise: of the 200 runs a route of the evidence at
most one is false. Of the runs of a twin nearly half or more are (`evidence/results/seams.md`): none of TWINS has
probability 0.003 at most.
"""

import pytest

from evidence.seams import ROUTES

TWINS = 10


@pytest.mark.parametrize("name", ROUTES)
def test_no_answer_is_false(name):
    assert not any(ROUTES[name].is_false(seed) for seed in range(2))


@pytest.mark.parametrize("name", ROUTES)
def test_what_a_route_must_not_do_makes_answers_false(name):
    assert any(ROUTES[name].twin(seed) for seed in range(TWINS))
