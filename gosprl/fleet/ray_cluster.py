"""Ray, started here or joined: imported only if a fleet asks for it.

A Ray of our own listens on this machine alone, and its token stays in the environment of this process, where Ray would
write one into the home directory. Whoever can talk to a cluster can run programs on it: Ray trusts all of it, and so
does a fleet on Ray.
"""

import importlib
import os
import secrets
import socket
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

from gosprl.errors import GosprlError, InputError

CLIENT = "ray://"
INSTALL = "pip install 'gosprl[ray]'"
_LOCAL_ONLY = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # Ray then listens on 127.0.0.1, on Linux as well
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
_PROBES = {  # what answers only if a cluster is there; in a process of its own, which can be ended
    True: ["-c", "import sys, ray; ray.init(sys.argv[1], log_to_driver=False)"],
    False: ["-m", "ray.scripts.scripts", "health-check", "--address"],
}


def imported(local: bool = False) -> Any:
    """Return the module `ray`.

    Parameters
    ----------
    local
        Whether it is to start on this machine; has an effect if it was not imported before.
    """
    if local and "ray" not in sys.modules:
        os.environ.update(_LOCAL_ONLY)
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise InputError(f"workers: a fleet on Ray needs Ray, which is not installed; type: {INSTALL}") from None


def connect(address: str | None, workers: int | None, timeout: float, runtime_env: Any = None) -> bool:
    """Join a cluster, or start one on this machine; whether that is ours to shut down.

    Parameters
    ----------
    address
        "host:port", or "ray://host:port" of its client server; None: that of the environment variable RAY_ADDRESS, or
        a cluster of our own. A connection that there is already is used, whatever its address.
    workers
        Number of actors that a cluster of our own must have room for.
    timeout
        Seconds in which the address has to answer.
    runtime_env
        As of `ray.init`.
    """
    address = address or os.environ.get("RAY_ADDRESS") or None
    ray = imported(local=address is None)
    if ray.is_initialized():
        return False
    options = {**_QUIET, **({} if runtime_env is None else {"runtime_env": runtime_env})}
    if address is None:
        if not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        room = max(workers or 1, os.cpu_count() or 1)
        options.update(address="local", include_dashboard=False, num_cpus=room)
    else:
        _check_answers(address, timeout)
        options.update(address=address)
    try:
        ray.init(**options)
    except Exception as error:  # versions that differ, no token, no memory, ...
        raise GosprlError(f"workers: Ray did not begin: {type(error).__name__}: {error!s:.300}") from error
    return True


def _check_answers(address: str, timeout: float) -> None:
    """Raise unless a cluster answers in time: `ray.init` would wait for minutes."""
    if address == "auto":
        return
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port is None or parts.scheme not in ("", "ray"):
        raise InputError(f'workers: expected "ray://host:port" or "host:port" of a Ray cluster, got {address!r:.80}')
    silent = GosprlError(
        f"workers: no Ray cluster answers at {address!r} within {timeout:g} s; is it running (ray status), and is the "
        "port right? ray:// is for the client server, 10001 by default; others are at 6379"
    )
    try:
        socket.create_connection((host, port), timeout).close()
    except OSError as error:
        raise GosprlError(f"{silent} ({error})") from None
    command = [sys.executable, *_PROBES[parts.scheme == "ray"], address]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise silent from None
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        raise GosprlError(f"{silent} ({last[0][:200]})")
