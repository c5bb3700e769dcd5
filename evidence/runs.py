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
    certified: NDArray[np.float64]  # of guarded runs: T_c,
    bound: NDArray[np.float64]  # and (1 + kappa) T_c + kappa Lambda; nan for others


def one(job):
    """The entries of one run: a domain by name or as it is, which option is given the domain, options, a seed."""
    domain, told, options, seed, need, max_steps = job
    mdp = gosprl.envs.make(domain) if isinstance(domain, str) else domain
    extra = {told: mdp} if told else {}
    result = gosprl.collect(mdp, need, seed=seed, max_steps=max_steps, **extra, **options)
    work = result.work
    guard = (work.get("certified steps", np.nan), work.get("bound", np.nan))
    return result.steps, result.met, result.attempts, work.get("full", 0), *guard


def many(domain, options, runs, *, told=None, need=10, max_steps=None, first=0):
    """`Runs` for seeds first, first + 1, ...; `told`: "dynamics" or "successors", what the strategy knows."""
    return all_runs([(domain, told, options, seed, need, max_steps) for seed in range(first, first + runs)])


def all_runs(jobs):
    """`Runs` of the jobs that `one` takes, in their order."""
    one(jobs[0])  # compile before the workers start
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(one, jobs, chunksize=max(1, len(jobs) // 64)))
    return Runs(*map(np.array, zip(*answers, strict=True)))


def mean_and_interval(x):
    """Mean, and half the width of its 95 % interval (normal)."""
    return float(x.mean()), 1.96 * float(x.std(ddof=1)) / len(x) ** 0.5


def log_ratio(x, y):
    """Logarithm of the ratio of the means of two independent samples, and its variance by the delta method."""
    variance = sum(z.var(ddof=1) / len(z) / z.mean() ** 2 for z in (x, y))
    return float(np.log(x.mean() / y.mean())), float(variance)


def ratio_interval(x, y):
    """Ratio of the means of x and y, and its 95 % interval."""
    log, variance = log_ratio(x, y)
    half = 1.96 * variance**0.5
    ratio, low, high = np.exp([log, log - half, log + half])
    return float(ratio), float(low), float(high)
