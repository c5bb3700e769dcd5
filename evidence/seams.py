"""Where two features meet, is what the answer says true? False answers of many runs, by route.

A route is one way through the public API on which two features meet, on a system whose truth is known. Each run has
another seed; it is false if anything that its answer claims at level delta is. Beside each route stands a twin, which
does on purpose what the route must not do, and is mostly false: without it, a route without false answers would say
nothing.

    python -m evidence.seams [--runs 200] [--twins 40] [--routes TEXT]      writes evidence/results/seams.md

Runs that are finished are kept in `.evidence/`, for the exact sources of the package: a script that was stopped goes
on where it was. With `--routes`, only the routes whose name contains the text are run, and nothing is written.

A route is an entry of `ROUTES`: a function (seed) -> whether the answer is false, the twin, and what the twin does.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

import gosprl
from evidence.runs import Finished
from gosprl import applications
from gosprl.fleet.simulated import Simulated

RESULT = Path(__file__).parent / "results" / "seams.md"
DELTA = 0.1
TINY = 1e-9
CONTINUED, SAMPLES, COPIES = 15, 20, 16
NARROW = 1e-4  # times the width of sets that hold
WALKERS, STEPS, SLOW = 8, 800, 100.0
GAMMA = 0.8
MEANS = np.array([0.6, 0.4])  # of the rewards of two states that lead to each other
COIN = np.array([[[0.5, 0.5]], [[0.5, 0.5]]])  # [S, A, S]


class Route(NamedTuple):
    """A way through the public API."""

    is_false: Callable[[int], bool]
    twin: Callable[[int], bool]
    broken: str  # what the twin does


def exchange():
    """Two states that lead to each other, with rewards of 0 and 1."""
    P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    return gosprl.TabularMDP(P, rewards=MEANS[:, None], noise="bernoulli")


def is_lost(rng, report):
    """Nearly all rewards of 1 of the better state are lost, with their walker."""
    return report.reward == 1 and report.key == 1 and rng.random() < 0.95


def is_lost_by_state(rng, report):
    """Most of the steps to state 1 are lost with their walker."""
    return report.key == 1 and rng.random() < 0.7


def duration(rng, report):
    """Nearly all rewards of 1 of the better state take long."""
    return SLOW if is_lost(rng, report) else 1.0


def of_fleet(mdp, seed, how, lost):
    """Return the arguments of a fleet whose samples are lost, or late, by their outcome."""
    losing = {"lost": is_lost} if how == "lost" else {"duration": duration}
    fleet = Simulated(mdp, WALKERS, entropy=[seed, 7], restart=0.0, **losing)
    return {"workers": fleet, "lost": lost, "late": 3 if how == "late" else None, "seed": seed, "max_steps": STEPS}


def best_state_is_false(seed, how, lost="unknown"):
    mdp = exchange()
    answer = applications.best_state(mdp, delta=DELTA, **of_fleet(mdp, seed, how, lost))
    best = int(MEANS.argmax())
    return best not in answer.candidates or (answer.reached and answer.state != best)


def rewards_are_false(seed, how, lost="unknown"):
    mdp = exchange()
    answer = applications.estimate_rewards(mdp, 0.1, delta=DELTA, **of_fleet(mdp, seed, how, lost))
    return bool(np.any(np.abs(answer.rewards - MEANS[:, None]) > answer.radius + TINY))


def policy_is_false(seed, how, lost="unknown"):
    mdp = exchange()
    answer = applications.learn_policy(mdp, GAMMA, 0.5, delta=DELTA, **of_fleet(mdp, seed, how, lost))
    value = np.linalg.solve(np.eye(2) - GAMMA * mdp.dense()[:, 0], MEANS)  # there is one action, and one policy
    return bool(np.any(answer.lower > value + TINY) or np.any(answer.upper < value - TINY))


def sets_are_false(model, truth):
    """Whether the true dynamics [S, A, S] are outside of the sets of a model."""
    sets = gosprl.KL(DELTA).intervals(model)
    for row in range(len(model.rows)):
        law = truth[model.rows.pair(row)].copy()
        part = slice(sets.ptr[row], sets.ptr[row + 1])
        seen = law[sets.succ[part]]
        law[sets.succ[part]] = 0.0
        if np.any((seen < sets.lower[part] - TINY) | (seen > sets.upper[part] + TINY)):
            return True
        if law.max() > sets.each[row] + TINY or law.sum() > sets.total[row] + TINY:
            return True
    return False


def fleet_as_data_is_false(seed, form):
    """Whether the sets are false that begin with samples of a fleet, given as a Result, a model, a run or counts."""
    mdp = gosprl.TabularMDP(COIN)
    with tempfile.TemporaryDirectory() as directory:
        fleet = Simulated(mdp, WALKERS, entropy=[seed, 7], restart=0.0, lost=is_lost_by_state)
        out = Path(directory) / "run" if form == "run" else None
        first = gosprl.collect(mdp, 80, seed=seed, workers=fleet, late=None, out=out)
        s, a, s_next, count = first.model.transitions()
        data = {"Result": first, "model": first.model, "run": out, "counts": (s, a, s_next, count)}[form]
        order = None if form == "run" else "collected"
        second = gosprl.collect(mdp, 200, seed=seed + 10**6, data=data, data_order=order)
    return sets_are_false(second.model, COIN)


def collected(seed, need, data=None, out=None):
    """Return samples of a fair coin that begin with data."""
    order = None if data is None else "collected"
    return gosprl.collect(gosprl.TabularMDP(COIN), need, seed=seed, data=data, data_order=order, out=out)


def of_fleet_again(seed, need, data=None, out=None):
    fleet = Simulated(gosprl.TabularMDP(COIN), 2, entropy=[seed, 7])
    data = {} if data is None else {"data": data, "data_order": "collected"}
    return gosprl.collect(gosprl.TabularMDP(COIN), need, seed=seed, workers=fleet, **data)


def of_collector(seed, need, data=None, out=None):
    model = gosprl.EmpiricalModel(2, 1) if data is None else data.model
    return gosprl.Collector(model=model, need=need, seed=seed, resets="never").run(gosprl.TabularMDP(COIN))


def of_application(seed, need, data=None, out=None):
    data = {} if data is None else {"data": data, "data_order": "collected"}
    mdp = gosprl.TabularMDP(COIN)
    return applications.estimate_rewards(mdp.with_rewards(np.zeros((2, 1))), 1e-3, seed=seed, max_steps=need, **data)


def continued_is_false(seed, collect, kept=False):
    """Whether the sets are false after a run was the data of the next one, time after time, all with one seed."""
    with tempfile.TemporaryDirectory() as directory:
        data = None
        for i in range(1, CONTINUED + 2):
            out = Path(directory) / str(i) if kept else None
            result = collect(seed, SAMPLES if collect is of_application else i * SAMPLES, data, out)
            data = out or getattr(result, "collected", result)
    return sets_are_false(getattr(result, "collected", result).model, COIN)


def replayed_is_false(seed, collect, kept=False):
    """The same where random numbers follow from the seed alone."""

    def alone(entropy, begun):
        return entropy

    places = ("collecting.collector", "runs.opened", "fleet.simulated")
    with ExitStack() as patches:
        for place in places:
            patches.enter_context(patch(f"gosprl.{place}.entropy_of", alone))
        patches.enter_context(patch("gosprl.exchange.samples.refuse_repeated", lambda groups: None))
        return continued_is_false(seed, collect, kept)


def repeated_is_false(seed, form):
    """Whether the sets are false that begin with the same samples many times: refused, they say nothing."""
    with tempfile.TemporaryDirectory() as directory:
        run, copy, after = (Path(directory) / name for name in ("run", "copy", "after"))
        first = collected(seed, SAMPLES, out=run)
        shutil.copytree(run, copy)
        s, a, s_next, count = first.model.transitions()
        if form == "a run that began with the other":
            gosprl.collect(gosprl.TabularMDP(COIN), 2 * SAMPLES, seed=seed + 1, data=run, out=after)
        data = {
            "one run": [run] * COPIES,
            "copies of a run": [run, copy] * (COPIES // 2),
            "a run and its Result": [run, first] * (COPIES // 2),
            "a run that began with the other": [run, after] * (COPIES // 2),
            "one table": [(s, a, s_next, count)] * COPIES,
            "all in one table": (s, a, s_next, COPIES * count),
        }[form]
        try:
            result = collected(seed + 10**6, COPIES * SAMPLES + 1, data)
        except gosprl.InputError as error:
            if "have the same samples" not in str(error):
                raise
            return False
    return sets_are_false(result.model, COIN)


class Unstated(gosprl.Confidence):
    """Sets far too narrow, of a class that states no level."""

    def intervals(self, model, rows=None):
        return gosprl.KL(DELTA, NARROW).intervals(model, rows)


class Stated(Unstated):
    """The same, of a class that vouches for them."""

    delta = DELTA


def diameter_is_false(seed, sets):
    river = gosprl.envs.make("riverswim6")
    answer = applications.estimate_diameter(river, 1, rule="certified", confidence=sets(), delta=DELTA, seed=seed)
    return answer.guarantee.holds and not answer.lower <= river.diameter() <= answer.diameter


def model_is_false(seed, sets):
    river = gosprl.envs.make("riverswim6")
    answer = applications.estimate_model(river, 0.05, norm="max", confidence=sets(), delta=DELTA, seed=seed)
    wrong = np.abs(answer.model.dense() - river.dense()).max(axis=2) > answer.eta
    return answer.guarantee.holds and bool(wrong.any())


INDEPENDENT = "lost='independent': left out as if losses had nothing to do with outcomes"
REWARDS = {"best_state": best_state_is_false, "estimate_rewards": rewards_are_false, "learn_policy": policy_is_false}
ROUTES = (
    {
        f"{name}, fleet, {how} by reward": Route(
            partial(is_false, how=how), partial(is_false, how=how, lost="independent"), INDEPENDENT
        )
        for name, is_false in REWARDS.items()
        for how in ("lost", "late")
    }
    | {
        f"data: {what} of a fleet": Route(
            partial(fleet_as_data_is_false, form=form),
            partial(fleet_as_data_is_false, form="counts"),
            "the counts of known outcomes alone",
        )
        for form, what in (("Result", "the Result"), ("model", "the model"), ("run", "the run on disk"))
    }
    | {
        f"data: with the seed of the data, {CONTINUED} times, {what}": Route(
            partial(continued_is_false, collect=collect, kept=kept),
            partial(replayed_is_false, collect=collect, kept=kept),
            "random numbers follow from the seed alone",
        )
        for what, collect, kept in (
            ("runs on disk", collected, True),
            ("Results", collected, False),
            ("Collector(model=)", of_collector, False),
            ("an application", of_application, False),
            ("a fleet with a seed of its own", of_fleet_again, False),
        )
    }
    | {
        f"data: the same samples {COPIES} times, {form}": Route(
            partial(repeated_is_false, form=form),
            partial(repeated_is_false, form="all in one table"),
            "counts that were multiplied",
        )
        for form in (
            "one run",
            "copies of a run",
            "a run and its Result",
            "a run that began with the other",
            "one table",
        )
    }
    | {
        f"{name}, sets that state no level": Route(
            partial(is_false, sets=Unstated),
            partial(is_false, sets=Stated),
            "a class that vouches for sets far too narrow",
        )
        for name, is_false in (("estimate_diameter", diameter_is_false), ("estimate_model", model_is_false))
    }
)


def one(job):
    """Whether one run of a route, or of its twin, is false."""
    name, is_twin, seed = job
    route = ROUTES[name]
    return [bool((route.twin if is_twin else route.is_false)(seed))]


def count(jobs, finished, workers):
    """How many of the runs are false; those that are finished already are not made again."""
    left = [job for job in jobs if "; ".join(map(str, job)) not in finished.answers]
    with ProcessPoolExecutor(workers) as pool:
        for job, answer in zip(left, pool.map(one, left, chunksize=4), strict=True):
            finished.add("; ".join(map(str, job)), answer)
    return sum(finished.answers["; ".join(map(str, job))][0] for job in jobs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--twins", type=int, default=40)
    parser.add_argument("--routes", default="")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    runs, twins, began = options.runs, options.twins, time.perf_counter()
    lines = [
        "# Where two features meet",
        "",
        f"`python -m evidence.seams --runs {runs}`: runs whose answer says something false, at delta = {DELTA}. A twin",
        "does on purpose what its route must not do; the route says something only if its twin is mostly false.",
        "",
        "| route | false | of | twin | false | of |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    with Finished() as finished:
        for name, route in ROUTES.items():
            if options.routes in name:
                ours, theirs = (
                    count([(name, is_twin, seed) for seed in range(number)], finished, options.workers)
                    for is_twin, number in ((False, runs), (True, twins))
                )
                lines.append(f"| {name} | {ours} | {runs} | {route.broken} | {theirs} | {twins} |")
                print(lines[-1], flush=True)
    if not options.routes:
        RESULT.write_text("\n".join(lines) + "\n")
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
