"""Is what the applications promise true? How often an answer is wrong, against the promised delta.

Each objective is run on a small MDP by its certified rule, with other seeds every time, and its answer compared with
the truth: a run fails if anything that the answer claims is false. Under the promise that happens with probability at
most delta, so an objective is rejected if so many failures or more would happen with probability below FALSE_ALARM. The
same test must reject the sets at scale 0.01, or it proves nothing; MDPs and accuracies are such that answers from sets
ten times too narrow go wrong.

Two promises do not come from confidence sets. A treasure paid with probability PAID and sampled NEED times is missed
with probability (1 - PAID)^NEED; the test must reject a need of 1. Successive Rejects is wrong with probability at most
`error_bound`; the test must reject the same claim of a hundredth of the budget.

    python -m evidence.guarantees [--runs 400]      writes evidence/results/guarantees.md
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.stats import binom

import gosprl
from gosprl import applications
from gosprl.applications.best import error_bound
from gosprl.applications.diameter import factor

DELTA = 0.1
FALSE_ALARM = 1e-6
NARROW = 0.01
COSTS = 20  # random costs a run, for every goal
PAID, NEED = 0.3, 7
BUDGET = 2000
RESULT = Path(__file__).parent / "results" / "guarantees.md"


def river(noise="bernoulli"):
    """RiverSwim with 4 states and rewards of every size."""
    rewards = np.array([[0.1, 0.0], [0.5, 0.2], [0.3, 0.7], [0.0, 0.9]])
    return gosprl.TabularMDP(gosprl.envs.make("riverswim4").dense(), rewards=rewards, noise=noise)


def roads():
    """Two roads from state 0 to state 1, passable with 0.5 or somewhat less; and two sure ones back.

    There is one thing to be wrong about, so that bounds are nearly tight.
    """
    P = np.array([[[0.5, 0.5], [0.64, 0.36]], [[1.0, 0.0], [1.0, 0.0]]])
    return gosprl.TabularMDP(P, name="roads")


def states_that_pay():
    """RiverSwim with 4 states, of which the last pays a little more than the third."""
    rewards = np.repeat([0.3, 0.4, 0.5, 0.6], 2).reshape(4, 2)
    return gosprl.TabularMDP(gosprl.envs.make("riverswim4").dense(), rewards=rewards, noise="bernoulli")


def model_is_wrong(seed, confidence, norm):
    mdp = gosprl.envs.make("riverswim4")
    answer = applications.estimate_model(mdp, 0.2, norm=norm, seed=seed, confidence=confidence)
    error = np.abs(answer.model.dense() - mdp.dense())
    return np.any((error.sum(axis=2) if norm == "l1" else error.max(axis=2)) > answer.eta)


def rewards_are_wrong(seed, confidence):
    mdp = river()
    answer = applications.estimate_rewards(mdp, 0.1, seed=seed, confidence=confidence)
    return np.any(np.abs(answer.rewards - mdp.rows.to_dense(mdp.rewards)) > answer.radius)


def diameter_is_wrong(seed, confidence, rule):
    mdp = gosprl.envs.make("two_state_chain", q=0.5) if rule == "doubling" else gosprl.envs.make("riverswim4")
    epsilon, D = 0.3, mdp.diameter()
    answer = applications.estimate_diameter(mdp, epsilon, rule=rule, seed=seed, confidence=confidence)
    times = mdp.hitting_times()
    np.fill_diagonal(times, 0.0)
    optimistic = np.all(answer.values <= times * (1 + 1e-9) + 1e-9)
    return not (answer.lower <= D * (1 + 1e-9) and D <= answer.diameter <= factor(epsilon) * D and optimistic)


def a_goal_is_missed(seed, confidence, epsilon, c_min, theta):
    """For all goals and 20 random costs: the policy's true cost against the optimum and against `values`; the diameter.

    Without c_min the policy is planned for costs a little larger, and nothing is claimed of `values`.
    """
    mdp, rng = roads(), np.random.default_rng([seed, 1])
    answer = applications.explore_all_goals(*(mdp, epsilon), c_min=c_min, theta=theta, seed=seed, confidence=confidence)
    if answer.proved > epsilon or answer.diameter < mdp.diameter():
        return True
    S, A = mdp.num_states, mdp.num_actions
    for goal in range(S):
        for _ in range(COSTS):
            costs = rng.uniform(c_min, 1, (S, A))
            cost = true_cost(mdp, answer.policy(goal, costs), goal, costs)
            if np.any(cost - best_cost(mdp, goal, costs) > answer.proved):
                return True
            if c_min and np.any(np.abs(cost - answer.values(goal, costs)) > answer.proved):
                return True
    return False


def true_cost(mdp, policy, goal, costs):
    """[S] of following a policy to the goal, by a linear solve."""
    S = mdp.num_states
    P, c = mdp.dense()[np.arange(S), policy], costs[np.arange(S), policy]
    P[goal], c[goal] = 0, 0
    return np.linalg.solve(np.eye(S) - P, c)


def best_cost(mdp, goal, costs):
    """[S] the least cost, by value iteration."""
    P, v = mdp.dense(), np.zeros(mdp.num_states)
    for _ in range(100_000):
        new = (costs + P @ v).min(axis=1)
        new[goal] = 0
        if np.abs(new - v).max() < 1e-13:
            return new
        v = new
    raise RuntimeError("value iteration did not converge")


def policy_is_wrong(seed, confidence):
    mdp, gamma, epsilon = river(), 0.8, 0.5
    answer = applications.learn_policy(mdp, gamma, epsilon, seed=seed, confidence=confidence)
    S, P, R = mdp.num_states, mdp.dense(), mdp.rows.to_dense(mdp.rewards)
    best = np.zeros(S)
    for _ in range(500):
        best = (R + gamma * P @ best).max(axis=1)
    chosen = np.arange(S), answer.policy
    earned = np.linalg.solve(np.eye(S) - gamma * P[chosen], R[chosen])
    claims = (answer.lower <= earned + 1e-9) & (best <= answer.upper + 1e-9) & (best - earned <= epsilon)
    return not np.all(claims)


def another_state_is_best(seed, confidence):
    return applications.best_state(states_that_pay(), delta=DELTA, seed=seed, confidence=confidence).state != 3


def treasure_is_missed(seed, need):
    rewards = np.zeros((6, 2))
    rewards[5, 0] = PAID
    mdp = gosprl.TabularMDP(gosprl.envs.make("riverswim6").dense(), rewards=rewards, noise="bernoulli")
    return not applications.find_treasure(mdp, need, threshold=0.5, seed=seed).found


def rejects_the_best(seed, budget):
    return applications.best_state(states_that_pay(), budget, seed=seed).state != 3


OBJECTIVES = {  # failed(seed, confidence, *arguments)
    "estimate_model, l1": (model_is_wrong, "l1"),
    "estimate_model, max": (model_is_wrong, "max"),
    "estimate_rewards": (rewards_are_wrong,),
    "estimate_diameter, doubling": (diameter_is_wrong, "doubling"),
    "estimate_diameter, certified": (diameter_is_wrong, "certified"),
    "explore_all_goals, c_min": (a_goal_is_missed, 0.5, 0.9, np.inf),
    "explore_all_goals, theta": (a_goal_is_missed, 1.0, 0.0, 1.0),
    "learn_policy": (policy_is_wrong,),
    "best_state": (another_state_is_best,),
}


def _one(job):
    failed, arguments = job
    return bool(failed(*arguments))


def count(failed, many, workers=None):
    """How many of the runs fail, on all cores or as many as are given."""
    if workers == 1:
        return sum(bool(failed(*arguments)) for arguments in many)
    with ProcessPoolExecutor(workers or os.cpu_count()) as pool:
        return sum(pool.map(_one, [(failed, arguments) for arguments in many], chunksize=4))


def failures(name, scale, runs, workers=None):
    """How many of `runs` runs of an objective fail, with sets of the given scale."""
    failed, *arguments = OBJECTIVES[name]
    confidence = "kl" if scale == 1 else gosprl.KL(DELTA, scale)
    return count(failed, [(seed, confidence, *arguments) for seed in range(runs)], workers)


def p_value(failed, runs, delta=DELTA):
    """The probability of so many failures or more if each run failed with probability delta."""
    return float(binom.sf(failed - 1, runs, delta))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    lines = [
        "# Guarantees of the applications",
        "",
        f"`python -m evidence.guarantees --runs {runs}`: runs in which anything that the answer claims is false, at",
        f"delta = {DELTA}, kl sets, certified rules. A claim is rejected if so many failures or more have probability",
        f"below {FALSE_ALARM}.",
        "",
        "| objective | sets | failed runs | of | promised | p-value | verdict |",
        "|---|---|---|---|---|---|---|",
    ]

    def report(name, sets, failed, promised):
        p = p_value(failed, runs, promised)
        verdict = "rejected" if p < FALSE_ALARM else "holds"
        lines.append(f"| {name} | {sets} | {failed} | {runs} | {promised:.3g} | {p:.2g} | {verdict} |")
        print(lines[-1], flush=True)

    print("\n".join(lines))
    for name in OBJECTIVES:
        for scale in (1, NARROW):
            report(name, f"x{scale:g}", failures(name, scale, runs), DELTA)
    missed = (1 - PAID) ** NEED
    for need in (NEED, 1):
        failed = count(treasure_is_missed, [(seed, need) for seed in range(runs)])
        report(f"find_treasure, need {need}", "-", failed, missed)
    bound = error_bound([0.3, 0.4, 0.5, 0.6], BUDGET)
    for budget in (BUDGET, BUDGET // 100):
        failed = count(rejects_the_best, [(seed, budget) for seed in range(runs)])
        report(f"best_state, budget {budget}", "-", failed, bound)
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
