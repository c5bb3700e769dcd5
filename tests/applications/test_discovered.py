"""Applications where states are discovered on the way: observations of any kind, endings, resets, room that grows.

The truth is a table: live states, and an ending for each of them. What the applications say by observation is compared
with what the table says.
"""

import math

import numpy as np
import pytest

import gosprl
from gosprl import InputError, TabularMDP
from gosprl.applications import (
    best_state,
    estimate_diameter,
    estimate_model,
    estimate_rewards,
    explore_all_goals,
    find_treasure,
    learn_policy,
)
from gosprl.mdp.distances import hitting_times

NAMES = "abcdefghij"


class Episodes:
    """Live states 0 .. S - 1, shown as strings. P [S, A, 2 S]: the last S columns are endings there; R [S, A]."""

    def __init__(self, P, R, start):
        self.P, self.R, self.start = P, R, start
        self.num_actions = P.shape[1]

    def reset(self, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.s = int(self.rng.choice(len(self.start), p=self.start))
        return NAMES[self.s], {}

    def step(self, action):
        S = len(self.P)
        reward = float(self.rng.random() < self.R[self.s, action])
        outcome = int(self.rng.choice(2 * S, p=self.P[self.s, action]))
        self.s = outcome % S
        return NAMES[self.s], reward, outcome >= S, False, {}

    def loop(self, reset_cost=None):
        """The table of live states and endings, from which a step leads to the start; and the costs of its rows."""
        (S, A, _), choice = self.P.shape, reset_cost is not None
        P = np.zeros((2 * S, A + choice, 2 * S))
        P[:S, :A] = self.P
        P[S:, 0, :S] = self.start
        if choice:
            P[:S, A, :S] = self.start
        mdp = TabularMDP(P)
        cost = np.where(mdp.rows.action == A, reset_cost, 1.0) if choice else np.ones(len(mdp.rows))
        return mdp, cost


def lab():
    """From a through b to c, which ends at times; d ends always, and is a start as well; e is left slowly."""
    S, A = 5, 2
    P, R = np.zeros((S, A, 2 * S)), np.zeros((S, A))
    P[0, 0, 1] = 1
    P[0, 1, [0, 3]] = 0.5
    P[1, :, 2] = 0.8
    P[1, :, 0] = 0.2
    P[2, 0, [0, S + 2]] = 0.5
    P[2, 1, [4, 3]] = 0.5
    P[3, :, S + 3] = 1  # ends where it is
    P[4, 0, [4, 0]] = 0.5
    P[4, 1, 4 + S] = 1
    R[:] = np.array([0.1, 0.5, 0.9, 0.2, 0.4])[:, None]
    return Episodes(P, R, np.array([0.7, 0, 0, 0.3, 0]))


def places(answer):
    """Index in the truth of the answer's live states, then of its endings."""
    states = answer.collected.model.states
    live = [NAMES.index(states[s]) for s in range(answer.collected.model.num_states)]
    return live, [NAMES.index(states[s]) for s in states.finals]


ACTIONS = {"actions": 2, "seed": 0, "max_steps": 200_000}
RESETS = [{}, {"resets": "anytime", "reset_cost": 1.0}, {"resets": "anytime", "reset_cost": 0.5}, {"max_states": 9}]


@pytest.mark.parametrize("options", RESETS)
def test_dynamics(options):
    env = lab()
    answer = estimate_model(env, 0.4, **ACTIONS, **options)
    live, ends = places(answer)
    assert answer.stop == "met"
    assert sorted(live) == [0, 1, 2, 3, 4]
    assert answer.eta.shape == (5, 2)
    assert np.all(answer.eta <= 0.4)
    P = answer.model.dense()[:5, :2]
    P = np.delete(P, 5, axis=2)  # the reset
    truth = env.P[np.ix_(live, [0, 1], [*live, *(5 + np.array(ends))])]
    assert np.all(np.abs(P - truth).sum(axis=2) + 1 - truth.sum(axis=2) <= answer.eta)
    assert str(answer.guarantee) == "delta=0.1, of the states discovered: every |p_hat - p| is at most its eta"


@pytest.mark.parametrize("options", RESETS)
def test_rewards(options):
    env = lab()
    answer = estimate_rewards(env, 0.25, **ACTIONS, **options)
    live, _ = places(answer)
    assert answer.stop == "met"
    assert np.all(answer.radius <= 0.25)
    assert np.all(np.abs(answer.rewards - env.R[live]) <= answer.radius)
    assert "at state c, action" in repr(answer)


@pytest.mark.parametrize("options", RESETS)
@pytest.mark.parametrize("how", [{"budget": 500}, {"epsilon": 0.2}])
def test_the_best_state(options, how):
    answer = best_state(lab(), **how, **ACTIONS, **options)
    live, _ = places(answer)
    assert answer.stop == "met"
    assert NAMES[live[answer.state]] == "c"
    assert "best state    c\n" in repr(answer)
    assert answer.pulls.tolist() == answer.collected.counts.sum(axis=1).tolist()  # without resets
    assert set(answer.candidates) | set(answer.dropped) == set(range(5))
    assert "of the states discovered in the first look" in str(answer.guarantee)


def test_a_treasure():
    env = lab()
    env.R[:] = 0
    env.R[4, 1] = 1
    answer = find_treasure(env, 100, threshold=0.5, **ACTIONS)
    live, _ = places(answer)
    assert (live[answer.state], answer.action, answer.reward) == (4, 1, 1.0)
    assert "reward 1 at state e, action 1" in repr(answer)


@pytest.mark.parametrize("options", RESETS)
@pytest.mark.parametrize("rule", ["certified", "doubling"])
def test_the_diameter(options, rule):
    env = lab()
    answer = estimate_diameter(env, 1, rule=rule, **(ACTIONS | {"max_steps": 60_000}), **options)
    live, ends = places(answer)
    mdp, cost = env.loop(options.get("reset_cost"))
    here = [*live, *(5 + np.array(ends))]
    D = hitting_times(mdp, cost=cost)[np.ix_(here, here)]
    assert np.all(answer.values <= D + 1e-9)
    assert answer.lower <= D.max() <= answer.diameter
    if rule == "certified":
        assert answer.stop == "met"
        assert answer.diameter <= 10 * answer.lower
    given = "delta=0.1, of the states discovered, given that there are no others: lower <= D <= diameter"
    assert str(answer.guarantee) == given


@pytest.mark.parametrize("options", RESETS)
def test_all_goals(options):
    """Each policy in truth, against the best; for observations as goals, by steps that cost 1 or less."""
    env = lab()
    answer = explore_all_goals(env, 15, c_min=0.8, **ACTIONS, **options)
    live, ends = places(answer)
    assert answer.stop == "met"
    assert answer.proved <= 15
    mdp, cost = env.loop(options.get("reset_cost"))
    rng, P = np.random.default_rng(0), mdp.dense()[mdp.rows.state, mdp.rows.action]
    for goal in [*range(5), *answer.model.states.finals]:
        at = NAMES.index(answer.model.states[goal])
        costs = rng.uniform(0.8, 1, (5, 2))
        full = cost.copy()
        steps = (mdp.rows.state < 5) & (mdp.rows.action < 2)
        by_truth = np.empty((5, 2))
        by_truth[live] = costs
        full[steps] = by_truth[mdp.rows.state[steps], mdp.rows.action[steps]]
        policy, values = answer.policy(goal, costs), answer.values(goal, costs)
        best = least(mdp, P, full, [at, 5 + at])
        rows = mdp.rows.ptr[:-1].copy()
        for s, action in zip(live, policy, strict=True):
            rows[s] = mdp.rows.index(s, action)
        mine = least(mdp, P, full, [at, 5 + at], rows)
        assert np.all(mine[live] - best[live] <= answer.proved)
        assert np.all(np.abs(mine[live] - values) <= answer.proved)
    assert f"any of 5 states and {len(ends)} endings" in repr(answer)


def least(mdp, P, cost, goals, rows=None):
    """[S] the least cost of reaching goals, or that of a policy, by value iteration."""
    v = np.zeros(mdp.num_states)
    for _ in range(20_000):
        q = cost + P @ v
        new = np.minimum.reduceat(q, mdp.rows.ptr[:-1]) if rows is None else q[rows]
        new[goals] = 0
        if np.abs(new - v).max() < 1e-10:
            return new
        v = new
    raise AssertionError("value iteration did not end")


@pytest.mark.parametrize("options", RESETS)
@pytest.mark.parametrize("allocation", ["bespoke", "uniform"])
def test_policies(options, allocation):
    """Endings are worth nothing, and no reset is chosen."""
    env, gamma = lab(), 0.6
    answer = learn_policy(env, gamma, 0.6, allocation=allocation, **ACTIONS, **options)
    live, _ = places(answer)
    assert answer.stop == "met"
    v, mine = np.zeros((2, 5))
    policy = np.empty(5, dtype=int)
    policy[live] = answer.policy
    for _ in range(200):
        v = (env.R + gamma * env.P[:, :, :5] @ v).max(axis=1)
        mine = (env.R + gamma * env.P[:, :, :5] @ mine)[np.arange(5), policy]
    assert np.all(answer.lower <= mine[live] + 1e-9)
    assert np.all(v[live] <= answer.upper + 1e-9)
    assert answer.gap == (answer.upper - answer.lower).max() <= 0.6
    assert all(samples.shape == (5, 2) for samples in [*answer.phases, answer.requested])
    assert str(answer.guarantee) == "delta=0.1, of the states discovered: lower <= V^policy <= V* <= upper"


class Corridor:
    """Positions (0, 0), (1, 0), ... as tuples; to the left, or to the right; the last one ends the episode."""

    def __init__(self, length):
        self.length = length

    def reset(self):
        self.x = 0
        return (0, 0), {}

    def step(self, action):
        self.x = max(0, self.x + (1 if action else -1))
        return (self.x, 0), float(self.x == self.length), self.x == self.length, False, {}


@pytest.mark.parametrize(
    "application",
    [
        lambda env, **options: estimate_model(env, 0.8, norm="max", **options),
        lambda env, **options: estimate_rewards(env, 0.45, **options),
        lambda env, **options: best_state(env, epsilon=0.9, **options),
        lambda env, **options: estimate_diameter(env, 1, rule="certified", **options),
        lambda env, **options: explore_all_goals(env, 400, c_min=1, **options),
        lambda env, **options: learn_policy(env, 0.3, 1.2, **options),
    ],
)
def test_many_states_are_discovered_one_after_the_other(application):
    """Everything that an application keeps grows with them, many times."""
    answer = application(Corridor(20), actions=2, seed=0, max_steps=100_000)
    assert answer.stop == "met"
    states = answer.collected.model.states
    assert [states[s] for s in range(20)] == [(x, 0) for x in range(20)]
    assert [states[s] for s in states.finals] == [(20, 0)]
    for name in ("eta", "rewards", "radius", "errors", "policy", "lower", "upper", "value", "pulls"):
        part = getattr(answer, name, None)
        if isinstance(part, np.ndarray):
            assert len(part) == 20
            assert np.all(np.isfinite(part))
    if hasattr(answer, "diameter") and hasattr(answer, "eta"):
        assert answer.lower <= 20 <= answer.diameter  # from the ending, or from the start, to the other end
    if hasattr(answer, "theta"):
        final = states.finals[0]
        np.testing.assert_allclose(answer.values(final), 20 - np.arange(20))
        assert np.all(answer.policy(final) == 1)
    assert "of the states discovered" in repr(answer)
    assert "unseen" in repr(answer)


def test_the_same_seed_gives_the_same():
    runs = [estimate_diameter(lab(), 1, rule="certified", **(ACTIONS | {"seed": seed})) for seed in (3, 3, 4)]
    assert runs[0].values.tolist() == runs[1].values.tolist()
    assert runs[0].steps == runs[1].steps
    assert runs[0].collected.counts.tolist() != runs[2].collected.counts.tolist()


def test_what_was_not_discovered_may_be_worth_most():
    """From a, one step in a million leads to z, whose reward is 1 for ever: the bounds hold all the same."""

    class Rare:
        def reset(self):
            return "a", {}

        def step(self, action):
            return "a", 0.2, False, False, {}

    answer = learn_policy(Rare(), 0.5, 0.5, actions=1, seed=0, max_steps=50_000)
    assert answer.stop == "met"
    assert 0 < answer.lower[0] < 0.4
    hidden = 1e-6
    assert answer.upper[0] > (0.2 + 0.5 * hidden * 2) / (1 - 0.5 * (1 - hidden))


def test_optimism_about_what_was_not_discovered():
    """a and b lead to each other through a thousand steps, or through z, which was not seen: `lower` says so."""

    class Long:
        def reset(self):
            self.x = 0
            return 0, {}

        def step(self, action):
            self.x = (self.x + 1) % 30
            return self.x, 0.0, False, False, {}

    answer = estimate_diameter(Long(), 1, actions=1, seed=0, max_steps=150)
    assert answer.collected.model.num_states == 30
    assert 1 <= answer.lower < 10  # each step may have led somewhere near the goal
    assert answer.diameter == math.inf
    full = estimate_diameter(Long(), 1, rule="certified", actions=1, seed=0, max_steps=200_000)
    assert full.stop == "met"
    assert full.lower <= 29 <= full.diameter


def test_a_bound_on_the_number_of_states_saves_samples():
    steps = [estimate_model(lab(), 0.3, **ACTIONS, **options).steps for options in ({"max_states": 5}, {})]
    assert steps[0] < steps[1]
    with pytest.raises(gosprl.CollectionError, match="max_states: expected at most 2 observations"):
        estimate_model(lab(), 0.3, **ACTIONS, max_states=2)


def test_unseen_goes_on_until_little_is_hidden():
    plain, sure = (estimate_rewards(lab(), 0.45, **ACTIONS, unseen=unseen) for unseen in (None, 0.05))
    assert plain.collected.unseen > 0.05 >= sure.collected.unseen
    assert plain.steps < sure.steps


def test_a_horizon_cuts_episodes():
    answer = estimate_model(Corridor(5), 0.8, norm="max", actions=2, seed=0, horizon=3, max_steps=20_000)
    states = answer.collected.model.states
    assert [states[s] for s in range(answer.collected.model.num_states)] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert np.isnan(answer.eta).sum() == 0


def test_keys_and_actions_say_what_a_state_is():
    """Only the parity of the position counts."""
    answer = estimate_model(
        Corridor(6),
        0.8,
        norm="max",
        key=lambda observation, info: observation[0] % 2,
        actions=["left", "right"],
        seed=0,
    )
    assert answer.eta.shape == (2, 2)


class Offering(Corridor):
    """The first position offers one action only."""

    def reset(self):
        observation, _ = super().reset()
        return observation, {"action_mask": np.array([0, 1], dtype=np.int8)}

    def step(self, action):
        observation, *rest, _ = super().step(action)
        mask = np.array([self.x > 0, 1], dtype=np.int8)
        return observation, *rest, {"action_mask": mask}


def test_actions_that_are_not_offered_have_no_answer():
    for application in (
        lambda: estimate_model(Offering(4), 1.5, norm="max", actions=2, seed=0).eta,
        lambda: estimate_rewards(Offering(4), 0.45, actions=2, seed=0).rewards,
        lambda: estimate_diameter(Offering(4), 1, rule="certified", actions=2, seed=0).errors,
    ):
        assert np.argwhere(np.isnan(application())).tolist() == [[0, 0]]


def test_resets_of_a_table_are_refused():
    with pytest.raises(InputError, match="resets: expected None or 'never' for a TabularMDP"):
        estimate_model(gosprl.envs.make("riverswim6"), 0.5, resets="anytime")
