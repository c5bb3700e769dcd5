"""Minari data sets: the steps of a run, split into episodes where they were.

Observations are the numbers of the log, in `Discrete(N)`; with crashes in `Discrete(N + 1)`, where N is the crash.
Minari's episodes have no action that resets: an episode that a chosen reset or the end of the log cut off has
`truncations` true at its last step. Resets without a step after them are left out. So are samples of a fleet whose
outcomes are not known, and the order of issue: the metadata say `fleet`, and such a data set is refused as `data=`.

Minari writes HDF5, whose library hides failures to write, and crashes after some of them. Therefore a process of its
own writes the data set, and another one reads it back and compares it with the log.
"""

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
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
_USED = ("state", "action", "next_state", "reward", "flags")
_CHILD = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from gosprl.exchange.minari import work; work()"

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
        for name in ("minari", "h5py", "PIL"):
            import_module(name)
    except ImportError as error:
        raise needs("minari", error) from None
    root = file.parent / "minari"
    root.mkdir()
    states, crashes = run.names.num_states, run.totals.crashes
    task = {
        "run": str(run.path.resolve()),
        "rows": source.rows,
        "id": dataset,
        "data": str((root / dataset / "data").resolve()),
        "crash": states,
        "observations": max(1, states + (crashes > 0)),
        "author": author,
        "email": email,
        "metadata": _metadata(source, crashes > 0),
    }
    (file.parent / "task.json").write_text(json.dumps(task))
    for step in ("write", "compare"):
        _in_child(step, file.parent / "task.json", root)
    os.replace(root / dataset, file)


def _metadata(source: Source, crashes: bool) -> dict[str, Any]:
    texts = source.observations
    return {
        **source.metadata,
        **({} if texts is None else {"observations": texts}),
        **({"crash": source.run.names.num_states} if crashes else {}),
        **({"fleet": True} if source.run.has_fleet else {}),
    }


def _in_child(step: str, task: Path, root: Path) -> None:
    """Let another process do a step; `OSError` if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, json.dumps(sys.path), step, str(task)],
        env={**os.environ, "MINARI_DATASETS_PATH": str(root.resolve())},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode:
        said = done.stdout.strip() or f"the process for Minari ended with status {done.returncode}, as on a full disk"
        raise OSError(said.splitlines()[-1][:300])


def work() -> None:
    """Do a step in a process of its own: its arguments are sys.path, the step, and the file of the task."""
    task = json.loads(Path(sys.argv[3]).read_text())
    try:
        source = Source(task["run"])
        source.rows = task["rows"]  # as it was then: the run may go on meanwhile
        {"write": _write, "compare": _compare}[sys.argv[2]](source, task)
    except Exception as error:
        print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)
        sys.exit(1)


def _write(source: Source, task: dict[str, Any]) -> None:
    import minari
    from gymnasium.spaces import Discrete

    strategy = source.run.manifest["legs"][-1]["strategy"]
    warnings.filterwarnings("ignore", category=UserWarning, module="minari")  # they ask for more metadata
    made = minari.create_dataset_from_buffers(
        dataset_id=task["id"],
        buffer=_buffers(source, task["crash"]),
        observation_space=Discrete(task["observations"]),
        action_space=Discrete(max(1, source.num_actions)),
        algorithm_name=f"gosprl {gosprl.__version__}: {strategy.get('name', 'own')}",
        author=task["author"],
        author_email=task["email"],
        description=f"Transitions of {source.name}, collected by gosprl.",
        data_format="hdf5",
    )
    made.storage.update_metadata({"gosprl": task["metadata"]})


def _compare(source: Source, task: dict[str, Any]) -> None:
    """Raise unless the data set has what was to be written."""
    import minari

    written = minari.MinariDataset(task["data"])
    episodes = 0
    for expected in _buffers(source, task["crash"]):
        (got,) = written.storage.get_episodes([expected.id])
        for name in ("observations", "actions", "rewards", "terminations", "truncations"):
            if not np.array_equal(getattr(expected, name), got[name]):
                raise OSError(f"the {name} of episode {expected.id} are not what was written")
        episodes += 1
    if written.total_episodes != episodes or written.storage.metadata["gosprl"] != task["metadata"]:
        raise OSError("the data set is not what was written")


def id_of(name: str) -> str:
    """Return the id of a data set in a directory of this name."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise InputError(
            f"file: expected a directory name NAME-vK of letters, digits, _ and -, such as lake-v0, got {name!r}"
        )
    return f"{NAMESPACE}/{match['name']}-v{int(match['version'] or 0)}"


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
            # an outcome that is not known ends an episode; one that came late is a row of its own
            mine = (columns["walker"] == walker) & ((columns["flags"] & FLAGS["unknown"]) == 0)
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
