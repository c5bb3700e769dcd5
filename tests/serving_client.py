"""A client of a server of actions, as a user would write it."""

import json
import socket
import time


class Caller:
    """Sends requests to an address, and receives answers."""

    def __init__(self, address):
        if address.startswith("/"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(address)
        else:
            host, port = address.rsplit(":", 1)
            self.socket = socket.create_connection((host, int(port)))
        self.socket.settimeout(600)
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        return json.loads(self.file.readline())

    def call(self, **request):
        self.send(json.dumps(request).encode() + b"\n")
        return self.receive()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()
        self.socket.close()


def walk(client, size=4, state=0, **walker):
    """Walk a ring as the server says, until it says that all is done; the number of steps."""
    steps = 0
    while not (told := client.call(type="ask", observation=state, **walker)).get("done"):
        if "wait" in told:
            time.sleep(told["wait"])
            continue
        state = (state + (1 if told["action"] else -1)) % size
        assert client.call(type="tell", observation=state, **walker)["ok"]
        steps += 1
    return steps
