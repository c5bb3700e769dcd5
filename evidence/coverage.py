"""Do the confidence sets hold? How often the true dynamics leave them at any time, against the promised delta.

One run draws a small MDP with rare successors and many visits of every pair, and looks at the sets after every single
visit: it fails if at any time, for any pair, the truth is outside. Under the promise a run fails with probability at
most delta, so the number of failures among n runs is at most binomial: a family is rejected if so many failures or more
would happen with probability below FALSE_ALARM. The test must reject the sets at scale 0.01, or it proves nothing.
Where the possible successors are known, every pair has some of the states as candidates.

    python -m evidence.coverage [--runs 2000] [--visits 2000]      writes evidence/results/coverage.md
"""

import argparse
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import binom

from gosprl.mdp.rows import Rows
from gosprl.sets.families import FAMILIES

DELTA = 0.1
FALSE_ALARM = 1e-6
STATES, ACTIONS = 5, 2
RESULT = Path(__file__).parent / "results" / "coverage.md"


@dataclass(frozen=True)
class Snapshots:
    """A model at all times at once: row n - 1 is what one pair had shown after its n-th visit.

    It offers what the families read of an `EmpiricalModel`; sizes and number of pairs are those of the whole MDP.
    """

    draws: np.ndarray  # [visits] successors of one pair
    rows: Rows
    candidates: np.ndarray | None = None  # possible successors of the pair, if they are known
    num_candidates: int = ACTIONS * STATES * STATES  # of all pairs together
    num_states: int = STATES
    num_actions: int = ACTIONS
    num_outcomes: int | None = STATES
    num_pairs_bound: int | None = ACTIONS * STATES
    rank: np.ndarray | None = None

    @property
    def unknown(self):
        return np.empty(0, dtype=np.int64)

    @property
    def certain(self):
        return np.zeros(len(self.draws), dtype=bool)

    @property
    def closed(self):
        return self.candidates is not None

    @property
    def visits(self):
        return np.arange(1, len(self.draws) + 1)

    def stored(self, rows=None):
        assert rows is None
        if self.closed:
            counts = np.cumsum(self.draws[:, None] == self.candidates, axis=0)
            ptr = np.arange(len(counts) + 1) * len(self.candidates)
            succ = np.tile(self.candidates, len(counts)).astype(np.int32)
            return ptr, succ, counts.ravel(), np.zeros(counts.size, dtype=np.int64)
        seen, first = np.unique(self.draws, return_index=True)
        seen, first = seen[np.argsort(first)], np.sort(first)
        counts = np.cumsum(self.draws[:, None] == seen, axis=0)  # [visits, successors in order of appearance]
        present = counts > 0
        ptr = np.append(0, np.cumsum(present.sum(axis=1)))
        column = np.nonzero(present)[1]
        return ptr, seen[column].astype(np.int32), counts[present], first[column] + 1


def truth_leaves(intervals, p):
    """Whether at any time the distribution p [S] is outside the set of that time."""
    time = np.repeat(np.arange(len(intervals.each)), np.diff(intervals.ptr))
    truth = p[intervals.succ]
    if np.any((truth < intervals.lower - 1e-12) | (truth > intervals.upper + 1e-12)):
        return True
    unseen = np.tile(p, (len(intervals.each), 1))
    unseen[time, intervals.succ] = 0
    too_much = (unseen.max(axis=1) > intervals.each + 1e-12) | (unseen.sum(axis=1) > intervals.total + 1e-12)
    return bool(np.any(too_much))


def run_fails(family, rng, visits, closed=False):
    """Whether the truth of one random MDP leaves its sets at any time."""
    rows = Rows.build(STATES, ACTIONS)
    possible = [np.arange(STATES)] * len(rows)
    if closed:
        sizes = rng.integers(1, STATES + 1, len(rows))
        possible = [np.sort(rng.choice(STATES, size, replace=False)) for size in sizes]
    for candidates in possible:
        p = np.zeros(STATES)
        p[candidates] = rng.dirichlet(np.full(len(candidates), rng.choice([0.05, 0.3, 1.0])))
        draws = rng.choice(STATES, size=visits, p=p)
        known = (candidates, sum(map(len, possible))) if closed else ()
        if truth_leaves(family.intervals(Snapshots(draws, rows, *known)), p):
            return True
    return False


def failures(name, scale, runs, visits, closed=False, seed=0):
    """How many of `runs` runs fail."""
    family = FAMILIES[name](DELTA, scale)
    return sum(run_fails(family, np.random.default_rng([seed, run]), visits, closed) for run in range(runs))


def p_value(failed, runs):
    """The probability of so many failures or more if each run failed with probability delta."""
    return float(binom.sf(failed - 1, runs, DELTA))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--visits", type=int, default=2000)
    options = parser.parse_args()
    lines = [
        "# Coverage of the confidence sets",
        "",
        f"`python -m evidence.coverage --runs {options.runs} --visits {options.visits}`: runs in which the true",
        f"dynamics of a random MDP ({STATES} states, {ACTIONS} actions, {options.visits} visits of every pair) leave",
        f"the sets at any time, for delta = {DELTA}. A family is rejected if so many failures or more have probability",
        f"below {FALSE_ALARM}.",
        "",
        "| family | candidates | scale | failed runs | of | frequency | p-value | verdict |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for name, closed in itertools.product(FAMILIES, (False, True)):
        for scale in (1.0, 0.1, 0.01):
            failed = failures(name, scale, options.runs, options.visits, closed)
            p = p_value(failed, options.runs)
            verdict = "rejected" if p < FALSE_ALARM else "holds"
            frequency = failed / options.runs
            family = f"{name} | {'known' if closed else 'all'} | {scale:g}"
            lines.append(f"| {family} | {failed} | {options.runs} | {frequency:.4f} | {p:.2g} | {verdict} |")
            print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
