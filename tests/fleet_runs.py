"""Runs of a fleet on the simulated clock, for tests."""

from gosprl.fleet.collector import FleetCollector
from gosprl.fleet.simulated import Simulated
from gosprl.systems import System, as_system


class Copy(System):
    """What a walker steps: another copy of a system, made by a function."""

    def __init__(self, make):
        self._inner = make()
        self.ends = self._inner.ends

    def model(self):
        return self._inner.model()

    def seed(self, rng):
        self._inner.seed(rng)

    def reset(self):
        return self._inner.reset()

    def step(self, action):
        return self._inner.step(action)


def fleet_of(kind, system, need, strategy, seed=0, **options):
    """A `FleetCollector` for a kind of system and a kind of need (tests/kinds.py)."""
    model, around = system.model(), kind.around(need.unseen)
    around.prepare(model)
    asked = system.requirement(need.make(model), model)
    return FleetCollector(need=asked, model=model, strategy=strategy, seed=seed, around=around, **options)


def walked(mdp, need, walkers, seed=0, max_steps=None, strategy="guarded", simulation=None, **options):
    """(collector, executor) after a fleet has walked an MDP."""
    system = as_system(mdp)
    collector = FleetCollector(need=need, seed=seed, model=system.model(), strategy=strategy, resets="never", **options)
    executor = Simulated(mdp, walkers, entropy=seed, **(simulation or {}))
    collector.walk_fleet(executor, system, max_steps)
    return collector, executor


def exponential(rng, report):
    """Return a duration of mean 1."""
    return rng.exponential()
