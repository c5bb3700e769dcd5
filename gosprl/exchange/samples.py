"""Samples that are there before a run: counted into the model that the run begins with.

**What must hold for the guarantee.** The samples of each pair are those that the system drew, in this order, and none
was left out because of its outcome. A run on disk proves its order. For all other data the caller says it:

    data_order="collected"   they are so: the guarantee takes the data for granted, and says so
    data_order="unknown"     no sample was left out because of its outcome, but their order may be any other one

With unknown order, the bounds that use *when* a successor was first seen do not hold: put the surprises among the
samples of a pair first, and the many visits without one that follow seem to prove that nothing else is there. So of
the times of first appearance only this is kept: they lie in the data. Nor do levels hold that go by the order in which
states were discovered: all states of the data get that of the last one (`adding.level_ranks`). What depends on counts
alone still holds: the ends of intervals, and the cap on all unseen successors after all visits, where the number of
states is known. The cap that goes by the visits since the last new successor counts them from the end of the data.
Bernstein sets where the number of states is unknown go by first appearances for their lower ends, which are 0 then.

Counts have no order. They are valid in the same way with either word, and have the same price.
"""

from typing import Any

from gosprl import _checks
from gosprl.collecting.record import ANY_REWARD
from gosprl.errors import InputError
from gosprl.exchange.adding import ModelTaker, forget_order, level_ranks
from gosprl.exchange.incoming import Model, Run, sources
from gosprl.exchange.taking import Taker
from gosprl.model.empirical import EmpiricalModel
from gosprl.systems.base import System

ORDERS = {"collected": None, "unknown": None}
VOUCHED, UNSELECTED = "the data", "that the data were not selected by their outcome"


class Samples:
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
        for source in self._sources:
            if order is None and not source.has_order:
                raise InputError(
                    f"data_order: expected 'collected' or 'unknown' for {source.name}. 'collected': the samples of "
                    "each pair are in the order in which they were drawn, and none was left out because of its "
                    "outcome; 'unknown': none was left out because of its outcome. See docs/exchange_data.md"
                )

    def count_into(self, model: EmpiricalModel, system: System, rewards: tuple[float, float] = ANY_REWARD) -> None:
        """Count everything into an empty model.

        Parameters
        ----------
        model
            The model of the system, prepared for its resets.
        system
            What will be walked: it says what observations and actions stand for.
        rewards
            The least and the largest reward allowed.

        Raises
        ------
        InputError
            Something is wrong with the data; the model is not to be used then.
        """
        for source in self._sources:
            if isinstance(source, Model):
                ModelTaker(model, system, rewards).take(source.model)
                continue
            if isinstance(source, Run):
                _check_same(source, model, system)
            taker = Taker(model, system, rewards, in_order=self.order != "unknown")
            for batch in source.batches():
                taker.take(batch)
        if not model.all_actions:
            _enable_known(model)
        if self.order == "unknown":
            forget_order(model)
            model.given = (UNSELECTED,)
        elif not all(source.has_order for source in self._sources):
            model.given = (VOUCHED,)
        level_ranks(model)


def _check_same(source: Run, model: EmpiricalModel, system: System) -> None:
    """Raise `InputError` if a run is evidently one of another system."""
    from gosprl.runs.describing import digest_of

    there = source.run.manifest["system"]
    here: dict[str, Any] = {"states": model.states.fixed or None}
    if model.all_actions:
        here["actions"] = model.known_rows.num_actions
    if system.mdp is not None and there["digest"] is not None:
        here["digest"] = digest_of(system.mdp)
    for name, value in here.items():
        if there[name] != value:
            raise InputError(
                f"data: {source.name} is a run of another system: {name} {there[name]!r:.60} there, {value!r:.60} here"
            )


def _enable_known(model: EmpiricalModel) -> None:
    """Let states whose offer is not known yet have the actions that are known, and no room for others."""
    for s in model.discovered:
        if model.offered(s) is None:
            begin, end = int(model.rows.ptr[s]), int(model.rows.ptr[s + 1])
            model.enabled[begin:end] = model.rows.action[begin:end] < len(model.actions)
