"""How many samples do the applications take? Certified rules beside the paper's printed requirements.

The printed requirement of a pair is computed for its true dynamics; it is walked only where the sum over all pairs is
below WALKED. Means over runs with 95 % intervals.

    python -m evidence.samples [--runs 10]      writes evidence/results/samples.md
"""

import argparse
import math
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import gosprl
from evidence.runs import mean_and_interval, ratio_interval
from gosprl import applications
from gosprl.applications import goal_free, modest
from gosprl.applications.diameter import factor

DELTA = 0.1
WALKED = 10_000_000
RESULT = Path(__file__).parent / "results" / "samples.md"


def domain(name):
    """A domain by name; with `+rewards`, RiverSwim's usual ones or random ones, Bernoulli."""
    name, rewarded, _ = name.partition("+")
    sizes = {"states": 20, "actions": 3, "branching": 5, "seed": 0} if name == "garnet" else {}
    mdp = gosprl.envs.make(name, **sizes)
    if not rewarded:
        return mdp
    S, A = mdp.num_states, mdp.num_actions
    rewards = np.random.default_rng(0).random((S, A)) ** 3
    if name.startswith("riverswim"):
        rewards = np.zeros((S, A))
        rewards[0, 0], rewards[-1, 1] = 0.005, 1
    return gosprl.TabularMDP(mdp.dense(), rewards=rewards, noise="bernoulli", name=name)


def printed(mdp, eta, norm):
    """[R] the paper's Phi for the true dynamics."""
    sigma = np.sqrt(mdp.prob * (1 - mdp.prob))
    X = (np.add if norm == "l1" else np.maximum).reduceat(sigma, mdp.ptr[:-1])
    Y = mdp.num_states if norm == "l1" else 1
    return np.ceil(modest.phi(X, Y, eta, DELTA, mdp.num_states, mdp.num_actions))


def _one(job):
    name, function, arguments, options = job
    answer = getattr(applications, function)(domain(name), *arguments, **options)
    found = answer.diameter if function == "estimate_diameter" else 0.0
    asked = answer.requested.sum() if function == "learn_policy" else 0.0
    return answer.steps, found, asked, answer.stop == "met"


def many(name, function, *arguments, runs, **options):
    """(steps, diameters, samples asked for) [runs] each, of runs with seeds 0, 1, ..."""
    jobs = [(name, function, arguments, {**options, "seed": seed}) for seed in range(runs)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        *columns, met = map(np.array, zip(*pool.map(_one, jobs), strict=True))
    assert met.all()
    return [column.astype(float) for column in columns]


def count(x):
    mean, half = mean_and_interval(x)
    return f"{mean:,.0f} ± {half:,.0f}"


def model_table(runs):
    yield "## Estimating the model: `estimate_model`"
    yield ""
    yield "Printed: samples in all, of one pair at most, in all / certified steps, and steps where it was walked."
    yield ""
    yield "| domain | norm | eta | certified, steps | printed, in all | of a pair | / certified | printed, steps |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in ("riverswim6", "wheel30", "garnet"):
        mdp = domain(name)
        for norm, eta in (("l1", 0.5), ("l1", 0.2), ("l1", 0.1), ("max", 0.2), ("max", 0.1)):
            steps = many(name, "estimate_model", eta, norm=norm, runs=runs)[0]
            need = printed(mdp, eta, norm)
            walked = "-"
            if need.sum() < WALKED:
                options = {"norm": norm, "rule": "paper", "runs": min(runs, 3)}
                walked = count(many(name, "estimate_model", eta, **options)[0])
            needed = f"{need.sum():,.0f} | {need.max():,.0f} | {need.sum() / steps.mean():,.1f}"
            yield f"| {name} | {norm} | {eta:g} | {count(steps)} | {needed} | {walked} |"


def diameter_table(runs):
    yield "## Estimating the diameter: `estimate_diameter`"
    yield ""
    yield "D_hat must be in [D, factor * D]; the printed requirement is that for the last W."
    yield ""
    yield "| domain | epsilon | factor | rule | D | D_hat, least | D_hat, largest | steps | printed, of a pair |"
    yield "|---|---|---|---|---|---|---|---|---|"
    cases = (
        ("riverswim6", 0.3, "certified", runs),
        ("riverswim6", 0.3, "doubling", min(runs, 4)),
        ("corridor24", 0.3, "certified", runs),
        ("corridor24", 1.0, "certified", runs),
        ("corridor24", 1.0, "doubling", 2),
    )
    for name, epsilon, rule, some in cases:
        mdp = domain(name)
        D = mdp.diameter()
        steps, found, _ = many(name, "estimate_diameter", epsilon, rule=rule, runs=some)
        eta = epsilon / 2 ** math.ceil(math.log2(D))
        need = printed(mdp, eta / 2, "l1").max()
        allowed = f"{epsilon:g} | {factor(epsilon):.2f} | {rule} | {D:.2f}"
        yield f"| {name} | {allowed} | {found.min():.2f} | {found.max():.2f} | {count(steps)} | {need:,.0f} |"


def goal_table(runs):
    yield "## Any goal, any costs: `explore_all_goals`"
    yield ""
    yield "The paper's allocation phi(D, omega), for its constant alpha = 1, D known."
    yield ""
    yield "| domain | epsilon | c_min | theta | certified, steps | phi, samples of a pair | phi, samples in all |"
    yield "|---|---|---|---|---|---|---|"
    for name, epsilon, c_min, theta in (
        ("riverswim4", 1.0, 1.0, math.inf),
        ("riverswim4", 1.0, 0.5, math.inf),
        ("riverswim6", 1.0, 0.5, math.inf),
        ("toy3", 1.0, 0.5, math.inf),
        ("wheel8", 1.0, 0.5, math.inf),
        ("wheel4", 1.0, 0.0, 1.0),
    ):
        mdp = domain(name)
        steps = many(name, "explore_all_goals", epsilon, c_min=c_min, theta=theta, runs=min(runs, 5))[0]
        task = goal_free.Task(epsilon, c_min, theta, None)
        D, support = mdp.diameter(), int(np.diff(mdp.ptr).max())
        need = goal_free.phi(D, task.omega(D), epsilon, DELTA, support, mdp.num_states, mdp.num_actions)
        pairs = need * len(mdp.rows)
        yield f"| {name} | {epsilon:g} | {c_min:g} | {theta:g} | {count(steps)} | {need:,.0f} | {pairs:,.0f} |"


def policy_table(runs):
    yield "## Learning a policy: `learn_policy`"
    yield ""
    yield "Until upper - lower <= epsilon everywhere: samples where they are needed, or as many of each pair (uniform)."
    yield "Asked for: what a simulator would be asked. Steps: what the walk takes, which brings others on its way."
    yield ""
    yield "| domain | gamma | epsilon | asked for | uniform | ratio, 95 % interval | steps | uniform | ratio |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, gamma, epsilon in (
        ("riverswim6+rewards", 0.9, 0.5),
        ("wheel8+rewards", 0.9, 0.5),
        ("garnet+rewards", 0.9, 0.5),
        ("room20+rewards", 0.9, 0.5),
    ):
        bespoke, uniform = (
            many(name, "learn_policy", gamma, epsilon, allocation=allocation, runs=runs)
            for allocation in ("bespoke", "uniform")
        )
        cells = [f"| {name} | {gamma:g} | {epsilon:g}"]
        for column in (2, 0):
            ratio, low, high = ratio_interval(bespoke[column], uniform[column])
            cells += [count(bespoke[column]), count(uniform[column]), f"{ratio:.2f} ({low:.2f} to {high:.2f})"]
        yield " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    lines = ["# Samples that the applications take", ""]
    lines += [f"`python -m evidence.samples --runs {runs}`: kl sets, delta = {DELTA}.", ""]
    print("\n".join(lines))
    for table in (model_table, diameter_table, goal_table, policy_table):
        for line in table(runs):
            lines.append(line)
            print(line, flush=True)
        lines.append("")
        print()
    RESULT.write_text("\n".join(lines[:-1]) + "\n")


if __name__ == "__main__":
    main()
