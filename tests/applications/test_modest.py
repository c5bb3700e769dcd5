"""Model estimation: the printed requirement typed anew, what is certified and when it ends, how often it is wrong."""

import math

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import gosprl
from gosprl import EmpiricalModel, InputError, TabularMDP
from gosprl.applications import estimate_model
from gosprl.applications.modest import CertifiedModel, PaperModel, more_samples, phi, requirement
from gosprl.envs import make
from gosprl.envs.tabular_env import TabularEnv
from gosprl.sets.certificates import model_errors, slack

FALSE_ALARM = 1e-6
RIVER = make("riverswim6")
TINY = TabularMDP([[[0.5, 0.5], [0, 1]], [[0.2, 0.8], [1, 0]]])
NORMS = ["l1", "max"]
norms = pytest.mark.parametrize("norm", NORMS)


def Phi(X, Y, eta, delta, S, A):
    """As printed in the appendix, after Eq. (budget_modest)."""
    first = 57 * X**2 / eta**2 * math.log(8 * math.e * X * math.sqrt(2 * S * A) / (math.sqrt(delta) * eta)) ** 2
    return math.ceil(first + 24 * Y / eta * math.log(24 * Y * S * A / (delta * eta)))


def sigmas(frequencies):
    return [math.sqrt(p * (1 - p)) for p in frequencies]


def true_errors(mdp, model, norm):
    """[S, A] how far the frequencies are off."""
    off = np.abs(model.dense() - mdp.dense())
    return off.sum(axis=2) if norm == "l1" else off.max(axis=2)


# The printed requirement


@pytest.mark.parametrize(
    ("X", "Y", "eta", "delta", "S", "A"),
    [(0.5, 1, 0.1, 0.1, 6, 2), (1.7, 6, 0.1, 0.1, 6, 2), (3.0, 50, 0.01, 0.05, 50, 5), (0.01, 1, 1.0, 0.5, 2, 2)],
)
def test_phi_is_the_printed_formula(X, Y, eta, delta, S, A):
    assert np.ceil(phi(np.array([X]), Y, eta, delta, S, A)).tolist() == [Phi(X, Y, eta, delta, S, A)]


def test_phi_without_variance_is_the_second_term():
    assert phi(np.zeros(1), 6, 0.1, 0.1, 6, 2)[0] == pytest.approx(24 * 6 / 0.1 * math.log(24 * 6 * 12 / 0.01))


def test_phi_in_numbers():
    """By hand: X = 1/2, Y = 1, eta = 0.1, S A = 12, delta = 0.1.

    57 / 4 / 0.01 = 1425; 8 e / 2 * sqrt(24) / sqrt(0.1) / 0.1 = 1684.433, log 7.42919, squared 55.1929: 78649.9.
    240 log(24 * 12 / 0.01) = 240 * 10.26813 = 2464.4. Sum 81114.2.
    """
    assert phi(np.array([0.5]), 1, 0.1, 0.1, 6, 2)[0] == pytest.approx(81114.2, abs=0.5)


@pytest.mark.parametrize("successors", [None, np.ones((3, 3), dtype=bool)], ids=["open", "closed"])
def test_requirements_of_a_model_made_by_hand(successors):
    """1/2, 1/4, 1/4; one successor; never visited; and one half each."""
    model = EmpiricalModel(3, 2, successors)
    model.update([0] * 4, [0] * 4, [0, 0, 1, 2])
    model.update([0] * 5, [1] * 5, [2] * 5)
    model.update([2, 2], [1, 1], [0, 1])
    rows, eta, delta = np.array([5, 0, 1, 2]), 0.2, 0.05
    frequencies = [[0.5, 0.5], [0.5, 0.25, 0.25], [1.0], []]
    for norm, X_of, Y in (("l1", sum, 3), ("max", max, 1)):
        expected = [
            Phi(X, Y, eta, delta, 3, 2) if X else math.ceil(24 * Y / eta * math.log(24 * Y * 6 / (delta * eta)))
            for X in (X_of(sigmas(p) or [0]) for p in frequencies)
        ]
        assert np.ceil(requirement(model, rows, eta, norm, delta)).tolist() == expected


@norms
@pytest.mark.parametrize("alpha_b", [None, 0.01, 0.3])
def test_the_paper_asks_for_alpha_phi_of_every_pair(norm, alpha_b):
    """At the end every pair has alpha_b Phi of its own frequencies."""
    eta, alpha = (1.5, 1.0) if alpha_b is None else (1.0, alpha_b)
    answer = estimate_model(TINY, eta, norm=norm, rule="paper", alpha_b=alpha_b, seed=0)
    assert answer.stop == "met"
    counts, P = answer.collected.counts, answer.model.dense()
    for s, a in np.ndindex(2, 2):
        X = sum(sigmas(P[s, a])) if norm == "l1" else max(sigmas(P[s, a]))
        Y = 2 if norm == "l1" else 1
        first = 57 * X**2 / eta**2 * math.log(8 * math.e * X * 8**0.5 / (0.1**0.5 * eta)) ** 2 if X else 0
        assert counts[s, a] >= math.ceil(alpha * (first + 24 * Y / eta * math.log(24 * Y * 4 / (0.1 * eta))) - 1e-9)


@pytest.mark.parametrize("rule", ["paper", "decreasing"])
def test_where_nothing_varies_exactly_what_is_printed_is_taken(rule):
    one = TabularMDP([[[1.0]]])
    for alpha in (1.0, 0.1):
        answer = estimate_model(one, 0.4, rule=rule, alpha_b=alpha, delta=0.2, seed=0)
        assert answer.steps == math.ceil(alpha * 24 / 0.4 * math.log(24 / (0.2 * 0.4)))


def test_the_robust_variant_asks_for_less():
    steps = [estimate_model(TINY, 1.0, norm=norm, rule="paper", alpha_b=0.1, seed=0).steps for norm in NORMS]
    assert steps[1] < steps[0]


def test_decreasing_halves_from_one_on():
    model = EmpiricalModel(1, 1)
    rule = PaperModel(model, True, 0.3, "max", 0.1, 0.01, 1.0)
    rows, asked = np.array([], dtype=np.int64), []
    for _ in range(5):
        rule.update(model, rows)
        asked.append((rule.eta, int(rule.pair[0])))
        missing = int(rule.pair[0] - model.visits[0])
        if missing > 0:
            model.update([0] * missing, [0] * missing, [0] * missing)
        rows = np.array([0])
    expected = [(eta, math.ceil(0.01 * 24 / eta * math.log(24 / (0.1 * eta)))) for eta in (1.0, 0.5, 0.3)]
    assert asked == [*expected, expected[-1], expected[-1]]  # and that is the end


def test_decreasing_begins_at_targets_above_one():
    rule = PaperModel(EmpiricalModel(1, 1), True, 1.5, "max", 0.1, 0.01, 1.0)
    assert (rule.eta, rule.target) == (1.5, 1.5)


@norms
def test_decreasing_ends_with_what_the_target_asks_for(norm):
    options = {"norm": norm, "alpha_b": 0.02, "seed": 0}
    decreasing = estimate_model(RIVER, 0.3, rule="decreasing", **options)
    model = decreasing.model
    need = np.ceil(0.02 * requirement(model, np.arange(12), 0.3, norm, 0.1))
    assert decreasing.stop == "met"
    assert np.all(model.visits >= need)
    assert decreasing.steps < 1.5 * estimate_model(RIVER, 0.3, rule="paper", **options).steps


def test_alpha_b_by_default():
    """1 as proved, 0.01 as in the paper's experiments."""
    for rule, alpha in (("paper", 1.0), ("decreasing", 0.01)):
        default, given_ = (
            estimate_model(TINY, 1.9, norm="max", rule=rule, seed=0, **options) for options in ({}, {"alpha_b": alpha})
        )
        assert default.collected.counts.tolist() == given_.collected.counts.tolist()


# What is certified


@norms
@pytest.mark.parametrize("confidence", ["kl", "bernstein"])
@pytest.mark.parametrize("successors", [None, RIVER], ids=["open", "closed"])
def test_certified_ends_when_every_error_is_small_enough(norm, confidence, successors):
    eta = {"kl": 0.5, "bernstein": 1.0}[confidence] / (1 if norm == "l1" else 2)
    options = {} if successors is None else {"successors": successors}
    answer = estimate_model(RIVER, eta, norm=norm, confidence=confidence, seed=0, **options)
    family = {"kl": gosprl.KL, "bernstein": gosprl.Bernstein}[confidence](0.1)
    errors = model_errors(slack(answer.model, family, np.arange(12)), norm)
    assert answer.eta.ravel().tolist() == errors.tolist()
    assert answer.stop == "met"
    assert answer.eta.max() <= eta < 1.2 * answer.eta.max()
    assert answer.steps == answer.collected.counts.sum()


class Watched(CertifiedModel):
    """Notes the errors of all rows at every look."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.looks = []

    def update(self, model, rows):
        changed = super().update(model, rows)
        errors = model_errors(slack(model, self.family, np.arange(len(model.rows))), self.norm)
        self.looks.append((int(model.visits.sum()), errors.max()))
        short = errors > self.eta
        assert np.all(self.pair[short] > model.visits[short])  # more, exactly while it is too large
        assert np.all(self.pair[~short] == 0)
        return changed


@norms
@pytest.mark.parametrize("name", ["riverswim6", "toy3", "wheel30"])
def test_certified_asks_for_more_exactly_while_an_error_is_too_large(norm, name):
    mdp = make(name)
    model = EmpiricalModel.over(mdp.rows)
    rule = Watched(model, True, gosprl.KL(0.1), 1.0, norm)
    result = gosprl.Collector(need=rule, seed=0, model=model).run(mdp)
    assert result.stop == "met"
    assert rule.looks[-1][0] == result.steps
    assert rule.looks[-1][1] <= 1.0
    assert all(error > 1.0 for steps, error in rule.looks if steps < result.steps)


class Logged(gym.Wrapper):
    def reset(self, **options):
        self.at, info = self.env.reset(**options)
        self.log = getattr(self, "log", [])
        return self.at, info

    def step(self, action):
        s, (self.at, *rest) = self.at, self.env.step(action)
        self.log.append((int(s), int(action), int(self.at)))
        return self.at, *rest


@norms
def test_the_last_sample_was_needed(norm):
    """Without it, some pair may be off by more than eta."""
    for seed in range(20):
        env = Logged(TabularEnv(RIVER))
        answer = estimate_model(env, 0.8, norm=norm, seed=seed, resets="never")
        log = np.array(env.log)
        assert len(log) == answer.steps
        before = EmpiricalModel.from_transitions(*log[:-1].T, states=6, actions=2)
        found = np.flatnonzero(~np.isnan(answer.eta.ravel()))
        assert model_errors(slack(before, gosprl.KL(0.1), found), norm).max() > 0.8


@settings(deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 1e6), st.floats(1e-3, 1e3))
def test_more_samples_where_errors_fall_as_one_over_visits(visits, scale, eta):
    """With error = scale / N, what is asked for is never more than scale / eta, rounded up, and always more."""
    error = scale / visits if visits else np.inf
    asked = int(more_samples(np.array([visits]), np.array([error / eta]))[0])
    if error / eta <= 1:
        assert asked == 0
    else:
        assert visits < asked <= max(visits + 1, math.ceil(scale / eta * (1 + 1e-12))) or visits == 0
        assert asked <= 2 * visits + 1


@norms
def test_the_truth_is_within_the_certificate(norm):
    """40 runs at delta = 0.1: more failures than a binomial has with probability 1e-6 would refute it."""
    wrong, narrow = 0, 0
    for seed in range(40):
        answer = estimate_model(TINY, 0.5, norm=norm, seed=seed)
        wrong += bool(np.any(true_errors(TINY, answer.model, norm) > answer.eta + 1e-12))
        scaled = gosprl.KL(0.1, scale=0.01)
        heuristic = estimate_model(TINY, 0.1, norm=norm, seed=seed, confidence=scaled)
        narrow += bool(np.any(true_errors(TINY, heuristic.model, norm) > heuristic.eta + 1e-12))
        assert str(heuristic.guarantee).startswith("heuristic: scale 0.01")
    assert wrong <= binom.isf(FALSE_ALARM, 40, 0.1)
    assert narrow > binom.isf(FALSE_ALARM, 40, 0.1)


@pytest.mark.parametrize("rule", ["paper", "decreasing"])
def test_every_rule_ends_with_a_certificate(rule):
    answer = estimate_model(RIVER, 1.0, rule=rule, alpha_b=0.003, seed=0)
    errors = model_errors(slack(answer.model, gosprl.KL(0.1), np.arange(12)), "l1")
    assert answer.eta.ravel().tolist() == errors.tolist()
    assert np.all(true_errors(RIVER, answer.model, "l1") <= answer.eta)
    assert str(answer.guarantee) == "delta=0.1: every |p_hat - p| is at most its eta"


def test_knowing_the_successors_saves_samples():
    steps = [estimate_model(RIVER, 0.5, seed=0, **options).steps for options in ({}, {"successors": RIVER})]
    assert steps[1] < 0.8 * steps[0]
    sure = TabularMDP([[[0, 1.0]], [[1.0, 0]]])  # nothing else is possible: one sample tells all
    assert estimate_model(sure, 1e-9, seed=0, successors=sure).steps == 2


# Large and small


def test_an_error_that_is_always_met_takes_no_step():
    for norm, eta in (("l1", 2), ("max", 1), ("l1", 1e300)):
        answer = estimate_model(RIVER, eta, norm=norm, seed=0)
        assert (answer.stop, answer.steps) == ("met", 0)
        assert answer.eta.tolist() == [[{"l1": 2, "max": 1}[norm]] * 2] * 6
    for rule in ("paper", "decreasing"):
        assert estimate_model(RIVER, 1e300, rule=rule).steps == 0


@pytest.mark.parametrize("rule", ["certified", "paper", "decreasing"])
def test_an_error_that_is_never_met_ends_with_the_steps(rule):
    answer = estimate_model(RIVER, 1e-300, rule=rule, seed=0, max_steps=500)
    assert (answer.stop, answer.steps) == ("max_steps", 500)
    assert np.all(true_errors(RIVER, answer.model, "l1") <= answer.eta)
    assert "0% of the pairs within 1e-300" in repr(answer)


# Environments


def test_an_environment_and_the_mdp_give_the_same_kind_of_answer():
    of_mdp, of_env = estimate_model(RIVER, 0.8, seed=0), estimate_model(TabularEnv(RIVER), 0.8, seed=0, resets="never")
    for answer in (of_mdp, of_env):
        assert answer.eta.shape == (6, 2)
        assert np.all(answer.eta <= 0.8)
        assert np.all(true_errors(RIVER, answer.model, "l1") <= answer.eta)
    assert str(of_env.guarantee).startswith("delta=0.1, of the states discovered: every")


def test_endings_that_never_came_are_outcomes_that_may():
    """With endings there are more outcomes, so it takes more samples to be sure."""
    never, terminal = (
        np.mean([estimate_model(TabularEnv(RIVER), 0.8, seed=seed, resets=resets).steps for seed in range(6)])
        for resets in ("never", "terminal")
    )
    assert never < terminal


@pytest.mark.parametrize("steps", [None, 60])
@pytest.mark.parametrize("strategy", ["guarded", "random"])
def test_of_an_environment_the_states_found_are_estimated(steps, strategy):
    """Wherever it stops: finite where an action can be taken in a state that was found, nan elsewhere."""
    answer = estimate_model(gym.make("FrozenLake-v1"), 1.4, seed=2, max_steps=steps, strategy=strategy)
    model = answer.model
    live = model.is_discovered[:16]
    assert 1 < live.sum() <= 11
    assert np.isnan(answer.eta).tolist() == [[not here] * 4 for here in live]
    visited = answer.collected.counts > 0
    assert np.all(answer.eta[live] >= np.where(visited[live], 0, 2))
    if steps is None:
        assert np.all(answer.eta[live] <= 1.4)
        table = gym.make("FrozenLake-v1").unwrapped.P
        for s, a in np.ndindex(16, 4):
            if live[s]:
                p = np.zeros(len(model.states))
                for mass, s_next, _, ended in table[s][a]:
                    place = model.states.final(s_next) if ended else s_next
                    if place >= 0:
                        p[place] += mass
                unseen = 1 - p.sum()
                assert np.abs(model.dense()[s, a] - p).sum() + unseen <= answer.eta[s, a] + 1e-12


def test_spaces_that_start_elsewhere():
    class Shifted(TabularEnv):
        def __init__(self, mdp):
            super().__init__(mdp)
            self.observation_space, self.action_space = gym.spaces.Discrete(6, start=3), gym.spaces.Discrete(2, start=5)

        def reset(self, **options):
            s, info = super().reset(**options)
            return s + 3, info

        def step(self, action):
            self.action_space = gym.spaces.Discrete(2)
            s, *rest = super().step(action - 5)
            self.action_space = gym.spaces.Discrete(2, start=5)
            return s + 3, *rest

    plain, shifted = (estimate_model(kind(RIVER), 1.2, seed=0) for kind in (TabularEnv, Shifted))
    assert shifted.eta.tolist() == plain.eta.tolist()
    assert list(shifted.model.states) == [3, 4, 5, 6, 7, 8, None]  # the last is the reset


# Bad input


@pytest.mark.parametrize("eta", [0, -0.1, np.nan, np.inf, "0.1", None, True])
def test_eta_is_positive(eta):
    with pytest.raises(InputError, match="eta: expected a positive finite number"):
        estimate_model(RIVER, eta)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"norm": "l2"}, "norm: 'l2' is not known; known are l1, max"),
        ({"rule": "printed"}, "rule: 'printed' is not known; known are certified, decreasing, paper"),
        ({"rule": ["paper"]}, "rule: .* is not known"),
        ({"alpha_b": 0.1}, "alpha_b: expected rule='paper' or 'decreasing', .* it multiplies, got 'certified'"),
        ({"alpha_b": 0, "rule": "paper"}, "alpha_b: expected a positive finite number, got 0"),
        ({"alpha_b": np.nan, "rule": "paper"}, "alpha_b: expected a positive finite number, got nan"),
        ({"confidence": gosprl.sets.known.Known(RIVER)}, "confidence: expected intervals on the successors"),
    ],
)
def test_other_bad_input(options, words):
    with pytest.raises((InputError, gosprl.CollectionError), match=words):
        estimate_model(RIVER, 0.5, **options)
