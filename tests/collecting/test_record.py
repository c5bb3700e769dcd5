"""Record: what is met and missing, against counting it all anew after every step."""

import numpy as np
import pytest

from gosprl import EmpiricalModel
from gosprl.collecting.record import Ended, Record
from gosprl.collecting.requirements import Fixed
from gosprl.envs import make
from gosprl.errors import GosprlError, InputError
from gosprl.strategies.base import Attempt

FAR = np.iinfo(np.int64).max


def made(S, A, pair, state, rng=None):
    need = Fixed(np.asarray(pair, dtype=np.int64), np.asarray(state, dtype=np.int64))
    record = Record(EmpiricalModel(S, A), need, rng or np.random.default_rng(0))
    record.update_need()
    return record


def attempt(record, goals=(), limit=None, horizon=FAR, policy=None):
    S, R = record.model.num_states, len(record.model.rows)
    policy = np.zeros(S, dtype=np.int64) if policy is None else policy
    mask = np.isin(np.arange(S), goals)
    return Attempt(policy, mask, np.full(R, FAR) if limit is None else np.array(limit), horizon)


def missing(N, pair, state):
    """[(state, action or -1, needed, have)] by definition; N is [S, A]."""
    S, A = N.shape
    pairs = [(s, a, pair[s, a], N[s, a]) for s in range(S) for a in range(A) if N[s, a] < pair[s, a]]
    return pairs + [(s, -1, state[s], N[s].sum()) for s in range(S) if N[s].sum() < state[s]]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kinds", [(1, 0), (0, 1), (1, 1)])
def test_what_is_met_is_known_after_every_step(seed, kinds):
    rng = np.random.default_rng([seed, *kinds])
    S, A = 4, 3
    pair, state = rng.integers(0, 5, (S, A)) * kinds[0], rng.integers(0, 9, S) * kinds[1]
    record = made(S, A, pair.ravel(), state)
    N, walk = np.zeros((S, A), dtype=int), attempt(record)
    curve = [(0, (S - len({item[0] for item in missing(N, pair, state)})) / S)]
    for t in range(1, 200):
        s, a = rng.integers(S), rng.integers(A)
        record.add(int(s * A + a), int(rng.integers(S)), 0.0)
        N[s, a] += 1
        items = missing(N, pair, state)
        # "met" is said by the step that meets it; later steps may be told whatever is convenient
        ended = record.ended(walk, int(s * A + a), 0, t)
        met = 1 - len({item[0] for item in items}) / S
        if met != curve[-1][1]:
            curve.append((t, met))
            assert (ended == Ended.MET) == (not items)
        elif items:
            assert ended is None
        if t % 10 == 0:
            assert record.unmet().tolist() == items
            assert record.met == (not items)
            assert record.proportion_met == pytest.approx(met)
    assert record.steps == 199
    assert [step for step, _ in record.events] == [step for step, _ in curve]
    assert [met for _, met in record.events] == pytest.approx([met for _, met in curve])
    record.flush()
    assert record.model.visits.tolist() == N.ravel().tolist()


def test_needs_that_change():
    class Changing:
        pair, state = np.array([2, 0]), np.array([0, 3])
        told = None

        def update(self, model, rows):
            self.told = sorted(rows.tolist())

    need = Changing()
    record = Record(EmpiricalModel(2, 1), need, np.random.default_rng(0))
    record.update_need()
    assert need.told == []
    assert record.unmet().tolist() == [(0, 0, 2, 0), (1, -1, 3, 0)]
    record.add(0, 1, 0.0)
    record.add(0, 1, 0.0)
    record.update_need()
    assert need.told == [0]
    assert record.unmet().tolist() == [(1, -1, 3, 0)]
    need.pair = np.array([5, 1])  # grows
    assert record.need is need
    record.update_need()
    assert need.told == []
    assert record.unmet().tolist() == [(0, 0, 5, 2), (1, 0, 1, 0), (1, -1, 3, 0)]
    need.pair, need.state = np.array([2, 0]), np.array([0, 0])  # shrinks
    record.update_need()
    assert record.met
    assert record.unmet().tolist() == []
    assert record.events == [(0, 0.0), (2, 0.5), (2, 0.0), (2, 1.0)]


def test_a_reset_is_no_step_but_counts():
    record = made(2, 1, [0, 0], [0, 0])
    record.add(0, 1, 1.0)
    record.add(1, 0, 0.0, step=False)
    record.flush()
    assert (record.steps, record.resets) == (1, 1)
    assert record.model.visits.tolist() == [1, 1]


# (state reached, steps made, visits of the row) -> why the attempt is over; goal 1, limit 3, horizon 5
@pytest.mark.parametrize(
    ("s_next", "made_", "visits", "why"),
    [
        (0, 1, 1, None),
        (1, 1, 1, Ended.GOAL),
        (0, 1, 3, None),
        (0, 1, 4, Ended.LIMIT),
        (0, 5, 1, Ended.HORIZON),
        (1, 1, 4, Ended.GOAL),
        (0, 5, 4, Ended.LIMIT),
        (1, 5, 4, Ended.GOAL),
        (1, 5, 7, Ended.MET),
    ],
)
def test_why_an_attempt_is_over(s_next, made_, visits, why):
    record = made(2, 1, [7, 0], [0, 0])
    walk = attempt(record, goals=[1], limit=[3, FAR], horizon=5)
    for _ in range(visits):
        record.add(0, s_next, 0.0)
    assert record.ended(walk, 0, s_next, made_) is why


def test_choose():
    record = made(2, 3, np.ones(6), [0, 0], np.random.default_rng(5))
    assert record.choose(attempt(record, policy=np.array([2, -1])), 0) == 2
    assert record.choose(attempt(record, policy=np.array([2, -1])), 1) == -1
    probabilities = np.array([1.0, 0, 0, 0.2, 0.0, 0.8])
    walk = attempt(record, policy=probabilities)
    uniforms = np.random.default_rng(5).random(40)  # one a choice, none for a fixed policy
    assert [record.choose(walk, 1) for _ in uniforms] == [3 if u < 0.2 else 5 for u in uniforms]
    assert {record.choose(walk, 0) for _ in uniforms} == {0}


def test_arriving_finds_states_and_terminals():
    record = made(3, 2, np.ones(6), np.zeros(3))
    record.arrive(0, 1, 0.5, False)
    record.arrive(2, 2, 0.25, True)
    record.flush()
    model = record.model
    assert model.found.tolist() == [False, True, True]
    assert model.terminal.tolist() == [False, False, True]
    assert model.enabled.tolist() == [True] * 5 + [False]
    assert model.reward_sum.tolist() == [0.5, 0, 0.25, 0, 0, 0]


@pytest.mark.parametrize("flushed", [False, True])
def test_a_state_cannot_both_end_an_episode_and_not(flushed):
    record = made(2, 1, [9, 9], [0, 0])
    record.arrive(0, 1, 0.0, False)
    record.arrive(1, 0, 0.0, False)  # state 1 was left by an action
    if flushed:
        record.flush()
    with pytest.raises(GosprlError, match="state 1 was entered both with and without termination"):
        record.arrive(0, 1, 0.0, True)
    record = made(2, 1, [9, 9], [0, 0])
    record.arrive(0, 1, 0.0, True)
    with pytest.raises(GosprlError, match="state 1 was entered both with and without termination"):
        record.arrive(0, 1, 0.0, False)


def test_rows_of_every_length_fit():
    """More successors than the first pool has room for."""
    mdp = make("garnet", states=60, actions=2, branching=60, seed=0)
    record = Record(
        EmpiricalModel.over(mdp.rows), Fixed(np.ones(120, int), np.zeros(60, int)), np.random.default_rng(0)
    )
    record.update_need()
    rng, number = np.random.default_rng(1), np.zeros((120, 60), dtype=int)
    for row, s_next in zip(rng.integers(0, 120, 5000), rng.integers(0, 60, 5000), strict=True):
        record.add(int(row), int(s_next), 0.0)
        number[row, s_next] += 1
    record.flush()
    s, a, s_next, count = record.model.transitions()
    assert np.array_equal(number[s * 2 + a, s_next], count)
    assert count.sum() == number.sum()


def test_a_transition_that_is_not_possible_is_not_noted():
    record = made(3, 2, np.full(6, 9), np.zeros(3))
    record.model.restrict(lambda s, a: [0, 1])
    record.arrive(0, 1, 0.5, False)
    words = r"^successors: \(s, a\) = \(0, 1\) led to state 2, which is not among its candidates \[0, 1\]$"
    for terminated in (False, True):
        with pytest.raises(GosprlError, match=words):
            record.arrive(1, 2, 0.5, terminated)
    with pytest.raises(GosprlError, match=words):
        record.add(1, 2, 0.0)
    record.arrive(1, 0, 0.5, False)
    record.flush()
    model = record.model
    assert (record.steps, record.resets, model.visits.tolist()) == (2, 0, [1, 1, 0, 0, 0, 0])
    assert (model.found.tolist(), model.terminal.any()) == ([True, True, False], False)


def test_a_reset_that_is_not_possible():
    record = made(3, 1, [9, 9, 9], np.zeros(3))
    record.model.restrict(lambda s, a: [1, 2])
    record.arrive(0, 2, 0.0, True)
    with pytest.raises(
        GosprlError, match=r"= \(2, 0\), which stands for the reset of a terminal state, led to state 0"
    ):
        record.add(2, 0, 0.0, step=False)
    assert (record.steps, record.resets) == (1, 0)


def test_what_was_noted_before_the_successors_were_known():
    record = made(3, 1, [9, 9, 9], np.zeros(3))
    record.add(0, 1, 0.0)
    record.add(0, 2, 0.0)
    record.model.restrict(lambda s, a: [0, 1])
    with pytest.raises(GosprlError, match=r"\(s, a\) = \(0, 0\) led to state 2"):
        record.flush()
    assert record.model.visits.tolist() == [1, 0, 0]


@pytest.mark.parametrize("seed", range(6))
def test_changes_of_mind_are_those_of_the_set_of_states(seed):
    """Counted once for each look at which what is needed, not what was sampled, made another set of it unmet."""
    rng = np.random.default_rng(seed)
    S, A = 4, 2

    class Fickle:
        pair, state = np.zeros(S * A, dtype=np.int64), np.zeros(S, dtype=np.int64)

        def update(self, model, rows):
            few = rng.permutation(S * A)[: rng.integers(0, 3)]
            self.pair[few] = np.maximum(0, model.visits[few] + rng.integers(-2, 4, len(few)))
            state = int(rng.integers(S))
            self.state[state] = rng.integers(0, 30) if rng.random() < 0.3 else self.state[state]
            touched = np.union1d(few, [state * A])
            return None if rng.random() < 0.3 else touched

    def unmet():
        N = record.model.visits.reshape(S, A)
        return {item[0] for item in missing(N, need.pair.reshape(S, A), need.state)}

    need = Fickle()
    record, expected, moved = Record(EmpiricalModel(S, A), need, rng), 0, 0
    for _ in range(300):
        record.flush()
        before = unmet()
        numbers = need.pair.copy()
        record.update_need()
        expected += before != unmet()
        moved += before == unmet() and not np.array_equal(numbers, need.pair)
        assert record.ledger.scalars[3] == expected
        assert set(np.flatnonzero(record.ledger.unmet).tolist()) == unmet()
        for _ in range(rng.integers(0, 4)):
            record.add(int(rng.integers(S * A)), int(rng.integers(S)), 0.0)
        record.flush()
        assert record.ledger.scalars[3] == expected
    assert expected > 20
    assert moved > 20  # needs that are others for the same states


def test_rewards_where_they_must_be():
    record = made(2, 2, [9] * 4, [0, 0])
    record.rewards = (0.0, 1.0)
    record.arrive(0, 1, 0.0, False)
    record.arrive(0, 1, 1.0, False)
    for reward in (-1e-9, 1.5):
        with pytest.raises(InputError, match=r"rewards: .*\[0, 1\], got .*\(s, a\) = \(1, 1\); .*TransformReward"):
            record.arrive(3, 0, reward, False)
    record.rewards = made(2, 2, [9] * 4, [0, 0]).rewards  # anywhere
    for reward in (np.nan, np.inf, -np.inf):
        with pytest.raises(InputError, match=r"rewards: expected finite numbers, got .*\(s, a\) = \(1, 1\)"):
            record.arrive(3, 0, reward, False)
    assert record.steps == 2
    record.add(3, 0, 7.0, step=False)  # a reset earns nothing that counts
    record.flush()
    assert record.model.visits.tolist() == [2, 0, 0, 1]


def test_the_first_reward_above_the_threshold():
    record = Record(EmpiricalModel(3, 2), Fixed(np.full(6, 9), np.zeros(3, int)), np.random.default_rng(0), 0.5)
    record.update_need()
    walk = attempt(record, goals=[0, 1, 2])
    record.arrive(1, 2, 0.5, False)
    assert record.ended(walk, 1, 2, 1) is Ended.GOAL
    record.add(4, 0, 1.0, step=False)  # a reset
    assert record.found is None
    record.arrive(1, 2, 0.75, False)
    assert record.ended(walk, 1, 2, 2) is Ended.FOUND
    record.arrive(0, 0, 2.0, False)
    assert record.found == (0, 1, 2, 0.75, 2)
