"""HTML of facts, tables and figures. Cells are given as text and escaped here; `Html` is what was made here already."""

from collections.abc import Iterable, Sequence
from typing import Any

from gosprl.report.text import escaped, foreign

LONG = 400  # characters of a cell


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def cell(value: Any) -> str:
    """Return a value as HTML."""
    return value if isinstance(value, Html) else foreign(value, LONG)


def facts(entries: Iterable[tuple[str, Any]]) -> Html:
    """Return names and values, one pair a line."""
    rows = "".join(f'<tr><th scope="row">{escaped(name)}</th><td>{cell(value)}</td></tr>' for name, value in entries)
    return Html(f'<table class="facts"><tbody>{rows}</tbody></table>') if rows else Html("")


def table(caption: str, titles: Sequence[str], rows: Sequence[Sequence[Any]], more: int = 0, all_in: str = "") -> Html:
    """Return a table; columns whose values are all numbers are aligned to the right.

    Parameters
    ----------
    caption
        What it shows.
    titles
        Of the columns.
    rows
        Their cells.
    more
        How many rows were left out.
    all_in
        Where all of them are.
    """
    if not rows:
        return Html("")
    numeric = [all(isinstance(row[j], int | float) or _is_number(row[j]) for row in rows) for j in range(len(titles))]
    head = "".join(f'<th scope="col"{_right(numeric[j])}>{escaped(title)}</th>' for j, title in enumerate(titles))
    body = "".join(
        "<tr>" + "".join(f"<td{_right(numeric[j])}>{cell(value)}</td>" for j, value in enumerate(row)) + "</tr>"
        for row in rows
    )
    rest = f'<p class="note">{more:,} more are not listed{escaped(all_in, LONG)}.</p>' if more > 0 else ""
    return Html(
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escaped(caption, LONG)}"><table>'
        f"<caption>{escaped(caption, LONG)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>{rest}"
    )


def _is_number(value: Any) -> bool:
    text = str(value).replace(",", "").removesuffix("%")
    try:
        float(text)
    except ValueError:
        return text in ("unknown", "infinite", "not reached", "")
    return True


def _right(numeric: bool) -> str:
    return ' class="n"' if numeric else ""


def folded(title: str, content: str, is_open: bool = False) -> Html:
    """Return content that opens when its title is chosen; nothing if there is no content."""
    if not content:
        return Html("")
    return Html(f"<details{' open' * is_open}><summary>{escaped(title)}</summary>{content}</details>")


def paragraph(text: str, kind: str = "") -> Html:
    """Return a paragraph of the project's own words with values from data in them."""
    return Html(f"<p{f' class={kind}' if kind else ''}>{escaped(text, 2000)}</p>")


def code(text: str) -> Html:
    """Return a command, or lines of a file."""
    lines = "\n".join(escaped(line, LONG) for line in text.splitlines())
    return Html(f'<pre tabindex="0"><code>{lines}</code></pre>')
