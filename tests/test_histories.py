"""Histories of runs (evidence/histories): a few of them, and a few defects put back, which they find.

What is drawn is fixed, and no clock decides anything. `python -m evidence.histories` tries many.
"""

import contextlib
import json

import numpy as np
import pytest

import gosprl
from evidence.histories import defects, invariants
from evidence.histories.lives import Event, carried, diary_of, live, programs
from evidence.histories.machine import History
from evidence.histories.records import Run, counted, logged
from evidence.histories.systems import CRASHED, Kinds, Step
from evidence.histories.trials import tried

FEW = 5  # histories of a seed


@pytest.mark.parametrize("seed", range(3))
def test_no_history_fails(seed):
    done = tried(seed, FEW)
    assert done.failure is None, done.failure
    assert done.histories >= FEW
    assert sum(done.rules.values()) > 2 * FEW


@pytest.mark.parametrize(
    ("defect", "seed"),
    [
        ("the same samples twice", 0),
        ("met before the first state", 0),
        ("files of different moments are taken", 0),
    ],
)
def test_a_defect_that_is_put_back_is_found(defect, seed):
    with defects.put_back(defect):
        assert tried(seed, FEW).failure


@pytest.mark.parametrize("name", defects.DEFECTS)
def test_a_defect_is_gone_again_afterwards(name):
    there = [defects.found(*patch[:2]) for patch in defects.DEFECTS[name]]
    with defects.put_back(name):
        assert all(
            defects.found(*patch[:2]) is not one for patch, one in zip(defects.DEFECTS[name], there, strict=True)
        )
    assert [defects.found(*patch[:2]) for patch in defects.DEFECTS[name]] == there


def test_a_run_gives_up_at_once_what_its_data_show_to_be_cut_off():
    """It ends with its first reset, before it plans; `verify` makes it again up to there."""
    with contextlib.closing(History()) as history:
        history.begin("short limit", "one", "nothing", 1, 2, None, "terminal", Event(), [], "run")
        history.begin("short limit", "one", "nothing", 0, 2, None, "terminal", Event(), [0], "run")
        assert history.runs[1].result.stop == "unreachable"
        assert history.runs[1].result.steps == 0


def test_a_walker_in_the_place_of_a_lost_one_is_not_counted_among_chosen_resets():
    with contextlib.closing(History()) as history:
        history.begin("program", "simulated", "reward", 0, 3, None, "anytime", Event(), [], "run")
        history.begin("program", "one", "nothing", 1, 3, None, "terminal", Event(), [0], "run")
        assert history.runs[1].result.met


@pytest.fixture
def kept(tmp_path):
    """A run of a program that crashes, with its diary."""
    with programs():
        diary = diary_of(Event())
        system, given = carried("program", "one", diary, None, "nothing")
        life = live(lambda: gosprl.collect(system, 4, seed=3, out=tmp_path / "run", **given), diary)
    run = Run(tmp_path / "run", "program", "one", {"need": 4}, 3)
    run.entries = logged(run.path)[0]
    return run, life


def test_the_log_is_read_as_the_diary_was_written(kept):
    run, life = kept
    assert run.entries == life.diary.entries
    assert any(isinstance(entry, Step) and entry.next_state == CRASHED for entry in run.entries)
    invariants.result_holds(run, life.value)


def test_a_step_that_never_happened_is_noticed(kept):
    run, life = kept
    life.diary.entries[-1] = life.diary.entries[-1]._replace(reward=0.5)
    run.entries = []
    with pytest.raises(AssertionError, match="the log says"):
        invariants.log_holds(run, life)


def test_counts_that_are_not_those_of_the_diary_are_noticed(kept):
    run, life = kept
    run.entries = run.entries[:-1]
    with pytest.raises(AssertionError, match="too many"):
        invariants.result_holds(run, life.value)


def test_sets_without_the_truth_are_noticed():
    law = Kinds["ring"].law
    model = gosprl.EmpiricalModel.from_transitions(np.zeros(300), np.zeros(300), np.zeros(300), states=4, actions=2)
    with pytest.raises(AssertionError, match="outside"):
        invariants.sets_hold(law, model)


def test_laws_are_distributions():
    for kind in Kinds.values():
        for choices in (moves for row in kind.law.moves for moves in row if moves):
            assert sum(choice[0] for choice in choices) == pytest.approx(1)


def test_a_history_leaves_nothing_behind():
    history = History()
    history.first("table", "one", 0, 1, None)
    run = history.runs[0]
    assert json.loads((run.path / "certificate.json").read_text())["met"]
    assert counted(run.entries)[0].total() == run.result.steps
    history.teardown()
    assert not history.folder.exists()
