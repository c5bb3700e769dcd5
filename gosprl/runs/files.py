"""Files that survive crashes and are checked when read: the lowest layer of a run on disk.

A JSON file is replaced as a whole: written beside the old one, synced, renamed, and the directory synced. After a crash
either the old or the new file is there. Every file has exactly one valid form, which includes its own digest; therefore
reading finds every change of a bit.

The directory of a run may come from a stranger. It is only data: symbolic links are not followed, sizes are checked
before anything is allocated, and nothing in it is executed.
"""

import errno
import hashlib
import json
import os
import stat
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from gosprl.errors import GosprlError, InputError
from gosprl.runs.places import Place, located

MIB = 2**20
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a FIFO must not wait for its other end
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


class Damaged(GosprlError):
    """A file of a run is not what was written.

    Attributes
    ----------
    file
        Its path, relative to the directory of the run.
    batch
        The number of the damaged batch, counted over the whole chain from 1; None if it is not about a batch.
    what
        What is wrong.
    """

    def __init__(self, file: str, batch: int | None, what: str) -> None:
        super().__init__(f"{file}{'' if batch is None else f', batch {batch}'}: {what}")
        self.file, self.batch, self.what = file, batch, what

    def __reduce__(self) -> tuple[type, tuple[str, int | None, str]]:
        """Return how worker processes hand the error over."""
        return type(self), (self.file, self.batch, self.what)


class Disk:
    """The calls that change files. They are in one place so that tests can make them fail."""

    open: Callable[..., int] = staticmethod(os.open)
    write: Callable[..., int] = staticmethod(os.write)
    fsync: Callable[[int], None] = staticmethod(os.fsync)
    replace: Callable[..., None] = staticmethod(os.replace)
    truncate: Callable[[int, int], None] = staticmethod(os.ftruncate)
    unlink: Callable[..., None] = staticmethod(os.unlink)


disk = Disk()
_ENCODER = json.JSONEncoder(sort_keys=True, allow_nan=False)
_warned: set[str] = set()


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of the bytes, in as many calls as it takes."""
    rest = memoryview(data)
    while rest:
        written = disk.write(fd, rest)
        if written <= 0:
            raise OSError(errno.EIO, "the file takes no more bytes")
        rest = rest[written:]


def synced(fd: int) -> None:
    """Wait until the file is on the disk; warn once where the file system cannot do that."""
    try:
        disk.fsync(fd)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
        warn_once(
            "the file system of out= does not support fsync: what is acknowledged survives the end of the process, "
            "but perhaps not a power cut"
        )


def sync_directory(path: Place) -> None:
    """Wait until the names of the files in a directory are on the disk."""
    where, at = located(path)
    fd = disk.open(where, os.O_RDONLY, **at)
    try:
        synced(fd)
    finally:
        os.close(fd)


def open_regular(root: Place, name: str, flags: int = os.O_RDONLY) -> int:
    """Open a file inside a directory, without following symbolic links below it.

    Raises
    ------
    Damaged
        If a part of the path is a symbolic link, or it is no regular file. A missing file is a `FileNotFoundError`.
    """
    for parent in list(Path(name).parents)[-2::-1]:
        if not stat.S_ISDIR((root / parent).lstat().st_mode):
            raise Damaged(name, None, f"{parent} is no directory")
    try:
        where, at = located(root / name)
        fd = disk.open(where, flags | _NO_FOLLOW | _NO_WAIT, 0o666, **at)
    except OSError as error:
        if isinstance(error, IsADirectoryError) or error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            raise Damaged(name, None, "is no regular file") from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Damaged(name, None, "is no regular file")
    return fd


def canonical(value: dict[str, Any]) -> bytes:
    """Return the one form of a value as JSON: sorted keys, ASCII, a line for each field.

    A field has no line breaks inside: Python's fast encoder writes none.

    Raises
    ------
    ValueError, TypeError, RecursionError
        If JSON cannot hold the value.
    """
    return _joined(_fields(value))


def digest_of(value: dict[str, Any]) -> str:
    """Return the SHA-256 of the canonical form of a value, which has no field "digest", in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _fields(value: dict[str, Any]) -> dict[str, str]:
    """Return the line of each field."""
    return {name: f"{_ENCODER.encode(name)}: {_ENCODER.encode(part)}" for name, part in value.items()}


def _joined(fields: dict[str, str]) -> bytes:
    return ("{\n" + ",\n".join([fields[name] for name in sorted(fields)]) + "\n}\n").encode("ascii")


def _sealing(fields: dict[str, str]) -> bytes:
    """Return the bytes of a file with these fields and their digest."""
    digest = hashlib.sha256(_joined(fields)).hexdigest()
    return _joined({**fields, "digest": f'"digest": "{digest}"'})


def write_json(path: Place, value: dict[str, Any], lasting_name: bool = True) -> None:
    """Replace a file by the canonical form of a value with its digest; all or nothing, also in a power cut.

    Parameters
    ----------
    path, value
        The file and its content.
    lasting_name
        Whether to wait until the name is on the disk as well; if not, a power cut may bring the old file back.

    Raises
    ------
    InputError
        If JSON cannot hold the value exactly.
    OSError
        If the file cannot be written; the old one is still there.
    """
    data = _sealed(path.name, value)
    temporary = path.with_name(path.name + ".tmp")
    try:
        _write_new(temporary, [data])
        renamed(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if lasting_name:
        sync_directory(path.parent)


def renamed(source: Place, target: Place) -> None:
    """Put a file in the place of another one, in the same directory that is held, or by their paths."""
    (here, at), (there, _) = located(source), located(target)
    disk.replace(here, there, **({"src_dir_fd": at["dir_fd"], "dst_dir_fd": at["dir_fd"]} if at else {}))


def unshare(root: Place, name: str) -> None:
    """Give a file that has other names, too, its bytes for itself: a copy made of links must not change with it."""
    fd = open_regular(root, name)
    try:
        if os.fstat(fd).st_nlink > 1:
            temporary = root / f"{Path(name).name}.tmp"  # not in the log, where it would be a stray file
            _write_new(temporary, _parts(fd))
            renamed(temporary, root / name)
            sync_directory((root / name).parent)
    finally:
        os.close(fd)


def _parts(fd: int) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces."""
    offset = 0
    while part := os.pread(fd, MIB, offset):
        yield part
        offset += len(part)


def stamp_of(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is replaced; None if there is none. A large table takes long to read."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def read_json(path: Place, limit: int = 256 * MIB, root: Place | None = None) -> dict[str, Any]:
    """Return the value that `write_json` wrote, without its digest.

    Parameters
    ----------
    path
        The file.
    limit
        The largest size in bytes that is read.
    root
        The directory of the run, to which names in errors are relative; by default the file's own directory.

    Raises
    ------
    Damaged
        If the bytes are not exactly those that `write_json` writes.
    FileNotFoundError
        If there is no such file.
    """
    root = path.parent if root is None else root
    name = path.relative_to(root).as_posix()  # type: ignore[arg-type]  # both are of one kind
    fd = open_regular(root, name)
    with os.fdopen(fd, "rb") as file:
        size = os.fstat(fd).st_size
        if size > limit:
            raise Damaged(name, None, f"has {size} bytes; at most {limit} are read")
        data = file.read(size + 1)  # what is read in one call is allocated first
    try:
        return _unsealed(data)
    except (ValueError, TypeError, RecursionError) as error:
        raise Damaged(name, None, _reason(error)) from None


def _sealed(name: str, value: dict[str, Any]) -> bytes:
    """Return the bytes of a file, after making sure that they will be read as the same value."""
    if "digest" in value:
        raise InputError(f'{name}: the field "digest" is added when it is written, got one')
    try:
        fields = _fields(value)
        if _fields(_loaded(_joined(fields))) != fields:
            raise ValueError("its bytes are not the canonical form of their content")
        return _sealing(fields)
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{name}: expected a value that JSON holds exactly, got one where {_reason(error)}") from None


def _loaded(data: bytes) -> dict[str, Any]:
    """Return the value of a JSON object."""
    value = _DECODER.decode(data.decode("ascii"))
    if type(value) is not dict:
        raise ValueError("it is no JSON object")
    return value


def _unsealed(data: bytes) -> dict[str, Any]:
    value = _loaded(data)
    digest, fields = value.pop("digest", None), _fields(value)
    if _joined({**fields, **_fields({"digest": digest})}) != data:
        raise ValueError("its bytes are not the canonical form of their content")
    if _sealing(fields) != data:
        raise ValueError("its digest is not that of its content")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key occurs twice")
    return value


def no_constant(text: str) -> None:
    """Raise `ValueError` where a JSON parser finds NaN or an infinity."""
    raise ValueError(f"{text} is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=no_constant)


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _write_new(path: Place, data: Iterable[bytes]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW
    where, at = located(path)
    try:
        fd = disk.open(where, flags, 0o666, **at)
    except FileExistsError:  # left by a crash; or a link, which must not be followed
        path.unlink()
        fd = disk.open(where, flags, 0o666, **at)
    try:
        for part in data:
            write_all(fd, part)
        synced(fd)
    finally:
        os.close(fd)


def warn_once(message: str) -> None:
    """Warn, unless this process has been warned with the same message."""
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, stacklevel=3)
