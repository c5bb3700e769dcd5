"""Outputs that appear by rename: complete, or not at all.

An output is written into a new directory beside its place, synced, and renamed when it is complete. Whatever happens
before, nothing is left behind.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gosprl.errors import GosprlError, InputError
from gosprl.runs.files import sync_directory, synced


def check_free(target: Path, force: bool) -> None:
    """Raise `InputError` if a file cannot be made there."""
    if not target.parent.is_dir():
        raise InputError(f"file: expected a file in an existing directory, but {target.parent} is none")
    if not os.path.lexists(target):
        return
    if target.is_dir() and not target.is_symlink():
        raise InputError(f"file: {target} is an existing directory, which is never replaced; remove it first")
    if not force:
        raise InputError(f"file: {target} exists; give another name, or force=True (--force) to replace it")


@contextmanager
def directories(path: Path) -> Iterator[None]:
    """Make a directory and those that it is in; if what follows fails, remove those that were made."""
    made = [each for each in (path, *path.parents) if not each.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException as error:
        for each in made:
            with suppress(OSError):
                each.rmdir()
        if isinstance(error, OSError):
            raise GosprlError(f"file: {path} cannot be made: {error.strerror or error}") from error
        raise


@contextmanager
def appearing(target: Path, force: bool) -> Iterator[Path]:
    """Yield a path of the same name in a new directory; what is there afterwards is synced and renamed to `target`.

    Parameters
    ----------
    target
        The file or directory that appears.
    force
        Whether an existing file is replaced. A directory never is.
    """
    check_free(target, force)
    folder: str | None = None
    try:
        folder = tempfile.mkdtemp(prefix=f".{target.name[:100]}.", suffix=".tmp", dir=target.parent)
        temporary = Path(folder) / target.name
        yield temporary
        _sync(temporary)
        check_free(target, force)
        os.replace(temporary, target)
        sync_directory(target.parent)
    except OSError as error:
        reason = error.strerror or str(error)
        raise GosprlError(f"file: {target} cannot be written: {reason}; nothing was left behind") from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _sync(path: Path) -> None:
    """Wait until a file, or a directory with everything in it, is on the disk."""
    if not path.is_dir():
        fd = os.open(path, os.O_RDONLY)
        try:
            synced(fd)
        finally:
            os.close(fd)
        return
    for part in path.iterdir():
        _sync(part)
    sync_directory(path)
