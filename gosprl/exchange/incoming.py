"""Sources of samples: runs, files, frames, arrays, Minari data sets, models; each is read in batches.

Nothing is allocated by what a header claims: files are read piece by piece, and a piece that is missing is an error.
"""

import os
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gosprl.errors import InputError
from gosprl.exchange.columns import FLAGS, INDEX, KEY, NUMBER, RAW, TEXT, VALUE, Batch, Values, batch_of, coded
from gosprl.model.content import thaw
from gosprl.model.empirical import EmpiricalModel
from gosprl.runs.files import Damaged
from gosprl.runs.manifests import MANIFEST
from gosprl.runs.opened import FORGED, OpenRun

ROWS = 65_536  # of a batch
MOST_TEXT = 2**30  # bytes of the observations in an npz file
BESIDE = ("counts", "metadata")  # arrays in an npz file that are no columns
BLOCK = 4 * 2**20  # bytes of a csv file read at once
SUFFIXES = (".parquet", ".csv", ".npz")
MINARI_ID = re.compile(r"([\w.\-]+/)*[\w.\-]+-v\d+")
EXPECTED = (
    "expected the directory of a run, a .parquet, .csv or .npz file, a Minari data set or its id, an EmpiricalModel, a "
    "dict of arrays, a tuple (s, a, s_next[, count[, reward]]), a data frame, or a list of these"
)


class Incoming(ABC):
    """A source of samples.

    Attributes
    ----------
    name
        What errors call it.
    has_order
        Whether it proves the order in which it was collected: only a run does.
    """

    name: str
    has_order = False

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """Yield its rows in order."""


def sources(data: Any) -> list["Incoming | Model"]:
    """Return the sources that a user gave, in order."""
    return [source_of(part) for part in (data if isinstance(data, list) else [data])]


def source_of(data: Any) -> "Incoming | Model":
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


def _at_path(data: Any) -> "Incoming | Model":
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


class Model:
    """Counts without order, or with the order of first appearances only."""

    has_order = False

    def __init__(self, model: EmpiricalModel) -> None:
        self.model, self.name = model, "the model"


class Run(Incoming):
    """A run on disk, whose digests are checked."""

    has_order = True

    def __init__(self, directory: Path) -> None:
        self.name = str(directory)
        try:
            self.run = OpenRun.read(directory)
            self.run.check_undamaged()
            self.names = self.run.names
        except Damaged as error:
            raise InputError(f"data: {directory} is damaged: {error}") from None

    def batches(self) -> Iterator[Batch]:
        """Yield its events."""
        keys = None if self.names.fixed else self.names.keys
        actions = [thaw(key) for key in self.names.actions] or None
        breaks, first = np.array(self.run.breaks(), dtype=np.int64), 0
        try:
            for columns in self.run.contents.batches():
                yield self._batch(columns, first, keys, actions, breaks)
                first += len(columns["flags"])
        except Damaged as error:
            raise InputError(f"data: {self.name} is damaged: {error}") from None
        except FORGED as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"data: {self.name} cannot be read: {type(error).__name__}: {error}") from None

    def _batch(self, columns: Mapping[str, Any], first: int, keys: Any, actions: Any, breaks: Any) -> Batch:
        n = len(columns["flags"])
        number = {name: columns[name].astype(np.int64) for name in ("state", "next_state", "action")}
        for name, end in (("state", self.names.num_states), ("next_state", self.names.num_states)):
            if number[name].min(initial=-1) < -1 or number[name].max(initial=-1) >= end:
                raise Damaged("log", None, f"{name}: expected numbers in -1..{end - 1}")
        if actions is not None and number["action"].max(initial=-1) >= len(actions):
            raise Damaged("log", None, f"action: expected numbers in -1..{len(actions) - 1}")
        flags = {name: (columns["flags"] & 1 << i) > 0 for i, name in enumerate(FLAGS)}
        form = NUMBER if keys is None else KEY
        return Batch(
            source=self.name,
            first=first,
            state=Values(number["state"], keys, form, "state"),
            action=Values(number["action"], actions, INDEX if actions is None else VALUE, "action"),
            next_state=Values(number["next_state"], keys, form, "next_state"),
            reward=np.where(flags["reset"], 0.0, columns["reward"]),
            flags=flags,
            walker=columns["walker"].astype(np.int64),
            elsewhere=np.isin(np.arange(first, first + n), breaks),
        )


class Tables(Incoming):
    """Rows in the form of Arrow."""

    def batches(self) -> Iterator[Batch]:
        """Yield its rows."""
        first, names = 0, None
        try:
            for part in self._parts():
                names = part.schema.names
                for begin in range(0, part.num_rows, ROWS):
                    piece = part.slice(begin, ROWS)
                    columns = {
                        name: piece.column(i) for i, name in enumerate(names) if not name.startswith("__index_level_")
                    }
                    if len(columns) < sum(not name.startswith("__index_level_") for name in names):
                        twice = next(name for name in names if names.count(name) > 1)
                        raise InputError(f"data: {self.name}: column {twice!r:.60} is there twice")
                    yield batch_of(columns, self.name, first)
                    first += piece.num_rows
        except (pa.ArrowException, OSError, MemoryError) as error:
            raise InputError(f"data: {self.name} cannot be read after row {first}: {_short(error)}") from None
        if names is None:
            self._check_empty()

    def _check_empty(self) -> None:
        """Check the columns of a table without rows."""

    @abstractmethod
    def _parts(self) -> Iterator[Any]:
        """Yield record batches or tables."""


class Parquet(Tables):
    """A parquet file."""

    def __init__(self, path: Path) -> None:
        self.name, self._path = str(path), path

    def _parts(self) -> Iterator[Any]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self._path) as file:
            yield from file.iter_batches(batch_size=ROWS, use_threads=False)
            if file.metadata.num_rows == 0:
                batch_of({name: pa.nulls(0) for name in file.schema_arrow.names}, self.name, 0)


class Csv(Tables):
    """A csv file, with the names of its columns in the first line."""

    def __init__(self, path: Path) -> None:
        self.name, self._path = str(path), path

    def _parts(self) -> Iterator[Any]:
        from pyarrow import csv

        reading = csv.ReadOptions(use_threads=False, block_size=BLOCK)
        types = dict.fromkeys(("observation", "next_observation", "action_value"), pa.large_string())
        types |= dict.fromkeys(("state", "next_state", "count", "order", "walker"), pa.int64())
        types["reward"] = pa.float64()
        with self._path.open("rb") as file:
            if not file.read(1):
                raise InputError(f"data: {self.name} is empty; expected a line with the names of the columns")
            file.seek(0)
            # only blank cells are nothing: an observation may be the text "nan"
            converting = csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
            with csv.open_csv(file, read_options=reading, convert_options=converting) as reader:
                empty = True
                for part in reader:
                    empty = empty and part.num_rows == 0
                    yield unescaped(part)
                if empty:
                    batch_of({name: pa.nulls(0) for name in reader.schema.names}, self.name, 0)


def unescaped(part: Any) -> Any:
    """Return a part of a csv file without the apostrophes that keep spreadsheets from computing cells."""
    import pyarrow.compute as pc

    for i, field in enumerate(part.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            plain = pc.replace_substring_regex(part.column(i), r"^'(['=+\-@\t\r])", r"\1")
            part = part.set_column(i, field, plain)
    return part


class Frame(Tables):
    """A data frame of pandas or polars, an Arrow table, or anything that hands over columns like them."""

    def __init__(self, frame: Any) -> None:
        self.name, self._frame = f"the {type(frame).__name__}", frame

    def _parts(self) -> Iterator[Any]:
        return frame_parts(self._frame, "data")


def frame_parts(frame: Any, argument: str) -> Iterator[Any]:
    """Yield the parts of a data frame as Arrow tables; no library of data frames is imported."""
    try:
        if hasattr(frame, "__arrow_c_stream__"):
            yield from pa.RecordBatchReader.from_stream(frame)
        elif callable(getattr(frame, "to_arrow", None)):
            yield frame.to_arrow()
        else:
            columns = {str(name): np.asarray(frame[name].to_numpy()) for name in frame.columns}
            yield pa.table({name: pa.array(column) for name, column in columns.items()})
    except (pa.ArrowException, AttributeError, KeyError, TypeError) as error:
        raise InputError(
            f"{argument}: {type(frame).__name__} cannot be read: {_short(error)}; expected one type in each column"
        ) from None


class Arrays(Incoming):
    """A dict of arrays."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.name = "the arrays"
        self._arrays = {str(name): _array(str(name), array) for name, array in arrays.items()}
        batch_of({name: array[:0] for name, array in self._arrays.items()}, self.name, 0)
        lengths = {name: len(array) for name, array in self._arrays.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"data: expected arrays of one length, got {lengths}")

    def batches(self) -> Iterator[Batch]:
        """Yield their rows."""
        for first in range(0, len(next(iter(self._arrays.values()))), ROWS):
            part = {name: array[first : first + ROWS] for name, array in self._arrays.items()}
            yield batch_of(part, self.name, first)


def _array(name: str, given: Any) -> NDArray[Any]:
    if isinstance(given, np.ndarray) and given.ndim:
        return given
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(f"data: {name}: expected an array [n], got {given!r:.60}")
    items = list(given)
    if all(type(item) in (int, float, bool) for item in items):
        return np.array(items)
    array = np.empty(len(items), dtype=object)  # tuples stay tuples, and numbers beside text stay numbers
    for i, item in enumerate(items):
        array[i] = item
    return array


class Npz(Incoming):
    """A file of arrays, as `numpy.savez` writes it; read piece by piece, without pickle."""

    def __init__(self, path: Path) -> None:
        self.name, self._path = str(path), path

    def batches(self) -> Iterator[Batch]:
        """Yield its rows."""
        try:
            with zipfile.ZipFile(self._path) as archive:
                yield from self._batches(archive)
        except (zipfile.BadZipFile, OSError, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"data: {self.name} is no .npz file that can be read: {_short(error)}") from None

    def _batches(self, archive: zipfile.ZipFile) -> Iterator[Batch]:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if "state" in members:  # as `gosprl export` writes it, with the model beside the transitions
            members = {name: info for name, info in members.items() if name not in BESIDE and name[:6] != "model_"}
        texts = self._texts(archive, members.pop("observations")) if "observations" in members else None
        files = {name: archive.open(info) for name, info in members.items()}
        headers = {name: self._header(name, file, members[name].file_size) for name, file in files.items()}
        batch_of({name: np.empty((0, *shape), dtype) for name, (_, shape, dtype) in headers.items()}, self.name, 0)
        lengths = {name: length for name, (length, _, _) in headers.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"data: {self.name}: expected arrays of one length, got {lengths}")
        total = next(iter(lengths.values()))
        for first in range(0, total, ROWS):
            n = min(ROWS, total - first)
            part = {name: _piece(files[name], n, *headers[name][1:]) for name in files}
            batch = batch_of(part, self.name, first)
            yield batch if texts is None else self._named(batch, texts)

    def _texts(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> list[str]:
        """Return what the numbers of states stand for."""
        if info.file_size > MOST_TEXT:
            raise InputError(f"data: {self.name}: observations of {info.file_size} bytes; at most {MOST_TEXT} are read")
        with archive.open(info) as file:
            length, shape, dtype = self._header("observations", file, info.file_size)
            if shape or dtype.kind != "U":
                raise InputError(f"data: {self.name}, column observations: expected texts [N], got {dtype}")
            return [str(text) for text in _piece(file, length, shape, dtype).tolist()]

    def _named(self, batch: Batch, texts: list[str]) -> Batch:
        """Return a batch whose states are called by their observations."""
        found = {}
        for role in ("state", "next_state"):
            given: Values = getattr(batch, role)
            wrong = given.form != NUMBER or (given.codes < -1) | (given.codes >= len(texts))
            if np.any(wrong):
                raise batch.wrong(int(np.argmax(wrong)), role, f"expected the number of a state, 0..{len(texts) - 1}")
            found[role] = Values(given.codes, texts, TEXT, given.name)
        return replace(batch, state=found["state"], next_state=found["next_state"])

    def _header(self, name: str, file: Any, size: int) -> tuple[int, tuple[int, ...], np.dtype[Any]]:
        from numpy.lib import format as npy

        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise InputError(f"data: {self.name}: {name} has the unknown format {version}")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
        if dtype.hasobject or dtype.names is not None:
            raise InputError(f"data: {self.name}, column {name}: expected numbers or text, got an array of {dtype}")
        if not shape or (fortran and len(shape) > 1):
            raise InputError(f"data: {self.name}, column {name}: expected an array [n], got shape {shape}")
        there = size - file.tell()
        claimed = dtype.itemsize * int(np.prod([int(n) for n in shape], dtype=object))
        if claimed != there:
            raise InputError(f"data: {self.name}, column {name}: its header claims {claimed} bytes, {there} are there")
        return shape[0], tuple(shape[1:]), dtype


def _piece(file: Any, n: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    size = n * int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = file.read(size)
    if len(raw) < size:
        raise EOFError(f"it ends {size - len(raw)} bytes too early")
    return np.frombuffer(raw, dtype=dtype).reshape(n, *shape)


class Minari(Incoming):
    """A Minari data set: each episode begins with a reset.

    One that gosprl exported has numbers of states, and its metadata say what they stand for.
    """

    def __init__(self, data: Any) -> None:
        by_name = isinstance(data, str | os.PathLike)
        self.name = f"the Minari data set {data}" if by_name else "the Minari data set"
        self._data = _loaded(data) if by_name else data
        metadata = getattr(getattr(self._data, "storage", None), "metadata", None)
        ours = metadata.get("gosprl") if isinstance(metadata, Mapping) else None
        self._ours: Mapping[str, Any] | None = ours if isinstance(ours, Mapping) else None

    def batches(self) -> Iterator[Batch]:
        """Yield its episodes, several at once."""
        pending: list[tuple[Any, Any, Any, float, bool, bool, bool]] = []
        first = 0
        for episode in self._data.iterate_episodes():
            pending += _episode(episode, self.name)
            if len(pending) >= ROWS:
                yield self._batch(pending, first)
                first, pending = first + len(pending), []
        if pending:
            yield self._batch(pending, first)

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
        raise InputError(f"data: Minari cannot load {name}: {_short(error)}") from None


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


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]
