"""Tries histories: so many from a seed, until one fails."""

from collections import Counter
from typing import ClassVar, NamedTuple

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from evidence.histories.defects import put_back
from evidence.histories.machine import History

AT_ONCE = 10  # histories of one seed
MOST = 300  # histories until a defect counts as not found
LONG = 8  # rules of a history, at most


class Tried(NamedTuple):
    """What was tried: histories, rules by name, and the first failure with the history that led to it."""

    histories: int
    rules: dict[str, int]
    failure: str | None


def tried(number, histories, shrink=False):
    """Try so many histories, drawn with this seed; the same ones each time."""

    class Drawn(History):
        tried: ClassVar[Counter] = Counter()

    seed(number)(Drawn)
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    how = settings(
        max_examples=histories,
        stateful_step_count=LONG,
        deadline=None,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    failure = None
    try:
        run_state_machine_as_test(Drawn, settings=how)
    except (Exception, Flaky) as error:
        lines = "\n".join(getattr(error, "__notes__", ())).splitlines()
        history = [line for line in lines if line.startswith("state.") and "untouched" not in line][:-1]
        failure = "\n".join([f"seed {number}: {type(error).__name__}: {error}", *history])
    rules = dict(sorted(Drawn.tried.items()))
    return Tried(rules.pop("history"), rules, failure)


def honest(number):
    """Histories with the package as it is."""
    return tried(number, AT_ONCE)


def without(name):
    """(histories until a defect was found, None if it was not; how it showed)."""
    number = 0
    for drawn in range(MOST // AT_ONCE):
        with put_back(name):
            done = tried(drawn, AT_ONCE)
        number += done.histories
        if done.failure and not honest(drawn).failure:
            return number, done.failure.splitlines()[0].partition(": ")[2]
    return None, ""
