"""The options of a fleet, as users give them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gosprl.fleet.collector import FleetCollector
from gosprl.fleet.lanes import Lane
from gosprl.fleet.making import executor_of, is_vector
from gosprl.fleet.orders import Executor
from gosprl.fleet.walking import describe
from gosprl.systems import System, as_system
from gosprl.systems.named import factory_of


@dataclass(frozen=True)
class Fleet:
    """Several copies of one system.

    Parameters
    ----------
    workers
        How many, and how they are carried: as in `gosprl.collect`.
    factory
        Makes a copy; or a vector environment, which has them.
    system
        The learner's own copy, which is not stepped.
    key, actions
        As in `gosprl.collect`.
    options
        `late`, `lost`, `thrift`, `deterministic`, `lease`.
    """

    workers: Any
    factory: Any
    system: System
    key: Any
    actions: Any
    options: Mapping[str, Any]

    @classmethod
    def of(cls, system: Any, workers: Any, key: Any, actions: Any, options: Mapping[str, Any]) -> "Fleet":
        """Return the fleet that a user asked for."""
        if is_vector(system):
            return cls(workers, system, as_system(Lane(system), key, actions), key, actions, options)
        factory = factory_of(system)
        own = as_system(system if isinstance(system, System) else factory(), key, actions)
        return cls(workers, factory, own, key, actions, options)

    def collector(self, **arguments: Any) -> FleetCollector:
        """Return a collector for this fleet; `arguments` are those of `Collector`."""
        return FleetCollector(executor=self.executor, workers=self.workers, **self.options, **arguments)

    def executor(self, entropy: Any) -> Executor:
        """Return what carries orders to the walkers of a run with this seed."""
        facts = describe(self.system)
        return executor_of(
            self.workers, self.factory, key=self.key, actions=self.actions, entropy=entropy, describe=facts
        )
