"""The verbs for `gosprl.applications`: one for each function, with the same names of options.

Each verb consists of its options and a call of `gosprl.cli.answers.run`, which runs the application, prints, saves and
exits.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import gosprl
from gosprl import _checks, applications
from gosprl.applications.goal_free import row_costs
from gosprl.cli.answers import Request, run
from gosprl.cli.fleets import Workers, fleet
from gosprl.cli.outputs import OutDir, kept, made_by
from gosprl.cli.pages import ReportFile
from gosprl.cli.shared import (
    AsJson,
    Data,
    DataOrder,
    Env,
    Horizon,
    MaxStates,
    MaxSteps,
    ResetCost,
    Resets,
    Seed,
    Settings,
    Unseen,
    array,
    begun_with,
    declared,
    environment,
    exits,
    parameters,
    samples,
)
from gosprl.systems import as_system

PANEL = "What the samples are for"

Delta = Annotated[float, typer.Option(help="Largest probability that the answer is wrong.")]
Sets = Annotated[str, typer.Option(help="Confidence sets: kl or bernstein.")]
Save = Annotated[
    Path | None, typer.Option("--save", metavar="FILE.npz", help="Save the answer as arrays, with the names of --json.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite FILE.npz if it exists.")]
Rewards = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.npy", help="Mean rewards of one of our domains: [S, A], or [S], the same for all actions."
    ),
]
Noise = Annotated[
    str | None,
    typer.Option(
        metavar="bernoulli|none",
        help="bernoulli: a reward is 1 with the mean as its probability, else 0; none: it is the mean.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add these verbs to the command line."""
    for verb in (
        find_treasure,
        estimate_model,
        estimate_diameter,
        explore_all_goals,
        learn_policy,
        best_state,
        estimate_rewards,
    ):
        app.command(rich_help_panel=PANEL)(exits(verb))


def find_treasure(
    env: Env,
    need: Annotated[str, typer.Option(help="Samples of every pair, or an .npy file with [S] or [S, A].")] = "1",
    threshold: Annotated[float | None, typer.Option(help="Stop at the first reward above this.")] = None,
    rewards: Rewards = None,
    noise: Noise = None,
    seed: Seed = None,
    delta: Delta = 0.1,
    confidence: Sets = "kl",
    max_steps: MaxSteps = None,
    settings: Settings = None,
    resets: Resets = None,
    reset_cost: ResetCost = None,
    horizon: Horizon = None,
    max_states: MaxStates = None,
    unseen: Unseen = None,
    data: Data = None,
    data_order: DataOrder = None,
    workers: Workers = None,
    save: Save = None,
    force: Force = False,
    keep_in: OutDir = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Search ENV for a reward that may be hidden at any pair.

    Stops at the first reward above THRESHOLD. Without THRESHOLD, it stops when every pair has been sampled NEED times,
    and names the pair with the largest mean reward. NEED should be above 1 if the reward is random.

    Example: `gosprl find-treasure riverswim6 --threshold 0.5 --seed 0`

    Example: `gosprl find-treasure FrozenLake-v1 --threshold 0.5 --need 20 --seed 0 --json`

    Example: `gosprl find-treasure riverswim6 --threshold 0.5 --seed 0 --report treasure.html`
    """
    source = made_by(env, parameters(settings)) if (rewards, noise) == (None, None) else None
    kept_in = kept(keep_in, source)
    system = _with_rewards(environment(env, settings), rewards, noise, needed=threshold is not None)
    given = declared(resets, reset_cost, horizon, max_states, unseen) | begun_with(data, data_order) | fleet(workers)
    request = Request(env, system, seed, delta, confidence, max_steps, save, force, as_json, given, kept_in, report)
    run("searching", request, applications.find_treasure, {"need": samples(need), "threshold": threshold})


def estimate_model(
    env: Env,
    eta: Annotated[float, typer.Option(help="Largest error of the next-state distribution of a pair.")],
    norm: Annotated[
        str, typer.Option(help="Norm of the error: l1 (sum over next states) or max (each of them).")
    ] = "l1",
    rule: Annotated[
        str,
        typer.Option(
            help="When to stop: certified (the sets prove it), paper (printed number of samples) or decreasing."
        ),
    ] = "certified",
    alpha_b: Annotated[
        float | None, typer.Option(help="Factor of the printed number; by default 1 with paper, 0.01 with decreasing.")
    ] = None,
    seed: Seed = None,
    delta: Delta = 0.1,
    confidence: Sets = "kl",
    max_steps: MaxSteps = None,
    settings: Settings = None,
    resets: Resets = None,
    reset_cost: ResetCost = None,
    horizon: Horizon = None,
    max_states: MaxStates = None,
    unseen: Unseen = None,
    data: Data = None,
    data_order: DataOrder = None,
    workers: Workers = None,
    save: Save = None,
    force: Force = False,
    keep_in: OutDir = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Estimate the dynamics of every pair of ENV to within ETA (MODEST, RMODEST).

    The answer has the transitions seen (s, a, s_next, count) and `eta`, a bound on the error of each pair.

    Example: `gosprl estimate-model riverswim6 --eta 0.2 --norm max --seed 0`

    Example: `gosprl estimate-model FrozenLake-v1 --eta 0.5 --norm max --seed 0 --json`
    """
    given = declared(resets, reset_cost, horizon, max_states, unseen) | begun_with(data, data_order) | fleet(workers)
    kept_in = kept(keep_in, made_by(env, parameters(settings)))
    system = environment(env, settings)
    request = Request(env, system, seed, delta, confidence, max_steps, save, force, as_json, given, kept_in, report)
    options = {"eta": eta, "norm": norm, "rule": rule, "alpha_b": alpha_b}
    run("estimating the model", request, applications.estimate_model, options)


def estimate_diameter(
    env: Env,
    epsilon: Annotated[float, typer.Option(help="Accuracy: bounds within (1 + 2 eps (1 + eps)) (1 + eps), eps <= 1.")],
    rule: Annotated[
        str,
        typer.Option(help="doubling (the paper's), certified (far fewer steps) or paper (with the printed numbers)."),
    ] = "doubling",
    seed: Seed = None,
    delta: Delta = 0.1,
    confidence: Sets = "kl",
    max_steps: MaxSteps = None,
    settings: Settings = None,
    resets: Resets = None,
    reset_cost: ResetCost = None,
    horizon: Horizon = None,
    max_states: MaxStates = None,
    unseen: Unseen = None,
    data: Data = None,
    data_order: DataOrder = None,
    workers: Workers = None,
    save: Save = None,
    force: Force = False,
    keep_in: OutDir = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Bound the diameter of ENV from above and below.

    The diameter is the largest, over all pairs of states, of the expected steps of the fastest policy from one to the
    other. The answer has `lower` and `diameter`, its bounds, and `values`, optimistic times between all states.

    Example: `gosprl estimate-diameter riverswim6 --epsilon 0.5 --rule certified --seed 0`
    """
    given = declared(resets, reset_cost, horizon, max_states, unseen) | begun_with(data, data_order) | fleet(workers)
    kept_in = kept(keep_in, made_by(env, parameters(settings)))
    system = environment(env, settings)
    request = Request(env, system, seed, delta, confidence, max_steps, save, force, as_json, given, kept_in, report)
    options = {"epsilon": epsilon, "rule": rule}
    run("estimating the diameter", request, applications.estimate_diameter, options)


def explore_all_goals(
    env: Env,
    epsilon: Annotated[float, typer.Option(help="Largest difference between the costs of a policy and of the best.")],
    c_min: Annotated[float, typer.Option(help="Smallest cost of a step, in (0, 1].")] = 0.0,
    theta: Annotated[
        float | None,
        typer.Option(
            help="If costs may be 0: compare with policies that take at most this multiple of the fastest's steps."
        ),
    ] = None,
    rule: Annotated[str, typer.Option(help="When to stop: certified (the sets prove it) or paper.")] = "certified",
    diameter: Annotated[float | None, typer.Option(help="The diameter of ENV or an upper bound, if known.")] = None,
    alpha: Annotated[float | None, typer.Option(help="The constant of the paper's rule, by default 1.")] = None,
    goal: Annotated[
        int | None,
        typer.Option(
            help="Print the policy that goes to this state: its number, or its place in the order of discovery."
        ),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npy", help="Costs of steps on the way to GOAL, [S] or [S, A], in [c_min, 1]; by default 1."
        ),
    ] = None,
    seed: Seed = None,
    delta: Delta = 0.1,
    confidence: Sets = "kl",
    max_steps: MaxSteps = None,
    settings: Settings = None,
    resets: Resets = None,
    reset_cost: ResetCost = None,
    horizon: Horizon = None,
    max_states: MaxStates = None,
    unseen: Unseen = None,
    data: Data = None,
    data_order: DataOrder = None,
    workers: Workers = None,
    save: Save = None,
    force: Force = False,
    keep_in: OutDir = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Explore ENV until near-optimal policies can be planned for any goal and any costs.

    One of C_MIN and THETA must be given. The answer has the transitions seen (s, a, s_next, count) and `proved`, a
    bound on the difference between the costs of such policies and of the best. With GOAL it also has the `policy` to
    that state and `values`, its costs from each state.

    Example: `gosprl explore-all-goals riverswim --set states=3 --epsilon 1 --c-min 0.5 --goal 2 --seed 0`
    """
    given = declared(resets, reset_cost, horizon, max_states, unseen) | begun_with(data, data_order) | fleet(workers)
    kept_in = kept(keep_in, made_by(env, parameters(settings)))
    system = environment(env, settings)
    request = Request(env, system, seed, delta, confidence, max_steps, save, force, as_json, given, kept_in, report)
    options = {
        "epsilon": epsilon,
        "c_min": c_min,
        "theta": math.inf if theta is None else theta,
        "rule": rule,
        "diameter": diameter,
        "alpha": alpha,
    }
    more, listed = _for_goal(request.system, goal, costs, c_min)
    run("exploring", request, applications.explore_all_goals, options, more, listed)


def learn_policy(
    env: Env,
    gamma: Annotated[float, typer.Option(help="Discount, in (0, 1).")],
    epsilon: Annotated[
        float, typer.Option(help="Largest difference between the values of the best policy and of this one.")
    ],
    allocation: Annotated[
        str, typer.Option(help="Where to sample: bespoke (where good policies need it) or uniform.")
    ] = "bespoke",
    rewards: Rewards = None,
    noise: Noise = None,
    seed: Seed = None,
    delta: Delta = 0.1,
    confidence: Sets = "kl",
    max_steps: MaxSteps = None,
    settings: Settings = None,
    resets: Resets = None,
    reset_cost: ResetCost = None,
    horizon: Horizon = None,
    max_states: MaxStates = None,
    unseen: Unseen = None,
    data: Data = None,
    data_order: DataOrder = None,
    workers: Workers = None,
    save: Save = None,
    force: Force = False,
    keep_in: OutDir = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Learn a policy for the discounted rewards of ENV, within EPSILON of the best from every state.

    Rewards must be in [0, 1]. The answer has the `policy`, `lower` bounds on its values and `upper` bounds on the
    values of any policy, from each state.

    Example: `gosprl learn-policy riverswim6 --gamma 0.9 --epsilon 1 --seed 0`
    """
    source = made_by(env, parameters(settings)) if (rewards, noise) == (None, None) else None
    kept_in = kept(keep_in, source)
    system = _with_rewards(environment(env, settings), rewards, noise)
    given = declared(resets, reset_cost, horizon, max_states, unseen) | begun_with(data, data_order) | fleet(workers)
    request = Request(env, system, seed, delta, confidence, max_steps, save, force, as_json, given, kept_in, report)
    options = {"gamma": gamma, "epsilon": epsilon, "allocation": allocation}
    run("learning a policy", request, applications.learn_policy, options, listed=("policy", "lower", "upper"))


def best_state(
    env: Env,
    budget: Annotated[int | None, typer.Option(help="Number of samples; by default as many as DELTA needs.")] = None,
    epsilon: Annotated[
        float, typer.Option(help="Without BUDGET: accept a state whose mean is this much below the best.")
    ] = 0.0,
    rewards: Rewards = None,
    noise: Noise = None,
    seed: Seed = None,
    delta: Delta = 0.1,
    confidence: Sets = "kl",
    max_steps: MaxSteps = None,
    settings: Settings = None,
    resets: Resets = None,
    reset_cost: ResetCost = None,
    horizon: Horizon = None,
    max_states: MaxStates = None,
    unseen: Unseen = None,
    data: Data = None,
    data_order: DataOrder = None,
    workers: Workers = None,
    save: Save = None,
    force: Force = False,
    keep_in: OutDir = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Identify the state of ENV with the largest mean reward.

    With BUDGET, by Successive Rejects. Without BUDGET, by elimination until it is the best with probability 1 - DELTA.
    Rewards must be in [0, 1], and the same for all actions of a state, as with an array [S] in --rewards.

    Example: `gosprl best-state riverswim6 --rewards means.npy --noise bernoulli --budget 500 --seed 0`

    Example: `gosprl best-state FrozenLake-v1 --epsilon 0.2 --delta 0.05 --seed 0`
    """
    source = made_by(env, parameters(settings)) if (rewards, noise) == (None, None) else None
    kept_in = kept(keep_in, source)
    system = _with_rewards(environment(env, settings), rewards, noise)
    given = declared(resets, reset_cost, horizon, max_states, unseen) | begun_with(data, data_order) | fleet(workers)
    request = Request(env, system, seed, delta, confidence, max_steps, save, force, as_json, given, kept_in, report)
    run("comparing states", request, applications.best_state, {"budget": budget, "epsilon": epsilon})


def estimate_rewards(
    env: Env,
    epsilon: Annotated[float, typer.Option(help="Largest error of the mean reward of a pair.")],
    rewards: Rewards = None,
    noise: Noise = None,
    seed: Seed = None,
    delta: Delta = 0.1,
    confidence: Sets = "kl",
    max_steps: MaxSteps = None,
    settings: Settings = None,
    resets: Resets = None,
    reset_cost: ResetCost = None,
    horizon: Horizon = None,
    max_states: MaxStates = None,
    unseen: Unseen = None,
    data: Data = None,
    data_order: DataOrder = None,
    workers: Workers = None,
    save: Save = None,
    force: Force = False,
    keep_in: OutDir = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Estimate the mean reward of every pair of ENV to within EPSILON.

    Rewards must be in [0, 1]. The answer has `rewards` and `radius`, a bound on the error of each.

    Example: `gosprl estimate-rewards riverswim6 --noise bernoulli --epsilon 0.2 --seed 0`
    """
    source = made_by(env, parameters(settings)) if (rewards, noise) == (None, None) else None
    kept_in = kept(keep_in, source)
    system = _with_rewards(environment(env, settings), rewards, noise)
    given = declared(resets, reset_cost, horizon, max_states, unseen) | begun_with(data, data_order) | fleet(workers)
    request = Request(env, system, seed, delta, confidence, max_steps, save, force, as_json, given, kept_in, report)
    run("estimating rewards", request, applications.estimate_rewards, {"epsilon": epsilon})


def _with_rewards(system: Any, file: Path | None, noise: str | None, needed: bool = True) -> Any:
    """Return the system with the given rewards, or with its own."""
    if not isinstance(system, gosprl.TabularMDP):
        if file is not None or noise is not None:
            raise gosprl.InputError(
                "rewards, noise: expected one of our own domains; a Gymnasium environment has its own rewards"
            )
        return system
    if file is not None:
        return system.with_rewards(array("rewards", file), noise or system.noise)
    if system.rewards is None and (needed or noise is not None):
        raise gosprl.InputError(
            f"rewards: expected --rewards FILE.npy, as {system.name} has none: means [S, A] = "
            f"({system.num_states}, {system.num_actions}) or [S] = ({system.num_states},), in [0, 1]"
        )
    if noise is None or system.rewards is None:
        return system
    return system.with_rewards(system.rows.to_dense(system.rewards), noise)


def _for_goal(
    system: Any, goal: int | None, file: Path | None, c_min: float
) -> tuple[Callable[[applications.Explored], dict[str, Any]], tuple[str, ...]]:
    """Check the inputs for a goal before the run; return a function that computes the output, and entries to list."""
    if goal is None:
        if file is not None:
            raise gosprl.InputError("costs: expected --goal STATE as well")
        return lambda explored: {}, ()
    costs = None if file is None else array("costs", file)
    model = as_system(system).model()
    if not model.growing:  # otherwise the states are known only afterwards
        rows = model.rows
        _checks.index("goal", goal, rows.num_states, "a state")
        row_costs(costs, rows, c_min, np.ones(len(rows)), (rows.num_states, rows.num_actions))

    def plans(explored: applications.Explored) -> dict[str, Any]:
        return {"goal": goal, "policy": explored.policy(goal, costs), "values": explored.values(goal, costs)}

    return plans, ("policy", "values")
