"""`collect`: one call from a system and a need to a result."""

import warnings
from collections.abc import Callable, Hashable, Mapping
from os import PathLike
from typing import Any

from gosprl import strategies
from gosprl.collecting.beginning import Beginning
from gosprl.collecting.collector import Collector
from gosprl.collecting.record import ANY_REWARD
from gosprl.collecting.requirements import Requirement
from gosprl.collecting.result import Result
from gosprl.collecting.surroundings import Surroundings
from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.systems import System, as_system
from gosprl.systems.named import made

OF_FLEET = {"late": 20, "lost": "unknown", "thrift": None, "deterministic": None, "lease": 1}  # of fleets, and defaults
OF_COLLECTOR = ("states", "model", "rewards")
MUCH = 0.9  # next-state mass that may be unseen: "met" says little then


def collect(
    system: Any,
    need: Any,
    *,
    strategy: Any = "guarded",
    seed: int | None = None,
    max_steps: int | None = None,
    progress: bool | Callable[[dict[str, Any]], None] | None = None,
    threshold: float | None = None,
    key: Callable[[Any, Any], Hashable] | None = None,
    actions: Any = None,
    resets: str | None = None,
    reset_cost: float = 1.0,
    horizon: int | None = None,
    max_states: int | None = None,
    unseen: float | None = None,
    out: Any = None,
    data: Any = None,
    data_order: str | None = None,
    need_unknown: str | None = None,
    workers: Any = None,
    late: float | str | None = 20,
    lost: str = "unknown",
    thrift: float | None = None,
    deterministic: int | None = None,
    lease: int = 1,
    **options: Any,
) -> Result:
    """Walk a system until the samples that are needed are collected.

    Parameters
    ----------
    system
        A `TabularMDP` (simulated in compiled code), a Gymnasium environment, any object with Gymnasium's `reset` and
        `step`, or a `gosprl.systems.System` of your own. Or what makes one: the name of one of our domains, the id of
        a Gymnasium environment, a function without arguments. A Gymnasium vector environment is a fleet.
    need
        Samples needed: an int, for every existing pair of a `TabularMDP`, and for every action of every state
        discovered otherwise; an int array [S] (any action) or [S, A]; a dict of observations to samples of each of
        their actions, or to dicts of action values to samples; a table, as a data frame or the path of a .csv or
        .parquet file (docs/exchange_data.md); a `Requirement`; or a callable (model) -> array.
    strategy
        A name (see `gosprl.strategies.STRATEGIES`) or a strategy object.
    seed
        Fixes everything that is random: one stream for the strategy, one for the system. With `data`, streams depend
        on the data, too: the seed that they were collected with does not draw them again.
    max_steps
        Stop after so many steps.
    progress
        True for a line on stderr, or a callable that is given a dict with `steps`, `attempts`, `met` (a proportion of
        `states`, the number of those known, or discovered if `of_discovered`), `missing` and `collected` (needed
        samples), `saved` (steps on disk; None without `out`) and `rate` (steps a second), at most ten times a second.
    threshold
        Stop at the first reward above this; by default rewards stop nothing.
    key
        A function (observation, info) -> hashable value: observations with equal values are one state. By default
        equal observations are.
    actions
        What can be done: a number of actions, a list of their values, or a function observation -> values offered. By
        default all actions of the action space, and where ``info["action_mask"]`` is given, those that it allows.
    resets
        "terminal" (default): the system is reset only when an episode ended. "never": an ending is an error.
        "anytime": a reset is an action of every state, which planning uses.
    reset_cost
        What a reset at any time costs, in steps.
    horizon
        Cut episodes off after so many steps.
    max_states
        A bound on the number of observations: confidence sets are a little smaller if there is one.
    unseen
        Go on until no pair discovered, nor the reset, hides next states of a larger probability than this, at level
        delta.
    out
        A directory to keep the run in, so that nothing is lost; one with the same settings goes on, and `max_steps`
        counts from its beginning. A `gosprl.runs.Out` says how often it is synced. See docs/runs.md.
    data
        Samples that are there already: the directory of a run, a .parquet, .csv or .npz file, a data frame, arrays, a
        Minari data set, an `EmpiricalModel`, or a list of these. They count towards the need and narrow the confidence
        sets; steps, curve and limit speak of the rest. A run on disk keeps their counts. See docs/exchange_data.md.
    data_order
        What is known of the data, which has to be said unless all of it are runs. "collected": the samples of each
        pair are in the order in which they were drawn, and none was left out because of its outcome. "unknown": only
        the latter; the sets are wider then.
    need_unknown
        What to do with observations in a table of needs that are not known yet: "error" (default), or "wait" until
        they are discovered.
    workers
        A fleet: many copies of the system collect for one need (docs/fleet.md). A number of processes on this machine,
        "threads:8" for systems that release the interpreter lock, "ray" or "ray://host:port" for a cluster, or an
        `Executor`. The system must be one of which copies can be made: a name, a function, a `TabularMDP`.
    late
        With `workers`: when nobody counts on an outcome any more. A multiple of the mean duration of a step, or a time
        such as "5s"; None: never.
    lost
        With `workers`: what becomes of a sample whose walker is lost or late. "unknown": its outcome may have been any,
        and confidence sets allow for that. "state": it led to a crash. "independent": it is left out, which is right
        only if being lost has nothing to do with the outcome.
    thrift
        With `workers`: no walker begins a trip with more expected steps than this while another one moves. It saves
        steps and takes longer; None: all walkers always move.
    deterministic
        With `workers`: d makes the run independent of time. The report of order i is taken when order i + d was issued.
    lease
        With `workers`: up to so many steps, 1 to 4, that a walker makes before it waits for the learner. For systems
        whose steps take about as long as the learner does (docs/fleet.md).
    **options
        The fields of the named strategy's dataclass, such as `delta`, `successors`, `dynamics` or `reach`. With
        `reach=L`, each state that is certified, at level delta, to be more than L steps from where the walk is may be
        given up; the others are collected. See `gosprl.strategies.reach`.

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
    of_fleet = {"late": late, "lost": lost, "thrift": thrift, "deterministic": deterministic, "lease": lease}
    walked, new_collector = walked_by(system, key, actions, workers, of_fleet)
    chosen = strategies.make(strategy, options)
    around = declared(walked, chosen.dynamics, resets, reset_cost, horizon, max_states, unseen)

    samples = samples_of(data, data_order)

    def begin(seed: int | None, samples: Beginning | None) -> Collector:
        model = model_with(walked, around, samples)
        asked = asked_for(need, need_unknown, walked, model)
        alone = samples is not None and samples.seed_alone
        return new_collector(
            need=asked,
            strategy=chosen,
            seed=seed,
            model=model,
            threshold=threshold,
            around=around,
            seed_alone=alone,
        )

    if out is None:
        collector = begin(seed, samples)
        collector.walk(walked, max_steps, progress)
        result = collector.last_result()
    else:
        from gosprl.runs.keeping import keep
        from gosprl.runs.settings import Settings

        settings = Settings(chosen, threshold, around, key, actions)
        result = keep(out, begin, seed, walked, settings, max_steps, progress, samples)[1]
    if result.met and result.of_discovered and result.unseen > MUCH:
        warnings.warn(
            f"met for the {result.states} states discovered; {result.hidden}, so there may well be more states. "
            "unseen=0.05 would go on until that is known to be small",
            stacklevel=2,
        )
    return result


def walked_by(
    system: Any, key: Any, actions: Any, workers: Any, options: Mapping[str, Any]
) -> tuple[System, Callable[..., Collector]]:
    """Return (what is walked, what makes its collector) for what a user gave.

    Parameters
    ----------
    system, key, actions, workers
        As in `collect`.
    options
        `late`, `lost`, `thrift`, `deterministic` and `lease`, as in `collect`.
    """
    if workers is None and not hasattr(system, "single_observation_space"):  # no vector environment
        for name, value in options.items():
            if value != OF_FLEET[name]:
                raise InputError(f"{name}: expected workers= beside it, got {value!r:.80} alone")
        return as_system(made(system), key, actions), Collector
    from gosprl.fleet.options import Fleet

    fleet = Fleet.of(system, workers, key, actions, options)
    return fleet.system, fleet.collector


def samples_of(data: Any, data_order: str | None) -> Beginning | None:
    """Return the samples that a user gave as `data`; None if there are none."""
    if data is None:
        if data_order is not None:
            raise InputError(f"data_order: expected None without data, got {data_order!r:.80}")
        return None
    from gosprl.exchange.samples import Samples

    return Samples(data, data_order)


def begun_model(
    system: System,
    around: Surroundings,
    data: Any = None,
    data_order: str | None = None,
    rewards: tuple[float, float] = ANY_REWARD,
) -> EmpiricalModel:
    """Return the model that a run begins with: empty, or with the data given.

    Parameters
    ----------
    system, around
        What is walked, and what was declared about it.
    data, data_order
        As in `collect`.
    rewards
        The least and the largest reward allowed.
    """
    return model_with(system, around, samples_of(data, data_order), rewards)


def model_with(
    system: System, around: Surroundings, samples: Beginning | None, rewards: tuple[float, float] = ANY_REWARD
) -> EmpiricalModel:
    """Return the same for samples that were read already."""
    model = empty_model(system)
    around.prepare(model)
    if samples is not None:
        samples.count_into(model, system, rewards)
    return model


def asked_for(need: Any, unknown: str | None, system: System, model: EmpiricalModel) -> Requirement:
    """Return what a user needs; `unknown` is about observations of a table that are not known yet."""
    is_file = isinstance(need, PathLike) or (isinstance(need, str) and need.endswith((".csv", ".parquet")))
    if is_file or hasattr(need, "columns"):
        from gosprl.exchange.needs import need_of_table

        return need_of_table(need, unknown or "error", system, model)
    if unknown is not None:
        raise InputError(f"need_unknown: expected None unless the need is a table, got {unknown!r:.80}")
    return system.requirement(need, model)


def empty_model(system: System) -> EmpiricalModel:
    """Return the model that a system makes, after checking that it is one."""
    model = system.model()
    if not isinstance(model, EmpiricalModel):
        raise InputError(
            f"system: expected {type(system).__name__}.model() to return an EmpiricalModel, got {type(model).__name__}"
        )
    return model


def declared(
    system: System,
    dynamics: Any = None,
    resets: str | None = None,
    reset_cost: float = 1.0,
    horizon: int | None = None,
    max_states: int | None = None,
    unseen: float | None = None,
) -> Surroundings:
    """Return what a user declared about a system, as `collect` takes it, after checking it.

    Parameters
    ----------
    system
        The system to walk.
    dynamics
        The dynamics that the strategy plans with, if they are known.
    resets, reset_cost, horizon, max_states, unseen
        As in `collect`.
    """
    if resets is None and dynamics is not None:
        resets = "never"  # known dynamics say all that can happen
    if horizon is not None and not system.ends:
        raise InputError("horizon: expected None for a TabularMDP, which has no episodes")
    return Surroundings(allowed_resets(system, resets), reset_cost, horizon, max_states, unseen)


def allowed_resets(system: System, resets: str | None) -> str:
    """Return when a system may be reset: what the user said, or the default."""
    if not system.ends and resets not in (None, "never"):
        raise InputError(
            f"resets: expected None or 'never' for a TabularMDP, which has no episodes, got {resets!r:.80}"
        )
    return resets or ("terminal" if system.ends else "never")
