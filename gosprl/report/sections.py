"""The parts of the page of a run: what was asked and promised, what was reached, and how."""

import json
from typing import Any

import numpy as np

from gosprl.collecting.result import OWN_DELTA
from gosprl.report import charts
from gosprl.report.findings import MOST_LIMIT, Findings
from gosprl.report.graph import graph_of
from gosprl.report.learnt_parts import rewards, system, times
from gosprl.report.maps import MOST_CELLS, Values, heat
from gosprl.report.parts import FEW, LISTED, Figure, Section, everything_in
from gosprl.report.places import Places
from gosprl.report.tables import Html, code, facts, folded, paragraph, table
from gosprl.report.text import number, percent, plural, short

STOPS = {
    "met": "everything asked for was collected",
    "found": "a reward above the threshold was found",
    "max_steps": "the largest number of steps was reached",
    "unreachable": "what is missing was given up",
    "interrupted": "it was interrupted",
    "failed": "the system or the requirement raised an error",
    "running": "it is going on",
    "unfinished": "it has no end yet",
}
NO_CONFIGURATION = "A result in memory does not know how its system was made. A run on disk does: collect with out=DIR."


def sections(findings: Findings, places: Places | None, figure: Figure) -> list[Section]:
    """Return the parts of the page of a run that have something to say.

    Parameters
    ----------
    findings
        What is shown.
    places
        Where states are.
    figure
        (chart, caption) -> HTML.
    """
    graph = graph_of(findings, places)
    made = [
        ("Asked and promised", _asked(findings)),
        ("Coverage", _coverage(findings, figure)),
        ("Visits", _visits(findings, places, figure)),
        ("What is missing", _missing(findings, places, figure)),
        ("The learnt system", system(findings, graph, figure)),
        ("Hitting times", times(findings, places, figure)),
        ("Rewards", rewards(findings, figure)),
        ("Plans and time", _plans(findings)),
        ("Walkers", _walkers(findings, figure)),
        ("Certificate", _certificate(findings)),
        ("Run it again", _again(findings)),
    ]
    return [Section(title, content) for title, content in made if content]


def _asked(found: Findings) -> str:
    why = "so says the certificate" if found.problems and found.certificate else STOPS.get(found.stop, "")
    entries = [
        *found.asked,
        ("stop", found.stop + (f": {why}" if why else "")),
        ("guarantee", found.guarantee),
        ("strategy", found.strategy),
        ("seed", "unknown" if found.seed is None else str(found.seed)),
    ]
    if found.unseen is not None and found.of_discovered:
        said = f"a pair visited may have next states never seen, of probability <= {found.unseen:.3g} ({OWN_DELTA})"
        entries.append(("unseen", said))
    return facts(entries) + _promise(found)


def _promise(found: Findings) -> str:
    if not found.guarantee.startswith("delta="):
        return ""
    level = found.guarantee.partition("=")[2].partition(",")[0].partition(":")[0]
    return paragraph(
        f"What is promised holds with a probability of at least 1 - {level}, over the randomness of the system and "
        "of the run. It is a promise about the method, made before the run.",
        "note",
    )


def _coverage(found: Findings, figure: Figure) -> str:
    if found.curve is None or not len(found.curve):
        return ""
    chart = charts.coverage(found.curve, found.steps, None if found.limit is None else found.limit[0])
    caption = "States whose need is met, over the steps of the run." + _about_limit(found)
    if (np.diff(charts.settled(found.curve)["proportion"]) < 0).any():
        caption += " It falls where the need grew, or states were discovered."
    return figure(chart, caption) + table("Steps until", ("states met", "steps"), _milestones(found))


def _about_limit(found: Findings) -> str:
    if found.limit is None:
        return f" The limit is not computed above {MOST_LIMIT:,} states." if len(found.counts) > MOST_LIMIT else ""
    steps, of = found.limit
    if steps is None:
        return f" The limit: {of}."
    if steps <= 0:
        return ""
    if np.isinf(steps):
        return f" There is no limit beside it: for {of}, some of what is needed cannot be reached."
    return f" The limit is the fewest steps that collecting the need takes on average, for {of}."


def _milestones(found: Findings) -> list[tuple[str, str]]:
    """Return the steps until so much was met, up to the first level that was not reached."""
    assert found.curve is not None
    rows: list[tuple[str, str]] = []
    for level in (0.25, 0.5, 0.75, 0.9, 0.99, 1.0):
        below = np.flatnonzero(found.curve["proportion"] < level)
        i = int(below[-1]) + 1 if below.size else 0
        if i == len(found.curve):
            return [*rows, (percent(level), "not reached")]
        rows.append((percent(level), number(int(found.curve["step"][i]))))
    return rows


def _visits(found: Findings, places: Places | None, figure: Figure) -> str:
    if not len(found.counts):
        return ""
    visits, lacking = found.visits.astype(float), found.missing > 0
    if places is not None:
        chart = heat(Values(visits, lacking, found.name, "visits", found.start), places)
        caption = "Visits of each state, drawn where it is." + " Red frames: samples are missing." * chart.has_frames
    else:
        chart = charts.profile(np.where(found.shown, visits, np.nan), lacking, found.name, "visits")
        caption = "Visits of each state, in decreasing order."
        if hidden := int((~found.shown).sum()):
            caption += f" {plural(hidden, 'state')} never seen, of which nothing is needed: not drawn."
    order = np.argsort(visits, kind="stable")
    rows = [_visited(found, int(s)) for s in order[:FEW]]
    most = [_visited(found, int(s)) for s in order[::-1][:FEW]]
    titles = ("state", "visits", "needed", "missing")
    listed = table("The states with the fewest visits", titles, rows, len(order) - len(rows), everything_in(found))
    return figure(chart, caption) + folded(
        "Tables: fewest and most visits", listed + table("The states with the most visits", titles, most)
    )


def _visited(found: Findings, s: int) -> tuple[Any, ...]:
    needed = "unknown" if found.need is None else number(int(found.need[0][s].sum() + found.need[1][s]))
    return found.name(s), number(int(found.counts[s].sum())), needed, number(int(found.missing[s]))


def _missing(found: Findings, places: Places | None, figure: Figure) -> str:
    if found.need is None and found.model is not None:
        return paragraph("What is needed is not known here, so neither is what is missing.")
    if not len(found.unmet):
        return paragraph("Nothing is missing.") if found.model is not None else ""
    order = np.argsort(found.unmet["have"] - found.unmet["needed"], kind="stable")
    rows = []
    given_up = bool(found.unreachable)  # a column of nothing would say nothing
    for s, a, needed, have in found.unmet[order[:LISTED]].tolist():
        why = (found.unreachable.get(s, ""),) if given_up else ()
        rows.append((found.name(s), found.action(a), number(needed), number(have), number(needed - have), *why))
    total = int((found.unmet["needed"] - found.unmet["have"]).sum())
    said = paragraph(f"{plural(total, 'sample')} of {plural(len(found.unmet), 'pair')} missing.")
    titles = ("state", "action", "needed", "have", "missing", *(("given up because",) if given_up else ()))
    listed = table("Pairs with missing samples", titles, rows, len(order) - len(rows), "; result.unmet has all")
    drawn = _missing_map(found, places, figure)
    return said + drawn + _unreachable(found) + folded("Table: pairs with missing samples", listed, is_open=True)


def _missing_map(found: Findings, places: Places | None, figure: Figure) -> str:
    """Return where samples are missing, if there are so many states that the map of visits cannot mark each."""
    if places is None or int(places.known.sum()) <= MOST_CELLS:
        return ""
    nothing = np.zeros(len(found.counts), dtype=bool)
    chart = heat(Values(found.missing.astype(float), nothing, found.name, "missing samples", found.start), places)
    return figure(chart, "Missing samples of each state, drawn where it is.")


def _unreachable(found: Findings) -> str:
    if not found.unreachable:
        return ""
    rows = [(found.name(s), why) for s, why in list(found.unreachable.items())[:LISTED]]
    more = len(found.unreachable) - len(rows)
    return table("States that were given up", ("state", "because"), rows, more, "; result.unreachable has all")


def _plans(found: Findings) -> str:
    entries: list[tuple[str, str]] = []
    if found.attempts is not None:
        each = f", {number(found.steps / max(1, found.attempts), 3)} steps each" if found.attempts else ""
        entries.append(("attempts", f"{found.attempts:,}{each}"))
    entries += [("resets", f"{found.resets:,}")] if found.resets else []
    entries += [("crashes", f"{found.crashes:,}")] if found.crashes else []
    entries += found.facts
    worked = [(name, number(float(value))) for name, value in found.work.items()]
    listed = table("What planning took, as the strategy counts it", ("what", "number"), worked)
    return facts(entries) + folded("Table: the work of planning", listed)


def _walkers(found: Findings, figure: Figure) -> str:
    if found.fleet is None and not found.walkers:
        return ""
    entries = [
        (name, number(value) if isinstance(value, int) else short(value)) for name, value in (found.fleet or {}).items()
    ]
    content = facts(entry for entry in entries if entry[1] != "None")
    if found.walkers:
        shown = sorted(found.walkers, key=lambda walker: -walker.steps)[:40]
        rows = [{"s": f"walker {walker.name}", "v": walker.steps, "k": "steps"} for walker in shown]
        content = Html(content + figure(charts.bars(rows, "steps", "walker"), "Steps that each walker made."))
        listed = [(walker.name, number(walker.steps), number(walker.lost)) for walker in found.walkers[:LISTED]]
        titles = ("walker", "steps", "given up")
        content = Html(
            content + folded("Table: walkers", table("Walkers", titles, listed, len(found.walkers) - len(listed)))
        )
    return content


def _certificate(found: Findings) -> str:
    if not found.directory:
        return ""
    if found.certificate is None:
        return paragraph("There is none: a certificate is written when a run ends.")
    plain = [(name, short(value)) for name, value in found.certificate.items() if not isinstance(value, list | dict)]
    how = paragraph(
        "It says what was needed, what was collected and what is promised. Whoever has the directory can check it:"
    )
    return how + code(f"gosprl verify {found.directory}") + folded("The certificate, without its tables", facts(plain))


def _again(found: Findings) -> str:
    if found.command is None:
        said = f"gosprl.collect(system, need, seed={found.seed})  # {found.strategy}"
        return paragraph(NO_CONFIGURATION) + code(said)
    _, text = found.command
    content = code(text)
    if found.configuration is not None:
        shown = json.dumps(_trimmed(found.configuration), indent=1, ensure_ascii=True)
        content = Html(content + folded("The configuration", code(shown)))
    return content


def _trimmed(value: Any) -> Any:
    """Return JSON values with long lists and texts cut off."""
    if isinstance(value, dict):
        return {short(name): _trimmed(part) for name, part in list(value.items())[:50]}
    if isinstance(value, list):
        return [_trimmed(part) for part in value[:8]] + ([f"... {len(value) - 8:,} more"] if len(value) > 8 else [])
    return short(value) if isinstance(value, str) else value
