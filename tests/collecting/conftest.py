"""Shared by the tests of collecting."""

import pytest

from gosprl.collecting import patience
from gosprl.systems.tabular import Tabular


@pytest.fixture
def impatient(monkeypatch):
    """Warnings and reports come early."""
    monkeypatch.setattr(patience, "PATIENCE", 300)
    monkeypatch.setattr(Tabular, "block", 50)
    monkeypatch.setattr("gosprl.progress.PERIOD", 0.0)
