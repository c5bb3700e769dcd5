"""Every strategy, system and need: a run restored from its directory is, bit for bit, the run that wrote it."""

import pytest
from kinds import NEEDS, collector_of
from test_conformance import bits

from gosprl.collecting import collector as collecting
from gosprl.runs.keeping import Out, Replay, Settings, keep
from gosprl.runs.opened import OpenRun
from gosprl.strategies import make

STEPS = 150


@pytest.fixture(autouse=True)
def _often_renewed(monkeypatch):
    monkeypatch.setattr(collecting, "RENEWAL", 40)


def kept(kind, need, strategy, directory, system=None, steps=STEPS, seed=0, **out):
    """As `collect` keeps it."""
    system = system or kind.make()

    def begin(seed):
        return collector_of(kind, system, need, strategy, seed)

    settings = Settings(make(strategy, {}), None, kind.around(need.unseen))
    where = Out(directory, **out) if not isinstance(directory, Replay) else directory
    return keep(where, begin, seed, system, settings, steps)[1]


def test_restored_with_and_without_checkpoints(combination, strategy, tmp_path):
    kind, need = combination
    expected = kept(kind, need, strategy, tmp_path / "run")
    run = OpenRun.read(tmp_path / "run")
    assert not run.contents.problems
    for checkpoints in (True, False):
        system = kind.make()
        collector = collector_of(kind, system, need, strategy)
        run.restore(collector, system, checkpoints=checkpoints)
        collector.conclude()
        assert bits(collector.result()) == bits(expected)
    function_of_counts = need not in (NEEDS["callable"], NEEDS["requirement"])
    if strategy in ("guarded", "gosprl"):  # they plan often enough to be renewed
        assert (run.checkpoint_of(0, run.contents.rows) is not None) == (function_of_counts and expected.steps >= 60)


def test_keeping_a_run_changes_nothing(combination, strategy, tmp_path):
    kind, need = combination
    system = kind.make()
    assert bits(kept(kind, need, strategy, tmp_path / "run")) == bits(
        collector_of(kind, system, need, strategy).run(system, STEPS)
    )
