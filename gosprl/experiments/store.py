"""What was run, kept on disk: one file a run, so that a sweep goes on where it stopped.

    DIR/reproduction.json                     what wrote DIR: format, version, quick or not
    DIR/NAME/runs/CASE/ALGORITHM/SEED.json    one run: the job, completely, and what it gave
    DIR/NAME/drawn.json                       of which runs the figure of the experiment is
    DIR/NAME/runs.csv                         these runs, one a row

Files hold nothing that differs between two executions of the same job, appear complete or not at all, and a run that
is stored is never written again. What does not fit what is asked for is an error, not repaired: it may be dear.
"""

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import gosprl
from gosprl.errors import InputError
from gosprl.experiments.algorithms import ALGORITHMS
from gosprl.experiments.sweep import Job, Results, Run

FORMAT = 1
MARKER, DRAWN = "reproduction.json", "drawn.json"


def begin(out: Path, quick: bool) -> None:
    """Make `out` a directory of ours, or check that it is one and of the same kind."""
    marker, expected = out / MARKER, _written_by() | {"quick": quick}
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
        raise InputError(f"out: {out} is no directory that can be used: {error}; give another --out") from None
    write(marker, _json(expected))


def save(out: Path, name: str, job: Job, run: Run) -> None:
    """Keep a run of the experiment `name`."""
    gave = {"steps": run.steps, "met": run.met, "max_steps": run.max_steps}
    gave |= {"curve": run.curve.tolist(), "watched": run.watched, "attempts": run.attempts}
    write(path(out, name, job), _json({**_written_by(), "job": _data(job), "run": gave}))


def load(out: Path, name: str, job: Job) -> Run | None:
    """What a job gave, or None if it has not been run; an error if the file is of another job."""
    file, folder = path(out, name, job), out / name
    if not file.exists():
        return None
    stored = _parsed(file, folder)
    _check(file, stored, _written_by() | {"job": _data(job)}, folder)
    try:
        run = stored["run"]
        curve = np.array(run["curve"], dtype=float).reshape(-1, 2)
        ended = (int(run["steps"]), bool(run["met"]), run["max_steps"])
        return Run(job.seed, *ended, curve, int(run["watched"]), int(run["attempts"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable(file, folder, error) from None


def path(out: Path, name: str, job: Job) -> Path:
    """The file of a run."""
    return out / name / "runs" / job.case.name / job.algorithm / f"{job.seed}.json"


def counts(out: Path) -> dict[str, int]:
    """How many runs are stored, by experiment."""
    folders = (folder.parent for folder in sorted(out.glob("*/runs")))
    return {folder.name: sum(1 for _ in folder.glob("runs/*/*/*.json")) for folder in folders}


def save_drawn(out: Path, name: str, runs: int, failed: Sequence[str]) -> None:
    """Note of how many runs the figure of an experiment is, and which are missing there."""
    write(out / name / DRAWN, _json({"runs": runs, "failed": list(failed)}))


def load_drawn(out: Path, name: str) -> tuple[int, tuple[str, ...]] | None:
    """What `save_drawn` noted, None if nothing was drawn yet."""
    file, folder = out / name / DRAWN, out / name
    if not file.exists():
        return None
    noted = _parsed(file, folder)
    try:
        return int(noted["runs"]), tuple(map(str, noted["failed"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable(file, folder, error) from None


def run_rows(results: Results) -> list[dict[str, Any]]:
    """One row a run, without its curve."""
    keys = ("seed", "steps", "met", "max_steps", "watched", "attempts")
    return [
        {"case": case, "algorithm": algorithm, **{key: getattr(run, key) for key in keys}}
        for (case, algorithm), runs in results.items()
        for run in runs
    ]


def write_csv(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Rows under the names of their entries; a row without one has it empty."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    write(file, text.getvalue().encode())


def write(file: Path, content: bytes) -> None:
    """Write a file that is there completely or, whatever happens meanwhile, as it was before."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            unfinished.write_bytes(content)
            os.replace(unfinished, file)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"out: {file} cannot be written: {error}; what is stored stays, repair that first") from None


def _written_by() -> dict[str, Any]:
    return {"format": FORMAT, "version": gosprl.__version__}


def _data(job: Job) -> dict[str, Any]:
    """A job as JSON has it, with all that decides what it gives; titles, labels and colours do not."""
    algorithm, case = ALGORITHMS[job.algorithm], asdict(job.case)
    del case["title"]
    whole = {
        "case": case,
        "algorithm": job.algorithm,
        "strategy": algorithm.strategy,
        "options": dict(algorithm.options),
        "told": algorithm.told,
        "trap_cost": algorithm.trap_cost,
        "seed": job.seed,
        "max_steps": job.max_steps,
    }
    data: dict[str, Any] = json.loads(json.dumps(whole))
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
            what, old, new = _difference(key, has.get(key), value)
            raise InputError(
                f"out: {file} has {what} {old!r}, expected {new!r}; give another --out, or remove {folder}"
            )


def _difference(what: str, has: Any, expected: Any) -> tuple[str, Any, Any]:
    """The innermost entry that differs: its name, and both values."""
    if isinstance(has, dict) and isinstance(expected, dict):
        for key in [*expected, *has]:
            if has.get(key) != expected.get(key):
                return _difference(f"{what}.{key}", has.get(key), expected.get(key))
    return what, has, expected


def _unreadable(file: Path, folder: Path, error: Exception) -> InputError:
    return InputError(
        f"out: expected a file of gosprl reproduce, got {file}, which cannot be read "
        f"({type(error).__name__}: {error}); give another --out, or remove {folder}"
    )
