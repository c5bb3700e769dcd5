"""Runs on disk."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gosprl.errors import InputError
from gosprl.exchange.columns import FLAGS, INDEX, KEY, NUMBER, VALUE, Batch, Values
from gosprl.exchange.incoming.base import Incoming
from gosprl.model.content import thaw
from gosprl.runs.files import Damaged
from gosprl.runs.opened import FORGED, OpenRun


class Run(Incoming):
    """A run on disk, whose digests are checked."""

    has_order = True

    def __init__(self, directory: Path) -> None:
        self.name = str(directory)
        try:
            self.run = OpenRun.read(directory)
            self.run.check_undamaged()
            self.names = self.run.names
        except Damaged as error:
            raise InputError(f"data: {directory} is damaged: {error}") from None

    def batches(self) -> Iterator[Batch]:
        """Yield its events."""
        keys = None if self.names.fixed else self.names.keys
        actions = [thaw(key) for key in self.names.actions] or None
        breaks, first = np.array(self.run.breaks(), dtype=np.int64), 0
        try:
            for columns in self.run.contents.batches():
                yield self._batch(columns, first, keys, actions, breaks)
                first += len(columns["flags"])
        except Damaged as error:
            raise InputError(f"data: {self.name} is damaged: {error}") from None
        except FORGED as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"data: {self.name} cannot be read: {type(error).__name__}: {error}") from None

    def _batch(self, columns: Mapping[str, Any], first: int, keys: Any, actions: Any, breaks: Any) -> Batch:
        n = len(columns["flags"])
        number = {name: columns[name].astype(np.int64) for name in ("state", "next_state", "action")}
        for name, end in (("state", self.names.num_states), ("next_state", self.names.num_states)):
            if number[name].min(initial=-1) < -1 or number[name].max(initial=-1) >= end:
                raise Damaged("log", None, f"{name}: expected numbers in -1..{end - 1}")
        if actions is not None and number["action"].max(initial=-1) >= len(actions):
            raise Damaged("log", None, f"action: expected numbers in -1..{len(actions) - 1}")
        flags = {name: (columns["flags"] & 1 << i) > 0 for i, name in enumerate(FLAGS)}
        form = NUMBER if keys is None else KEY
        return Batch(
            source=self.name,
            first=first,
            state=Values(number["state"], keys, form, "state"),
            action=Values(number["action"], actions, INDEX if actions is None else VALUE, "action"),
            next_state=Values(number["next_state"], keys, form, "next_state"),
            reward=np.where(flags["reset"], 0.0, columns["reward"]),
            flags=flags,
            walker=columns["walker"].astype(np.int64),
            elsewhere=np.isin(np.arange(first, first + n), breaks),
        )
