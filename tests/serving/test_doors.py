"""Servers on pipes and sockets: clients come and go, what was collected stays."""

import contextlib
import json
import os
import signal
import socket
import stat
import threading
import time

import pytest
from serving_client import Caller, walk

import gosprl
from gosprl import InputError
from gosprl.serving import Server, serve_pipe, serve_socket


def server(need=3):
    return Server(lambda count: gosprl.Collector(None, count, need, seed=0), range(2))


@pytest.fixture(params=["port", "path"])
def served(request, tmp_path):
    """(server, address, thread that serves)."""
    told, ready, address = server(), threading.Event(), []

    def say(name):
        address.append(name)
        ready.set()

    where = "127.0.0.1:0" if request.param == "port" else str(tmp_path / "door")
    thread = threading.Thread(daemon=True, target=serve_socket, args=(told, where, say))
    thread.start()
    assert ready.wait(600)
    yield told, address[0], thread
    thread.join(0.3)
    if thread.is_alive():  # not everything is done: let it end
        with Caller(address[0]) as last:
            walk(last)
        thread.join(600)
    assert not thread.is_alive()


def test_a_client_walks_until_all_is_done(served):
    told, address, thread = served
    with Caller(address) as client:
        walk(client)
    thread.join(600)
    assert not thread.is_alive()
    assert told.result().met
    assert told.result().counts.shape == (4, 2)


def asked(address):
    """What a client that comes and goes is told."""
    with Caller(address) as client:
        return client.call(type="ask", observation=0)


def test_what_was_collected_outlives_a_client(served):
    told, address, _ = served
    with Caller(address) as client:
        first = client.call(type="ask", observation=0)
    while "belongs to another client" in str(again := asked(address)):  # until the server has seen it leave
        pass
    assert again == first
    with Caller(address) as client:
        assert client.call(type="ask", observation=0) == first
        assert client.call(type="tell", observation=1)["ok"]
        client.send(b'{"type": "ask", "obs')  # cut off in the middle of a line
    with Caller(address) as client:
        steps = client.call(type="result")["steps"]
        assert steps == 1
        walk(client)
    assert told.result().met


def test_clients_are_served_side_by_side(served):
    told, address, _ = served
    with Caller(address) as first, Caller(address) as second:
        assert "action" in first.call(type="ask", observation=0, walker="a")
        assert "action" in second.call(type="ask", observation=2, walker="b")
        assert "belongs to another client" in second.call(type="ask", observation=0, walker="a")["error"]
        assert second.call(type="tell", observation=1, walker="b")["ok"]
        assert first.call(type="tell", observation=1, walker="a")["ok"]
        assert first.call(type="close") == {"ok": True, "closed": True}
        assert first.file.readline() == b""
        assert "action" in second.call(type="ask", observation=1, walker="a")  # nobody else's any more
        assert second.call(type="result")["steps"] == 2
    assert told.result().steps >= 2


def test_a_client_that_leaves_in_the_middle_is_not_waited_for(served):
    told, address, _ = served
    with Caller(address) as second:
        with Caller(address) as first:
            first.call(type="ask", observation=0, walker="a")
            assert "action" in second.call(type="ask", observation=0, walker="b")
        second.call(type="tell", observation=1, walker="b")
        walk(second, state=1, walker="b")
    assert told.result().met
    assert told.collector.model.unknown.sum() == 1


def test_a_client_that_does_not_read_delays_nobody(served, monkeypatch):
    monkeypatch.setattr("gosprl.serving.doors.PATIENCE", 1e6)  # whoever waits for it waits for ever
    told, address, _ = served
    with Caller(address) as deaf, Caller(address) as other:
        line = b'{"type": "dance", "id": "' + b"x" * 60_000 + b'"}\n'
        deaf.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(1000):  # until no room is left on the way there and back
                deaf.socket.send(line)
        assert "action" in other.call(type="ask", observation=0, walker="b")
        assert other.call(type="tell", observation=1, walker="b")["ok"]
        walk(other, state=1, walker="b")
    assert told.result().met


def test_no_more_clients_than_can_be_served(served, monkeypatch):
    monkeypatch.setattr("gosprl.serving.doors.MOST_CLIENTS", 1)
    _, address, _ = served
    with Caller(address) as first:
        first.call(type="result")
        with Caller(address) as second:
            assert "1 clients are being served" in second.receive()["error"]
            assert second.file.readline() == b""
        assert "action" in first.call(type="ask", observation=0)


def test_web_pages_are_not_heard(served):
    """A browser sends what a page wants, but not before the lines of a request."""
    told, address, _ = served
    lines = b'{"type": "ask", "observation": 0}\n{"type": "tell", "observation": 1}\n'
    for request in (
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: 70\r\n\r\n" + lines,
        b"\n" + lines,
        b"[1]\n" + lines,
        b"\x16\x03\x01\n" + lines,
        b"x" * 1_100_000 + b"\n" + lines,
    ):
        with Caller(address) as page:
            with contextlib.suppress(ConnectionError):  # it is left before it has said all
                page.send(request)
            with contextlib.suppress(ConnectionError):
                assert "no JSON object" in page.receive()["error"]
                assert page.file.read() == b""
    assert told.result().steps == 0
    with Caller(address) as client:
        assert "action" in client.call(type="ask", observation=0)


def test_clients_that_say_nothing_are_sent_away(tmp_path):
    """Each reads until the server closes; one that spoke stays."""
    told, address = server(), []
    ready = threading.Event()
    thread = threading.Thread(
        daemon=True,
        target=serve_socket,
        args=(told, "127.0.0.1:0", lambda name: (address.append(name), ready.set()), 0.2),
    )
    thread.start()
    assert ready.wait(600)
    with Caller(address[0]) as speaker, Caller(address[0]) as half, Caller(address[0]) as silent:
        assert "action" in speaker.call(type="ask", observation=0)
        half.send(b'{"type": "ask"')
        assert half.file.read() == b""
        assert silent.file.read() == b""
        assert speaker.call(type="tell", observation=1)["ok"]
        walk(speaker, state=1)
    thread.join(600)
    assert not thread.is_alive()


def test_silent_clients_lock_nobody_out(served, monkeypatch):
    """The oldest of those that say nothing makes room; those that have spoken do not count."""
    monkeypatch.setattr("gosprl.serving.doors.MOST_SILENT", 5)
    monkeypatch.setattr("gosprl.serving.doors.MOST_CLIENTS", 7)
    _, address, _ = served
    with contextlib.ExitStack() as stack:
        speaker = stack.enter_context(Caller(address))
        assert "action" in speaker.call(type="ask", observation=0, walker="a")
        silent = [stack.enter_context(Caller(address)) for _ in range(20)]
        assert [caller.file.read() for caller in silent[:14]] == [b""] * 14
        other = stack.enter_context(Caller(address))
        assert "action" in other.call(type="ask", observation=0, walker="b")
        assert silent[-1].call(type="result")["steps"] == 0
        assert speaker.call(type="tell", observation=1, walker="a")["ok"]


def test_a_line_that_never_ends(served):
    _, address, _ = served
    with Caller(address) as client:
        assert client.call(type="result")["steps"] == 0
        client.send(b"x" * 1_100_000)
        assert "at most 1,000,000 bytes" in client.receive()["error"]
        client.send(b"x" * 3_000_000 + b"\n")  # the rest of it is not another one
        assert "action" in client.call(type="ask", observation=0)


def test_several_requests_in_one_piece(served):
    _, address, _ = served
    with Caller(address) as client:
        lines = [{"type": "ask", "observation": 0}, {"type": "tell", "observation": 1}, {"type": "result"}]
        client.send(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        answers = [client.receive() for _ in lines]
    assert "action" in answers[0]
    assert answers[1]["ok"]
    assert answers[2]["steps"] == 1


def test_a_path_is_for_its_owner_only_and_goes_with_the_server(tmp_path):
    path, told = tmp_path / "door", server()
    seen = []
    thread = threading.Thread(
        daemon=True,
        target=serve_socket,
        args=(told, str(path), lambda name: seen.append(stat.S_IMODE(os.stat(name).st_mode))),
    )
    thread.start()
    while not seen:
        time.sleep(0.01)
    assert seen == [0o600]
    with pytest.raises(InputError, match=r"socket: .*door cannot be listened on"):
        serve_socket(server(), str(path))
    assert stat.S_ISSOCK(path.stat().st_mode)  # one that is refused takes nothing with it
    with Caller(str(path)) as client:
        walk(client)
    thread.join(600)
    assert not path.exists()


def test_a_socket_that_nobody_listens_on_is_replaced(tmp_path):
    path = tmp_path / "door"
    with socket.socket(socket.AF_UNIX) as forgotten:
        forgotten.bind(str(path))
    told = Server(lambda count: gosprl.Collector(2, count, 0), range(1))
    assert told.done  # nothing is needed
    assert serve_socket(told, str(path)) == 0
    assert not path.exists()


def test_the_socket_of_another_server_stays(tmp_path):
    """The first server's socket is gone, and another server listens there when the first one ends."""
    path, told = tmp_path / "door", server()
    ready = threading.Event()
    thread = threading.Thread(daemon=True, target=serve_socket, args=(told, str(path), lambda name: ready.set()))
    thread.start()
    assert ready.wait(600)
    with Caller(str(path)) as client:
        path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
            walk(client)
            client.call(type="close")
            thread.join(600)
            assert not thread.is_alive()
            assert path.exists()


def test_a_file_is_not_replaced(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("keep me")
    with pytest.raises(InputError, match=r"notes\.txt cannot be listened on"):
        serve_socket(server(), str(path))
    assert path.read_text() == "keep me"


@pytest.mark.parametrize(
    "address",
    ["0.0.0.0:0", "example.org:80", "/nowhere/door", "127.0.0.1:99999999", "x" * 200, "192.168.0.1:0", "7000"],
)
def test_addresses_that_are_not_served(address):
    with pytest.raises(InputError, match=r"^socket: "):
        serve_socket(server(), address)


def test_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"127.0.0.1:{port} cannot be listened on"):
            serve_socket(server(), f"127.0.0.1:{port}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_everything_is_kept(number, tmp_path):
    told, path, before = server(), tmp_path / "door", signal.getsignal(number)

    def one_step_then_a_signal():
        with Caller(str(path)) as client:
            client.call(type="ask", observation=0)
            client.call(type="tell", observation=1)
            os.kill(os.getpid(), number)
            client.file.readline()

    calling = threading.Thread(daemon=True, target=one_step_then_a_signal)
    assert serve_socket(told, str(path), lambda name: calling.start()) == number
    calling.join(600)
    assert told.result().steps == 1
    assert signal.getsignal(number) is before
    assert not path.exists()


def test_pipes():
    told = server()
    requests, to_us = os.pipe()
    from_us, answers = os.pipe()
    with open(to_us, "wb", buffering=0) as out, open(from_us, "rb") as back:
        thread = threading.Thread(daemon=True, target=serve_pipe, args=(told, requests, answers))
        thread.start()
        out.write(b'{"type":"ask","observation":0}\n')
        assert "action" in json.loads(back.readline())
        out.close()  # without a word
        thread.join(600)
        assert not thread.is_alive()
    for descriptor in (requests, answers):
        os.close(descriptor)
