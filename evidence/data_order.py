"""What `data_order=` promises, what happens when it is said wrongly, and what `unknown` costs.

**Sets.** The data are the first draws of a pair, put into some order; then the walk draws more. A run fails if the true
law is outside of its set at any time from the end of the data on. Under the promise a run fails with probability at
most delta, so the number of failures among n runs is at most binomial: sets are rejected if so many failures or more
would happen with probability below FALSE_ALARM. The orders:

    drawn               as they were drawn
    shuffled            at random
    new ones first      the first sample of each successor, then the others: an order by outcome, with nothing left out
    one left out        the successor seen most often is missing: samples are selected by their outcome

**Levels.** Where states are discovered, the i-th of them has a level that shrinks with i. The data have whole pairs in
another order: those with the strangest frequencies first, each pair's samples as they were drawn.

**Cost.** What a run still takes after data of a random walk: to estimate a model, to collect samples, and to bound what
was not seen where states are discovered.

    python -m evidence.data_order [--runs 1000]      writes evidence/results/data_order.md
"""

import argparse
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import binom

import gosprl
from evidence.coverage import Snapshots, truth_leaves
from evidence.runs import mean_and_interval
from gosprl import applications
from gosprl.collecting.collect import begun_model, declared
from gosprl.exchange import export
from gosprl.mdp.rows import Rows
from gosprl.sets.families import FAMILIES
from gosprl.systems import as_system

DELTA = 0.1
SAID = ("collected", "unknown")
FALSE_ALARM = 1e-6
STATES, DRAWS = 200, 400  # one pair may lead anywhere, and as many others are certain
RING, VISITS = 3000, 20  # states that are discovered, and visits of each
RESULT = Path(__file__).parent / "results" / "data_order.md"


@dataclass(frozen=True)
class Begun(Snapshots):
    """A model that begins with data, at all times from then on: row i is what it had shown after visit begin + i."""

    begin: int = 1
    collected: bool = True  # as the user says

    @property
    def certain(self):
        return np.zeros(len(self.visits), dtype=bool)

    @property
    def visits(self):
        return np.arange(self.begin, len(self.draws) + 1)

    def stored(self, rows=None):
        ptr, succ, count, first = super().stored(rows)
        at = ptr[self.begin - 1]
        if not self.collected:
            first = np.where(first > self.begin, first, -self.begin)
        return ptr[self.begin - 1 :] - at, succ[at:], count[at:], first[at:]


def new_ones_first(draws):
    """The same draws, the first sample of each successor before all others."""
    first = np.sort(np.unique(draws, return_index=True)[1])
    return np.append(draws[first], np.delete(draws, first))


def one_left_out(draws):
    """The draws without those of the successor seen most often."""
    seen, count = np.unique(draws, return_counts=True)
    return draws[draws != seen[np.argmax(count)]]


ORDERS = {
    "drawn": lambda draws, rng: draws,
    "shuffled": lambda draws, rng: rng.permutation(draws),
    "new ones first": lambda draws, rng: new_ones_first(draws),
    "one left out": lambda draws, rng: one_left_out(draws),
}


def run_fails(family, rng, order, collected):
    """Whether the truth of one random law leaves its sets at any time from the end of the data on."""
    p = rng.dirichlet(np.full(STATES, rng.choice([0.03, 0.3, 3.0])))
    if order == "one left out":  # of few successors one matters
        p = rng.dirichlet(np.ones(3)) @ np.eye(3, STATES)
    draws = rng.choice(STATES, size=DRAWS, p=p)
    length = int(rng.integers(DRAWS // 4, 3 * DRAWS // 4))
    data = ORDERS[order](draws[:length], rng)
    begun = Begun(
        draws=np.append(data, draws[length:]),
        rows=Rows.build(STATES, 1),
        num_states=STATES,
        num_actions=1,
        num_outcomes=STATES,
        num_pairs_bound=STATES,
        begin=len(data),
        collected=collected,
    )
    return truth_leaves(family.intervals(begun), p)


def failures(name, order, collected, runs, scale=1.0, seed=0):
    """How many of `runs` runs fail."""
    family = FAMILIES[name](DELTA, scale)
    return sum(run_fails(family, np.random.default_rng([seed, run]), order, collected) for run in range(runs))


class Ring:
    """From each of many observations to one of the next two; it is never stepped here."""

    def reset(self, *, seed=None):
        return ("place", 0), {}

    def step(self, action):
        raise AssertionError("only its data are used")


def level_fails(family, rng, order, data_order):
    """Whether the truth leaves a set at the end of data about states that are discovered."""
    places = rng.integers(0, 2, (RING, VISITS))  # the samples of each pair, in the order drawn
    strange = np.argsort(-np.abs(places.mean(axis=1) - 0.5), kind="stable")
    ring = strange if order == "strangest first" else np.arange(RING)
    state = np.repeat(ring, VISITS)
    following = (state + 1 + places[ring].ravel()) % RING
    names = pa.array([f'["place", {i}]' for i in range(RING)])
    data = {
        "observation": names.take(pa.array(state)),
        "action": 0 * state,
        "next_observation": names.take(pa.array(following)),
    }
    system = as_system(Ring(), actions=1)
    model = begun_model(system, declared(system, resets="never"), pa.table(data), data_order)
    sets = family.intervals(model)
    visited = np.repeat(model.visits > 0, np.diff(sets.ptr))
    return bool(np.any(visited & ((sets.lower > 0.5 + 1e-12) | (sets.upper < 0.5 - 1e-12))))


def level_failures(name, order, data_order, runs, seed=0):
    """How many of `runs` runs fail."""
    family = FAMILIES[name](DELTA)
    return sum(level_fails(family, np.random.default_rng([seed, run]), order, data_order) for run in range(runs))


def p_value(failed, runs):
    """The probability of so many failures or more if each run failed with probability delta."""
    return float(binom.sf(failed - 1, runs, DELTA))


def verdict(failed, runs):
    """The cells of a table."""
    p = p_value(failed, runs)
    return f"{failed} | {runs} | {failed / runs:.4f} | {p:.2g} | {'rejected' if p < FALSE_ALARM else 'holds'} |"


def coverage_table(runs):
    yield "| family | order of the data | said | scale | failed runs | of | frequency | p-value | verdict |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name in FAMILIES:
        for order in ORDERS:
            for said in SAID:
                failed = failures(name, order, said == "collected", runs)
                yield f"| {name} | {order} | {said} | 1 | {verdict(failed, runs)}"
        failed = failures(name, "shuffled", False, runs // 10, 0.01)
        yield f"| {name} | shuffled | unknown | 0.01 | {verdict(failed, runs // 10)}"


def level_table(runs):
    yield "| family | order of the pairs | said | failed runs | of | frequency | p-value | verdict |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in FAMILIES:
        for order in ("drawn", "strangest first"):
            for said in SAID:
                yield f"| {name} | {order} | {said} | {verdict(level_failures(name, order, said, runs), runs)}"


def transitions_of(name, steps, seed):
    """The transitions of a random walk, in order."""
    mdp, rng = gosprl.envs.make(name), np.random.default_rng(seed)
    state, found = mdp.start, []
    for _ in range(steps):
        row = mdp.rows.ptr[state] + rng.integers(mdp.rows.ptr[state + 1] - mdp.rows.ptr[state])
        following = rng.choice(mdp.succ[mdp.ptr[row] : mdp.ptr[row + 1]], p=mdp.prob[mdp.ptr[row] : mdp.ptr[row + 1]])
        found.append((state, int(mdp.rows.action[row]), int(following)))
        state = int(following)
    return tuple(np.array(column) for column in zip(*found, strict=True))


def steps_after(walk, data, runs):
    """Cells: the steps of walk(seed, **given) without data, with data that are said to be collected, and unknown."""
    found = {"": [], "collected": [], "unknown": []}
    for seed in range(runs):
        for said, steps in found.items():
            given = {"data": data(seed), "data_order": said} if said else {}
            steps.append(walk(seed, **given).steps)
    return ["{:,.0f} ± {:,.0f}".format(*mean_and_interval(np.array(some, dtype=float))) for some in found.values()]


def lake_data(size, seed):
    """The transitions of a random walk on FrozenLake, whose states are discovered, in order."""
    with tempfile.TemporaryDirectory() as folder:
        run, table = Path(folder) / "run", Path(folder) / "table.parquet"
        gosprl.collect(gymnasium.make("FrozenLake-v1"), 10**6, strategy="random", seed=seed, max_steps=size, out=run)
        export(run, table)
        return pq.read_table(table)


def estimated(name, eta, seed, **given):
    return applications.estimate_model(gosprl.envs.make(name), eta, norm="l1", seed=seed, **given)


def collected(name, need, seed, **given):
    return gosprl.collect(gosprl.envs.make(name), need, seed=seed, **given)


def bounded(unseen, seed, **given):
    return gosprl.collect(gymnasium.make("FrozenLake-v1"), 1, unseen=unseen, seed=seed, **given)


def need_table(runs):
    yield "| domain | data | what is asked for | without data | collected | unknown |"
    yield "|---|---|---|---|---|---|"
    for name, size, need in (("riverswim6", 1000, 100), ("wheel30", 5000, 200), ("four_room43", 5000, 50)):
        cells = steps_after(partial(collected, name, need), partial(transitions_of, name, size), runs)
        yield f"| {name} | {size:,} | {need} of every pair | {' | '.join(cells)} |"
    for unseen in (0.2, 0.05):
        cells = steps_after(partial(bounded, unseen), partial(lake_data, 5000), runs)
        yield f"| FrozenLake-v1 | 5,000 | unseen={unseen:g} | {' | '.join(cells)} |"


def cost_table(runs):
    yield "| domain | data | eta (l1) | without data | collected | unknown | cap on unseen: collected | unknown |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, size, eta in (("riverswim6", 1000, 0.3), ("wheel30", 5000, 0.5), ("four_room43", 5000, 0.5)):
        data = partial(transitions_of, name, size)
        caps = [f"{np.mean([mean_cap(name, data(seed), said) for seed in range(runs)]):.3f}" for said in SAID]
        cells = steps_after(partial(estimated, name, eta), data, runs)
        yield f"| {name} | {size:,} | {eta:g} | {' | '.join([*cells, *caps])} |"


def mean_cap(name, data, said):
    """The mean over the pairs with data of the cap on all unseen successors."""
    system = as_system(gosprl.envs.make(name))
    model = begun_model(system, declared(system), data, said)
    return FAMILIES["kl"](DELTA).intervals(model, np.flatnonzero(model.visits > 0)).total.mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    began = time.perf_counter()
    sections = {
        f"Sets with data: {STATES} states, one pair of {DRAWS} visits, a quarter to three quarters of them data": (
            coverage_table(runs)
        ),
        f"Levels: {RING} states that are discovered, {VISITS} visits of each": level_table(max(20, runs // 10)),
        "Cost: steps of `estimate_model` after data of a random walk": cost_table(max(2, runs // 100)),
        "Cost: steps of `collect` after data of a random walk": need_table(max(2, runs // 100)),
    }
    lines = [
        "# What `data_order=` promises and costs",
        "",
        f"`python -m evidence.data_order --runs {runs}`, delta = {DELTA}: runs in which the truth is outside of a set",
        "at any time from the end of the data on. Sets are rejected if so many failures or more have probability below",
        f"{FALSE_ALARM}. Steps are means with 95 % intervals; caps are means over the pairs with data.",
    ]
    for title, table in sections.items():
        lines += ["", f"## {title}", ""]
        for line in table:
            lines.append(line)
            print(line, flush=True)
    RESULT.write_text("\n".join(lines) + "\n")
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
