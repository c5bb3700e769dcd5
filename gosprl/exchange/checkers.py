"""Model checkers' files: what the writers of drn, prism and umb share."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gosprl.exchange.appearing import appearing
from gosprl.exchange.interval import IntervalMDP
from gosprl.exchange.learnt import as_interval_mdp

Save = Callable[[IntervalMDP, Path], None]  # writes a model to a path that is free


def write_model(save: Save, model: Any, file: "str | os.PathLike[str]", force: bool, options: dict[str, Any]) -> None:
    """Write a model in the way of one format; the output appears when it is complete.

    Parameters
    ----------
    save
        The way.
    model
        An `EmpiricalModel`, whose learnt model is written; a `TabularMDP`; an `IntervalMDP`.
    file
        The file, or for PRISM's explicit files the directory.
    force
        Whether an existing file is replaced. A directory never is.
    options
        Those of `gosprl.exchange.learnt.Options`.
    """
    mdp = as_interval_mdp(model, **options)
    with appearing(Path(file), force) as temporary:
        save(mdp, temporary)
