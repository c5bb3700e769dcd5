"""Do model checkers answer from exported models what they promise? Storm reads learnt interval MDPs, and is compared.

One run draws a small MDP whose successors all have probability 0.1 at least, collects samples of every pair (in every
fourth run, of some pairs only), and writes the learnt interval MDP for the expected steps to a goal.

    cooperative     nature and scheduler minimise, `F (goal | unknown)`: Storm must give the value of our optimistic
                    plan over the same support, within 1e-6
    robust          nature maximises, `F goal`
    contains        the true value, computed on the true MDP by Storm in exact arithmetic, is between the two. It fails
                    although all successors were seen with probability delta at most, in every run: so many such
                    failures or more must have probability above FALSE_ALARM. Sets at scale 0.01 must be rejected.
    formats         DRN, UMB and PRISM's language give the same two answers, within 1e-9

    python -m evidence.exchange [--runs 100]      writes evidence/results/exchange.md
"""

import argparse
import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import stormpy
from scipy.stats import binom

import gosprl
from gosprl.exchange import drn, prism, umb
from gosprl.sets.families import as_family
from gosprl.sets.intervals import Intervals

DELTA = 0.1
FALSE_ALARM = 1e-6
SAME = 1e-6
RESULT = Path(__file__).parent / "results" / "exchange.md"
WRITERS = {".drn": drn, ".umb": umb, ".prism": prism}
MODES = stormpy.UncertaintyResolutionMode


class Given(gosprl.Confidence):
    """Sets that were computed elsewhere."""

    def __init__(self, sets):
        self.sets = sets

    def intervals(self, model, rows=None):
        assert rows is None
        return self.sets


def random_mdp(rng, states=6, actions=3):
    """Return an MDP with two or three successors for each pair; the first actions form a ring."""
    P = np.zeros((states, actions, states))
    for s in range(states):
        for a in range(actions):
            successors = rng.choice(states, rng.integers(2, 4), replace=False)
            if a == 0:
                successors[0] = (s + 1) % states
                successors = np.unique(successors)
            weights = 0.1 + (1 - 0.1 * len(successors)) * rng.dirichlet(np.ones(len(successors)))
            P[s, a, successors] = weights / weights.sum()
    return gosprl.TabularMDP(P)


def partly_sampled(mdp, samples, rng):
    """Return counts of an MDP in which about a third of the pairs, none of them on the ring, were never tried."""
    tried = np.flatnonzero((mdp.rows.action == 0) | (rng.random(len(mdp.rows)) < 0.5))
    rows = np.repeat(tried, samples)
    state, action = mdp.rows.state[rows], mdp.rows.action[rows]
    P = mdp.dense()
    s_next = [rng.choice(mdp.num_states, p=P[s, a]) for s, a in zip(state, action, strict=True)]
    return gosprl.EmpiricalModel.from_transitions(state, action, s_next, states=mdp.num_states, actions=mdp.num_actions)


def storm(path):
    """Return Storm's model of a file."""
    if path.suffix == ".umb":
        return stormpy.build_model_from_umb(str(path))
    if path.suffix == ".prism":
        return stormpy.build_model[stormpy.Interval](stormpy.parse_prism_program(str(path)))
    return stormpy.build_model_from_drn[stormpy.Interval](str(path))


def answer(model, formula, mode):
    """Return Storm's value at the initial state; nature is "COOPERATIVE" or "ROBUST"."""
    environment = stormpy.Environment()
    solver = environment.solver().min_max()
    solver.method = stormpy.environments.MinMaxMethod.VALUE_ITERATION
    solver.precision = stormpy.Rational("1/1000000000000")
    solver.relative_termination_criterion = True
    found = stormpy.model_checking(
        model,
        stormpy.parse_property(formula),
        environment=environment,
        uncertainty_resolution_mode=getattr(MODES, mode),
    )
    return float(found.get_value_vector()[model.initial_states[0]])


def support(model, family):
    """Return the family's sets over the observed support: nothing unseen, but anything after pairs never visited."""
    sets = family.intervals(model)
    hidden = np.where(model.visits > 0, 0.0, 1.0)
    return Intervals(sets.ptr, sets.succ, sets.lower, sets.upper, hidden, hidden)


def optimistic(model, family, goal, start):
    """Return the expected steps of our optimistic plan over the same support."""
    return float(gosprl.plan(model, [goal], confidence=Given(support(model, family)), precision=1e-10).values[start])


def true_steps(mdp, goal):
    """Return the least expected steps from the start to the goal, by Storm on the true MDP in exact arithmetic."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "true.drn"
        drn.write(mdp, path, labels={"goal": [goal]})
        model = stormpy.build_model_from_drn[stormpy.Rational](str(path))
    found = stormpy.model_checking(model, stormpy.parse_property('R{"steps"}min=? [F "goal"]'))
    return float(found.get_value_vector()[model.initial_states[0]])


@dataclass(frozen=True)
class Run:
    complete: bool  # whether all successors of all pairs were seen
    ours: float  # the optimistic plan
    truth: float
    answers: dict  # format -> (cooperative, robust)

    @property
    def difference(self):
        return abs(self.answers[".drn"][0] - self.ours)

    @property
    def contains(self):
        lower, upper = self.answers[".drn"]
        return lower <= self.truth * (1 + SAME) and self.truth <= upper * (1 + SAME)

    @property
    def spread(self):
        """The largest difference between formats, relative."""
        pairs = list(self.answers.values())
        return max(
            0.0 if a == b else abs(a - b) / max(1.0, abs(b))
            for other in pairs
            for a, b in zip(other, pairs[0], strict=True)
        )


def run(seed, scale=1.0, formats=tuple(WRITERS)):
    """Return one random run."""
    rng = np.random.default_rng(seed)
    mdp, goal = random_mdp(rng), 3
    samples = int(rng.integers(40, 200))
    counts = gosprl.collect(mdp, samples, seed=seed).model if seed % 4 else partly_sampled(mdp, samples, rng)
    family = as_family("kl", DELTA, scale)
    answers = {}
    with tempfile.TemporaryDirectory() as directory:
        for suffix in formats:
            path = Path(directory) / f"learnt{suffix}"
            WRITERS[suffix].write(counts, path, confidence=family, labels={"goal": [goal]})
            model = storm(path)
            hidden = 'F "goal" | "unknown"' if "unknown" in model.labeling.get_labels() else 'F "goal"'
            answers[suffix] = (
                answer(model, f'R{{"steps"}}min=? [{hidden}]', "COOPERATIVE"),
                answer(model, 'R{"steps"}min=? [F "goal"]', "ROBUST"),
            )
    seen = counts.dense() > 0
    visited = seen.any(axis=2, keepdims=True)
    complete = bool(np.all(seen | ~visited | (mdp.dense() == 0)))
    return Run(complete, optimistic(counts, family, goal, mdp.start), true_steps(mdp, goal), answers)


def p_value(failed, runs):
    """The probability of so many failures or more if each run failed with probability delta."""
    return float(binom.sf(failed - 1, runs, DELTA))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    count = parser.parse_args().runs
    began = time.perf_counter()
    lines = [
        "# Storm on exported models",
        "",
        f"`python -m evidence.exchange --runs {count}`: learnt interval MDPs of random runs, for the expected steps to",
        f"a goal; delta = {DELTA}. In each run, the truth may be outside although all successors of the pairs visited",
        "were seen, with probability delta. Sets are rejected if so many failures or more have probability below",
        f"{FALSE_ALARM}.",
        "",
        "| sets | runs | cooperative - optimistic, at most | formats differ by, at most | all successors seen | "
        "truth outside | p-value | verdict |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for scale in (1.0, 0.01):
        runs = [run(seed, scale, tuple(WRITERS) if scale == 1 else (".drn",)) for seed in range(count)]
        counted = [one for one in runs if one.complete]
        failed = sum(not one.contains for one in counted)
        p = p_value(failed, count)
        differences = [one.difference for one in runs if math.isfinite(one.ours)]
        lines.append(
            f"| kl, scale {scale:g} | {count} | {max(differences):.1e} | {max(one.spread for one in runs):.1e} | "
            f"{len(counted)} | {failed} | {p:.2g} | {'rejected' if p < FALSE_ALARM else 'holds'} |"
        )
        print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
