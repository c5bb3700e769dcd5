"""`repair`: copy what can be trusted of a damaged run to a new directory. The damaged one is not touched.

The chain of digests has the batches of the log and of the names in the order in which they were acknowledged, names
before the events that need them. Therefore what comes before the first damage is a run of its own: shorter, without a
certificate, and ready to be resumed.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gosprl.errors import InputError
from gosprl.printing import printable
from gosprl.runs.auditing import Audit, Impossible
from gosprl.runs.begun import KeptData, data_in_words
from gosprl.runs.chain import NAMES_FILE
from gosprl.runs.files import Damaged, read_json, write_json
from gosprl.runs.looking import id_in_damaged
from gosprl.runs.manifests import CHECKPOINTS, MANIFEST, TABLE, now, read_manifest
from gosprl.runs.opened import OpenRun
from gosprl.runs.reading import Contents, read_log
from gosprl.runs.writing import copy_prefix

BY_HAND = (
    "the transitions can be read without gosprl: log/*.arrow are Arrow streams, "
    'pyarrow.ipc.open_stream(open("log/000001.arrow", "rb")).read_all(); states.arrow, too'
)


@dataclass(frozen=True)
class Repaired:
    """What `repair` did.

    Attributes
    ----------
    directory, target
        The damaged run, and the copy.
    events
        How many events the copy has.
    complete
        Whether the copy is a run, which can be resumed; otherwise it has a log only.
    notes
        What was damaged, and what is left out.
    """

    directory: Path
    target: Path
    events: int
    complete: bool
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        head = f"{self.target}: the first {self.events:,} events of {self.directory}" + (
            "" if self.complete else ", no run"
        )
        return "\n".join([head, *(f"  {note}" for note in self.notes)])


def repair(directory: str | os.PathLike[str], target: str | os.PathLike[str]) -> Repaired:
    """Copy the longest part of a run that can be trusted, from its beginning, to a new directory.

    Parameters
    ----------
    directory
        The run; it is only read.
    target
        A directory that does not exist.

    Returns
    -------
    What was copied, and what was not.

    Raises
    ------
    InputError
        It is no run, or of a newer format; or the target exists. Nothing was written.

    Examples
    --------
    >>> import gosprl, tempfile
    >>> run = tempfile.mkdtemp()
    >>> result = gosprl.collect(gosprl.envs.make("riverswim6"), need=10, seed=0, out=run)
    >>> gosprl.runs.repair(run, run + "-copy").events == result.steps + 1  # the first reset is an event, too
    True
    """
    source, place = Path(directory), Path(target)
    try:
        manifest = read_manifest(source)
    except (Damaged, OSError) as error:
        _check_target(source, place)
        return _log_alone(source, place, str(error))
    _check_target(source, place)
    manifest, data, lost_data = _trusted_data(source, manifest)
    contents, notes = _trusted(OpenRun(source, manifest, read_log(source, manifest["run"])))
    notes = lost_data + notes
    place.mkdir(parents=True)
    (place / CHECKPOINTS).mkdir()
    copy_prefix(contents, place)
    if data is not None:
        data.write(place)
    system, lost = _copied_table(source, place, manifest["system"])
    notes += lost
    write_json(place / MANIFEST, _shortened({**manifest, "system": system}, contents.rows, notes))
    notes.append("without a certificate and checkpoints: gosprl resume goes on from there, and makes a certificate")
    return Repaired(source, place, contents.rows, True, tuple(printable(note) for note in notes))


def _check_target(source: Path, target: Path) -> None:
    if os.path.lexists(target):
        raise InputError(f"target: expected a directory that does not exist, but {target} does")
    if source.resolve() in target.resolve().parents:
        raise InputError(f"target: expected a directory outside of {source}, which is not touched")


def _trusted_data(source: Path, manifest: dict[str, Any]) -> tuple[dict[str, Any], KeptData | None, list[str]]:
    """Return the manifest, the data that the run began with, and why not; without data that cannot be trusted."""
    if "data" not in manifest:
        return manifest, None, []
    try:
        return manifest, KeptData.read(source, manifest), []
    except (Damaged, OSError) as error:
        note = (
            f"{error}: the data that the run began with are left out, {data_in_words(manifest['data'])}; the events of "
            "the log are kept, and planning begins anew when the run is resumed"
        )
        return {name: part for name, part in manifest.items() if name != "data"}, None, [note]


def _trusted(run: OpenRun) -> tuple[Contents, list[str]]:
    """Return what can be trusted of a log, and why not more."""
    contents = run.contents
    notes = [str(Damaged(*problem)) for problem in contents.problems]
    while True:
        try:
            kept = OpenRun(run.directory, run.manifest, contents)
            Audit(kept).read()
            return contents, notes
        except Damaged as error:
            notes.append(str(error))
            contents = _before_batch(contents, error)
        except Impossible as error:
            notes.append(f"the log: {error}")
            contents = _before_event(contents, error.event)


def _before_batch(contents: Contents, error: Damaged) -> Contents:
    """Leave out a batch that cannot be read, and what follows; the last one of names if its number is not known."""
    if error.batch is not None:
        return _cut(contents, error.batch - 1)
    named = [link.number for link in contents.links if link.file == NAMES_FILE]
    return _cut(contents, (named[-1] if named else 1) - 1)


def _before_event(contents: Contents, event: int) -> Contents:
    """Leave out the batch with this event, and what follows."""
    rows = 0
    for link in contents.links:
        rows += link.rows if link.file != NAMES_FILE else 0
        if rows > event:
            return _cut(contents, link.number - 1)
    return _cut(contents, 0)


def _cut(contents: Contents, links: int) -> Contents:
    """Return the first links of a log."""
    kept = contents.links[:links]
    rows = sum(link.rows for link in kept if link.file != NAMES_FILE)
    digest = kept[-1].digest if kept else contents.digest
    return replace(contents, links=kept, rows=rows, digest=digest, closed=False)


def _copied_table(source: Path, target: Path, system: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Copy the table that was walked; return the entry of the manifest, and what was lost."""
    if not system["stored"]:
        return dict(system), []
    try:
        write_json(target / TABLE, read_json(source / TABLE, root=source))
        return dict(system), []
    except (Damaged, OSError) as error:
        note = f"{error}: the table is left out; give it when the run is resumed: gosprl.resume(directory, system=...)"
        return {**system, "stored": False}, [note]


def _shortened(manifest: Mapping[str, Any], rows: int, notes: list[str]) -> dict[str, Any]:
    """Return the manifest of the first events, which says why there are no more."""
    repaired = {"when": now(), "events": rows, "because": [printable(note)[:1000] for note in notes[:10]]}
    return {
        **manifest,
        "legs": [leg for leg in manifest["legs"] if leg["first"] <= rows],
        "continued": [entry for entry in manifest["continued"] if entry["event"] <= rows],
        "repaired": [*manifest.get("repaired", []), repaired],
    }


def _log_alone(source: Path, target: Path, problem: str) -> Repaired:
    """Copy the log of a run without a manifest that can be trusted, if its digests can be checked."""
    notes = [problem, "need, strategy, seed and system were in the manifest: the run cannot be resumed or certified"]
    run_id, rows = id_in_damaged(source), 0
    if run_id is None:
        notes.append(f"without the id of the run no digest can be checked, and nothing was copied; {BY_HAND}")
        return Repaired(source, target, 0, False, tuple(printable(note) for note in notes))
    contents = read_log(source, run_id)
    notes += [str(Damaged(*found)) for found in contents.problems]
    if contents.links:
        target.mkdir(parents=True)
        copy_prefix(contents, target)
        rows = contents.rows
    notes.append(f"{BY_HAND}; the chain of digests of the copy begins with the SHA-256 of the id {run_id}")
    return Repaired(source, target, rows, False, tuple(printable(note) for note in notes))
