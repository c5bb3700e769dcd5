"""A simulated MDP: the compiled walk is that of plain Python over the same uniforms; the laws of the simulation."""

import re

import numpy as np
import pytest
from scipy import stats
from stepped import Stepped

import gosprl
from gosprl import EmpiricalModel, TabularMDP
from gosprl.envs import make
from gosprl.strategies import Attempt, Planner, Strategy
from gosprl.strategies import random as random_walk
from gosprl.systems.tabular import Tabular


class Python(Stepped):
    """One uniform a step by inverse distribution, in stored order."""

    def take(self, s, action):
        mdp = self.table
        succ, p = mdp.p(s, action)
        i = np.searchsorted(np.cumsum(p), self.rng.random(), side="right")
        s_next = int(succ[min(i, len(succ) - 1)])
        reward = 0.0 if mdp.rewards is None else float(mdp.rewards[mdp.rows.index(s, action)])
        return s_next, float(self.rng.random() < reward) if mdp.noise == "bernoulli" else reward


class Fuzz(Strategy):
    """Attempts of every kind, at random: rows or probabilities, holes, goals, limits, horizons."""

    def begin(self, model, need, rng):
        return FuzzPlanner(model, rng)


class FuzzPlanner(Planner):
    def __init__(self, model, rng):
        self.model, self.rng = model, rng

    def attempt(self, s, t):
        model, rng = self.model, self.rng
        S, R, ptr = model.num_states, len(model.rows), model.rows.ptr
        if rng.random() < 0.3:
            weights = rng.random(R)
            policy = weights / np.add.reduceat(weights, ptr[:-1])[model.rows.state]
        else:
            policy = rng.integers(ptr[:-1], ptr[1:])
            policy[(rng.random(S) < 0.2) & (np.arange(S) != s)] = -1
        limit = model.visits + rng.integers(0, 6, R)
        sample = policy.dtype == np.int64 and bool(rng.random() < 0.5)
        return Attempt(policy, rng.random(S) < 0.1, limit, int(rng.integers(1, 15)), sample)


def everything(result):
    """All that a run collected, in the order in which it was."""
    model = result.model
    parts = [result.counts, *model.stored(), model.reward_sum, model.reward_sq, result.unmet]
    return result.steps, result.attempts, result.stop, [part.tolist() for part in parts]


REWARDS = np.linspace(0, 1, 12).reshape(6, 2)
RIVER = make("riverswim6")
MDPS = {
    "river": RIVER,
    "toy3": make("toy3"),
    "garnet": make("garnet", states=30, actions=3, branching=12, seed=2),  # rows outgrow their room
    "rewards": TabularMDP(RIVER.dense(), rewards=REWARDS - 0.5),
    "bernoulli": TabularMDP(RIVER.dense(), rewards=REWARDS, noise="bernoulli"),
}
STRATEGIES = {
    "kl": {},
    "bernstein": {"strategy": "gosprl", "confidence": "bernstein", "scale": 0.1},
    "random": {"strategy": "random"},
    "fuzz": {"strategy": Fuzz()},
}


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("strategy", [*STRATEGIES, "known"])
@pytest.mark.parametrize("kind", ["pairs", "states"])
def test_both_engines_walk_the_same_way(mdp, strategy, kind):
    mdp = MDPS[mdp]
    options = {"strategy": "gosprl", "dynamics": mdp} if strategy == "known" else STRATEGIES[strategy]
    need = 3 if kind == "pairs" else np.arange(mdp.num_states)
    for seed in range(2):
        compiled = gosprl.collect(mdp, need, seed=seed, max_steps=3000, **options)
        python = gosprl.collect(Python(mdp), need, seed=seed, max_steps=3000, **options)
        assert compiled.steps > 5
        assert everything(compiled) == everything(python)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_both_engines_draw_the_same_curve(strategy):
    options = {"seed": 0, "max_steps": 3000} | STRATEGIES[strategy]
    compiled = gosprl.collect(RIVER, 3, **options)
    python = gosprl.collect(Python(RIVER), 3, **options)
    assert compiled.curve.tolist() == python.curve.tolist()


def test_both_engines_end_random_walks_at_the_horizon(monkeypatch):
    monkeypatch.setattr(random_walk, "HORIZON", 7)
    compiled = gosprl.collect(RIVER, 3, strategy="random", seed=0, max_steps=300)
    python = gosprl.collect(Python(RIVER), 3, strategy="random", seed=0, max_steps=300)
    assert compiled.attempts == -(-compiled.steps // 7)
    assert everything(compiled) == everything(python)


@pytest.mark.parametrize("mdp", ["river", "bernoulli"])
def test_both_engines_go_the_same_long_way(mdp):
    options = {"strategy": "random", "seed": 0, "max_steps": 25_000}  # beyond any block that is drawn at once
    compiled, python = (gosprl.collect(system, 10**6, **options) for system in (MDPS[mdp], Python(MDPS[mdp])))
    assert everything(compiled) == everything(python)


def test_other_uniforms_are_another_walk():
    """The comparison is no comparison of two empty hands."""

    class Shifted(Python):
        def seed(self, rng):
            rng.random()
            super().seed(rng)

    compiled = gosprl.collect(RIVER, 3, seed=0)
    assert everything(compiled) != everything(gosprl.collect(Shifted(RIVER), 3, seed=0))


@pytest.mark.parametrize("block", [1, 2, 17])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_blocks_change_nothing(monkeypatch, strategy, block):
    options = {"seed": 3, "max_steps": 400} | STRATEGIES[strategy]
    whole = gosprl.collect(RIVER, 3, **options)
    monkeypatch.setattr(Tabular, "block", block)
    in_blocks = gosprl.collect(RIVER, 3, **options)
    assert everything(whole) == everything(in_blocks)
    assert whole.curve.tolist() == in_blocks.curve.tolist()


@pytest.mark.parametrize("need", [1, 4])
def test_the_curve_and_the_counts_are_those_of_the_walk(need):
    python = Python(RIVER)
    gosprl.collect(python, need, seed=5)
    result = gosprl.collect(RIVER, need, seed=5)
    N, expected = np.zeros((6, 2), dtype=int), [(0, 0.0)]
    for t, (s, a, _) in enumerate(python.log):
        N[s, a] += 1
        met = np.all(need <= N, axis=1).mean()
        if met != expected[-1][1]:
            expected.append((t + 1, met))
    assert result.curve["step"].tolist() == [step for step, _ in expected]
    assert result.curve["proportion"] == pytest.approx([met for _, met in expected], abs=1e-15)
    assert result.counts.tolist() == N.tolist()
    triples, number = np.unique(python.log, axis=0, return_counts=True)
    assert np.column_stack(result.model.transitions()).tolist() == np.column_stack([triples, number]).tolist()


LEVEL = 1e-4  # false-alarm rate of each of the two tests below, all rows together


def test_next_states_follow_the_dynamics():
    mdp = MDPS["garnet"]
    model = gosprl.collect(mdp, 10**6, strategy="random", seed=0, max_steps=200_000).model
    p_values = []
    for r in range(len(mdp.rows)):
        succ, p = mdp.p(*mdp.rows.pair(r))
        seen, frequency = model.p_hat(*mdp.rows.pair(r))
        observed = np.zeros(mdp.num_states)
        observed[seen] = frequency * model.visits[r]
        assert observed[succ].sum() == pytest.approx(model.visits[r])  # nothing impossible happened
        rare = p * model.visits[r] < 5  # pooled, as chi-square asks for
        cells = [(observed[succ[~rare]], p[~rare]), ([observed[succ[rare]].sum()], [p[rare].sum()])]
        observed, expected = (np.concatenate(part) for part in zip(*cells, strict=True))
        keep = expected > 0
        if keep.sum() > 1:
            p_values.append(stats.chisquare(observed[keep], expected[keep] * model.visits[r]).pvalue)
    assert len(p_values) > 80
    assert min(p_values) > LEVEL / len(p_values)


def test_bernoulli_rewards_have_their_means():
    model = gosprl.collect(MDPS["bernoulli"], 10**6, strategy="random", seed=0, max_steps=50_000).model
    hits, visits = np.round(model.reward_sum).astype(int), model.visits
    assert np.array_equal(model.reward_sq, model.reward_sum)  # zeros and ones
    p_values = [
        stats.binomtest(int(k), int(n), p).pvalue for k, n, p in zip(hits, visits, REWARDS.ravel(), strict=True) if n
    ]
    assert len(p_values) > 8
    assert min(p_values) > LEVEL / len(p_values)


def test_plain_rewards_are_the_means():
    result = gosprl.collect(MDPS["rewards"], 3, seed=0)
    assert result.model.reward_sum == pytest.approx(result.model.visits * (REWARDS - 0.5).ravel())
    assert result.model.reward_sq == pytest.approx(result.model.visits * ((REWARDS - 0.5) ** 2).ravel())


def test_a_walk_begins_where_the_mdp_does():
    mdp = TabularMDP(RIVER.dense(), start=4)
    assert gosprl.collect(mdp, 100, seed=0, max_steps=1).counts[4].sum() == 1


# Successors known


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("confidence", ["kl", "bernstein"])
def test_both_engines_walk_the_same_way_over_candidates(mdp, confidence):
    mdp = MDPS[mdp]
    options = {"seed": 1, "max_steps": 3000, "confidence": confidence, "successors": mdp}
    compiled, python = (gosprl.collect(system, 3, **options) for system in (mdp, Python(mdp)))
    assert compiled.steps > 5
    assert compiled.model.closed
    assert everything(compiled) == everything(python)
    assert compiled.curve.tolist() == python.curve.tolist()


def one_left_out(seed):
    """A garnet, and its successors but for one of each of two pairs."""
    mdp = make("garnet", states=12, actions=2, branching=4, seed=seed)
    rng = np.random.default_rng(seed)
    possible = mdp.dense() > 0
    for pair in rng.choice(24, size=2, replace=False):
        s, a = divmod(int(pair), 2)
        possible[s, a, rng.choice(np.flatnonzero(possible[s, a]))] = False
    return mdp, possible


@pytest.mark.parametrize("strategy", ["kl", "random"])
def test_both_engines_stop_before_the_step_that_is_not_possible(strategy):
    for seed in range(6):
        mdp, possible = one_left_out(seed)
        python = Python(mdp)
        failed = []
        for system in (mdp, python):
            model = EmpiricalModel(12, 2, possible)
            options = {} if strategy == "kl" else {"strategy": "random"}
            collector = gosprl.Collector(need=50, seed=seed, model=model, **options)
            with pytest.raises(gosprl.CollectionError, match="successors: ") as caught:
                collector.run(system)
            failed.append((str(caught.value), everything(caught.value.result), caught.value.result.curve.tolist()))
            assert caught.value.result.stop == "failed"
        assert failed[0] == failed[1]
        words = re.search(
            r"after (\d+) steps: .*\(s, a\) = \((\d+), (\d+)\) led to state (\d+), .* (\[.*\])$", failed[0][0]
        )
        steps, s, a, s_next = map(int, words.groups()[:4])
        *before, last = python.log  # that system makes the step, which is then refused
        assert steps == len(before)
        assert all(possible[step] for step in before)
        assert last == (s, a, s_next)
        assert s == (before[-1][2] if before else mdp.start)
        assert mdp.dense()[s, a, s_next] > 0
        assert not possible[s, a, s_next]
        assert words[5] == str(np.flatnonzero(possible[s, a]).tolist())


def test_a_walk_that_failed_goes_on_from_where_it_was():
    """Right at 3 is said to lead to 2 or 3 only: the simulation has not gone where it must not go."""
    possible = [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3], [3, 4, 5], [4, 5]]
    collector = gosprl.Collector(6, 2, 20, seed=0, successors=lambda s, a: possible[s], strategy="gosprl")
    for _ in range(3):
        with pytest.raises(
            gosprl.CollectionError, match=r"\(3, 1\) led to state 4, which is not among .* \[2, 3\]"
        ) as caught:
            collector.run(RIVER)
    s, a, s_next, count = caught.value.result.model.transitions()
    assert np.all(RIVER.dense()[s, a, s_next] > 0)
    assert count.sum() == caught.value.result.steps


# Stopping at a reward


class Noted(Python):
    """Writes down what every step earned."""

    def __init__(self, mdp):
        super().__init__(mdp)
        self.rewards = []

    def take(self, s, action):
        s_next, reward = super().take(s, action)
        self.rewards.append(reward)
        return s_next, reward


@pytest.mark.parametrize(("mdp", "threshold"), [("rewards", 0.3), ("rewards", -0.3), ("rewards", -9), ("rewards", 9)])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_both_engines_stop_at_the_first_reward_above(mdp, threshold, strategy):
    mdp = MDPS[mdp]
    for seed in range(3):
        options = {"seed": seed, "max_steps": 3000, "threshold": threshold} | STRATEGIES[strategy]
        python = Noted(mdp)
        stepped, compiled = gosprl.collect(python, 3, **options), gosprl.collect(mdp, 3, **options)
        above = np.flatnonzero(np.array(python.rewards) > threshold)
        assert everything(compiled) == everything(stepped)
        assert compiled.curve.tolist() == stepped.curve.tolist()
        assert compiled.found == stepped.found
        if threshold == 9:
            assert above.size == 0
            assert (compiled.found, compiled.stop) == (None, "met" if compiled.met else "max_steps")
        else:
            assert above.tolist() == [len(python.rewards) - 1]
            assert compiled.found == (*python.log[-1], python.rewards[-1], len(python.log))
            assert (compiled.stop, compiled.steps) == ("found", len(python.log))


@pytest.mark.parametrize("threshold", [0, 0.99, 1, -0.5])
@pytest.mark.parametrize("strategy", ["kl", "random"])
def test_both_engines_stop_at_the_first_coin_above(threshold, strategy):
    """A coin is 0 or 1; either is above a threshold below 0, and is said to be what it was."""
    mdp, seen = TabularMDP(RIVER.dense(), rewards=np.full((6, 2), 0.3), noise="bernoulli"), set()
    for seed in range(12):
        options = {"seed": seed, "threshold": threshold} | STRATEGIES[strategy]
        python = Noted(mdp)
        stepped, compiled = gosprl.collect(python, 3, **options), gosprl.collect(mdp, 3, **options)
        assert everything(compiled) == everything(stepped)
        assert compiled.found == stepped.found
        assert (compiled.found is None) == (threshold == 1)
        if compiled.found is not None:
            assert compiled.found == (*python.log[-1], python.rewards[-1], len(python.log))
            assert not any(reward > threshold for reward in python.rewards[:-1])
            seen.add(compiled.found.reward)
    assert seen == {0: {1}, 0.99: {1}, 1: set(), -0.5: {0, 1}}[threshold]


@pytest.mark.parametrize("strategy", ["kl", "random"])
def test_a_threshold_that_is_not_reached_changes_nothing(strategy):
    for mdp in (MDPS["rewards"], MDPS["bernoulli"]):
        with_, without = (
            gosprl.collect(mdp, 3, seed=1, threshold=threshold, **STRATEGIES[strategy]) for threshold in (1, None)
        )
        assert everything(with_) == everything(without)


@pytest.mark.parametrize("block", [1, 7, 10**6])
def test_blocks_do_not_hide_a_reward(monkeypatch, block):
    """The only reward is at the far end of the river, where a random walk takes long."""
    mdp = TabularMDP(RIVER.dense(), rewards=np.eye(6)[5][:, None] * [0, 1.0])
    whole = gosprl.collect(mdp, 10**4, seed=4, strategy="random", threshold=0.5)
    monkeypatch.setattr(Tabular, "block", block)
    result = gosprl.collect(mdp, 10**4, seed=4, strategy="random", threshold=0.5)
    assert everything(result) == everything(whole)
    assert result.found == whole.found
    assert result.found[:2] == (5, 1)
    assert result.counts[5, 1] == 1
