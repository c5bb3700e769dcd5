"""Remaking: makes the legs of a run again, from its settings, its seed and its log, to compare them with the run.

No environment is made: a table is walked again, and any other system is replaced by its log.
"""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

from gosprl.collecting.result import Result
from gosprl.errors import GosprlError
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.content import thaw
from gosprl.runs import describing
from gosprl.runs.declared import check_claims
from gosprl.runs.files import Damaged
from gosprl.runs.manifests import TABLE
from gosprl.runs.opened import OpenRun
from gosprl.runs.playback import Differs
from gosprl.runs.replay import Replay
from gosprl.runs.resuming import call, checked_table, table_of
from gosprl.runs.settings import versions
from gosprl.runs.standin import StandIn
from gosprl.systems import System, Tabular, as_system

WITHOUT_EFFECT = ("gymnasium", "pyarrow")  # versions that do not change how a run is made again


class Unknown(Exception):
    """A leg cannot be made again here: something is needed that was not given."""


def _itself(system: Any) -> Any:
    return system


class Remaking:
    """Makes the legs of a run again, with what the caller gave in the place of what could not be stored.

    Parameters
    ----------
    run
        The run.
    system
        What was walked; None: what the run has stored, or a system without dynamics that stands for it.
    settings
        `need`, `strategy` and options, where they could not be stored.
    given
        `key` and `actions`, as in `gosprl.resume`.
    """

    def __init__(self, run: OpenRun, system: Any, settings: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        self._run, self._system, self._settings, self._given = run, system, settings, given

    def result(self, replay: Replay) -> Result:
        """Return the result of a leg made again; `Differs` if the log says otherwise, `Unknown` without its parts."""
        leg = self._run.manifest["legs"][replay.leg]
        system, given = self._stand_in(), {}
        if "fleet" in leg:  # walkers are never made
            given = {"workers": 1}
            system = system if isinstance(system, TabularMDP) else partial(_itself, system)
        answer = call(self._run, replay.leg, system, replay, self._changes(leg), given)
        return answer if isinstance(answer, Result) else answer.collected

    @cached_property
    def table_or_why(self) -> TabularMDP | str:
        """The table that was walked, or why there is none."""
        mdp = self._system.mdp if isinstance(self._system, Tabular) else self._system
        if mdp is not None and not isinstance(mdp, TabularMDP):
            return f"system: expected a TabularMDP, which the run walked, got {type(mdp).__name__}"
        try:
            return table_of(self._run) if mdp is None else checked_table(mdp, self._run)
        except FileNotFoundError:
            return f"{TABLE} is missing"
        except (GosprlError, OSError, TypeError, ValueError, MemoryError) as error:
            return str(error)

    def _stand_in(self) -> Any:
        """Return what is walked: a table, or something that only makes the model."""
        described = self._run.manifest["system"]
        if self._run.is_table:
            if isinstance(self.table_or_why, str):
                raise Unknown(f"not possible without the table: {self.table_or_why}")
            return self.table_or_why
        if self._system is not None:
            given = self._given if not isinstance(self._system, System) else {}
            system = as_system(self._system, **given)
            system.know_actions([thaw(key) for key in self._run.names.actions])
            return system
        if described["digest"] is not None:
            raise Unknown("the system told its dynamics, which plans used; give it: verify(directory, system=...)")
        try:
            check_claims(self._run)
        except Damaged as error:
            raise Unknown(str(error)) from None
        return StandIn(described, self._run.names)

    def _changes(self, leg: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the caller gave in the place of what could not be stored; `Unknown` if something is missing."""
        if leg["application"] is not None:
            wanted = leg["application"]["arguments"]
        else:
            wanted = {"need": leg["need"], "strategy": leg["strategy"], **leg["strategy"].get("options", {})}
        changes = {}
        for name, value in wanted.items():
            if describing.is_given(value):
                if name not in self._settings or leg["application"] is not None:
                    raise Unknown(
                        f"{name} was {value['given']!s:.60}, which cannot be stored: choices, accounts and the stop "
                        f"cannot be recomputed without it; give it: verify(directory, {name}=...)"
                    )
                changes[name] = self._settings[name]
        return changes

    def why_different(self, error: Differs, leg: int) -> tuple[bool | None, str]:
        """Return whether a difference is an error (False) or cannot be judged (None), and a text that says why."""
        legs = self._run.manifest["legs"]
        if leg + 1 < len(legs) and legs[leg + 1]["because"]:
            return None, f"{error}; when the run was resumed there, that was noticed: all samples were kept"
        entries = [legs[leg], *self._run.manifest["continued"]]
        here = versions()
        others = {
            f"{name} {there} there, {here.get(name, 'none')} here"
            for entry in entries
            for name, there in entry["versions"].items()
            if there != here.get(name) and name not in WITHOUT_EFFECT
        }
        if others:
            return None, f"{error}; cannot be confirmed here, with other versions: {', '.join(sorted(others))}"
        return False, f"{error}; the versions are the same, so the log or the settings are not what was run"
