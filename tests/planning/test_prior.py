"""The learnt prior: what it learns against counting by hand, what it plans against linear solves and known dynamics."""

from collections import Counter
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
from kinds import NEEDS, SYSTEMS, collector_of
from priors import CHAIN, learnt_from, planned
from test_conformance import bits

import gosprl
from gosprl._kernels import ANY_STEP, EXPERTS, FOUND_GOALS, SELF, STEP, UNKNOWN, first_of
from gosprl._kernels.prior import ALONE, ANYWHERE, OTHER, SHARED, STAYS
from gosprl.collecting import collector as collecting
from gosprl.envs import make
from gosprl.planning.prior import BEGIN, EARNED, FIRST, PSEUDO, TRUSTED, Prior
from gosprl.strategies import Guarded


def steps_of(prior):
    """How often each step was made: (action, or their number for any; step) -> number."""
    steps = prior._learnt.steps
    return {
        (int(kind), int(step)): int(number)
        for kind, step, number in zip(steps.kind, steps.step, steps.number, strict=True)
        if kind >= 0
    }


def shuffled(mdp, seed):
    """The same system with other numbers for states and, in each state, for actions."""
    rng, P = np.random.default_rng(seed), dense(mdp)
    order = np.r_[0, 1 + rng.permutation(len(P) - 1)]
    P = P[order][:, :, order]
    return gosprl.TabularMDP(np.stack([each[rng.permutation(len(each))] for each in P]))


def dense(mdp):
    rows = mdp.rows
    P = np.zeros((rows.num_states, rows.num_actions, rows.num_states))
    row = np.repeat(np.arange(len(rows)), np.diff(mdp.ptr))
    np.add.at(P, (rows.state[row], rows.action[row], mdp.succ), mdp.prob)
    return P


def mean_steps(mdp):
    """Mean steps to one sample of every pair, with the prior and without, over the same 20 seeds."""
    for prior in (True, False):
        yield np.mean([gosprl.collect(mdp, 1, seed=seed, prior=prior).steps for seed in range(20)])


def test_weights_of_two_new_successors_by_hand():
    """0 -> 1 explains itself only by an unknown state; 1 -> 2 also by the step that was made before."""
    prior = learnt_from([(0, 0, 1), (1, 0, 2)])
    weight = np.full(EXPERTS, BEGIN)
    weight[[STEP, ANY_STEP]] = TRUSTED
    weight[UNKNOWN] += 1
    # now the step +1 was made once in 1 (+ 1) times; 11 of 12 states are unknown; 1 of 1 known ones is 1, not 2
    chance = {STEP: 0.5, ANY_STEP: 0.5, UNKNOWN: 1 / 11}
    total = sum(weight[k] * p for k, p in chance.items())
    for k, p in chance.items():
        weight[k] += weight[k] * p / total if k != UNKNOWN else (BEGIN + 1) * p / total
    np.testing.assert_allclose(prior.weights, weight / weight.sum())


def test_concentrations_are_those_that_expect_what_came():
    """Action 0 brings a new successor at every other visit of state 0, action 1 never does."""
    rng = np.random.default_rng(0)
    transitions = [(s, 1, s) for s in range(CHAIN) for _ in range(30)]
    transitions += [(0, 0, t) for t in range(CHAIN) for _ in range(2)]
    prior = learnt_from([transitions[i] for i in rng.permutation(len(transitions))])
    for _ in range(200):  # each update improves them
        prior.update()
    visits = (np.arange(1, 24), np.tile(np.arange(1, 30), CHAIN))  # before each repeated visit of action 0, and 1

    def expected(action, c):
        return np.sum(1 / (visits[action] + c))

    together = prior._learnt.concentration[-1]
    new = CHAIN - 1
    assert together == pytest.approx(
        (new + PSEUDO * FIRST) / (expected(0, together) + expected(1, together) + PSEUDO), rel=0.02
    )
    for action, number in ((0, new), (1, 0)):
        c = prior.concentration[action]
        assert c == pytest.approx((number + PSEUDO) / (expected(action, c) + PSEUDO / together), rel=0.02)
    assert prior.concentration[0] > 5 * prior.concentration[1]


def test_factors_are_those_that_expect_what_came():
    """In states 0 to 5, two actions lead to the same state; repeated, one leads elsewhere. Other rows only stay."""
    shared = [(s, a, s + 1) for s in range(6) for a in (0, 1)] + [(s, 1, s + 2) for s in range(6)]
    prior = learnt_from(shared + [(s, 0, s) for s in range(6, CHAIN) for _ in range(3)])
    for _ in range(200):
        prior.update()
    c, factor = prior.concentration, prior._learnt.factor
    repeats = {SHARED: [(1, 1)] * 6, STAYS: [(0, n) for n in (1, 2)] * 6, ALONE: []}  # (action, visits before)
    for kind, new in ((SHARED, 6), (STAYS, 0), (ALONE, 0)):
        expected = sum(c[a] / (n + factor[kind] * c[a]) for a, n in repeats[kind])
        assert factor[kind] == pytest.approx((new + PSEUDO) / (expected + PSEUDO), rel=0.02)
    assert factor[SHARED] > 1 > factor[STAYS]
    assert factor[OTHER] == 1


def test_rows_are_of_the_kind_that_their_successors_say():
    """Two actions that lead to the same state share it; a row with two successors is of no such kind."""
    prior = learnt_from([(0, 0, 1), (0, 1, 1), (1, 0, 1), (2, 0, 3), (3, 0, 3), (3, 1, 4)])
    kind = prior._learnt.kind.reshape(CHAIN, 2)
    assert kind[:4].tolist() == [[SHARED, SHARED], [STAYS, OTHER], [ALONE, OTHER], [STAYS, ALONE]]
    prior._model.update(0, 1, 2)
    prior.update()
    assert kind[0].tolist() == [SHARED, OTHER]
    assert prior._learnt.new[:, SHARED].tolist() == [0, 1]  # of the kind that the row was when it was repeated


STATES = 30
RIVER = [(s, a, s + (-1, 1)[a]) for s in range(1, STATES - 1) for a in (0, 1)]  # 28 steps up, 28 down


def test_rows_jump_whose_steps_no_other_row_made():
    """After many steps of one, a row that leads 4 away jumps, until it makes a step of one, too."""
    prior = learnt_from([*RIVER, (0, 0, 4), (0, 1, 1)], states=STATES)
    jumps, repeats = prior._learnt.jumps.reshape(STATES, 2), prior._learnt.jump_repeats
    assert np.argwhere(jumps).tolist() == [[0, 0]]
    for t, is_jump in ((9, True), (4, True), (1, False)):
        prior._model.update(0, 0, t)
        prior.update()
        assert jumps[0].tolist() == [is_jump, False]
    assert prior._learnt.jump_new[0] == 2  # 9 and 1
    assert repeats[1:4].tolist() == [1, 1, 1]  # the visits 2 to 4 of the row
    assert repeats.sum() == 3


def test_the_first_steps_of_all_are_no_jumps():
    """With few steps, each of them is unlike the others."""
    prior = learnt_from([(s, 0, s * s) for s in range(1, 6)], states=STATES)
    assert not prior._learnt.jumps.any()


def test_the_concentration_of_jumps_is_the_one_that_expects_what_came():
    """Four rows jump elsewhere at each of three visits, one returns to the same state ten times."""
    jumping = [(0, 0, 8), (0, 0, 13), (0, 0, 20), (0, 1, 10), (0, 1, 5), (0, 1, 27)]
    jumping += [(29, 0, 3), (29, 0, 17), (29, 0, 26), (29, 1, 22), (29, 1, 2), (29, 1, 11)]
    prior = learnt_from([*RIVER, *jumping], states=STATES)
    for back in ([], [(4, 1, 29)] * 10):  # row (4, 1) leads up as well, so it does not jump
        for s, a, t in back:
            prior._model.update(s, a, t)
        for _ in range(200):
            prior.update()
        c = prior._learnt.jump_concentration[0]
        assert c * (PSEUDO + 4 * (1 / (1 + c) + 1 / (2 + c))) == pytest.approx(PSEUDO * FIRST + 8, rel=1e-3)
        assert c > ANYWHERE


def test_rows_that_jump_to_the_same_state_again_are_not_taken_to_lead_anywhere():
    """A row that leads far away, but always to the same state."""
    prior = learnt_from([*RIVER, *[(0, 0, 9)] * 10], states=STATES)
    assert prior._learnt.jumps.reshape(STATES, 2)[0, 0]
    assert prior._learnt.jump_concentration[0] < FIRST


def test_jumps_are_remembered():
    """A prior that recalls another one knows the same rows and the same concentration."""
    prior = learnt_from([*RIVER, (0, 0, 8), (0, 0, 13), (29, 0, 3), (29, 0, 17)], states=STATES)
    other = Prior(prior._model)
    other.recall(prior.remember())
    for mine, theirs in zip(prior._learnt[-5:-1], other._learnt[-5:-1], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert prior._learnt._fields[-5:-1] == ("jumps", "jump_new", "jump_repeats", "jump_concentration")


def test_a_prior_leads_to_goals_that_were_seen_if_other_actions_explain_repeated_rows():
    """A tree whose actions slip to the other child: numbers explain little of what is new, other actions a lot."""
    rng, model = np.random.default_rng(0), gosprl.EmpiricalModel(31, 2)
    prior = Prior(model)
    for _, s, a in np.ndindex(6, 15, 2):
        model.update(s, a, 2 * s + 1 + int(rng.integers(2)))
        prior.update()
    assert prior.weights[[STEP, ANY_STEP]].sum() < EARNED
    assert prior.leads()
    prior._seen[FOUND_GOALS] = 0
    assert not prior.leads()


def test_buckets_cover_all_numbers_of_visits():
    bounds = [first_of(bucket) for bucket in range(90)]
    assert bounds[:21] == list(range(21))
    assert all(a < b <= 1.5 * a + 1 for a, b in pairwise(bounds[20:]))


def test_the_order_of_learning_at_once_or_step_by_step_leaves_the_same_structure():
    rng = np.random.default_rng(3)
    transitions = rng.integers((CHAIN, 2, CHAIN), size=(200, 3)).tolist()
    one, other = (learnt_from(transitions, each) for each in (True, False))
    for name in ("taken", "visited", "found", "into", "total", "kind", "scalars"):
        np.testing.assert_array_equal(getattr(one._learnt, name), getattr(other._learnt, name))
    assert steps_of(one) == steps_of(other)
    by_hand = Counter((a, (t - s) % 2**62) for s, a, t in set(map(tuple, transitions)))
    assert {key: number for key, number in steps_of(one).items() if key[0] < 2} == by_hand


def test_known_rows_are_planned_like_the_frequencies():
    """Many visits of a random system: the values solve the linear equations of its frequencies."""
    rng, S = np.random.default_rng(1), 6
    P = rng.dirichlet(np.ones(S), size=(S, 1))
    model, N = gosprl.EmpiricalModel(S, 1), 40_000
    for s in range(S):
        model.update(np.full(N, s), np.zeros(N, dtype=int), rng.choice(S, size=N, p=P[s, 0]))
    prior = Prior(model)
    prior.update()
    goals = np.arange(S) == 2
    policy, values = planned(prior, goals)
    p = model.dense()[:, 0]
    others = np.flatnonzero(~goals)
    truth = np.linalg.solve(np.eye(S - 1) - p[np.ix_(others, others)], np.ones(S - 1))
    np.testing.assert_allclose(values[others], truth, rtol=0.01)
    assert values[2] == 0
    np.testing.assert_array_equal(policy[others], others)


def test_steps_lead_to_states_that_were_never_seen():
    """A chain walked half: the way to its end is expected to go on, by the action that led on so far."""
    prior = learnt_from([(s, 0, s + 1) for s in range(6)] + [(s, 1, s) for s in range(7)] * 2)
    goals = np.arange(CHAIN) == CHAIN - 1
    policy, values = planned(prior, goals)
    assert np.all(policy[: CHAIN - 1] == 2 * np.arange(CHAIN - 1))
    assert np.all(np.diff(values) < 0)
    assert prior.weights[STEP] > prior.weights[SELF]


def test_prices_move_the_plan_to_another_goal():
    prior = learnt_from([(s, 0, s + 1) for s in range(CHAIN - 1)] * 50 + [(s, 1, s - 1) for s in range(1, CHAIN)] * 50)
    goals = np.isin(np.arange(CHAIN), (0, CHAIN - 1))
    assert planned(prior, goals, 4)[0][4] == 9
    assert planned(prior, goals, 7)[0][7] == 14
    prices = np.where(np.arange(CHAIN) == 0, 8.0, 0.0)
    assert planned(prior, goals, 4, prices)[0][4] == 8


@pytest.mark.parametrize("name", ["four_room43", "riverswim20", "cliff48"])
def test_numbers_must_mean_something(name):
    """The prior leads on a system whose numbers are places, and loses its lead where they were shuffled."""
    parts = []
    for mdp in (make(name), shuffled(make(name), 5)):
        rng, s, model = np.random.default_rng(0), 0, gosprl.EmpiricalModel(mdp.rows.num_states, mdp.rows.num_actions)
        prior = Prior(model)
        for _ in range(3000):
            a = int(rng.integers(mdp.rows.num_actions))
            succ, p = mdp.p(s, a)
            s_next = int(rng.choice(succ, p=p))
            model.update(s, a, s_next)
            prior.update()
            s = s_next
        parts.append(prior.weights[[STEP, ANY_STEP]].sum())
    assert parts[0] > 1.5 * EARNED
    assert parts[1] < 0.7 * EARNED


def test_with_shuffled_numbers_runs_are_hardly_longer():
    with_prior, without = mean_steps(shuffled(make("four_room43"), 5))
    assert with_prior < 1.05 * without


def test_one_sample_of_every_pair_takes_far_fewer_steps():
    with_prior, without = mean_steps(make("riverswim20"))
    assert with_prior < 0.6 * without


def test_where_rows_are_known_nothing_changes():
    mdp = make("four_room43")
    with_prior, without = (gosprl.collect(mdp, 100, seed=0, prior=p) for p in (True, False))
    # the first steps may differ; once every row was visited often, sets and prices plan as before
    assert with_prior.met
    assert abs(with_prior.steps - without.steps) < 0.01 * without.steps


def test_a_prior_is_remembered():
    prior = learnt_from([(s, s % 2, (s * 5 + 3) % CHAIN) for s in range(CHAIN)] * 3)
    one, two = Prior(prior._model), Prior(prior._model)
    one.recall(prior.remember())
    two.recall(one.remember())
    for name in ("weight", "again", "concentration", "factor", "taken", "into", "kind", "new", "repeats"):
        np.testing.assert_array_equal(getattr(prior._learnt, name), getattr(one._learnt, name))
    assert steps_of(prior) == steps_of(one)
    plans = [planned(each, np.arange(CHAIN) == 4, optimism=0.5) for each in (one, two)]
    np.testing.assert_array_equal(plans[0][0], plans[1][0])
    np.testing.assert_array_equal(plans[0][1], plans[1][1])


def test_endings_and_resets_are_walked_through():
    """An environment whose episodes end: the run meets its need with the prior, as without."""
    env = gymnasium.make("FrozenLake-v1")
    for prior in (True, False):
        assert gosprl.collect(env, 2, seed=1, max_steps=50_000, prior=prior).met


@pytest.mark.parametrize("value", ["yes", 2, 0.5, None])
def test_the_option_is_checked(value):
    with pytest.raises(gosprl.InputError, match="prior: expected True or False"):
        gosprl.collect(make("riverswim6"), 1, prior=value)


@pytest.mark.parametrize("need", ["int", "states", "pairs"])
def test_compiled_and_stepped_runs_are_the_same(need):
    results = []
    for kind in (SYSTEMS["compiled"], SYSTEMS["stepped"]):
        system = kind.make()
        results.append(collector_of(kind, system, NEEDS[need], Guarded(prior=True)).run(system, 300))
    assert bits(results[0]) == bits(results[1])


@pytest.mark.parametrize("name", ["four_room43", "riverswim20", "cliff48"])
def test_runs_that_are_interrupted_go_on_bit_for_bit(name, tmp_path, monkeypatch):
    monkeypatch.setattr(collecting, "RENEWAL", 40)
    whole = gosprl.collect(make(name), 2, seed=3, prior=True)
    for pause in (50, 130, 171):
        directory = tmp_path / str(pause)
        gosprl.collect(make(name), 2, seed=3, prior=True, out=directory, max_steps=pause)
        rest = gosprl.resume(directory, max_steps=10**6)
        assert rest.steps == whole.steps
        np.testing.assert_array_equal(rest.counts, whole.counts)
        np.testing.assert_array_equal(rest.curve, whole.curve)
