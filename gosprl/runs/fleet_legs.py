"""Legs of a fleet: counted where later ones begin, and made again from their events."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gosprl.fleet.collector import FleetCollector
from gosprl.fleet.orders import Order
from gosprl.fleet.replayed import Replayed
from gosprl.runs.fleet_counting import FleetCounter
from gosprl.runs.fleet_events import FleetEvents, batches_of_leg
from gosprl.runs.notes import given_up
from gosprl.runs.playback import Differs
from gosprl.strategies.base import UNLIMITED
from gosprl.systems.base import System

if TYPE_CHECKING:
    from gosprl.runs.opened import OpenRun


def count_legs(run: "OpenRun", counter: FleetCounter, events: int) -> None:
    """Count the first events of a run, those of whole legs; what is in flight at the end of the last is given up."""
    legs = run.manifest["legs"]
    ends = [*(leg["first"] for leg in legs[1:]), run.next_row]
    for leg, end_of_leg in zip(legs, ends, strict=True):
        begin, end = leg["first"], min(end_of_leg, events)
        if begin >= end:
            continue
        counter.begin_leg(leg)
        if "fleet" not in leg:
            for columns in run.contents.batches(begin, end):
                counter.add(columns)
            continue
        for _, columns, notes in batches_of_leg(run.contents, begin, end):
            counter.add_noted(columns, notes)
        if counter.events < end and run.in_flight:
            counter.add_noted(given_up(run.in_flight, counter.events), None)
    counter.end_leg()


def replay(run: "OpenRun", collector: FleetCollector, system: System, leg: Mapping[str, Any], end: int) -> None:
    """Make a leg again with a collector that is where it began; `Differs` if it issues other orders.

    Parameters
    ----------
    system
        As in `FleetCollector.replay`.
    leg, end
        The entry of the manifest, and the number of the row that follows the leg.
    """
    until = leg["fleet"]["until"]
    events = FleetEvents(run.contents, run.names, leg["first"], end)
    replayed = Replayed(iter(events), Differs)
    collector.replay(replayed, system, UNLIMITED if until is None else until)
    for order in events.in_flight:
        replayed.compare(end, Order(order.number, events.walker(end, order.walker), order.action))
