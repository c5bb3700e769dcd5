"""What is checked of the files of a run before anything is written to it, or taken from it.

The files of a directory may be of different moments: a backup or an interrupted copy takes them one after the other.
The log is written before any other file speaks of its events, and the manifest before the log has events of a new leg
or continuation. `verify` reports what is found here; everything else refuses.
"""

from collections.abc import Iterator

from gosprl.errors import GosprlError, InputError
from gosprl.runs import describing
from gosprl.runs.auditing import Audit, Impossible
from gosprl.runs.certificate import CERTIFICATE, unfit
from gosprl.runs.chain import CHAIN, NAMES_FILE
from gosprl.runs.files import Damaged, read_json
from gosprl.runs.journal import SYSTEM_STATE
from gosprl.runs.manifests import CHECKPOINTS, MANIFEST, TABLE
from gosprl.runs.opened import FORGED, OpenRun
from gosprl.runs.reading import Contents


def check_undamaged(run: OpenRun) -> None:
    """Raise `InputError` if the files of a run are damaged, or do not belong together: nothing is written then."""
    try:
        for problem in run.contents.problems:
            raise Damaged(*problem)
        run.names.num_states, run.data  # noqa: B018
        for wrong in of_other_moments(run):
            raise wrong
        _check_table(run)
        _audit(run)
    except Damaged as error:
        raise InputError(
            f"run: {run.directory} is damaged: {error}. Nothing was written. gosprl verify {run.directory} says more, "
            f"and gosprl repair {run.directory} TARGET makes a copy of what can be trusted, which can be resumed"
        ) from None


def of_other_moments(run: OpenRun) -> Iterator[Damaged]:
    """Yield what does not belong together: files that speak of more than the log or the manifest has."""
    manifest, contents, beside = run.manifest, run.contents, run.beside
    events = [leg["first"] for leg in manifest["legs"]] + [entry["event"] for entry in manifest["continued"]]
    saved = [one for one in beside.checkpoints if not one.wrong]  # a damaged one only costs time
    for file, said in ((MANIFEST, max(events)), *((one.file, one.events) for one in saved)):
        if said > contents.rows:
            yield _missing(contents, f"is missing: {file} speaks of {said} events, {contents.rows} are there")
    here = len(manifest["legs"]), len(manifest["continued"])
    for one in saved:
        if one.legs > here[0] or one.continued > here[1]:
            said_there = f"{one.legs} leg(s) and {one.continued} continuation(s)"
            what = f"is older than {one.file}: expected {said_there}, got {here[0]} and {here[1]}"
            yield Damaged(MANIFEST, None, what)
    for one in beside.checkpoints:
        if one.wrong and one.file == f"{CHECKPOINTS}/{SYSTEM_STATE}":  # without it, the system would be reset
            yield Damaged(one.file, None, one.wrong)
    if beside.wrong is not None:
        yield beside.wrong
    wrong = None if beside.certificate is None else unfit(beside.certificate, contents)
    if wrong is not None and (beside.certificate or {}).get("events") in range(contents.rows):
        yield Damaged(CERTIFICATE, None, wrong)
    elif wrong is not None:
        yield _missing(contents, f"is missing, or {CERTIFICATE} is that of another run: {wrong}")


def _missing(contents: Contents, what: str) -> Damaged:
    return Damaged(CHAIN, len(contents.links) + 1, what)


def _check_table(run: OpenRun) -> None:
    """Raise `Damaged` if the table that is stored with the run is not the one that it walked."""
    if not run.manifest["system"]["stored"]:
        return
    try:
        table = describing.table_restored(read_json(run.directory / TABLE, root=run.directory))
    except FileNotFoundError:
        raise Damaged(TABLE, None, "is missing") from None
    except Damaged:
        raise
    except (GosprlError, *FORGED) as error:
        raise Damaged(TABLE, None, str(error)) from None
    if describing.digest_of(table) != run.manifest["system"]["digest"]:
        raise Damaged(TABLE, None, f"is not the table that the run walked: its digest is not the one in {MANIFEST}")


def _audit(run: OpenRun) -> None:
    """Raise `Damaged` if an event of the log cannot follow the one before, as the manifest describes the run."""
    try:
        Audit(run).read()
    except Impossible as error:
        what = f"{error}, as {MANIFEST} describes the run: one of the two is of another moment, or was changed"
        raise Damaged(*_batch_of(run.contents, error.event), what) from None
    except Damaged:
        raise
    except (GosprlError, *FORGED) as error:
        raise Damaged(CHAIN, None, f"its events cannot be read: {type(error).__name__}: {error}") from None


def _batch_of(contents: Contents, event: int) -> tuple[str, int | None]:
    """Return the file and the number of the batch that has an event; of the last one if none has."""
    rows, file, number = 0, CHAIN, None
    for link in contents.links:
        if link.file != NAMES_FILE:
            rows, file, number = rows + link.rows, link.file, link.number
            if rows > event:
                break
    return file, number
