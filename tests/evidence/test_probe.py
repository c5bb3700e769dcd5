"""Probes, at small size: few false alarms, power on what is not Markov, forecasts within their factor."""

import math

import numpy as np
import pytest

import gosprl
from evidence.probe import LEVEL, allowed, collected, judged, markov_systems, probed, rejected
from evidence.probed import TEN, Clock, HiddenRing


def test_hardly_a_false_alarm():
    """40 Markov runs: more than allowed at level 0.01 has a probability below 1e-3."""
    evidence = []
    for make in markov_systems().values():
        tests = [gosprl.probe(make(s), need=5, seed=s, max_steps=1500).aliasing for s in range(8)]
        evidence += [max(test.evidence, test.evidence_of_rewards) for test in tests]
    assert rejected(np.array(evidence), LEVEL) <= allowed(len(evidence), LEVEL)


@pytest.mark.parametrize("make", [HiddenRing, Clock])
def test_what_is_not_markov_is_found_in_few_steps(make):
    assert all(gosprl.probe(make(), seed=s, max_steps=500).aliasing.found for s in range(5))


@pytest.mark.parametrize("name", ["FrozenLake", "Taxi", "random starts", "hidden ring", "clock", "slow", "broken"])
def test_forecasts(name):
    truth = collected(TEN[name], 0)
    _, _, good, _ = judged(probed(TEN[name], 100), truth)
    assert good
    assert math.isnan(truth) == (name == "broken")
