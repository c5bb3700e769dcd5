"""`report`: write the page of a run, a result or an answer."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gosprl.errors import InputError
from gosprl.exchange.appearing import appearing, check_free
from gosprl.report.findings import Findings, of_result
from gosprl.report.parts import Figure, Section
from gosprl.report.text import number, percent

ENDINGS = (".html", ".htm")


class Page(NamedTuple):
    """A page: HTML, and what is damaged in what it shows."""

    html: str
    problems: tuple[str, ...]


def report(
    source: Any, file: str | os.PathLike[str], *, coordinates: Any = None, title: str | None = None, command: str = ""
) -> Path:
    """Write one HTML file that shows a run at a glance; it needs no network. See docs/report.md.

    Parameters
    ----------
    source
        The directory of a run, a `Result`, or the answer of an application.
    file
        An .html file; it appears by rename, when it is complete, and replaces one of that name.
    coordinates
        Where states are drawn: an array [S, 2], a mapping from observations to pairs of numbers, or a function of the
        observation; first to the right, then downwards. By default the map of a gridworld, or observations that are
        two numbers.
    title
        By default the name of the system.
    command
        The command line that made the result, to be shown.

    Returns
    -------
    The file.

    Raises
    ------
    InputError
        The source is none of these, the coordinates do not fit, the file's name does not end with .html, or
        ``gosprl[report]`` is not installed.
    GosprlError
        The file cannot be written.

    Examples
    --------
    >>> import gosprl, tempfile
    >>> result = gosprl.collect("riverswim6", need=10, seed=0)
    >>> result.report(tempfile.mkdtemp() + "/run.html").name
    'run.html'
    """
    check_file(Path(file))
    return write(page_of(source, coordinates=coordinates, title=title, command=command), Path(file))


def check_file(file: Path) -> None:
    """Raise `InputError`, before anything is done, if a page could not be made and written there."""
    from gosprl.report.drawing import converter

    if file.suffix.lower() not in ENDINGS:
        raise InputError(f"file: expected a name that ends with {' or '.join(ENDINGS)}, got {file.name!r}")
    check_free(file, force=True)
    converter()


def write(page: Page, file: Path) -> Path:
    """Write a page to a file."""
    with appearing(file, force=True) as temporary:
        temporary.write_text(page.html, "utf-8")
    return file


def page_of(source: Any, *, coordinates: Any = None, title: str | None = None, command: str = "") -> Page:
    """Return the page of a run, a result or an answer; as `report`."""
    from gosprl.report.page import Figures, heading, page
    from gosprl.report.places import places_of
    from gosprl.report.sections import sections

    found, first = _findings(source, command)
    places = places_of(found, coordinates)
    figures = Figures()
    parts = [*first(figures), *sections(found, places, figures)]
    name = title or found.system
    said = [*(("damage", f"Damaged: {problem}") for problem in found.problems), *(("", text) for text in found.remarks)]
    below = ", ".join(text for _, text in found.asked[:1])
    head = heading(name, below, _badge(found), _numbers(found), said)
    return Page(page(f"{name}: report", head, parts, figures), tuple(found.problems))


def _findings(source: Any, command: str) -> tuple[Findings, Callable[[Figure], list[Section]]]:
    """Return what is shown, and a function that returns further parts, which come first."""
    from gosprl.applications.common import Answer
    from gosprl.collecting.result import Result

    if isinstance(source, Result):
        return of_result(source, command=command), lambda figures: []
    if isinstance(source, Answer):
        from gosprl.report.answers import answered

        return answered(source, command)
    if isinstance(source, str | os.PathLike):
        from gosprl.report.from_run import of_run

        return of_run(source), lambda figures: []
    raise InputError(
        f"source: expected the directory of a run, a Result or an answer of an application, got {type(source).__name__}"
    )


def _badge(findings: Findings) -> tuple[str, str]:
    if findings.problems:
        return "bad", "damaged"
    if findings.met:
        return "good", "found" if findings.stop == "found" else "met"
    if findings.stop in ("unfinished", "running", "unknown"):
        return "open", findings.stop
    return "open", f"not met: {findings.stop}"


def _numbers(found: Findings) -> list[tuple[str, str]]:
    """Return the numbers that a reader wants first."""
    numbers = [("steps", number(found.steps))]
    if not np.isnan(found.proportion):
        numbers.append(("states met", percent(found.proportion)))
    limit = None if found.limit is None else found.limit[0]
    if limit is not None and 0 < limit < np.inf:
        numbers.append(("limit", number(round(limit))))
        if found.met and found.paid:
            numbers.append(("times the limit", f"{found.paid / limit:.2f}"))
    kind = "states discovered" if found.of_discovered else "states"
    if found.model is not None:
        numbers += [(kind, number(len(found.counts) if not found.of_discovered else found.states))]
        numbers += [("pairs", number(found.pairs))] if found.pairs else []
    if len(found.unmet):
        missing = int((found.unmet["needed"] - found.unmet["have"]).sum())
        numbers.append(("samples missing", number(missing)))
    return numbers
