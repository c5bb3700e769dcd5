"""Many runs of a collector, on all cores; the same numbers whatever their number."""

import os
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import gosprl


class Runs(NamedTuple):
    """One entry a run."""

    steps: NDArray[np.int64]
    met: NDArray[np.bool_]
    plans: NDArray[np.int64]
    full: NDArray[np.int64]  # plans for all states among them


def one(job):
    """The entries of one run: a domain by name, which option is given the domain, options, a seed."""
    name, told, options, seed, need, max_steps = job
    mdp = gosprl.envs.make(name)
    extra = {told: mdp} if told else {}
    result = gosprl.collect(mdp, need, seed=seed, max_steps=max_steps, **extra, **options)
    full = result.strategy.work["full"] if hasattr(result.strategy, "work") else 0
    return result.steps, result.met, result.attempts, full


def many(name, options, runs, *, told=None, need=10, max_steps=None, first=0):
    """`Runs` for seeds first, first + 1, ...; `told`: "dynamics" or "successors", what the strategy knows."""
    jobs = [(name, told, options, seed, need, max_steps) for seed in range(first, first + runs)]
    one(jobs[0])  # compile before the workers start
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(one, jobs, chunksize=max(1, runs // 64)))
    return Runs(*map(np.array, zip(*answers, strict=True)))


def mean_and_interval(x):
    """Mean, and half the width of its 95 % interval (normal)."""
    return float(x.mean()), 1.96 * float(x.std(ddof=1)) / len(x) ** 0.5
