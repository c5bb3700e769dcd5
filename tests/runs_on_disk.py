"""Runs of every kind of system, kept on disk as `collect` does."""

import numpy as np
from kinds import collector_of
from test_conformance import bits

from gosprl.runs.keeping import keep
from gosprl.runs.replay import Replay
from gosprl.runs.settings import Out, Settings
from gosprl.strategies import make

STEPS = 150


def kept(kind, need, strategy, directory, system=None, steps=STEPS, seed=0, **out):
    """As `collect` keeps it."""
    system = system or kind.make()

    def begin(seed, samples):
        return collector_of(kind, system, need, strategy, seed)

    settings = Settings(make(strategy, {}), None, kind.around(need.unseen))
    where = Out(directory, **out) if not isinstance(directory, Replay) else directory
    return keep(where, begin, seed, system, settings, steps)[1]


def logged(result):
    """All bits that a log can tell: not whether a run that stopped had chosen a reset, and not yet made it."""
    (ptr, succ, count, *others), *more = bits(result)
    rows = np.repeat(np.arange(len(result.model.rows)), np.diff(result.model.stored()[0]))
    count = np.where(result.model.certain[rows], 0, np.frombuffer(count, dtype=np.int64)).tobytes()
    return [ptr, succ, count, *others], *more
