"""How requests come in and answers go out: on standard input and output, or on a local socket, for many clients.

One thread serves all clients, one line after the other. A client whose answers are not read is not listened to until
they are, and is sent away after a while, so that nobody has to wait for it.

Every local program reaches a port, also a browser on behalf of any web page: its requests begin with a line that is no
JSON object, and what follows would be lines of the page's choice. So the first line decides whether a client is heard.
Clients that say nothing are sent away after a while, too, and when there are many, the oldest makes room.
"""

import contextlib
import fcntl
import os
import select
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.serving.server import Server
from gosprl.systems.protocol import LONGEST, Violation, line_of, message_of

PIECE = 1 << 16  # bytes of a read
PATIENCE = 10.0  # seconds that a client may take to read an answer
SPEAK = 10.0  # seconds in which a client must have said its first line
MOST_CLIENTS = 500  # that have spoken, at a time
MOST_SILENT = 100  # that have not
ATOMIC = 4096  # bytes that a pipe with room takes without blocking
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
    """One client: what it has sent and is not answered yet, and what it has not read yet.

    Attributes
    ----------
    source, target
        File descriptors to read from and to write to.
    has_left
        Whether it will send no more, or asked to be let go.
    since
        When the answers began to wait that it has not read yet.
    came
        When it connected.
    has_spoken
        Whether its first line was a JSON object; a client on a pipe is believed.
    """

    def __init__(self, source: int, target: int, connection: socket.socket | None = None) -> None:
        self.source, self.target, self._connection = source, target, connection
        self.has_left, self.since = False, 0.0
        self.came, self.has_spoken = time.monotonic(), connection is None
        self._lines: list[bytes] = []  # the next one last
        self._buffer = b""
        self._too_long = False  # whether the line that is coming was answered already: it is too long
        self._answers = b""

    @property
    def is_behind(self) -> bool:
        """Whether there are answers that it has not read."""
        return bool(self._answers)

    def receive(self) -> None:
        """Read a piece of what it has sent."""
        try:
            piece = os.read(self.source, PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        *lines, self._buffer = (self._buffer + piece).split(b"\n")
        if lines and self._too_long:
            del lines[0]
            self._too_long = False
        lines = [line + b"\n" for line in lines]
        if len(self._buffer) > LONGEST and not self._too_long:
            self._too_long = True
            lines.append(self._buffer)  # its answer is that it is too long
        if self._too_long:
            self._buffer = b""
        self._lines = lines[::-1] + self._lines
        self.has_left = not piece

    def next_line(self) -> bytes | None:
        """Take out the first line that is not answered yet."""
        return self._lines.pop() if self._lines else None

    def listen_first(self) -> bool:
        """Judge the first line, if it is there; False if it is no JSON object."""
        if not self.has_spoken and self._lines:
            try:
                message_of(self._lines[-1])
            except Violation:
                return False
            self.has_spoken = True
        return True

    def dismiss(self) -> None:
        """Hear nothing more of it; it may still read."""
        self._lines.clear()
        self.has_left = True

    def send(self, answer: dict[str, Any]) -> bool:
        """Send an answer, or what can be sent of it now; False if it cannot be reached."""
        if not self._answers:
            self.since = time.monotonic()
        self._answers += line_of(answer)
        return self.send_rest()

    def send_rest(self) -> bool:
        """Send what it can take now of the answers that wait; False if it cannot be reached."""
        while self._answers and _is_writable(self.target):
            try:
                sent = os.write(self.target, self._answers[:ATOMIC])
            except BlockingIOError:
                break
            except OSError:
                return False
            self._answers, self.since = self._answers[sent:], time.monotonic()
        return True

    def close(self) -> None:
        """Close the connection, if it is one."""
        if self._connection is not None:
            self._connection.close()


def _is_writable(descriptor: int) -> bool:
    writable = select.poll()
    writable.register(descriptor, select.POLLOUT)
    return bool(writable.poll(0))


def serve_pipe(server: Server, source: int = 0, target: int = 1) -> int:
    """Serve one client on two file descriptors, until it closes them; it may have several walkers.

    Returns
    -------
    The signal that ended it, 0 if the client did.
    """
    clients = {source: Client(source, target)}
    with signals() as ears:
        try:
            while clients:
                _serve(server, clients, ears)
        except Stopped:
            pass
        return ears.heard


def serve_socket(
    server: Server, address: str, ready: Callable[[str], None] = lambda address: None, speak: float = SPEAK
) -> int:
    """Serve clients on a local socket, until all is done and they have left.

    Parameters
    ----------
    server
        Answers.
    address
        "127.0.0.1:PORT" (port 0: any that is free), or the path of a Unix socket, which only its owner may use.
    ready
        Called with the address, once clients can connect.
    speak
        Seconds in which a client must have said its first line; otherwise it is sent away.

    Returns
    -------
    The signal that ended it, 0 if everything was done.
    """
    speak = _checks.positive("speak", speak)
    clients: dict[int, Client] = {}
    with _listening(address) as (listener, name), signals() as ears:
        listener.setblocking(False)
        ready(name)
        try:
            while clients or not server.done:
                _serve(server, clients, ears, listener, speak)
        except Stopped:
            pass
        finally:
            for client in clients.values():
                client.close()
        return ears.heard


def _serve(
    server: Server,
    clients: dict[int, Client],
    ears: Signals,
    listener: socket.socket | None = None,
    speak: float = SPEAK,
) -> None:
    """Wait until something comes, or can be sent, and answer; clients that left are taken out."""
    waited = select.poll()
    for client in clients.values():
        waited.register(*((client.target, select.POLLOUT) if client.is_behind else (client.source, select.POLLIN)))
    if listener is not None:
        waited.register(listener, select.POLLIN)
    ends = [end for client in clients.values() if (end := _end_of_patience(client, speak)) is not None]
    seconds = None if not ends else max(0.0, min(ends) - time.monotonic())
    with ears.waiting():
        events = waited.poll(None if seconds is None else 1000 * seconds + 1)
    ready = {descriptor for descriptor, _ in events}
    for client in list(clients.values()):
        if not _attend(server, client, ready, speak):
            _part(server, clients, client)
    if listener is not None and listener.fileno() in ready:
        _welcome(server, listener, clients)


def _end_of_patience(client: Client, speak: float) -> float | None:
    """Return when a client is sent away if nothing comes from it; None: never."""
    if client.is_behind:
        return client.since + PATIENCE
    return None if client.has_spoken else client.came + speak


def _attend(server: Server, client: Client, ready: set[int], speak: float) -> bool:
    """Answer what a client has sent; False if it has left, does not read its answers, or is none of ours."""
    end = _end_of_patience(client, speak)
    if client.is_behind:
        if client.target not in ready:
            return end is None or time.monotonic() < end
        if not client.send_rest():
            return False
    elif client.source in ready:
        client.receive()
    if not client.listen_first():
        client.send({"error": "the first line is no JSON object; docs/protocol.md says what a client sends"})
        return False
    if not client.has_spoken and end is not None and time.monotonic() >= end:
        return False
    while not client.is_behind and (line := client.next_line()) is not None:
        answer = server.answer(line, client)
        if "closed" in answer:
            client.dismiss()
        if not client.send(answer):
            return False
    return client.is_behind or not client.has_left


def _part(server: Server, clients: dict[int, Client], client: Client) -> None:
    """Let a client go."""
    del clients[client.source]
    server.leave(client)
    client.close()


def _welcome(server: Server, listener: socket.socket, clients: dict[int, Client]) -> None:
    """Take in a client that wants to connect; where many say nothing, the oldest of them makes room."""
    with contextlib.suppress(OSError):
        connection, _ = listener.accept()
        connection.setblocking(False)
        client = Client(connection.fileno(), connection.fileno(), connection)
        silent = [other for other in clients.values() if not other.has_spoken]
        if len(clients) - len(silent) >= MOST_CLIENTS:
            client.send({"error": f"{MOST_CLIENTS} clients are being served, no more at a time; try again later"})
            client.close()
            return
        if len(silent) >= MOST_SILENT:
            _part(server, clients, silent[0])  # they are in the order in which they came
        clients[client.source] = client


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
        own = _identity(path)
        try:
            yield listener, str(path)
        finally:
            if _identity(path) == own:  # another server may have replaced it
                path.unlink(missing_ok=True)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


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
        with _alone_in(path.parent):  # two that begin at once would each find that nobody listens yet
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


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other servers from looking for sockets in a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
