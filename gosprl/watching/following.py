"""Follower: reads what a run has written since the last look, and counts it.

Only new links of the chain are read, with the batches that they acknowledge, so a look costs what was collected since
the last one. Data are synced before their link is written: a link whose batch is not what it says is damage.
If the manifest changed, because the run was continued, everything is read again.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gosprl.collecting.record import Record
from gosprl.collecting.requirements import as_requirement
from gosprl.collecting.surroundings import Surroundings
from gosprl.errors import GosprlError
from gosprl.fleet.record import FleetRecord
from gosprl.model.content import thaw
from gosprl.runs import describing
from gosprl.runs.batches import columns_of, decoded
from gosprl.runs.chain import CHAIN, NAMES_FILE, WIDTH, Link, first_digest, link_of
from gosprl.runs.counting import Counter
from gosprl.runs.files import Damaged, open_regular, stamp_of
from gosprl.runs.fleet_counting import FleetCounter
from gosprl.runs.manifests import MANIFEST, read_manifest
from gosprl.runs.models import begun_model
from gosprl.runs.opened import FORGED, OpenRun
from gosprl.runs.reading import Contents
from gosprl.runs.schemas import LOG, NAMES, Name
from gosprl.watching.forecast import Left

DELTA = 0.1
MORE = 1.1  # steps between two memories of what was missing, as a ratio


class Follower:
    """Counts a run while it grows.

    Parameters
    ----------
    directory
        The run.

    Attributes
    ----------
    run
        Its manifest and names; no log.
    record
        What was counted; None if the need is computed during the run.
    events
        Rows of the log that were read.
    walkers
        Walkers that joined; 0 if there is no fleet.
    past
        What was missing at earlier times, the first one before the first step.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stamp = stamp_of(self._directory / MANIFEST)
        self._begin(read_manifest(directory))

    def _begin(self, manifest: dict[str, Any]) -> None:
        run_id = manifest["run"]
        nothing = Contents(self._directory, run_id, (), 0, first_digest(run_id), (), {}, False)
        self.run = OpenRun(self._directory, manifest, nothing)
        self._lines, self._digest, self.events = 0, first_digest(run_id), 0
        self.record = self._new_record()
        self._counter = self._new_counter()
        self._legs = [leg for leg in manifest["legs"] if "fleet" in leg or self.run.has_fleet]
        self.walkers = 0
        self.past = [self.left()]

    def _new_record(self) -> Record:
        run, leg = self.run, self.run.manifest["legs"][-1]
        model, around = begun_model(run), Surroundings(**leg["around"])
        delta = leg["strategy"].get("options", {}).get("delta", DELTA)
        asked = describing.need_restored(leg["need"], model) if self.needs_are_known else as_requirement(0, model)
        kind = FleetRecord if run.has_fleet else Record
        return kind(model, around.requirement(asked, delta, model))

    def _new_counter(self) -> Counter:
        kind = FleetCounter if isinstance(self.record, FleetRecord) else Counter
        self.record.update_need()
        return kind(self.record, self.run.names, self.run.is_table, self.run.breaks())  # type: ignore[arg-type]

    @property
    def needs_are_known(self) -> bool:
        """Whether the need is known from the files, and not computed during the run."""
        return not describing.is_given(self.run.manifest["legs"][-1]["need"])

    def look(self) -> int:
        """Read what is new; return the number of new rows.

        Raises
        ------
        Damaged
            If a batch or a line of the chain is damaged.
        InputError
            If this is no run any more.
        """
        stamp = stamp_of(self._directory / MANIFEST)
        if stamp != self._stamp:
            manifest = read_manifest(self._directory)
            if manifest != self.run.manifest:
                self._begin(manifest)
            self._stamp = stamp
        before = self.events
        for link in self._new_links():
            self._take(link)
        if self.events > before:
            self.record.update_need()
            self._remember()
        return self.events - before

    def is_at(self, certificate: Mapping[str, Any]) -> bool:
        """Whether a certificate is about exactly what was read."""
        return (certificate.get("events"), certificate.get("log")) == (self.events, self._digest)

    def _new_links(self) -> list[Link]:
        """Return the whole lines of the chain after those that were read."""
        try:
            with os.fdopen(open_regular(self._directory, CHAIN), "rb") as chain:
                chain.seek(self._lines * WIDTH)
                data = chain.read()
        except FileNotFoundError:
            return []
        found = [link_of(data[i : i + WIDTH]) for i in range(0, len(data) - WIDTH + 1, WIDTH)]
        links: list[Link] = []
        for number, link in enumerate(found, self._lines + 1):
            if link is None and number < self._lines + len(found):
                raise Damaged(CHAIN, number, "the line is damaged")
            if link is not None:
                links.append(link)
        return links

    def _take(self, link: Link) -> None:
        if not link.may_be_end:
            is_names = link.file == NAMES_FILE
            batch, notes = decoded(self._directory, link, self._digest, NAMES if is_names else LOG)
            try:
                self._add_names(batch) if is_names else self._add_rows(columns_of(batch), notes)
            except (GosprlError, *FORGED) as error:
                raise Damaged(link.file, link.number, f"cannot be counted: {error!s:.200}") from None
        self._lines, self._digest = self._lines + 1, link.digest

    def _add_names(self, batch: Any) -> None:
        names, model = self.run.names, self.record.model
        for row in batch.to_pylist():
            actions = row.pop("actions")
            names.add(*Name(**row, actions=None if actions is None else tuple(actions)))
        if not model.all_actions:
            model.actions = [thaw(key) for key in names.actions]

    def _add_rows(self, columns: dict[str, Any], notes: Any) -> None:
        counter = self._counter
        while self._legs and self._legs[0]["first"] <= self.events:
            assert isinstance(counter, FleetCounter)
            counter.begin_leg(self._legs.pop(0))
        if isinstance(counter, FleetCounter):
            counter.add_noted(columns, notes)
            self.walkers = counter.joined
        else:
            counter.add(columns)
        self.events += len(columns["flags"])

    def left(self) -> Left:
        """Return what is missing now."""
        record = self.record.counted
        need, model = record.need, record.model
        pair = np.maximum(need.pair - model.visits, 0)
        state = np.maximum(need.state - need.state_visits, 0)
        at = self._counter.state
        start = self._counter.start if at is None else at
        return Left(self.record.steps, pair, state, start, need.collected)

    def _remember(self) -> None:
        if self.record.steps >= MORE * max(1, self.past[-1].step):
            self.past.append(self.left())
