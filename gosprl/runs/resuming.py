"""`resume`: go on with a run that was interrupted, or ask for more of the same system."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from gosprl import applications
from gosprl.collecting.collect import OF_FLEET, collect
from gosprl.collecting.requirements import Deferred
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.runs import describing
from gosprl.runs.checking import check_undamaged
from gosprl.runs.declared import check_claims, check_declared, of_application
from gosprl.runs.files import Damaged, read_json
from gosprl.runs.manifests import MANIFEST, TABLE
from gosprl.runs.opened import OpenRun
from gosprl.runs.replay import Replay
from gosprl.runs.settings import Out
from gosprl.systems import System

MOST_UNASKED = 256  # processes that a run may have started again without saying so

APPLICATIONS = {
    name: getattr(applications, name)
    for name in (
        "find_treasure",
        "estimate_model",
        "estimate_diameter",
        "explore_all_goals",
        "learn_policy",
        "best_state",
        "estimate_rewards",
    )
}


def resume(
    directory: str | os.PathLike[str],
    *,
    system: Any = None,
    need: Any = None,
    strategy: Any = None,
    key: Any = None,
    actions: Any = None,
    max_steps: int | None = None,
    progress: Any = None,
    sync_steps: int = 100_000,
    sync_seconds: float = 1.0,
    workers: Any = None,
    **options: Any,
) -> Any:
    """Go on with a run on disk, from everything that it collected.

    With nothing but the directory, the run goes on as if it had never been interrupted: a `TabularMDP`, or a system
    with `get_state` and `set_state`, bit for bit; any other system is reset, and begins a new trajectory. With `need`,
    `strategy` or its options, the run continues with these settings; all samples so far count.

    Parameters
    ----------
    directory
        The run.
    system
        What it walks. Not needed for a `TabularMDP`, which is stored with the run.
    need
        Samples needed in total, as in `gosprl.collect`; None: as before.
    strategy, **options
        As in `gosprl.collect`; None: as before.
    key, actions
        As in `gosprl.collect`; needed again if they were functions, which cannot be stored.
    max_steps
        Stop after so many steps, counted from the beginning of the run.
    progress
        As in `gosprl.collect`.
    sync_steps, sync_seconds
        After so many steps, and at the latest after so many seconds, everything is on disk.
    workers
        As in `gosprl.collect`: how many walkers go on, or what carries them. By default as many as before. The run of a
        fleet goes on with a fleet, which may be one walker. Walkers are reset, what was in flight is unknown, and
        planning begins anew.

    Returns
    -------
    What the interrupted call would have returned: a `Result`, or the answer of an application.

    Raises
    ------
    InputError
        It is no run, it is damaged, or something that it needs was not given. Nothing was changed.
    CollectionError
        As in `gosprl.collect`.

    Examples
    --------
    >>> import gosprl, tempfile
    >>> run = tempfile.mkdtemp()
    >>> gosprl.collect(gosprl.envs.make("riverswim6"), need=10, seed=0, out=run, max_steps=100).stop
    'max_steps'
    >>> gosprl.resume(run).stop
    'met'
    >>> gosprl.resume(run, need=20).counts.min() >= 20
    np.True_
    """
    run = OpenRun.read(Path(directory))
    check_undamaged(run)
    walked = table_of(run) if system is None else system
    out = Out(directory, sync_steps, sync_seconds, run.manifest["system"]["source"], change=True)
    changes = {"need": need, "strategy": strategy, **options}
    given = {"key": key, "actions": actions, "max_steps": max_steps, "progress": progress, "workers": workers}
    return call(run, -1, walked, out, {name: value for name, value in changes.items() if value is not None}, given)


def call(
    run: OpenRun, leg: int, system: Any, out: Out | Replay, changes: Mapping[str, Any], given: Mapping[str, Any]
) -> Any:
    """Call the function that made a leg of a run, with the settings of that leg, and return what it returns.

    Parameters
    ----------
    run, leg
        The run, and the number of the leg.
    system
        What is walked.
    out
        Where it is kept, or a `Replay`.
    changes
        Settings that differ from those of the leg: `need`, `strategy`, options of the strategy.
    given
        Arguments that are no settings: `key`, `actions`, `max_steps`, `progress`, `workers`.
    """
    settings = run.manifest["legs"][leg]
    changes, given = _with_fleet(settings, system, changes, given)
    mdp = system if isinstance(system, TabularMDP) else None
    if not isinstance(out, Replay):  # what is walked again numbers its states and actions as they were numbered then
        given = {**given, **_own(run, given, system)}
    if settings["application"] is not None:
        if changes:
            raise InputError(
                f"{next(iter(changes))}: {run.directory} is a run of {settings['application']['name']}, which decides "
                "that; only gosprl.collect can go on with other needs"
            )
        function = APPLICATIONS.get(settings["application"]["name"])
        if function is None:
            raise InputError(f"run: expected a known application, got {settings['application']['name']!r:.40}")
        arguments = {
            name: describing.restored(value, name, mdp) for name, value in settings["application"]["arguments"].items()
        }
        check_declared(arguments, of_application(function), f"application {settings['application']['name']}: arguments")
        return function(system, out=out, **{**arguments, **given})
    options = {name: value for name, value in changes.items() if name not in ("need", "strategy")}
    chosen = changes.get("strategy")
    if chosen is None:
        chosen, options = describing.strategy_restored(settings["strategy"], mdp, options), {}
    need = changes.get("need", Deferred(partial(describing.need_restored, settings["need"])))
    more = {"threshold": settings["threshold"], **settings["around"], **options, **given}
    return collect(system, need, strategy=chosen, out=out, **more)


def _with_fleet(
    settings: Mapping[str, Any], system: Any, changes: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return changes and arguments with the options of a fleet: those of the leg, unless they are changed."""
    fleet = settings.get("fleet") or {}
    of_fleet = {name: changes[name] if name in changes else fleet.get(name, OF_FLEET[name]) for name in OF_FLEET}
    workers = _stored_workers(fleet) if given.get("workers") is None else given["workers"]
    rest = {name: value for name, value in changes.items() if name not in OF_FLEET}
    if workers is None:
        if fleet:
            raise InputError(
                f"workers: the run was made by a fleet with workers={fleet['workers'] or 'an Executor'}, which is not "
                "made unasked; give workers="
            )
        of_fleet = {name: changes[name] for name in OF_FLEET if name in changes}
    return rest, {**given, "workers": workers, **of_fleet}


def _stored_workers(fleet: Mapping[str, Any]) -> Any:
    """Return the workers of a leg, if they can be made unasked: a stranger may have written the manifest."""
    workers = fleet.get("workers")
    return workers if type(workers) is int and workers <= MOST_UNASKED else None


def _own(run: OpenRun, given: Mapping[str, Any], system: Any) -> dict[str, Any]:
    """Return `key` and `actions` as the run had them; an error if one that cannot be stored was not given again."""
    described, out = run.manifest["system"], {}
    if isinstance(system, System):  # it has them
        return {}
    for name, entry in (("key", "key"), ("actions", "action values")):
        if given.get(name) is None and described.get(entry) is not None:
            out[name] = describing.restored(described[entry], name)
    return out


def table_of(run: OpenRun) -> TabularMDP:
    """Return the table that a run walked: stored with it, or one of our domains; nothing else is made."""
    described = run.manifest["system"]
    if not run.is_table:
        raise InputError(
            f"system: the run in {run.directory} walks {described['name']!r:.80}, which is not made unasked; make it, "
            "and give it: gosprl.resume(directory, system=...)"
        )
    source = described["source"]
    try:
        check_claims(run)
    except Damaged as error:
        raise InputError(f"system: {run.directory}: {error}") from None
    if described["stored"]:
        mdp = describing.table_restored(read_json(run.directory / TABLE, root=run.directory))
    elif isinstance(source, dict) and isinstance(source.get("env"), str):
        from gosprl import envs

        try:
            mdp = envs.make(source["env"], **source.get("settings", {}))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise InputError(f"system: {run.directory}: {MANIFEST} names no domain: {error!s:.200}") from None
    else:
        raise InputError(f"system: the table of {run.directory} is too large to be stored with it; give it: system=...")
    return checked_table(mdp, run)


def checked_table(mdp: TabularMDP, run: OpenRun) -> TabularMDP:
    """Return a table; `InputError` if it is not the one that the run walked."""
    if describing.digest_of(mdp) != run.manifest["system"]["digest"]:
        raise InputError(f"system: expected the table that was walked, got another {mdp.name}: its digest differs")
    return mdp
