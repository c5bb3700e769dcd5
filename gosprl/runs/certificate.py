"""The certificate of a run: what was needed, what was collected, and what is promised, for others to check."""

from collections.abc import Mapping
from typing import Any

from gosprl.collecting.result import Result
from gosprl.runs.begun import KeptData
from gosprl.runs.describing import described_list
from gosprl.runs.reading import Contents

CERTIFICATE = "certificate.json"
COVERS = (
    "samples of a pair count in the order of issue; sets, need and guarantee speak of these. Samples whose outcomes are"
    " unknown meet no need, and the sets contain those of every outcome that they may have had"
)


def certified(result: Result, digest: str, events: int, data: KeptData | None = None) -> dict[str, Any]:
    """Return the certificate of a result.

    Parameters
    ----------
    result
        The result.
    digest, events
        Of the log that it was computed from.
    data
        What the run began with; its counts are among those of the result.
    """
    guarantee = result.guarantee
    pair, state = result.need
    return {
        "met": result.met,
        "stop": result.stop,
        "steps": result.steps,
        "resets": result.resets,
        "attempts": result.attempts,
        "crashes": result.crashes,
        "states": result.states,
        "pairs": result.pairs,
        "of discovered": result.of_discovered,
        "need": {"pairs": pair.tolist(), "states": state.tolist()},
        "counts": result.counts.tolist(),
        "unmet": [list(entry) for entry in result.unmet.tolist()],
        "unreachable": [[s, why] for s, why in result.unreachable.items()],
        "unseen": result.unseen,
        "found": None if result.found is None else list(result.found),
        "delta": guarantee.level,
        "guarantee": str(guarantee),
        "strategy": result.strategy,
        "work": {name: described_list(float(number)) for name, number in result.work.items()},
        "seed": result.seed,
        "events": events,
        "log": digest,
        **_of_fleet(result),
        **({} if data is None else {"data": {name: data.entry[name] for name in ("samples", "order", "counts")}}),
    }


def _of_fleet(result: Result) -> dict[str, Any]:
    """Return what a certificate says of a fleet; nothing for one walker."""
    if result.fleet is None:
        return {}
    unknown = [list(entry) for entry in result.unknown]
    number = sum(entry[2] for entry in unknown)
    return {"fleet": {**result.fleet, "unknown": number, "unknown of": unknown, "covers": COVERS}}


def unfit(certificate: Mapping[str, Any], contents: Contents) -> str | None:
    """Return why a certificate is not that of a log, in words; None if it is.

    The digest of a log begins with the id of its run, so that of another run never fits.
    """
    events, log = certificate.get("events"), certificate.get("log")
    if type(events) is int and (events, log) == (contents.rows, contents.digest):
        return None
    said = f"expected the digest {contents.digest[:16]} of {contents.rows} events, got {log!s:.16} of {events!s:.20}"
    if any(log == link.digest for link in contents.links):
        return f"it is of an earlier moment of this run, {said}"
    return f"it is not that of this log, {said}"
