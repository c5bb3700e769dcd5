"""What documentation says, read so that tests can hold it to it: blocks of code, commands, constants in comments."""

import ast
import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas
import typer
from typer.testing import CliRunner

import gosprl
from gosprl.cli import shared
from gosprl.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "examples/README.md",
]
LONG = json.loads((Path(__file__).parent / "data" / "long_commands.json").read_text())
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
CONSTANT = re.compile(r"^(True|False|-?[\d,]+(\.\d+)?|\"[^\"]*\")(?=$|[,;: ])")
COMMANDS = typer.main.get_command(app).commands


def blocks(page):
    """(language, text) of each block of code."""
    return BLOCK.findall(page.read_text())


def commands(text):
    """The commands in a block, without comments; lines that end with a backslash go on."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line.partition("  #")[0].strip() for line in lines if re.match(r"(gosprl|python|make|pip)\b", line)]


def all_commands():
    """Every command of every page, each once."""
    shells = (text for page in PAGES for language, text in blocks(page) if language in ("", "bash"))
    return sorted({command for text in shells for command in commands(text)})


def promised(comment):
    """The constants that a comment begins with, as values: "True, 3351, "met"" gives three; so does a tuple."""
    rest = comment.strip()
    if rest[:1] in ("(", "[") or rest[:1] == "'":
        with contextlib.suppress(ValueError, SyntaxError):
            return [ast.literal_eval(rest)]
    values = []
    while match := CONSTANT.match(rest):
        text = match.group(1)
        if text[0] in '"TF':
            values.append(ast.literal_eval(text))
        else:
            values.append(float(text.rstrip(",").replace(",", "")))
        rest = rest[match.end() :]
        if not rest.startswith(", "):
            break
        rest = rest[2:]
    return values


def check(values, got, line):
    """Compare what an expression gave with the constants behind it."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        assert got == values[0], f"{line}: {got!r}"
        return
    got = got if isinstance(got, tuple) and len(values) > 1 else (got,)
    assert len(got) >= len(values), line
    for expected, value in zip(values, got, strict=False):
        if isinstance(expected, (bool, str)):
            assert value == expected, f"{line}: {value!r}"
        else:  # as many digits as are printed
            near = f"{float(value):.4g}" == f"{expected:.4g}" or abs(value - expected) <= 0.05 * abs(expected)
            assert near, f"{line}: {value!r}"


def run(code, scope):
    """Execute a block statement by statement; compare what expressions give with the comment behind them."""
    lines = code.splitlines()
    for node in ast.parse(code).body:
        comment = lines[node.end_lineno - 1][node.end_col_offset :].partition("#")[2]
        if not isinstance(node, ast.Expr):
            exec(compile(ast.Module([node], []), "<block>", "exec"), scope)
            continue
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            value = eval(compile(ast.Expression(node.value), "<block>", "eval"), scope)
        if lines[node.lineno - 1].startswith("print("):
            assert text.getvalue().strip() == comment.strip() or not comment, lines[node.lineno - 1]
        elif values := promised(comment):
            check(values, value, lines[node.lineno - 1])


def furnish(folder):
    """Make the files that examples take for granted: samples, a model, a program, the examples of the repository."""
    river = gosprl.envs.make("riverswim6")
    (folder / "examples").symlink_to(ROOT / "examples")
    np.save(folder / "means.npy", np.linspace(0.1, 0.9, 6))
    for seed, name in enumerate(("a.csv", "b.csv", "samples.parquet")):
        result = gosprl.collect(river, need=3, seed=seed)
        s, a, s_next, count = result.model.transitions()
        table = pandas.DataFrame({"state": s, "action": a, "next_state": s_next}).loc[
            np.repeat(np.arange(len(s)), count)
        ]
        table.to_csv(folder / name, index=False) if name.endswith("csv") else table.to_parquet(folder / name)
    (folder / "transitions.csv").write_text("state,action,next_state\n0,1,2\n2,0,0\n")
    for name in ("known.drn", "model.drn"):
        river.to_drn(folder / name)
    simulator = folder / "simulator"
    simulator.write_text((ROOT / "examples/processes/queue.sh").read_text())
    simulator.chmod(0o755)


def invoke(command):
    """The outcome of a command `gosprl ...`, in this process."""
    shared.out.file, shared.err.file = None, None  # consoles would remember the streams of an earlier test
    return CliRunner().invoke(app, shlex.split(command)[1:])


def problem(command):
    """What is wrong with a command as it is written: a verb or an option that does not exist; else None."""
    program, *arguments = shlex.split(command)
    verbs = [word for word in arguments if not word.startswith("-")]
    if program != "gosprl" or not verbs:
        return None
    if verbs[0] not in COMMANDS:
        return f"{verbs[0]} is no verb"
    known = {name for each in COMMANDS[verbs[0]].params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
    unknown = [word for word in arguments if word.startswith("--") and word.partition("=")[0] not in known]
    return f"{unknown[0]} is not an option of {verbs[0]}" if unknown else None
