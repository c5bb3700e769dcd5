"""Ray started here, and addresses at which there is none."""

import os
import socket
import subprocess
import sys
import time

import fleet_systems as systems
import pytest

from gosprl import GosprlError, InputError
from gosprl.fleet.ray_actors import RayActors


def test_addresses_that_do_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
            begin = time.monotonic()
            with pytest.raises(GosprlError, match=f"^workers: no Ray cluster answers at '{address}' within 3 s"):
                RayActors(systems.Faulty, 1, address, timeout=3.0)
            assert time.monotonic() - begin < 8
    with pytest.raises(GosprlError, match=r"no Ray cluster answers .*refused"):
        RayActors(systems.Faulty, 1, f"127.0.0.1:{port}")
    with pytest.raises(InputError, match=r'expected "ray://host:port" or "host:port" of a Ray cluster, got'):
        RayActors(systems.Faulty, 1, "http://somewhere")


LOCAL = """
import os, subprocess
import fleet_systems as systems
from fleet_talk import opened
from gosprl.fleet.ray_actors import RayActors

with opened(RayActors(systems.Faulty, 3, entropy=0)) as talk:
    talk.joined()
    sockets = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True).stdout.splitlines()
    sockets = [line.split()[3] for line in sockets if "ray" in line or "gcs" in line or f"pid={os.getpid()}," in line]
    print(sorted({address.rsplit(":", 1)[0] for address in sockets}))
print("done")
"""


def test_a_cluster_of_our_own_is_private(tmp_path):
    """It listens on this machine only, and leaves nothing in the home directory."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment = {**keep, "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LOCAL], capture_output=True, text=True, env=environment)
    assert done.stdout.split("\n")[:2] == ["['127.0.0.1', '[::ffff:127.0.0.1]']", "done"], done.stderr
    assert not (tmp_path / ".ray").exists()
