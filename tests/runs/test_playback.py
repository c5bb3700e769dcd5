"""Every strategy, system and need: a run restored from its directory is, bit for bit, the run that wrote it."""

import pytest
from kinds import NEEDS, collector_of
from runs_on_disk import kept, logged
from test_conformance import bits

from gosprl.collecting import collector as collecting
from gosprl.runs.opened import OpenRun
from gosprl.strategies import STRATEGIES

ALIKE = ("zero_ucrl", "weighted_maxent", "min_frequency")  # their planner is that of zero_one_ucrl and maxent


@pytest.fixture(autouse=True)
def _often_renewed(monkeypatch):
    monkeypatch.setattr(collecting, "RENEWAL", 40)


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name not in ALIKE])
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
        assert logged(collector.result()) == logged(expected)
    function_of_counts = need not in (NEEDS["callable"], NEEDS["requirement"])
    if strategy in ("guarded", "gosprl") and expected.steps >= 60:  # they plan often enough to be renewed
        assert (run.checkpoint_of(0, run.contents.rows) is not None) == function_of_counts


@pytest.mark.parametrize("strategy", ["guarded", "random"])
def test_keeping_a_run_changes_nothing(combination, strategy, tmp_path):
    kind, need = combination
    system = kind.make()
    assert bits(kept(kind, need, strategy, tmp_path / "run")) == bits(
        collector_of(kind, system, need, strategy).run(system, 150)
    )
