"""Systems as they come: what is discovered, what it takes, what may be hidden; and no transition that never happened.

python -m evidence.any_system [--runs 20]      writes evidence/results/any_system.md

Three tables:

1. Every system of `evidence.systems`, 3 samples of every action of every state discovered.
2. Where a table of the dynamics is published: every transition collected is possible, and the frequencies are those of
   the table. For each pair of at least 5 expected samples per outcome a chi-square test; at most a part of LEVEL of
   all pairs of all runs may be rejected at LEVEL (one-sided, 5 standard deviations: a false alarm has probability below
   1e-6). The same test on a table with two rows exchanged must reject.
3. unseen=0.05: no reachable state is missed. A door that opens with probability 0.02: found with unseen=0.01 in all
   runs but a part of delta; a plain run of 5 samples may miss it, and then its `unseen` says so.
"""

import argparse
import copy
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import chi2

import gosprl
from evidence.systems import SYSTEMS, Lock

RESULT = Path(__file__).parent / "results" / "any_system.md"
NEED, LEVEL, DELTA = 3, 0.01, 0.1
MOST_STEPS = 200_000
PUBLISHED = ("FrozenLake 4x4", "FrozenLake, a random map", "CliffWalking, slippery", "Taxi", "Taxi, rainy")
THOROUGH = ("FrozenLake 4x4", "CliffWalking, slippery", "Taxi, rainy", "MiniGrid DoorKey")


def collected(make, need, seed, **options):
    """Return the result of one run, without the warning that it makes when much may be unseen."""
    env, given = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gosprl.collect(env, need, seed=seed, **given, **options)


def first_table(most_steps=MOST_STEPS, names=SYSTEMS):
    """Yield the lines of the first table."""
    yield "| system | met | states | pairs | steps | resets | unseen | s |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in names:
        begin = time.perf_counter()
        result = collected(SYSTEMS[name], NEED, 0, max_steps=most_steps)
        yield (
            f"| {name} | {'yes' if result.met else result.stop} | {result.states} | {result.pairs} | {result.steps:,} "
            f"| {result.resets:,} | {result.unseen:.3f} | {time.perf_counter() - begin:.1f} |"
        )


def published(env):
    """Return the table: (s, a) -> {(next observation, whether the episode ends): probability}."""
    table = {}
    for s, actions in env.unwrapped.P.items():
        for a, outcomes in actions.items():
            law = table.setdefault((s, a), {})
            for p, s_next, _, ends in outcomes:
                law[s_next, bool(ends)] = law.get((s_next, bool(ends)), 0.0) + p
    return table


def frequencies(result):
    """Return what was collected: (s, a) -> {(next observation, whether the episode ended): count}."""
    states, seen = result.model.states, {}
    for s, a, s_next, count in zip(*result.model.transitions(), strict=True):
        law = seen.setdefault((states[s], int(a)), {})
        law[states[s_next], states.kind(s_next) == "final"] = int(count)
    return seen


def compared(seen, table):
    """Return (transitions that are impossible, pairs tested, pairs rejected at LEVEL)."""
    impossible = tested = rejected = 0
    for pair, counts in seen.items():
        law, n = {outcome: p for outcome, p in table[pair].items() if p > 0}, sum(counts.values())
        impossible += sum(outcome not in law for outcome in counts)
        if len(law) > 1 and n * min(law.values()) >= 5:
            statistic = sum((counts.get(outcome, 0) - n * p) ** 2 / (n * p) for outcome, p in law.items())
            tested += 1
            rejected += chi2.sf(statistic, len(law) - 1) < LEVEL
    return impossible, tested, rejected


def exchanged(table):
    """Return a wrong table: in every state, the first two actions are exchanged."""
    wrong = dict(table)
    for s in {s for s, _ in table}:
        wrong[s, 0], wrong[s, 1] = table[s, 1], table[s, 0]
    return wrong


def second_table(runs, need=60, names=PUBLISHED):
    """Yield the lines of the second table."""
    yield "| system | transitions | impossible | pairs tested | rejected | allowed | wrong table: impossible, rejects |"
    yield "|---|---|---|---|---|---|---|"
    for name in names:
        total, wrong, transitions = np.zeros(3, dtype=int), np.zeros(3, dtype=int), 0
        table = published(SYSTEMS[name]()[0])
        for seed in range(runs):
            seen = frequencies(collected(SYSTEMS[name], need, seed, max_steps=MOST_STEPS))
            total += compared(seen, table)
            wrong += compared(seen, exchanged(table))
            transitions += sum(sum(counts.values()) for counts in seen.values())
        allowed = LEVEL * total[1] + 5 * np.sqrt(LEVEL * (1 - LEVEL) * total[1]) + 1
        yield (
            f"| {name} | {transitions:,} | {total[0]} | {total[1]:,} | {total[2]} | {allowed:.0f} "
            f"| {wrong[0]:,}, {wrong[2]:,} of {wrong[1]:,} |"
        )


def reachable(env, result):
    """Return how many live states can be reached, by the published table or, without one, by trying everything."""
    if hasattr(env.unwrapped, "P"):
        return len(reachable_by_table(env, result))
    env.reset(seed=0)
    first = env.reset(seed=0)[0]
    known, todo = {first}, [copy.deepcopy(env)]
    while todo:
        here = todo.pop()
        for action in range(env.action_space.n):
            there = copy.deepcopy(here)
            observation, _, terminated, _, _ = there.step(action)
            if not terminated and observation not in known:
                known.add(observation)
                todo.append(there)
    return len(known)


def reachable_by_table(env, result):
    """Return the live observations that can be reached from any that a reset led to, by actions that were offered."""
    table, states = published(env), result.model.states
    offered = {(states[s], int(a)) for s, a in zip(result.model.rows.state, result.model.rows.action, strict=True)}
    known = {states[s] for s in result.model.starts()[0].tolist()}
    todo = list(known)
    while todo:
        s = todo.pop()
        for (at, a), law in table.items():
            if at == s and ((s, a) in offered or s not in set(states[: result.states])):
                new = {s_next for (s_next, ends), p in law.items() if p > 0 and not ends} - known
                known |= new
                todo.extend(new)
    return known


def third_table(runs, names=THOROUGH):
    """Yield the lines of the third table."""
    yield "| system | unseen asked | runs | met | reachable states | missed, in all runs | steps: mean | unseen: most |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in names:
        results = [collected(SYSTEMS[name], 1, seed, unseen=0.05) for seed in range(runs)]
        there = reachable(SYSTEMS[name]()[0], results[0])
        yield (
            f"| {name} | 0.05 | {runs} | {sum(result.met for result in results)} | {there} "
            f"| {sum(there - result.states for result in results)} | {np.mean([r.steps for r in results]):,.0f} "
            f"| {max(r.unseen for r in results):.4f} |"
        )
    for options, label in (({"unseen": 0.01}, "0.01"), ({}, "not asked")):
        need = 1 if options else 5
        results = [collected(lambda: (Lock(), {}), need, seed, **options) for seed in range(10 * runs)]
        missed = sum(result.states < 8 for result in results)
        yield (
            f"| a door that opens with 2 %, {need} samples | {label} | {10 * runs} | {sum(r.met for r in results)} | 8 "
            f"| in {missed} runs (allowed: {DELTA * 10 * runs if options else 10 * runs:.0f}) "
            f"| {np.mean([r.steps for r in results]):,.0f} "
            f"| {max(r.unseen for r in results):.4f}; least where missed "
            f"{min((r.unseen for r in results if r.states < 8), default=float('nan')):.4f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    runs, begin = parser.parse_args().runs, time.perf_counter()
    lines = []
    for title, table in (
        (f"Systems as they come: {NEED} samples of every action of every state discovered", first_table()),
        ("No transition that never happened", second_table(max(1, runs // 10))),
        ("A met that can be believed", third_table(runs)),
    ):
        lines += ["", f"# {title}", "", f"`python -m evidence.any_system --runs {runs}`, delta = {DELTA}.", ""]
        print("\n".join(lines[-5:]), flush=True)
        for line in table:
            lines.append(line)
            print(line, flush=True)
    lines += ["", f"{time.perf_counter() - begin:.0f} s in all."]
    RESULT.write_text("\n".join(lines).lstrip() + "\n")


if __name__ == "__main__":
    main()
