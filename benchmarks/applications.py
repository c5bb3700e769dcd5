"""The applications' own time: how much of a run is planning, and what planning for all goals together saves.

Planning is what the strategy takes to say where to walk; asking, what the rule takes to look at the counts and to say
how many samples are needed (with the applications' own plans); the rest is walking.

python benchmarks/applications.py      writes benchmarks/results/applications.md
"""

from dataclasses import dataclass, field

import numpy as np
from report import cells, clock, header, options, timed, write

import gosprl
from gosprl import applications
from gosprl.applications.common import Walk
from gosprl.envs import make
from gosprl.mdp.distances import optimistic_times
from gosprl.model.loop import Loop
from gosprl.strategies.guarded import Guarded

CASES = (
    ("estimate_model", "riverswim6", (0.05,), {}),
    ("estimate_model", "wheel30", (0.1,), {}),
    ("estimate_model", "garnet", (0.1,), {}),
    ("estimate_diameter", "riverswim6", (0.3,), {}),
    ("estimate_diameter", "corridor24", (0.3,), {"rule": "certified"}),
    ("explore_all_goals", "riverswim6", (1.0,), {"c_min": 0.5}),
    ("learn_policy", "garnet", (0.9, 0.5), {}),
)
QUICK = (("estimate_model", "riverswim6", (0.5,), {}), ("learn_policy", "garnet", (0.5, 1.0), {}))


def domain(name):
    if name != "garnet":
        return make(name)
    mdp = make("garnet", states=20, actions=3, branching=5, seed=0)
    rewards = np.random.default_rng(0).random((20, 3)) ** 3
    return gosprl.TabularMDP(mdp.dense(), rewards=rewards, noise="bernoulli")


@dataclass(frozen=True)
class Timed(Guarded):
    """The default strategy, with a clock."""

    seconds: list = field(default_factory=list)  # of each plan

    def begin(self, model, need, rng):
        planner = super().begin(model, need, rng)
        attempt = planner.attempt

        def timed_attempt(s, t):
            begin = clock()
            answer = attempt(s, t)
            self.seconds.append(clock() - begin)
            return answer

        planner.attempt = timed_attempt
        return planner


def shares(function, name, arguments, given):
    """(steps, plans, seconds in all, seconds planning, seconds asking) of one run."""
    asking = [0.0]
    run = Walk.run

    def clocked(self, system, rule_of, rewards=False):
        def made(model, all_states):
            rule = rule_of(model, all_states)
            update = rule.update

            def timed_update(model, rows):
                begin = clock()
                changed = update(model, rows)
                asking[0] += clock() - begin
                return changed

            rule.update = timed_update
            return rule

        return run(self, system, made, rewards)

    Walk.run = clocked
    try:
        mdp, strategy = domain(name), Timed()
        begin = clock()
        answer = getattr(applications, function)(mdp, *arguments, seed=0, strategy=strategy, **given)
        seconds = clock() - begin
    finally:
        Walk.run = run
    return answer.steps, answer.collected.attempts, seconds, sum(strategy.seconds), asking[0]


def share_table(cases):
    lines = header("", "domain", "steps", "plans", "plans / step", "us a step", "planning", "asking", "walking")
    for function, name, arguments, given in cases:
        shares(function, name, arguments, given)  # compiles
        steps, plans, seconds, planning, asking = shares(function, name, arguments, given)
        call = f"{function}({', '.join(map(str, arguments))})"
        parts = (f"{part / seconds:.0%}" for part in (planning, asking, seconds - planning - asking))
        each = (f"{plans / steps:.2g}", f"{1e6 * seconds / steps:.2f}")
        lines.append(cells(call, name, f"{steps:,}", f"{plans:,}", *each, *parts))
    return lines


def goal_table(names, need):
    """Optimistic times to every goal: shared sets and warm starts, beside one plan after the other, cold."""
    lines = header("domain", "samples a pair", "together: ms", "one by one: ms", "ratio")
    for name in names:
        mdp = domain(name)
        model, family = gosprl.collect(mdp, need, seed=0).model, gosprl.KL(0.1)
        hat = Loop(model).frequencies().hitting_times()
        cold = [None]

        def one_by_one(model=model, family=family, cold=cold, S=mdp.num_states):
            cold[0] = [gosprl.plan(model, [g], confidence=family, precision=1e-6).values for g in range(S)]

        together, times = timed(lambda model=model, family=family, hat=hat: optimistic_times(model, family, hat))
        alone, _ = timed(one_by_one)
        np.testing.assert_allclose(times, np.transpose(cold[0]), rtol=1e-4, atol=1e-5)
        lines.append(cells(name, f"{need:,}", f"{1e3 * together:.2f}", f"{1e3 * alone:.2f}", f"{alone / together:.1f}"))
    return lines


if __name__ == "__main__":
    quick = options(__doc__).quick
    lines = ["# The applications' own time", "", "One run each, delta = 0.1, kl sets.", ""]
    lines += share_table(QUICK if quick else CASES)
    lines += ["", "Optimistic times between all states, for `estimate_diameter`:", ""]
    domains, need = (("riverswim6",), 100) if quick else (("riverswim6", "corridor24", "garnet", "cliff48"), 1000)
    lines += goal_table(domains, need)
    write("applications", lines, quick=quick)
