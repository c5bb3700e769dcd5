"""Runs stored on disk, one file for each run, so that a sweep continues where it stopped.

    DIR/reproduction.json                     what wrote DIR: format, version, quick or not
    DIR/NAME/runs/CASE/ALGORITHM/SEED.json    one run: the complete job, and its outcome (`Storable.place`)
    DIR/NAME/drawn.json                       which runs the figure of the experiment shows
    DIR/NAME/runs.csv                         these runs, one per row

Files contain nothing that differs between two executions of the same job, and are written atomically. A stored run is
never written again. Stored runs are expensive, so a file that does not match the job raises an error, and is not
replaced.
"""

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import gosprl
from gosprl.errors import InputError
from gosprl.experiments.sweep import Results, Run

FORMAT = 2  # 1: without the last three numbers of a run
MARKER, DRAWN = "reproduction.json", "drawn.json"
NUMBERS = ("watched", "attempts", "ended", "reached")  # whole numbers of a run


class Storable(Protocol):
    """The specification of a run that can be stored."""

    @property
    def seed(self) -> int:
        """The seed of the run."""

    @property
    def place(self) -> str:
        """Where its run is stored, in the folder of its experiment, without the ending."""

    def described(self) -> dict[str, Any]:
        """Return everything that determines its outcome."""


def begin(out: Path, **about: Any) -> None:
    """Create the directory `out`, or check that it is one of ours, of the same version and about the same."""
    marker, expected = out / MARKER, _written_by() | _plain(about)
    try:
        if marker.exists():
            _check(marker, _parsed(marker, out), expected, out)
            return
        if out.exists() and not out.is_dir():
            raise InputError(f"out: expected a directory, got the file {out}; give another --out")
        if out.exists() and any(out.iterdir()):
            raise InputError(
                f"out: expected a new or empty directory, or one with {MARKER}, got {out} with other files; "
                "give another --out"
            )
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"out: {out} cannot be used as a directory: {error}; give another --out") from None
    write(marker, _json(expected))


def save(out: Path, name: str, job: Storable, run: Run) -> None:
    """Store a run of the experiment `name`."""
    outcome = {"steps": run.steps, "met": run.met, "max_steps": run.max_steps}
    names = (*NUMBERS, "uneven", "stop", "states")
    outcome |= {"curve": run.curve.tolist(), **{name: getattr(run, name) for name in names}}
    write(path(out, name, job), _json({**_written_by(), "job": _plain(job.described()), "run": outcome}))


def load(out: Path, name: str, job: Storable) -> Run | None:
    """Return the stored run of a job, None if there is none; `InputError` if the file is of another job."""
    file, folder = path(out, name, job), out / name
    if not file.exists():
        return None
    stored = _parsed(file, folder)
    _check(file, stored, _written_by() | {"job": _plain(job.described())}, folder)
    try:
        run = stored["run"]
        curve = np.array(run["curve"], dtype=float).reshape(-1, 2)
        ended = (int(run["steps"]), bool(run["met"]), run["max_steps"])
        watched, attempts, walks, reached = (int(run[name]) for name in NUMBERS)
        uneven, stop, states = float(run["uneven"]), str(run.get("stop", "")), int(run.get("states", 0))
        return Run(job.seed, *ended, curve, watched, attempts, walks, reached, uneven, stop, states)
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable(file, folder, error) from None


def path(out: Path, name: str, job: Storable) -> Path:
    """Return the file of a run."""
    return out / name / "runs" / f"{job.place}.json"


def counts(out: Path) -> dict[str, int]:
    """Return the number of stored runs of each experiment."""
    folders = (folder.parent for folder in sorted(out.glob("*/runs")))
    return {folder.name: sum(1 for _ in folder.glob("runs/*/*/*.json")) for folder in folders}


def save_drawn(out: Path, name: str, runs: int, failed: Sequence[str]) -> None:
    """Store the number of runs that the figure of an experiment shows, and those that failed."""
    write(out / name / DRAWN, _json({"runs": runs, "failed": list(failed)}))


def load_drawn(out: Path, name: str) -> tuple[int, tuple[str, ...]] | None:
    """Return what `save_drawn` stored, None if nothing was drawn yet."""
    file, folder = out / name / DRAWN, out / name
    if not file.exists():
        return None
    noted = _parsed(file, folder)
    try:
        return int(noted["runs"]), tuple(map(str, noted["failed"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable(file, folder, error) from None


def run_rows(results: Results) -> list[dict[str, Any]]:
    """Return one row for each run, without its curve."""
    keys = ("seed", "steps", "met", "max_steps", *NUMBERS, "uneven")
    return [
        {"case": case, "algorithm": algorithm, **{key: getattr(run, key) for key in keys}}
        for (case, algorithm), runs in results.items()
        for run in runs
    ]


def write_csv(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as CSV."""
    write(file, as_csv(rows))


def as_csv(rows: Sequence[dict[str, Any]]) -> bytes:
    """Return rows as CSV; an entry that a row does not have is empty."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue().encode()


def write(file: Path, content: bytes) -> None:
    """Write a file atomically: after a failure it is as it was before."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            unfinished.write_bytes(content)
            os.replace(unfinished, file)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"out: {file} cannot be written: {error}; stored runs are kept, so solve this and repeat the command"
        ) from None


def _written_by() -> dict[str, Any]:
    return {"format": FORMAT, "version": gosprl.__version__}


def _plain(described: dict[str, Any]) -> dict[str, Any]:
    """Return it as it is read back."""
    data: dict[str, Any] = json.loads(json.dumps(described))
    return data


def _json(data: dict[str, Any]) -> bytes:
    return (json.dumps(data) + "\n").encode()


def _parsed(file: Path, folder: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unreadable(file, folder, error) from None
    if not isinstance(data, dict):
        raise _unreadable(file, folder, TypeError(f"expected an object, got {type(data).__name__}"))
    return data


def _check(file: Path, has: dict[str, Any], expected: dict[str, Any], folder: Path) -> None:
    for key, value in expected.items():
        if key not in has or has[key] != value:
            entry, old, new = _difference(key, has.get(key), value)
            raise InputError(
                f"out: {file} has {entry} {old!r}, expected {new!r}; give another --out, or remove {folder}"
            )


def _difference(entry: str, has: Any, expected: Any) -> tuple[str, Any, Any]:
    """Return the innermost entry that differs: its name, and both values."""
    if isinstance(has, dict) and isinstance(expected, dict):
        for key in [*expected, *has]:
            if has.get(key) != expected.get(key):
                return _difference(f"{entry}.{key}", has.get(key), expected.get(key))
    return entry, has, expected


def _unreadable(file: Path, folder: Path, error: Exception) -> InputError:
    return InputError(
        f"out: expected a run that gosprl has stored, got {file}, which cannot be read "
        f"({type(error).__name__}: {error}); give another --out, or remove {folder}"
    )
