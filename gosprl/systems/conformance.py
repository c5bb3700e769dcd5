"""Whether a program keeps to the line protocol: a walk that looks at every line, and notes what is wrong with it.

The walk greets the program, resets it, takes random actions that are offered, and resets it where episodes end. It also
does what an author may not think of: requests with names that the program does not know, a request of an unknown
type, the same seed again, and the farewell. After a line that cannot be read the program is started anew, a few times.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gosprl.errors import GosprlError
from gosprl.systems import protocol
from gosprl.systems.child import Child, Ended
from gosprl.systems.protocol import Violation

MOST_STARTS = 5
REPEATED = 50  # steps that are made twice, with the same seed
STRANGER: dict[str, Any] = {"weather": {"sunny": True}}  # a name that no program knows


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be."""

    line: int  # of the program's output since its start; 0: it is about no line
    request: str  # what was asked
    text: str  # the beginning of the line
    what: str  # what was expected
    violation: bool = True  # False: the protocol allows it, but it is worth knowing

    def __str__(self) -> str:
        where = f"line {self.line}, answer to {self.request}" if self.line else self.request
        return f"{where}: {self.what}" + (f"; the line is {self.text}" if self.text else "")


@dataclass(frozen=True)
class Report:
    """What the walk found."""

    findings: tuple[Finding, ...]
    steps: int
    resets: int
    starts: int

    @property
    def conforms(self) -> bool:
        """Whether no rule was broken."""
        return not any(finding.violation for finding in self.findings)


class _Lost(Exception):
    """The program cannot be asked any more; the finding is noted."""


class Checker:
    """Asks a program, and notes what is wrong with its answers."""

    def __init__(self, command: Sequence[str], timeout: float, log: Path | None = None) -> None:
        self._command, self._timeout, self._log = command, timeout, log
        self._child: Child | None = None
        self.actions: Sequence[Any] = ()
        self.findings: list[Finding] = []
        self.steps = self.resets = self.starts = self._requests = 0
        self._ids = True  # whether every answer had the number of its request

    def start(self) -> None:
        """Start the program and greet it."""
        self.end()
        self.starts += 1
        self._child = Child(self._command, self._log)
        answer = self._ask({"type": "hello", "protocol": protocol.PROTOCOL})
        hello = self._noted("hello", answer, protocol.hello_of)
        if hello is None:
            raise _Lost
        if self.actions and list(hello.actions) != list(self.actions):
            self._note(
                "hello", f"actions: expected {list(self.actions)!r:.60} as before, got {list(hello.actions)!r:.60}"
            )
        self.actions = hello.actions

    def reset(self, seed: int | None = None, **more: Any) -> tuple[Any, list[int]]:
        """Begin an episode; (observation, indices of the actions offered)."""
        given = {} if seed is None else {"seed": seed}
        answer = self._ask({"type": "reset", **given, **more})
        self.resets += 1
        return self._noted("reset", answer, protocol.observation_of), self._offered("reset", answer)

    def step(self, action: int, **more: Any) -> tuple[Any, list[int], bool]:
        """Take an action; (observation, indices of the actions offered, whether the episode is over)."""
        answer = self._ask({"type": "step", "action": self.actions[action], **more})
        self.steps += 1
        self._noted("step", answer, protocol.reward_of)
        flags = [
            self._noted("step", answer, lambda said, name=name: protocol.flag_of(said, name))  # type: ignore[misc]
            for name in ("terminated", "truncated")
        ]
        over = any(flags)
        offered = [] if flags[0] else self._offered("step", answer)
        return self._noted("step", answer, protocol.observation_of), offered, over

    def ask_nonsense(self) -> None:
        """Send a request of an unknown type: the answer must be an error, and nothing else happens."""
        answer = self._ask({"type": "sing"}, may_fail=True)
        if "error" not in answer:
            self._note("a request of an unknown type", 'expected {"error": ...}', protocol.line_of(answer))

    def farewell(self) -> None:
        """Ask the program to exit."""
        if self._child is None:
            return
        if surplus := self._child.unasked():
            self._note("the last request", "expected one line for each request, got another one", surplus)
        how = self._child.leave(protocol.line_of({"type": "close"}))
        if how != "it exited with status 0":
            self._note("close", f"expected it to exit with status 0, but {how}", about_line=False)
        self._child = None

    def end(self) -> None:
        """End the program."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def advise(self, what: str) -> None:
        """Note what is allowed, but worth knowing."""
        self.findings.append(Finding(0, "in general", "", what, violation=False))

    def report(self) -> Report:
        """Return everything that was found."""
        if not self._ids and self.steps:
            self.advise(
                'answers do not repeat the "id" of the request; with it, answers that come late or twice are noticed'
            )
        return Report(tuple(self.findings), self.steps, self.resets, self.starts)

    def _offered(self, kind: str, answer: dict[str, Any]) -> list[int]:
        offered = self._noted(kind, answer, lambda said: protocol.offered_of(said, self.actions))
        return list(range(len(self.actions))) if offered is None else offered

    def _ask(self, request: dict[str, Any], may_fail: bool = False) -> dict[str, Any]:
        child, kind = self._child, request["type"]
        assert child is not None
        number, self._requests = self._requests, self._requests + 1
        line = b""
        try:
            if kind != "hello" and (surplus := child.unasked()):
                child.lines += 1
                line = surplus
                raise Violation("expected one line for each request, got another one")
            child.write(protocol.line_of({**request, "id": number}))
            line = child.read(self._timeout)
            answer = protocol.message_of(line)
        except Ended as error:  # a crash is an outcome of a step, and of nothing else
            self._note(kind, str(error), about_line=False, violation=kind != "step")
            raise _Lost from None
        except GosprlError as error:
            self._note(kind, str(error), line, about_line=bool(line))
            raise _Lost from None
        self._noted(kind, answer, lambda said: protocol.check_id(said, number))
        self._ids = self._ids and "id" in answer
        if "error" in answer and not may_fail:
            self._note(kind, f"expected an answer, got an error: {answer['error']!s:.200}", line)
            raise _Lost
        return answer

    def _noted(self, kind: str, answer: dict[str, Any], meaning: Callable[[dict[str, Any]], Any]) -> Any:
        """Return the meaning of an answer; None, and a finding, if it has none."""
        try:
            return meaning(answer)
        except GosprlError as error:
            self._note(kind, str(error), protocol.line_of(answer))
            return None

    def _note(
        self, kind: str, what: str, line: bytes = b"", *, about_line: bool = True, violation: bool = True
    ) -> None:
        lines = self._child.lines if self._child is not None and about_line else 0
        self.findings.append(Finding(lines, kind, protocol.shown(line) if line else "", what, violation))


def check_program(
    command: Sequence[str], steps: int = 200, seed: int = 0, timeout: float = 30.0, log: Path | None = None
) -> Report:
    """Walk a program for some steps, and report every rule of the protocol that it breaks.

    Parameters
    ----------
    command
        The program and its arguments.
    steps
        Steps to make.
    seed
        Of the actions, and of the program.
    timeout
        Seconds for an answer.
    log
        A file to which standard error is appended.
    """
    checker, draw = Checker(command, timeout, log), random.Random(seed)
    try:
        while checker.steps < steps and checker.starts < MOST_STARTS:
            try:
                checker.start()
                for _ in _walk(checker, draw, seed):
                    if checker.steps >= steps:
                        break
                checker.ask_nonsense()
                _, offered = checker.reset(None, **STRANGER)
                checker.step(offered[0], **STRANGER)
                _compare_seeds(checker, seed)
                checker.farewell()
            except _Lost:
                if not checker.actions:  # there is nothing to walk on
                    break
        return checker.report()
    finally:
        checker.end()


def _walk(checker: Checker, draw: random.Random, seed: int | None) -> Iterator[Any]:
    """Walk by random actions; yields what is observed, for as long as somebody listens."""
    observation, offered = checker.reset(seed)
    yield observation
    while True:
        observation, offered, over = checker.step(draw.choice(offered))
        yield observation
        if over:
            observation, offered = checker.reset()
            yield observation


def _compare_seeds(checker: Checker, seed: int) -> None:
    """Note if the same seed and the same actions do not lead to the same observations."""
    walks = []
    for _ in range(2):
        walk = _walk(checker, random.Random(seed), seed)
        walks.append([next(walk) for _ in range(REPEATED)])
    if walks[0] != walks[1]:
        checker.advise("the same seed and the same actions lead to other observations; runs cannot be repeated")
