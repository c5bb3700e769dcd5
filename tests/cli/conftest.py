"""Fixtures of the command line."""

import numpy as np
import pytest
from application_verbs import MEANS

from gosprl import applications


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A directory with means and costs of three states, where the command runs."""
    np.save(tmp_path / "means.npy", MEANS)
    np.save(tmp_path / "pairs.npy", np.column_stack([MEANS, MEANS / 2]))
    np.save(tmp_path / "costs.npy", [0.5, 1.0, 0.75])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_walk(monkeypatch):
    """Invalid input must be reported before an application is called."""
    for name in applications.__all__:
        if name.islower():
            monkeypatch.setattr(applications, name, lambda *arguments, **options: pytest.fail("walked"))
