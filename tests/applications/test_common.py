"""What the applications share: the rules, the options, the answers; and what every application does."""

import doctest
import importlib
import pickle

import gymnasium as gym
import numpy as np
import pytest

import gosprl
from gosprl import EmpiricalModel, InputError, TabularMDP
from gosprl.applications import (
    best_state,
    estimate_diameter,
    estimate_model,
    estimate_rewards,
    explore_all_goals,
    find_treasure,
    learn_policy,
)
from gosprl.applications.common import Rule, Walk, check_communicating, check_rewards, dense, listed
from gosprl.envs import make
from gosprl.envs.tabular_env import TabularEnv
from gosprl.strategies import Gosprl, Guarded, Practical, Random

RIVER = make("riverswim6")
PAYS = np.repeat([[0.1], [0.2], [0.3], [0.4], [0.5], [0.95]], 2, axis=1)
REWARDING = TabularMDP(RIVER.dense(), rewards=PAYS, noise="bernoulli", name="river")

# every application here is called by each of the tests below that takes one
APPLICATIONS = {
    "treasure": lambda system, **options: find_treasure(system, **options),
    "threshold": lambda system, **options: find_treasure(system, need=30, threshold=0.5, **options),
    "model": lambda system, **options: estimate_model(system, 1.2, **options),
    "entries": lambda system, **options: estimate_model(system, 0.6, norm="max", **options),
    "paper": lambda system, **options: estimate_model(system, 1.0, rule="paper", alpha_b=0.01, **options),
    "decreasing": lambda system, **options: estimate_model(system, 0.5, rule="decreasing", alpha_b=0.005, **options),
    "rewards": lambda system, **options: estimate_rewards(system, 0.3, **options),
    "budget": lambda system, **options: best_state(system, 60, **options),
    "best": lambda system, **options: best_state(system, epsilon=0.4, **options),
}
applications = pytest.mark.parametrize("application", APPLICATIONS)
few = pytest.mark.filterwarnings("ignore:met for the .* states discovered")  # a sample of each pair says little


def everything(answer):
    """What was collected, in order, and what is printed."""
    model = answer.collected.model
    parts = [answer.collected.counts, *model.stored(), model.reward_sum, answer.collected.curve]
    return repr(answer), [part.tolist() for part in parts]


def met(application):
    return "found" if application == "threshold" else "met"


# Every application


@applications
def test_answers_say_how_they_were_got(application):
    answer = APPLICATIONS[application](REWARDING, seed=0)
    result = answer.collected
    assert answer.stop == result.stop == met(application)
    assert answer.steps == result.steps == result.counts.sum() > 0
    name, *lines = repr(answer).splitlines()
    assert name == type(answer).__name__
    words = dict(line.strip().split(maxsplit=1) for line in lines if not line.startswith("       "))
    assert words["steps"] == f"{answer.steps:,}"
    assert words["stop"] == answer.stop
    assert words["guarantee"] == str(answer.guarantee) != ""
    assert isinstance(answer.guarantee, gosprl.Guarantee)
    begin = {len(line) - len(line[2:].lstrip(" ")) for line in lines if line.startswith("       ")}
    begin |= {line.index(words[first]) for line in lines for first in ("steps", "stop") if line[2:].startswith(first)}
    assert len(begin) == 1  # one column
    assert "nan" not in repr(answer)
    assert max(map(len, lines)) <= 120


@applications
def test_the_same_seed_is_the_same_answer(application):
    runs = [everything(APPLICATIONS[application](REWARDING, seed=seed)) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@few
@applications
def test_answers_can_be_kept(application):
    for system in (REWARDING, gym.make("FrozenLake-v1")):
        answer = APPLICATIONS[application](system, seed=0, max_steps=300)
        assert everything(pickle.loads(pickle.dumps(answer))) == everything(answer)


@few
@applications
@pytest.mark.parametrize("system", [REWARDING, TabularEnv(REWARDING)], ids=["mdp", "env"])
@pytest.mark.parametrize("steps", [1, 7])
def test_a_run_that_ends_early_has_a_partial_answer(application, system, steps):
    answer = APPLICATIONS[application](system, seed=3, max_steps=steps)
    if answer.collected.found:
        assert application == "threshold"
    elif not (application == "treasure" and isinstance(system, TabularEnv)):  # all that was found may be covered
        assert (answer.stop, answer.steps) == ("max_steps", steps)
    assert repr(answer).count("\n") >= 4


@few
@applications
@pytest.mark.parametrize("system", [REWARDING, gym.make("FrozenLake-v1")], ids=["mdp", "env"])
def test_an_interrupted_run_has_a_partial_answer(application, system, monkeypatch):
    monkeypatch.setattr("gosprl.progress.PERIOD", 0.0)
    told = []

    def interrupt(status):
        told.append(status)
        raise KeyboardInterrupt

    answer = APPLICATIONS[application](system, seed=0, progress=interrupt)
    assert answer.stop == ("found" if answer.collected.found else "interrupted")
    assert told[0]["steps"] == answer.steps > 0
    assert repr(answer).count("\n") >= 4


@applications
def test_progress_is_told(application):
    told = []
    answer = APPLICATIONS[application](REWARDING, seed=0, progress=told.append)
    assert told[-1]["steps"] == answer.steps


@few
@applications
def test_environments_are_walked_too(application):
    for env in (TabularEnv(REWARDING), gym.make("FrozenLake-v1")):
        answer = APPLICATIONS[application](env, seed=0)
        assert answer.stop in ("met", met(application))
        assert answer.steps == answer.collected.counts.sum()
        again = APPLICATIONS[application](env, seed=0)
        assert everything(again) == everything(answer)


@applications
@pytest.mark.parametrize("states", [1, 2])
@pytest.mark.parametrize("actions", [1, 2])
def test_the_smallest_systems(application, states, actions):
    P = np.zeros((states, actions, states))
    P[np.arange(states), :, (np.arange(states) + 1) % states] = 1  # a circle, surely
    for noise in ("none", "bernoulli"):
        for pay in (0.0, 1.0):
            rewards = np.full((states, actions), pay)
            answer = APPLICATIONS[application](TabularMDP(P, rewards=rewards, noise=noise), seed=0)
            nothing = application == "threshold" and pay == 0
            assert answer.stop == ("met" if nothing else met(application))


@few
@applications
def test_actions_that_depend_on_the_state(application):
    toy = make("toy3")
    mdp = TabularMDP(toy.dense(), toy.start, rewards=np.repeat([[0.0], [0.25], [1.0]], 2, axis=1), noise="bernoulli")
    for system in (mdp, TabularEnv(mdp)):
        answer = APPLICATIONS[application](system, seed=0)
        assert answer.stop in ("met", met(application))
    assert mdp.rows.num_actions == 2
    answer = APPLICATIONS[application](mdp, seed=0)
    exists = mdp.rows.to_dense(np.ones(4, dtype=bool))
    for name in ("eta", "rewards", "radius"):
        table = getattr(answer, name, None)
        if table is not None and table.ndim == 2:
            assert np.isnan(table).tolist() == (~exists).tolist()


@applications
@pytest.mark.parametrize("delta", [1e-12, 0.999])
def test_levels_near_the_ends(application, delta):
    assert APPLICATIONS[application](REWARDING, seed=0, delta=delta).stop == met(application)


# Options


@applications
def test_the_collector_walks_by_the_sets_of_the_answer(application):
    chosen = gosprl.KL(0.05, 0.5)
    answer = APPLICATIONS[application](REWARDING, seed=0, max_steps=20, delta=0.3, confidence=chosen)
    assert answer.collected.strategy == repr(Guarded(delta=0.3, confidence=chosen))
    answer = APPLICATIONS[application](REWARDING, seed=0, max_steps=20, strategy="gosprl", confidence=chosen, delta=0.3)
    assert answer.collected.strategy == repr(Gosprl(delta=0.3, confidence=chosen))


@applications
def test_strategies_and_their_options_pass_through(application):
    def collected(**options):
        return APPLICATIONS[application](REWARDING, seed=0, max_steps=20, **options).collected

    assert collected(strategy="random").strategy == repr(Random())
    assert collected(strategy=Gosprl(delta=0.01), delta=0.3).strategy == repr(Gosprl(delta=0.01))
    assert collected(strategy="practical", delta=0.3).strategy == repr(Practical(delta=0.3))
    for strategy, kind in (("guarded", Guarded), ("gosprl", Gosprl), ("practical", Practical)):
        known = collected(strategy=strategy, dynamics=REWARDING)
        assert known.strategy == repr(kind(dynamics=REWARDING))
        assert str(known.guarantee) == "known dynamics"
    assert collected(kappa=2.0).strategy == repr(Guarded(kappa=2.0))
    assert collected(strategy="gosprl", scale=0.1).strategy == repr(Gosprl(scale=0.1))
    with pytest.raises(InputError, match=r"scale: not an option of strategy 'guarded'.*option of gosprl, practical,"):
        collected(scale=0.1)  # no option chooses another strategy


@applications
def test_successors_that_are_known_pass_through(application):
    answer = APPLICATIONS[application](REWARDING, seed=0, successors=REWARDING)
    assert answer.stop == met(application)
    assert answer.collected.model.closed


@applications
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0}, "delta: expected a number strictly between 0 and 1, got 0"),
        ({"delta": 1}, "delta: expected a number strictly between 0 and 1, got 1"),
        ({"delta": np.nan}, "delta: expected a number strictly between 0 and 1, got nan"),
        ({"delta": "0.1"}, "delta: expected a number strictly between 0 and 1"),
        ({"confidence": "hoeffding"}, "confidence: 'hoeffding' is not known; known are bernstein, kl"),
        ({"confidence": gosprl.KL}, r"confidence: expected bernstein, kl or an object derived from gosprl.Conf"),
        ({"confidence": 3}, r"confidence: expected bernstein, kl or .*gosprl.Confidence, got 3"),
        ({"confidence": np.random}, "confidence: expected bernstein, kl or .*gosprl.Confidence, got <module"),
        ({"seed": -1}, "seed: expected a whole number >= 0, got -1"),
        ({"seed": 0.5}, "seed: expected a whole number"),
        ({"max_steps": 0}, "max_steps: expected a whole number >= 1, got 0"),
        ({"strategy": "greedy"}, "strategy: 'greedy' is not known; known are .*random"),
        ({"kapa": 1}, "kapa: not an option of strategy 'guarded', which takes delta, confidence, .*kappa"),
        ({"kapa": 1, "strategy": "random"}, "kapa: not an option of strategy 'random', which takes no options"),
        (
            {"strategy": None},
            "strategy: expected a name, one of guarded, .*, or a gosprl.strategies.Strategy, got None",
        ),
        ({"progress": "yes"}, "progress: expected True, False, None or a callable, got 'yes'"),
    ],
)
def test_bad_options_are_refused_before_any_step(application, options, words):
    with pytest.raises(InputError, match=words):
        APPLICATIONS[application](REWARDING, **options)


@applications
@pytest.mark.parametrize("system", [None, 3, RIVER.dense()])
def test_what_is_no_system(application, system):
    with pytest.raises(
        InputError, match=r"system: expected a TabularMDP, a Gymnasium environment, .*or a gosprl.systems.System, got"
    ):
        APPLICATIONS[application](system)


ONE_WAY = [(0, 0, 1), (1, 0, 0), (1, 1, 2), (2, 0, 2)]  # 0 <-> 1 -> 2, which is never left
NO_WAY = [(0, 0, 1), (1, 0, 0), (2, 0, 0)]  # 0 <-> 1, and 2 leads there


def moves(parts, **options):
    s, a, s_next = np.transpose(parts)
    rewards = np.full((s.max() + 1, a.max() + 1), 0.5)
    return TabularMDP((s, a, s_next, np.ones(len(s))), rewards=rewards, **options)


@applications
@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (NO_WAY, "in the pond, no path leads from the start, state 0, to state 2$"),
        (ONE_WAY, "in the pond, no path leads back to the start, state 0, from state 2$"),
    ],
)
def test_what_cannot_be_reached_is_named(application, parts, words):
    with pytest.raises(InputError, match="system: expected a communicating MDP.*" + words):
        APPLICATIONS[application](moves(parts, name="the pond"))


@pytest.mark.parametrize("application", ["rewards", "budget", "best"])
def test_rewards_are_wanted_and_in_the_unit_interval(application):
    with pytest.raises(
        InputError, match=r"system: expected an MDP with rewards, but mdp has none; .*TabularMDP\(P, rewards="
    ):
        APPLICATIONS[application](TabularMDP(RIVER.dense()))
    words = r"rewards: .*\[0, 1\], got 3 at \(s, a\) = \(0, 0\); scale them: .*low = -2, high = 3"
    with pytest.raises(InputError, match=words):
        APPLICATIONS[application](
            TabularMDP(RIVER.dense(), rewards=np.repeat([[3], [1], [0], [1], [-2], [0.0]], 2, axis=1))
        )
    cliff = gym.make("CliffWalking-v1")
    with pytest.raises(InputError, match=r"rewards: expected rewards in \[0, 1\], got -1.*TransformReward"):
        APPLICATIONS[application](cliff, seed=0)
    scaled = gym.wrappers.TransformReward(cliff, lambda reward: (reward + 100) / 100)  # the advice works
    assert APPLICATIONS[application](scaled, seed=0, max_steps=200).steps == 200


@few
@pytest.mark.parametrize("application", ["treasure", "threshold", "model"])
def test_other_applications_take_any_rewards(application):
    for system in (RIVER, TabularMDP(RIVER.dense(), rewards=PAYS * 100 - 5), gym.make("CliffWalking-v1")):
        assert APPLICATIONS[application](system, seed=0, max_steps=5000).steps > 0


# Rules


class Noting(Rule):
    """Wants 2 of every row, then 3 of every row, and notes when it was asked what."""

    def __init__(self, model, all_states):
        super().__init__(model, all_states)
        self.demanded, self.proceeded = [], 0

    def demand(self, model, rows):
        self.demanded.append(rows.tolist())
        return np.full(len(rows), 2)

    def proceed(self, model):
        self.proceeded += 1
        return np.full(len(self.pair), 3) if self.proceeded == 1 else None


class Resetting(Noting):
    resets = True


def rows(*numbers):
    return np.array(numbers, dtype=np.int64)


def test_a_rule_counts_all_states_at_once_where_they_are_known():
    model = EmpiricalModel(3, np.array([[True, True], [True, False], [True, True]]))
    rule = Noting(model, True)
    assert sorted(rule.update(model, rows())) == [0, 1, 2, 3, 4]
    assert rule.pair.tolist() == [2] * 5
    model.update([0, 0], [0, 0], [1, 1])
    assert rule.update(model, rows(0)).tolist() == []  # asked again, and the same
    assert rule.demanded == [[0, 1, 2, 3, 4], [0]]
    model.update([0, 0, 1, 1, 2, 2, 2, 2], [1, 1, 0, 0, 0, 0, 1, 1], [0] * 8)
    assert sorted(rule.update(model, rows(1, 2, 3, 4))) == [0, 1, 2, 3, 4]
    assert rule.proceeded == 1
    assert rule.pair.tolist() == [3] * 5
    assert rule.update(model, rows()).tolist() == []
    assert rule.proceeded == 1  # not before all is there


def test_a_rule_goes_on_at_once_if_all_is_there():
    model = EmpiricalModel(1, 1)
    model.update([0] * 5, [0] * 5, [0] * 5)
    rule = Noting(model, True)
    rule.update(model, rows(0))
    assert (rule.proceeded, rule.pair.tolist()) == (2, [3])


@pytest.mark.parametrize("kind", [Noting, Resetting])
def test_a_rule_counts_states_as_they_are_discovered(kind):
    model = EmpiricalModel(4, 2)
    model.allow_resets("terminal")
    rule = kind(model, False)
    assert rule.update(model, rows()).tolist() == []
    assert rule.proceeded == 0  # nothing counts: nothing is met
    assert rule.num_states(model) == 0
    model.discover(1)
    assert rule.update(model, rows()).tolist() == [2, 3]
    final = model.final(3)
    rule.resize(model, rows(*range(len(rule.pair))))
    assert rule.update(model, rows(2)).tolist() == []  # no episode ended there yet
    model.update([1, final], [0, 0], [final, model.states.reset])
    reset = int(model.rows.ptr[model.states.reset])
    assert rule.update(model, rows(2)).tolist() == ([reset] if kind is Resetting else [])
    assert np.flatnonzero(rule.counting).tolist() == ([2, 3, reset] if kind is Resetting else [2, 3])
    assert rule.num_states(model) == (2 if kind is Resetting else 1)
    model.update([0], [0], [1])
    assert rule.update(model, rows(0, 1)).tolist() == []  # states that were not discovered do not count
    assert rule.pair.tolist()[:2] == [0, 0]


# Pieces


def test_the_sets_at_a_share_of_delta():
    walk = Walk(0.2, "bernstein", None, None, None, {})
    assert walk.family() == gosprl.Bernstein(0.2)
    assert walk.family(0.25) == gosprl.Bernstein(0.05)
    mine = gosprl.KL(0.3)
    assert Walk(0.2, mine, None, None, None, {}).family(0.25) is mine


def test_levels_in_words():
    def walk(confidence):
        return Walk(0.2, confidence, None, None, None, {})

    assert (str(walk("kl").level), str(walk("kl").at(0.05))) == ("delta=0.2", "delta=0.05")
    assert str(walk(gosprl.KL(0.01)).level) == "delta=0.01"  # that of the sets
    scaled = walk(gosprl.Bernstein(0.01, 0.5))
    assert scaled.level == scaled.at(0.2)
    assert str(scaled.level) == "heuristic: scale 0.5"


@pytest.mark.parametrize("application", ["rewards", "best"])
def test_what_rewards_prove_is_at_delta_whatever_the_sets_of_the_walk(application):
    answer = APPLICATIONS[application](REWARDING, seed=0, delta=0.2, confidence=gosprl.KL(0.001))
    assert str(answer.guarantee).startswith("delta=0.2: ")
    answer = APPLICATIONS[application](REWARDING, seed=0, confidence=gosprl.KL(0.001, 0.5))
    assert str(answer.guarantee).startswith("heuristic: scale 0.5: ")


def test_what_models_prove_is_at_the_level_of_the_sets():
    answer = estimate_model(REWARDING, 1.2, seed=0, delta=0.2, confidence=gosprl.KL(0.001))
    assert str(answer.guarantee).startswith("delta=0.001: ")


def test_known_dynamics_prove_no_more_than_the_sets():
    """Walking by known dynamics changes how samples come about, not what they prove."""
    answer = estimate_model(REWARDING, 1.2, seed=0, dynamics=REWARDING)
    assert str(answer.guarantee).startswith("delta=0.1: ")


def test_communicating_systems_pass():
    for name in ("riverswim6", "toy3", "four_room43", "wheel30"):
        check_communicating(make(name))
    check_communicating(TabularMDP([[[1.0]]]))


def test_long_lists_are_cut():
    parts = [(0, 0, 0)] + [(s, 0, 0) for s in range(1, 12)]
    with pytest.raises(
        InputError, match=r"leads from the start, state 0, to states 1, 2, 3, 4, 5, 6, 7, 8 and 3 more$"
    ):
        check_communicating(moves(parts))
    assert listed(rows(4)) == "state 4"
    assert listed(rows(4, 5)) == "states 4, 5"


def test_rewards_at_the_ends_pass():
    check_rewards(TabularMDP(RIVER.dense(), rewards=np.linspace(0, 1, 12).reshape(6, 2)))


def test_tables_have_nan_where_nothing_can_be_taken():
    model = EmpiricalModel(3, np.array([[True, True], [False, True], [True, True]]))
    model.allow_resets("anytime")
    model.final(2)
    model.offer(2, [1])
    table = dense(model, model.rows.state + model.rows.action / 10)
    assert table == pytest.approx(np.array([[0, 0.1], [np.nan, 1.1], [np.nan, 2.1]]), nan_ok=True)


def test_tables_have_the_live_states_in_the_order_of_results():
    model = EmpiricalModel(None, 2)
    model.allow_resets("terminal")
    places = [model.locate("a"), model.final("z"), model.locate("b", [1])]
    table = dense(model, np.where(model.rows.state == places[2], 7, 5), 0)
    assert table.tolist() == [[5, 5], [0, 7]]


def test_what_was_said_to_be_possible_is_a_condition_of_what_is_proved_of_dynamics():
    walk = {"seed": 0, "max_steps": 20, "successors": REWARDING}
    for answer in (
        gosprl.applications.estimate_model(REWARDING, 0.5, **walk),
        gosprl.applications.estimate_diameter(REWARDING, 1, **walk),
        gosprl.applications.explore_all_goals(REWARDING, 1, c_min=0.5, **walk),
        gosprl.applications.learn_policy(REWARDING, 0.5, 1, **walk),
        gosprl.applications.estimate_model(REWARDING, 0.5, max_steps=9, strategy=Gosprl(successors=REWARDING)),
    ):
        assert str(answer.guarantee).startswith("delta=0.1, given the successors: ")
    answer = gosprl.applications.estimate_rewards(REWARDING, 0.5, **walk)
    assert str(answer.guarantee).startswith("delta=0.1: ")


@pytest.mark.parametrize("option", [{"states": 6}, {"around": None}, {"model": EmpiricalModel(6, 2)}, {"need": 3}])
def test_what_the_system_and_the_objective_decide_is_no_option(option):
    with pytest.raises(InputError, match=f"^{next(iter(option))}: not an option of an application; the system"):
        estimate_model(REWARDING, 0.5, max_steps=9, **option)


@pytest.mark.parametrize("name", ["best", "diameter", "goal_free", "modest", "policy", "rewards", "treasure"])
def test_the_examples_of_the_docstrings(name):
    failed, attempted = doctest.testmod(importlib.import_module(f"gosprl.applications.{name}"))
    assert (failed, attempted > 0) == (0, True)


# Sets of which nothing is known


class Unstated(gosprl.Confidence):
    """Sets far too narrow, of a class that states no level."""

    def intervals(self, model, rows=None):
        return gosprl.KL(0.1, 1e-4).intervals(model, rows)


class Stated(Unstated):
    """The same, of a class that vouches for them."""

    delta = 0.05


UNSTATED = {
    **{name: application for name, application in APPLICATIONS.items() if name != "budget"},
    "diameter": lambda system, **options: estimate_diameter(system, epsilon=1, rule="certified", **options),
    "goals": lambda system, **options: explore_all_goals(system, epsilon=4, c_min=1.0, rule="certified", **options),
    "policy": lambda system, **options: learn_policy(system, gamma=0.5, epsilon=1.5, **options),
}


@pytest.mark.parametrize("application", UNSTATED)
def test_sets_that_state_no_level_are_heuristic_in_every_answer(application):
    answer = UNSTATED[application](REWARDING, seed=0, max_steps=500, confidence=Unstated(), delta=0.1)
    for guarantee in (answer.guarantee, answer.collected.guarantee):
        assert guarantee.level is None
        assert not guarantee.holds
        assert guarantee.why == "heuristic: Unstated states no level of its sets"
    assert "delta=" not in repr(answer)
    held = UNSTATED[application](REWARDING, seed=0, max_steps=500, confidence=Stated(), delta=0.1)
    assert held.guarantee.holds or application in ("treasure", "threshold")  # theirs is that of the run


def test_no_level_stands_over_a_diameter_that_is_wrong():
    wrong = 0
    for seed in range(5):
        answer = estimate_diameter(RIVER, epsilon=1, rule="certified", confidence=Unstated(), seed=seed)
        wrong += not answer.lower <= RIVER.diameter() <= answer.diameter
        assert not answer.guarantee.holds
    assert wrong  # these sets are wrong ones: a level would be false


@few
def test_statements_beside_an_answer_say_that_they_have_a_delta_of_their_own():
    far = np.array([[[0.5, 0.5, 0.0]], [[0.5, 0.499, 0.001]], [[0.0, 0.0, 1.0]]])
    far[2, 0] = [1.0, 0.0, 0.0]
    mdp = TabularMDP(far, rewards=np.zeros((3, 1)))
    answer = estimate_rewards(mdp, 0.2, seed=0, reach=5)
    assert answer.collected.unreachable
    assert "given up   state 2 (at a delta of its own)" in repr(answer)
    assert "its own" not in repr(estimate_rewards(mdp, 0.2, seed=0, max_steps=100))
    seen = estimate_rewards(TabularEnv(mdp), 0.2, seed=0, max_steps=100)
    assert "(at a delta of its own)" in dict(seen.ending())["unseen"]
    assert "(at a delta of its own)" in dict(seen.collected.lines())["unseen"]
