"""Samples that are there before a run: counted into the model that the run begins with.

**What must hold for the guarantee.** The samples of each pair are those that the system drew, in this order, and none
was left out because of its outcome. A run on disk proves its order. Of a fleet, the committed samples count, with their
unknown places: those of a run, of a result and of a model. For all other data the caller says it:

    data_order="collected"   they are so: the guarantee takes the data for granted, and says so
    data_order="unknown"     no sample was left out because of its outcome, but their order may be any other one

With unknown order, the bounds that use *when* a successor was first seen do not hold: put the surprises among the
samples of a pair first, and the many visits without one that follow seem to prove that nothing else is there. So of
the times of first appearance only this is kept: they lie in the data. Nor do levels hold that go by the order in which
states were discovered: all states of the data get that of the last one (`level_ranks`). What depends on counts
alone still holds: the ends of intervals, and the cap on all unseen successors after all visits, where the number of
states is known. The cap that goes by the visits since the last new successor counts them from the end of the data.
Bernstein sets where the number of states is unknown go by first appearances for their lower ends, which are 0 then.

Counts have no order. They are valid in the same way with either word, and have the same price.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

from gosprl import _checks
from gosprl.collecting.beginning import (
    APART,
    OF_BEFORE,
    UNSELECTED,
    VOUCHED,
    Beginning,
    enable_known,
    level_ranks,
    num_samples,
)
from gosprl.collecting.record import ANY_REWARD
from gosprl.errors import InputError
from gosprl.exchange.adding import ModelTaker, forget_order
from gosprl.exchange.decoding import Allowance
from gosprl.exchange.incoming.choosing import Source, sources
from gosprl.exchange.incoming.model import Model
from gosprl.exchange.incoming.run import Run
from gosprl.exchange.repeated import refuse_repeated
from gosprl.exchange.taking import Taker
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.origins import Origin, described, run_id
from gosprl.systems.base import System
from gosprl.systems.tabular import Tabular

ORDERS = {"collected": None, "unknown": None}


class Samples(Beginning):
    """The data that a user gave.

    Parameters
    ----------
    data
        A run directory, a file, a frame, arrays, a Minari data set, an `EmpiricalModel`; or a list of these.
    order
        "collected" or "unknown"; None: all of it are runs.
    """

    def __init__(self, data: Any, order: str | None) -> None:
        if order is not None:
            _checks.choice("data_order", order, ORDERS)
        self._sources, self.order = sources(data), order
        self._numbers: list[int] = []  # of samples, by source
        self._origins: list[tuple[Origin, ...]] = []  # by source: its own, then those of what it began with
        for source in self._sources:
            if order is None and not source.has_order:
                raise InputError(
                    f"data_order: expected 'collected' or 'unknown' for {source.name}. 'collected': the samples of "
                    "each pair are in the order in which they were drawn, and none was left out because of its "
                    "outcome; 'unknown': none was left out because of its outcome. See docs/exchange_data.md"
                )

    def count_into(self, model: EmpiricalModel, system: System, rewards: tuple[float, float] = ANY_REWARD) -> None:
        """Count everything into an empty model: see `Beginning`."""
        given: dict[str, None] = {}
        refuse_repeated(self._known)
        had, self._numbers, self._origins = 0, [], []
        for source in self._sources:
            taken, ids = self._take(source, model, system, rewards)
            given |= dict.fromkeys(taken)
            own, *within = self._known[len(self._origins)]
            self._origins.append((replace(own, ids=own.ids + ids), *within))
            refuse_repeated(self._origins)
            had, before = num_samples(model), had
            self._numbers.append(had - before)
        if not model.all_actions:
            enable_known(model, len(model.actions))
        if self.order == "unknown":
            forget_order(model)
        model.given = self._taken_for_granted(given)
        model.origins = tuple(origin for group in self._origins for origin in group)
        level_ranks(model)

    def has_run(self, run: str) -> bool:
        """Whether the run on disk with this id, or a copy of it, is known to be among them."""
        return any(run_id(run) in origin.ids for group in self._known for origin in group)

    @cached_property
    def _known(self) -> list[tuple[Origin, ...]]:
        """The origins of each source, its own first, as far as they are known before its rows are read."""
        return [(Origin(source.name, source.ids()), *source.within()) for source in self._sources]

    def _take(
        self, source: Source, model: EmpiricalModel, system: System, rewards: tuple[float, float]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Count one source; return what it takes for granted, and the identities of its rows."""
        given: tuple[str, ...] = () if source.has_order else (VOUCHED,)
        if isinstance(source, Model):
            ModelTaker(model, system, rewards).take(source.model)
            return (*given, *source.model.given), ()  # what it took for granted is taken for granted here, too
        if isinstance(source, Run):
            source.match(model, system)
            of_fleet = source.committed()
            begun = source.begun(system) if of_fleet is None else of_fleet
            if begun is not None:
                ModelTaker(model, system, rewards, source.matcher.key_of).take(begun)
                given = begun.given
            if not isinstance(system, Tabular):  # only a simulated table surely draws what its seed says
                given = (*given, APART)
            if of_fleet is not None:
                return given, ()
        allowance = Allowance(f"data: {source.name}", source.size)
        taker = Taker(model, system, rewards, in_order=self.order != "unknown", allowance=allowance)
        for batch in source.batches():
            taker.take(batch)
        return given, (f"rows:{taker.content.hexdigest()}",)

    def _taken_for_granted(self, told: Iterable[str]) -> tuple[str, ...]:
        """Return what guarantees name, once, and nothing that something else says, too."""
        given = dict.fromkeys(OF_BEFORE.get(what, what) for what in told)
        if self.order == "unknown":
            given = {UNSELECTED: None} | given
            given.pop(VOUCHED, None)
        if VOUCHED in given or UNSELECTED in given:
            given.pop(APART, None)
        return tuple(given)

    def described(self) -> dict[str, Any]:
        """Return their order and where they come from."""
        parts = zip(self._sources, self._numbers, self._origins, strict=True)
        proved = self.order == "collected" and all(source.has_order for source in self._sources)
        return {
            "order": None if proved else self.order,
            "sources": [
                {
                    "name": source.name,
                    "kind": source.kind,
                    "digest": source.digest(),
                    "samples": number,
                    "ids": list(own.ids),
                    "within": described(within),
                }
                for source, number, (own, *within) in parts
            ],
        }
