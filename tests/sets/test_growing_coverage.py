"""Do the sets hold while states are discovered in an order that a chooser of actions, who knows the truth, steers?

A run discovers states one after another, samples their rows, and fails if the truth leaves any set at any time. With
failures of probability delta at most, a run count is rejected by a binomial test with the false-alarm rate FALSE_ALARM.
Sets that are wrong are shown to be rejected: one level for all rows, and levels chosen after the samples.

Every state has the law of a tree: it leads to itself with a large probability, and to the c-th of its own children
with a share of the rest that falls by a factor. So the number of states is unlimited.
"""

from bisect import bisect
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

import gosprl
from evidence.coverage import truth_leaves
from gosprl import _kernels

DELTA, FALSE_ALARM, RUNS = 0.3, 1e-6, 250
STATES, PATIENCE, CHILDREN = 18, 150, 24


@dataclass(frozen=True)
class Snapshots:
    """One row of the state of the given rank at all times: row n - 1 is what it had shown after its n-th visit."""

    draws: np.ndarray  # [visits]
    rank_of_state: int
    rows_of_state: int
    num_outcomes: None = None
    num_pairs_bound: None = None
    closed: bool = False

    @property
    def unknown(self):
        return np.empty(0, dtype=np.int64)

    @property
    def certain(self):
        return np.zeros(len(self.draws), dtype=bool)

    @property
    def visits(self):
        return np.arange(1, len(self.draws) + 1)

    @property
    def rank(self):
        return np.array([self.rank_of_state])

    @property
    def rows(self):
        return SimpleNamespace(state=np.zeros(len(self.draws), dtype=np.int64), ptr=np.array([0, self.rows_of_state]))

    def stored(self, rows=None):
        assert rows is None
        seen, first = np.unique(self.draws, return_index=True)
        seen, first = seen[np.argsort(first)], np.sort(first)
        counts = np.cumsum(self.draws[:, None] == seen, axis=0)
        present = counts > 0
        ptr = np.append(0, np.cumsum(present.sum(axis=1)))
        column = np.nonzero(present)[1]
        return ptr, seen[column].astype(np.int32), counts[present], first[column] + 1


def law(rng):
    """Return a distribution [CHILDREN + 1] of a row: itself, its children with falling probabilities."""
    stay, ratio = rng.choice([0.9, 0.94, 0.96]), rng.choice([0.1, 0.5, 0.8])
    shares = ratio ** np.arange(CHILDREN)
    return np.append(stay, (1 - stay) * shares / shares.sum())


def adversarial_run(rng, actions=1):
    """Return, in the order of discovery, each state's rows as (law, draws).

    The chooser stays with a row while nothing new appears. As soon as something does, the run of visits that the cap
    uses is broken, and the chooser prefers the state just discovered. It comes back when PATIENCE is used up there.
    """
    found = [[(law(rng), []) for _ in range(actions)]]
    sums = [[np.cumsum(p).tolist() for p, _ in found[0]]]
    stack = [(0, a) for a in range(actions)]
    run = dict.fromkeys(stack, 0)
    while stack:
        i, a = stack[-1]
        draws = found[i][a][1]
        x = min(bisect(sums[i][a], rng.random()), CHILDREN)
        run[i, a] = run[i, a] + 1 if x in draws else 0
        new = x > 0 and x not in draws
        draws.append(x)
        if run[i, a] >= PATIENCE or len(draws) >= 3 * PATIENCE:
            stack.pop()
        if new and len(found) < STATES:
            found.append([(law(rng), []) for _ in range(actions)])
            sums.append([np.cumsum(p).tolist() for p, _ in found[-1]])
            rows = [(len(found) - 1, b) for b in range(actions)]
            run.update(dict.fromkeys(rows, 0))
            stack += rows
    return found


def longest_wait(rows):
    """Return how improbable the longest run without a new successor was, by the truth: what a later choice looks at."""
    worst = 0.0
    for p, draws in rows:
        known, run = set(), 0
        for x in draws:
            run = run + 1 if x in known else 0
            known.add(x)
            worst = max(worst, -run * np.log1p(-max(1e-12, 1 - sum(p[y] for y in known))))
    return worst


def fails(family, found, ranks):
    """Whether the truth leaves the set of any row at any time, if the i-th state has the i-th of these ranks."""
    return any(
        truth_leaves(family.intervals(Snapshots(np.array(draws), int(rank), len(rows))), p)
        for rows, rank in zip(found, ranks, strict=True)
        for p, draws in rows
        if draws
    )


def by_discovery(found):
    return range(1, len(found) + 1)


def all_first(found):
    return [1] * len(found)


def chosen_later(found):
    """The least likely row gets the largest level: the order depends on the samples."""
    order = np.argsort([-longest_wait(rows) for rows in found], kind="stable")
    ranks = np.empty(len(found), dtype=np.int64)
    ranks[order] = np.arange(1, len(found) + 1)
    return ranks


@pytest.fixture(scope="module")
def runs():
    return [adversarial_run(np.random.default_rng([7, seed]), 1 + seed % 2) for seed in range(RUNS)]


def rejected(failed, runs):
    """Whether so many failures or more have a probability below FALSE_ALARM, if each run fails with DELTA at most."""
    return binom.sf(failed - 1, runs, DELTA) < FALSE_ALARM


@pytest.mark.parametrize("family", [gosprl.KL(DELTA), gosprl.Bernstein(DELTA)])
def test_sets_hold_in_the_order_of_discovery(family, runs):
    failed = sum(fails(family, found, by_discovery(found)) for found in runs)
    print(f"{family}: {failed} of {len(runs)} runs failed")
    assert np.mean([len(found) for found in runs]) > 10
    assert not rejected(failed, len(runs))
    assert failed <= DELTA * len(runs)


@pytest.mark.parametrize(
    ("family", "ranks"),
    [
        (gosprl.KL(DELTA), all_first),
        (gosprl.KL(DELTA), chosen_later),
        (gosprl.KL(DELTA, 0.3), by_discovery),
        (gosprl.Bernstein(DELTA, 0.1), by_discovery),
    ],
    ids=["one level for all", "levels chosen later", "kl too narrow", "bernstein too narrow"],
)
def test_wrong_sets_are_rejected(family, ranks, runs):
    failed = sum(fails(family, found, ranks(found)) for found in runs)
    print(f"{family} {ranks.__name__}: {failed} of {len(runs)} runs failed")
    assert rejected(failed, len(runs))


def misses(successors, weight, runs=100, visits=300):
    """Return in how many runs an interval of a seen successor ever misses: one row, equally likely successors."""
    p, missed = 1 / successors, 0
    for seed in range(runs):
        rng, count, inside = np.random.default_rng([1, seed]), {}, True
        for n in range(1, visits + 1):
            x = int(rng.integers(successors))
            count[x] = count.get(x, 0) + 1
            budget = -np.log(DELTA) + 0.5 * np.log(np.pi * n + 1)
            for k in set(count.values()):
                low, high = _kernels.weighted_kl_ends(float(k), float(n), budget, weight)
                inside &= low <= p <= high
        missed += not inside
    print(f"{successors} successors, weight {weight}: {missed} of {runs} runs failed")
    return missed


@pytest.mark.parametrize("successors", [2, 30, 3000])
def test_ends_hold_for_all_successors_at_once(successors):
    assert not rejected(misses(successors, 1.0), 100)


def test_ends_without_the_weight_are_rejected():
    """As if there were one successor: no price for there being many."""
    assert rejected(misses(3000, 0.0), 100)
