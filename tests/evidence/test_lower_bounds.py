"""The short version of evidence.lower_bounds: the bounds hold, three times the bounds do not.

1000 walks; a bound that holds is rejected with probability at most 1e-6 (evidence.lower_bounds), and so is a simulation
of what the exact probability says.
"""

import numpy as np
import pytest
from scipy.stats import binomtest, nbinom

from evidence.lower_bounds import FALSE_ALARM, chain, modified, p_value, tries_law, walk, wheel, within
from gosprl.envs.lower_bounds import two_state_chain

RUNS = 1000


def check(bound, steps, exact, strictly=False):
    """That the claim holds, three times it does not, and the share is as it should be."""
    long, too_long = (steps > k * bound if strictly else steps >= k * bound for k in (1, 3))
    assert p_value(long.sum(), RUNS) >= FALSE_ALARM
    assert p_value(too_long.sum(), RUNS) < FALSE_ALARM
    assert exact >= 0.5
    assert binomtest(int(long.sum()), RUNS, exact).pvalue >= FALSE_ALARM


@pytest.mark.parametrize(("q", "need"), [(0.1, 5), (0.02, 5), (0.1, 20)])
def test_chain(q, need):
    check(*chain(q, need, RUNS))


@pytest.mark.parametrize(("epsilons", "need"), [((0.5, 0.05), (9, 9)), ((0.5, 0.2, 0.1), (11, 12, 13))])
def test_wheel(epsilons, need):
    check(*wheel(epsilons, need, RUNS))


@pytest.mark.parametrize(("name", "need"), [("toy3", 8), ("riverswim6", 12)])
def test_modified(name, need):
    bound, steps, exact, least = modified(name, need, RUNS)
    check(bound, steps, exact, strictly=True)
    assert 0.5 <= least <= exact + 1e-12


def test_steps_of_a_walk_are_those_of_the_negative_binomial():
    """Mean steps to five samples of y: five crossings and five steps back; false-alarm rate 1e-6."""
    q, need = 0.2, 5
    steps = walk(two_state_chain(q), [0, need], lambda s, left: 0 * s, 4000, seed=1)
    deviation = nbinom.std(need, q) / len(steps) ** 0.5
    assert abs(steps.mean() - need * (1 / q + 1)) < 4.9 * deviation
    assert steps.min() >= 2 * need


def test_exact_probabilities():
    """Backward induction over samples to come, and the law of the tries of one rim state, are negative binomials."""
    q, need = 0.3, 6
    for steps in (11, 12, 20, 40):
        assert within(two_state_chain(q), 1, need, steps) == pytest.approx(nbinom.cdf(steps - 2 * need, need, q))
    law = tries_law([q], [need])
    np.testing.assert_allclose(law[: 3 * need], nbinom.pmf(np.arange(3 * need) - need, need, q))
    assert tries_law([q, 0.1], [6, 9]).sum() == pytest.approx(1)
