"""Do the lower bounds hold? How often collecting takes the steps that they promise, against the promised 1/2.

The best collector walks: on the chain there is nothing to choose, on the wheel every order of the rim states is as
good, on a changed MDP it takes the shortest way. Under the promise a run takes the steps of the bound with probability
at least 1/2, so the number of such runs among n is at least binomial: a bound is rejected if so few of them or fewer
would happen with probability below FALSE_ALARM. The test must reject three times the bound, or it proves nothing.

    python -m evidence.lower_bounds [--runs 10000]      writes evidence/results/lower_bounds.md
"""

import argparse
import itertools
import math
from pathlib import Path

import numpy as np
from scipy.stats import binom, nbinom

import gosprl
from evidence.runs import many, mean_and_interval
from gosprl import TabularMDP, theory
from gosprl.envs.lower_bounds import (
    epsilon_wheel,
    farthest_pair,
    hard_to_learn,
    one_state_modification,
    two_state_chain,
)

FALSE_ALARM = 1e-6
RESULT = Path(__file__).parent / "results" / "lower_bounds.md"
CHAINS = [(q, B) for q in (0.2, 0.1, 0.01) for B in (5, 20)]
WHEELS = [((0.5, 0.05), (9, 9)), ((0.5, 0.2, 0.1), (11, 20, 40)), ((0.1,) * 5, (14,) * 5)]
MODIFIED = [("toy3", 8), ("riverswim6", 12), ("riverswim6", 50), ("four_room43", 13)]
LEARNING = [(3, 2, 4, 24), (3, 16, 10, 48)]  # states, actions, diameter, need


def walk(mdp, need, act, runs, seed):
    """[runs] steps until `need` [S] is met; act(s [n], left [n, S]) are the actions [n], `left` the need."""
    rng = np.random.default_rng(seed)
    reach = np.cumsum(mdp.dense(), axis=2)
    run, s = np.arange(runs), np.full(runs, mdp.start)
    left = np.tile(need, (runs, 1))
    steps, t = np.zeros(runs, dtype=np.int64), 0
    while run.size:
        a = act(s, left)
        here = np.arange(len(run)), s
        left[here] = np.maximum(left[here] - 1, 0)
        s = np.minimum((rng.random((len(run), 1)) >= reach[s, a]).sum(axis=1), mdp.num_states - 1)
        t += 1
        on = left.any(axis=1)
        steps[run[~on]] = t
        run, s, left = run[on], s[on], left[on]
    return steps


def counting(mdp, state, samples):
    """`mdp` with the samples of `state` still to come: (n, s) is state n * S + s, and those of n = 0 are the goals."""
    row = np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    s, S = mdp.rows.state[row], mdp.num_states
    n = np.arange(samples + 1)[:, None]
    after = np.maximum(n - (s == state), 0)
    parts = np.broadcast_arrays(n * S + s, mdp.rows.action[row], after * S + mdp.succ, mdp.prob)
    return TabularMDP(tuple(part.ravel() for part in parts), states=(samples + 1) * S, actions=mdp.num_actions)


def within(mdp, state, samples, steps):
    """The largest probability of any policy to have so many samples of `state` after at most so many steps."""
    S = mdp.num_states
    return theory.reach_within(counting(mdp, state, samples), np.arange(S), steps)[samples * S + mdp.start]


def restricted(mdp, policy):
    """The MDP in which `policy` [S] is all there is."""
    return TabularMDP(mdp.dense()[np.arange(mdp.num_states), policy][:, None], mdp.start)


def tries_law(epsilons, need):
    """[n] the law of the tries that it takes for `need` [S] successes of probabilities `epsilons` [S]."""
    law = np.ones(1)
    for epsilon, b in zip(epsilons, need, strict=True):
        failures = np.arange(int(nbinom.isf(1e-16, b, epsilon)) + 1)
        law = np.convolve(law, np.append(np.zeros(b), nbinom.pmf(failures, b, epsilon)))
    return law


def chain(q, need, runs, seed=0):
    """(bound, steps [runs], exact probability to take so many or more)."""
    bound = theory.lower_bound_two_state_chain(q, need)
    steps = walk(two_state_chain(q), [0, need], lambda s, left: 0 * s, runs, seed)
    return bound, steps, float(nbinom.sf(math.ceil(bound) - 2 * need - 1, need, q))  # failures, of steps - 2 B


def wheel(epsilons, need, runs, seed=0):
    """The same; at the center it is always the first rim state with a need that is tried for."""
    bound = theory.lower_bound_epsilon_wheel(epsilons, need)
    steps = walk(epsilon_wheel(epsilons), [0, *need], lambda s, left: (left[:, 1:] > 0).argmax(axis=1), runs, seed)
    return bound, steps, float(tries_law(epsilons, need)[math.ceil(bound) - sum(need) :].sum())


def modified(name, need, runs, seed=0):
    """(bound, steps [runs], exact probability to take more, the least such probability of any policy)."""
    mdp = gosprl.envs.make(name)
    bound = theory.lower_bound_one_state_modification(mdp, need)
    changed, (_, s_bar) = one_state_modification(mdp), farthest_pair(mdp)
    policy = gosprl.plan(changed, goals=[s_bar]).policy
    steps = walk(changed, need * (np.arange(mdp.num_states) == s_bar), lambda s, left: policy[s], runs, seed)
    soon = [within(m, s_bar, need, math.floor(bound)) for m in (restricted(changed, policy), changed)]
    return bound, steps, 1 - soon[0], 1 - soon[1]


def p_value(long, runs):
    """The probability of so few long runs or fewer if each were long with probability 1/2."""
    return float(binom.cdf(long, runs, 0.5))


def verdict_cells(long):
    """Cells of a claim that `long` [runs] is true with probability at least 1/2."""
    p = p_value(long.sum(), len(long))
    return f"{long.mean():.4f} | {p:.2g} | {'rejected' if p < FALSE_ALARM else 'holds'}"


def table(title, columns):
    """Lines that open a table."""
    return "", f"## {title}", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"


def tables(runs):
    """Lines of the three tables of bounds that hold with probability 1/2."""
    claim, wrong = ["share", "p-value", "verdict", "exact"], ["3 x bound: share", "p-value", "verdict"]
    yield from table("Two-state chain: B D / 2 + B", ["q", "B", "D", "bound", *claim, *wrong])
    for q, need in CHAINS:
        bound, steps, exact = chain(q, need, runs)
        cells = f"{verdict_cells(steps >= bound)} | {exact:.4f} | {verdict_cells(steps >= 3 * bound)}"
        yield f"| {q} | {need} | {1 / q:g} | {bound:g} | {cells} |"
    yield from table("Wheel: sum_s b(s) (D_s - 1) / 2 + b(s)", ["epsilons", "b", "bound", *claim, *wrong])
    for epsilons, need in WHEELS:
        bound, steps, exact = wheel(epsilons, need, runs)
        cells = f"{verdict_cells(steps >= bound)} | {exact:.4f} | {verdict_cells(steps >= 3 * bound)}"
        yield f"| {', '.join(map(str, epsilons))} | {', '.join(map(str, need))} | {bound:g} | {cells} |"
    yield from table("One state changed: more than (B - 1) D / 2", ["of", "B", "bound", *claim, "any policy", *wrong])
    for name, need in MODIFIED:
        bound, steps, exact, least = modified(name, need, runs)
        cells = f"{verdict_cells(steps > bound)} | {exact:.4f} | {least:.4f} | {verdict_cells(steps > 3 * bound)}"
        yield f"| {name} | {need} | {bound:.2f} | {cells} |"


def learning(runs):
    """Lines of the table of the bound in expectation."""
    title = "Hard to learn: (D + 1) B + D sqrt((S - 1) A B) / 1024 in expectation"
    yield from table(title, ["S", "A", "D", "B", "first term", "bound", "steps of `collect`", "of Algorithm 1"])
    for S, A, D, need in LEARNING:
        bound, mdp = theory.lower_bound_hard_to_learn(S, A, D, need), hard_to_learn(S, A, D, need)
        wanted = np.append(np.zeros(S - 1, dtype=int), need)
        cells = [mean_and_interval(many(mdp, o, runs, need=wanted).steps) for o in ({}, {"strategy": "gosprl"})]
        means = " | ".join(f"{mean:.1f} ± {half:.1f}" for mean, half in cells)
        yield f"| {S} | {A} | {D} | {need} | {(D + 1) * need} | {bound:.2f} | {means} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    runs = parser.parse_args().runs
    few = runs // 25
    lines = [
        "# The lower bounds",
        "",
        f"`python -m evidence.lower_bounds --runs {runs}`: the share of {runs} walks of the best collector that take",
        "the steps of the bound, which promises at least 1/2. The p-value is that of so small a share or a smaller one",
        f"if the truth were 1/2; a claim is rejected below {FALSE_ALARM}. `exact` is the same collector's probability,",
        "`any policy` the least of any collector's, by backward induction. The last table has means of",
        f"{few} runs with their 95 % intervals, beside which the second term of the bound is too small to be seen.",
    ]
    print("\n".join(lines))
    for line in itertools.chain(tables(runs), learning(few)):
        print(line, flush=True)
        lines.append(line)
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
