"""Files of arrays, as `numpy.savez` and `gosprl export` write them."""

import math
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gosprl.errors import InputError
from gosprl.exchange.columns import NUMBER, TEXT, Batch, Values, batch_of, of_model, roles
from gosprl.exchange.decoding import check_texts
from gosprl.exchange.incoming import base
from gosprl.exchange.incoming.base import Incoming, digest_of_file, short
from gosprl.exchange.npy import DAMAGED, read_header, read_rows, read_texts, rows_in_budget
from gosprl.exchange.npz import metadata_of

MOST_TEXT = 2**30  # bytes of the observations in an npz file
BESIDE = ("counts", "metadata")  # arrays in an npz file that are no columns


class Npz(Incoming):
    """A file of arrays, as `numpy.savez` writes it; read piece by piece, without pickle."""

    kind = "npz"

    def __init__(self, path: Path) -> None:
        self.name, self._path, self.size = str(path), path, path.stat().st_size

    def digest(self) -> str:
        """Return the SHA-256 of the file."""
        return digest_of_file(self._path)

    def metadata(self) -> Mapping[str, Any]:
        """Return what `gosprl export` wrote beside the arrays."""
        try:
            with zipfile.ZipFile(self._path) as archive:
                return metadata_of(archive, archive.getinfo("metadata.npy"))
        except (*DAMAGED, KeyError):
            return {}  # there is none, or reading the rows says what is wrong

    def batches(self) -> Iterator[Batch]:
        """Yield its rows."""
        try:
            with zipfile.ZipFile(self._path) as archive:
                yield from self._batches(archive)
        except DAMAGED as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"data: {self.name} is no .npz file that can be read: {short(error)}") from None

    def _batches(self, archive: zipfile.ZipFile) -> Iterator[Batch]:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if "model_state" in members and "state" not in members:
            raise of_model(self.name)
        if "state" in members:  # as `gosprl export` writes it, with the model beside the transitions
            members = {name: info for name, info in members.items() if name not in BESIDE and name[:6] != "model_"}
        texts = self._texts(archive, members.pop("observations")) if "observations" in members else None
        roles(members, self.name)
        files = {name: archive.open(info) for name, info in members.items()}
        headers = {name: self._header(name, file, members[name].file_size) for name, file in files.items()}
        batch_of({name: np.empty((0, *shape), dtype) for name, (_, shape, dtype) in headers.items()}, self.name, 0)
        lengths = {name: length for name, (length, _, _) in headers.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"data: {self.name}: expected arrays of one length, got {lengths}")
        total = next(iter(lengths.values()))
        row_bytes = sum(dtype.itemsize * math.prod(shape) for _, shape, dtype in headers.values())
        most = rows_in_budget(row_bytes, base.ROWS)
        for first in range(0, total, most):
            n = min(most, total - first)
            part = {name: read_rows(files[name], n, *headers[name][1:]) for name in files}
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
            place, size = f"data: {self.name}, column observations", self._path.stat().st_size
            return read_texts(file, length, dtype, lambda characters: check_texts(place, characters, size))

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
        try:
            shape, dtype = read_header(file, size)
        except ValueError as error:
            raise InputError(f"data: {self.name}, column {name}: {error}") from None
        return shape[0], shape[1:], dtype
