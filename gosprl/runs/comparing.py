"""Certificates compared with what a log says: counts, what is unmet, and every field of the run made again."""

import json
from collections.abc import Mapping
from typing import Any

from gosprl.collecting.result import Result
from gosprl.runs.begun import KeptData
from gosprl.runs.certificate import certified
from gosprl.runs.opened import OpenRun

SHOWN = 5  # of a list in a text
OUTSIDE = ("interrupted", "max_steps", "failed")  # reasons to stop that are not in the log
STOPPED = "max_steps"  # the stop of a run made again whose log ends before it is done
FAILED = "failed"


def compared(certificate: Mapping[str, Any], result: Result, run: OpenRun) -> tuple[list[str], str]:
    """Return the fields of a certificate that are not those of the run made again; and what to say if all are."""
    mine = fields(result, run.data) | {"events": run.contents.rows, "log": run.contents.digest}
    note = f"every field is that of the run made again: {certificate.get('guarantee')!s:.80}"
    if certificate.get("stop") in OUTSIDE and mine["stop"] == STOPPED:
        mine["stop"] = certificate["stop"]
        note += (
            f'; that it was stopped before it was done is confirmed, not why ("{mine["stop"]}"): the log does not say'
        )
    elif certificate.get("stop") == FAILED != mine["stop"]:
        note += f'; it was done ("{mine["stop"]}"), and what failed then is not in the log'
        mine["stop"] = FAILED
    wrong = [
        f"{name} {_short(certificate.get(name))}, recomputed {_short(mine.get(name))}"
        for name in sorted({*mine, *certificate})
        if _as_text(mine, name) != _as_text(certificate, name)
    ]
    return wrong, note


def fields(result: Result, data: KeptData | None = None) -> dict[str, Any]:
    """Return the certificate of a result as it is read from a file."""
    value: dict[str, Any] = json.loads(json.dumps(certified(result, "", 0, data)))
    return value


def _as_text(certificate: Mapping[str, Any], name: str) -> str:
    """Return a field as it stands in a file: there, 1 and true are not the same; "" if it is missing."""
    return json.dumps(certificate[name], sort_keys=True) if name in certificate else ""


def entries(counts: Any) -> tuple[tuple[int, int], dict[tuple[int, int], int]] | None:
    """Return the shape of a table [S][A], and the numbers in it that are not 0; None if it is no table."""
    if type(counts) is not list or any(type(row) is not list or len(row) != len(counts[0]) for row in counts):
        return None
    found = {(s, a): n for s, row in enumerate(counts) for a, n in enumerate(row) if n != 0}
    return (len(counts), len(counts[0]) if counts else 0), found


def missing(certificate: Mapping[str, Any]) -> set[tuple[int, int, int, int]]:
    """Return what is unmet (state, action or -1, needed, have), from the need and the counts of a certificate."""
    counts, need = certificate["counts"], certificate["need"]
    missing = {
        (s, a, wanted, counts[s][a])
        for s, row in enumerate(need["pairs"])
        for a, wanted in enumerate(row)
        if counts[s][a] < wanted
    }
    return missing | {
        (s, -1, wanted, sum(counts[s])) for s, wanted in enumerate(need["states"]) if sum(counts[s]) < wanted
    }


def explained(stated: set[Any], missing: set[tuple[int, int, int, int]], certificate: Mapping[str, Any]) -> bool:
    """Whether all that is missing is stated as unmet, and besides it only actions that were never offered."""
    counts = certificate["counts"]
    more = stated - missing
    return missing <= stated and all(
        have == 0 < needed and (a >= len(counts[s]) or counts[s][a] == 0) for s, a, needed, have in more
    )


def listed(entries: list[Any]) -> str:
    """Return the first entries of a list as text."""
    more = f" and {len(entries) - SHOWN} more" if len(entries) > SHOWN else ""
    return ", ".join(f"{entry!s:.80}" for entry in entries[:SHOWN]) + more


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
