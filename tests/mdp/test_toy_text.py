"""TabularMDP.from_gymnasium: Gymnasium's toy-text tables by hand, and from the environments themselves."""

from collections import defaultdict

import gymnasium as gym
import numpy as np
import pytest

import gosprl
from gosprl import TabularMDP


def table(name, **parameters):
    return gym.make(name, **parameters).unwrapped.P


def added_up(table, terminals, start):
    """Return {(s, a): ({s_next: p}, mean reward)} of a toy-text table, entry by entry."""
    ends = {s_next for rows in table.values() for row in rows.values() for _, s_next, _, done in row if done}
    pairs = {}
    for s, rows in table.items():
        for a, row in rows.items():
            if terminals == "keep" or s not in ends:
                law, mean = defaultdict(float), 0.0
                for p, s_next, reward, _ in row:
                    law[int(s_next)] += p
                    mean += p * reward
                pairs[s, a] = (law, mean)
    if terminals == "reset":
        pairs |= {(s, 0): ({start: 1.0}, 0.0) for s in ends}
    return pairs


@pytest.mark.parametrize("terminals", ["reset", "keep"])
@pytest.mark.parametrize(
    ("name", "parameters", "start"),
    [
        ("FrozenLake-v1", {}, 0),
        ("FrozenLake-v1", {"is_slippery": False}, 0),
        ("FrozenLake8x8-v1", {}, 0),
        ("CliffWalking-v1", {}, 36),
        ("CliffWalkingSlippery-v1", {}, 36),
        ("Taxi-v4", {}, 16),
        ("Taxi-v4", {"is_rainy": True}, 499),
    ],
)
def test_from_gymnasium_adds_up_the_table(name, parameters, start, terminals):
    P = table(name, **parameters)
    mdp = TabularMDP.from_gymnasium(P, start, terminals=terminals, name=name)
    expected = added_up(P, terminals, start)
    assert (mdp.start, mdp.name, mdp.num_states) == (start, name, len(P))
    assert {mdp.rows.pair(r) for r in range(len(mdp.rows))} == set(expected)
    for r in range(len(mdp.rows)):
        law, mean = expected[mdp.rows.pair(r)]
        states, p = mdp.p(*mdp.rows.pair(r))
        assert dict(zip(states.tolist(), p, strict=True)) == pytest.approx({x: m for x, m in law.items() if m > 0})
        assert mdp.rewards[r] == pytest.approx(mean)


def row(mdp, s, a):
    """Return ({s_next: p}, mean reward) of a pair."""
    law = dict(zip(*(part.tolist() for part in mdp.p(s, a)), strict=True))
    return law, mdp.rewards[mdp.rows.index(s, a)]


def test_frozen_lake_by_hand():
    # SFFF / FHFH / FFFH / HFFG, actions left, down, right, up; a third each for the direction and its two neighbours
    lake = TabularMDP.from_gymnasium(table("FrozenLake-v1"))
    assert (lake.num_states, lake.num_actions, len(lake.rows)) == (16, 4, 11 * 4 + 5)
    assert row(lake, 0, 0) == (pytest.approx({0: 2 / 3, 4: 1 / 3}), 0)
    assert row(lake, 10, 1) == (pytest.approx({9: 1 / 3, 11: 1 / 3, 14: 1 / 3}), 0)
    assert row(lake, 14, 2) == (pytest.approx({10: 1 / 3, 14: 1 / 3, 15: 1 / 3}), pytest.approx(1 / 3))
    assert row(lake, 14, 3) == (pytest.approx({10: 1 / 3, 13: 1 / 3, 15: 1 / 3}), pytest.approx(1 / 3))
    for end in (5, 7, 11, 12, 15):
        assert row(lake, end, 0) == ({0: 1.0}, 0)
    assert np.flatnonzero(np.diff(lake.rows.ptr) == 1).tolist() == [5, 7, 11, 12, 15]
    assert lake.is_communicating()
    kept = TabularMDP.from_gymnasium(table("FrozenLake-v1"), terminals="keep")
    assert len(kept.rows) == 64
    assert all(row(kept, end, a) == ({end: 1.0}, 0) for end in (5, 7, 11, 12, 15) for a in range(4))


def test_frozen_lake_8x8_by_hand():
    lake = TabularMDP.from_gymnasium(table("FrozenLake8x8-v1"))
    assert (lake.num_states, len(lake.rows)) == (64, 53 * 4 + 11)
    assert row(lake, 62, 2) == (pytest.approx({54: 1 / 3, 62: 1 / 3, 63: 1 / 3}), pytest.approx(1 / 3))
    assert row(lake, 55, 1) == (pytest.approx({54: 1 / 3, 55: 1 / 3, 63: 1 / 3}), pytest.approx(1 / 3))
    assert row(lake, 63, 0) == row(lake, 19, 0) == ({0: 1.0}, 0)


def test_cliff_walking_by_hand():
    # 4 x 12, start 36, goal 47, the cliff between them; actions up, right, down, left
    cliff = TabularMDP.from_gymnasium(table("CliffWalking-v1"), 36)
    assert (cliff.num_states, cliff.num_actions, len(cliff.rows)) == (48, 4, 47 * 4 + 1)
    assert row(cliff, 36, 1) == ({36: 1.0}, -100)
    assert row(cliff, 36, 0) == ({24: 1.0}, -1)
    assert row(cliff, 30, 2) == ({36: 1.0}, -100)
    assert row(cliff, 35, 2) == ({47: 1.0}, -1)
    assert row(cliff, 47, 0) == ({36: 1.0}, 0)
    kept = TabularMDP.from_gymnasium(table("CliffWalking-v1"), 36, terminals="keep")
    assert len(kept.rows) == 192
    assert row(kept, 47, 0) == ({35: 1.0}, -1)


def test_taxi_by_hand():
    # state = ((row * 5 + column) * 5 + passenger) * 4 + destination; R (0, 0), G (0, 4), Y (4, 0), B (4, 3)
    start = ((0 * 5 + 0) * 5 + 4) * 4 + 0  # at R, passenger aboard, to R
    taxi = TabularMDP.from_gymnasium(table("Taxi-v4"), start)
    assert (taxi.num_states, taxi.num_actions, len(taxi.rows)) == (500, 6, 496 * 6 + 4)
    assert np.flatnonzero(np.diff(taxi.rows.ptr) == 1).tolist() == [0, 85, 410, 475]  # delivered
    assert row(taxi, start, 5) == ({0: 1.0}, 20)  # drop off
    assert row(taxi, start, 4) == ({start: 1.0}, -10)  # nobody to pick up
    assert row(taxi, start, 0) == ({start + 100: 1.0}, -1)  # south
    assert row(taxi, start, 1) == ({start: 1.0}, -1)  # north is the border
    assert row(taxi, start, 2) == ({start + 20: 1.0}, -1)  # east
    assert row(taxi, 85, 0) == ({start: 1.0}, 0)


def test_from_gymnasium_ends_only_states_that_a_terminating_transition_enters():
    table = {
        0: {0: [(0.5, 1, 1.0, False), (0.5, 2, 3.0, True)], 1: [(1.0, 1, 0.0, False)]},
        1: {0: [(1.0, 0, -1.0, False)], 1: [(1.0, 1, 5.0, False)]},
        2: {0: [(1.0, 2, 7.0, True)], 1: [(1.0, 0, 8.0, False)]},
    }
    mdp = TabularMDP.from_gymnasium(table, start=1)
    assert [mdp.rows.pair(r) for r in range(len(mdp.rows))] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    np.testing.assert_array_equal(mdp.rewards, [2, 0, -1, 5, 0])
    assert row(mdp, 2, 0) == ({1: 1.0}, 0)
    mdp = TabularMDP.from_gymnasium(table, start=1, terminals="keep")
    np.testing.assert_array_equal(mdp.rewards, [2, 0, -1, 5, 7, 8])


def test_from_gymnasium_a_terminating_outcome_of_probability_zero_ends_nothing():
    table = {
        0: {0: [(1.0, 1, 0.0, False), (0.0, 1, 0.0, True)]},
        1: {0: [(1.0, 0, 0.0, False)], 1: [(1.0, 1, 0.0, False)]},
    }
    assert len(TabularMDP.from_gymnasium(table).rows) == 3


def test_from_gymnasium_rejects():
    table = {0: {0: [(1.0, 0, 0.0, True)]}}
    with pytest.raises(gosprl.InputError, match=r"^terminals: 'stop' is not known; known are keep, reset$"):
        TabularMDP.from_gymnasium(table, terminals="stop")
    for terminals in ("reset", "keep"):
        with pytest.raises(gosprl.InputError, match=r"^start: expected a state in 0..0, got 1"):
            TabularMDP.from_gymnasium(table, 1, terminals=terminals)
    with pytest.raises(gosprl.InputError, match=r"^env: expected a table"):
        TabularMDP.from_gymnasium({})


@pytest.mark.parametrize("terminals", ["reset", "keep"])
@pytest.mark.parametrize(
    ("name", "start"), [("FrozenLake-v1", 0), ("CliffWalking-v1", 36), ("CliffWalkingSlippery-v1", 36)]
)
def test_an_environment_gives_its_table_start_and_name(name, start, terminals):
    env = gym.make(name)
    expected = TabularMDP.from_gymnasium(table(name), start, terminals=terminals)
    for given in (env, env.unwrapped):
        mdp = TabularMDP.from_gymnasium(given, terminals=terminals)
        assert (mdp.start, mdp.name) == (start, name)
        np.testing.assert_array_equal(mdp.dense(), expected.dense())
        np.testing.assert_array_equal(mdp.rewards, expected.rewards)
    other = TabularMDP.from_gymnasium(env, 3, name="lake")
    assert (other.start, other.name) == (3, "lake")


class WithTable(gym.Env):
    """An environment with a table and nothing else."""

    P = {0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 1.0, False)]}}  # noqa: RUF012


def test_an_environment_with_a_random_or_unknown_start_asks_for_one():
    with pytest.raises(gosprl.InputError, match=r"^start: .* Taxi-v4 starts in one of 300 at random; give start="):
        TabularMDP.from_gymnasium(gym.make("Taxi-v4"))
    assert TabularMDP.from_gymnasium(gym.make("Taxi-v4"), 16).start == 16
    with pytest.raises(gosprl.InputError, match=r"^start: .* WithTable has no initial_state_distrib; give start="):
        TabularMDP.from_gymnasium(WithTable())
    assert repr(TabularMDP.from_gymnasium(WithTable(), 1)) == "TabularMDP(WithTable: 2 states, 2 pairs, start 1)"


def test_what_has_no_table_is_named():
    with pytest.raises(gosprl.InputError, match=r"^env: expected an environment with a table P .* Blackjack-v1 has"):
        TabularMDP.from_gymnasium(gym.make("Blackjack-v1"))
    with pytest.raises(gosprl.InputError, match=r"^env: expected a Gymnasium environment .* got str$"):
        TabularMDP.from_gymnasium("FrozenLake-v1")
    with pytest.raises(gosprl.InputError, match=r"^env: expected a Gymnasium environment .* got list$"):
        TabularMDP.from_gymnasium([table("FrozenLake-v1")])


class Own(gym.Env):
    """A custom environment with a table, as a dict or as lists, and no spec."""

    observation_space, action_space = gym.spaces.Discrete(2), gym.spaces.Discrete(2)

    def __init__(self, lists=False):
        rows = [[[(0.5, 0, 1.0, False), (0.5, 1, 0.0, False)], [(1.0, 1, 2.0, False)]], [[(1.0, 0, 0.0, False)]]]
        self.P = rows if lists else {s: dict(enumerate(actions)) for s, actions in enumerate(rows)}


class Publishing(gym.Wrapper):
    """A wrapper that publishes a table of what it makes of an environment without one."""

    @property
    def P(self):
        return Own().P


@pytest.mark.parametrize(
    "env",
    [
        Own(),
        Own(lists=True),
        gym.wrappers.TimeLimit(gym.wrappers.OrderEnforcing(Own()), 5),
        gym.wrappers.TimeLimit(Publishing(gym.make("CartPole-v1")), 5),
    ],
)
def test_any_environment_that_publishes_its_table(env):
    mdp = TabularMDP.from_gymnasium(env, start=0)
    np.testing.assert_array_equal(mdp.dense(), [[[0.5, 0.5], [0, 1]], [[1, 0], [0, 0]]])
    np.testing.assert_array_equal(mdp.rewards, [0.5, 2, 0])


def test_an_environment_that_does_not_say_where_it_starts_needs_start():
    with pytest.raises(gosprl.InputError, match=r"start: expected a state, as Own has no initial_state_distrib"):
        TabularMDP.from_gymnasium(Own())


@pytest.mark.parametrize(
    "table",
    [
        {0: {0: [(1.0, 0, 0.0)]}},
        {0: {0: [1.0]}},
        {0: {0: 3}},
        {0: 3},
        {0: "ab"},
        {0: {0: [(1.0, "a", 0.0, False)]}},
        {0: {0: [(1.0, -1, 0.0, False)]}},
        {0: {0: [(1.0, 0.5, 0.0, False)]}},
        {0: {"left": [(1.0, 0, 0.0, False)]}},
        {0: {0: [("p", 0, 0.0, False)]}},
    ],
)
def test_a_table_of_another_shape_is_refused(table):
    with pytest.raises(gosprl.InputError, match=r"^env: "):
        TabularMDP.from_gymnasium(table)
