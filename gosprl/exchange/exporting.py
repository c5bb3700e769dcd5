"""`export`: write a run or a result as a file of another format.

An output appears by rename: it is written into a new directory beside its place, synced, and renamed when it is
complete. Whatever happens before, nothing is left behind.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gosprl import _checks
from gosprl.errors import GosprlError, InputError
from gosprl.runs.files import sync_directory, synced

if TYPE_CHECKING:
    from gosprl.collecting.result import Result
    from gosprl.model.empirical import EmpiricalModel

INSTALL = "pip install 'gosprl[exchange]'"


@dataclass(frozen=True)
class Format:
    """A format that is written.

    Attributes
    ----------
    place
        ``module:function``, imported when it is needed.
    endings
        The endings of files that mean this format.
    of_model
        Whether the function is ``write(model, file, *, delta, ...)``; otherwise it is ``write(source, file, ...)``.
    what
        What is written, in words.
    """

    place: str
    endings: tuple[str, ...]
    what: str
    of_model: bool = False


FORMATS = {
    "npz": Format("gosprl.exchange.npz:write", (".npz",), "transitions, counts and model as NumPy arrays"),
    "parquet": Format("gosprl.exchange.tables:write_parquet", (".parquet",), "transitions; or the model"),
    "csv": Format("gosprl.exchange.tables:write_csv", (".csv",), "transitions; or the model"),
    "minari": Format("gosprl.exchange.minari:write", (), "a Minari data set, a directory"),
    "dot": Format("gosprl.exchange.graphs:write_dot", (".dot",), "the model as a graph, for Graphviz"),
    "graphml": Format("gosprl.exchange.graphs:write_graphml", (".graphml",), "the model as a graph, for networkx"),
    "prism": Format("gosprl.exchange.prism:write", (), "the interval MDP, for PRISM", of_model=True),
    "drn": Format("gosprl.exchange.drn:write", (".drn",), "the interval MDP, for Storm", of_model=True),
    "umb": Format("gosprl.exchange.umb:write", (".umb",), "the interval MDP, for PRISM and Storm", of_model=True),
}


def export(
    source: "str | os.PathLike[str] | Result | EmpiricalModel",
    file: str | os.PathLike[str],
    to: str | None = None,
    *,
    force: bool = False,
    **options: Any,
) -> None:
    """Write a run, a result or a model in a format that other tools read: docs/exchange.md.

    Parameters
    ----------
    source
        The directory of a run: its transitions in order, and its model. A result or a model: its counts, because their
        order is not known.
    file
        What is written. It appears by rename, when it is complete. The data set of Minari is a directory.
    to
        The format: npz, parquet, csv, minari, dot, graphml, prism, drn or umb; by default from the file's ending.
    force
        Whether an existing file is replaced. A directory never is.
    **options
        Of the format, such as ``table="model"`` for csv and parquet.

    Raises
    ------
    InputError
        The format is unknown, cannot hold the source, or needs a package that is not installed; the file exists; the
        run is damaged.
    GosprlError
        The file cannot be written; nothing is left behind.

    Examples
    --------
    >>> import gosprl, tempfile
    >>> from gosprl.exchange import export
    >>> run = tempfile.mkdtemp()
    >>> result = gosprl.collect(gosprl.envs.make("riverswim6"), need=10, seed=0, out=run)
    >>> export(run, tempfile.mkdtemp() + "/transitions.parquet")
    """
    target = Path(file)
    name = format_of(target, to)
    check_free(target, force)
    write = _writer(name)

    from gosprl.exchange.sources import Source

    found = Source(source)
    with appearing(target, force) as temporary:
        try:
            if FORMATS[name].of_model:
                write(found.model, temporary, **{"delta": found.delta, **options})
            else:
                write(found, temporary, **options)
        except TypeError as error:
            if "unexpected keyword argument" in str(error) and any(repr(option) in str(error) for option in options):
                raise InputError(f"options: {name} has no such option: {error}") from None
            raise


def format_of(file: Path, to: str | None, formats: dict[str, Any] | None = None) -> str:
    """Return the format of a file: the one named, or that of its ending."""
    known = FORMATS if formats is None else {name: FORMATS[name] for name in formats}
    if to is not None:
        _checks.choice("to", to, known)
        return to
    for name, entry in known.items():
        if file.suffix.lower() in entry.endings:
            return name
    endings = " ".join(ending for entry in known.values() for ending in entry.endings)
    raise InputError(
        f"file: expected a name that ends with one of {endings}, got {file.name!r}; or give the format: "
        f"to= (--to) with one of {', '.join(known)}"
    )


def _writer(name: str) -> Any:
    """Return the function that writes a format."""
    module, _, function = FORMATS[name].place.partition(":")
    try:
        return getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        if error.name == module:
            raise InputError(f"to: {name} is not available in this version") from None
        raise needs(name, error) from None


def needs(name: str, error: ImportError) -> InputError:
    """Return the error that a package is missing for a format."""
    return InputError(f"to: {name} needs a package that is not installed ({error}); {INSTALL}")


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
def appearing(target: Path, force: bool) -> Iterator[Path]:
    """Yield a path of the same name in a new directory; what is there afterwards is synced and renamed to `target`."""
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
    files = [part for part in path.rglob("*") if part.is_file()] if path.is_dir() else [path]
    for file in files:
        fd = os.open(file, os.O_RDONLY)
        try:
            synced(fd)
        finally:
            os.close(fd)
