"""Text from outside, such as names, cells of data and errors of programs, on its way to people."""

LONGEST = 1000  # characters of a text that is shown beside others


def printable(text: str) -> str:
    """Return a text with its control characters escaped: a stranger may have written it for a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def lines_printable(text: str) -> str:
    """Return the same for a text of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def brief(text: str, longest: int = LONGEST) -> str:
    """Return a text, cut if it is too long to be read."""
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"
