"""Many runs of a collector, on all cores; the same numbers whatever their number.

Finished runs are kept in `.evidence/`, in a file for the exact sources of the package: a script that was stopped goes
on where it was, and a change of the code begins anew.
"""

import hashlib
import json
import os
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import gosprl

STORE = Path(__file__).parent.parent / ".evidence"


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
    with Finished() as finished:
        keys = [hashlib.sha256(pickle.dumps(job)).hexdigest() for job in jobs]
        left = {key: job for key, job in zip(keys, jobs, strict=True) if key not in finished.answers}
        if left:
            first = next(iter(left.values()))
            one(
                pickle.loads(pickle.dumps(first))
            )  # compile before the workers start; the caller's system stays as it is
            with ProcessPoolExecutor(os.cpu_count()) as pool:
                made = pool.map(one, left.values(), chunksize=max(1, len(left) // 64))
                for key, answer in zip(left, made, strict=True):
                    finished.add(key, answer)
        answers = [finished.answers[key] for key in keys]
    return Runs(*map(np.array, zip(*answers, strict=True)))


class Finished:
    """The answers of runs that were made with these sources."""

    def __init__(self):
        self._path = STORE / f"{_sources()[:16]}.jsonl"
        self.answers = {}

    def __enter__(self):
        STORE.mkdir(exist_ok=True)
        if self._path.exists():
            whole = self._path.read_text().rpartition("\n")[0]  # without a line that was cut off
            self.answers = dict(map(json.loads, whole.splitlines()))
            os.truncate(self._path, len(whole) + 1 if whole else 0)
        self._file = self._path.open("a")
        return self

    def __exit__(self, *_):
        self._file.close()

    def add(self, key, answer):
        """Keep the answer of a run."""
        self.answers[key] = [x.item() if isinstance(x, np.generic) else x for x in answer]
        self._file.write(json.dumps([key, self.answers[key]]) + "\n")
        self._file.flush()


def _sources():
    """A digest of everything in the package."""
    package = Path(gosprl.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def mean_and_interval(x):
    """Mean, and half the width of its 95 % interval (normal)."""
    return float(x.mean()), 1.96 * float(x.std(ddof=1)) / len(x) ** 0.5


def log_ratio(x, y):
    """Logarithm of the ratio of the means of two independent samples, and its variance by the delta method."""
    variance = sum(z.var(ddof=1) / len(z) / z.mean() ** 2 for z in (x, y))
    return float(np.log(x.mean() / y.mean())), float(variance)


def paired_ratio_interval(x, y):
    """Ratio of the means of x and y, whose entries belong together, and its 95 % interval by the delta method."""
    ratio = float(x.mean() / y.mean())
    half = 1.96 * float((x - ratio * y).std(ddof=1)) / len(x) ** 0.5 / float(y.mean())
    return ratio, ratio - half, ratio + half


def ratio_interval(x, y):
    """Ratio of the means of x and y, and its 95 % interval."""
    log, variance = log_ratio(x, y)
    half = 1.96 * variance**0.5
    ratio, low, high = np.exp([log, log - half, log + half])
    return float(ratio), float(low), float(high)
