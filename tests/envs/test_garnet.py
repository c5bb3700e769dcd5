"""Garnets: tests of fit of their distributions, with a fixed seed and a false-alarm level of 1e-6."""

import sys
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from gosprl.envs.garnet import garnet
from gosprl.errors import InputError

LEVEL = 1e-6


def drawn_rows(mdp, branching):
    """Return the next states and probabilities of each pair as drawn, before mixing in the start."""
    for r in range(len(mdp.rows)):
        states = mdp.succ[mdp.ptr[r] : mdp.ptr[r + 1]]
        p = mdp.prob[mdp.ptr[r] : mdp.ptr[r + 1]]
        if len(states) == branching + 1:
            assert states[0] == 0
            assert p[0] == pytest.approx(0.001)
            states, p = states[1:], p[1:] / 0.999
        yield states, p


# 4 * 4 <= 20: drawn by rejection; 8 * 8 > 20: row by row
@pytest.mark.parametrize("branching", [1, 4, 8, 20])
def test_shape(branching):
    mdp = garnet(20, 3, branching)
    assert (mdp.num_states, mdp.num_actions, len(mdp.rows), mdp.start) == (20, 3, 60, 0)
    for r, size in enumerate(np.diff(mdp.ptr)):
        states, p = mdp.p(*mdp.rows.pair(r))
        assert size in (branching, branching + 1)
        assert states[0] == 0
        assert p[0] >= 0.001 * (1 - 1e-12)
        assert p.sum() == pytest.approx(1)


def test_mixing_is_done_only_where_the_start_is_too_rare():
    mdp = garnet(4, 500, 4)  # every row has the start among its next states
    p_start = mdp.prob[mdp.ptr[:-1]]
    assert np.all(np.diff(mdp.ptr) == 4)
    # Unmixed, P(p < 0.001) = 1 - 0.999^3: about 6 of 2000 rows. They end up in [0.001, 0.001 + 0.999 * 0.001).
    assert 0 < np.sum(p_start < 0.002) < 30
    assert p_start.min() >= 0.001


@pytest.mark.parametrize(("states", "branching"), [(9, 3), (6, 2), (5, 3), (4, 4)])
def test_every_set_of_next_states_is_as_likely(states, branching):
    mdp = garnet(states, 3000, branching, seed=5)
    subsets = dict.fromkeys(combinations(range(states), branching), 0)
    for drawn, _ in drawn_rows(mdp, branching):
        subsets[tuple(drawn.tolist())] += 1
    assert len(subsets) == 1 or stats.chisquare(list(subsets.values())).pvalue > LEVEL


def test_probabilities_are_gaps_of_sorted_uniforms():
    # The gaps of two uniforms are, each, Beta(1, 2); no two rows share randomness.
    first = [p[0] for states, p in drawn_rows(garnet(50, 100, 3, seed=2), 3) if states[0] != 0]
    assert stats.kstest(first, stats.beta(1, 2).cdf).pvalue > LEVEL
    assert stats.kstest(first, stats.beta(1, 1.5).cdf).pvalue < LEVEL  # the test would see a wrong law


@pytest.mark.parametrize("branching", [2, 9])
def test_seeds(branching):
    def arrays(seed):
        mdp = garnet(30, 2, branching, seed)
        return mdp.succ.tolist(), mdp.prob.tolist()

    assert arrays(3) == arrays(3) == arrays(np.random.default_rng(3))
    assert arrays(3) != arrays(4)


def test_blocks_do_not_show(monkeypatch):
    whole = garnet(30, 3, 4)
    monkeypatch.setattr(sys.modules["gosprl.envs.garnet"], "BLOCK", 13)  # three pairs
    pieced = garnet(30, 3, 4)
    assert pieced.rows.same(whole.rows)
    for name in ("ptr", "succ", "prob"):
        np.testing.assert_array_equal(getattr(pieced, name), getattr(whole, name))


def test_the_paper_sizes_are_communicating():
    assert garnet(10, 5, 5).is_communicating()
    assert garnet(50, 5, 25).is_communicating()


def test_a_large_one():
    mdp = garnet(20_000, 5, 5)
    assert len(mdp.rows) == 100_000
    assert set(np.diff(mdp.ptr)) == {5, 6}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 2, 1), r"^states: expected a whole number >= 1, got 0"),
        ((3, -1, 1), r"^actions: expected a whole number >= 1, got -1"),
        ((3, 2, 0), r"^branching: expected a whole number >= 1, got 0"),
        ((3, 2, 4), r"^branching: expected at most the number of states, 3, got 4"),
        ((3, 2, 2, -1), r"^seed: expected a whole number >= 0 or a numpy Generator, got -1"),
        ((3, 2, 2, "x"), r"^seed: "),
    ],
)
def test_rejects(arguments, message):
    with pytest.raises(InputError, match=message):
        garnet(*arguments)
