"""The test for aliasing: its level by enumeration of all walks, its maximum by brute force, its names by counting."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from evidence.probed import Clock, HiddenRing
from gosprl.probing import aliasing
from gosprl.probing.aliasing import KINDS, Visit
from gosprl.probing.log import Log, Names
from gosprl.probing.probe import probe


def visits(outcomes, histories):
    return [Visit(t, x, (h,)) for t, (x, h) in enumerate(zip(outcomes, histories, strict=True))]


def adaptive(outcomes):
    """Histories that depend on earlier outcomes, in a way that permutation tests do not allow for."""
    return [(outcomes[i - 1] if i else -1, sum(outcomes[:i]) % 2) for i in range(len(outcomes))]


@pytest.mark.parametrize("law", [(0.5, 0.3, 0.2), (0.9, 0.05, 0.05), (1 / 3, 1 / 3, 1 / 3)])
def test_the_mean_of_the_evidence_of_a_pair_is_at_most_one(law):
    """Exactly, over all sequences of seven outcomes: that is what a test martingale is."""
    mean = 0.0
    for outcomes in itertools.product(range(3), repeat=7):
        evidence = aliasing.log_evidence(visits(outcomes, adaptive(outcomes)), 0)
        mean += math.prod(law[x] for x in outcomes) * math.exp(evidence)
    assert 0 < mean <= 1


def log_of(path):
    """The log of a walk in a system of one action: states in order, one episode."""
    log = Log()
    for state in path:
        log.number(state)
    for t, (s, s_next) in enumerate(itertools.pairwise(path)):
        log.add(log.number(s), 0, t, (log.number(s_next), 0.0, False, False), 0.0)
    return log


def evidence_of(path):
    log = log_of(path)
    return aliasing.test(log, 0.5, Names(log, str, [0])).evidence


@pytest.mark.parametrize("stays", [(0.5, 0.5), (0.7, 0.2)])
def test_ville_holds_for_all_walks_of_a_markov_chain(stays):
    """Exactly, over all walks of ten steps: the evidence ever exceeds c with probability 1 / c at most."""
    chances = {}
    for steps in itertools.product((0, 1), repeat=10):  # 1: to the other state
        path, probability = [0], 1.0
        for moved in steps:
            stay = stays[path[-1]]
            probability *= 1 - stay if moved else stay
            path.append(path[-1] ^ moved)
        most = max(evidence_of(path[:n]) for n in range(2, 12))
        chances[most] = chances.get(most, 0.0) + probability
    assert sum(chances.values()) == pytest.approx(1)
    for c in (1.2, 1.5, 2, 4, 10):
        assert sum(p for most, p in chances.items() if most >= math.log(c)) <= 1 / c
    assert max(chances) > math.log(1.5)  # so that this can fail


def test_the_largest_likelihood_is_the_largest():
    """Against a numerical maximum of the product of p(x) / p(O) over p."""
    outcomes = [0, 0, 1, 0, 1, 2, 2, 0, 1, 1, 2, 0, 3, 0, 3, 1]
    terms, seen = [], []
    for x in outcomes:
        if x in seen:
            terms.append((x, list(seen)))
        else:
            seen.append(x)

    def negative(z):
        p = np.exp(z)
        return -sum(math.log(p[x] / p[known].sum()) for x, known in terms)

    best = -min(minimize(negative, np.random.default_rng(i).normal(size=4)).fun for i in range(5))
    sequence = visits(outcomes, [0] * len(outcomes))
    bets = [0.0 for _ in aliasing.BACK_OFF]
    counts = [0] * 4
    for i, x in enumerate(outcomes):  # one history: what follows it is what occurs at all
        k = sum(n > 0 for n in counts)
        if counts[x]:
            of_all = (counts[x] + aliasing.PRIOR) / (i + aliasing.PRIOR * k)
            for j, weight in enumerate(aliasing.BACK_OFF):
                bets[j] += math.log((counts[x] + weight * of_all) / (i + weight))
        counts[x] += 1
    expected = math.log(np.mean(np.exp(bets))) - best
    assert aliasing.log_evidence(sequence, 0) == pytest.approx(expected, abs=1e-6)


def test_combined_is_half_a_product_and_half_a_sum():
    E = np.array([[2.0, 0.5], [8.0, 1.0], [0.25, 3.0]])  # [pairs, kinds]
    total, own = aliasing.combined(np.log(E).tolist())
    product = ((1 + E) / 2).prod(axis=0).mean()
    terms = E.mean(axis=1) / np.array([2.0, 6.0, 12.0])
    assert total == pytest.approx(math.log((product + terms.sum()) / 2))
    assert np.exp(own) == pytest.approx(terms)
    assert aliasing.combined([]) == (0.0, [])


@pytest.mark.parametrize(("make", "kind"), [(HiddenRing, None), (Clock, "the clock: even or odd")])
def test_what_is_not_markov_is_found_and_the_histories_are_those_walked(make, kind):
    found = probe(make(), seed=0).aliasing
    assert found.found
    assert found.proved >= 3
    assert all(pair.proved for pair in found.pairs)
    assert kind is None or found.pairs[0].kind == kind
    for pair in found.pairs:
        shares = [times / of for _, times, of in pair.after]
        assert shares[0] == 1.0  # both systems are deterministic, given the history
        assert shares[-1] == 0.0
        assert pair.event.startswith("led to ")
        assert f"({pair.state}, {pair.action}) {pair.event}: {pair.after[0][0]} " in pair.text


def test_counts_after_histories():
    """A pair that follows the step before; counted by hand."""
    path = ["a", "x", "A", "b", "x", "B", "a", "x", "A", "b", "x", "B"] * 4 + ["a", "x", "A"]
    log = log_of(path)
    found = aliasing.test(log, 0.01, Names(log, str, ["go"]))
    (of_x,) = [pair for pair in found.pairs if pair.state == "x"]
    assert of_x.proved
    told = {history: (times, of) for history, times, of in of_x.after}
    if of_x.kind == KINDS[0]:
        assert told == {"after (a, go)": (9, 9), "after (b, go)": (0, 8)} or told == {
            "after (a, go)": (0, 9),
            "after (b, go)": (8, 8),
        }
    else:
        assert of_x.kind == "the clock: even or odd"  # as good here: a at even times only


def test_a_reset_is_a_history():
    """What follows x is A right after a reset, and B later."""
    log = Log()
    a, x, A, B = map(log.number, "axAB")
    for _ in range(10):
        log.add(x, 0, 0, (A, 0.0, False, False), 0.0)
        log.add(A, 0, 1, (a, 0.0, False, False), 0.0)
        log.add(a, 0, 2, (x, 0.0, False, False), 0.0)
        log.add(x, 0, 3, (B, 0.0, True, False), 0.0)
    found = aliasing.test(log, 0.01, Names(log, str, ["go"]))
    assert [pair.state for pair in found.pairs] == ["x"]
    assert found.pairs[0].event in ("led to A", "led to B (episode ended)")
    assert {of for _, _, of in found.pairs[0].after} == {10}


class Bonus(Clock):
    """Moves like a Markov system; the first visit of a cell in an episode of 20 steps pays, and no other."""

    def reset(self, **options):
        self.been = {0}
        return super().reset(**options)

    def step(self, action):
        self.time += 1
        self.at = (self.at + (self.np_random.random() < (0.8 if action else 0.2))) % 5
        new = self.at not in self.been
        self.been.add(self.at)
        return self.at, float(new), False, self.time == 20, {}


class Paid(Bonus):
    """The same, but pays at random."""

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, float(self.np_random.random() < 0.3), *rest


def test_rewards_that_depend_on_history():
    whole = probe(Bonus(), seed=0)
    found = whole.aliasing
    assert (found.found, found.pairs, found.rewards_found) == (False, (), True)
    assert all(pair.event.startswith(("paid 1 on the way to ", "paid 0 on the way to ")) for pair in found.rewards)
    assert "rewards depend on history" in repr(whole)
    assert "the guarantee would be: delta=0.1" in repr(whole)  # which says nothing of rewards
    random = probe(Paid(), seed=0).aliasing
    assert (random.found, random.rewards_found, random.rewards) == (False, False, ())


def test_pairs_that_always_lead_to_one_state_are_not_tested():
    found = aliasing.test(log_of([0, 1, 2] * 20), 0.01, Names(log_of([0, 1, 2]), str, [0]))
    assert (found.tested, found.evidence, found.found, found.pairs) == (0, 0.0, False, ())
