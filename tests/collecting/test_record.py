"""Record: every event is written once, in order; what is refused leaves nothing behind."""

import numpy as np
import pytest

from gosprl import EmpiricalModel
from gosprl.collecting.record import BUFFER, Record
from gosprl.collecting.requirements import Fixed
from gosprl.envs import make
from gosprl.errors import GosprlError, InputError


def made(S, A, pair, state, resets="never", **options):
    need = Fixed(np.asarray(pair, dtype=np.int64), np.asarray(state, dtype=np.int64))
    model = EmpiricalModel(S, A)
    model.allow_resets(resets)
    record = Record(model, need, **options)
    record.update_need()
    return record


def visits(record, S, A):
    """Of the states known beforehand."""
    return record.model.visits[: S * A].tolist()


def test_an_ending_leads_to_the_final_copy_and_on_to_the_reset():
    record = made(2, 1, [0, 0], [0, 0], "terminal")
    at_reset = record.step(0, 1, 1.0, True)
    record.reset(0)
    record.flush()
    model = record.model
    final = model.states.final(1)
    assert at_reset == model.states.reset
    assert (record.steps, visits(record, 2, 1)) == (1, [1, 0])
    assert np.column_stack(model.transitions()).tolist() == [[0, 0, final, 1]]
    assert np.column_stack(model.starts()).tolist() == [[0, 1]]
    assert [model.visits[model.rows.ptr[s]] for s in (final, model.states.reset)] == [1, 1]
    assert (model.reward_sum.sum(), model.reward_sum[0]) == (1, 1)


def test_steps_find_states_and_endings_do_not():
    record = made(3, 2, np.ones(6), np.zeros(3), "terminal")
    record.step(0, 1, 0.5, False)
    record.step(2, 2, 0.25, True)
    record.flush()
    model = record.model
    assert model.is_discovered.nonzero()[0].tolist() == model.discovered == [1]
    assert (model.terminal[:3].any(), model.states.finals) == (False, [model.states.final(2)])
    assert model.terminal[[model.states.final(2), model.states.reset]].all()
    assert model.enabled[:6].all()
    assert model.reward_sum[:6].tolist() == [0.5, 0, 0.25, 0, 0, 0]


def test_starts_and_resets_find_states():
    record = made(3, 1, np.ones(3), np.zeros(3), "terminal")
    record.reset(record.arrive_at(2))
    record.step(2, 1, 0.0, True)
    record.reset(record.arrive_at(0))
    record.flush()
    assert record.model.discovered == [2, 0]
    assert np.column_stack(record.model.starts()).tolist() == [[0, 1], [2, 1]]


def test_what_is_observed_finds_nothing():
    """Transitions made elsewhere count, but no walk came to those states."""
    record = made(2, 1, [1, 1], [0, 0])
    record.observe(0, 1, 0.5)
    assert (record.steps, record.model.visits.tolist(), record.model.discovered) == (1, [1, 0], [])


@pytest.mark.parametrize("flushed", [False, True])
def test_an_observation_can_end_one_episode_and_not_another(flushed):
    record = made(2, 1, [9, 9], [0, 0], "terminal")
    for terminated in (False, True, True, False):
        record.step(0, 1, 0.0, terminated)
        if flushed:
            record.flush()
    record.flush()
    final = record.model.states.final(1)
    assert np.column_stack(record.model.transitions()).tolist() == [[0, 0, 1, 2], [0, 0, final, 2]]


def test_an_ending_where_there_is_none():
    record = made(2, 1, [9, 9], [0, 0])
    words = "^resets: expected no ending with resets='never', but an episode ended with 1 at step 1;"
    with pytest.raises(GosprlError, match=words):
        record.step(0, 1, 0.0, True)
    record.flush()
    assert (record.steps, visits(record, 2, 1)) == (0, [0, 0])


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


@pytest.mark.parametrize("resets", ["never", "terminal"])
def test_a_transition_that_is_not_possible_is_not_noted(resets):
    record = made(3, 2, np.full(6, 9), np.zeros(3), resets)
    record.model.restrict(lambda s, a: [0, 1])
    record.step(0, 1, 0.5, False)
    words = r"^successors: \(s, a\) = \(0, 1\) led to state 2, which is not among its candidates \[0, 1\]$"
    for write in (lambda: record.step(1, 2, 0.5, False), lambda: record.observe(1, 2, 0.0)):
        with pytest.raises(GosprlError, match=words):
            write()
    if resets == "terminal":  # each candidate may be the end of an episode, others may not
        with pytest.raises(
            GosprlError, match=r"^successors: \(s, a\) = \(0, 1\) led to state 2 at the end of an episode, "
        ):
            record.step(1, 2, 0.5, True)
        record.step(0, 1, 0.5, True)
    record.step(1, 0, 0.5, False)
    record.flush()
    ended = resets == "terminal"
    assert (record.steps, visits(record, 3, 2)) == (2 + ended, [1 + ended, 1, 0, 0, 0, 0])
    assert record.model.is_discovered[:3].tolist() == [True, True, False]


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
    record.flush()
    assert record.model.visits.tolist() == [2, 0, 0, 0]


def test_a_reset_earns_nothing_which_need_not_be_a_reward_that_is_allowed():
    record = made(2, 2, [9] * 4, [0, 0], "terminal", rewards=(0.5, 1.0))
    record.step(0, 1, 0.5, True)
    record.reset(0)
    record.flush()
    assert (record.model.starts()[1].tolist(), record.model.reward_sum.sum()) == ([1], 0.5)


def test_the_first_reward_above_the_threshold():
    record = made(3, 2, np.full(6, 9), np.zeros(3), threshold=0.5)
    record.step(1, 2, 0.5, False)
    assert record.found is None
    record.step(1, 2, 0.75, False)
    record.step(0, 0, 2.0, False)
    assert record.found == (0, 1, 2, 0.75, 2)


def test_a_reset_is_never_found():
    record = made(3, 2, np.full(6, 9), np.zeros(3), "terminal", threshold=-0.5)
    record.step(1, 2, -1.0, True)
    record.reset(0)
    assert record.found is None


def test_a_compiled_walk_is_written_in_one_call():
    """Its steps are counted already: what is written are their number and the points of the curve."""
    record = made(4, 1, [1] * 4, [0] * 4)
    record.steps = 10
    record.walk(7, np.array([[2, 3], [7, 1]]))
    assert record.steps == 17
    assert record.curve == [(0, 0.0), (12, 0.25), (17, 0.75)]
