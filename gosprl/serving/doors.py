"""How requests come in and answers go out: on standard input and output, or on a local socket, one client at a time."""

import contextlib
import os
import select
import signal
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from gosprl.errors import InputError
from gosprl.serving.server import Server
from gosprl.systems.protocol import LONGEST, line_of

PIECE = 1 << 16  # bytes of a read
PATIENCE = 10_000  # milliseconds that a client may take to read an answer
MOST_PORT = 65535
LOCAL = ("127.0.0.1", "localhost", "::1")


class Stopped(Exception):
    """A signal asked for the end."""


class Signals:
    """Hears Ctrl-C and SIGTERM, and ends a wait at once; never in the middle of an answer."""

    def __init__(self) -> None:
        self.heard = 0
        self._waiting = False

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Note a signal."""
        self.heard = number
        if self._waiting:
            self._waiting = False
            raise Stopped

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Let a signal interrupt what is done here."""
        self._waiting = True
        try:
            if self.heard:
                raise Stopped
            yield
        finally:
            self._waiting = False


@contextlib.contextmanager
def signals() -> Iterator[Signals]:
    """Hear signals, if this is the main thread; afterwards everything is as before."""
    ears = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield ears
        return
    before = {number: signal.signal(number, ears.hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ears
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Client:
    """One client: what it has sent and not yet ended with a line, and where answers go."""

    def __init__(self, source: int, target: int) -> None:
        self.source, self._target = source, target
        self._buffer = b""
        self._too_long = False  # whether the line that is coming was answered already: it is too long

    def requests(self) -> Iterator[bytes]:
        """Yield the lines that have come; ends with an empty one when there will be no more."""
        try:
            piece = os.read(self.source, PIECE)
        except OSError:
            piece = b""
        *lines, self._buffer = (self._buffer + piece).split(b"\n")
        if lines and self._too_long:
            del lines[0]
            self._too_long = False
        yield from (line + b"\n" for line in lines)
        if len(self._buffer) > LONGEST and not self._too_long:
            self._too_long = True
            yield self._buffer  # its answer is that it is too long
        if self._too_long:
            self._buffer = b""
        if not piece:
            yield b""

    def send(self, answer: dict[str, Any]) -> bool:
        """Send an answer; False if the client does not read it."""
        left = line_of(answer)
        writable = select.poll()
        writable.register(self._target, select.POLLOUT)
        while left:
            if not writable.poll(PATIENCE):
                return False
            try:
                left = left[os.write(self._target, left) :]
            except OSError:
                return False
        return True


def serve_pipe(server: Server, source: int = 0, target: int = 1) -> int:
    """Serve one client on two file descriptors, until it closes them.

    Returns
    -------
    The signal that ended it, 0 if the client did.
    """
    client = Client(source, target)
    with signals() as ears:
        try:
            while _serve(server, client, ears):
                pass
        except Stopped:
            pass
        return ears.heard


def serve_socket(server: Server, address: str, ready: Callable[[str], None] = lambda address: None) -> int:
    """Serve clients on a local socket, one at a time, until all is done and the client has left.

    Parameters
    ----------
    server
        Answers.
    address
        "127.0.0.1:PORT" (port 0: any that is free), or the path of a Unix socket, which only its owner may use.
    ready
        Called with the address, once clients can connect.

    Returns
    -------
    The signal that ended it, 0 if everything was done.
    """
    with _listening(address) as (listener, name), signals() as ears:
        ready(name)
        try:
            while not server.done:
                with ears.waiting():
                    connection, _ = listener.accept()
                with connection:
                    connection.setblocking(False)
                    client = Client(connection.fileno(), connection.fileno())
                    while _serve(server, client, ears, listener):
                        pass
        except Stopped:
            pass
        return ears.heard


def _serve(server: Server, client: Client, ears: Signals, listener: socket.socket | None = None) -> bool:
    """Wait for lines and answer them; False if the client has left, or is sent away. Others are told to wait."""
    waited = select.poll()
    waited.register(client.source, select.POLLIN)
    if listener is not None:
        waited.register(listener, select.POLLIN)
    with ears.waiting():
        events = waited.poll()
    ready = {descriptor for descriptor, _ in events}
    if client.source in ready:  # first: that it has left may be what it says
        return _answer(server, client)
    if listener is not None:
        _refuse(listener)
    return True


def _answer(server: Server, client: Client) -> bool:
    """Answer the lines that have come; False if the client has left."""
    for line in client.requests():
        if not line:
            return False
        answer = server.answer(line)
        if not client.send(answer) or "closed" in answer:
            return False
    return True


def _refuse(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        second, _ = listener.accept()
        with second:
            second.settimeout(1)
            second.sendall(line_of({"error": "another client is being served; only one at a time, try again later"}))


@contextlib.contextmanager
def _listening(address: str) -> Iterator[tuple[socket.socket, str]]:
    """Open a socket to listen on; its address as clients need it."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit() and "/" not in address:
        with _tcp(host, int(port)) as listener:
            yield listener, f"{host}:{listener.getsockname()[1]}"
        return
    if address.isdigit():
        raise InputError(
            f"socket: expected 127.0.0.1:PORT or a path, got {address}; say 127.0.0.1:{address} or ./{address}"
        )
    path = Path(address)
    with _unix(path) as listener:
        try:
            yield listener, str(path)
        finally:
            path.unlink(missing_ok=True)


def _tcp(host: str, port: int) -> socket.socket:
    if host not in LOCAL or port > MOST_PORT:
        raise InputError(f"socket: expected 127.0.0.1:PORT or a path, got {host}:{port}; other machines are not served")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise InputError(
            f"socket: {host}:{port} cannot be listened on: {error}; port 0 takes any that is free"
        ) from None


def _unix(path: Path) -> socket.socket:
    """Listen on a path. A socket that nobody listens on any more is replaced; nothing else is."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        if path.exists() and stat.S_ISSOCK(path.stat().st_mode) and not _is_served(path):
            path.unlink()
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen()
    except OSError as error:
        listener.close()
        raise InputError(f"socket: {path} cannot be listened on: {error}; give another path") from None
    return listener


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(1)
        try:
            caller.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
        return True
