"""Record: every event is written once, in order; what is refused leaves nothing behind."""

import numpy as np
import pytest

from gosprl import EmpiricalModel
from gosprl.collecting.record import BUFFER, Record
from gosprl.collecting.requirements import Fixed
from gosprl.envs import make
from gosprl.errors import GosprlError, InputError


def made(S, A, pair, state, **options):
    need = Fixed(np.asarray(pair, dtype=np.int64), np.asarray(state, dtype=np.int64))
    record = Record(EmpiricalModel(S, A), need, **options)
    record.update_need()
    return record


def test_a_reset_is_no_step_but_counts():
    record = made(2, 1, [0, 0], [0, 0])
    record.step(0, 1, 1.0, True)
    record.reset(1, 0)
    record.flush()
    assert (record.steps, record.resets) == (1, 1)
    assert record.model.visits.tolist() == [1, 1]
    assert record.model.reward_sum.tolist() == [1, 0]


def test_steps_find_states_and_terminals():
    record = made(3, 2, np.ones(6), np.zeros(3))
    record.step(0, 1, 0.5, False)
    record.step(2, 2, 0.25, True)
    record.flush()
    model = record.model
    assert model.is_discovered.tolist() == [False, True, True]
    assert model.discovered == [1, 2]
    assert model.terminal.tolist() == [False, False, True]
    assert model.enabled.tolist() == [True] * 5 + [False]
    assert model.reward_sum.tolist() == [0.5, 0, 0.25, 0, 0, 0]


def test_starts_and_resets_find_states():
    record = made(3, 1, np.ones(3), np.zeros(3))
    record.start(2)
    record.step(2, 1, 0.0, True)
    record.reset(1, 0)
    assert record.model.discovered == [2, 1, 0]


def test_what_is_observed_finds_nothing():
    """Transitions made elsewhere count, but no walk came to those states."""
    record = made(2, 1, [1, 1], [0, 0])
    record.observe(0, 1, 0.5)
    assert (record.steps, record.model.visits.tolist(), record.model.discovered) == (1, [1, 0], [])


@pytest.mark.parametrize("flushed", [False, True])
def test_a_state_cannot_both_end_an_episode_and_not(flushed):
    record = made(2, 1, [9, 9], [0, 0])
    record.step(0, 1, 0.0, False)
    record.step(1, 0, 0.0, False)  # state 1 was left by an action
    if flushed:
        record.flush()
    with pytest.raises(GosprlError, match="state 1 was entered both with and without termination"):
        record.step(0, 1, 0.0, True)
    record = made(2, 1, [9, 9], [0, 0])
    record.step(0, 1, 0.0, True)
    with pytest.raises(GosprlError, match="state 1 was entered both with and without termination"):
        record.step(0, 1, 0.0, False)
    for begin in (lambda: record.start(1), lambda: record.reset(1, 1)):
        with pytest.raises(GosprlError, match="state 1 was entered both with and without termination"):
            begin()
    assert (record.steps, record.resets) == (1, 0)


def test_rows_of_every_length_fit():
    """More successors than the first pool has room for."""
    mdp = make("garnet", states=60, actions=2, branching=60, seed=0)
    record = Record(EmpiricalModel.over(mdp.rows), Fixed(np.ones(120, int), np.zeros(60, int)))
    record.update_need()
    rng, number = np.random.default_rng(1), np.zeros((120, 60), dtype=int)
    for row, s_next in zip(rng.integers(0, 120, 5000), rng.integers(0, 60, 5000), strict=True):
        record.step(int(row), int(s_next), 0.0, False)
        number[row, s_next] += 1
    record.flush()
    s, a, s_next, count = record.model.transitions()
    assert np.array_equal(number[s * 2 + a, s_next], count)
    assert count.sum() == number.sum()


def test_visits_are_known_before_they_are_counted():
    """Noted events are counted when there are many; `visits` has them at once."""
    record, rng, N = made(2, 2, [9] * 4, [0, 0]), np.random.default_rng(0), np.zeros(4, dtype=int)
    for t in range(1, BUFFER + 3):
        row = int(rng.integers(4))
        record.step(row, int(rng.integers(2)), 0.0, False)
        N[row] += 1
        assert record.visits(row) == N[row]
        assert record.visits_of(2, 4) == N[2:].tolist()
        assert record.model.visits.sum() == (0 if t < BUFFER else BUFFER)
    record.flush()
    assert record.model.visits.tolist() == N.tolist()
    assert record.visits_of(0, 4) == N.tolist()


def test_a_transition_that_is_not_possible_is_not_noted():
    record = made(3, 2, np.full(6, 9), np.zeros(3))
    record.model.restrict(lambda s, a: [0, 1])
    record.step(0, 1, 0.5, False)
    words = r"^successors: \(s, a\) = \(0, 1\) led to state 2, which is not among its candidates \[0, 1\]$"
    for terminated in (False, True):
        with pytest.raises(GosprlError, match=words):
            record.step(1, 2, 0.5, terminated)
    with pytest.raises(GosprlError, match=words):
        record.observe(1, 2, 0.0)
    record.step(1, 0, 0.5, False)
    record.flush()
    model = record.model
    assert (record.steps, record.resets, model.visits.tolist()) == (2, 0, [1, 1, 0, 0, 0, 0])
    assert (model.is_discovered.tolist(), model.terminal.any()) == ([True, True, False], False)


def test_a_reset_that_is_not_possible():
    record = made(3, 1, [9, 9, 9], np.zeros(3))
    record.model.restrict(lambda s, a: [1, 2])
    record.step(0, 2, 0.0, True)
    with pytest.raises(
        GosprlError, match=r"= \(2, 0\), which stands for the reset of a terminal state, led to state 0"
    ):
        record.reset(2, 0)
    assert (record.steps, record.resets) == (1, 0)


def test_what_was_noted_before_the_successors_were_known():
    record = made(3, 1, [9, 9, 9], np.zeros(3))
    record.step(0, 1, 0.0, False)
    record.step(0, 2, 0.0, False)
    record.model.restrict(lambda s, a: [0, 1])
    with pytest.raises(GosprlError, match=r"\(s, a\) = \(0, 0\) led to state 2"):
        record.flush()
    assert record.model.visits.tolist() == [1, 0, 0]


def test_rewards_where_they_must_be():
    record = made(2, 2, [9] * 4, [0, 0], rewards=(0.0, 1.0))
    record.step(0, 1, 0.0, False)
    record.step(0, 1, 1.0, False)
    for reward in (-1e-9, 1.5):
        with pytest.raises(InputError, match=r"rewards: .*\[0, 1\], got .*\(s, a\) = \(1, 1\); .*TransformReward"):
            record.step(3, 0, reward, False)
    record.rewards = made(2, 2, [9] * 4, [0, 0]).rewards  # anywhere
    for reward in (np.nan, np.inf, -np.inf):
        with pytest.raises(InputError, match=r"rewards: expected finite numbers, got .*\(s, a\) = \(1, 1\)"):
            record.step(3, 0, reward, False)
    assert record.steps == 2
    record.rewards = (0.5, 1.0)
    record.reset(3, 0)  # a reset earns nothing, which need not be a reward that is allowed
    record.flush()
    assert record.model.visits.tolist() == [2, 0, 0, 1]


def test_the_first_reward_above_the_threshold():
    record = made(3, 2, np.full(6, 9), np.zeros(3), threshold=0.5)
    record.step(1, 2, 0.5, False)
    assert record.found is None
    record.step(1, 2, 0.75, False)
    record.step(0, 0, 2.0, False)
    assert record.found == (0, 1, 2, 0.75, 2)


def test_a_reset_is_never_found():
    record = made(3, 2, np.full(6, 9), np.zeros(3), threshold=-0.5)
    record.step(1, 2, -1.0, True)
    record.reset(4, 0)
    assert (record.found, record.resets) == (None, 1)


def test_a_compiled_walk_is_written_in_one_call():
    """Its steps are counted already: what is written are their number and the points of the curve."""
    record = made(4, 1, [1] * 4, [0] * 4)
    record.steps = 10
    record.walk(7, np.array([[2, 3], [7, 1]]))
    assert record.steps == 17
    assert record.curve == [(0, 0.0), (12, 0.25), (17, 0.75)]
