"""Shared by the tests of collecting."""

import pytest

from gosprl.collecting import collector
from gosprl.systems.tabular import Tabular


@pytest.fixture
def impatient(monkeypatch):
    """Warnings and reports come early."""
    monkeypatch.setattr(collector, "PATIENCE", 300)
    monkeypatch.setattr(Tabular, "block", 50)
    monkeypatch.setattr("gosprl.progress.PERIOD", 0.0)
