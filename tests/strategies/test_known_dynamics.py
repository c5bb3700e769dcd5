"""Known dynamics: gosprl, guarded and practical plan with the truth, learn nothing, and say so."""

import gymnasium
import numpy as np
import pytest
from stepped import Stepped, Untold
from walked import table_collector

import gosprl
from gosprl import KL, Bernstein, Collector, EmpiricalModel, InputError, TabularMDP
from gosprl.envs import make
from gosprl.strategies import Gosprl, Guarded, Practical, prices
from gosprl.strategies.practical import NarrowKL
from gosprl.systems.tabular import Tabular

NAMES = ["gosprl", "guarded", "practical"]
KINDS = {"gosprl": Gosprl, "guarded": Guarded, "practical": Practical}
RIVER, GARNET = make("riverswim6"), make("garnet", states=12, actions=3, branching=3, seed=1)
ROOM = make("room20")


class Python(Stepped):
    def take(self, s, action):
        succ, p = self.table.p(s, action)
        return int(succ[np.searchsorted(np.cumsum(p), self.rng.random(), side="right")]), 0.0


# Steps


DOMAINS = {"corridor24": 10, "four_room43": 5, "trap10": 10, "cliff48": 5, "room20": 10}
MARGIN = 0.03  # of gosprl's mean; measured are 0.93 to 1.01 times its steps, with standard errors of a hundredth
RUNS = 12


@pytest.mark.parametrize("name", ["guarded", "practical"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_hardly_more_steps_than_gosprl_with_the_same_knowledge(domain, name):
    """Means over the same seeds. No strategy can be below the fluid limit on average: 3 % below it is a mistake."""
    mdp, need = make(domain), DOMAINS[domain]
    mean = {}
    for strategy in ("gosprl", name):
        runs = [gosprl.collect(mdp, need, strategy=strategy, dynamics=mdp, seed=seed) for seed in range(RUNS)]
        assert all(run.met for run in runs)
        assert all(str(run.guarantee) == "known dynamics" for run in runs)
        mean[strategy] = np.mean([run.steps for run in runs])
    assert mean[name] < (1 + MARGIN) * mean["gosprl"]
    assert mean[name] > (1 - MARGIN) * gosprl.fluid_limit(mdp, need)


def test_to_know_the_dynamics_saves_steps():
    """On a river the way to the far end has to be found first."""
    for name in NAMES:
        known, unknown = (
            np.mean([gosprl.collect(RIVER, 1, strategy=name, seed=seed, **given).steps for seed in range(30)])
            for given in ({"dynamics": RIVER}, {})
        )
        assert known < 0.95 * unknown


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("need", [4, np.arange(6) * 3, np.random.default_rng(1).integers(0, 9, (6, 2))])
def test_any_need_on_any_system(name, need):
    env = gymnasium.make("gosprl/riverswim6-v0")
    for system in (RIVER, Python(RIVER), env):
        result = gosprl.collect(system, need, strategy=name, dynamics=RIVER, seed=0)
        assert result.met
        about = ", of the states discovered" if system is env and isinstance(need, int) else ""
        assert str(result.guarantee) == f"known dynamics{about}"
        assert result.guarantee.holds
        assert result.guarantee.known
    collector, rng, s = table_collector(6, 2, need, strategy=name, dynamics=RIVER, seed=0), np.random.default_rng(0), 0
    while not collector.done:
        a = collector.ask(s)
        s_next = int(rng.choice(RIVER.p(s, a)[0], p=RIVER.p(s, a)[1]))
        collector.tell(s, a, s_next)
        s = s_next
    assert collector.result().met


# Nothing is learnt


def first_plan(name, model, missing, s):
    """The first policy of a run in which as many samples are missing, whatever is there."""
    had = np.bincount(model.rows.state, weights=model.visits, minlength=model.num_states).astype(int)
    need = np.where(missing > 0, had + missing, 0)
    collector = Collector(model=model, need=need, strategy=name, dynamics=GARNET, seed=3)
    return collector.planner.attempt(s, 1).policy.copy()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("s", [0, 5])
def test_the_first_plan_is_the_same_whatever_was_counted(name, s):
    """Without counts, with many that are right, and with many that are wrong. (Garnets have no ties.)"""
    rng, missing = np.random.default_rng(0), np.where(np.arange(12) % 4 == 3, 10, 0)
    empty, right, wrong = (EmpiricalModel.over(GARNET.rows) for _ in range(3))
    for row in range(len(GARNET.rows)):
        a = GARNET.rows.pair(row)
        succ, p = GARNET.p(*a)
        right.update([a[0]] * 500, [a[1]] * 500, rng.choice(succ, size=500, p=p))
        wrong.update([a[0]] * 500, [a[1]] * 500, rng.integers(12, size=500))
    plans = [first_plan(name, model, missing, s) for model in (empty, right, wrong)]
    inside = plans[0] >= 0
    assert inside[s]
    assert np.array_equal(plans[0], plans[1])
    assert np.array_equal(plans[0], plans[2])


def test_without_the_dynamics_the_first_plan_is_another():
    """So that the test above can fail."""
    missing, wrong, rng = np.where(np.arange(12) % 4 == 3, 10, 0), EmpiricalModel.over(GARNET.rows), np.random
    for row in range(len(GARNET.rows)):
        s, a = GARNET.rows.pair(row)
        wrong.update([s] * 500, [a] * 500, rng.default_rng(row).integers(12, size=500))
    had = np.bincount(wrong.rows.state, weights=wrong.visits).astype(int)
    need = np.where(missing > 0, had + missing, 0)
    collector = Collector(model=wrong, need=need, strategy="practical", seed=3)
    learnt = collector.planner.attempt(0, 1).policy
    assert not np.array_equal(learnt, first_plan("practical", EmpiricalModel.over(GARNET.rows), missing, 0))


@pytest.mark.parametrize("name", NAMES)
def test_no_set_and_no_program_is_made_from_counts_during_a_run(name, monkeypatch):
    def learns(*given, **named):
        raise AssertionError("something was made from counts")

    collector = table_collector(20, 4, 3, strategy=name, dynamics=ROOM, seed=0)
    with monkeypatch.context() as patched:
        for family in (KL, Bernstein, NarrowKL):
            patched.setattr(family, "intervals", learns)
        patched.setattr(prices, "solve_model", learns)
        collector.walk(ROOM)
    result = collector.result()
    assert result.met
    assert name == "gosprl" or result.work["programs"] > 3
    with monkeypatch.context() as patched:
        patched.setattr(KL, "intervals", learns)
        patched.setattr(NarrowKL, "intervals", learns)
        without = {} if name == "gosprl" else {"prior": False}  # plans with the prior need no sets
        with pytest.raises((AssertionError, gosprl.CollectionError), match="made from counts"):
            table_collector(20, 4, 3, strategy=name, seed=0, **without).walk(ROOM)


@pytest.mark.parametrize("name", ["guarded", "practical"])
def test_a_trap_is_avoided_however_unlikely(name):
    """Straight ahead saves a step, and ends in the trap once in 20 000 times: known dynamics know better."""
    P, p = np.zeros((4, 2, 4)), 5e-5
    P[0, 0, [1, 3]], P[0, 1, 2] = (1 - p, p), 1
    P[1, :, 0] = P[2, :, 1] = P[3, :, 3] = 1
    mdp = TabularMDP(P)
    result = gosprl.collect(mdp, [[0, 0], [50, 0], [0, 0], [0, 0]], seed=0, strategy=name, dynamics=mdp)
    assert result.met
    assert result.counts[0].tolist() == [0, 50]


# What cannot be reached


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("reach", "met"), [(49.0, False), (51.0, True)])
def test_reach_is_exact(name, reach, met):
    chain = make("two_state_chain", q=0.02)  # state 1 is 50 steps away
    result = gosprl.collect(chain, [0, 3], strategy=name, dynamics=chain, reach=reach, seed=0)
    assert result.met == met
    assert result.unreachable == ({} if met else {1: "optimistic distance 50 > L = 49"})
    assert met or result.steps == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:goals are taken nearest first for now")
def test_what_has_no_path_is_given_up_and_the_rest_collected(name):
    # 0 <-> 1, and 2 -> 0
    mdp = TabularMDP(([0, 1, 2], [0, 0, 0], [1, 0, 0], np.ones(3)))
    for system, reason in (
        (mdp, "no path from state 0"),
        (Untold(mdp), "no path that surely gets there, whatever the dynamics in the sets"),
    ):
        result = gosprl.collect(system, [10, 10, 1], strategy=name, dynamics=mdp, seed=0, max_steps=10_000)
        assert result.stop == "unreachable"
        assert result.unreachable == {2: reason}
        assert result.unmet.tolist() == [(2, -1, 1, 0)]
        assert str(result.guarantee) == "known dynamics"


@pytest.mark.parametrize("name", NAMES)
def test_what_may_be_reached_but_not_surely_is_given_up_for_that_reason(name):
    # 0 leads to 1 or 2, neither of which is ever left
    mdp = TabularMDP(([0, 0, 1, 2], [0] * 4, [1, 2, 1, 2], [0.5, 0.5, 1, 1]))
    result = gosprl.collect(mdp, [0, 3, 0], strategy=name, dynamics=mdp, seed=0)
    assert (result.stop, result.steps) == ("unreachable", 0)
    assert result.unreachable == {1: "no path that surely gets there, whatever the dynamics in the sets"}


# Options that do not go together


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dynamics": RIVER, "successors": RIVER}, "dynamics, successors: .* give one of the two"),
        ({"dynamics": RIVER.dense()}, "dynamics: expected a TabularMDP, got ndarray"),
        ({"dynamics": "riverswim6"}, "dynamics: expected a TabularMDP, got str"),
        ({"dynamics": make("riverswim", states=7)}, "dynamics: expected the same states and actions as the system's"),
        ({"dynamics": make("toy3")}, "dynamics: expected the same states and actions as the system's"),
        ({"dynamics": RIVER, "confidence": "bernstein"}, "dynamics, confidence: .* give one of the two"),
        ({"dynamics": RIVER, "confidence": KL(0.1)}, "dynamics, confidence: .* give one of the two"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_any_step(name, options, words):
    class Untouched(Tabular):
        def follow(self, *given):
            pytest.fail("a step was made")

    if name == "practical" and "confidence" in options:
        words = "confidence: not an option of strategy 'practical'"
    with pytest.raises(InputError, match=words):
        gosprl.collect(Untouched(RIVER), 1, strategy=name, **options)


@pytest.mark.parametrize("name", NAMES)
def test_dynamics_with_as_many_pairs_in_other_states_are_refused(name):
    ring = TabularMDP(([0, 1, 2], [0, 0, 0], [1, 2, 0], np.ones(3)))
    other = TabularMDP(([0, 0, 1], [0, 1, 0], [1, 0, 0], np.ones(3)))
    with pytest.raises(InputError, match="dynamics: expected the same states and actions"):
        gosprl.collect(ring, 2, strategy=name, dynamics=other, max_steps=100)
    with pytest.raises(InputError, match="dynamics: expected the same states and actions"):
        KINDS[name](dynamics=other).begin(EmpiricalModel.over(ring.rows), None, np.random.default_rng(0))
