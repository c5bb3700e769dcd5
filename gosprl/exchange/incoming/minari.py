"""Minari data sets: each episode begins with a reset."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gosprl.errors import InputError
from gosprl.exchange.columns import FLAGS, INDEX, NUMBER, RAW, TEXT, VALUE, Batch, Values, coded
from gosprl.exchange.incoming import base
from gosprl.exchange.incoming.base import Incoming, short
from gosprl.exchange.incoming.hdf5 import check_sizes


class Minari(Incoming):
    """A Minari data set: each episode begins with a reset.

    One that gosprl exported has numbers of states, and its metadata say what they stand for.
    """

    kind = "minari"

    def __init__(self, data: Any) -> None:
        by_name = isinstance(data, str | os.PathLike)
        self.name = f"the Minari data set {data}" if by_name else "the Minari data set"
        self._data = _loaded(data) if by_name else data
        if by_name:
            _check_claims(self._data, self.name)
        metadata = getattr(getattr(self._data, "storage", None), "metadata", None)
        ours = metadata.get("gosprl") if isinstance(metadata, Mapping) else None
        self._ours: Mapping[str, Any] | None = ours if isinstance(ours, Mapping) else None
        if self._ours is not None and self._ours.get("fleet"):
            raise InputError(
                f"data: {self.name} was exported from a run of a fleet: it has neither the order of issue nor the "
                "places of unknown outcomes, and sets without them are false; give the directory of the run, or its "
                "result"
            )

    def metadata(self) -> Mapping[str, Any]:
        """Return what `gosprl export` wrote beside the rows."""
        return self._ours or {}

    def batches(self) -> Iterator[Batch]:
        """Yield its episodes, several at once."""
        pending: list[tuple[Any, Any, Any, float, bool, bool, bool]] = []
        first = 0
        for rows in self._episodes():
            pending += rows
            if len(pending) >= base.ROWS:
                yield self._batch(pending, first)
                first, pending = first + len(pending), []
        if pending:
            yield self._batch(pending, first)

    def _episodes(self) -> Iterator[list[tuple[Any, Any, Any, float, bool, bool, bool]]]:
        """Yield the rows of each episode."""
        number = 0
        try:
            for episode in self._data.iterate_episodes():
                yield list(_episode(episode, self.name))
                number += 1
        except InputError:
            raise
        except Exception as error:  # a damaged HDF5 file fails in many ways
            raise InputError(f"data: {self.name} cannot be read after {number} episodes: {short(error)}") from None

    def fail(self, row: int, column: str, what: str) -> None:
        """Raise the error for a value that has no key."""
        raise InputError(f"data: {self.name}, column {column}: {what}")

    def _batch(self, rows: list[Any], first: int) -> Batch:
        state, action, following, reward, reset, terminated, truncated = zip(*rows, strict=True)
        n = len(rows)
        flags = {name: np.zeros(n, dtype=bool) for name in FLAGS}
        flags |= {"reset": np.array(reset), "terminated": np.array(terminated), "truncated": np.array(truncated)}
        rewards = np.array(reward, dtype=np.float64)
        if not np.isfinite(rewards).all():
            row = int(np.argmin(np.isfinite(rewards)))
            raise InputError(f"data: {self.name}, row {first + row + 1}, column rewards: expected finite numbers")
        if self._ours is not None:
            crash = self._ours.get("crash", -1)
            flags["crash"] = np.array([x == crash for x in following])
        begin, did, end = [
            self._values(part, name, form)
            for part, name, form in (
                (state, "observations", RAW),
                (action, "actions", VALUE),
                (following, "observations", RAW),
            )
        ]
        return Batch(self.name, first, begin, did, end, rewards, flags, np.zeros(n, dtype=np.int64))

    def _values(self, items: Sequence[Any], name: str, form: str) -> Values:
        if self._ours is None:
            return Values(*coded(items, name, self), form, name)
        texts = self._ours.get(name)
        numbers = np.array([-1 if x is None else int(x) for x in items], dtype=np.int64)
        if not isinstance(texts, list):
            return Values(numbers, None, NUMBER if form == RAW else INDEX, name)
        outside = np.flatnonzero((numbers >= len(texts)) & (numbers != self._ours.get("crash", -1)))
        if outside.size or numbers.min(initial=-1) < -1:
            self.fail(0, name, f"expected numbers in 0..{len(texts) - 1}, of those that the metadata name")
        return Values(np.where(numbers < len(texts), numbers, -1), texts, TEXT, name)


def _loaded(data: Any) -> Any:
    """Return the data set with an id, or in a directory."""
    name = str(data)
    try:
        import minari
    except ImportError:
        raise InputError(f"data: {name} is a Minari data set; install minari to read it") from None
    try:
        return minari.load_dataset(name) if isinstance(data, str) else minari.MinariDataset(data)
    except Exception as error:
        raise InputError(f"data: Minari cannot load {name}: {short(error)}") from None


def _check_claims(data: Any, name: str) -> None:
    """Raise `InputError` if the file of a data set claims more than an episode can need."""
    file = Path(data.storage.data_path) / "main_data.hdf5"
    if file.is_file():
        try:
            check_sizes(file, name)
        except InputError:
            raise
        except Exception as error:  # a damaged HDF5 file fails in many ways
            raise InputError(f"data: {name} cannot be read: {short(error)}") from None


def _episode(episode: Any, source: str) -> Iterator[tuple[Any, Any, Any, float, bool, bool, bool]]:
    """Yield the rows of an episode: its start, and its steps."""
    actions = list(_items(episode.actions, len(episode.rewards)))
    observations = list(_items(episode.observations, len(actions) + 1))
    if len(observations) != len(actions) + 1:
        raise InputError(f"data: {source}: an episode of {len(actions)} steps has {len(observations)} observations")
    yield None, None, observations[0], 0.0, True, False, False
    for i, action in enumerate(actions):
        ended = bool(episode.terminations[i]), bool(episode.truncations[i])
        yield observations[i], action, observations[i + 1], float(episode.rewards[i]), False, *ended


def _items(stacked: Any, n: int) -> Iterator[Any]:
    """Yield the n items of what Minari stacked: arrays, and dicts and tuples of them."""
    if isinstance(stacked, Mapping):
        parts = {name: list(_items(part, n)) for name, part in stacked.items()}
        yield from ({name: part[i] for name, part in parts.items()} for i in range(n))
    elif isinstance(stacked, tuple):
        yield from zip(*(list(_items(part, n)) for part in stacked), strict=True)
    else:
        yield from stacked[:n]
