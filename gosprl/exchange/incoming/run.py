"""Runs on disk."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.streams import entropy_of
from gosprl.errors import InputError
from gosprl.exchange.columns import FLAGS, INDEX, KEY, NUMBER, VALUE, Batch, Values, check_countable
from gosprl.exchange.incoming.base import Incoming
from gosprl.exchange.incoming.matching import Matcher
from gosprl.exchange.sources import counted
from gosprl.model.content import thaw
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.origins import Origin, run_id, walk_id, within
from gosprl.runs.checking import check_undamaged
from gosprl.runs.files import Damaged
from gosprl.runs.models import begun_model
from gosprl.runs.opened import FORGED, OpenRun
from gosprl.systems.base import System


class Run(Incoming):
    """A run on disk, whose digests are checked."""

    kind, has_order = "run", True

    def __init__(self, directory: Path) -> None:
        self.name = str(directory)
        try:
            self.run = OpenRun.read(directory)
            check_undamaged(self.run)
            self.names = self.run.names
        except Damaged as error:
            raise InputError(f"data: {directory} is damaged: {error}") from None
        self._matcher: Matcher | None = None

    def digest(self) -> str:
        """Return the digest of its log."""
        return self.run.contents.digest

    def ids(self) -> tuple[str, ...]:
        """Return its identities."""
        begun = "" if self.run.data is None else self.run.data.digest
        drawn = walk_id(cast(int, entropy_of(self.run.seed, begun)))
        return run_id(self.run.manifest["run"]), drawn, f"log:{self.digest()}"

    def within(self) -> tuple[Origin, ...]:
        """Return the origins of the data that it began with."""
        return within(self.run.manifest.get("data"))

    def match(self, model: EmpiricalModel, system: System) -> None:
        """Find its states in a system; `InputError` if it is a run of another one."""
        self._matcher = Matcher(self.run, self.name, model, system)

    @property
    def matcher(self) -> Matcher:
        """What finds its states in the system; after `match`."""
        assert self._matcher is not None
        return self._matcher

    def begun(self, system: System) -> EmpiricalModel | None:
        """Return the counts of the data that it began with itself; None if there are none."""
        if self.run.data is None:
            return None
        try:
            return begun_model(self.run, system.mdp if self.run.is_table else None)
        except Damaged as error:
            raise InputError(f"data: {self.name} is damaged: {error}") from None

    def committed(self) -> EmpiricalModel | None:
        """Return the samples of a fleet, in the order of issue, and the data before them; None for one walker."""
        return counted(self.run) if self.run.has_fleet else None

    def batches(self) -> Iterator[Batch]:
        """Yield its events; of one walker."""
        actions = [thaw(key) for key in self.names.actions] or None
        breaks, first = np.array(self.run.breaks(), dtype=np.int64), 0
        try:
            for columns in self.run.contents.batches():
                yield self._batch(columns, first, actions, breaks)
                first += len(columns["flags"])
        except Damaged as error:
            raise InputError(f"data: {self.name} is damaged: {error}") from None
        except FORGED as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"data: {self.name} cannot be read: {type(error).__name__}: {error}") from None

    def _batch(self, columns: Mapping[str, Any], first: int, actions: Any, breaks: Any) -> Batch:
        n = len(columns["flags"])
        number = {name: columns[name].astype(np.int64) for name in ("state", "next_state", "action")}
        for name, end in (("state", self.names.num_states), ("next_state", self.names.num_states)):
            if number[name].min(initial=-1) < -1 or number[name].max(initial=-1) >= end:
                raise Damaged("log", None, f"{name}: expected numbers in -1..{end - 1}")
        if actions is not None and number["action"].max(initial=-1) >= len(actions):
            raise Damaged("log", None, f"action: expected numbers in -1..{len(actions) - 1}")
        flags = {name: (columns["flags"] & 1 << i) > 0 for i, name in enumerate(FLAGS)}
        check_countable(flags, columns["order"].astype(np.int64), self.name, first)
        return Batch(
            source=self.name,
            first=first,
            state=self._states(number["state"], "state"),
            action=Values(number["action"], actions, INDEX if actions is None else VALUE, "action"),
            next_state=self._states(number["next_state"], "next_state"),
            reward=np.where(flags["reset"], 0.0, columns["reward"]),
            flags=flags,
            walker=columns["walker"].astype(np.int64),
            elsewhere=np.isin(np.arange(first, first + n), breaks),
        )

    def _states(self, numbers: NDArray[np.int64], name: str) -> Values:
        """Return states as the system calls them."""
        if self.matcher.numbers_are_keys:
            return Values(numbers, None, NUMBER, name)
        used, codes = np.unique(numbers, return_inverse=True)
        keys = [None if number < 0 else self.matcher.key(number) for number in used.tolist()]
        return Values(np.where(numbers < 0, -1, codes.ravel()), keys, KEY, name)
