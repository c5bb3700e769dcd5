"""Defects that can be put back, each by the smallest patch, to see that histories find them."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import PosixPath
from typing import Any

Patch = tuple[
    str, str, Callable[[Any], Any]
]  # module, attribute, which may be dotted; what is there -> what comes there


def nothing(_):
    return lambda *args, **options: None


def no_digest(_):
    return lambda model: ""


def no_problems(_):
    return lambda run: iter(())


def level_of_the_caller(at):
    return lambda walk, delta, dynamics=False: at(walk, walk.delta if delta is None else delta, dynamics)


def met_without_unmet(snapshot):
    def changed(collector, *, last):
        result = snapshot(collector, last=last)
        return replace(result, met=len(result.unmet) == 0)

    return changed


def always(value):
    return lambda _: lambda *args, **options: value


class Nothing:
    """Of which nothing is an instance."""


class ByPath(PosixPath):
    """A directory that is whatever stands at its path."""

    def close(self):
        pass


class Paths:
    """In the place of `gosprl.runs.places.Held`."""

    open = ByPath


def any_second_reset(_):
    return lambda model: model.resets == "anytime" or bool(model.visits[model.rows.ptr[model.states.reset]] > 1)


DEFECTS: dict[str, tuple[Patch, ...]] = {
    "the seed of the data draws them again": (
        ("gosprl.collecting.collector", "begun_digest", no_digest),
        ("gosprl.fleet.collector", "begun_digest", no_digest),
    ),
    "the same samples twice": (("gosprl.exchange.samples", "refuse_repeated", nothing),),
    "the best state without unknown places": (("gosprl.applications.best", "unknown_pulls", nothing),),
    "mean rewards without unknown places": (("gosprl.applications.rewards", "unknown_of", nothing),),
    "sets without a level get the caller's": (
        ("gosprl.applications.common", "Walk.at", level_of_the_caller),
        ("gosprl.sets.intervals", "Confidence.no_promise", lambda _: property(lambda family: family.narrowed)),
    ),
    "a need is put on resets that nothing leads to": (
        ("gosprl.collecting.requirements", "are_resets_possible", any_second_reset),
    ),
    "a bug of a system is not heard of in a fleet": (("gosprl.fleet.failures", "Failures.check", nothing),),
    "a run writes to whatever stands at its path": (("gosprl.runs.keeping", "Held", lambda _: Paths),),
    "met before the first state": (("gosprl.collecting.collector", "snapshot", met_without_unmet),),
    "files of different moments are taken": (("gosprl.runs.checking", "of_other_moments", no_problems),),
    "what a fleet lost is no part of data": (("gosprl.model.empirical", "EmpiricalModel.add_unknown_places", nothing),),
    "runs that went on are made again in one piece": (("gosprl.runs.opened", "OpenRun._taken_up", always([])),),
    "what was planned when a run ended is forgotten": (
        ("gosprl.collecting.collector", "Collector.prepare", always(False)),
    ),
    "fleets with actions are not made again": (("gosprl.runs.resuming", "Replay", lambda _: Nothing),),
    "crashes of data are those of nobody": (
        ("gosprl.runs.auditing", "Audit.crashes_before", lambda _: property(lambda audit: 0, nothing(0))),
    ),
    "another run's certificate is shown": (("gosprl.runs.showing", "unfit", nothing),),
}


def owner_of(module, dotted):
    """(what has the attribute, its name)."""
    *path, attribute = dotted.split(".")
    owner = import_module(module)
    for part in path:
        owner = getattr(owner, part)
    return owner, attribute


def found(module, dotted):
    """What is there now."""
    owner, attribute = owner_of(module, dotted)
    return vars(owner).get(attribute)


@contextlib.contextmanager
def put_back(name):
    """Put a defect back."""
    with contextlib.ExitStack() as kept:
        for module, dotted, changed in DEFECTS[name]:
            owner, attribute = owner_of(module, dotted)
            before = found(module, dotted)
            kept.callback(*((delattr, owner, attribute) if before is None else (setattr, owner, attribute, before)))
            setattr(owner, attribute, changed(before))
        yield
