"""From what a user writes to an executor: how many walkers, where, and of what."""

import re
from typing import Any

import numpy as np

from gosprl import _checks
from gosprl.collecting.streams import Entropy
from gosprl.errors import InputError
from gosprl.fleet.orders import Executor
from gosprl.fleet.walking import Facts
from gosprl.mdp.tabular import TabularMDP
from gosprl.systems.named import factory_of

EXPECTED = (
    'a number of processes, "threads:8", "ray", "ray:8" (the number of actors), "ray://host:port", or an Executor of '
    "gosprl.fleet"
)


def executor_of(
    workers: Any,
    system: Any,
    *,
    key: Any = None,
    actions: Any = None,
    entropy: Entropy = None,
    describe: Facts | None = None,
) -> Executor:
    """Return an executor, not open yet.

    Parameters
    ----------
    workers
        A number of processes; text: "8", "processes:8", "threads:8", "ray" (one actor for each CPU), "ray:8",
        "ray://host:port"; an `Executor`, which is returned; or None for a vector environment.
    system
        As of `gosprl.systems.named.factory_of`, or a vector environment, whose environments are the walkers.
    key, actions
        What tells states apart, and which actions there are, as in `gosprl.collect`.
    entropy
        The seed of the run.
    describe
        What `walking.describe` says of the learner's own copy; walkers that differ are refused.
    """
    if isinstance(workers, Executor):
        return workers
    options = {"key": key, "actions": actions, "entropy": entropy, "describe": describe}
    if is_vector(system):
        return _vector(system, workers, options)
    where, count = _parsed(workers)
    factory = factory_of(system)
    if where == "processes":
        from gosprl.fleet.pipes import Processes

        return Processes(factory, count, **options)
    if where == "threads":
        from gosprl.fleet.threads import Threads

        return Threads(factory, count, **options)
    from gosprl.fleet.ray_actors import RayActors

    if where == "ray":
        return RayActors(factory, count or None, **options)
    return RayActors(factory, address=where, **options)


def _parsed(workers: Any) -> tuple[str, int]:
    """Return (where, how many): "processes", "threads", "ray" with 0 for as many as there are CPUs, or an address."""
    if isinstance(workers, str):
        if workers.startswith("ray://"):
            return workers, 0
        if workers == "ray":
            return "ray", 0
        found = re.fullmatch(r"(?:(processes|threads|ray):)?([0-9]{1,6})", workers)
        if found and int(found[2]) > 0:
            return found[1] or "processes", int(found[2])
    elif isinstance(workers, (int, np.integer)):
        return "processes", _checks.whole("workers", workers, 1)
    raise InputError(f"workers: expected {EXPECTED}, got {workers!r:.80}")


def is_vector(system: Any) -> bool:
    """Whether it is a vector environment."""
    if isinstance(system, (str, TabularMDP)):
        return False
    from gymnasium.vector import VectorEnv

    return isinstance(system, VectorEnv)


def _vector(env: Any, workers: Any, options: dict[str, Any]) -> Executor:
    from gosprl.fleet.vector import Vector

    if workers is not None and (isinstance(workers, bool) or workers != env.num_envs):
        raise InputError(
            f"workers: expected {env.num_envs} or None for a vector environment of {env.num_envs}, got {workers!r:.80}"
        )
    return Vector(env, **options)
