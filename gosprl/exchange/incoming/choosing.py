"""Which source it is that a user gave: a path, a frame, arrays, a data set, a model."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gosprl.errors import InputError
from gosprl.exchange.incoming.base import Incoming
from gosprl.exchange.incoming.minari import Minari
from gosprl.exchange.incoming.model import Model
from gosprl.exchange.incoming.npz import Npz
from gosprl.exchange.incoming.run import Run
from gosprl.exchange.incoming.tables import Arrays, Csv, Frame, Parquet
from gosprl.model.empirical import EmpiricalModel
from gosprl.runs.manifests import MANIFEST

SUFFIXES = (".parquet", ".csv", ".npz")
MINARI_ID = re.compile(r"([\w.\-]+/)*[\w.\-]+-v\d+")
EXPECTED = (
    "expected the directory of a run, a .parquet, .csv or .npz file, a Minari data set or its id, an EmpiricalModel, a "
    "dict of arrays, a tuple (s, a, s_next[, count[, reward]]), a data frame, or a list of these"
)


Source = Incoming | Model


def sources(data: Any) -> list[Source]:
    """Return the sources that a user gave, in order."""
    return [source_of(part) for part in (data if isinstance(data, list) else [data])]


def source_of(data: Any) -> Source:
    """Return one source."""
    if isinstance(data, EmpiricalModel):
        return Model(data)
    if isinstance(data, str | os.PathLike):
        return _at_path(data)
    if isinstance(data, tuple):
        names = ("s", "a", "s_next", "count", "reward")
        if not 3 <= len(data) <= len(names):
            raise InputError(f"data: expected a tuple (s, a, s_next[, count[, reward]]), got {len(data)} parts")
        return Arrays(dict(zip(names, data, strict=False)))
    if isinstance(data, Mapping):
        return Arrays(data)
    if callable(getattr(data, "iterate_episodes", None)):
        return Minari(data)
    model = getattr(data, "model", None)
    if isinstance(model, EmpiricalModel):  # a Result
        return Model(model)
    if hasattr(data, "columns"):
        return Frame(data)
    raise InputError(f"data: {EXPECTED}; got {data!r:.80}")


def _at_path(data: Any) -> Source:
    path = Path(data)
    if path.is_dir():
        if (path / "data" / "metadata.json").is_file():
            return Minari(path / "data")
        if not (path / MANIFEST).is_file():
            raise InputError(f"data: {path} is a directory without a {MANIFEST}, so it is no run; {EXPECTED}")
        return Run(path)
    if path.suffix.lower() in SUFFIXES:
        if not path.is_file():
            raise InputError(f"data: there is no file {path}")
        suffix = path.suffix.lower()
        return Parquet(path) if suffix == ".parquet" else Csv(path) if suffix == ".csv" else Npz(path)
    if not path.exists() and isinstance(data, str) and MINARI_ID.fullmatch(data):
        return Minari(data)
    raise InputError(f"data: {EXPECTED}; got {str(data)!r:.80}")
