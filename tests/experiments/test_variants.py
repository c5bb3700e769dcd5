"""The numbers that show what the variants of GOSPRL do."""

import numpy as np
import pytest

from gosprl.experiments import variants
from gosprl.experiments.algorithms import ALGORITHMS
from gosprl.experiments.sweep import Case, Job, Run, execute
from gosprl.strategies.goals import GOALS

RUN = Run(0, 50, True, None, np.array([(0.0, 0.0), (12.0, 0.5), (50.0, 1.0)]), ended=8, reached=6, uneven=0.3)


def test_measures_by_hand():
    assert {title: measure(RUN) for title, measure in variants.MEASURES.items()} == {
        "steps": 50,
        "unevenness of visits": 0.3,
        "share of successful attempts": 0.75,
        "steps of the initial phase": 12,
    }


def test_without_an_attempt_or_a_state_that_is_met():
    run = Run(0, 50, False, 50, np.array([(0.0, 0.0)]))
    assert variants.success(run) == 0
    assert variants.initial_phase(run) == 50


def test_every_selection_of_goals_and_both_costs_are_shown():
    options = [ALGORITHMS[name] for name in variants.VARIANTS.algorithms]
    assert {each.options.get("goals", "all") for each in options} == set(GOALS)
    assert {each.visit_costs for each in options} == {"", "square", "kl"}


@pytest.mark.parametrize("name", variants.VARIANTS.algorithms)
def test_every_variant_meets_the_need(name):
    run = execute(Job(Case("river", "River", "riverswim6", need=2), name, 0))
    assert run.met
    assert 0 < variants.success(run) <= 1
    assert 0 < variants.initial_phase(run) < run.steps
