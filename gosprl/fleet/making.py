"""Executors from what users write."""

from collections.abc import Callable
from typing import Any

from gosprl.errors import InputError
from gosprl.fleet.orders import Executor
from gosprl.fleet.pipes import Processes
from gosprl.fleet.threads import Threads


def executor_of(workers: Any, factory: Callable[[], Any], **details: Any) -> Executor:
    """Return the executor that `workers` stands for."""
    if isinstance(workers, Executor):
        return workers
    if isinstance(workers, str) and workers.startswith("threads:"):
        return Threads(factory, int(workers.removeprefix("threads:")), **details)
    if isinstance(workers, int) and not isinstance(workers, bool) and workers > 0:
        return Processes(factory, workers, **details)
    raise InputError(f"workers: expected a number above 0, got {workers!r}")
