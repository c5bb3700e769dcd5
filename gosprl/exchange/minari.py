"""Minari data sets: the steps of a run, split into episodes where they were.

Observations are the numbers of the log, in `Discrete(N)`; with crashes in `Discrete(N + 1)`, where N is the crash.
Minari's episodes have no action that resets: an episode that a chosen reset or the end of the log cut off has
`truncations` true at its last step. Resets without a step after them are left out.
"""

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gosprl
from gosprl.errors import InputError
from gosprl.exchange.exporting import needs
from gosprl.exchange.sources import Source
from gosprl.exchange.tables import FLAGS

NAMESPACE = "gosprl"
_NAME = re.compile(r"(?P<name>[A-Za-z0-9_][A-Za-z0-9_-]*?)(-v(?P<version>\d+))?")
_ROOT = "MINARI_DATASETS_PATH"
_USED = ("state", "action", "next_state", "reward", "flags")

Columns = dict[str, NDArray[Any]]


def write(source: Source, file: Path, *, author: str | None = None, email: str | None = None) -> None:
    """Write a data set to a directory; its id is ``gosprl/NAME-vK``, where ``NAME-vK`` is the name of the directory.

    Parameters
    ----------
    source
        A run.
    file
        A directory that does not exist. Minari finds it by its id if it is ``gosprl/NAME-vK`` below the directory that
        MINARI_DATASETS_PATH names.
    author, email
        Who answers for the data; in the metadata.
    """
    run, dataset = source.run, id_of(file.name)
    try:
        import minari
        from gymnasium.spaces import Discrete
    except ImportError as error:
        raise needs("minari", error) from None
    crash, strategy = run.names.num_states, run.manifest["legs"][-1]["strategy"]
    root = file.parent / "minari"
    root.mkdir()
    with _datasets_in(root), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="minari")  # they ask for more metadata
        try:
            made = minari.create_dataset_from_buffers(
                dataset_id=dataset,
                buffer=_buffers(source, crash),
                observation_space=Discrete(max(1, crash + (run.totals.crashes > 0))),
                action_space=Discrete(max(1, source.num_actions)),
                algorithm_name=f"gosprl {gosprl.__version__}: {strategy.get('name', 'own')}",
                author=author,
                author_email=email,
                description=f"Transitions of {source.name}, collected by gosprl.",
                data_format="hdf5",
            )
            made.storage.update_metadata({"gosprl": _metadata(source)})
        except RuntimeError as error:  # of HDF5, where a file cannot be closed
            raise OSError(str(error)) from error
    _read_back(source, root / dataset / "data", crash)
    os.replace(root / dataset, file)


def _read_back(source: Source, data: Path, crash: int) -> None:
    """Raise `OSError` unless the data set has what was written: h5py does not report all failures to write."""
    import minari

    try:
        written = minari.MinariDataset(data).iterate_episodes()
        for expected, got in zip(_buffers(source, crash), written, strict=True):
            for name in ("observations", "actions", "rewards", "terminations", "truncations"):
                if not np.array_equal(getattr(expected, name), getattr(got, name)):
                    raise OSError(f"the {name} of episode {expected.id} are not what was written")
    except (RuntimeError, ValueError, LookupError) as error:
        raise OSError(f"the data set cannot be read back: {error}") from error


def id_of(name: str) -> str:
    """Return the id of a data set in a directory of this name."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise InputError(
            f"file: expected a directory name NAME-vK of letters, digits, _ and -, such as lake-v0, got {name!r}"
        )
    return f"{NAMESPACE}/{match['name']}-v{int(match['version'] or 0)}"


def _metadata(source: Source) -> dict[str, Any]:
    texts = source.observations
    crashes = source.run.totals.crashes
    return {
        **source.metadata,
        **({} if texts is None else {"observations": texts}),
        **({"crash": source.run.names.num_states} if crashes else {}),
    }


@contextmanager
def _datasets_in(root: Path) -> Iterator[None]:
    """Let Minari write below `root`; its functions take no path, only this variable."""
    before = os.environ.get(_ROOT)
    os.environ[_ROOT] = str(root)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_ROOT]
        else:
            os.environ[_ROOT] = before


def _buffers(source: Source, crash: int) -> Iterator[Any]:
    """Yield the episodes as Minari's buffers."""
    from minari.data_collector import EpisodeBuffer

    for number, episode in enumerate(episodes(source)):
        flags, following = episode["flags"], episode["next_state"]
        terminated, truncated = (flags & FLAGS["terminated"]) > 0, (flags & FLAGS["truncated"]) > 0
        truncated[-1] |= not terminated[-1]
        observations = np.append(episode["state"][:1], np.where((flags & FLAGS["crash"]) > 0, crash, following))
        yield EpisodeBuffer(
            id=number,
            observations=observations.astype(np.int64),
            actions=episode["action"].astype(np.int64),
            rewards=episode["reward"],
            terminations=terminated,
            truncations=truncated,
        )


def episodes(source: Source) -> Iterator[Columns]:
    """Yield the steps of each episode, in the order in which the episodes end; memory holds those that go on."""
    held: dict[int, list[Columns]] = {}  # by walker
    for columns in source.batches():
        for walker in np.unique(columns["walker"]).tolist():
            mine = columns["walker"] == walker
            part = {name: columns[name][mine] for name in _USED}
            begin = 0
            for reset in [*np.flatnonzero(part["flags"] & FLAGS["reset"]).tolist(), len(part["flags"])]:
                if reset > begin:
                    held.setdefault(walker, []).append({name: column[begin:reset] for name, column in part.items()})
                if reset < len(part["flags"]) and held.get(walker):
                    yield _joined(held.pop(walker))
                begin = reset + 1
    for parts in held.values():
        yield _joined(parts)


def _joined(parts: list[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in _USED}
