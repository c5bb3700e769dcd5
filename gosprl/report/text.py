"""Text from data, made fit for a page: short, printable, escaped.

An observation may be anything: HTML, a megabyte long, right-to-left, control characters. Whatever it is, it becomes one
line of text that cannot end the element around it, nor change the direction of the text beside it.
"""

import html
import math
from typing import Any

from gosprl.printing import printable

LONGEST = 80  # characters of a text from data
ISOLATED = "\u2068{}\u2069"  # where there are no elements: the direction of a text ends with it


def short(value: Any, longest: int = LONGEST) -> str:
    """Return a value as one printable line; what is cut off is said."""
    text = value if isinstance(value, str) else _text(value)
    cut = f"… ({len(text):,} characters)" if len(text) > longest else ""
    return printable(text[: longest if cut else None]) + cut


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"{type(value).__name__}, whose text cannot be made: {type(error).__name__}"


def escaped(value: Any, longest: int = LONGEST) -> str:
    """Return a value as HTML text, for names that the project itself has chosen, and for attributes."""
    return html.escape(short(value, longest))


def foreign(value: Any, longest: int = LONGEST) -> str:
    """Return a value from data as HTML; the direction of its text does not reach beyond it."""
    return f"<bdi>{escaped(value, longest)}</bdi>"


def isolated(value: Any, longest: int = 40) -> str:
    """Return a value from data as text of a chart."""
    return ISOLATED.format(short(value, longest))


def number(value: float | int | None, digits: int = 4) -> str:
    """Return a number for people: whole ones with commas, others with some digits."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "unknown"
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def percent(value: float) -> str:
    """Return a proportion; 100 % only if it is all."""
    if math.isnan(value):
        return "unknown"
    shown = f"{100 * value:.1f}"
    return f"{'99.9' if shown == '100.0' and value < 1 else shown.removesuffix('.0')}%"


def plural(n: int, word: str) -> str:
    """Return a number of things."""
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"
