"""Judges what the package makes of a damaged copy of a run: refused, and not a byte written; or resumed, and right."""

import contextlib

import gosprl
from evidence.histories import invariants
from evidence.histories.lives import Event
from evidence.histories.records import Run, logged
from gosprl.errors import CollectionError, GosprlError, InputError

CERTIFICATE = "certificate.json"


def judge(history, run, path, what):
    """Look at a damaged copy of a run, and resume it."""
    hurt = Run(path, run.kind, run.carrier, run.asked, run.seed, run.entries, run.draws, run.sources)
    hurt.had, hurt.was_fleet = run.had, run.was_fleet
    hurt.keep()
    looked_at(run, hurt, what)
    if hurt.carrier != "one":  # a fleet goes on by the walkers of another call: `go_on` does that
        return
    life = history.life(hurt, "nothing", None, Event(), {}, "resume")
    if life.error is not None:
        refused = isinstance(life.error, GosprlError) and not isinstance(life.error, CollectionError)
        assert refused, f"{what}: not refused, and not resumed: {life.error!r}"
        invariants.untouched(hurt)
        return
    found = gosprl.runs.verify(path, **run.of.given)
    wrong = [check.text for check in found.checks if check.ok is False]
    assert not wrong, f"{what}: resumed, and refused by verify: {wrong}"
    complete = log_after(hurt, life, what)[: len(run.entries)] == run.entries
    was_certified = CERTIFICATE in run.files and CERTIFICATE in hurt.files
    assert complete or not was_certified, f"{what}: a certified run is cut"


def looked_at(run, hurt, what):
    """`verify` and `show` find nothing right that is another run's, and write nothing."""
    sound, shown = False, None
    with contextlib.suppress(InputError):
        sound = gosprl.runs.verify(hurt.path, **run.of.given).ok
        shown = gosprl.runs.show(hurt.path)
        repr(shown)
    invariants.untouched(hurt)
    if hurt.files.get(CERTIFICATE, run.files.get(CERTIFICATE)) == run.files.get(CERTIFICATE):
        return
    assert not sound, f"{what}: verify confirms another certificate"
    presented = shown is not None and shown.facts["certificate"].get("there") and not shown.problems
    assert not presented, f"{what}: show presents another certificate"


def log_after(hurt, life, what):
    """The log of a damaged run that was resumed: a beginning of what was there, then what happened now."""
    there, _ = logged(hurt.path)
    new = life.diary.entries
    if hurt.of.is_table:
        return there
    kept = there[: len(there) - len(new)]
    assert kept == hurt.entries[: len(kept)], f"{what}: resumed with what never happened"
    assert there[len(kept) :] == new, f"{what}: the new samples are not in the log"
    return there
