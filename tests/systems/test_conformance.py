"""The checker for authors of programs: finds what is wrong, and nothing where nothing is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gosprl import InputError
from gosprl.systems.conformance import check_program

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "processes"

# A ring of 3; what it does differently is written between its lines.
RING = """
import json, random, sys
s = 0
for line in sys.stdin:
    request = json.loads(line)
    kind = request["type"]
    if kind == "close":
        {close}
        break
    if kind == "hello":
        answer = {{"type": "hello", "protocol": 1, "actions": 2}}
    elif kind == "reset":
        s = 0
        answer = {{"observation": s}}
    elif kind == "step":
        s = (s + (1 if request["action"] else -1)) % 3
        answer = {{"observation": s, "reward": 0.5, "terminated": s == 2}}
    else:
        answer = {{"error": "what is " + kind}}
    answer["id"] = request["id"]
    {change}
    print(json.dumps(answer), flush=True)
"""


def ring(change="pass", close="pass"):
    return check_program([sys.executable, "-c", RING.format(change=change, close=close)], steps=60, timeout=5)


def test_nothing_is_found_where_nothing_is_wrong(tmp_path):
    subprocess.run(["gcc", "-o", tmp_path / "grid", EXAMPLES / "grid.c"], check=True)
    directories = [sys.executable, str(EXAMPLES / "directories.py")]
    for command in ([str(tmp_path / "grid")], ["bash", str(EXAMPLES / "queue.sh")], directories):
        report = check_program(command, steps=60)
        assert report.findings == ()
        assert report.conforms
        assert report.steps >= 60
    assert ring().findings == ()


@pytest.mark.parametrize(
    ("change", "line", "request_", "words"),
    [
        ("answer['reward'] = 'much'", 1, "step", 'reward: expected a finite number, got "much"'),
        ("answer['terminated'] = 0", 1, "step", "terminated: expected true or false, got 0"),
        ("answer['truncated'] = None", 1, "step", "truncated: expected true or false, got null"),
        ("answer['actions'] = [5]", 0, "reset", "actions: expected some of [0, 1], got 5"),
        ("answer['id'] += 1", -1, "hello", "id: expected 0"),
        ("answer.pop('observation', 0)", 0, "reset", "observation: expected any JSON value"),
    ],
)
def test_every_violation_is_reported_with_its_line(change, line, request_, words):
    """Lines are hello, reset, step, ...: the first wrong one is the first that has such a field."""
    report = ring(change if request_ != "step" else f"if kind == 'step': {change}")
    if request_ == "reset" and "actions" in change:
        report = ring(f"if kind != 'hello': {change}")
    first = report.findings[0]
    assert not report.conforms
    assert (first.line, first.request) == (line + 2, request_)
    assert words in first.what
    if request_ == "step":
        assert len(report.findings) >= 60  # it goes on, and reports all of them
        assert [finding.line for finding in report.findings[:1]] == [3]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            "if kind == 'sing': answer = {'ok': 1, 'id': request['id']}",
            'a request of an unknown type: expected {"error"',
        ),
        ("if kind == 'sing': sys.exit(1)", "sing: it exited with status 1"),
        ("if 'weather' in request: sys.exit(1)", "reset: it exited with status 1"),
        ("print('hello!', flush=True)", "line 1, answer to hello: expected a JSON object, got 'hello!'"),
        ("if kind == 'step': print(json.dumps(answer))", "expected one line for each request, got another one"),
    ],
)
def test_other_violations(change, words):
    report = ring(change)
    assert not report.conforms
    assert any(words in str(finding) for finding in report.findings)


def test_it_must_exit_when_asked_to():
    late = "import time; time.sleep(9)"
    assert [finding.what for finding in ring(close=late).findings] == [
        "expected it to exit with status 0, but it still ran after 1 s"
    ]
    assert "but it exited with status 3" in ring(close="sys.exit(3)").findings[0].what


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("del answer['id']", 'answers do not repeat the "id"'),
        ("if kind == 'step': s = answer['observation'] = random.randrange(3)", "runs cannot be repeated"),
        ("if kind == 'step' and s == 1: sys.exit(4)", "step: it exited with status 4"),
    ],
)
def test_what_is_allowed_but_worth_knowing(change, words):
    report = ring(change)
    assert report.conforms
    assert any(words in str(finding) for finding in report.findings)
    assert not any(finding.violation for finding in report.findings)


def test_a_program_that_does_not_greet_is_started_once():
    report = check_program(["true"])
    assert (report.starts, report.conforms) == (1, False)
    assert json.dumps([str(finding) for finding in report.findings]) == '["hello: it exited with status 0"]'
    with pytest.raises(InputError, match="process: expected a program that can be started"):
        check_program(["./nowhere"])
