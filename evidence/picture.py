"""The README's picture: what `make demo` prints, as an SVG.

python -m evidence.picture      writes docs/demo.svg
"""

from pathlib import Path

import typer
from rich.console import Console

from gosprl.cli import collect as verb
from gosprl.cli.app import app

PICTURE = Path(__file__).parent.parent / "docs" / "demo.svg"
COMMAND = ["collect", "four_room43", "--need", "10", "--seed", "0", "--compare"]


def main():
    verb.out = Console(record=True, width=84, force_terminal=True, color_system="truecolor")
    typer.main.get_command(app).main(COMMAND, standalone_mode=False)
    PICTURE.parent.mkdir(exist_ok=True)
    verb.out.save_svg(str(PICTURE), title="gosprl " + " ".join(COMMAND))


if __name__ == "__main__":
    main()
