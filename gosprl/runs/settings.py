"""Settings of a run: where it is kept, what is asked for; and how a manifest describes them."""

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from gosprl import _checks
from gosprl.collecting.collector import Collector
from gosprl.collecting.record import ANY_REWARD
from gosprl.collecting.surroundings import Surroundings
from gosprl.errors import InputError
from gosprl.fleet.collector import FleetCollector
from gosprl.fleet.need import Heard
from gosprl.model.empirical import EmpiricalModel
from gosprl.runs import describing
from gosprl.runs.replay import Replay
from gosprl.strategies.base import Strategy
from gosprl.systems.base import System
from gosprl.systems.tabular import Tabular

MOST_STORED = 10**6  # transitions of a table that is stored with its run
NO_SETTINGS = ("out", "seed", "max_steps", "progress", "data", "data_order")  # arguments that are no settings of a leg
OF_FLEET = ("workers", "late", "lost", "thrift", "deterministic", "lease")  # these are described apart
OF_SYSTEM = ("key", "actions")  # these are described with the system
VERSIONS = ("numpy", "scipy", "numba", "highspy", "gymnasium", "pyarrow")


@dataclass(frozen=True)
class Out:
    """Where a run is kept, and how often it is synced.

    Parameters
    ----------
    directory
        A new directory, or that of a run with the same settings, which goes on.
    sync_steps, sync_seconds
        After so many steps, and at the latest after so many seconds, everything is on disk: a crash loses no more.
    source
        What makes the system again: `{"env": name, "settings": {...}}` or `{"process": [...]}`; None: only the caller
        can.
    change
        Whether a run with other settings goes on with those given now.
    application
        (name, arguments) of the application that collects; None: `gosprl.collect` itself.
    """

    directory: str | os.PathLike[str]
    sync_steps: int = 100_000
    sync_seconds: float = 1.0
    source: Mapping[str, Any] | None = None
    change: bool = False
    application: tuple[str, dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        _checks.whole("sync_steps", self.sync_steps, 1)
        _checks.positive("sync_seconds", self.sync_seconds)
        if not isinstance(self.directory, (str, os.PathLike)):
            raise InputError(f"out: expected a directory or a gosprl.runs.Out, got {self.directory!r:.80}")


@dataclass(frozen=True)
class Settings:
    """What a collection is asked to do, besides what it needs.

    Parameters
    ----------
    strategy, threshold, rewards, around
        As in `Collector`.
    key, actions
        As in `gosprl.collect`; None: the user gave none.
    """

    strategy: Strategy
    threshold: float | None
    around: Surroundings
    key: Any = None
    actions: Any = None
    rewards: tuple[float, float] = ANY_REWARD


def as_out(out: Any) -> Out:
    """Return where to keep a run, from what a user gave."""
    return out if isinstance(out, Out) else Out(out)


def named(out: Any, application: str, arguments: Mapping[str, Any]) -> Any:
    """Return where to keep the run of an application, with its name and what it was called with."""
    if isinstance(out, Replay):
        return out
    options = dict(arguments.get("options", {}))
    apart = (*NO_SETTINGS, *OF_FLEET)
    asked = {name: value for name, value in arguments.items() if name not in ("system", "options", *apart)}
    more = {name: value for name, value in options.items() if name not in (*apart, *OF_SYSTEM)}
    return replace(as_out(out), application=(application, {**asked, **more}))


def leg_described(collector: Collector, out: Out, system: System, settings: Settings) -> dict[str, Any]:
    """Return the entry of a manifest for a leg with these settings, which begins with the first event."""
    mdp, application = system.mdp, out.application
    model, need = collector.model, collector.record.need.requirement
    while isinstance(need, Heard):  # a fleet looks at it from two sides
        need = need.inner
    return {
        "first": 0,
        "because": "",
        "need": describing.need_described(need, model),
        "strategy": describing.strategy_described(settings.strategy, mdp),
        "threshold": settings.threshold,
        "rewards": None if settings.rewards == ANY_REWARD else list(settings.rewards),
        "around": asdict(settings.around),
        "application": application
        and {
            "name": application[0],
            "arguments": {name: describing.described(value, mdp) for name, value in application[1].items()},
        },
        "versions": versions(),
        **_fleet_described(collector),
    }


def _fleet_described(collector: Collector) -> dict[str, Any]:
    """Return the options of a fleet; nothing for one walker."""
    if not isinstance(collector, FleetCollector):
        return {}
    workers = collector.workers
    plain = type(workers) in (int, str)
    return {"fleet": {"workers": workers if plain else None, **collector.options, "until": None}}


def system_described(model: EmpiricalModel, out: Out, system: System, settings: Settings) -> dict[str, Any]:
    """Return the entry of a manifest for what is walked; `model` is its empty model."""
    rows, mdp = model.known_rows, system.mdp
    full = len(rows) == rows.num_states * rows.num_actions
    source = out.source
    if source is None and mdp is not None and mdp.made_by is not None:
        name, parameters = mdp.made_by
        plain = all(type(value) in (int, float, str, bool) for value in parameters.values())
        source = {"env": name, "settings": parameters} if plain else None
    return {
        "kind": "table" if isinstance(system, Tabular) else "system",
        "name": system.name,
        "source": None if source is None else dict(source),
        "digest": None if mdp is None else describing.digest_of(mdp),
        "stored": mdp is not None and source is None and len(mdp.succ) <= MOST_STORED,
        "states": model.states.fixed or None,
        "first": system.first_observation,
        "actions": rows.num_actions if model.all_actions else None,
        "exists": None if full or mdp is not None else rows.to_dense(np.ones(len(rows), dtype=int)).tolist(),
        "observations": system.layout,
        "max states": model.max_states,
        "all states": system.all_states,
        "ends": system.ends,
        "key": None if settings.key is None else describing.described(settings.key),
        "action values": None if settings.actions is None else describing.described(settings.actions),
    }


@cache
def versions() -> dict[str, str]:
    """Return the versions of everything that may change the steps of a run."""
    found = {"gosprl": _version("gosprl"), "python": platform.python_version(), "machine": platform.machine()}
    return found | {name: _version(name) for name in VERSIONS}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"
