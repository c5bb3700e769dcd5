"""Matcher: which states of a system the numbers in the log of a run stand for, by observation."""

from collections.abc import Hashable
from functools import cached_property
from typing import Any

from gosprl import _checks
from gosprl.errors import GosprlError, InputError
from gosprl.exchange.meanings import meanings
from gosprl.model.content import thaw
from gosprl.model.empirical import EmpiricalModel
from gosprl.runs.describing import digest_of
from gosprl.runs.keys import plain_of
from gosprl.runs.opened import OpenRun
from gosprl.systems.base import System

WAY_OUT = "give a run of this system; or a table, with the observations that this system makes"


class Matcher:
    """Finds the states of a system that a run speaks of.

    Parameters
    ----------
    run, source
        The run, and how errors call it.
    model, system
        The system that is walked now, and its model.

    Raises
    ------
    InputError
        The run evidently walked another system.
    """

    def __init__(self, run: OpenRun, source: str, model: EmpiricalModel, system: System) -> None:
        self._run, self._source, self._model, self._system = run, source, model, system
        self._there = run.manifest["system"]
        self._keys: dict[int, Hashable] = {}
        self._check_same()

    def _check_same(self) -> None:
        there, model, mdp = self._there, self._model, self._system.mdp
        if mdp is not None and there["digest"] is not None and there["digest"] != digest_of(mdp):
            raise self._other(
                f"table {there['name']!r:.40} there, {mdp.name!r:.40} here, with other transitions or rewards"
            )
        fixed = model.states.fixed
        if fixed and there["states"] not in (None, fixed):
            raise self._other(f"{there['states']} states there, {fixed} here")
        actions = model.known_rows.num_actions
        if model.all_actions and there["actions"] not in (None, actions):
            raise self._other(f"{there['actions']} actions there, {actions} here")
        if there["key"] is not None and not self._system.has_key:
            raise self._other("a function key= told its states apart, and none is given here")

    def _other(self, what: str) -> InputError:
        return InputError(f"data: {self._source} is a run of another system: {what}; {WAY_OUT}")

    @property
    def numbers_are_keys(self) -> bool:
        """Whether the states here have the numbers that they have there."""
        first = self._there["first"] == self._system.first_observation
        return bool(self._there["states"]) and self._model.states.fixed > 0 and first and not self._system.has_key

    def key(self, number: int) -> Hashable:
        """Return the key that the system has for the observation of a number of the log."""
        if number not in self._keys:
            names = self._run.names
            text = str(self._there["first"] + number) if names.fixed else names.observations[number]
            self._keys[number] = self._matched(names.key(number), text)
        return self._keys[number]

    def key_of(self, key: Any) -> Hashable:
        """Return the same for a key that the run has."""
        if self._run.names.fixed:
            return self.key(key)
        number = self._numbers.get(key)
        return self._matched(key, plain_of(thaw(key))) if number is None else self.key(number)

    @cached_property
    def _numbers(self) -> dict[Hashable, int]:
        return {key: number for number, key in enumerate(self._run.names.keys)}

    def _matched(self, key: Any, text: str) -> Hashable:
        raw = self._there["key"] is None and self._system.has_key  # the function has still to be applied
        if not raw and not self._run.names.fixed and self._is_same(key, text):
            return key  # type: ignore[no-any-return]
        options = [*([thaw(key)] if raw and not self._run.names.fixed else []), *meanings(text)]
        why: Exception | None = None
        for option in options:
            try:
                found: Any = self._system.observed_key(option) if raw else self._system.key_of(option)
                fixed = self._model.states.fixed
                return _checks.index("observation", found, fixed, "a state") if fixed else found
            except Exception as error:  # of a function of the user's own, too
                why = why or error
        raise InputError(
            f"data: {self._source}: the observation {text:.80} of {self._there['name']!r:.40} cannot be matched with a "
            f"state of {self._system.name!r:.40}: {why!s:.200}; {WAY_OUT}"
        )

    def _is_same(self, key: Any, text: str) -> bool:
        """Whether the key stands for the same observation here, exactly."""
        if self._model.states.fixed:
            return False
        try:
            shown = self._model.states.shown(key)
            return plain_of(shown) == text and self._system.key_of(shown) == key
        except (GosprlError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return False
