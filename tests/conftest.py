"""Shared by all tests."""

import gc
import json
import os
import signal
from pathlib import Path

import pytest
from kinds import COMBINATIONS, NEEDS, SYSTEMS

from gosprl.strategies import STRATEGIES

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard():
    """As in a terminal, also where the tests run in the background and inherit an ignored signal."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def reference_domains():
    """Numbers of the domains, computed by an implementation apart from this project."""
    return json.loads((DATA / "domains.json").read_text())["domains"]


@pytest.fixture(scope="session")
def reference_plans():
    """Optimistic shortest-path problems with their solutions, from the same."""
    return json.loads((DATA / "plans.json").read_text())["instances"]


@pytest.fixture(params=list(STRATEGIES))
def strategy(request):
    """The name of every strategy: a new one gets the conformance tests by being registered."""
    return request.param


@pytest.fixture(params=list(SYSTEMS))
def system_kind(request):
    """Each kind of system: see `kinds.SYSTEMS`."""
    return SYSTEMS[request.param]


@pytest.fixture(params=COMBINATIONS, ids=" ".join)
def combination(request):
    """Each kind of system with each kind of need that makes sense for it."""
    system, need = request.param
    return SYSTEMS[system], NEEDS[need]


@pytest.fixture(params=[name for name, need in NEEDS.items() if need.table])
def need_kind(request):
    """Each kind of need of a system whose states are known: see `kinds.NEEDS`."""
    return NEEDS[request.param]


def pytest_collection_finish(session):
    """Everything that is imported stays until the end: the garbage collector need not go through it again and again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session, exitstatus):
    """Where every oracle is installed, a skipped test is a test that did not do its work."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("GOSPRL_NO_SKIPS") and reporter and reporter.stats.get("skipped") and exitstatus == 0:
        reporter.write_line("skipped tests count as failures here (GOSPRL_NO_SKIPS)", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
