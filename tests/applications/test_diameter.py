"""Diameter estimation: closed forms, the worst and best dynamics in the sets by vertices, the printed formulas anew."""

import math
import pickle

import gymnasium
import numpy as np
import pytest
from adversary import as_rows, corners, least_in_sets, most_times
from oracles import random_dynamics

import gosprl
from gosprl import InputError, PrecisionError, TabularMDP
from gosprl.applications import diameter, estimate_diameter
from gosprl.applications.common import Walk
from gosprl.envs import make
from gosprl.envs.lower_bounds import epsilon_wheel, two_state_chain
from gosprl.envs.tabular_env import TabularEnv
from gosprl.sets.certificates import model_errors, slack

PRECISION = 1e-6  # of optimistic times


def promised(epsilon):
    """The factor of the paper's lemma."""
    return (1 + 2 * epsilon * (1 + epsilon)) * (1 + epsilon)


def cycle(states):
    """From each state to the next, surely: D = S - 1."""
    return TabularMDP(np.eye(states)[np.roll(np.arange(states), -1)][:, None])


def random_mdp(rng):
    while True:
        mdp = TabularMDP(random_dynamics(rng, int(rng.integers(2, 5)), int(rng.integers(1, 3))))
        if mdp.is_communicating():
            return mdp


KNOWN = {  # an MDP and its diameter
    "chain": (two_state_chain(0.3), 1 / 0.3),
    "toy3": (make("toy3", nu=0.25), 4.0),  # state 1 comes up once in four steps; other states are nearer
    "cycle": (cycle(5), 4.0),
    "wheel": (epsilon_wheel([0.5, 0.25]), 5.0),  # to the center, and 1 / 0.25 steps from there
}


@pytest.mark.parametrize("rule", ["doubling", "certified"])
@pytest.mark.parametrize("epsilon", [0.4, 1.0])
@pytest.mark.parametrize("name", KNOWN)
def test_the_promise(name, epsilon, rule):
    mdp, D = KNOWN[name]
    estimate = estimate_diameter(mdp, epsilon, rule=rule, seed=1)
    assert estimate.stop == "met"
    assert estimate.lower <= D <= estimate.diameter <= promised(epsilon) * D
    assert estimate.diameter <= promised(epsilon) * estimate.lower * (1 + 2 * PRECISION)
    assert np.all(estimate.values <= mdp.hitting_times() * (1 + 1e-9))
    assert estimate.values.max() == estimate.lower


def test_riverswim():
    estimate = estimate_diameter(make("riverswim6"), 1, rule="certified", seed=0)
    assert estimate.lower <= 14.7223 <= estimate.diameter <= 10 * 14.7223


def test_every_plausible_model_is_within_the_bounds():
    """Whatever the rule, and when it is cut short: against the worst and the best dynamics in the sets."""
    rng = np.random.default_rng(0)
    bounded = 0
    for seed in range(40):
        mdp = random_mdp(rng)
        family = gosprl.KL(0.1, scale=float(rng.choice([1, 0.1, 0.01])))
        known = {"successors": mdp} if rng.random() < 0.3 else {}
        rule, steps = str(rng.choice(["doubling", "certified"])), int(rng.choice([100, 1000, 10_000]))
        estimate = estimate_diameter(mdp, 0.2, rule=rule, confidence=family, seed=seed, max_steps=steps, **known)
        model = estimate.collected.model
        sets, states, goals = corners(model, family), model.rows.state, range(mdp.num_states)
        best = np.column_stack([least_in_sets(states, sets, np.ones(len(states)), g) for g in goals])
        np.testing.assert_allclose(estimate.values, best, rtol=2 * PRECISION)
        assert np.all(estimate.values <= best * (1 + 1e-12))
        if math.isfinite(estimate.diameter):
            bounded += 1
            assert max(most_times(states, sets, g).max() for g in goals) <= estimate.diameter * (1 + 1e-8)
    assert bounded > 20


def test_each_time_is_bounded_by_that_of_the_frequencies():
    """D_{sg} <= D_hat(s, g) / (1 - x) for the worst dynamics in the sets, pair by pair."""
    rng = np.random.default_rng(1)
    bounded = 0
    for _ in range(40):
        mdp, family = random_mdp(rng), gosprl.KL(0.1, scale=float(rng.choice([1, 0.1, 0.01])))
        model = gosprl.EmpiricalModel.over(mdp.rows)
        for row in range(len(mdp.rows)):
            s, a = mdp.rows.pair(row)
            n = int(rng.choice([20, 200, 2000]))
            model.update(np.full(n, s), np.full(n, a), rng.choice(mdp.num_states, size=n, p=mdp.dense()[s, a]))
        proved = diameter.prove(model, family, np.arange(len(mdp.rows)))
        if proved.x < 1:
            bounded += 1
            sets = corners(model, family)
            for g in range(mdp.num_states):
                worst = most_times(mdp.rows.state, sets, g)
                assert np.all(worst <= proved.times[:, g] / (1 - proved.x) * (1 + 1e-8))
    assert bounded > 20


def ladder(states):
    """One action climbs a step, the other falls to the ground: far to go up, near to go down."""
    s = np.arange(states)
    P = np.zeros((states, 2, states))
    P[s, 0, np.minimum(s + 1, states - 1)] = P[s, 1, 0] = 1
    return TabularMDP(P)


@pytest.mark.parametrize("mdp", [ladder(4), two_state_chain(0.5), random_mdp(np.random.default_rng(7))])
@pytest.mark.parametrize("steps", [60, 600])
def test_what_a_row_may_be_off_covers_both_signs(mdp, steps):
    """(p - p_hat) h and (p_hat - p) h for the vertices p of its set, h the times of the frequencies to any goal."""
    family = gosprl.KL(0.1)
    model = estimate_diameter(mdp, 0.1, confidence=family, seed=0, max_steps=steps).collected.model
    proved = diameter.prove(model, family, np.arange(len(mdp.rows)))
    assert np.all(np.isfinite(proved.off))
    p_hat = as_rows(model.dense(), mdp.rows)
    for row, corner in enumerate(corners(model, family)):
        most = np.abs((corner - p_hat[row]) @ proved.times).max()
        assert most <= proved.off[row] + 1e-9


def test_the_bounds_of_a_chain_in_closed_form():
    """With p in [l, u] the time is between 1 / u and 1 / l."""
    mdp, family = two_state_chain(0.5), gosprl.KL(0.1)
    for steps in (50, 500, 5000):
        estimate = estimate_diameter(mdp, 0.01, confidence=family, seed=0, max_steps=steps, successors=mdp)
        sets = family.intervals(estimate.collected.model)
        low, high = sets.lower[sets.succ == 1][0], sets.upper[sets.succ == 1][0]
        assert estimate.lower == pytest.approx(1 / high, rel=2 * PRECISION)
        assert estimate.diameter >= 1 / low * (1 - 1e-9)


def watch(mdp, epsilon, seed, **options):
    """The doubling rule, and (W, largest time, largest error) whenever it had what it had asked for."""
    seen = []

    class Watched(diameter.DoublingDiameter):
        def proceed(self, model):
            error = model_errors(slack(model, self.family, np.arange(len(model.rows))), "l1").max()
            W, need = self.W, super().proceed(model)
            seen.append((W, self.values.max(), error))
            return need

    walk = Walk(0.1, "kl", seed, None, None, options)
    run = walk.run(mdp, lambda model, all_states: Watched(model, all_states, walk.family(), epsilon, None))
    return run.rule, seen


@pytest.mark.parametrize("name", KNOWN)
def test_the_doubling_of_the_paper(name):
    """W = 1, 2, 4, ... until it is not below |v|; the model within eta / 2 each time; epsilon / (2 D) <= eta."""
    mdp, D = KNOWN[name]
    epsilon = 0.8
    made, seen = watch(mdp, epsilon, seed=0)
    assert [W for W, _, _ in seen] == [2.0**n for n in range(len(seen))]
    assert all(longest > W for W, longest, _ in seen[:-1])
    assert seen[-1][1] <= seen[-1][0] == made.W < 2 * D
    assert all(error <= epsilon / W / 2 for W, _, error in seen)
    assert epsilon / (2 * D) <= made.eta <= epsilon / seen[-1][1]


def printed(p_hat, eta, delta, S, A):
    """The requirement in the l1 norm, of one pair's frequencies."""
    X = sum(math.sqrt(p * (1 - p)) for p in p_hat)
    second = 24 * S / eta * math.log(24 * S * S * A / (delta * eta))
    if X == 0:
        return second
    return second + 57 * X**2 / eta**2 * math.log(8 * math.e * X * math.sqrt(2 * S * A) / (math.sqrt(delta) * eta)) ** 2


def test_the_printed_requirement():
    """D = 1 / 0.7 makes it stop at W = 2, with what eta / 2 = epsilon / 4 takes; the chain's state 0 decides."""
    estimate = estimate_diameter(two_state_chain(0.7), 1, rule="paper", seed=0)
    model = estimate.collected.model
    needed = [printed(model.p_hat(s, 0)[1], 0.25, 0.1, 2, 1) for s in range(2)]
    assert estimate.stop == "met"
    assert np.all(model.visits >= needed)
    assert model.visits[0] <= needed[0] * 1.01
    assert 1 < estimate.lower <= 1 / 0.7 <= estimate.diameter <= 10 / 0.7


def test_a_printed_requirement_beyond_whole_numbers_is_not_met():
    estimate = estimate_diameter(two_state_chain(0.5), 1e-9, rule="paper", seed=0, max_steps=300)
    assert (estimate.stop, estimate.steps) == ("max_steps", 300)
    assert estimate.collected.unmet["needed"].max() == 2**62


def test_certified_takes_far_fewer_steps():
    mdp = make("toy3", nu=0.3)
    certified, doubling = (estimate_diameter(mdp, 0.5, rule=rule, seed=0).steps for rule in ("certified", "doubling"))
    assert 5 * certified < doubling


@pytest.mark.parametrize("rule", ["doubling", "certified", "paper"])
@pytest.mark.parametrize("steps", [1, 7, 60, 500])
def test_a_run_cut_short_promises_what_it_can(steps, rule):
    mdp = make("riverswim6")
    estimate = estimate_diameter(mdp, 0.1, rule=rule, seed=0, max_steps=steps)
    assert (estimate.stop, estimate.steps) == ("max_steps", steps)
    assert estimate.lower <= 14.7223 <= estimate.diameter
    assert np.all(estimate.values <= mdp.hitting_times() * (1 + 1e-9))
    if steps < len(mdp.rows):  # what was never tried may lead anywhere
        assert estimate.diameter == math.inf
        assert "and inf" in repr(estimate)


@pytest.mark.parametrize("rule", ["doubling", "certified", "paper"])
def test_one_state(rule):
    estimate = estimate_diameter(TabularMDP(np.ones((1, 2, 1))), 0.5, rule=rule, seed=0)
    assert (estimate.lower, estimate.diameter, estimate.stop) == (0, 0, "met")
    np.testing.assert_array_equal(estimate.values, [[0]])
    assert "within a factor of 3.75, got 1" in repr(estimate)


def test_known_successors_leave_nothing_open_where_they_are_single():
    mdp = cycle(6)
    estimate = estimate_diameter(mdp, 1e-9, rule="certified", seed=0, successors=mdp)
    assert estimate.stop == "met"
    assert (estimate.lower, estimate.diameter, estimate.eta) == (5, 5, 0)
    np.testing.assert_array_equal(estimate.values, (np.arange(6) - np.arange(6)[:, None]) % 6)


def test_known_successors_take_fewer_steps():
    mdp = make("riverswim6")
    taken = [estimate_diameter(mdp, 1, rule="certified", seed=3, **known) for known in ({}, {"successors": mdp})]
    assert taken[1].steps < taken[0].steps
    assert all(estimate.lower <= 14.7223 <= estimate.diameter for estimate in taken)


def test_epsilon_above_one_is_one():
    one, more = (estimate_diameter(two_state_chain(0.5), epsilon, rule="certified", seed=4) for epsilon in (1, 70.0))
    assert (one.steps, one.diameter, one.epsilon) == (more.steps, more.diameter, more.epsilon)


def test_errors_are_those_of_the_pairs_that_exist():
    estimate = estimate_diameter(make("toy3", nu=0.5), 1, seed=0)
    np.testing.assert_array_equal(np.isnan(estimate.errors), [[False, True], [False, True], [False, False]])
    assert estimate.eta == 2 * np.nanmax(estimate.errors)
    p_hat = estimate.collected.model.dense()
    off = np.abs(p_hat - make("toy3", nu=0.5).dense()).sum(axis=2)
    assert np.all(off[~np.isnan(estimate.errors)] <= estimate.errors[~np.isnan(estimate.errors)])


@pytest.mark.parametrize("rule", ["doubling", "certified"])
def test_the_same_mdp_through_gymnasium(rule):
    env = TabularEnv(make("toy3", nu=0.5))
    for resets, given in (("never", ""), ("terminal", ", given that there are no others")):
        estimate = estimate_diameter(env, 1, rule=rule, seed=0, max_steps=100_000, resets=resets)
        assert estimate.stop == "met"
        assert estimate.lower <= 4 <= estimate.diameter <= 10 * 4  # (1 + nu) / (1 - nu) + 1
        assert str(estimate.guarantee) == f"delta=0.1, of the states discovered{given}: lower <= D <= diameter"


LAKE = ["SFFF", "FHFH", "FFFH", "HFFG"]


def lake_times():
    """[16, 16] steps between the tiles; from a hole or the goal a reset leads to the start, in one step."""
    D = np.where(np.eye(16, dtype=bool), 0.0, np.inf)
    for s in range(16):
        row, column = divmod(s, 4)
        for down, right in ((0, -1), (1, 0), (0, 1), (-1, 0)):
            ended = LAKE[row][column] in "HG"
            t = 0 if ended else min(max(row + down, 0), 3) * 4 + min(max(column + right, 0), 3)
            D[s, t] = min(D[s, t], 1)
    for k in range(16):
        D = np.minimum(D, D[:, k, None] + D[k])
    return D


@pytest.mark.parametrize(("rule", "epsilon"), [("doubling", 1), ("certified", 0.5)])
def test_frozen_lake_where_a_reset_is_a_step(rule, epsilon):
    D = lake_times()
    assert D.max() == 7  # a reset, and the six steps from corner to corner
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    estimate = estimate_diameter(env, epsilon, rule=rule, seed=0, max_steps=100_000)
    assert estimate.stop == "met"
    assert estimate.lower <= 7 <= estimate.diameter <= promised(epsilon) * 7
    states = estimate.collected.model.states
    ends = [states[s] for s in states.finals]
    assert sorted(ends) == [5, 7, 11, 12, 15]
    live = [s for s in range(16) if s not in ends]
    at, tiles = [*live, *range(16, 21)], [*live, *ends]  # live states, and endings in the order of the model
    assert np.all(estimate.values[np.ix_(at, at)] <= D[np.ix_(tiles, tiles)] + 1e-9)
    assert estimate.values.shape == (21, 21)
    assert "of the states discovered, given that there are no others: lower" in str(estimate.guarantee)


def rarely_left():
    """States 0 and 1 alternate; from 0 rarely to 2, which leads back once in a thousand steps: D = 1001."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 1], P[0, 1], P[1, :, 0], P[2] = 1, [0, 0.97, 0.03], 1, [0.001, 0, 0.999]
    return TabularMDP(P)


def test_that_states_were_not_found_is_said():
    for resets in ("never", "terminal"):
        estimate = estimate_diameter(TabularEnv(rarely_left()), 0.5, seed=0, max_steps=40, resets=resets)
        assert not estimate.collected.model.is_discovered[2]
        assert "of the states discovered, given that there are no others: " in str(estimate.guarantee)


def test_a_state_found_by_the_last_step_counts():
    env = TabularEnv(rarely_left())
    steps = next(
        n
        for n in range(60, 200)
        if estimate_diameter(env, 0.05, seed=2, max_steps=n, resets="never").collected.model.is_discovered.all()
    )
    before, after = (estimate_diameter(env, 0.05, seed=2, max_steps=n, resets="never") for n in (steps - 1, steps))
    assert before.diameter < 2
    assert "no others" in str(before.guarantee)
    assert after.collected.counts[2].sum() == 0
    assert after.diameter == math.inf
    assert "given" not in str(after.guarantee)


def test_times_beyond_doubles_prove_nothing_and_lose_nothing(monkeypatch):
    def refuse(mdp):
        raise PrecisionError("too far")

    monkeypatch.setattr(TabularMDP, "hitting_times", refuse)
    estimate = estimate_diameter(two_state_chain(0.01), 0.1, rule="certified", seed=0, max_steps=400)
    assert (estimate.steps, estimate.diameter) == (400, math.inf)
    assert 1 < estimate.lower <= 100


def test_the_same_seed_gives_the_same():
    first, again, other = (estimate_diameter(make("toy3"), 1, rule="certified", seed=s) for s in (5, 5, 6))
    assert (first.steps, first.diameter, first.eta) == (again.steps, again.diameter, again.eta)
    np.testing.assert_array_equal(first.collected.counts, again.collected.counts)
    assert not np.array_equal(first.collected.counts, other.collected.counts)


def test_it_prints_and_pickles():
    estimate = estimate_diameter(two_state_chain(0.5), 1, rule="certified", seed=0)
    copy = pickle.loads(pickle.dumps(estimate))
    assert repr(copy) == repr(estimate)
    np.testing.assert_array_equal(copy.values, estimate.values)
    lines = repr(estimate).splitlines()
    assert lines[0] == "DiameterEstimate"
    assert [line.split()[0] for line in lines[1:]] == ["diameter", "asked", "eta", "steps", "stop", "guarantee"]
    assert "delta=0.1: lower <= D <= diameter" in lines[-1]


def test_progress_is_shown():
    told = []
    estimate_diameter(make("toy3"), 0.5, rule="certified", seed=0, progress=told.append)
    assert told[-1]["met"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0}, "^epsilon: expected a positive finite number, got 0"),
        ({"epsilon": -0.1}, "^epsilon: expected a positive finite number"),
        ({"epsilon": math.nan}, "^epsilon: expected a positive finite number"),
        ({"rule": "halving"}, "^rule: 'halving' is not known; known are certified, doubling, paper"),
        ({"delta": 1.0}, "^delta: expected a number strictly between 0 and 1"),
        ({"confidence": "wide"}, "^confidence: 'wide' is not known"),
        ({"max_steps": 0}, "^max_steps: expected a whole number >= 1"),
        ({"practical_scale": -1}, "^practical_scale: expected a positive finite number"),
        ({"no_option": 1}, "^no_option: not an option of strategy 'guarded', which takes delta"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        estimate_diameter(make("toy3"), **{"epsilon": 0.5, **arguments})


def test_a_system_that_is_not_communicating_is_refused():
    one_way = TabularMDP(np.eye(4)[[1, 2, 3, 3]][:, None])
    with pytest.raises(InputError, match="no path leads back to the start, state 0, from states 1, 2, 3"):
        estimate_diameter(one_way, 0.5)


RUNS, ALARM = 40, 12  # with failures of probability 0.1 each, 12 or more in 40 have a chance of 4e-4


def wrong(confidence, rule):
    """In how many of the runs the true diameter, 2, is not between the bounds."""
    mdp = two_state_chain(0.5)
    bounds = [estimate_diameter(mdp, 0.5, rule=rule, confidence=confidence, seed=seed) for seed in range(RUNS)]
    return sum(not each.lower <= 2 <= each.diameter for each in bounds)


@pytest.mark.parametrize("rule", ["doubling", "certified"])
def test_it_is_wrong_as_rarely_as_promised_and_sets_too_narrow_are_found_out(rule):
    assert wrong("kl", rule) < ALARM
    assert wrong(gosprl.KL(0.1, scale=0.01), rule) >= ALARM


def test_sets_too_narrow_say_so():
    estimate = estimate_diameter(two_state_chain(0.5), 1, rule="certified", confidence=gosprl.KL(0.1, 0.01), seed=0)
    assert str(estimate.guarantee).startswith("heuristic: scale 0.01")
