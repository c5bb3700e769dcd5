"""A small log, and copies of it that a test may change."""

import shutil

import pytest
from small_logs import small_run


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a log that no test changes."""
    return small_run(tmp_path_factory.mktemp("written"))


@pytest.fixture
def run(written, tmp_path):
    """Return a copy of it."""
    return shutil.copytree(written, tmp_path / "run")
