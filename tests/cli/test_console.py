"""What comes from outside reaches the terminal escaped, whichever verb prints it, and is not taken for markup."""

import io
import sys

import pytest
import warmed
from rich.table import Table

from gosprl.cli.console import Terminal
from gosprl.cli.shared import facts
from gosprl.printing import brief, lines_printable, printable

EVIL = "\x1b[31m[bold]evil[/bold]\x9b2J\u202e"
SEEN = "\\x1b[31m[bold]evil[/bold]\\x9b2J\\u202e"
ENV = """
import sys
import gymnasium
from gosprl.cli import main
EVIL = {evil!r}
class Env(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Text(100), gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        return "start", {{}}
    def step(self, action):
        if WHERE == "error":
            raise RuntimeError(EVIL)
        if WHERE == "warning":
            import warnings
            warnings.warn(EVIL)
        return "start", 0.0, False, False, {{}}
WHERE = sys.argv.pop(1)
gymnasium.register("Evil-v0", Env)
main()
"""


def said(*arguments, code=None):
    """Return what a command prints on standard output and error."""
    head = [sys.executable, "-m", "gosprl"] if code is None else [sys.executable, "-c", code.format(evil=EVIL)]
    done = warmed.run([*head, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    text = done.stdout + done.stderr
    assert not any(c in text for c in "\x1b\x9b\u202e"), text
    return text


@pytest.mark.parametrize("where", ["error", "warning"])
def test_texts_of_an_environment(where):
    text = said(where, "collect", "Evil-v0", "--need", 1, "--max-steps", 3, "--seed", 0, code=ENV)
    assert SEEN in text.replace("\n", "")


def test_texts_that_nobody_can_read_are_cut():
    file = io.StringIO()
    Terminal(file=file, width=120).print(facts("x" * 100_000, [("y" * 100_000, EVIL + "z" * 100_000)]))
    assert len(file.getvalue()) < 10_000
    assert SEEN in file.getvalue().replace("\n", "").replace(" ", "")


def test_names_of_directories(tmp_path):
    directory = tmp_path / EVIL.replace("/", "")
    directory.mkdir()
    assert "\\x1b[31m[bold]evil[bold]" in said("show", directory).replace("\n", "")


def test_cells_of_data_and_standard_error_of_programs(tmp_path):
    (tmp_path / "data.csv").write_text(f"s,a,s_next\n0,{EVIL},1\n", encoding="utf-8")
    text = said("collect", "FrozenLake-v1", "--need", 1, "--data", tmp_path / "data.csv", "--data-order", "collected")
    assert "\\x1b[31m[bold]evil" in text
    (tmp_path / "program.sh").write_text(f"echo '{EVIL}' >&2; exit 3\n", encoding="utf-8")
    assert "[bold]evil[/bold]" in said("collect", "--process", f"sh {tmp_path / 'program.sh'}", "--need", 1)


def test_styles_and_lines_of_our_own_stay():
    file = io.StringIO()
    console = Terminal(file=file, force_terminal=True, width=40, color_system="standard")
    console.print(f"[bold]ours[/] \\{EVIL}\nsecond line", highlight=False)
    table = Table(title="t")
    table.add_row("a\x1b[2Jb")
    console.print(table)
    text = file.getvalue()
    assert text.startswith("\x1b[1mours\x1b[0m ")
    assert "\nsecond line\n" in text
    assert "a\\x1b" in text


def test_texts():
    assert printable("a\tb\n\x07é") == "a\\tb\\n\\x07é"
    assert lines_printable("a\tb\nc") == "a\\tb\nc"
    assert brief("x" * 20, 20) == "x" * 20
    assert brief("x" * 2000, 3) == "xxx... (2,000 characters)"
