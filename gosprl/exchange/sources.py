"""Source: what is exported, a run on disk, a result or a model, with one interface."""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gosprl
from gosprl.collecting.record import Record
from gosprl.collecting.requirements import Fixed
from gosprl.collecting.result import Result, counts_of
from gosprl.errors import GosprlError, InputError
from gosprl.fleet.record import FleetRecord
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.states import CRASH
from gosprl.runs.checking import check_undamaged
from gosprl.runs.files import Damaged
from gosprl.runs.keys import plain_of
from gosprl.runs.models import begun_model
from gosprl.runs.opened import FORGED, OpenRun

DELTA = 0.1  # level of confidence sets where the source names none


class Source:
    """A run, a result or a model.

    Parameters
    ----------
    source
        The directory of a run, which is read and checked; a `Result`; an `EmpiricalModel`.

    Attributes
    ----------
    rows
        How many events of the log are exported: those that were there when it was opened.

    Raises
    ------
    InputError
        It is none of these, or a run that is damaged.
    """

    def __init__(self, source: Any) -> None:
        self.rows = 0
        self._run: OpenRun | None = None
        self._result: Result | None = None
        self._model: EmpiricalModel | None = None
        if isinstance(source, str | os.PathLike):
            self._run = opened(Path(source))
            self.rows = self._run.contents.rows
        elif isinstance(source, Result):
            self._result = source
        elif isinstance(source, EmpiricalModel):
            self._model = source
        else:
            raise InputError(
                f"source: expected the directory of a run, a Result or an EmpiricalModel, got {type(source).__name__}"
            )

    @property
    def has_log(self) -> bool:
        """Whether transitions are known in order: only a run has them."""
        return self._run is not None

    @property
    def run(self) -> OpenRun:
        """The run; `InputError` if the source is none."""
        if self._run is None:
            raise InputError(
                "source: a result has counts, not the order of its transitions; collect with out=DIR, and export DIR"
            )
        return self._run

    @cached_property
    def model(self) -> EmpiricalModel:
        """The counts, live states first, as in `Result.model`."""
        if self._result is not None:
            return self._result.model
        model = self._model if self._model is not None else counted(self.run)
        return model.arranged(model.arrangement())

    @property
    def counts(self) -> NDArray[np.int64]:
        """[S, A] visits, as in `Result.counts`."""
        return counts_of(self.model, int((~self.model.terminal).sum()))

    @property
    def delta(self) -> float:
        """The level of the strategy; 0.1 if it has none."""
        if self._run is not None:
            level = self._run.manifest["legs"][-1]["strategy"].get("options", {}).get("delta", DELTA)
        else:
            level = None if self._result is None else self._result.guarantee.level
        return float(level) if isinstance(level, int | float) and 0 < level < 1 else DELTA

    @property
    def name(self) -> str:
        """The system, in one word."""
        return "model" if self._run is None else str(self._run.manifest["system"]["name"])

    @property
    def num_actions(self) -> int:
        """The number of actions."""
        if self._run is None:
            return int(self.counts.shape[1])
        return int(self._run.manifest["system"]["actions"] or len(self._run.names.actions))

    @cached_property
    def observations(self) -> list[str] | None:
        """The observation of each number of the log as JSON text; None where it is the number itself."""
        names, first = self.run.names, int(self.run.manifest["system"].get("first") or 0)
        if names.fixed:
            return [str(first + number) for number in range(names.fixed)] if first else None
        return names.observations

    @cached_property
    def model_observations(self) -> list[str] | None:
        """The observation of each state of the model as JSON text; None where it is the index itself."""
        states = self.model.states
        if all(
            states.kind(i) in ("reset", "crash") or _is_number(states[i], states.key(i)) for i in range(len(states))
        ):
            return None
        return ["" if states.kind(i) in ("reset", "crash") else plain_of(states[i]) for i in range(len(states))]

    def numbers(self) -> NDArray[np.int64]:
        """[M] the number in the log of the observation of each state of the model; -1 for the reset and the crash."""
        states, names = self.model.states, self.run.names
        number = {key: n for n, key in enumerate(names.keys)}
        kinds = [states.kind(i) for i in range(len(states))]
        keys = [states.key(i) for i in range(len(states))]
        found = [
            -1 if kind == "reset" or key is CRASH else (key if names.fixed else number[key])
            for kind, key in zip(kinds, keys, strict=True)
        ]
        return np.array(found, dtype=np.int64)

    def batches(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the columns of the log, batch by batch, after checking that every number stands for something."""
        states, actions = self.run.names.num_states, self.num_actions
        try:
            for columns in self.run.contents.batches(0, self.rows):
                for name, end in (("state", states), ("next_state", states), ("action", actions)):
                    low, high = columns[name].min(initial=-1), columns[name].max(initial=-1)
                    if low < -1 or high >= end:
                        raise Damaged("log", None, f"{name}: expected numbers in -1..{end - 1}, got {low}..{high}")
                yield columns
        except Damaged as error:
            raise InputError(f"run: {self.run.directory} is damaged: {error}") from None

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """Where the data comes from, as JSON values."""
        if self._run is not None:
            manifest, contents = self._run.manifest, self._run.contents
            names = self._run.names.actions
            return {
                "gosprl": gosprl.__version__,
                "run": manifest["run"],
                "created": manifest["created"],
                "seed": manifest["seed"],
                "system": {name: manifest["system"].get(name) for name in ("name", "kind", "source", "first")},
                "versions": manifest["legs"][-1]["versions"],
                "strategy": manifest["legs"][-1]["strategy"],
                "states": self._run.names.num_states,
                "actions": [plain_of(name) for name in names] if names else self.num_actions,
                "rows": contents.rows,
                "log": contents.digest,
                **({"data": manifest["data"]} if "data" in manifest else {}),
            }
        found: dict[str, Any] = {"gosprl": gosprl.__version__}
        if self._result is not None:
            result = self._result
            found |= {"seed": result.seed, "strategy": result.strategy, "guarantee": str(result.guarantee)}
            found |= {"steps": result.steps, "stop": result.stop, "met": result.met}
        return found


def opened(directory: Path) -> OpenRun:
    """Return a run that is not damaged; `InputError` if it is."""
    try:
        run = OpenRun.read(directory)
    except Damaged as error:
        raise InputError(f"run: {directory} is damaged: {error}; gosprl verify says more") from None
    check_undamaged(run)
    return run


def counted(run: OpenRun) -> EmpiricalModel:
    """Return the counts of a whole run, and of the data that it began with; the log is read batch by batch.

    Of a fleet, the committed samples; what is in flight is unknown.
    """
    try:
        model = begun_model(run)
        nothing = np.zeros(len(model.known_rows), dtype=np.int64), np.zeros(model.num_states, dtype=np.int64)
        record = (FleetRecord if run.has_fleet else Record)(model, Fixed(*nothing))
        run.count_into(record, run.is_table)
        record.flush()
    except Damaged as error:
        raise InputError(f"run: {run.directory} is damaged: {error}") from None
    except GosprlError:
        raise
    except FORGED as error:
        raise InputError(f"run: {run.directory} cannot be counted: {type(error).__name__}: {error}") from None
    return record.counted.model


def _is_number(observation: Any, key: Any) -> bool:
    return type(key) is int and isinstance(observation, int | np.integer) and observation == key
