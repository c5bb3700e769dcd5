"""The families of the evidence of few samples, and its verdicts."""

import numpy as np
import pytest

import gosprl
from evidence.families import few_states, garnet, maze, queues, shuffled, tree
from evidence.few_samples import against_before, against_target, ratios


@pytest.mark.parametrize(
    "mdp", [maze(4, 1), queues(3), tree(2, 3), garnet(12, 2, 0)], ids=["maze", "queues", "tree", "garnet"]
)
def test_other_numbers_are_the_same_system(mdp):
    other = shuffled(mdp, 3)
    assert not np.array_equal(mdp.succ, other.succ)
    assert gosprl.fluid_limit(other, 1) == pytest.approx(gosprl.fluid_limit(mdp, 1))
    assert np.sort(other.hitting_times(), axis=None) == pytest.approx(np.sort(mdp.hitting_times(), axis=None))


def test_families_by_hand():
    succ, p = queues(2).p(3, 0)  # both full, the first is served: it stays full if that fails, or if one arrives
    assert dict(zip(succ.tolist(), p, strict=True)) == pytest.approx({1: 0.8 * 0.7, 3: 1 - 0.8 * 0.7})
    succ, p = tree(1, 2, aim=0.9).p(0, 1)
    assert dict(zip(succ.tolist(), p, strict=True)) == pytest.approx({1: 0.05, 2: 0.95})
    assert maze(5, 0).is_communicating()
    assert maze(5, 0, slip=0.0).succ.tolist() != maze(5, 1, slip=0.0).succ.tolist()


def test_a_twentieth_of_the_states_is_needed():
    need = few_states(maze(7, 0))
    assert np.count_nonzero(need.any(axis=1)) == 2
    assert set(np.unique(need)) == {0, 50}


def test_verdicts():
    near = np.array([1.0, 1.2, 1.1, 1.1])
    assert against_target(near, 1.2, 0.1) == "1.2: met"
    assert against_target(near, 1.05, 0.1) == "1.05: undecided"
    assert against_target(near, 0.9, 0.1) == "0.9: missed"
    assert against_before(near, near).endswith("met")
    assert against_before(1.2 * near, near).endswith("missed")


def test_ratios_are_paired_by_seed():
    found = ratios(lambda seed: maze(3, seed), "one", 2)
    assert found.shape == (3, 2)
    assert found.min() > 0.9
