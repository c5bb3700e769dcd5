"""Runs pinned step by step: what they collected before a change to the code they must collect after it, bit for bit.

CASES has the runs by name, `digest` what is kept of one, tests/data/goldens.json those of all.

    python tests/goldens.py --check tests/data/goldens.json [--only TEXT]     names the runs that are not what they were
    python tests/goldens.py --write FILE [--only TEXT]                        writes what they are now
    python tests/goldens.py --renew FILE [--only TEXT]                        the same, of EXCEPTIONS, into the file

Only the public interface is used: collect, Collector, TabularMDP, envs, applications, what results have. All digests
are those of the code before collecting was rebuilt around one engine, except for EXCEPTIONS. The numbers are those of
one platform: linear programs and solves round as NumPy, SciPy and HiGHS were built.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import gosprl
from gosprl import applications

STRATEGIES = (
    "guarded",
    "gosprl",
    "practical",
    "random",
    "zero_one_ucrl",
    "zero_ucrl",
    "maxent",
    "weighted_maxent",
    "min_frequency",
    "zero_rmax",
)
SLOW = {"maxent": 300, "weighted_maxent": 300, "min_frequency": 250}  # plan every other step: steps at most
CASES: dict[str, Callable[[], Any]] = {}  # a gosprl.Result, or an application's Answer


def add(name, run, *arguments, seeds=(0,), **options):
    """A case for each seed."""
    for seed in seeds:
        full = f"{name}, seed {seed}"
        assert full not in CASES, full
        CASES[full] = partial(run, *arguments, seed=seed, **options)


# What is kept of a run


def digest(result):
    """What pins a run: some of it in clear, all of it in `sha`; `parts` says in which of PARTS a difference is.

    Numbers are hashed as int64 and float64, whatever they are stored as.
    """
    answer, result = result, getattr(result, "collected", result)
    parts = {name: _sha(*arrays) for name, arrays in _parts(result).items()}
    kept = {
        "steps": int(result.steps),
        "attempts": int(result.attempts),
        "resets": int(result.resets),
        "stop": str(result.stop),
        "guarantee": str(result.guarantee),
        "unseen": repr(float(result.unseen)),
        "found": None if result.found is None else [_plain(x) for x in result.found],
        "parts": " ".join(parts[name][:4] for name in PARTS),
        "sha": hashlib.sha256("".join(parts[name] for name in PARTS).encode()).hexdigest()[:16],
    }
    if answer is not result:
        kept["answer"] = _told(answer)
    return kept


PARTS = ("transitions", "stored", "rewards", "counts", "curve", "unmet", "unreachable", "found")


def _parts(result):
    model = result.model
    return {
        "transitions": model.transitions(),
        "stored": model.stored(),  # (ptr, succ, count, first): successors in the order in which they appeared
        "rewards": (model.reward_sum, model.reward_sq),
        "counts": (result.counts,),
        "curve": (result.curve["step"], result.curve["proportion"]),
        "unmet": tuple(result.unmet[name] for name in ("state", "action", "needed", "have")),
        "unreachable": (np.array(sorted(result.unreachable), dtype=np.int64),),
        "found": () if result.found is None else tuple(np.array(x) for x in result.found),
    }


def _sha(*arrays):
    """Of shapes and numbers, bit for bit."""
    total = hashlib.sha256()
    for array in map(np.asarray, arrays):
        kind = "<f8" if array.dtype.kind == "f" else "<i8"
        total.update(f"{kind}{array.shape}".encode())
        total.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    return total.hexdigest()


TOLD = (
    *("state", "action", "reward", "covered", "threshold"),  # find_treasure, best_state
    *("candidates", "dropped", "rewards", "pulls", "radius"),  # best_state, estimate_rewards
    *("eta", "norm", "rule", "target", "diameter", "lower", "values", "errors"),  # estimate_model, estimate_diameter
    *("policy", "upper", "value", "gap", "phases", "requested"),  # learn_policy
    *("proved", "c_min", "theta"),  # explore_all_goals
)


def _told(answer):
    """What an application says; of arrays the sum and the largest for people, and a hash."""
    told = {name: getattr(answer, name) for name in TOLD if hasattr(answer, name)}
    if callable(told.get("policy")):  # for any goal and costs: for two of each
        S = answer.model.num_states
        tasks = [(goal, costs) for goal in (0, S - 1) for costs in (None, np.linspace(answer.c_min, 1, S))]
        for name in ("policy", "values"):
            told[name] = np.array([getattr(answer, name)(*task) for task in tasks])
    told["guarantee"] = str(answer.guarantee)
    return {name: _plain(_ten_digits(value)) for name, value in told.items()}


def _ten_digits(x):
    """Floats with ten digits: linear solves round as the processor's BLAS does."""
    if np.asarray(x).dtype.kind != "f":
        return x
    return np.array([f"{value:.9e}" for value in np.ravel(x)], dtype=float).reshape(np.shape(x))


def _plain(x):
    if x is None or isinstance(x, (str, bool)):
        return x
    array = np.asarray(x)
    if array.ndim == 0:
        return repr(float(array)) if array.dtype.kind == "f" else int(array)
    finite = array[np.isfinite(array)]
    sum_, most = (finite.sum().item(), finite.max().item()) if finite.size else (0, 0)
    return f"{'x'.join(map(str, array.shape))} sum {sum_!r} most {most!r} sha {_sha(array)[:12]}"


def difference(old, new):
    """What two digests of a case differ in, in words; "" if in nothing."""
    if old is None or new is None:
        return "" if old is new else "not there before" if old is None else "not there any more"
    if "raised" in new:
        return f"raised {new['raised']}"
    said = []
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        if before == after or name == "sha":
            continue
        if name == "parts":
            both = zip(PARTS, before.split(), after.split(), strict=True)
            said.append("other " + ", ".join(part for part, x, y in both if x != y))
        elif isinstance(before, dict) and isinstance(after, dict):
            keys = dict.fromkeys([*before, *after])
            said += [f"{name}.{k} {before.get(k)!r} -> {after.get(k)!r}" for k in keys if before.get(k) != after.get(k)]
        else:
            said.append(f"{name} {before!r} -> {after!r}")
    if not said and old.get("sha") != new.get("sha"):
        said.append("another sha")
    return "; ".join(said)


# Domains and needs


def rounds(goals, detours, wait, exit_length=2):
    """Goals in a row, and doors to each: the nearest one is the worst to head for (see evidence/guard.py)."""
    edges, actions, states = [], {}, 0

    def new(count):
        nonlocal states
        states += count
        return list(range(states - count, states))

    def arrow(s, t, p=1.0, action=None):
        a = actions.setdefault(s, 0) if action is None else action
        edges.append((s, a, t, p))
        actions[s] = max(actions[s], a + 1)

    def path(s, t, length):
        for here, there in pairwise([s, *new(length - 1), t]):
            arrow(here, there)

    hub, row, (pause,), corridor = new(1)[0], new(goals), new(1), new(goals - 1)
    for here, there in zip(row, [*row[1:], pause], strict=True):
        arrow(here, there)
    arrow(pause, hub, 1 / wait)
    arrow(pause, pause, 1 - 1 / wait, action=0)
    for before, cell, goal in zip([hub, *corridor], corridor, reversed(row), strict=False):
        arrow(before, cell)
        path(cell, goal, exit_length)
    for _ in range(detours):
        path(hub, row[0], goals + exit_length)
    parts = tuple(np.array(part) for part in zip(*edges, strict=True))
    return gosprl.TabularMDP(parts, start=hub, states=states, actions=max(actions.values()))


def lake():
    """FrozenLake as an MDP whose holes lead to the start."""
    return gosprl.TabularMDP.from_gymnasium(gymnasium.make("FrozenLake-v1").unwrapped.P)


def with_coins(name, by_state=False):
    """Bernoulli rewards; with `by_state` one state stands out."""
    mdp = domain(name)
    means = np.random.default_rng(7).uniform(0, 0.5, (mdp.num_states, mdp.num_actions))
    if by_state:
        means = means[:, 0]
        means[mdp.num_states // 2] = 0.95
    return mdp.with_rewards(means, noise="bernoulli")


def treasure(name, s, a, reward=1.0, noise="none"):
    """A reward at one pair, nothing elsewhere."""
    mdp = domain(name)
    means = np.zeros((mdp.num_states, mdp.num_actions))
    means[s, a] = reward
    return mdp.with_rewards(means, noise=noise)


MADE = {
    "garnet": lambda: gosprl.envs.make("garnet", states=12, actions=3, branching=4, seed=3),
    "garnet40": lambda: gosprl.envs.make("garnet", states=40, actions=2, branching=2, seed=1),
    "grid12": lambda: gosprl.envs.make("open_grid", rows=12, columns=12),
    "grid24": lambda: gosprl.envs.make("open_grid", rows=24, columns=24),
    "grid30": lambda: gosprl.envs.make("open_grid", rows=30, columns=30),
    "reflect": lambda: gosprl.envs.make("gridworld", map=["S..X", ".#.#", "x..T"], walls="reflect", slip=0.2),
    "toy3 slow": lambda: gosprl.envs.make("toy3", nu=1e-3),
    "toy3 fast": lambda: gosprl.envs.make("toy3", nu=0.5),
    "hard": lambda: gosprl.envs.make("hard_to_learn", states=5, actions=3, diameter=8, need=60),
    "rounds8": lambda: rounds(8, 3, 40),
    "rounds20": lambda: rounds(20, 4, 200),
    "lake": lake,
    "room20 coins": lambda: with_coins("room20"),
    "riverswim6 coins": lambda: with_coins("riverswim6"),
    "riverswim6 spots": lambda: with_coins("riverswim6", by_state=True),
    "toy3 coins": lambda: with_coins("toy3 fast"),
    "river4": lambda: gosprl.envs.make("riverswim", states=4),
    "four_room43 treasure": lambda: treasure("four_room43", 30, 2),
    "room20 treasure": lambda: treasure("room20", 17, 3, 0.3, "bernoulli"),
}


@cache
def domain(name):
    return MADE[name]() if name in MADE else gosprl.envs.make(name)


@cache
def exists(name):
    """[S, A] the actions that there are."""
    return domain(name).dense().sum(axis=2) > 0


def states_need(name, most=4):
    return np.arange(domain(name).num_states) % most


def pairs_need(name, most=5):
    """[S, A] with zeros."""
    s, a = np.indices(exists(name).shape)
    return np.where(exists(name), (s + 2 * a) % most, 0)


def visits(model, there):
    """[S, A] by what a model says to users."""
    n = np.zeros(there.shape, dtype=np.int64)
    s, a, _, count = model.transitions()
    np.add.at(n, (s, a), count)
    return n


def changing_need(name, by_state=False):
    """2 of every pair, 5 when half of the pairs have that, and when half of them have 4, only 3."""
    there = exists(name)

    def need(model):
        n = visits(model, there)[there]
        wanted = 2 if np.mean(n >= 2) < 0.5 else 5 if np.mean(n >= 4) < 0.5 else 3
        pairs = np.where(there, wanted, 0)
        return 2 * pairs.sum(axis=1) // 3 if by_state else pairs

    return need


NEEDS = {
    "int": lambda name: 3,
    "states": states_need,
    "pairs": pairs_need,
    "changing": changing_need,
    "changing states": partial(changing_need, by_state=True),
}


def need_of(need, name):
    return NEEDS[need](name) if isinstance(need, str) else need


def visit_costs(name):
    """Costs in [1, 4] that grow where the walk was more often."""
    there = exists(name)

    def costs(model):
        n = visits(model, there).sum(axis=1)
        return 1 + 3 * n / max(1, n.max())

    return costs


# Ways to walk


def collected(name, need, strategy, *, seed, max_steps=None, threshold=None, **options):
    """`collect` on a simulated MDP. Options that are said to be `later` are made for the domain."""
    options = {key: value(name) if isinstance(value, Later) else value for key, value in options.items()}
    return gosprl.collect(
        domain(name),
        need_of(need, name),
        strategy=strategy,
        seed=seed,
        max_steps=max_steps,
        threshold=threshold,
        **options,
    )


class Later:
    """An option that depends on the domain, made when the case runs."""

    def __init__(self, make):
        self.make = make

    def __call__(self, name):
        return self.make(name)


ITSELF = Later(domain)
NEXT_DOOR = Later(lambda name: lambda s, a: {int(t) for t in np.flatnonzero(domain(name).dense()[s, a])} | {s})


def in_pieces(name, need, strategy, *, seed, pieces=(100, 57), observed=(), last=None, threshold=None, **options):
    """One collector that runs on the same MDP again and again; transitions (s, a, s_next) observed in between."""
    mdp = domain(name)
    options = {key: value(name) if isinstance(value, Later) else value for key, value in options.items()}
    wanted = need_of(need, name)
    collector = gosprl.Collector(
        *(mdp.num_states, exists(name), wanted),
        strategy=strategy,
        seed=seed,
        threshold=threshold,
        resets="never",
        **options,
    )
    for steps in pieces:
        if not collector.done:
            collector.run(mdp, steps)
        for s, a, s_next in observed:
            collector.observe(s, a, s_next)
    return collector.result() if collector.done else collector.run(mdp, last)


def asked(
    name, need, strategy, *, seed, steps=3000, terminal=(), teleport=0, observe=0, paid=0.0, threshold=None, **options
):
    """ask and tell, with a simulation of our own.

    terminal        states that end an episode, begun again at the start
    teleport        every so many steps the walk goes on in another state
    observe         every so many steps something else is observed
    paid            the chance of a reward of 1; others are 0.25
    """
    mdp, there, P = domain(name), exists(name), domain(name).dense()
    options = {key: value(name) if isinstance(value, Later) else value for key, value in options.items()}
    rng, S = np.random.default_rng([2024, seed]), mdp.num_states
    wanted = need_of(need, name)
    if len(terminal):
        wanted = np.where(there, wanted, 0)
        wanted[list(terminal)] = 0
    options["resets"] = "terminal" if len(terminal) else "never"
    collector = gosprl.Collector(S, there, wanted, strategy=strategy, seed=seed, threshold=threshold, **options)
    inner = [s for s in range(S) if s not in terminal]

    def led_to(s, a):
        return min(int(np.searchsorted(np.cumsum(P[s, a]), rng.random(), side="right")), S - 1)

    s = mdp.start
    for step in range(1, steps + 1):
        if collector.done:
            break
        try:
            a = collector.ask(s)
        except gosprl.InputError:  # the need shrank just now, and nothing is left to do
            assert collector.done
            break
        s_next, reward = led_to(s, a), 1.0 if rng.random() < paid else 0.25
        collector.tell(s, a, s_next, reward, terminated=s_next in terminal)
        s = mdp.start if s_next in terminal else s_next
        if teleport and step % teleport == 0:
            s = int(rng.choice(inner))
        if observe and step % observe == 0:
            t = int(rng.choice(inner))
            b = int(rng.choice(np.flatnonzero(there[t])))
            if (t_next := led_to(t, b)) not in terminal:
                collector.observe(t, b, t_next, 0.5)
    return collector.result()


class Harbour(gymnasium.Env):
    """Six berths in a ring, a mine and a lock: two starts, an end, episodes that are cut, spaces that begin anywhere.

    Berth b: action 2 goes on, with 0.2 it stays; action 3 goes back, with 0.1 into the lock, where any action ends in
    berth 3. From berth 4, going on is the mine with 0.3. After 11 steps an episode is cut.
    """

    def __init__(self):
        self.observation_space = gymnasium.spaces.Discrete(8, start=5)
        self.action_space = gymnasium.spaces.Discrete(2, start=2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.berth, self.time = int(self.np_random.random() < 0.4), 0
        return np.int64(5 + self.berth), {}

    def step(self, action):
        u, self.time = self.np_random.random(), self.time + 1
        if self.berth == 7:
            self.berth = 3
        elif action == 2:
            self.berth = 6 if self.berth == 4 and u < 0.3 else self.berth if u > 0.8 else (self.berth + 1) % 6
        else:
            self.berth = 7 if u < 0.1 else (self.berth - 1) % 6
        return np.int64(5 + self.berth), float(u > 0.97), self.berth == 6, self.time >= 11, {}


def never_ends(env):
    """Options for environments whose episodes never terminate: our own ones."""
    return {"resets": "never"} if isinstance(env, str) and env.startswith("gosprl/") else {}


def stepped(env, need, strategy, *, seed, max_steps=None, threshold=None, made=(), **options):
    """`collect` on a Gymnasium environment, made anew."""
    system = env() if callable(env) else gymnasium.make(env, **dict(made))
    options |= never_ends(env)
    try:
        return gosprl.collect(
            system, need, strategy=strategy, seed=seed, max_steps=max_steps, threshold=threshold, **options
        )
    finally:
        system.close()


def applied(function, name, *arguments, seed, strategy="guarded", **options):
    """An application on a simulated MDP."""
    options = {key: value(name) if isinstance(value, Later) else value for key, value in options.items()}
    return getattr(applications, function)(domain(name), *arguments, seed=seed, strategy=strategy, **options)


def applied_to(function, env, *arguments, seed, strategy="guarded", made=(), **options):
    """An application on a Gymnasium environment, made anew."""
    system = env() if callable(env) else gymnasium.make(env, **dict(made))
    try:
        return getattr(applications, function)(system, *arguments, seed=seed, strategy=strategy, **options)
    finally:
        system.close()


# Every strategy, with every kind of need

LEFT_OUT = {
    "toy3": ("changing states",),
    "room20": ("changing states",),
    "four_room43": ("states", "changing", "changing states"),
}

for _strategy in STRATEGIES:
    for _name in ("riverswim6", "toy3", "room20", "garnet", "four_room43"):
        for _need in NEEDS:
            if _need in LEFT_OUT.get(_name, ()):
                continue
            add(
                f"strategies: {_strategy}, {_name}, {_need}",
                *(collected, _name, _need, _strategy),
                seeds=(0, 1) if _name == "toy3" or (_name == "riverswim6" and _need in ("int", "pairs")) else (0,),
                max_steps=SLOW.get(_strategy, 1500 if _name == "four_room43" else 20_000),
            )

# Algorithm 1 and its options

GOSPRL = {
    "bernstein": {"confidence": "bernstein"},
    "bernstein x0.1": {"confidence": "bernstein", "scale": 0.1},
    "x0.1": {"scale": 0.1},
    "x0.01": {"scale": 0.01},
    "KL object": {"confidence": gosprl.KL(0.2, 0.5)},
    "Bernstein object": {"confidence": gosprl.Bernstein(0.1, 0.3)},
    "goals all": {"goals": "all"},
    "goals least-sampled": {"goals": "least-sampled"},
    "goals easiest": {"goals": "easiest"},
    "goals random": {"goals": "random"},
    "goals easiest, full": {"goals": "easiest", "planning": "full", "random_ties": False},
    "costs of states": {"costs": Later(lambda name: 1.0 + states_need(name, 3))},
    "costs of pairs": {"costs": Later(lambda name: 1.0 + pairs_need(name, 3) / 2)},
    "costs by visits": {"costs": Later(visit_costs)},
    "costs, dynamics": {"costs": Later(lambda name: 1.0 + states_need(name, 3)), "dynamics": ITSELF},
    "dynamics": {"dynamics": ITSELF},
    "dynamics, full": {"dynamics": ITSELF, "planning": "full"},
    "dynamics, first of ties": {"dynamics": ITSELF, "random_ties": False},
    "dynamics, no duplicate": {"dynamics": ITSELF, "duplicate_start": False},
    "dynamics, least-sampled": {"dynamics": ITSELF, "goals": "least-sampled"},
    "successors mdp": {"successors": ITSELF},
    "successors callable": {"successors": NEXT_DOOR},
    "successors array": {"successors": Later(lambda name: domain(name).dense() > 0)},
    "successors, bernstein": {"successors": ITSELF, "confidence": "bernstein"},
    "successors, x0.1, full": {"successors": ITSELF, "scale": 0.1, "planning": "full"},
    "precision 0.1": {"precision": 0.1},
    "precision 1e-6": {"precision": 1e-6},
    "full": {"planning": "full"},
    "full, bernstein": {"planning": "full", "confidence": "bernstein"},
    "no duplicate": {"duplicate_start": False},
    "no duplicate, x0.01": {"duplicate_start": False, "scale": 0.01},
    "first of ties": {"random_ties": False},
    "delta 0.3": {"delta": 0.3},
}
for _label, _options in GOSPRL.items():
    add(f"gosprl: {_label}, riverswim6", collected, "riverswim6", 4, "gosprl", max_steps=5000, **_options)
    add(f"gosprl: {_label}, room20", collected, "room20", 3, "gosprl", max_steps=1500, **_options)
    add(f"gosprl: {_label}, four_room43", collected, "four_room43", 1, "gosprl", max_steps=1000, **_options)
for _label in ("full", "dynamics", "successors mdp", "costs of pairs", "costs by visits", "goals random"):
    for _need in ("pairs", "states", "changing", "changing states"):
        add(f"gosprl: {_label}, garnet, {_need}", collected, "garnet", _need, "gosprl", **GOSPRL[_label])
for _label in ("goals all", "costs of states"):
    for _name in ("riverswim6", "room20"):
        add(
            f"gosprl: reach 500, {_label}, {_name}",
            *(collected, _name, 3, "gosprl"),
            **{"reach": 500.0, "reach_constant": None, **GOSPRL[_label]},
        )
for _label in ("goals all", "full", "costs of states", "dynamics", "successors mdp", "goals random", "goals easiest"):
    add(  # state 1 is 1000 steps away
        f"gosprl: reach 20, {_label}, toy3 slow",
        *(collected, "toy3 slow", 3, "gosprl"),
        **{"reach": 20.0, "reach_constant": None, "max_steps": 5000, **GOSPRL[_label]},
    )
for _label in ("dynamics, least-sampled", "successors mdp", "goals least-sampled"):
    add(
        f"gosprl: reach 20, {_label}, riverswim36",
        *(collected, "riverswim36", 2, "gosprl"),
        **{"reach": 20.0, "reach_constant": None, "max_steps": 3000, **GOSPRL[_label]},
    )

# The practical plan, and the guard

GUARDED = {
    "bernstein": {"confidence": "bernstein"},
    "KL object": {"confidence": gosprl.KL(0.2, 0.5)},
    "successors mdp": {"successors": ITSELF},
    "successors callable": {"successors": NEXT_DOOR},
    "kappa 0.1": {"kappa": 0.1},
    "kappa 0.01": {"kappa": 0.01},
    "kappa 2": {"kappa": 2.0},
    "kappa 0.01, successors": {"kappa": 0.01, "successors": ITSELF},
    "kappa 0.01, bernstein": {"kappa": 0.01, "confidence": "bernstein"},
    "sliver 0.1": {"practical_scale": 0.1},
    "sliver 0.001": {"practical_scale": 0.001},
    "no fluid": {"fluid": False},
    "no fluid, successors": {"fluid": False, "successors": ITSELF},
    "delta 0.3": {"delta": 0.3},
}
PRACTICAL = {
    "x0.1": {"scale": 0.1},
    "x1": {"scale": 1.0},
    "successors mdp": {"successors": ITSELF},
    "successors callable": {"successors": NEXT_DOOR},
    "no fluid": {"fluid": False},
    "no fluid, x0.1": {"fluid": False, "scale": 0.1},
    "delta 0.3": {"delta": 0.3},
}
for _strategy, _settings in (("guarded", GUARDED), ("practical", PRACTICAL)):
    for _label, _options in _settings.items():
        _large = {"max_steps": 1500, **_options}
        add(f"{_strategy}: {_label}, room20", collected, "room20", 5, _strategy, **_options)
        add(f"{_strategy}: {_label}, four_room43", collected, "four_room43", 3, _strategy, **_large)
        add(f"{_strategy}: {_label}, corridor24", collected, "corridor24", "states", _strategy, **_large)
        add(f"{_strategy}: {_label}, garnet", collected, "garnet", "changing", _strategy, **_options)


def guard(name, need, strategy, **options):
    """Samples of a few states, or pairs, far from each other."""
    if need == "ends":
        wanted = np.zeros((domain(name).num_states, domain(name).num_actions), dtype=np.int64)
        wanted[0, 0] = wanted[-1, 1] = 150
    else:
        states, samples = need
        wanted = np.zeros(domain(name).num_states, dtype=np.int64)
        wanted[states] = samples
    return collected(name, wanted, strategy, **options)


GUARD = {
    "rounds8": (slice(1, 9), 30),
    "rounds20": (slice(1, 21), 40),
    "corridor24": "ends",
    "riverswim36": ([35], 3),
    "hard": ([4], 60),
}
for _name, _need in GUARD.items():
    for _label, _options in {
        "guarded": {},
        "guarded, no fluid": {"fluid": False},
        "guarded, no fluid, kappa 0.1": {"fluid": False, "kappa": 0.1},
        "guarded, kappa 0.05": {"kappa": 0.05},
        "guarded, kappa 0.05, successors": {"kappa": 0.05, "successors": ITSELF},
        "guarded, no fluid, kappa 0.3, bernstein": {"fluid": False, "kappa": 0.3, "confidence": "bernstein"},
        "practical": {},
        "practical, no fluid": {"fluid": False},
        "gosprl": {"duplicate_start": False},
    }.items():
        _strategy = _label.split(",")[0]
        add(f"guard: {_label}, {_name}", guard, _name, _need, _strategy, max_steps=6000, **_options)

# The rivals' options

for _label, _strategy, _options in (
    ("bernstein", "zero_one_ucrl", {"confidence": "bernstein"}),
    ("bernstein x0.1", "zero_one_ucrl", {"confidence": "bernstein", "scale": 0.1}),
    ("renew", "zero_one_ucrl", {"renew": True}),
    ("renew, x0.1", "zero_one_ucrl", {"renew": True, "scale": 0.1}),
    ("x0.1, delta 0.3", "zero_ucrl", {"scale": 0.1, "delta": 0.3}),
    ("bernstein x0.1", "zero_ucrl", {"confidence": "bernstein", "scale": 0.1}),
    ("mu 1, drift 0.5", "maxent", {"mu": 1.0, "drift": 0.5}),
    ("x0.1", "maxent", {"scale": 0.1}),
    ("mu 1, drift 0.5", "weighted_maxent", {"mu": 1.0, "drift": 0.5}),
    ("bernstein x0.1", "weighted_maxent", {"confidence": "bernstein", "scale": 0.1}),
    ("rate 0.3, drift 2", "min_frequency", {"rate": 0.3, "drift": 2.0}),
    ("x0.1", "min_frequency", {"scale": 0.1}),
    ("gamma 0.9", "zero_rmax", {"gamma": 0.9}),
    ("gamma 0.999", "zero_rmax", {"gamma": 0.999}),
):
    for _name, _need in (("riverswim6", 8), ("garnet", "pairs")):
        add(f"rivals: {_strategy}, {_label}, {_name}", collected, _name, _need, _strategy, max_steps=400, **_options)

# Other domains, and larger ones

for _name in (
    "riverswim36",
    "noisy_riverswim36",
    "wheel30",
    "cliff48",
    "trap10",
    "garnet40",
    "reflect",
    "hard",
    "lake",
):
    for _strategy in ("guarded", "gosprl", "practical", "random", "zero_rmax"):
        add(f"domains: {_strategy}, {_name}", collected, _name, 2, _strategy, max_steps=1200)
for _label, _strategy, _options in (
    ("guarded", "guarded", {}),
    ("guarded, successors", "guarded", {"successors": ITSELF}),
    ("guarded, kappa 0.01", "guarded", {"kappa": 0.01}),
    ("practical", "practical", {}),
    ("gosprl", "gosprl", {}),
    ("gosprl, no duplicate, x0.01", "gosprl", {"duplicate_start": False, "scale": 0.01}),
    ("gosprl, no duplicate, successors", "gosprl", {"duplicate_start": False, "successors": ITSELF}),
    ("gosprl, no duplicate, dynamics", "gosprl", {"duplicate_start": False, "dynamics": ITSELF}),
    ("gosprl, full, dynamics", "gosprl", {"planning": "full", "duplicate_start": False, "dynamics": ITSELF}),
):
    for _name in (
        ("grid30",) if "no duplicate" in _label else ("grid12",) if "kappa" in _label else ("grid12", "grid30")
    ):
        _most = 3000 if "full" in _label or _label == "gosprl" else 12_000
        add(f"large: {_label}, {_name}", collected, _name, 1, _strategy, max_steps=_most, **_options)
add("large: guarded, grid24, states", collected, "grid24", "states", "guarded", max_steps=800)

# Rewards, the end of a run, and runs in pieces

for _strategy in STRATEGIES:
    for _name in ("riverswim6 coins", "room20 coins"):
        add(f"rewards: {_strategy}, {_name}", collected, _name, 4, _strategy, max_steps=SLOW.get(_strategy, 500))
    for _case, _threshold in (("riverswim6", 0.5), ("room20 coins", 0.5), ("room20 treasure", 0.5)):
        add(
            f"threshold: {_strategy}, {_case}",
            *(collected, _case, 30, _strategy),
            **{"threshold": _threshold, "max_steps": 5000 if _strategy not in SLOW else 600},
        )
    for _name, _need in (("riverswim6", 12), ("room20 coins", 4)):
        _last = 100 if _strategy in SLOW else 10_000
        add(f"pieces: {_strategy}, {_name}", in_pieces, _name, _need, _strategy, last=_last)
    add(f"max_steps: {_strategy}, one step", collected, "room20", 2, _strategy, max_steps=1)
    add(f"max_steps: {_strategy}, 123 steps", collected, "room20", 2, _strategy, max_steps=123, seeds=(0, 1))
add(
    "threshold: guarded, four_room43 treasure",
    collected,
    "four_room43 treasure",
    9,
    "guarded",
    threshold=0,
    seeds=(0, 1),
)
add("max_steps: guarded, nothing needed", collected, "room20", 0, "guarded")
add("threshold: never, gosprl, room20 coins", collected, "room20 coins", 2, "gosprl", threshold=1.5)
for _strategy in ("guarded", "gosprl", "practical", "random"):
    add(
        f"pieces: {_strategy}, observed",
        *(in_pieces, "riverswim6", 12, _strategy),
        **{"pieces": (1, 20, 50, 3), "observed": ((5, 1, 4), (5, 1, 5), (2, 0, 1), (5, 0, 4)), "seeds": (0, 1)},
    )
    add(f"pieces: {_strategy}, changing", in_pieces, "garnet", "changing", _strategy, pieces=(7, 100, 1, 1, 30))
    add(f"pieces: {_strategy}, threshold", in_pieces, "riverswim6", 30, _strategy, pieces=(10, 10), threshold=0.5)
add("pieces: guarded, kappa 0.01", in_pieces, "riverswim6", 30, "guarded", kappa=0.01, observed=((5, 1, 5),))
add("pieces: gosprl, successors", in_pieces, "room20", 4, "gosprl", successors=ITSELF)
add("pieces: gosprl, full", in_pieces, "room20", 4, "gosprl", planning="full", goals="easiest")
add("pieces: gosprl, toy3", in_pieces, "toy3", "pairs", "gosprl", pieces=(5, 5))

# Gymnasium

for _strategy in ("guarded", "gosprl", "practical", "random", "zero_one_ucrl"):
    for _label, _env, _need, _most, _made in (
        ("FrozenLake", "FrozenLake-v1", 4, 2000, {}),
        ("FrozenLake 8x8", "FrozenLake8x8-v1", 1, 800, {}),
        ("FrozenLake, cut after 7", "FrozenLake-v1", 3, 1500, {"max_episode_steps": 7}),
        ("FrozenLake, not slippery", "FrozenLake-v1", 3, 1500, {"is_slippery": False}),
        ("CliffWalking", "CliffWalking-v1", 2, 1500, {}),
        ("CliffWalking, cut after 20", "CliffWalking-v1", 2, 1500, {"max_episode_steps": 20}),
        ("Taxi", "Taxi-v4", 1, 2000, {}),
        ("riverswim6", "gosprl/riverswim6-v0", 5, 2000, {}),
        ("riverswim6, cut after 7", "gosprl/riverswim6-v0", 2, 1500, {"max_episode_steps": 7}),
        ("toy3", "gosprl/toy3-v0", 5, 2000, {"nu": 0.5}),
        ("four_room43", "gosprl/four_room43-v0", 2, 1500, {}),
        ("wheel, 12 states", "gosprl/wheel-v0", 4, 1500, {"states": 12}),
        ("Harbour", Harbour, 6, 2000, {}),
    ):
        _seeds = (0, 1) if _label in ("FrozenLake", "FrozenLake, cut after 7", "Harbour") else (0,)
        _most = min(_most, 600) if _strategy == "zero_one_ucrl" else _most
        _case = f"gymnasium: {_strategy}, {_label}"
        add(_case, stepped, _env, _need, _strategy, seeds=_seeds, max_steps=_most, made=tuple(_made.items()))
    for _need in ("states", "pairs", "changing"):
        add(
            f"gymnasium: {_strategy}, riverswim6, {_need}",
            *(stepped, "gosprl/riverswim6-v0", NEEDS[_need]("riverswim6"), _strategy),
            max_steps=2000,
        )
    add(
        f"gymnasium: {_strategy}, FrozenLake, found",
        stepped,
        "FrozenLake-v1",
        50,
        _strategy,
        threshold=0.5,
        seeds=(0, 1),
    )
    add(f"gymnasium: {_strategy}, Harbour, found", stepped, Harbour, 50, _strategy, threshold=0.5)
add("gymnasium: guarded, kappa 0.01, FrozenLake", stepped, "FrozenLake-v1", 4, "guarded", kappa=0.01, max_steps=2000)
add("gymnasium: guarded, no fluid, Harbour", stepped, Harbour, 6, "guarded", fluid=False, max_steps=2000)
add("gymnasium: gosprl, full, Harbour", stepped, Harbour, 6, "gosprl", planning="full", max_steps=2000)
add(
    "gymnasium: gosprl, x0.1, no duplicate, FrozenLake",
    stepped,
    "FrozenLake-v1",
    6,
    "gosprl",
    scale=0.1,
    duplicate_start=False,
)
add("gymnasium: gosprl, easiest, FrozenLake", stepped, "FrozenLake-v1", 3, "gosprl", goals="easiest", max_steps=2000)
add("gymnasium: zero_rmax, FrozenLake", stepped, "FrozenLake-v1", 4, "zero_rmax", max_steps=2000)
add("gymnasium: maxent, Harbour", stepped, Harbour, 6, "maxent", max_steps=500)

# ask and tell

TILES = (0, 33, 40)  # of four_room43
for _strategy in ("guarded", "gosprl", "random", "practical"):
    for _label, _name, _need, _options in (
        ("int", "riverswim6", 5, {}),
        ("pairs", "toy3", "pairs", {}),
        ("states", "room20", "states", {}),
        ("changing", "garnet", "changing", {}),
        ("terminated", "four_room43", 2, {"terminal": TILES, "steps": 1000}),
        ("terminated, room20", "room20", 4, {"terminal": (19,)}),
        ("teleports", "riverswim6", 8, {"teleport": 9}),
        ("teleports, room20", "room20", 4, {"teleport": 13}),
        ("observed", "riverswim6", 8, {"observe": 5}),
        ("observed, changing", "garnet", "changing states", {"observe": 7}),
        (
            "all at once",
            "four_room43",
            2,
            {"terminal": TILES, "teleport": 17, "observe": 11, "paid": 0.1, "steps": 1000},
        ),
        ("cut", "room20", 9, {"steps": 77, "paid": 0.5}),
        ("found", "room20", 50, {"paid": 0.01, "threshold": 0.6}),
    ):
        _seeds = (0, 1) if _label in ("int", "terminated, room20", "teleports", "observed", "all at once") else (0,)
        add(f"ask and tell: {_strategy}, {_label}", asked, _name, _need, _strategy, seeds=_seeds, **_options)
for _label, _strategy, _options in (
    ("kappa 0.01", "guarded", {"kappa": 0.01}),
    ("no fluid", "guarded", {"fluid": False}),
    ("successors", "guarded", {"successors": ITSELF}),
    ("full", "gosprl", {"planning": "full"}),
    ("successors", "gosprl", {"successors": ITSELF}),
    ("dynamics", "gosprl", {"dynamics": ITSELF}),
    ("least-sampled", "gosprl", {"goals": "least-sampled"}),
    ("successors", "practical", {"successors": ITSELF}),
    ("plain", "zero_one_ucrl", {}),
    ("plain", "zero_rmax", {}),
    ("plain", "min_frequency", {}),
):
    add(
        f"ask and tell: {_strategy}, {_label}, teleports, observed",
        *(asked, "room20", 4, _strategy),
        **{"teleport": 19, "observe": 8, "steps": 1500 if _strategy not in SLOW else 300, **_options},
    )

# What the samples are for

APPLIED = (
    ("find_treasure", "four_room43 treasure", (), {}),
    ("find_treasure", "four_room43 treasure", (), {"threshold": 0.5}),
    ("find_treasure", "room20 treasure", (4,), {}),
    ("find_treasure", "room20 treasure", (20,), {"threshold": 0.5}),
    ("find_treasure", "riverswim6", ([0, 0, 1, 1, 0, 3],), {}),
    ("find_treasure", "room20 treasure", (3,), {"max_steps": 60}),
    ("estimate_model", "riverswim6", (0.5,), {}),
    ("estimate_model", "riverswim6", (0.2,), {"norm": "max"}),
    ("estimate_model", "garnet", (0.8,), {}),
    ("estimate_model", "room20", (0.7,), {"successors": ITSELF}),
    ("estimate_model", "room20", (0.9,), {"confidence": "bernstein", "max_steps": 4000}),
    ("estimate_model", "room20", (0.3,), {"confidence": gosprl.KL(0.1, 0.01)}),
    ("estimate_model", "toy3", (1.0,), {"rule": "paper", "alpha_b": 0.01}),
    ("estimate_model", "riverswim6", (0.3,), {"rule": "decreasing", "alpha_b": 0.005}),
    ("estimate_model", "riverswim6", (0.5,), {"norm": "max", "rule": "decreasing", "delta": 0.3}),
    ("estimate_model", "room20", (0.2,), {"max_steps": 500}),
    ("estimate_diameter", "toy3 fast", (1.0,), {}),
    ("estimate_diameter", "toy3", (1.0,), {"rule": "certified"}),
    ("estimate_diameter", "riverswim6", (0.5,), {"rule": "certified"}),
    ("estimate_diameter", "riverswim6", (1.0,), {"rule": "certified", "successors": ITSELF}),
    ("estimate_diameter", "riverswim6", (0.5,), {"confidence": gosprl.KL(0.1, 0.01)}),
    ("estimate_diameter", "riverswim6", (0.5,), {"max_steps": 3000}),
    ("estimate_diameter", "river4", (1.0,), {"rule": "paper", "max_steps": 20_000}),
    ("explore_all_goals", "toy3 fast", (3.0,), {"c_min": 1.0}),
    ("explore_all_goals", "toy3 fast", (2.0,), {"c_min": 0.5, "successors": ITSELF}),
    ("explore_all_goals", "toy3 fast", (4.0,), {"theta": 2.0}),
    ("explore_all_goals", "riverswim6", (5.0,), {"c_min": 1.0, "confidence": gosprl.KL(0.1, 0.01)}),
    ("explore_all_goals", "toy3 fast", (0.5,), {"c_min": 1.0, "rule": "paper", "diameter": 3.0, "alpha": 1e-3}),
    ("explore_all_goals", "toy3 fast", (2.0,), {"c_min": 0.5, "rule": "paper", "alpha": 1e-6}),
    ("explore_all_goals", "riverswim6", (1.0,), {"c_min": 0.5, "max_steps": 2000}),
    ("learn_policy", "riverswim6", (0.5, 0.5), {}),
    ("learn_policy", "riverswim6", (0.8, 1.0), {}),
    ("learn_policy", "riverswim6", (0.8, 1.0), {"allocation": "uniform"}),
    ("learn_policy", "toy3 coins", (0.6, 0.5), {}),
    ("learn_policy", "toy3 coins", (0.6, 0.5), {"allocation": "uniform", "delta": 0.3}),
    ("learn_policy", "room20 coins", (0.5, 1.0), {"confidence": gosprl.KL(0.1, 0.1)}),
    ("learn_policy", "riverswim6 coins", (0.5, 0.6), {"successors": ITSELF}),
    ("learn_policy", "riverswim6 coins", (0.9, 0.01), {"max_steps": 4000}),
    ("best_state", "riverswim6 spots", (), {}),
    ("best_state", "riverswim6 spots", (), {"epsilon": 0.3, "delta": 0.3}),
    ("best_state", "riverswim6 spots", (60,), {}),
    ("best_state", "riverswim6 spots", (600,), {"confidence": "bernstein"}),
    ("best_state", "riverswim6 spots", (4000,), {"max_steps": 300}),
    ("estimate_rewards", "room20 coins", (0.4,), {}),
    ("estimate_rewards", "riverswim6 coins", (0.2,), {}),
    ("estimate_rewards", "riverswim6", (0.1,), {}),
    ("estimate_rewards", "riverswim6 coins", (0.1,), {"confidence": gosprl.KL(0.1, 0.01)}),
    ("estimate_rewards", "room20 coins", (0.2,), {"max_steps": 500}),
)


def _words(arguments, options):
    shown = [*map(str, arguments), *(f"{k} {'itself' if v is ITSELF else v}" for k, v in options.items())]
    return ", ".join(shown)


for _function, _name, _arguments, _options in APPLIED:
    _case = f"applications: {_function}({', '.join(filter(None, [_name, _words(_arguments, _options)]))})"
    add(_case, applied, _function, _name, *_arguments, seeds=(0,) if _options else (0, 1), **_options)
for _strategy in ("gosprl", "practical", "random", "zero_one_ucrl"):
    for _function, _name, _arguments, _options in (
        ("find_treasure", "four_room43 treasure", (), {"threshold": 0.5}),
        ("estimate_model", "riverswim6", (0.9,), {}),
        ("estimate_diameter", "toy3 fast", (1.0,), {"rule": "certified"}),
        ("explore_all_goals", "toy3 fast", (4.0,), {"c_min": 1.0}),
        ("learn_policy", "toy3 coins", (0.5, 0.8), {}),
        ("best_state", "riverswim6 spots", (100,), {}),
        ("estimate_rewards", "toy3 coins", (0.3,), {}),
    ):
        _case = f"applications: {_function}, {_strategy}"
        add(_case, applied, _function, _name, *_arguments, strategy=_strategy, max_steps=3000, **_options)
for _label, _function, _env, _arguments, _options in (
    ("FrozenLake", "find_treasure", "FrozenLake-v1", (100,), {"threshold": 0.5}),
    ("FrozenLake, covered", "find_treasure", "FrozenLake-v1", (5,), {}),
    ("FrozenLake", "estimate_model", "FrozenLake-v1", (1.4,), {}),
    ("Harbour", "estimate_model", Harbour, (1.0,), {}),
    ("toy3", "estimate_diameter", "gosprl/toy3-v0", (1.0,), {"rule": "certified", "made": (("nu", 0.5),)}),
    ("Harbour", "estimate_diameter", Harbour, (1.0,), {"rule": "certified", "max_steps": 3000}),
    ("toy3", "explore_all_goals", "gosprl/toy3-v0", (5.0,), {"c_min": 1.0, "max_steps": 3000, "made": (("nu", 0.5),)}),
    ("FrozenLake", "learn_policy", "FrozenLake-v1", (0.5, 0.9), {"max_steps": 2000}),
    ("Harbour", "learn_policy", Harbour, (0.5, 0.8), {"max_steps": 3000}),
    ("Harbour", "best_state", Harbour, (300,), {}),
    ("FrozenLake", "best_state", "FrozenLake-v1", (), {"epsilon": 0.5, "max_steps": 3000}),
    ("Harbour", "estimate_rewards", Harbour, (0.3,), {}),
):
    add(f"applications: {_function}, {_label}, stepped", applied_to, _function, _env, *_arguments, **_options)

# Cases whose digests were taken again after a change, since they are meant to differ.
_PLANS_AGAIN = (
    "`done` must know whether the strategy gives up, so it plans for the state where the walk is; this loop then asks "
    "about another state without having said truncated=True, and the planner plans again"
)
_ENDINGS = (
    "endings belong to transitions: final copies of states, one row for all resets, resets after truncations count"
)
_MASKS = "actions that a state does not offer are no rows"
_ONE_BY_ONE = (
    "a state beyond reach is given up at once, not when all others are met: there is one goal less from then on"
)
_PLAN = (
    "the practical plan has prices later, wider sets where successors are known, a learnt prior, narrower sets once "
    "there are prices, and takes near ties by the flow of the program"
)
_DISCOVERED = "the guarantee says that it is about the states discovered; resets after truncations count"


def _exceptions():
    """Case -> why it was taken again."""
    out = {}
    for name in CASES:
        group, _, rest = name.partition(": ")
        words = rest.split(", ")
        if group in ("guard", "applications") or "guarded" in name or "practical" in name:
            out[name] = _PLAN
        elif group == "ask and tell" and {"terminated", "all at once"} & set(words):
            out[name] = _ENDINGS
        elif name in PLANS_AGAIN:
            out[name] = _PLANS_AGAIN
        elif name == "gosprl: reach 20, dynamics, toy3 slow, seed 0":
            out[name] = _ONE_BY_ONE
        elif group == "gymnasium" or (group == "applications" and "stepped" in words):
            if {"Harbour", "FrozenLake", "FrozenLake 8x8", "CliffWalking", "Taxi"} & set(words):
                out[name] = _ENDINGS
            elif "toy3" in words:
                out[name] = _MASKS
            elif {"states", "pairs", "changing"} & set(words) or words[0] == "random":
                continue  # they speak of states that are known, or promise nothing
            elif words[0] in ("guarded", "gosprl") or "cut after 7" in words:
                out[name] = _DISCOVERED
    return out


PLANS_AGAIN = {
    "ask and tell: guarded, successors, teleports, observed, seed 0",
    "ask and tell: gosprl, successors, teleports, observed, seed 0",
    "ask and tell: gosprl, dynamics, teleports, observed, seed 0",
    "ask and tell: practical, successors, teleports, observed, seed 0",
}
EXCEPTIONS = _exceptions()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="FILE", type=Path)
    parser.add_argument("--check", metavar="FILE", type=Path)
    parser.add_argument("--renew", metavar="FILE", type=Path)
    parser.add_argument("--only", metavar="TEXT", default="", help="only cases with this in their names")
    parser.add_argument("--slowest", metavar="N", type=int, default=0, help="name the N cases that took longest")
    given = parser.parse_args()
    if sum(file is not None for file in (given.write, given.check, given.renew)) != 1:
        parser.error("expected one of --write, --check and --renew")
    begun, found, took = time.perf_counter(), {}, {}
    file = given.check or given.renew
    old = json.loads(file.read_text()) if file else {}
    print(f"{gosprl.__file__}", file=sys.stderr)
    for name, run in CASES.items():
        if given.only not in name or (given.renew and name not in EXCEPTIONS):
            continue
        before = time.perf_counter()
        try:
            found[name] = digest(run())
        except Exception as error:
            if not given.check:
                raise RuntimeError(f"{name}: {error}") from error
            found[name] = {"raised": f"{type(error).__name__}: {error}"}
        took[name] = time.perf_counter() - before
    if not given.check:
        kept = {name: (old | found)[name] for name in CASES if name in old or name in found}
        lines = [f"{json.dumps(name)}: {json.dumps(digests)}" for name, digests in kept.items()]
        (given.write or given.renew).write_text("{\n" + ",\n".join(lines) + "\n}\n")
    names = [name for name in dict.fromkeys([*found, *old]) if given.only in name]
    differ = (
        {name: text for name in names if (text := difference(old.get(name), found.get(name)))} if given.check else {}
    )
    for name, text in differ.items():
        print(f"{name}: {text}")
    for name in sorted(took, key=took.get, reverse=True)[: given.slowest]:
        print(f"{took[name]:7.2f} s  {name}", file=sys.stderr)
    verdict = f", {len(differ)} differ" if given.check else ""
    print(f"{len(found)} cases{verdict}, {time.perf_counter() - begun:.1f} s", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
