"""Every Python block of the README, of docs/ and of CONTRIBUTING.md runs, file by file, from top to bottom.

A comment behind an expression says what it gives: `result.steps  # 3309`. Where that begins with a number, True or
False, or a text in quotes, it is compared. Blocks of commands are checked against `--help` of each verb.
"""

import ast
import contextlib
import io
import re
import shlex
import sys
import warnings
from pathlib import Path

import pytest
import warmed

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "examples/README.md",
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
CONSTANT = re.compile(r"^(True|False|-?[\d,]+(\.\d+)?|\"[^\"]*\")(?=$|[,;: ])")


def blocks(page, language):
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


def promised(comment):
    """The constants that a comment begins with, as values: "True, 3309, "met"" gives three."""
    values, rest = [], comment.strip()
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
    got = got if isinstance(got, tuple) and len(values) > 1 else (got,)
    assert len(got) >= len(values), line
    for expected, value in zip(values, got, strict=False):
        if isinstance(expected, (bool, str)):
            assert value == expected, line
        else:  # as many digits as are printed
            assert f"{float(value):.4g}" == f"{expected:.4g}" or abs(value - expected) <= 0.05 * abs(expected), line


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


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_blocks_run_and_give_what_they_say(page):
    scope = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks(page, "python"):
            run(block, scope)


def commands():
    """The commands `gosprl ...` in blocks, without their comments."""
    found = []
    for page in PAGES:
        for block in blocks(page, "") + blocks(page, "bash"):
            found += [line.partition("#")[0].strip() for line in block.splitlines() if line.startswith("gosprl ")]
    return sorted(set(found))


@pytest.mark.parametrize("command", commands())
def test_options_in_commands_exist(command):
    verb, *arguments = shlex.split(command)[1:]
    code = "from gosprl.cli import main; main()"
    done = warmed.run([sys.executable, "-c", code, verb, "--help"], capture_output=True, text=True, check=True)
    for option in (word for word in arguments if word.startswith("--")):
        assert option in done.stdout, f"{command}: {option} is not an option of {verb}"


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_wrong_comments_are_found_out():
    with pytest.raises(AssertionError):
        run("1 + 1  # 3", {})
    with pytest.raises(AssertionError):
        run('("a", 2)  # "b", 2', {})
    run("(True, 2000)  # True, 2,000: and words", {})
