"""Collecting from environments whose episodes end.

What was collected is compared with what a wrapper saw pass, and with the table `P` that Gymnasium's toy environments
publish and that the collector never looks at.
"""

import contextlib
import math
import random
import signal
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from scipy.stats import chi2

import gosprl
from gosprl.strategies import UNLIMITED, Attempt, Planner, Strategy
from gosprl.systems.stepper import Stepper

# a few samples of each pair say little of what may have been missed; that this is said is tested elsewhere
pytestmark = pytest.mark.filterwarnings("ignore:met for the .* states discovered")

LEVEL = 1e-3  # false alarms of the chi-square tests
FROZEN = "FrozenLake-v1"
HOLES = [5, 7, 11, 12, 15]  # of the 4x4 map, and its goal
# id, need, states that occur alive, states that episodes end in, options
TOYS = [
    (FROZEN, 50, 11, 5, {}),
    ("FrozenLake8x8-v1", 10, 53, 11, {}),
    ("CliffWalking-v1", 5, 37, 1, {}),
    ("Taxi-v4", 1, 400, 4, {"unseen": 0.6}),  # a hundred states for each place to go to, which the start draws
]


class Recorder(gym.Wrapper):
    """Writes down what passes; calls `trouble` with the number of each step before it is made."""

    def __init__(self, env, trouble=lambda number: None):
        super().__init__(env)
        self.trouble = trouble
        self.calls = 0
        self.steps = []  # (s, a, s_next, reward, terminated, truncated)
        self.resets = []  # (seed, s)

    def reset(self, *, seed=None, options=None):
        self.at, info = self.env.reset(seed=seed, options=options)
        self.resets.append((seed, int(self.at)))
        return self.at, info

    def step(self, action):
        self.calls += 1
        self.trouble(self.calls)
        s_next, reward, terminated, truncated, info = self.env.step(action)
        self.steps.append((int(self.at), int(action), int(s_next), reward, terminated, truncated))
        self.at = s_next
        return s_next, reward, terminated, truncated, info

    def transitions(self):
        """(s, a, s_next, terminated) of every step."""
        return Counter((s, a, n, terminated) for s, a, n, _, terminated, _ in self.steps)

    def starts(self):
        """The state of every reset, the first included: samples of the law of the start."""
        return Counter(s for _, s in self.resets)


class Table(gym.Env):
    """Does what moves[s][a] = (s_next, terminated) says, from each of `starts` in turn and then from the last."""

    def __init__(self, moves, starts=(0,), truncate=None, first_state=0, first_action=0):
        self.moves, self.starts, self.truncate = moves, list(starts), truncate
        self.observation_space = spaces.Discrete(len(moves), start=first_state)
        self.action_space = spaces.Discrete(len(moves[0]), start=first_action)
        self.first = first_state, first_action

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.s = self.starts.pop(0) if len(self.starts) > 1 else self.starts[0]
        self.age = 0
        return self.first[0] + self.s, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.age += 1
        self.s, terminated = self.moves[self.s][action - self.first[1]]
        return self.first[0] + self.s, 0.0, terminated, self.age == self.truncate, {}


def ring(states):
    """Action 0 goes round, action 1 stays."""
    return [[((s + 1) % states, False), (s, False)] for s in range(states)]


def line(states):
    """Action 0 goes on to the last state, which ends the episode; action 1 goes to the start."""
    return [[(s + 1, s + 2 == states), (0, False)] for s in range(states - 1)] + [[(0, False)] * 2]


class Plain(Strategy):
    """A strategy of one endless attempt, always the first action; remembers when and where it was asked."""

    def __init__(self):
        self.asked = []

    def begin(self, model, need, rng):
        return PlainPlanner(model, self.asked)


class PlainPlanner(Planner):
    def __init__(self, model, asked):
        self.model, self.asked = model, asked

    def attempt(self, s, t):
        self.asked.append((t, s))
        rows = self.model.rows
        nowhere = np.zeros(rows.num_states, dtype=bool)
        return Attempt(rows.ptr[:-1].copy(), nowhere, np.full(len(rows), UNLIMITED), UNLIMITED)


def split(model):
    """What a model holds, as counters: (s, a, s_next, terminated) of steps, and the states of resets.

    From a final state to the reset it went as often as episodes ended there.
    """
    walked, ended, finals = Counter(), Counter(), model.states.finals
    for s, a, n, count in zip(*(part.tolist() for part in model.transitions()), strict=True):
        walked[s, a, model.states.key(n), n in finals] += count
        ended[n] += count if n in finals else 0
    assert +ended == +Counter({s: int(model.visits[model.rows.ptr[s]]) for s in finals})
    return walked, Counter(dict(zip(*(part.tolist() for part in model.starts()), strict=True)))


def live(model):
    return model.is_discovered[: model.num_states]


def occurring(env):
    """Breadth first over the table: the states that can occur alive, and those that episodes end in."""
    P, start = env.unwrapped.P, np.flatnonzero(env.unwrapped.initial_state_distrib)
    found, terminal, queue = set(start.tolist()), set(), start.tolist()
    while queue:
        for outcomes in P[queue.pop()].values():
            for probability, n, _, over in outcomes:
                if probability > 0 and over:
                    terminal.add(int(n))
                elif probability > 0 and int(n) not in found:
                    found.add(int(n))
                    queue.append(int(n))
    return found, terminal


def frozen_need(samples):
    need = np.full((16, 4), samples)
    need[HOLES] = 0
    return need


def same(one, other):
    """Bit for bit, but for what is only a name."""
    fields = ("met", "steps", "attempts", "stop", "states", "pairs", "resets", "unseen", "guarantee")
    assert [getattr(one, f) for f in fields] == [getattr(other, f) for f in fields]
    for f in ("counts", "unmet", "curve"):
        assert np.array_equal(getattr(one, f), getattr(other, f))
    assert all(map(np.array_equal, one.model.transitions(), other.model.transitions()))
    assert np.array_equal(one.model.reward_sum, other.model.reward_sum)
    return True


@pytest.fixture(scope="module", params=TOYS, ids=[toy[0] for toy in TOYS])
def toy(request):
    name, need, states, terminal, options = request.param
    env = Recorder(gym.make(name))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = gosprl.collect(env, need=need, seed=0, **options)
    return SimpleNamespace(
        name=name, env=env, need=need, states=states, terminal=terminal, result=result, caught=caught
    )


@pytest.fixture(scope="module")
def frozen():
    env = Recorder(gym.make(FROZEN))
    return SimpleNamespace(env=env, result=gosprl.collect(env, need=50, seed=1))


def test_everything_that_occurs_is_found_and_sampled(toy):
    """On the frozen lakes a state can be missed, with a chance of about (2/3)^need for each pair that leads there."""
    result, model = toy.result, toy.result.model
    found, terminal = occurring(toy.env)
    assert (len(found), len(terminal)) == (toy.states, toy.terminal)  # known of these environments
    assert set(model.discovered) == found
    assert {model.states[s] for s in model.states.finals} == terminal
    assert result.met
    assert result.stop == "met"
    assert len(result.unmet) == 0
    assert result.unreachable == {}
    offered = model.rows.to_dense(np.ones(len(model.rows), dtype=bool))[: len(result.counts)]  # Taxi masks actions
    offered &= live(model)[:, None]
    assert (result.counts[offered] >= toy.need).all()
    assert not result.counts[~offered].any()
    assert offered.all(axis=1).sum() == toy.states or toy.name == "Taxi-v4"
    assert result.counts.sum() == result.steps == len(toy.env.steps)
    assert result.states == toy.states
    assert result.pairs == offered.sum()
    S = toy.env.observation_space.n
    assert model.states[:S] == list(range(S))
    assert (result.of_discovered, str(result.guarantee)) == (True, "delta=0.1, of the states discovered")


def test_the_model_holds_what_happened(toy):
    result = toy.result
    assert split(result.model) == (toy.env.transitions(), toy.env.starts())
    assert result.resets == len(toy.env.resets) - 1 > 0
    rewards = np.zeros(result.counts.shape)
    for s, a, _, reward, *_ in toy.env.steps:
        rewards[s, a] += reward
    S, A = result.counts.shape
    assert result.model.rows.to_dense(result.model.reward_sum)[:S, :A] == pytest.approx(rewards)
    assert result.model.reward_sum.sum() == pytest.approx(rewards.sum())


def test_every_transition_is_possible(toy):
    P, starts = toy.env.unwrapped.P, np.flatnonzero(toy.env.unwrapped.initial_state_distrib)
    walked, resets = split(toy.result.model)
    for s, a, n, terminated in walked:
        assert (n, terminated) in {(int(o[1]), bool(o[3])) for o in P[s][a] if o[0] > 0}
    assert set(resets) <= set(starts.tolist())


def test_no_warning_while_the_run_gets_on(toy):
    """A run is to warn after 50 000 steps that brought nothing needed; here every such wait was shorter."""
    seen, useful = Counter(), [0]
    for number, (s, a, *_) in enumerate(toy.env.steps, 1):
        seen[s, a] += 1
        useful += [number] if seen[s, a] <= toy.need else []
    assert np.diff(useful).max() < 50_000
    warned = [str(warning.message) for warning in toy.caught]
    assert [words for words in warned if not words.startswith(f"met for the {toy.states} states discovered")] == []


def p_value(result, P):
    """Pearson's statistic summed over all pairs; the visits of a pair are draws from its row, whatever led there."""
    statistic = freedom = 0
    walked, _ = split(result.model)
    for s, a in np.argwhere(result.counts):
        expected = Counter()
        for probability, n, *_ in P[s][a]:
            expected[n] += probability * result.counts[s, a]
        expected = +expected
        seen = {n: c for (x, y, n, _), c in walked.items() if (x, y) == (s, a)}
        if seen.keys() - expected.keys():
            return 0.0
        statistic += sum((seen.get(n, 0) - e) ** 2 / e for n, e in expected.items())
        freedom += len(expected) - 1
    return chi2.sf(statistic, freedom)


def test_frequencies_are_those_of_the_table(frozen):
    P = frozen.env.unwrapped.P
    assert p_value(frozen.result, P) > LEVEL
    for wrong in ({"is_slippery": False}, {"success_rate": 0.45}):  # the true rate is 1/3
        assert p_value(frozen.result, gym.make(FROZEN, **wrong).unwrapped.P) < LEVEL


def test_own_domains_never_terminate():
    env = Recorder(gym.make("gosprl/four_room43-v0"))
    mdp = gosprl.envs.make("four_room43")
    result = gosprl.collect(env, need=1, seed=0)
    assert result.met
    assert (result.states, result.pairs, result.resets) == (43, 172, 0)
    walked, resets = split(result.model)
    assert walked == env.transitions()
    assert resets == {mdp.start: 1}
    for s, a, n, _ in walked:
        row = int(mdp.rows.index(s, a))
        assert n in mdp.succ[mdp.ptr[row] : mdp.ptr[row + 1]]


def test_the_random_walk_resets_too():
    env = Recorder(gym.make(FROZEN))
    result = gosprl.collect(env, need=1, seed=0, strategy="random")
    assert result.met
    assert split(result.model) == (env.transitions(), env.starts())
    assert result.resets == len(env.resets) - 1 > 0


# Found states


def test_a_state_found_by_the_last_needed_step_is_still_sampled():
    result = gosprl.collect(Table([[(1, False)], [(2, False)], [(0, False)]]), need=1, seed=0)
    assert result.met
    assert result.counts.min() >= 1
    assert (result.states, result.pairs) == (3, 3)


def test_met_means_every_found_state():
    for seed in range(30):
        result = gosprl.collect(gym.make(FROZEN), need=1, seed=seed)
        assert result.met
        assert (result.counts[live(result.model)] >= 1).all(), f"seed {seed}"


def test_wherever_it_stops_the_result_speaks_of_all_states_found():
    for steps in range(1, 60):
        env = Recorder(gym.make(FROZEN))
        result = gosprl.collect(env, need=5, seed=0, max_steps=steps)
        over = {n for _, _, n, _, terminated, _ in env.steps if terminated}
        found = {s for _, s in env.resets} | {n for _, _, n, _, terminated, _ in env.steps if not terminated}
        seen = Counter((s, a) for s, a, *_ in env.steps)
        missing = {(s, a, 5, seen[s, a]) for s in found for a in range(4) if seen[s, a] < 5}
        if (
            1 < len(env.resets) < 5
        ):  # resets are possible, as is known now, and so as many samples of the start asked for
            missing.add((-1, 0, 5, len(env.resets)))
        assert (result.met, result.stop, result.steps) == (False, "max_steps", steps)
        assert set(result.model.discovered) == found
        assert {result.model.states[s] for s in result.model.states.finals} == over
        assert (result.states, result.pairs) == (len(found), 4 * len(found)), f"after {steps} steps"
        assert set(result.unmet.tolist()) == missing


@pytest.mark.parametrize("need", [3, frozen_need(3)], ids=["found", "array"])
def test_the_curve_is_a_proportion(need):
    curve = gosprl.collect(gym.make(FROZEN), need=need, seed=0).curve
    assert (np.diff(curve["step"]) >= 0).all()
    assert curve["proportion"].min() >= 0
    assert curve["proportion"].max() <= 1
    assert curve["proportion"][-1] == 1


def test_nothing_needed_is_met_at_once():
    env = Recorder(gym.make(FROZEN))
    result = gosprl.collect(env, need=0, seed=0)
    assert (result.met, result.stop, result.steps) == (True, "met", 0)
    assert env.steps == []


# What is needed


def test_need_per_pair():
    need = frozen_need(0)
    need[[1, 6, 14]] = [[0, 7, 2, 0], [1, 1, 1, 30], [0, 0, 4, 0]]
    result = gosprl.collect(gym.make(FROZEN), need=need, seed=0)
    assert result.met
    assert (result.counts >= need).all()
    assert (result.states, result.pairs) == (3, 7)


def test_need_per_state():
    need = np.arange(16)
    need[HOLES] = 0
    result = gosprl.collect(gym.make(FROZEN), need=need, seed=0)
    assert result.met
    assert (result.counts.sum(axis=1) >= need).all()
    assert (result.states, result.pairs) == (10, 0)


def test_need_of_a_wrong_shape():
    with pytest.raises(gosprl.InputError, match=r"\[S, A\] = \(16, 4\), got shape \(4, 16\)"):
        gosprl.collect(gym.make(FROZEN), need=np.ones((4, 16), dtype=int))


def test_samples_of_states_that_are_only_the_end_of_episodes_are_never_claimed():
    """From a final state a reset leads on, and that is no sample."""
    need = np.ones((16, 4), dtype=int)
    result = gosprl.collect(gym.make(FROZEN), need=need, seed=0, max_steps=3000)
    assert result.resets > 0
    assert not result.counts[HOLES].any()
    assert not result.met
    assert set(result.unmet["state"]) >= set(HOLES)


# Resets and truncation


def test_a_termination_is_a_row_of_the_model_and_an_attempt_goes_on_through_it():
    plain = Plain()
    env = Recorder(Table(line(4), starts=(0, 1, 0)))
    result = gosprl.collect(env, need=np.full((4, 2), 99), seed=0, strategy=plain, max_steps=11)
    assert plain.asked == [(1, 0)]
    walked, resets = split(result.model)
    assert walked == {(0, 0, 1, False): 3, (1, 0, 2, False): 4, (2, 0, 3, True): 4}
    assert resets == env.starts()
    assert resets == {0: 3, 1: 1} or resets == {0: 4, 1: 1}  # the last may be pending
    assert result.resets == resets.total() - 1
    assert result.steps == result.counts.sum() == 11
    assert result.counts[3].tolist() == [0, 0]


def test_a_truncation_is_no_transition_and_starts_a_new_attempt():
    plain = Plain()
    env = Recorder(Table(ring(4), truncate=5))
    result = gosprl.collect(env, need=np.full((4, 2), 99), seed=0, strategy=plain, max_steps=12)
    assert plain.asked == [(1, 0), (6, 0), (11, 0)]
    walked, resets = split(result.model)
    assert walked == {(0, 0, 1, False): 5, (1, 0, 2, False): 3, (2, 0, 3, False): 2, (3, 0, 0, False): 2}
    assert resets == {0: 3}  # samples of the start all the same
    assert result.resets == 2


@pytest.mark.parametrize("limit", [3, 7])
def test_a_time_limit_fakes_no_transition(limit):
    """Three steps from the start some states are only ever seen at the end: found, and never sampled."""
    env = Recorder(gym.make(FROZEN, max_episode_steps=limit))
    result = gosprl.collect(env, need=2, seed=0, max_steps=1500)
    assert split(result.model) == (env.transitions(), env.starts())
    assert result.resets == len(env.resets) - 1
    assert sum(truncated for *_, truncated in env.steps) > 10
    for s, a, n, _ in env.transitions():
        assert n in {o[1] for o in env.unwrapped.P[s][a]}
    if limit == 3:
        assert not result.met
        assert set(result.unmet["state"]) == {3, 6, 9} - set(HOLES)  # three steps away


def test_a_step_that_terminates_and_truncates_has_terminated():
    env = Recorder(Table(line(4), truncate=3))
    result = gosprl.collect(env, need=2, seed=0)
    assert result.met
    assert [result.model.states[s] for s in result.model.states.finals] == [3]
    assert split(result.model) == (env.transitions(), env.starts())


@pytest.mark.parametrize("strategy", ["guarded", "gosprl", "practical", "random", "zero_one_ucrl", "min_frequency"])
def test_a_reset_is_no_sample_of_the_state_it_is_chosen_in(strategy):
    """Any action of the start will do, and a reset leads there at once: but it is no action."""
    need = np.array([40, 0, 0])
    env = Recorder(Table([[(1, False)], [(2, False)], [(2, False)]]))
    result = gosprl.collect(env, need, seed=0, resets="anytime", reset_cost=0.1, strategy=strategy, max_steps=5000)
    assert result.met
    assert result.counts[0, 0] == sum(s == 0 for s, *_ in env.steps) == 40
    assert result.counts.sum() == result.steps == len(env.steps)
    assert result.resets == len(env.resets) - 1
    if strategy in ("guarded", "gosprl", "practical"):
        assert result.steps == 40
        assert result.limit == pytest.approx(40 + 39 * 0.1, rel=0.01)


# Numbering


@pytest.mark.parametrize(("first_state", "first_action"), [(10, 5), (-3, 0), (0, -1)])
def test_spaces_that_start_elsewhere(first_state, first_action):
    env = Recorder(Table(line(5), first_state=first_state, first_action=first_action))
    result = gosprl.collect(env, need=3, seed=0)
    assert same(result, gosprl.collect(Table(line(5)), need=3, seed=0))
    assert list(result.model.states) == [*range(first_state, first_state + 5), None, first_state + 4]  # reset, final
    walked, _ = split(result.model)
    named = {(first_state + s, first_action + a, first_state + n, over): c for (s, a, n, over), c in walked.items()}
    assert named == env.transitions()


# What is left alone


class Closed(Table):
    """Publishes nothing."""

    @property
    def P(self):
        raise RuntimeError("P was looked at")


def test_nothing_but_reset_and_step_is_used(monkeypatch):
    def sample(*_, **__):
        raise RuntimeError("a space was sampled")

    monkeypatch.setattr(spaces.Discrete, "sample", sample)
    numpy_state, state = np.random.get_state(), random.getstate()
    for system in (Closed(line(4)), gym.make(FROZEN)):
        for strategy in ("gosprl", "random"):
            assert gosprl.collect(system, need=2, seed=0, strategy=strategy).met
    assert all(map(np.array_equal, numpy_state, np.random.get_state()))
    assert random.getstate() == state


def test_seeded_at_the_first_reset_only():
    env = Recorder(gym.make(FROZEN))
    gosprl.collect(env, need=2, seed=0)
    first, *later = (seed for seed, _ in env.resets)
    assert isinstance(first, int)
    assert len(later) > 5
    assert set(later) == {None}


# Seeds


def test_the_same_seed_gives_the_same_run():
    env, again, other = (Recorder(gym.make(FROZEN)) for _ in range(3))
    assert same(gosprl.collect(env, need=3, seed=7), gosprl.collect(again, need=3, seed=7))
    gosprl.collect(other, need=3, seed=8)
    assert env.steps == again.steps
    assert env.steps[:50] != other.steps[:50]
    assert env.resets[0][0] != other.resets[0][0]


def test_the_same_environment_may_be_used_again():
    env = gym.make(FROZEN)
    assert same(gosprl.collect(env, need=3, seed=7), gosprl.collect(env, need=3, seed=7))


def test_without_a_seed_runs_differ():
    envs = [Recorder(gym.make(FROZEN)) for _ in range(2)]
    for env in envs:
        gosprl.collect(env, need=3)
    assert envs[0].steps[:50] != envs[1].steps[:50]  # the same with probability far below 1e-9


def test_a_thread_of_its_own_changes_nothing():
    """Only the main thread hears signals."""
    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(gosprl.collect, gym.make(FROZEN), need=3, seed=7).result()
    assert same(elsewhere, gosprl.collect(gym.make(FROZEN), need=3, seed=7))


@pytest.mark.parametrize("limit", [100, 4])
def test_n_steps_and_then_m_are_n_plus_m(limit):
    need, total = frozen_need(3), 60
    whole = Recorder(gym.make(FROZEN, max_episode_steps=limit))
    expected = gosprl.collect(whole, need, seed=3, max_steps=total)
    for n in range(1, total):
        env = Recorder(gym.make(FROZEN, max_episode_steps=limit))
        collector = gosprl.Collector(states=16, actions=4, need=need, seed=3)
        assert collector.run(env, max_steps=n).steps == n
        result = collector.run(max_steps=total - n)
        assert env.steps == whole.steps, f"{n} and {total - n}"
        assert env.resets == whole.resets
        assert same(result, expected)


def test_piece_by_piece_until_all_is_met():
    need = frozen_need(5)
    env = Recorder(gym.make(FROZEN))
    collector, system = gosprl.Collector(states=16, actions=4, need=need, seed=5), Stepper(env)
    while not collector.done:
        collector.run(system, max_steps=17)
    assert same(collector.result(), gosprl.collect(gym.make(FROZEN), need, seed=5))


def test_ask_and_tell_by_hand():
    need = frozen_need(10)
    watched = Recorder(gym.make(FROZEN).unwrapped)
    expected = gosprl.collect(watched, need, seed=2)
    env = gym.make(FROZEN).unwrapped
    s, _ = env.reset(seed=watched.resets[0][0])
    collector = gosprl.Collector(states=16, actions=4, need=need, seed=2)
    while not collector.done:
        a = collector.ask(s)
        s_next, reward, terminated, _, _ = env.step(a)
        collector.tell(s, a, s_next, reward=reward, terminated=terminated)
        s = env.reset()[0] if terminated else s_next
    assert same(collector.result(), expected)
    assert expected.resets > 50


# Runs on one environment and on another


@pytest.mark.parametrize("limit", [100, 4])
@pytest.mark.parametrize("strategy", ["guarded", "gosprl", "random"])
def test_runs_on_several_environments_record_what_happened(strategy, limit):
    """Two environments, turn by turn: each run begins with a reset, and that is no transition."""
    envs = [Recorder(gym.make(FROZEN, max_episode_steps=limit)) for _ in range(2)]
    collector = gosprl.Collector(16, 4, frozen_need(10**4), seed=0, strategy=strategy)
    resets = Counter()
    for turn in range(12):
        env, before = envs[turn % 2], collector.result().resets
        result = collector.run(env, max_steps=1 + 3 * turn)
        assert result.stop == "max_steps"
        resets[turn % 2] += result.resets - before
    walked, after = split(result.model)
    assert walked == envs[0].transitions() + envs[1].transitions()
    assert after == envs[0].starts() + envs[1].starts()
    assert result.resets == after.total() - 1
    for i, env in enumerate(envs):
        over = sum(step[4] or step[5] for step in env.steps)
        assert len(env.resets) == resets[i] + (i == 0)  # the first one begins everything
        assert over <= len(env.resets) <= 6 + over  # one an episode, and one a run unless that began in a new one


@pytest.mark.parametrize("outside", ["nothing", "reset", "steps", "both"])
def test_an_environment_that_was_used_between_two_runs(outside):
    for seed in range(4):
        env = Recorder(gym.make(FROZEN))
        collector, made = gosprl.Collector(16, 4, frozen_need(10**4), seed=seed), Counter()
        for turn in range(6):
            begin = len(env.steps)
            result = collector.run(env, max_steps=5 + turn)
            made += Counter((s, a, n, over) for s, a, n, _, over, _ in env.steps[begin:])
            if outside in ("reset", "both"):
                env.reset()
            if outside in ("steps", "both"):
                for action in (0, 1, 2):
                    if any(env.steps[-1][4:]):
                        env.reset()
                    env.step(action)
        assert split(result.model)[0] == made, f"seed {seed}"


def test_every_run_on_an_environment_begins_with_a_reset_unless_none_is_named():
    env = Recorder(Table(ring(9)))
    collector = gosprl.Collector(9, 2, 100, seed=0, strategy=Plain())
    for runs, resets in ((1, 1), (2, 2), (3, 3)):
        collector.run(env, max_steps=4)
        assert len(env.resets) == resets
        assert [s for s, *_ in env.steps[-4:]] == [0, 1, 2, 3], f"run {runs}"
    collector.run(max_steps=3)
    assert len(env.resets) == 3
    assert [s for s, *_ in env.steps[-3:]] == [4, 5, 6]
    assert split(collector.model)[0] == env.transitions()
    assert [seed is None for seed, _ in env.resets] == [False, True, True]


def test_the_same_system_object_goes_on():
    env = Recorder(Table(ring(9)))
    system = Stepper(env)
    collector = gosprl.Collector(9, 2, 100, seed=0, strategy=Plain())
    for _ in range(3):
        collector.run(system, max_steps=2)
    assert len(env.resets) == 1
    assert [s for s, *_ in env.steps] == [0, 1, 2, 3, 4, 5]
    collector.run(Stepper(env), max_steps=1)  # another object: nobody knows where it is
    assert len(env.resets) == 2
    assert split(collector.model)[0] == env.transitions()


@pytest.mark.parametrize("strategy", ["guarded", "gosprl", "random"])
@pytest.mark.parametrize("limit", [100, 4])
def test_n_steps_and_then_m_are_n_plus_m_for_states_that_are_found(limit, strategy):
    """An int: the states found so far. Looking at results in between changes nothing."""
    total, whole = 80, Recorder(gym.make(FROZEN, max_episode_steps=limit))
    expected = gosprl.collect(whole, 2, seed=3, strategy=strategy, max_steps=total)
    for n in range(1, total, 6):
        env = Recorder(gym.make(FROZEN, max_episode_steps=limit))
        system = Stepper(env)
        model = system.model()
        model.allow_resets("terminal")
        collector = gosprl.Collector(need=system.requirement(2, model), model=model, seed=3, strategy=strategy)
        collector.run(system, max_steps=n)
        collector.result()
        result = collector.run(max_steps=total - n)
        assert (env.steps, env.resets) == (whole.steps, whole.resets)
        assert same(result, expected)


@pytest.mark.parametrize("states", [4, 40])
def test_an_environment_of_another_size(states):
    """With more states than the collector has, one that it does not have is an error when it comes up."""
    env, collector = Recorder(Table(ring(states))), gosprl.Collector(9, 2, 5, seed=0)
    collector.run(Table(ring(9)), max_steps=5)
    if states == 4:
        assert collector.run(env, max_steps=200).stop == "max_steps"  # states 4 to 8 are never come to
    else:
        words = r"system: the state that Stepper\.step\(\) returned: expected a state in 0\.\.8, got 9"
        with pytest.raises(gosprl.CollectionError, match=words) as caught:
            collector.run(env)
        assert caught.value.result.counts.sum() == caught.value.result.steps == 5 + len(env.steps) - 1


# What the result promises


def caps(steps, S, A, delta):
    """Per pair visited, the caps on the mass of its unseen successors after each of its visits: the least of them.

    A step may lead to S states, alive or as the end, or crash: 2 S + 1 outcomes. There are S A pairs, and the reset.
    """
    a, b = (math.log((S * A + 1) / (share * delta)) for share in (0.05, 0.65))
    S = 2 * S + 1
    rows = {}
    for s, action, n, *over in steps:
        rows.setdefault((s, action), []).append((n, *over[1:2]))
    least = {}
    for pair, successors in rows.items():
        seen, since, bounds = set(), 0, []
        for i, successor in enumerate(successors, 1):
            since = i if successor not in seen else since
            seen.add(successor)
            k = len(seen)
            bounds.append((math.log(math.comb(S, k)) + math.log(k * (k + 1)) + a) / i)
            if i > since:
                bounds.append((math.log(k * (k + 1)) + b) / (i - since))
        least[pair] = 1 - math.exp(-min(bounds))
    return least


@pytest.mark.parametrize("delta", [0.1, 0.01])
def test_unseen_is_the_largest_cap(delta):
    env = Recorder(gym.make(FROZEN))
    result = gosprl.collect(env, need=20, seed=0, delta=delta)
    assert 0 < result.unseen <= 1
    resets = [("reset", 0, start) for _, start in env.resets]
    assert result.unseen == pytest.approx(max(caps([*env.steps, *resets], 16, 4, delta).values()))
    model = result.model
    visited = (model.visits > 0) & ~model.certain
    assert result.unseen == gosprl.KL(delta).intervals(model).total[visited].max()
    assert str(result.guarantee) == f"delta={delta}, of the states discovered"


def test_unseen_is_about_resets_as_well():
    """Here resets lead to three states, and were made as rarely as was asked for: their own cap is the largest."""
    env = Recorder(Table(line(4), starts=[0, 1, 2] * 100))
    result = gosprl.collect(env, need=20, seed=0)
    resets = [("reset", 0, start) for _, start in env.resets]
    of_resets = caps(resets, 4, 2, 0.1)["reset", 0]
    assert len(resets) >= 20
    assert max(caps(env.steps, 4, 2, 0.1).values()) < of_resets
    assert result.unseen == pytest.approx(of_resets)


def test_unseen_falls_with_more_samples():
    few, many = (gosprl.collect(Table(line(4)), need=need, seed=0).unseen for need in (5, 200))
    assert many < few / 5


def test_nothing_visited_nothing_excluded():
    assert gosprl.collect(gym.make(FROZEN), need=0, seed=0).unseen == 1


@pytest.mark.parametrize(
    ("options", "guarantee"),
    [
        ({}, "delta=0.1, of the states discovered"),
        ({"confidence": "bernstein", "delta": 0.05}, "delta=0.05, of the states discovered"),
        ({"strategy": "gosprl", "scale": 0.1}, "heuristic: scale 0.1"),
        ({"strategy": "gosprl", "confidence": "bernstein", "scale": 0.03}, "heuristic: scale 0.03"),
    ],
)
def test_guarantee(options, guarantee):
    assert str(gosprl.collect(Table(line(4)), need=1, seed=0, **options).guarantee) == guarantee


# Errors


@pytest.mark.parametrize("mode", ["sync", "vector_entry_point"])
def test_a_collector_alone_refuses_vector_environments(mode):
    if mode == "sync":
        envs = gym.make_vec(FROZEN, num_envs=2, vectorization_mode=mode)
    else:
        envs = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode=mode)
    words = (
        r"^system: expected one environment, got a vector environment \(\w+\), whose automatic resets hide transitions"
    )
    with pytest.raises(gosprl.InputError, match=words):
        gosprl.Collector(16, 4, 1).run(envs)
    envs.close()


def test_the_advice_for_continuous_spaces_works():
    env = Recorder(gym.wrappers.DiscretizeObservation(gym.make("MountainCar-v0"), bins=4))
    result = gosprl.collect(env, need=1, seed=0, max_steps=100)
    assert split(result.model)[0] == env.transitions()


def failing(number):
    if number == 50:
        raise RuntimeError("the motor is hot")


def test_an_environment_that_raises():
    env = Recorder(gym.make(FROZEN), failing)
    with pytest.raises(gosprl.CollectionError, match=r"after 49 steps.*the motor is hot") as caught:
        gosprl.collect(env, need=20, seed=0)
    result = caught.value.result
    assert (result.met, result.stop, result.steps) == (False, "failed", 49)
    assert split(result.model) == (env.transitions(), env.starts())
    assert result.counts.sum() == 49
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_an_environment_that_does_not_begin():
    class Broken(Table):
        def reset(self, **_):
            raise OSError("no connection")

    with pytest.raises(gosprl.CollectionError, match="no connection") as caught:
        gosprl.collect(Broken(ring(3)), need=1)
    assert (caught.value.result.stop, caught.value.result.steps) == ("failed", 0)


# The same state, alive and as the end of an episode


def test_a_state_that_ends_an_episode_only_sometimes():
    """State 2 is passed through from state 0 and ends the episode from state 1, and the other way round."""
    for ends in ((0, 1), (1, 0)):
        moves = [[(1, False), (2, bool(ends[0]))], [(2, bool(ends[1])), (0, False)], [(0, False), (1, False)]]
        env = Recorder(Table(moves))
        result = gosprl.collect(env, need=20, seed=0)
        assert result.met
        assert (result.states, result.model.num_states) == (3, 3)
        assert [result.model.states[s] for s in result.model.states.finals] == [2]
        assert split(result.model) == (env.transitions(), env.starts())
        assert {over for s, a, n, over in env.transitions() if n == 2} == {False, True}
        assert result.counts.min() >= 20


def test_a_state_that_ends_an_episode_or_is_truncated_in():
    """State 2 is entered by a termination, or by the last step of a time limit: found then, and never sampled."""
    moves = [[(1, False), (2, True)], [(2, False), (0, False)], [(0, False), (1, False)]]
    env = Recorder(Table(moves, truncate=2))
    result = gosprl.collect(env, need=20, seed=0, max_steps=1000)
    assert (result.stop, set(result.unmet["state"]), list(result.unreachable)) == ("unreachable", {2}, [2])
    assert split(result.model) == (env.transitions(), env.starts())


def test_a_reset_into_a_state_that_ends_episodes():
    """The first step ends in state 1, and there the next episodes start: alive."""
    moves = [[(1, True)], [(0, False)]]
    env = Recorder(Table(moves, starts=(0, 1)))
    result = gosprl.collect(env, need=20, seed=0)
    assert result.met
    assert split(result.model) == (env.transitions(), env.starts())
    assert env.starts()[1] > 10


def test_a_reset_into_a_state_that_ends_episodes_by_hand():
    collector = gosprl.Collector(states=2, actions=1, need=5, seed=0)
    collector.tell(0, collector.ask(0), 1, terminated=True)
    assert collector.ask(1) == 0
    collector.tell(1, 0, 0)
    result = collector.result()
    assert result.counts.tolist() == [[1], [1]]
    assert split(result.model) == ({(0, 0, 1, True): 1, (1, 0, 0, False): 1}, {0: 1, 1: 1})


# Successors known


def neighbours(s, a):
    """The cells of the 4x4 map next to s, and s."""
    row, column = divmod(s, 4)
    near = [(row, column), (row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return [4 * i + j for i, j in near if 0 <= i < 4 and 0 <= j < 4]


def test_candidates_on_frozen_lake():
    env = Recorder(gym.make(FROZEN))
    result = gosprl.collect(env, need=20, seed=0, successors=neighbours, strategy="gosprl")
    assert result.met
    assert split(result.model)[0] == env.transitions()
    steps = [
        [gosprl.collect(gym.make(FROZEN), need=5, seed=seed, strategy="gosprl", **known).steps for seed in range(8)]
        for known in ({"successors": neighbours}, {})
    ]
    assert np.mean(steps[0]) < 0.9 * np.mean(steps[1])


def test_a_step_that_is_not_possible():
    """Without the cell to the left of 10: found out by the very step that goes there."""
    env = Recorder(gym.make(FROZEN))
    collector = gosprl.Collector(
        16, 4, frozen_need(20), seed=0, successors=lambda s, a: [x for x in neighbours(s, a) if (s, x) != (10, 9)]
    )
    words = r"successors: \(s, a\) = \(10, \d\) led to state 9, which is not among its candidates \[6, 10, 11, 14\]"
    with pytest.raises(gosprl.CollectionError, match=words) as caught:
        collector.run(env)
    result = caught.value.result
    assert result.stop == "failed"
    assert env.steps[-1][0] == 10
    assert env.steps[-1][2] == 9
    assert result.steps == result.counts.sum() == len(env.steps) - 1
    env.steps.pop()
    assert split(result.model)[0] == env.transitions()
    resets = len(env.resets)
    with contextlib.suppress(gosprl.CollectionError):  # it goes on with a reset
        collector.run(max_steps=1)
    assert len(env.resets) == resets + 1
    assert split(collector.model) == (env.transitions(), env.starts())


# Ctrl-C


def interrupting(number):
    if number == 50:
        raise KeyboardInterrupt


def signalling(number):
    if number == 50:
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def ctrl_c():
    """Ctrl-C as in a terminal, wherever the tests run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("trouble", [interrupting, signalling])
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_everything(trouble):
    env = Recorder(gym.make(FROZEN), trouble)
    result = gosprl.collect(env, need=20, seed=0)
    assert (result.met, result.stop) == (False, "interrupted")
    assert result.steps == len(env.steps) in (49, 50)
    assert split(result.model)[0] == env.transitions()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("trouble", [failing, interrupting, signalling])
@pytest.mark.usefixtures("ctrl_c")
def test_a_run_that_was_cut_short_goes_on(trouble):
    """No transition is made up where it was cut, wherever in an attempt that was."""
    for seed in range(10):
        env = Recorder(gym.make(FROZEN), trouble)
        collector = gosprl.Collector(states=16, actions=4, need=frozen_need(3), seed=seed)
        with contextlib.suppress(gosprl.CollectionError):
            collector.run(env)
        result = collector.run(env)
        assert result.stop == "met"
        assert split(result.model)[0] == env.transitions(), f"seed {seed}"
        assert len([seed for seed, _ in env.resets if seed is not None]) == 1


class TwoSteps(gym.Env):
    """0 -> 1 -> 2, truncated after two steps."""

    observation_space, action_space = gym.spaces.Discrete(3), gym.spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        self.s = self.t = 0
        return 0, {}

    def step(self, action):
        self.s, self.t = min(self.s + 1, 2), self.t + 1
        return self.s, 0.0, False, self.t >= 2, {}


def test_a_truncated_step_is_heard_by_the_need():
    """The step that meets what is known so far finds a state, or lets a need grow: the run is not over."""
    found = gosprl.collect(TwoSteps(), 1, seed=0, max_steps=20)
    assert found.stop == "max_steps"  # state 2 is found, and never left
    assert found.unmet["state"].tolist() == [2]
    grows = gosprl.collect(TwoSteps(), lambda model: [0, min(3, 1 + int(model.visits[1])), 0], seed=0)
    assert grows.met
    assert grows.counts[1, 0] == 3


# Stopping at a reward, and rewards that must be somewhere


class Paying(Table):
    """Also pays: pays[s][a], as whatever type of number that is."""

    def __init__(self, moves, pays, **options):
        super().__init__(moves, **options)
        self.pays = pays

    def step(self, action):
        reward = self.pays[self.s][action - self.first[1]]
        s_next, _, *rest = super().step(action)
        return s_next, reward, *rest


def at(states, s, a, reward, others=0.0):
    """`reward` at one pair of two actions each."""
    return [[reward if (x, b) == (s, a) else others for b in range(2)] for x in range(states)]


@pytest.mark.parametrize("strategy", ["guarded", "gosprl", "random"])
def test_the_run_ends_at_the_first_reward_above(strategy):
    for seed in range(5):
        env = Recorder(gym.make(FROZEN))
        result = gosprl.collect(env, 10**4, seed=seed, threshold=0.5, strategy=strategy)
        rewards = [step[3] for step in env.steps]
        assert (result.stop, result.steps) == ("found", len(env.steps))
        assert (max(rewards[:-1], default=0), rewards[-1]) == (0, 1)
        *pair, n, reward, terminated, _ = env.steps[-1]
        place = result.model.states.final(n) if terminated else n
        assert result.found == (*pair, place, reward, len(env.steps))
        assert split(result.model)[0] == env.transitions()


def test_the_last_step_may_be_truncated_or_terminate():
    """The reward is at the step that ends the episode: by a limit of three steps, or in the last state."""
    env = Recorder(Paying(ring(6), at(6, 2, 0, 1.0), truncate=3))
    result = gosprl.collect(env, 9, strategy=Plain(), threshold=0.5)
    assert (result.stop, result.found) == ("found", (2, 0, 3, 1.0, 3))
    assert env.steps[-1][4:] == (False, True)
    env = Recorder(Paying(line(4), at(4, 2, 0, 1.0)))
    result = gosprl.collect(env, 9, strategy=Plain(), threshold=0.5)
    assert (result.stop, result.found) == ("found", (2, 0, result.model.states.final(3), 1.0, 3))
    assert env.steps[-1][4:] == (True, False)
    assert (result.resets, [result.model.states[s] for s in result.model.states.finals]) == (0, [3])


def test_resets_are_no_rewards():
    """Every step costs 1, a reset nothing: which is above -0.5, but nothing was found."""
    env = Paying(line(4), at(4, 9, 9, 0, others=-1.0))
    result = gosprl.collect(env, 3, seed=0, threshold=-0.5)
    assert (result.stop, result.found) == ("met", None)
    assert result.resets > 0
    assert gosprl.collect(env, 3, seed=0, threshold=-1.5).found == (0, 0, 1, -1.0, 1)


@pytest.mark.parametrize(("first_state", "first_action"), [(0, 0), (7, -2)])
def test_what_was_found_is_counted_from_zero(first_state, first_action):
    """As are the counts; the model says what the environment calls the states."""
    env = Paying(ring(4), at(4, 2, 1, 1.0), first_state=first_state, first_action=first_action)
    result = gosprl.collect(env, 5, seed=0, threshold=0.5)
    assert result.found[:4] == (2, 1, 2, 1.0)
    assert result.model.states[result.found.state] == first_state + 2


@pytest.mark.parametrize("strategy", ["guarded", "random"])
def test_the_same_seed_finds_the_same(strategy):
    runs = [gosprl.collect(gym.make(FROZEN), 9, seed=3, threshold=0.5, strategy=strategy) for _ in range(2)]
    assert runs[0].found == runs[1].found
    whole, collector = runs[0], gosprl.Collector(16, 4, 10**4, seed=3, threshold=0.5, strategy=strategy)
    system = Stepper(gym.make(FROZEN))
    while not collector.done:
        result = collector.run(system, max_steps=7)
    assert (result.stop, result.met) == ("found", False)
    if strategy == "random":  # which does not look at the need
        assert result.found == whole.found


@pytest.mark.parametrize("reward", ["much", None, 1j])
def test_a_reward_in_words(reward):
    env = Recorder(Paying(ring(3), at(3, 1, 1, reward)))
    with pytest.raises(
        gosprl.CollectionError, match=r"after \d+ steps: .*, step \d+ .*: reward: expected a finite number, got "
    ) as caught:
        gosprl.collect(env, 3, seed=0)
    result = caught.value.result
    assert result.steps == result.counts.sum() == len(env.steps) - 1
    assert env.steps[-1][:2] == (1, 1)


def test_a_reward_that_is_no_number():
    with pytest.raises(
        gosprl.CollectionError, match=r"after \d+ steps: .*, step \d+ .*: reward: expected a finite number, got nan"
    ) as caught:
        gosprl.collect(Paying(ring(3), at(3, 1, 1, np.nan)), 3, seed=0)
    assert np.all(np.isfinite(caught.value.result.model.reward_sum))
