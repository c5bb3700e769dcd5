"""A small log, copies of it that a test may change, and warnings that are given in every test anew."""

import shutil

import pytest
from small_logs import small_run

from gosprl.runs import files


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a log that no test changes."""
    return small_run(tmp_path_factory.mktemp("written"))


@pytest.fixture
def run(written, tmp_path):
    """Return a copy of it."""
    return shutil.copytree(written, tmp_path / "run")


@pytest.fixture(autouse=True)
def warned(monkeypatch):
    """Let warnings that are given once be given again."""
    monkeypatch.setattr(files, "_warned", set())
