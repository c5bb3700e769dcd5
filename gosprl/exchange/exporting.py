"""`export`: write a run or a result as a file of another format."""

import os
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.exchange.appearing import appearing, check_free, directories

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
        Whether the function is ``save(mdp, file)``, of an `IntervalMDP`; otherwise it is ``write(source, file, ...)``.
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
    "prism": Format(
        "gosprl.exchange.prism:save", (".prism", ".nm", ".pm"), "the interval MDP, for PRISM", of_model=True
    ),
    "drn": Format("gosprl.exchange.drn:save", (".drn",), "the interval MDP, for Storm", of_model=True),
    "umb": Format("gosprl.exchange.umb:save", (".umb",), "the interval MDP, for PRISM and Storm", of_model=True),
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
    in_namespace = name == "minari"  # a data set is called namespace/name-v0: its directories are made
    if not in_namespace or target.parent.is_dir():
        check_free(target, force)
    write = _writer(name)

    from gosprl.exchange.sources import Source

    found = Source(source)
    with directories(target.parent) if in_namespace else nullcontext(), appearing(target, force) as temporary:
        try:
            if FORMATS[name].of_model:
                from gosprl.exchange.learnt import as_interval_mdp

                write(as_interval_mdp(found.model, **{"delta": found.delta, **options}), temporary)
            else:
                write(found, temporary, **options)
        except TypeError as error:
            if "unexpected keyword argument" in str(error) and any(repr(option) in str(error) for option in options):
                raise InputError(f"options: {name} has no such option: {error}") from None
            raise


def format_of(file: Path, to: str | None, formats: Iterable[str] = FORMATS, argument: str = "file") -> str:
    """Return the format of a file: the one named, or that of its ending."""
    known = {name: FORMATS[name] for name in formats}
    if to is not None:
        _checks.choice("to", to, known)
        return to
    for name, entry in known.items():
        if file.suffix.lower() in entry.endings:
            return name
    endings = " ".join(ending for entry in known.values() for ending in entry.endings)
    way = f"; or give the format: to= (--to) with one of {', '.join(known)}" if argument == "file" else ""
    raise InputError(f"{argument}: expected a name that ends with one of {endings}, got {file.name!r}{way}")


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
