"""Many runs of a collector, on all cores; the same numbers whatever their number."""

import os
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import gosprl


def one(job):
    """(steps, met) of one run: a domain by name, whether its dynamics are known, options, a seed."""
    name, known, options, seed, need, max_steps = job
    mdp = gosprl.envs.make(name)
    extra = {"dynamics": mdp} if known else {}
    result = gosprl.collect(mdp, need, seed=seed, max_steps=max_steps, **extra, **options)
    return result.steps, result.met


def many(name, options, runs, *, known=False, need=10, max_steps=None):
    """(steps [runs], met [runs]) for seeds 0, 1, ..."""
    jobs = [(name, known, options, seed, need, max_steps) for seed in range(runs)]
    one(jobs[0])  # compile before the workers start
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(one, jobs, chunksize=max(1, runs // 64)))
    steps, met = zip(*answers, strict=True)
    return np.array(steps), np.array(met)


def mean_and_interval(x):
    """Mean, and half the width of its 95 % interval (normal)."""
    return float(x.mean()), 1.96 * float(x.std(ddof=1)) / len(x) ** 0.5
