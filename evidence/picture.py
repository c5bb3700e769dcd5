"""Pictures of the README and of the site: what commands and examples print, as SVG.

python -m evidence.picture      writes docs/demo.svg and docs/pictures
"""

import contextlib
import html
import io
import re
import runpy
import sys
from pathlib import Path

import typer
from rich.console import Console

from gosprl.cli import collect as verb
from gosprl.cli.app import app

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "demo.svg"
COMMAND = ["collect", "four_room43", "--need", "10", "--seed", "0", "--compare"]
OBJECTIVES = (
    "find_treasure",
    "estimate_model",
    "estimate_diameter",
    "explore_all_goals",
    "learn_policy",
    "best_state",
    "estimate_rewards",
)
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # of a server outside: the reader's own are used


def main():
    PICTURE.write_text(demonstration())
    for name in OBJECTIVES:
        script = ROOT / "examples" / f"{name}.py"
        printed = io.StringIO()
        sys.argv = [str(script)]
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(script), run_name="__main__")
        file_of(name).write_text(drawn(name, printed.getvalue()))


def file_of(name):
    """The picture of an example."""
    return ROOT / "docs" / "pictures" / f"{name}.svg"


def demonstration():
    """The picture of the README."""
    before = verb.out
    verb.out = Console(
        record=True, width=84, file=io.StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False
    )
    try:
        typer.main.get_command(app).main(COMMAND, standalone_mode=False)
        return svg(verb.out, "gosprl " + " ".join(COMMAND))
    finally:
        verb.out = before


def drawn(name, printed):
    """The picture of what an example prints."""
    text = printed.rstrip()
    width = max(map(len, text.splitlines())) + 1
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(text, markup=False, highlight=False)
    return svg(console, f"python examples/{name}.py")


def svg(console, title):
    return FONTS.sub("", console.export_svg(title=title))


def text_of(picture):
    """The words that a picture shows, from its file or its source."""
    source = picture.read_text() if isinstance(picture, Path) else picture
    body = re.sub(r"<(style|title)>.*?</\1>", "", source, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", body)).replace("\xa0", " ").split()


if __name__ == "__main__":
    main()
