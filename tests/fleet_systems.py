"""Systems and walkers for the tests of fleets; in a module of their own, since other processes import them."""

import fcntl
import os
import signal
import socket
import sys
import termios
import time
from enum import Enum

import gymnasium
import numpy as np

import gosprl
from gosprl.fleet import wire, worker
from gosprl.fleet.orders import Report
from gosprl.systems import Outcome, System, Tabular

OK, RAISE, KILL, EXIT, HANG, CRASH, END, CUT, PRINT, NAN, FOREIGN = range(11)
GARBAGE, WRONG, TWICE, FLOOD, HUGE, LONG, STALE, PART, KIND, ILLEGAL, CLOSED = range(11)


def river():
    return gosprl.envs.make("riverswim6")


def noisy_river():
    return Tabular(river().with_rewards(np.linspace(0, 1, 6), noise="bernoulli"))


class Faulty(System):
    """Three states in a ring, and an action for everything that can go wrong."""

    def __init__(self, actions=11):
        self.actions = actions

    def model(self):
        return gosprl.EmpiricalModel(3, self.actions)

    def seed(self, rng):
        self.first = int(rng.integers(3))

    def reset(self):
        self.state = self.first
        return self.state

    def step(self, action):
        if action in (RAISE, KILL, EXIT, HANG, PRINT):
            self.fail(action)
        if action == CRASH:
            return Outcome(gosprl.CRASH, terminated=True)
        self.state = (self.state + 1) % 3
        if action == FOREIGN:
            return Outcome(7)
        return Outcome(self.state, np.nan if action == NAN else 0.5, action == END, action == CUT)

    def fail(self, action):
        if action == RAISE:
            raise ZeroDivisionError("division\nby zero")
        if action == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if action == EXIT:
            os._exit(3)
        if action == HANG:
            time.sleep(1000)
        if action == PRINT:
            print("a word to standard output", flush=True)


class Texts:
    """Observations are texts with arrays, and a mask says which actions are offered."""

    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None):
        self.count = 0
        return self.told()

    def step(self, action):
        self.count += 1
        return *self.told()[:1], 1.0, self.count == 4, False, self.told()[1]

    def told(self):
        mask = np.array([1, self.count % 2, 1], dtype=np.int8)
        return (f"seen {self.count}", np.arange(self.count)), {"action_mask": mask}


class Odd:
    """Observations that cannot be sent: objects of a class of its own."""

    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None):
        return (1, Colour.RED), {}

    def step(self, action):
        raise NotImplementedError


class Colour(Enum):
    RED = 1


class Vast(Texts):
    """Observations of more than a megabyte."""

    def told(self):
        return "x" * (1 << 20), {}


class Large(Texts):
    """Observations of nearly a megabyte."""

    def told(self):
        return "x" * 1_000_000, {}


def raising():
    raise KeyError("there is no such thing")


def sleeping():
    time.sleep(1000)


def dying():
    os._exit(9)


def differing():
    return Faulty(actions=os.getpid())


class Failing:
    """Makes a system as long as a file exists."""

    def __init__(self, path):
        self.path = path

    def __call__(self):
        if not os.path.exists(self.path):
            raise OSError("the lab is closed")
        return Faulty()


def rogue(line: socket.socket, pickled, number, entropy):
    """A walker that keeps to the rules once, and then breaks the one that the action says."""
    line.sendall(wire.packed_json(wire.HELLO, worker.describe(Faulty())))
    last = None
    while len(data := line.recv(wire.ORDER.size, socket.MSG_WAITALL)) == wire.ORDER.size:
        order, action, _ = wire.ORDER.unpack(data)
        good = wire.packed_report(Report(order, number, 1, 0.5))
        if action == -1:
            line.sendall(good)
            last = good
            continue
        sent = {
            GARBAGE: b"\xde\xad\xbe\xef" * 20,
            WRONG: wire.packed_report(Report(order + 1, number, 1)),
            TWICE: good + good,
            FLOOD: good * 20_000,
            HUGE: wire.HEAD.pack(2**31, wire.REPORT),
            LONG: wire.HEAD.pack(wire.LONGEST + 1, wire.REPORT) + b" " * 1000,
            STALE: last,
            PART: good[:7],
            KIND: wire.packed(77, b"?"),
            ILLEGAL: wire.packed_json(wire.REPORT, report(order, actions=[11])),
            CLOSED: b"",
        }[action]
        try:
            line.sendall(sent)
        except OSError:
            sys.exit(0)
        if action == CLOSED:
            line.shutdown(socket.SHUT_RDWR)
            time.sleep(1000)


def report(number, actions=None):
    """The fields of a report in JSON."""
    flags = {"terminated": False, "truncated": False}
    return {"number": number, "key": "1", "reward": 0.5, "actions": actions, **flags}


def chatty(line, pickled, number, entropy):
    """A walker that answers an order, and then says more without being asked."""
    line.sendall(wire.packed_json(wire.HELLO, worker.describe(Faulty())))
    order, _, _ = wire.ORDER.unpack(line.recv(wire.ORDER.size, socket.MSG_WAITALL))
    good = wire.packed_report(Report(order, number, 1, 0.5))
    line.sendall(good)
    while any(fcntl.ioctl(line, termios.TIOCOUTQ, bytes(4))):  # until that is read
        time.sleep(0.001)
    line.sendall(good)
    time.sleep(1000)


def rude(line, pickled, number, entropy):
    """A walker that begins with a report."""
    line.sendall(wire.packed_report(Report(0, number, 1, 0.5)))
    time.sleep(1000)


def twice_in_a_lease(line, pickled, number, entropy):
    """A walker that answers each order of a lease, and says the first report twice instead of going on."""
    line.sendall(wire.packed_json(wire.HELLO, worker.describe(Faulty())))
    while (order := worker._next_order(line, number)) is not None:
        good = wire.packed_report(Report(order.number, number, 1, 0.5))
        line.sendall(good + good if order.then else good)
