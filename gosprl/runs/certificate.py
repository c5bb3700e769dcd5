"""The certificate of a run: what was needed, what was collected, and what is promised, for others to check."""

from typing import Any

from gosprl.collecting.result import Result
from gosprl.runs.begun import KeptData
from gosprl.runs.describing import described_list

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
