"""`collect`: one call from a system and a need to a result."""

from collections.abc import Callable
from typing import Any

from gosprl.collecting.collector import Collector
from gosprl.collecting.result import Result
from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.systems import as_system

OF_COLLECTOR = ("states", "actions", "model", "rewards")


def collect(
    system: Any,
    need: Any,
    *,
    strategy: Any = "guarded",
    seed: int | None = None,
    max_steps: int | None = None,
    progress: bool | Callable[[dict[str, Any]], None] | None = None,
    threshold: float | None = None,
    **options: Any,
) -> Result:
    """Walk a system until the samples that are needed are collected.

    Parameters
    ----------
    system
        A `TabularMDP` (simulated in compiled code), a Gymnasium environment with `Discrete` observations and actions,
        or a `gosprl.systems.System` of your own.
    need
        Samples needed: an int, for every existing pair of a `TabularMDP`, and for every action of every state
        discovered otherwise; an int array [S] (any action) or [S, A]; a `Requirement`; or a callable
        (model) -> array.
    strategy
        A name (see `gosprl.strategies.STRATEGIES`) or a strategy object.
    seed
        Fixes everything that is random: one stream for the strategy, one for the system.
    max_steps
        Stop after so many steps.
    progress
        True for a line on stderr, or a callable that is given a dict with `steps`, `attempts`, `met` (a proportion)
        and `rate` (steps a second), at most ten times a second.
    threshold
        Stop at the first reward above this; by default rewards stop nothing.
    **options
        The fields of the named strategy's dataclass, such as `delta`, `successors`, `dynamics` or `reach`.

    Returns
    -------
    A `Result`: what was collected, why it stopped, and what is guaranteed.

    Raises
    ------
    InputError
        An argument is wrong; nothing was walked.
    CollectionError
        The system, the requirement or the strategy failed on the way; its `result` has everything collected.

    Examples
    --------
    >>> import gosprl
    >>> result = gosprl.collect(gosprl.envs.make("riverswim6"), need=10, seed=0)
    >>> result.met, str(result.guarantee)
    (True, 'delta=0.1')
    """
    for name in OF_COLLECTOR:
        if name in options:
            raise InputError(
                f"{name}: not an argument of collect, where the system decides; "
                f"use Collector({name}=..., need=...).run(system)"
            )
    walked = as_system(system)
    model = walked.model()
    if not isinstance(model, EmpiricalModel):
        raise InputError(
            f"system: expected {type(walked).__name__}.model() to return an EmpiricalModel, got {type(model).__name__}"
        )
    requirement = walked.requirement(need, model)
    collector = Collector(need=requirement, strategy=strategy, seed=seed, model=model, threshold=threshold, **options)
    collector.walk(walked, max_steps, progress)
    return collector.last_result()
