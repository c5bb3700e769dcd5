"""Numbers that pages state as measured, and the committed results they come from.

A number counts as measured if it has a decimal point, separates thousands, or is followed by a unit. Code, formulas and
links are left out: blocks of code are run (`documented`). Everything else stands in a part of a page, between empty
lines, below a comment that names its source:

    <!-- rows of evidence/results/samples.md -->  each row of the table is a row there, with some of its columns
    <!-- from evidence/results/samples.md -->     each number stands in this file, if need be rounded, or as a share
    <!-- set: why -->                             numbers that were chosen, not measured: settings, limits, thresholds
    <!-- default gosprl.probe.level = 0.01 -->    a default of the code: tests/stated.py

`from` looks single numbers up, so it finds most wrong ones, not all. Files are separated by blanks. Tables
that the site inserts (`<!-- table ... -->`) have no numbers of their own.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
APART = ("docs/reproduction/",)  # made whole by a command
LEFT_OUT = re.compile(r"```.*?```|``.*?``|`[^`]*`|\$[^$]+\$|\]\([^)]*\)|https?://\S+", re.DOTALL)
UNIT = r"(?:%|times|seconds?|minutes?|ms|us|s|MB|GB)(?!\w)"
MEASURED = re.compile(rf"(?<![\w.])(?<!Python )(\d+\.\d+|\d{{1,3}}(?:,\d{{3}})+|\d+(?= ?{UNIT}))(?![\w.]*\d)")
SOURCE = re.compile(r"<!-- (rows of|from|set:|default) (.*?) -->")


def pages():
    """The pages whose numbers are traced."""
    docs = (ROOT / "docs").rglob("*.md")
    return [ROOT / "README.md", *sorted(page for page in docs if not str(page.relative_to(ROOT)).startswith(APART))]


def untraced(text):
    """What is wrong with the numbers of a page, one line each."""
    wrong = []
    for part in re.split(r"\n\s*\n", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        source = SOURCE.search(part)
        words = LEFT_OUT.sub(" ", SOURCE.sub(" ", part))
        numbers = [match[1] for match in MEASURED.finditer(words)]
        if source is None:
            wrong += [f"{number}: no source in {words.strip()[:60]!r}" for number in numbers]
        elif source[1] not in ("set:", "default"):
            wrong += _missing(part, numbers, source[1], source[2].split())
    return wrong


def _missing(part, numbers, how, files):
    absent = [file for file in files if not (ROOT / file).is_file()]
    if absent:
        return [f"{absent[0]} is no file of the repository"]
    said = "\n".join((ROOT / file).read_text() for file in files)
    if how == "rows of":
        rows = [line for line in part.splitlines() if line.startswith("|")]
        return [f"no such row in {files[0]}: {row}" for row in rows_not_in(rows, said)]
    known = [value(text) for text in re.findall(r"\d[\d,]*(?:\.\d+)?", said)]
    return [f"{number} is not in {' '.join(files)}" for number in numbers if not _among(number, known)]


def value(text):
    """The number that a text of digits stands for."""
    return float(text.replace(",", ""))


def _among(number, known):
    """Whether a number is one of those known, rounded to its digits; or such a share, in per cent."""
    digits = len(number.partition(".")[2])
    half = 0.5 * 10.0**-digits + 1e-9
    wanted = value(number)
    return any(abs(each - wanted) <= half or (digits > 1 and abs(each / 100 - wanted) <= half) for each in known)


def cells(row):
    """The cells of a row of a table."""
    return [cell.strip(" *") for cell in row.strip().strip("|").split("|")]


def tables(text):
    """Each table of a text, as a list of rows."""
    return [table.strip().splitlines() for table in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE)]


def rows_not_in(rows, text):
    """Rows of a table that are not, with these columns, rows of any one table of a text."""
    names = cells(rows[0])
    for table in tables(text):
        head = cells(table[0])
        if set(names) <= set(head):
            there = [[cells(row)[head.index(name)] for name in names] for row in table[2:]]
            return [row for row in rows[2:] if cells(row) not in there]
    return rows[:1]
