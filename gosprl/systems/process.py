"""Programs in any language as systems: they read requests and print answers, a line of JSON each (docs/protocol.md).

A program that exits, or is ended by a signal, instead of answering a step has crashed: that is what the pair led to
(`gosprl.CRASH`), and the next reset starts the program anew. A line that the protocol does not allow, and no answer in
time, are errors: nobody knows what they mean, so nothing is counted.

A program gets a seed at the first reset after its start, and after a new run has begun; other resets have none, so that
episodes differ. After a crash the seed is another one.
"""

import shlex
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from gosprl import _checks
from gosprl.errors import GosprlError, InputError
from gosprl.model.states import CRASH
from gosprl.systems import protocol
from gosprl.systems.base import Outcome
from gosprl.systems.child import Child, Ended
from gosprl.systems.observations import OBSERVATION, ByContent, Key
from gosprl.systems.protocol import Violation
from gosprl.systems.stepper import Stepper

T = TypeVar("T")

TIMEOUT = 30.0  # seconds
TRIES = 3  # starts, if the program exits before its first answer to a reset
MOST_SEEDS = 2**31


class Program:
    """A program with Gymnasium's `reset` and `step`; both raise `Ended` if it exits instead of answering.

    Parameters
    ----------
    command, log, cwd, env
        As of `Child`.
    timeouts
        Seconds for an answer to "hello", "reset" and "step".
    """

    def __init__(
        self,
        command: Sequence[str],
        timeouts: Mapping[str, float],
        log: Path | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._command, self._timeouts, self._how = list(command), timeouts, (log, cwd, env)
        self._child: Child | None = None
        self._requests = 0
        self._rng: np.random.Generator | None = None
        self._unseeded = True
        self.actions: Sequence[Any] = ()
        self.start()

    def seed(self, rng: np.random.Generator) -> None:
        """Draw seeds from this stream, the first one for the next reset."""
        self._rng, self._unseeded = rng, True

    def start(self) -> None:
        """Start the program and greet it."""
        self._child = Child(self._command, *self._how)
        self._finalizer = weakref.finalize(self, self._child.end)
        self._unseeded = True
        try:
            hello = self._ask({"type": "hello", "protocol": protocol.PROTOCOL}, protocol.hello_of)
        except Ended as error:
            raise GosprlError(f"expected an answer to hello, but {error}") from None
        if self.actions and list(hello.actions) != list(self.actions):
            self.close()
            raise Violation(f"actions: expected {list(self.actions)!r:.80} as before, got {list(hello.actions)!r:.80}")
        self.actions = hello.actions

    def reset(self) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, with a new process where there is none; the observation, and what is offered."""
        for left in reversed(range(TRIES)):
            if self._child is None:
                self.start()
            try:
                return self._ask({"type": "reset", **self._next_seed()}, self._begun)
            except Ended as error:
                if not left:
                    raise GosprlError(f"expected an answer to reset, but {error}, {TRIES} times in a row") from None
        raise AssertionError("the last try raises")

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        return self._ask({"type": "step", "action": action}, self._stepped)

    def close(self) -> None:
        """Ask the program to exit, and see to it."""
        child = self._child
        if child is not None:
            child.leave(protocol.line_of({"type": "close"}))
        self._end()

    def _next_seed(self) -> dict[str, int]:
        if self._rng is None or not self._unseeded:
            return {}
        self._unseeded = False
        return {"seed": int(self._rng.integers(MOST_SEEDS))}

    def _begun(self, answer: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return protocol.observation_of(answer), self._info(answer)

    def _stepped(self, answer: dict[str, Any]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        flags = protocol.flag_of(answer, "terminated"), protocol.flag_of(answer, "truncated")
        info = {} if flags[0] else self._info(answer)  # where an episode has ended, nothing is offered
        return protocol.observation_of(answer), protocol.reward_of(answer), *flags, info

    def _info(self, answer: dict[str, Any]) -> dict[str, Any]:
        offered = protocol.offered_of(answer, self.actions)
        if offered is None:
            return {}
        mask = np.zeros(len(self.actions), dtype=np.int8)
        mask[offered] = 1
        return {"action_mask": mask}

    def _ask(self, request: dict[str, Any], meaning: Callable[[dict[str, Any]], T]) -> T:
        """Return the meaning of the answer to a request. If there is none, the process is over."""
        child = self._child
        if child is None:
            raise GosprlError("the program is not running; reset it first")
        try:
            answer = self._answer(child, request)
            return meaning(answer)
        except Violation as error:
            self._end()
            raise Violation(f"line {child.lines} of its output: {error}{child.last_words()}") from None
        except GosprlError as error:
            self._end()
            raise GosprlError(f"{error}{child.last_words()}") from None
        except Ended as error:
            self._end()
            raise Ended(f"{error}{child.last_words()}") from None
        except BaseException:  # Ctrl-C, say: the answer may come yet, and must not be taken for that to another request
            self._end()
            raise

    def _answer(self, child: Child, request: dict[str, Any]) -> dict[str, Any]:
        if request["type"] != "hello" and (surplus := child.unasked()):
            child.lines += 1
            raise Violation(f"expected one line for each request, got another one: {protocol.shown(surplus)}")
        number, self._requests = self._requests, self._requests + 1
        child.write(protocol.line_of({**request, "id": number}))
        answer = protocol.message_of(child.read(self._timeouts[request["type"]]))
        protocol.check_id(answer, number)
        if "error" in answer:
            raise GosprlError(f"the program says: {answer['error']!s:.300}")
        return answer

    def _end(self) -> None:
        """End the process, if there is one."""
        child, self._child = self._child, None
        if child is not None:
            child.end()
            self._finalizer.detach()


class ByValue(ByContent):
    """Observations of programs, JSON values; needs call them by tuples, since lists cannot be keys of a dict."""

    def encode(self, observation: Any, info: Any = None) -> Hashable:
        """Return the key of an observation that was read."""
        return super().key_of(observation)

    def key_of(self, shown: Any) -> Hashable:
        """Return the key of an observation as a user writes it."""
        return super().key_of(protocol.as_read(shown))


class Process(Stepper):
    """A program that speaks the line protocol, as a system.

    Parameters
    ----------
    command
        The program and its arguments: a list, or a line that is split as a shell would; no shell runs.
    key
        A function (observation, info) -> hashable value, as in `gosprl.collect`. None: equal observations are one
        state. An observation is any JSON value.
    start_timeout, reset_timeout, step_timeout
        Seconds to answer in.
    log
        A file to which the program's standard error is appended.
    cwd, env
        The directory it runs in, and its environment; None: ours.

    Attributes
    ----------
    again
        A function that starts the same program once more.

    Raises
    ------
    InputError
        It cannot be started.
    GosprlError
        It does not answer as the protocol says.

    Examples
    --------
    >>> import gosprl
    >>> with gosprl.systems.Process("bash examples/processes/queue.sh") as queue:
    ...     gosprl.collect(queue, need=3, unseen=0.5, seed=0).met
    True
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        key: Key | None = None,
        start_timeout: float = TIMEOUT,
        reset_timeout: float = TIMEOUT,
        step_timeout: float = TIMEOUT,
        log: str | Path | None = None,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.command = words(command)
        timeouts_given = {"start_timeout": start_timeout, "reset_timeout": reset_timeout, "step_timeout": step_timeout}
        self.again = partial(Process, self.command, key=key, log=log, cwd=cwd, env=env, **timeouts_given)
        seconds = {name: _checks.positive(name, value) for name, value in timeouts_given.items()}
        timeouts = dict(zip(("hello", "reset", "step"), seconds.values(), strict=True))
        try:
            self._program = Program(self.command, timeouts, _path(log), _path(cwd), env)
        except GosprlError as error:
            raise type(error)(str(error) if isinstance(error, InputError) else f"{self._name()}: {error}") from None
        super().__init__(self._program, key, self._program.actions)
        if key is None:
            self.encoder = ByValue(OBSERVATION, one_type=False)
            self._encode = self.encoder.encode
        self.last_crash = ""  # how the program last ended

    def seed(self, rng: np.random.Generator) -> None:
        """Draw seeds from this stream."""
        self._program.seed(rng)

    def step(self, action: int) -> Outcome:
        """Take an action; if the program ends instead of answering, that is the outcome."""
        try:
            return super().step(action)
        except Ended as error:
            self.last_crash = str(error)
            return Outcome(CRASH, terminated=True)

    @property
    def name(self) -> str:
        """The command."""
        return shlex.join(self.command)

    def close(self) -> None:
        """End the program; a reset starts it again."""
        self._program.close()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _name(self) -> str:
        return f"process {Path(self.command[0]).name}"


def words(command: str | Sequence[str]) -> list[str]:
    """Return a program and its arguments, split as a shell would if they are one text."""
    try:
        found = shlex.split(command) if isinstance(command, str) else list(command)
    except (TypeError, ValueError) as error:
        raise InputError(f"process: expected a program and its arguments, got {command!r:.80}: {error}") from None
    if not found or not all(isinstance(word, str) for word in found) or not found[0]:
        raise InputError(f"process: expected a program and its arguments, got {command!r:.80}")
    return found


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)
